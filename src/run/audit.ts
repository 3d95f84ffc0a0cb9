/** The record of a run in the words of the life of its stages, from its journal alone. */
import { audit, type AuditRecord } from "../engine/audit.ts";
import { RunnerError, type Journal } from "../engine/ports.ts";
import { findRun } from "./runs.ts";

export type { AuditRecord } from "../engine/audit.ts";

/** NO_STAGES when the run is none of a stage machine. */
export async function auditRun(journal: Journal, ref: string): Promise<readonly AuditRecord[]> {
  const { id, agent, digest } = await findRun(journal, ref);
  const flow = await journal.flow(digest);
  if (flow === null)
    throw new RunnerError("JOURNAL_UNAVAILABLE", `The flow of run ${id} is missing from the journal.`);
  if (flow.dialect !== "stage")
    throw new RunnerError("NO_STAGES", `Run ${id} of "${agent}" has no stages, and so no audit of them.`);
  return audit(flow, await journal.read(id));
}
