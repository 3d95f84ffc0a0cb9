/** `lockstep resume RUN`; with `--from` or `--invalidate` it goes on from an earlier visit, as a new run. */
import { changeText, type FlowChange } from "../../story/changes.ts";
import { isBatch } from "../../run/batch-record.ts";
import type { ResumeOptions } from "../../run/options.ts";
import { resume } from "../../run/resume.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { conduct } from "../conduct.ts";
import { isOnServer } from "../journal.ts";
import { shownInLine } from "../text/text.ts";

export async function resumeRun(call: CallOf<"resume">): Promise<number> {
  const [run = ""] = call.words;
  const at = parting(call);
  if (isBatch(run)) {
    if (at !== null)
      throw new UsageError("--from and --invalidate only work with one run, not with a batch.");
    return await (await import("./batch.ts")).resumeIssues(call, run);
  }
  if (isOnServer(call) && at === null && !call.flags.here) {
    const code = await (await import("../fleet/offer.ts")).offered(call, run);
    if (code !== null) return code;
  }
  const [adopt, takeOver] = [call.flags.adopt, call.flags["take-over"]];
  return await conduct(call, async (options) => {
    if (at === null) return await resume({ ...options, run, adopt, takeOver, onChange: tellChanges(call) });
    return await (await import("../../run/fork.ts")).fork({ ...options, run, at, adopt });
  });
}

function parting(call: CallOf<"resume">): string | null {
  const [from, invalidate] = [call.flags.from, call.flags.invalidate];
  if (from !== undefined && invalidate !== undefined)
    throw new UsageError("Give either --from or --invalidate, not both.");
  return from ?? (invalidate === undefined ? null : `${invalidate}@1`);
}

function tellChanges({ screen }: CallOf<"resume">): NonNullable<ResumeOptions["onChange"]> {
  return (changes: readonly FlowChange[], adopted) => {
    const end = adopted
      ? "they are adopted"
      : "the run continues with its recorded flow; --adopt applies the changes";
    screen.tell(
      [
        screen.err("yellow", `The agent's files have changed since the run started; ${end}:`),
        ...changes.map((change) => `  ${shownInLine(changeText(change), 200)}`),
      ].join("\n"),
    );
  };
}
