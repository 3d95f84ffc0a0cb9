/** `lockstep resume RUN`; with `--from` or `--invalidate` it goes on from an earlier visit, as a new run. */
import { changeText, type FlowChange } from "../../story/changes.ts";
import { isBatch } from "../../run/batch-record.ts";
import { resume, type ResumeOptions } from "../../run/index.ts";
import { UsageError } from "../args.ts";
import type { Call } from "../call.ts";
import { conduct } from "../conduct.ts";
import { shownInLine } from "../text/text.ts";

export async function resumeRun(call: Call): Promise<number> {
  const [run = ""] = call.words;
  const at = parting(call);
  if (isBatch(run)) {
    if (at !== null) throw new UsageError("--from and --invalidate belong to one run, not to a batch.");
    return await (await import("./batch.ts")).resumeIssues(call, run);
  }
  const [adopt, takeOver] = [call.on("adopt"), call.on("take-over")];
  return await conduct(call, async (options) => {
    if (at === null) return await resume({ ...options, run, adopt, takeOver, onChange: tellChanges(call) });
    return await (await import("../../run/fork.ts")).fork({ ...options, run, at, adopt });
  });
}

function parting(call: Call): string | null {
  const [from, invalidate] = [call.text("from"), call.text("invalidate")];
  if (from !== undefined && invalidate !== undefined)
    throw new UsageError("--from and --invalidate both say where to go on; give one of them.");
  return from ?? (invalidate === undefined ? null : `${invalidate}@1`);
}

function tellChanges({ screen }: Call): NonNullable<ResumeOptions["onChange"]> {
  return (changes: readonly FlowChange[], adopted) => {
    const end = adopted ? "they are adopted" : "the run goes on with its own flow; --adopt takes these over";
    screen.tell(
      [
        screen.err("yellow", `The files of the agent have changed since; ${end}:`),
        ...changes.map((change) => `  ${shownInLine(changeText(change), 200)}`),
      ].join("\n"),
    );
  };
}
