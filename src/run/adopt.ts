/** A flow that changed since a run began: what is different, and whether the run may go on with it. */
import { obstacles } from "../story/adoptable.ts";
import { RunnerError } from "../engine/ports.ts";
import { prepare, type Prepared } from "../engine/schema/prepared.ts";
import { flowChanges, type FlowChange } from "../story/changes.ts";
import type { Flow } from "../flow/flow.ts";
import { shellWord } from "../flow/text/harmless.ts";
import { hasErrors } from "../flow/problem.ts";
import { flowDigest, load } from "./load.ts";
import type { RecordedPast } from "./records/past.ts";

export type AdoptOptions = {
  /** Goes on with the flow that the files hold now; FLOW_INCOMPATIBLE when the run cannot. */
  readonly adopt?: boolean;
  /** Hears what is different between the flow of the run and that of the files. Without it, and without `adopt`, nothing is compared. */
  readonly onChange?: (changes: readonly FlowChange[], adopted: boolean) => void;
};

/** The flow that the run is to adopt now; null: it goes on with its own. */
export async function flowToAdopt(
  recorded: Pick<RecordedPast, "row" | "current" | "folded" | "report">,
  where: { readonly cwd: string },
  { adopt = false, onChange }: AdoptOptions,
): Promise<{ readonly flow: Prepared; readonly digest: string } | null> {
  const { agent } = recorded.row;
  const { flow, problems } = await load(agent, where);
  if (flow === null || hasErrors(problems)) {
    if (!adopt) return null;
    throw new RunnerError(
      "FLOW_INVALID",
      `The files of agent "${agent}" cannot be adopted: they have problems. See: lockstep check ${shellWord(agent)}`,
    );
  }
  const digest = flowDigest(flow);
  if (digest === flowDigest(recorded.current)) return null;
  onChange?.(flowChanges(recorded.current, flow), adopt);
  if (!adopt) return null;
  requireCompatible(recorded, flow);
  return { flow: await prepare(flow), digest };
}

function requireCompatible(
  { row, current, folded, report }: Pick<RecordedPast, "row" | "current" | "folded" | "report">,
  wanted: Flow,
): void {
  const reasons = obstacles(current, wanted, folded().state, report.path);
  if (reasons.length === 0) return;
  throw new RunnerError(
    "FLOW_INCOMPATIBLE",
    `Run ${row.id} cannot continue with the current files:\n${reasons.map((reason) => `  ${reason}`).join("\n")}\n` +
      `Resume it without --adopt, or begin a new run.`,
  );
}
