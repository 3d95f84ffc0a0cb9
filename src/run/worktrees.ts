/** The worktrees that runs have left behind, and removing those with no unsaved work. */
import { existsSync, lstatSync } from "node:fs";
import { isAncestor, tipOf, treesOf, type Git, type Tree } from "../effects/git.ts";
import { dirtyIn } from "../effects/submodules.ts";
import { named } from "../effects/words.ts";
import { leftIn, NOTHING_LEFT, removeWorktree } from "../effects/worktree-remove.ts";
import { RunnerError, type Journal } from "../engine/ports.ts";
import { addEntry, createReport } from "../engine/report.ts";
import type { Event, Worktree } from "../flow/event.ts";
import { placeFault } from "./place.ts";
import { realPath, repositoryAround } from "./repository.ts";
import { everyRow, slicesOf, summarise, type RunSummary } from "./runs.ts";
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
  /** Whether the base has all that is on the branch; null: git was not asked. */
  readonly merged: boolean | null;
  /** What is not committed in it; null: git cannot tell. */
  readonly uncommitted: readonly string[] | null;
  /** The run was to merge or push its work, and a person has to do it: `lockstep effects RUN` says how. */
  readonly held: boolean;
};

/** `root` is that of the project. Without `isOurs`, git is not started anywhere: somebody else wrote the journal. */
export type Around = Surroundings & { readonly root: string; readonly isOurs: boolean };

/** Of all recorded runs, newest first; those of which neither folder nor branch is left are not listed. */
export async function listWorktrees(journal: Journal, around: Around): Promise<readonly WorktreeRow[]> {
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
  around: Around,
  options: { readonly dryRun?: boolean } = {},
): Promise<readonly Pruned[]> {
  const pruned: Pruned[] = [];
  for (const { row, worktree, copy, git, fault } of await recorded(journal, around)) {
    const why = fault ?? reasonToKeep(row);
    if (why !== null) pruned.push({ row, done: "kept", why });
    else if (options.dryRun === true) pruned.push(outcomeOf(row, row.merged === true));
    else {
      const removed = await removeWorktree(git, worktree, { run: row.run, copy });
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
  return exists || merged === true
    ? null
    : "only its branch is left, with commits that its base does not have";
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
  /** Why nothing is done with it; null: it is a worktree of this repository, on the branch that is recorded. */
  readonly fault: string | null;
};

/** A run that is damaged must not hide the others. */
async function firstOf(journal: Journal, run: string): Promise<Event | undefined> {
  try {
    return (await journal.read(run, 0, 1))[0]?.event;
  } catch (error) {
    if (error instanceof RunnerError) return undefined;
    throw error;
  }
}

async function recorded(journal: Journal, around: Around): Promise<readonly Recorded[]> {
  const { root, isOurs } = around;
  // Asked where the project is, never where a journal says that a repository is.
  const { top } = repositoryAround(root);
  const outer = gitFor(around, [top]);
  const found: Recorded[] = [];
  let trees: readonly Tree[] | null | undefined;
  for await (const run of everyRow(journal)) {
    const first = await firstOf(journal, run.id);
    if (first?.type !== "run.started" || first.worktree === undefined) continue;
    const { worktree, cwd } = first;
    const { path, branch, base } = worktree;
    const { agent, state } = summarise(run);
    const about = async () => {
      const held = await isHeld(journal, run.id);
      return { run: run.id, agent, state, path, branch, base, held };
    };
    const flow = await journal.flow(run.digest);
    const copy = flow?.settings.worktree.copy ?? [];
    const misplaced = isOurs
      ? placeFault(root, { cwd, worktree }, flow?.settings.worktree.root ?? "")
      : "you did not make this journal";
    if (isOurs && misplaced === null && trees === undefined) trees = await treesOf(outer, top);
    const fault = misplaced ?? treeFault(worktree, trees ?? null);
    if (fault !== null) {
      const exists = isFolder(path);
      if (!exists && isOurs) continue;
      const row = { ...(await about()), exists, merged: null, uncommitted: null };
      found.push({ row, worktree, copy, git: outer, fault });
      continue;
    }
    const git = gitFor(around, [top, path]);
    const exists = existsSync(path);
    const tip = await tipOf(git, top, `refs/heads/${branch}`);
    if (!exists && tip === null) continue;
    const row = { ...(await about()), ...(await factsOf(git, top, tip, worktree, copy)) };
    found.push({ row, worktree, copy, git, fault });
  }
  return found;
}

const OUTCOMES = new Set(["merge", "push", "pull-request"]);

/** Whether a merge, a push or a pull request is left to a person. */
async function isHeld(journal: Journal, run: string): Promise<boolean> {
  const report = createReport();
  for await (const slice of slicesOf(journal, run)) for (const entry of slice) addEntry(report, entry);
  return [...report.effects.values()].some(({ kind, state }) => OUTCOMES.has(kind) && state === "held");
}

async function factsOf(
  git: Git,
  top: string,
  tip: string | null,
  worktree: Worktree,
  copy: readonly string[],
): Promise<Pick<WorktreeRow, "exists" | "merged" | "uncommitted">> {
  const exists = existsSync(worktree.path);
  const left = exists ? await leftIn(git, worktree, copy) : NOTHING_LEFT;
  const merged = tip === null || (await isAncestor(git, top, tip, `refs/heads/${worktree.base}`));
  const dirty = exists ? await dirtyIn(git, worktree) : [];
  const inSubmodules = dirty?.flatMap(({ place, changes }) => changes.map(({ path }) => `${place}/${path}`));
  const uncommitted =
    left === null || inSubmodules === undefined
      ? null
      : [...[...left.work, ...left.changed].map((change) => change.path), ...inSubmodules];
  return { exists, merged, uncommitted };
}

/** A folder that is there must be one that git itself lists, on the branch of the run. */
function treeFault({ path, branch }: Worktree, trees: readonly Tree[] | null): string | null {
  if (trees === null) return "git cannot list the worktrees of this repository";
  if (!existsSync(path)) return null;
  const tree = trees.find((other) => realPath(other.path) === realPath(path));
  if (tree === undefined) return "git does not list it as a worktree of this repository";
  return tree.branch === branch
    ? null
    : `it is on ${tree.branch ?? "no branch"}, and the run was on ${branch}`;
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
