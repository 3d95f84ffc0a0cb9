/** The worktrees that runs have left behind, and being rid of those that nothing is lost with. */
import { existsSync } from "node:fs";
import { isAncestor, tipOf, type Git } from "../effects/git.ts";
import { leftIn, named, NOTHING_LEFT, removeWorktree } from "../effects/worktree.ts";
import type { Journal } from "../engine/ports.ts";
import type { Worktree } from "../flow/event.ts";
import { summarise, type RunSummary } from "./runs.ts";
import { gitFor, type Surroundings } from "./worktree.ts";

export type WorktreeRow = {
  readonly run: string;
  readonly agent: string;
  readonly state: RunSummary["state"];
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /** Whether the folder is there. */
  readonly exists: boolean;
  /** Whether the base has all that is on the branch. */
  readonly merged: boolean;
  /** What is not committed in it; null: git cannot tell. */
  readonly uncommitted: readonly string[] | null;
};

/** Of all recorded runs, newest first; those of which neither folder nor branch is left are not listed. */
export async function listWorktrees(journal: Journal, around: Surroundings): Promise<readonly WorktreeRow[]> {
  return (await recorded(journal, around)).map(({ row }) => row);
}

export type Pruned = {
  readonly row: WorktreeRow;
  /** What became of it, or would. */
  readonly done: "removed" | "folder removed" | "kept";
  readonly why: string;
};

/** Removes the worktrees of ended runs in which everything is committed, and the branches that their base has all of. */
export async function pruneWorktrees(
  journal: Journal,
  around: Surroundings,
  options: { readonly dryRun?: boolean } = {},
): Promise<readonly Pruned[]> {
  const pruned: Pruned[] = [];
  for (const { row, worktree, copy, git } of await recorded(journal, around)) {
    const why = reasonToKeep(row);
    if (why !== null) pruned.push({ row, done: "kept", why });
    else if (options.dryRun === true) pruned.push(outcomeOf(row, row.merged));
    else {
      const removed = await removeWorktree(git, worktree, copy);
      pruned.push(
        removed.ok ? outcomeOf(row, removed.branch === "deleted") : { row, done: "kept", why: removed.why },
      );
    }
  }
  return pruned;
}

function reasonToKeep({ state, uncommitted, exists, merged }: WorktreeRow): string | null {
  if (state === "running") return "its run is under way";
  if (state === "interrupted" || state === "waiting") return "its run has not ended";
  if (uncommitted === null) return "git cannot tell what is in it";
  if (uncommitted.length > 0) return `not committed: ${named(uncommitted.map((path) => ({ path })))}`;
  return exists || merged ? null : "only its branch is left, with commits that its base does not have";
}

function outcomeOf(row: WorktreeRow, isBranchGone: boolean): Pruned {
  if (isBranchGone) return { row, done: "removed", why: `${row.base} has all of it` };
  return { row, done: "folder removed", why: `its commits stay on ${row.branch}` };
}

type Recorded = {
  readonly row: WorktreeRow;
  readonly worktree: Worktree;
  readonly copy: readonly string[];
  readonly git: Git;
};

async function recorded(journal: Journal, around: Surroundings): Promise<readonly Recorded[]> {
  const found: Recorded[] = [];
  for (const run of await journal.list()) {
    const first = (await journal.read(run.id))[0]?.event;
    if (first?.type !== "run.started" || first.worktree === undefined) continue;
    const { worktree } = first;
    const { path, branch, base, home } = worktree;
    const git = gitFor(around, [home, path]);
    const exists = existsSync(path);
    const tip = existsSync(home) ? await tipOf(git, home, `refs/heads/${branch}`) : null;
    if (!exists && tip === null) continue;
    const copy = (await journal.flow(run.digest))?.settings.worktree.copy ?? [];
    const left = exists ? await leftIn(git, worktree, copy) : NOTHING_LEFT;
    const { agent, state } = summarise(run);
    const merged = tip === null || (await isAncestor(git, home, tip, `refs/heads/${base}`));
    const uncommitted = left === null ? null : [...left.work, ...left.changed].map((change) => change.path);
    const row = { run: run.id, agent, state, path, branch, base, exists, merged, uncommitted };
    found.push({ row, worktree, copy, git });
  }
  return found;
}
