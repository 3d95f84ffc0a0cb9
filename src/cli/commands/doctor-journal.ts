/** `lockstep doctor --journal`: the whole record of runs, checked without changing it. */
import { join } from "node:path";
import { shellWord } from "../../flow/text/harmless.ts";
import { checkRecord, type JournalFault } from "../../run/records/check-journal.ts";
import { statIfAny } from "../../run/world/files.ts";
import { failedRow, ok, warn, type DoctorRow } from "./doctor.ts";
import { count } from "../text/text.ts";

/** Each fault is a line; parts in which there is none have one line that says so. */
export function journalFindings(stateDir: string): readonly DoctorRow[] {
  const checked = checkRecord(stateDir);
  if (checked === null) return [ok("journal", `none in ${stateDir}`)];
  const { faults, counts, orphans, batches } = checked;
  const isReadable = !faults.some(({ part }) => part === "database");
  const whole: { readonly [part in JournalFault["part"]]: string } = {
    database: "SQLite found no errors",
    runs: count(counts.runs, "run"),
    entries:
      count(counts.entries, "entry", "entries") +
      (counts.unsealed === 0 ? "" : `, ${counts.unsealed} rows without a checksum, from an earlier version`),
    flows: count(counts.flows, "flow"),
    artifacts: count(counts.artifacts, "large entry", "large entries"),
    owners: "no stale locks",
  };
  const findings = Object.entries(whole).flatMap(([part, detail]) => {
    const its = faults.filter((fault) => fault.part === part);
    if (its.length > 0) return folded(part, its, rescueOf(stateDir) ?? RESCUE);
    return isReadable || part === "owners" ? [ok(part, detail)] : [];
  });
  if (orphans > 0)
    findings.push(warn("files of runs", `those of ${count(orphans, "removed run")} are left`, TIDY));
  else if (isReadable) findings.push(ok("files of runs", "no leftovers of removed runs"));
  for (const file of batches)
    findings.push(warn("batches", `${file} is not a valid record of a batch`, `rm ${shellWord(file)}`));
  return findings;
}

const MOST_LINES = 20;
const TIDY = "lockstep runs --prune";
const RESCUE = "restore it from a copy, or: lockstep salvage";

/** How to go on with a record that is damaged. One that is empty (0 bytes) holds nothing to salvage. */
export function rescueOf(stateDir: string): string | null {
  const file = join(stateDir, "runs.db");
  if (statIfAny(file)?.size !== 0) return null;
  return `restore it from a copy, or begin anew: rm ${shellWord(file)}`;
}

function folded(part: string, faults: readonly JournalFault[], rescue: string): readonly DoctorRow[] {
  const lines = faults.slice(0, MOST_LINES).map(({ kind, detail }) => {
    if (kind === "damage") return failedRow(part, detail, rescue);
    return warn(part, detail, part === "owners" ? "the next run removes it" : TIDY);
  });
  const more = faults.length - lines.length;
  return more === 0 ? lines : [...lines, failedRow(part, `${more} more`, rescue)];
}
