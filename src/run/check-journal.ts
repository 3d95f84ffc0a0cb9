/** The record of a project, checked as a whole: the journal, and the files beside it that belong to runs. */
import { checkJournal, type Checked } from "../journal/check.ts";
import { ownersIn } from "./belongings.ts";

export type { JournalFault } from "../journal/check.ts";

/** `orphans`: how many runs that were removed have files left. null: there is no journal. */
export function checkRecord(stateDir: string): (Checked & { readonly orphans: number }) | null {
  const checked = checkJournal(stateDir);
  if (checked === null) return null;
  const runs = new Set(checked.runs);
  const isReadable = !checked.faults.some(({ part }) => part === "database");
  const orphans = isReadable ? ownersIn(stateDir).filter((name) => !runs.has(name)).length : 0;
  return { ...checked, orphans };
}
