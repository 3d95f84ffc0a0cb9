/** The record of a run in the words of the life of its stages, from its journal alone. */
import { audit, type AuditRecord } from "../engine/audit.ts";
import { RunnerError, type Journal } from "../engine/ports.ts";
import { readRun } from "./runs.ts";

export type { AuditRecord } from "../engine/audit.ts";

/** NO_STAGES when the run is none of a stage machine. */
export async function auditRun(journal: Journal, ref: string): Promise<readonly AuditRecord[]> {
  const {
    row: { id, agent },
    flow,
    adopted,
    entries,
  } = await readRun(journal, ref);
  if (flow.dialect !== "stage")
    throw new RunnerError("NO_STAGES", `Run ${id} of "${agent}" has no stages, and so no audit of them.`);
  return audit(flow, entries, adopted);
}
