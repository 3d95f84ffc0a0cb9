/** Locks of branches that a killed git left: removed where our own git was killed at it, and no other one can hold them. */
import { lstatSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findGitPlace } from "./git-place.ts";
import { isAtWork } from "../process/tree.ts";

/**
 * Called only when a process of ours died while its git changed the branch: in the working tree `place`, or, if it is
 * not `checkedOut` there, in the repository of that tree.
 */
export function removeRefLocks(place: string, branch: string | null, checkedOut = true): void {
  const own = checkedOut ? ["HEAD.lock", "ORIG_HEAD.lock"] : [];
  removeLocks(place, own, [...(branch === null ? [] : [`refs/heads/${branch}.lock`]), "packed-refs.lock"]);
}

/** Called only when a process of ours died while its git pushed the branch: git notes then what the remote has. */
export function removeTrackingLock(place: string, remote: string, branch: string): void {
  removeLocks(place, [], [`refs/remotes/${remote}/${branch}.lock`, "packed-refs.lock"]);
}

/** `own`: in the records of the working tree; `shared`: in those of its repository. */
function removeLocks(place: string, own: readonly string[], shared: readonly string[]): void {
  const found = findGitPlace(place);
  if (found === null) return;
  const { top, gitDir, common } = found;
  // A remote is named by the flow, and may be a path: nothing outside of the repository's records is touched.
  const within = shared.map((name) => join(common, name)).filter((file) => file.startsWith(`${common}/`));
  const all = [...own.map((name) => join(gitDir, name)), ...within];
  const locks = all.filter((file) => lstatSync(file, { throwIfNoEntry: false })?.isFile());
  if (locks.length === 0 || isAtWork("git", [top, gitDir, common])) return;
  for (const file of locks) rmSync(file, { force: true });
}
