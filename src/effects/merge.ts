/** Merging the branch of a run into the one it was made from, without anybody's working tree being in the way of it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Finalizing } from "./finalize.ts";
import { heldChanges, heldFor, isHeld } from "./control-changes.ts";
import { branchesOf, changesOf, CHECKOUT_MS, isAncestor, mergedTip, tipOf, type Git } from "./git.ts";
import { findPlace } from "./git-place.ts";
import { applied, failed, held, type Done } from "./ledger.ts";
import { inTurn, takeTurn } from "./turn.ts";
import { named, quoted } from "./words.ts";

export async function mergeBranch(it: Finalizing): Promise<boolean> {
  const { git, ledger, worktree } = it;
  const { branch, base, home } = worktree;
  return await ledger.act({
    kind: "merge",
    key: "merge",
    target: base,
    detail: `merge ${branch} into ${base}`,
    find: async () =>
      (await mergedTip(git, home, branch, base)) === null ? null : `${branch} is in ${base}`,
    perform: async () =>
      await oneByOne(home, async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const done = await mergeOnce(it);
          if (done !== "moved") return done;
        }
        return failed(`${base} moved each time that ${branch} was to be merged into it`);
      }),
  });
}

const ROUNDS = 5;

/** Runs that end at the same time merge one after the other: two at once would stand in each other's way. */
async function oneByOne(home: string, merge: () => Promise<Done>): Promise<Done> {
  const folder = findPlace(home)?.common;
  if (folder === undefined) return failed(`not merged: ${home} is in no working tree of git`);
  return await inTurn(join(folder, "lockstep-merge"), async () => await withLock(folder, merge));
}

/** Against those of other processes. */
async function withLock(folder: string, merge: () => Promise<Done>): Promise<Done> {
  const turn = await takeTurn(folder);
  if ("why" in turn) return failed(`not merged: ${turn.why}`);
  try {
    return await merge();
  } finally {
    turn.release();
  }
}

/**
 * Merges among the objects of the repository, where no working tree is touched. Only then the branch is moved: together
 * with the tree that has it checked out, if that is clean, and else only if nobody else moved it meanwhile.
 */
async function mergeOnce({ git, worktree, run, agent }: Finalizing): Promise<Done | "moved"> {
  const { branch, base, home, path } = worktree;
  const branches = await branchesOf(git, home, [branch, base]);
  if (branches === null) return failed(`not merged: git cannot list the branches of ${home}`);
  const [from, into] = [branch, base].map((name) => branches.find((other) => other.name === name));
  if (from === undefined || into === undefined) {
    const [gone, at] = from === undefined ? [branch, "COMMIT"] : [base, worktree.commit];
    const mend = `git -C ${quoted(home)} branch ${quoted(gone)} ${at}`;
    return failed(`not merged: the branch "${gone}" is gone from ${home}; make it again with: ${mend}`);
  }
  const [tip, old] = [from.tip, into.tip];
  if (tip === worktree.commit) return applied("nothing to merge: the run has committed nothing");

  const flags = ["--write-tree", "-z", "--name-only", "--no-messages"];
  const merged = await git(home, ["merge-tree", ...flags, old, tip]);
  const [tree = "", ...conflicts] = merged.out.split("\0");
  const inConflict = conflicts.filter((name) => name !== "").map((name) => ({ path: name }));
  if (!merged.ok && merged.exit === 1 && inConflict.length > 0) {
    const both = named(inConflict);
    const mend = `git -C ${quoted(path)} merge ${quoted(base)}`;
    return failed(
      `not merged: ${base} and ${branch} are in conflict over ${both}; resolve that with: ${mend}`,
    );
  }
  if (!merged.ok) return failed(`not merged: ${merged.why}`);
  if (tree === into.tree && (await isAncestor(git, home, tip, old)))
    return applied(`${branch} is in ${base}`);
  const changes = await heldChanges(git, home, old, tree);
  if (isHeld(changes)) {
    const at = `git -C ${quoted(home)}`;
    return held(
      heldFor(changes, "not merged", worktree, branch, {
        command: `${at} merge ${quoted(branch)}`,
        last: (paths) => `${at} submodule update --no-fetch -- ${paths.map(quoted).join(" ")}`,
      }),
    );
  }
  const message = `Merge branch '${branch}' into ${base}\n\nRun ${run} of ${agent}.`;
  const made = await git(home, ["commit-tree", tree, "-p", old, "-p", tip, "-m", message]);
  if (!made.ok) return failed(`not merged: ${made.why}`);
  const commit = made.out.trim();

  const place = into.place === null ? null : treeAt(into.place, home);
  const moved =
    place === null || !existsSync(place)
      ? await git(home, ["update-ref", "-m", `lockstep: run ${run}`, `refs/heads/${base}`, commit, old])
      : await bringUpToDate(git, place, base, commit);
  if (moved.ok) return applied(`merged ${branch} into ${base} (${commit.slice(0, 10)})`);
  const isStill = (await tipOf(git, home, `refs/heads/${base}`)) === old;
  return isStill ? failed(`not merged: ${moved.why}`) : "moved";
}

/** Of a submodule git names the folder of its records in place of its working tree. */
function treeAt(place: string, home: string): string {
  const own = findPlace(home);
  return own !== null && own.gitDir === own.common && own.common === place ? home : place;
}

type Moved = { readonly ok: true } | { readonly ok: false; readonly why: string };

/** What git was asked to do in a working tree and waits with. A stash would be refused then. */
function unfinishedAt(place: string): string | null {
  const folder = findPlace(place)?.gitDir;
  if (folder === undefined) return null;
  return UNFINISHED.find(([file]) => existsSync(join(folder, file)))?.[1] ?? null;
}

const UNFINISHED = [
  ["MERGE_HEAD", "merge"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
] as const;

async function bringUpToDate(git: Git, place: string, base: string, commit: string): Promise<Moved> {
  const all = await changesOf(git, place, "no");
  if (all === null) return { ok: false, why: `git cannot tell what is in ${place}` };
  // An agent may be run while its files are being written; those that the merge would change, git refuses by itself.
  const changes = all.filter(({ path }) => !path.split("/").includes(".agent"));
  const begun = unfinishedAt(place);
  if (begun !== null) {
    const files = changes.length === 0 ? "" : ` (${named(changes)})`;
    return {
      ok: false,
      why:
        `${base} is checked out at ${place}, where a ${begun} is not finished${files}; finish it, or give it up ` +
        `with: git -C ${quoted(place)} ${begun} --abort`,
    };
  }
  if (changes.length > 0)
    return {
      ok: false,
      why:
        `${base} is checked out at ${place}, where ${named(changes)} ${changes.length === 1 ? "is" : "are"} not ` +
        `committed; commit or set aside with: git -C ${quoted(place)} stash`,
    };
  const flags = ["--ff-only", "--no-stat", "--no-autostash", "--quiet"];
  const answer = await git(place, ["merge", ...flags, commit], { timeoutMs: CHECKOUT_MS, whole: true });
  return answer.ok ? answer : { ok: false, why: `git refuses to bring ${place} up to date: ${answer.why}` };
}
