/** The worktrees that runs have left behind: removing those with no unsaved work, and repairing what was killed on its way. */
import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { recoverCheckout, underWayIn } from "../../effects/git/checkout.ts";
import { findGitPlace } from "../../effects/git/git-place.ts";
import type { Git } from "../../effects/git/git.ts";
import { isAncestor, tipOf, treesOf, type ListedWorktree } from "../../effects/git/git-queries.ts";
import { dirtyIn } from "../../effects/git/submodules.ts";
import { inTurn, takeTurn } from "../../effects/process/turn.ts";
import { namedPaths } from "../../effects/git/words.ts";
import {
  discardWorktree,
  isHalfMade,
  isHalfRemoved,
  isLeft,
  isOwnWorktree,
  ownerOf,
} from "../../effects/git/worktree-records.ts";
import { leftIn, NOTHING_LEFT, removeWorktree } from "../../effects/git/worktree-remove.ts";
import { isFresh, repairRecords, unreadableIn } from "../../effects/git/worktree-repair.ts";
import type { Journal, RunRow } from "../../engine/ports.ts";
import { addEntry, createReport } from "../../story/report.ts";
import type { Worktree } from "../../flow/event.ts";
import { placeFault } from "../world/workplace.ts";
import { realPath } from "../world/files.ts";
import { repositoryAround } from "../world/repository.ts";
import { everyRow, slicesOf, startOf, summarise, type RunSummary } from "./runs.ts";
import { gitFor, type WorktreeSurroundings } from "../world/worktree.ts";

export type WorktreeRow = {
  readonly run: string;
  readonly agent: string;
  readonly state: RunSummary["state"];
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /** Whether the folder is there. */
  readonly exists: boolean;
  /** false: the process that made it was killed on the way. `resume` makes it anew. */
  readonly made: boolean;
  /** Whether the base has all that is on the branch; null: git was not asked. */
  readonly merged: boolean | null;
  /** What is not committed in it; null: git cannot say. */
  readonly uncommitted: readonly string[] | null;
  /** The run was to merge or push its work, and a person has to do it: `lockstep effects RUN` says how. */
  readonly held: boolean;
};

/** `root` is that of the project. Without `isOurs`, git is not started anywhere: somebody else wrote the journal. */
export type WorktreesContext = WorktreeSurroundings & { readonly root: string; readonly isOurs: boolean };

