/** What keeps git from using the worktrees of a repository, found without git and repaired: records that a killed git left half written. */
import { existsSync, lstatSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { putFile } from "./put-file.ts";
import { lineIn, entryNames } from "./worktree-records.ts";

/** Records of one worktree that git cannot read. */
export type Unreadable = {
  readonly records: string;
  readonly what: string;
  /** `write`: only the pointer to the repository is missing. `remove`: the worktree was never made to the end. */
  readonly repair: "write" | "remove";
};

/** With the first of them every command about worktrees fails in this repository. `common`: what all its worktrees share. */
export function unreadableIn(common: string): readonly Unreadable[] {
  const folder = join(common, "worktrees");
  // A command may have put a link there: what lies behind it is not ours.
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  return entryNames(folder).flatMap((name): readonly Unreadable[] => {
    const records = join(folder, name);
    if (!lstatSync(records, { throwIfNoEntry: false })?.isDirectory()) return [];
    const missing = ["gitdir", "HEAD", "commondir"].filter((file) => lineIn(join(records, file)) === "");
    const [first] = missing;
    if (first === undefined) return [];
    const what = `${join(records, first)} is ${existsSync(join(records, first)) ? "empty" : "missing"}`;
    if (missing.length === 1 && first === "commondir") return [{ records, what, repair: "write" }];
    return existsSync(join(records, "locked")) ? [{ records, what, repair: "remove" }] : [];
  });
}

/** Whether a git may be writing them at this moment. */
export function isFresh({ records }: Unreadable, now: number): boolean {
  return now - (lstatSync(records, { throwIfNoEntry: false })?.mtimeMs ?? 0) < FRESH_MS;
}

const FRESH_MS = 10_000;

export function repairRecords(common: string, { records, repair }: Unreadable): void {
  if (repair === "write") {
    putFile(join(records, "commondir"), "../..\n");
    return;
  }
  const away = join(common, "lockstep-removed-records");
  rmSync(away, { recursive: true, force: true });
  renameSync(records, away);
  rmSync(away, { recursive: true, force: true });
}
