/** Merging the branch of a run into the one it was made from, without anybody's working tree being in the way of it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Finalizing } from "./finalize.ts";
import { heldAmong, heldFor, isHeld } from "./control-changes.ts";
import { bringUpToDate, recoverCheckout } from "./checkout.ts";
import { isAncestor, listBranches, mergedTip, rawChanges, tipOf, twoInFiles } from "./git-queries.ts";
import { findGitPlace } from "./git-place.ts";
import { applied, failedEffect, held, type Done } from "../actions/ledger.ts";
import { removeRefLocks } from "./ref-locks.ts";
import { inTurn, takeTurn } from "../process/turn.ts";
import { namedPaths, quoted } from "./words.ts";

export async function mergeBranch(it: Finalizing): Promise<boolean> {
  const { git, ledger, worktree } = it;
  const { branch, base, home } = worktree;
  // Only then can a lock on the base be that of a git of ours which was killed.
  let isCutOff = ledger.stateOf("merge") === "intended";
  const found = async () =>
    (await mergedTip(git, home, branch, base)) === null ? null : `${branch} is in ${base}`;
  return await ledger.act({
    kind: "merge",
    key: "merge",
    target: base,
    detail: `merge ${branch} into ${base}`,
    find: async () => {
      // Of a process that was killed in the middle of it the branch may have moved, and not all of the working tree.
      const done = await oneByOne(it, async () => {
        if (isCutOff) removeRefLocks(home, base, false);
        isCutOff = false;
        const text = await found();
        return text === null ? failedEffect("") : applied(text);
      });
      return done.state === "applied" ? done.detail : null;
    },
    perform: async () =>
      await oneByOne(it, async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const done = await mergeOnce(it);
          if (done !== "moved") return done;
        }
        return failedEffect(`${base} moved each time that ${branch} was to be merged into it`);
      }),
  });
}

const ROUNDS = 5;

/** Runs that end at the same time merge one after the other: two at once would stand in each other's way. */
async function oneByOne(it: Finalizing, merge: () => Promise<Done>): Promise<Done> {
  const { home } = it.worktree;
  const folder = findGitPlace(home)?.common;
  if (folder === undefined) return failedEffect(`not merged: ${home} is not in a working tree of git`);
  return await inTurn(join(folder, "lockstep-merge"), async () => {
    return await withLock(folder, async () => {
      const recovered = await recoverCheckout(it.git, folder, it.onWait);
      return recovered.kind === "stuck" ? failedEffect(`not merged: ${recovered.why}`) : await merge();
    });
  });
}

/** Against those of other processes. */
async function withLock(folder: string, merge: () => Promise<Done>): Promise<Done> {
  const turn = await takeTurn(folder);
  if ("why" in turn) return failedEffect(`not merged: ${turn.why}`);
  try {
    return await merge();
  } finally {
    turn.release();
  }
}

/**
 * Merges among the objects of the repository, where no working tree is touched. Only then the branch is moved: together
 * with the tree that has it checked out, if that is clean, and else only if it was not moved meanwhile.
 */
async function mergeOnce({ git, worktree, run, agent }: Finalizing): Promise<Done | "moved"> {
  const { branch, base, home, path } = worktree;
  const branches = twoInFiles(home, branch, base) ?? (await listBranches(git, home, [branch, base]));
  if (branches === null) return failedEffect(`not merged: git cannot list the branches of ${home}`);
  const [from, into] = [branch, base].map((name) => branches.find((other) => other.name === name));
  if (from === undefined || into === undefined) {
    const [gone, at] = from === undefined ? [branch, "COMMIT"] : [base, worktree.commit];
    const fix = `git -C ${quoted(home)} branch ${quoted(gone)} ${at}`;
    return failedEffect(`not merged: the branch "${gone}" is gone from ${home}; make it again with: ${fix}`);
  }
  const [tip, old] = [from.tip, into.tip];
  if (tip === worktree.commit) return applied("nothing to merge: the run has committed nothing");

  const flags = ["--write-tree", "-z", "--name-only", "--no-messages"];
  const merged = await git(home, ["merge-tree", ...flags, old, tip]);
  const [tree = "", ...conflicts] = merged.out.split("\0");
  const inConflict = conflicts.filter((name) => name !== "").map((name) => ({ path: name }));
  if (!merged.ok && merged.exit === 1 && inConflict.length > 0) {
    const both = namedPaths(inConflict);
    // In a folder that is not a worktree any more it would be the repository around it that is changed.
    const anew = `git -C ${quoted(home)} worktree add -f ${quoted(path)} ${quoted(branch)} && `;
    const fix = `${existsSync(path) ? "" : anew}git -C ${quoted(path)} merge ${quoted(base)}`;
    return failedEffect(
      `not merged: ${base} and ${branch} are in conflict over ${both}; resolve that with: ${fix}`,
    );
  }
  if (!merged.ok) return failedEffect(`not merged: ${merged.why}`);
  const message = `Merge branch '${branch}' into ${base}\n\nRun ${run} of ${agent}.`;
  // At the same time, because others wait for this merge. A commit that no branch gets is removed by git some day.
  const [changed, made] = await Promise.all([
    rawChanges(git, home, old, tree),
    git(home, ["commit-tree", tree, "-p", old, "-p", tip, "-m", message]),
  ]);
  if (changed?.length === 0 && (await isAncestor(git, home, tip, old)))
    return applied(`${branch} is in ${base}`);
  const changes = changed === null ? null : heldAmong(changed);
  if (isHeld(changes)) {
    const at = `git -C ${quoted(home)}`;
    return held(
      heldFor(changes, "not merged", worktree, branch, {
        command: `${at} merge ${quoted(branch)}`,
        last: (paths) => `${at} submodule update --no-fetch -- ${paths.map(quoted).join(" ")}`,
      }),
    );
  }
  if (!made.ok) return failedEffect(`not merged: ${made.why}`);
  const commit = made.out.trim();

  const place = into.place === null ? null : treeAt(into.place, home);
  const moved =
    place === null || !existsSync(place)
      ? await git(home, ["update-ref", "-m", `lockstep: run ${run}`, `refs/heads/${base}`, commit, old], {
          whole: true,
        })
      : await bringUpToDate(git, { run, place, base, from: old, to: commit });
  if (moved.ok) return applied(`merged ${branch} into ${base} (${commit.slice(0, 10)})`);
  const isStill = (await tipOf(git, home, `refs/heads/${base}`)) === old;
  return isStill ? failedEffect(`not merged: ${moved.why}`) : "moved";
}

/** Of a submodule git names the folder of its records in place of its working tree. */
function treeAt(place: string, home: string): string {
  const own = findGitPlace(home);
  return own !== null && own.gitDir === own.common && own.common === place ? home : place;
}
