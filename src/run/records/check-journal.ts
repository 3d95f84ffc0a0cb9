/** The record of a project, checked as a whole: the journal, and the files beside it that belong to runs. */
import { checkJournal, type CheckedJournal } from "../../journal/sqlite/check.ts";
import { invalidBatches } from "../batch-record.ts";
import { ownersIn } from "./run-files.ts";

export type { JournalFault } from "../../journal/sqlite/check.ts";

export type CheckedRecord = CheckedJournal & {
  /** How many runs that were removed have files left. */
  readonly orphans: number;
  /** Files that are not valid records of a batch. */
  readonly batches: readonly string[];
};

/** null: there is no journal. */
export function checkRecord(stateDir: string): CheckedRecord | null {
  const checked = checkJournal(stateDir);
  if (checked === null) return null;
  const runs = new Set(checked.runs);
  const isReadable = !checked.faults.some(({ part }) => part === "database");
  const orphans = isReadable ? ownersIn(stateDir).filter((name) => !runs.has(name)).length : 0;
  return { ...checked, orphans, batches: invalidBatches(stateDir) };
}