/** Of all recorded runs, newest first; those of which neither folder nor branch is left are not listed. */
export async function listWorktrees(
  journal: Journal,
  around: WorktreesContext,
): Promise<readonly WorktreeRow[]> {
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
  around: WorktreesContext,
  options: { readonly dryRun?: boolean } = {},
): Promise<readonly Pruned[]> {
  const pruned: Pruned[] = [];
  for (const { row, worktree, copy, git, fault, isBegun } of await recorded(journal, around)) {
    const why = fault ?? reasonToKeep(row, isBegun);
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

function reasonToKeep({ state, uncommitted, exists, merged }: WorktreeRow, isBegun: boolean): string | null {
  if (state === "running") return "its run is active";
  // One that was killed before its first step has nothing in it: a resume makes it again.
  if ((["interrupted", "queued"].includes(state) && isBegun) || state === "waiting")
    return "its run has not ended";
  if (uncommitted === null) return "git cannot read its status";
  if (uncommitted.length > 0) return `not committed: ${namedPaths(uncommitted.map((path) => ({ path })))}`;
  return exists || merged === true
    ? null
    : "only its branch is left, with commits that its base does not have";
}

function outcomeOf(row: WorktreeRow, isBranchGone: boolean): Pruned {
  if (isBranchGone) return { row, done: "removed", why: `${row.base} contains all of its commits` };
  return { row, done: "folder removed", why: `its commits stay on ${row.branch}` };
}

type Recorded = {
  readonly row: WorktreeRow;
  readonly worktree: Worktree;
  readonly copy: readonly string[];
  readonly git: Git;
  /** Why nothing is done with it; null: it is a worktree of this repository, on the branch that is recorded. */
  readonly fault: string | null;
  /** It is recorded elsewhere than in this repository. */
  readonly isMisplaced: boolean;
  /** The run has worked in it. */
  readonly isBegun: boolean;
};

async function recorded(journal: Journal, around: WorktreesContext): Promise<readonly Recorded[]> {
  const { root, isOurs } = around;
  // Asked where the project is, never where a journal says that a repository is.
  const { top } = repositoryAround(root);
  const outer = gitFor(around, [top]);
  const found: Recorded[] = [];
  let trees: readonly ListedWorktree[] | null | undefined;
  for await (const run of everyRow(journal)) {
    const { worktree, cwd = "" } = (await startOf(journal, run.id)) ?? {};
    if (worktree === undefined) continue;
    const { path, branch, base } = worktree;
    const { agent, state } = summarise(run);
    const flow = await journal.flow(run.digest);
    const copy = flow?.settings.worktree.copy ?? [];
    const misplaced = isOurs
      ? placeFault(root, { cwd, worktree }, flow?.settings.worktree.root ?? "")
      : "this journal was not made by you";
    if (isOurs && misplaced === null && trees === undefined) trees = await treesOf(outer, top);
    const made = misplaced !== null || !isHalfMade(worktree, run.id);
    const fault = misplaced ?? treeFault(worktree, run.id, made, trees ?? null);
    const exists = fault === null ? existsSync(path) : isFolder(path);
    let git = outer;
    let facts: Pick<WorktreeRow, "merged" | "uncommitted"> = { merged: null, uncommitted: null };
    if (fault === null) {
      git = gitFor(around, [top, path]);
      const tip = await tipOf(git, top, `refs/heads/${branch}`);
      if (!isLeft(worktree) && made && tip === null) continue;
      facts = await factsOf(git, top, tip, worktree, made ? copy : null);
    } else if (!exists && isOurs) continue;
    const about = { run: run.id, agent, state, path, branch, base, exists, made };
    const row = { ...about, ...facts, held: await isHeld(journal, run.id) };
    const isBegun = await hasWorked(journal, run);
    found.push({ row, worktree, copy, git, fault, isMisplaced: misplaced !== null, isBegun });
  }
  return found;
}

/** Whether any step of it was begun. Only a run that was killed at once has so few entries and no step among them. */
async function hasWorked(journal: Journal, { id, events }: RunRow): Promise<boolean> {
  if (events > FEW) return true;
  const entries = await journal.read(id, 0, FEW).catch(() => null);
  return entries === null || entries.some(({ event }) => event.type.startsWith("step."));
}

const FEW = 20;

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
  /** null: it was never made to the end, so that nothing in it is work. */
  copy: readonly string[] | null,
): Promise<Pick<WorktreeRow, "merged" | "uncommitted">> {
  const exists = existsSync(worktree.path) && copy !== null;
  const left = exists ? await leftIn(git, worktree, copy) : NOTHING_LEFT;
  const merged = tip === null || (await isAncestor(git, top, tip, `refs/heads/${worktree.base}`));
  const dirty = exists ? await dirtyIn(git, worktree) : [];
  const inSubmodules = dirty?.flatMap(({ place, changes }) => changes.map(({ path }) => `${place}/${path}`));
  const uncommitted =
    left === null || inSubmodules === undefined
      ? null
      : [...[...left.work, ...left.changed].map((change) => change.path), ...inSubmodules];
  return { merged, uncommitted };
}

/** A folder that is there must be one that git itself lists, on the branch of the run. */
function treeFault(
  worktree: Worktree,
  run: string,
  made: boolean,
  trees: readonly ListedWorktree[] | null,
): string | null {
  const { path, branch } = worktree;
  if (trees === null) return `git cannot list the worktrees of this repository; ${REPAIR}`;
  const owner = ownerOf(worktree) ?? run;
  if (owner !== run) return `it is the worktree of run ${owner}`;
  if (!existsSync(path) || !made) return null;
  const tree = trees.find((other) => realPath(other.path) === realPath(path));
  if (tree === undefined) return "git does not list it as a worktree of this repository";
  if (!isOwnWorktree(worktree)) return `it no longer has a .git file; ${REPAIR}`;
  return tree.branch === branch
    ? null
    : `it is on ${tree.branch ?? "no branch"}, and the run was on ${branch}`;
}

const REPAIR = "repair it with: lockstep worktree repair";

// Repairing.

export type Repaired = {
  readonly path: string;
  /** What is wrong with it. */
  readonly what: string;
  readonly done: "repaired" | "removed" | "kept";
  readonly why: string;
};

/** What a killed process left that keeps git or later runs from their work. Commits and uncommitted work stay. */
export async function repairWorktrees(
  journal: Journal | null,
  around: WorktreesContext,
  { dryRun = false, now }: { readonly dryRun?: boolean; readonly now: number },
): Promise<readonly Repaired[]> {
  const { top } = repositoryAround(around.root);
  const common = findGitPlace(top)?.common;
  if (common === undefined) return [];
  const repaired: Repaired[] = [];
  for (const one of unreadableIn(common)) {
    const { records, what, repair } = one;
    const fresh = isFresh(one, now);
    if (!fresh && !dryRun) repairRecords(common, one);
    const done = fresh ? "kept" : repair === "write" ? "repaired" : "removed";
    const whys = {
      kept: "git may be creating it right now: try again in a minute",
      repaired: "git can read it again",
      removed: "the worktree was never fully created",
    };
    repaired.push({ path: records, what, done, why: whys[done] });
  }
  repaired.push(...(await repairCheckout(common, top, around, dryRun)));
  if (journal !== null && around.isOurs) repaired.push(...(await repairRecorded(journal, around, dryRun)));
  return repaired;
}

/** Those that runs are recorded with, in a journal of the user's own. */
export async function repairRecorded(
  journal: Journal,
  around: WorktreesContext,
  dryRun: boolean,
): Promise<readonly Repaired[]> {
  const { top } = repositoryAround(around.root);
  const repaired: Repaired[] = [];
  for (const { row, worktree, git, isMisplaced, isBegun } of await recorded(journal, around)) {
    const { path } = worktree;
    if (row.state === "running" || isMisplaced) continue;
    if (existsSync(path) && row.made && !existsSync(join(path, ".git")) && ownerOf(worktree) === row.run) {
      const answer = dryRun ? { ok: true } : await git(top, ["worktree", "repair"], { outside: true });
      const done = answer.ok ? "repaired" : "kept";
      repaired.push({ path, what: "it has no .git file", done, why: `of run ${row.run}` });
    } else if (!existsSync(path) && isLeft(worktree) && row.merged === true) {
      // A folder that somebody moved away can be put back, and its run goes on: git's records of it stay.
      if (row.state !== "completed" && isBegun && !isHalfRemoved(worktree)) continue;
      if (!dryRun) await inTurn(top, async () => await discardWorktree(worktree, row.run));
      repaired.push({ path, what: "it is half removed", done: "removed", why: `of run ${row.run}` });
    }
  }
  return repaired;
}

/** What `repairWorktrees` would put right in the repository, whatever the journal says; git is not started. */
export function troubleWithWorktrees(root: string): readonly string[] {
  const common = findGitPlace(repositoryAround(root).top)?.common;
  if (common === undefined) return [];
  const note = underWayIn(common);
  return [
    ...unreadableIn(common).map(({ what }) => `${what}: git cannot use the worktrees of this repository`),
    ...(note === null
      ? []
      : [`run ${note.run} was killed, or is at work, updating ${note.place} with a merge`]),
  ];
}

/** A merge that was killed in the middle of updating the working tree that has the base checked out. */
async function repairCheckout(
  common: string,
  top: string,
  around: WorktreesContext,
  dryRun: boolean,
): Promise<readonly Repaired[]> {
  const note = underWayIn(common);
  if (note === null) return [];
  const { run, place: path } = note;
  const what = `run ${run} was killed while it updated the files of a merge there`;
  const why = `continue with: lockstep resume ${run}`;
  if (dryRun) return [{ path, what, done: "repaired", why }];
  const turn = await takeTurn(common, 0);
  if ("why" in turn) return [{ path, what, done: "kept", why: "a run is merging at this moment" }];
  try {
    const done = await recoverCheckout(gitFor(around, [top]), common, () => undefined);
    if (done.kind === "stuck") return [{ path, what, done: "kept", why: done.why }];
    if (done.kind === "dropped")
      return [
        { path, what: "a note of a merge names it", done: "removed", why: "only the note: it is elsewhere" },
      ];
    return done.kind === "nothing" ? [] : [{ path, what, done: "repaired", why }];
  } finally {
    turn.release();
  }
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
