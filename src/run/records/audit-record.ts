/** The record of a run in the words of the life of its stages, from its journal alone. */
import { auditRecords, type AuditRecord } from "../../tell/audit.ts";
import { RunnerError, type Journal } from "../../engine/ports.ts";
import { foldRun } from "./fold.ts";
import { findRun, flowOf } from "./runs.ts";

export type { AuditRecord } from "../../tell/audit.ts";

/** NO_STAGES when the run is none of a stage machine. */
export async function auditRun(journal: Journal, ref: string): Promise<readonly AuditRecord[]> {
  const row = await findRun(journal, ref);
  if ((await flowOf(journal, row.id, row.digest)).dialect !== "stage")
    throw new RunnerError(
      "NO_STAGES",
      `Run ${row.id} of "${row.agent}" has no stages, and so no audit of them.`,
    );
  const records: AuditRecord[] = [];
  await foldRun(journal, row, (moment) => void records.push(...auditRecords(moment)));
  return records;
}
