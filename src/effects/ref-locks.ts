/** Locks of branches that a killed git left: removed where our own git was killed at it, and no other one can hold them. */
import { lstatSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findPlace } from "./git-place.ts";
import { isAtWork } from "./tree.ts";

/**
 * Called only when a process of ours died while its git changed the branch: in the working tree `place`, or, if it is
 * not `checkedOut` there, in the repository of that tree.
 */
export function removeRefLocks(place: string, branch: string | null, checkedOut = true): void {
  const found = findPlace(place);
  if (found === null) return;
  const { top, gitDir, common } = found;
  const own = (checkedOut ? ["HEAD.lock", "ORIG_HEAD.lock"] : []).map((name) => join(gitDir, name));
  const shared = [...(branch === null ? [] : [`refs/heads/${branch}.lock`]), "packed-refs.lock"];
  const locks = [...own, ...shared.map((name) => join(common, name))].filter((file) =>
    lstatSync(file, { throwIfNoEntry: false })?.isFile(),
  );
  if (locks.length === 0 || isAtWork("git", [top, gitDir, common])) return;
  for (const file of locks) rmSync(file, { force: true });
}
