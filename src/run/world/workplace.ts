/** Where a run works: the folder it is started in, or the same folder in a worktree of its own. */
import { existsSync, lstatSync } from "node:fs";
import { dirname, isAbsolute, normalize, resolve } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { decidedEnd } from "../../engine/decide/due.ts";
import type { State } from "../../engine/decide/state.ts";
import type { Worktree } from "../../flow/event.ts";
import { shellWord } from "../../flow/text/harmless.ts";
import type { Flow } from "../../flow/flow.ts";
import type { DriveOptions, RunOptions } from "../options.ts";
import { isInsideProject, realPath } from "./files.ts";
import { requireFolder } from "./folder-gone.ts";
import type { ForkPlace, Original } from "./fork-place.ts";
import { repositoryAround } from "./repository.ts";
import type { Continuing, Planned, WorktreeSurroundings } from "./worktree.ts";

export type Workplace = {
  readonly cwd: string;
  /** Recorded first, and made then. */
  readonly planned?: Planned;
};

/** Of a new run. */
export async function placeOf(
  flow: Flow,
  options: Omit<RunOptions, "agent">,
  run: string,
): Promise<Workplace> {
  const cwd = startFolder(options);
  if (!(options.worktree ?? flow.settings.worktree.enabled)) return { cwd };
  requireWorktreeRoot(resolve(repositoryAround(cwd).main, flow.settings.worktree.root));
  const { startWorktree } = await import("./worktree.ts");
  const planned = await startWorktree(flow, options, { run, cwd }, surroundings(options));
  return { cwd: planned.cwd, planned };
}

/** Of a fork whose original has a worktree. */
export async function forkPlaceOf(
  flow: Flow,
  run: string,
  original: Original,
  options: Pick<DriveOptions, "env" | "signal">,
): Promise<ForkPlace> {
  const { home } = original.worktree;
  requireFolder(home);
  requireWorktreeRoot(resolve(repositoryAround(home).main, flow.settings.worktree.root));
  const { planFork } = await import("./fork-place.ts");
  return await planFork(flow, run, original, surroundings(options));
}

/**
 * A recorded place is a claim: a run goes on only in the repository of the project it is resumed from. PLACE_FOREIGN when
 * it would work elsewhere.
 */
export function requirePlace(
  root: string,
  { cwd, worktree }: { readonly cwd: string; readonly worktree: Worktree | undefined },
  flow: Flow,
  run: string,
): void {
  const fault = placeFault(root, { cwd, worktree }, flow.settings.worktree.root);
  if (fault === null) return;
  const there = worktree?.home ?? cwd;
  const isThere = isPlain(there) && existsSync(there);
  const fix = isThere
    ? `If the recorded folder is yours, resume from there: lockstep resume ${run} --cwd ${shellWord(there)}`
    : `The recorded folder does not exist: if the project was moved, move it back to ${JSON.stringify(there)} and resume the run there.`;
  throw new RunnerError(
    "PLACE_FOREIGN",
    `Run ${run} is not continued: ${fault}. A run continues only in the repository of the project ${root}. ${fix}`,
  );
}

/** Why a recorded place does not belong to the project; null: it does. */
export function placeFault(
  root: string,
  { cwd, worktree }: { readonly cwd: string; readonly worktree: Worktree | undefined },
  worktreeRoot: string,
): string | null {
  const { top, main, trees } = repositoryAround(root);
  const named = { "working directory": cwd, worktree: worktree?.path, repository: worktree?.home };
  for (const [what, path] of Object.entries(named))
    if (path !== undefined && !isPlain(path))
      return `its recorded ${what} ${JSON.stringify(path)} is not an absolute, normalised path`;
  if (worktree === undefined) {
    const isHere = [top, ...trees].some((tree) => isInsideProject(tree, realPath(cwd)));
    return isHere ? null : `its recorded working directory ${cwd} is not in this repository`;
  }
  for (const name of [worktree.branch, worktree.base])
    if (!/^[^-\p{Cc}][^\p{Cc}]*$/u.test(name)) return `${JSON.stringify(name)} is not the name of a branch`;
  const [path, home] = [realPath(worktree.path), realPath(worktree.home)];
  if (!trees.includes(home)) return `its recorded repository ${worktree.home} is not this one`;
  if (path === main || path === home)
    return `its recorded worktree ${worktree.path} is the working tree of the repository itself`;
  const folder = realPath(resolve(main, worktreeRoot));
  if (!trees.includes(path) && !(path !== folder && isInsideProject(folder, path)))
    return `its recorded worktree ${worktree.path} is not a worktree of this repository`;
  return isInsideProject(path, realPath(cwd))
    ? null
    : `its recorded working directory ${cwd} is not in its worktree ${worktree.path}`;
}

function isPlain(path: string): boolean {
  return typeof path === "string" && isAbsolute(path) && normalize(path) === path && !path.includes("\0");
}

/** Where the system keeps its own files, and where git, agents and records are kept. */
const OF_THE_SYSTEM =
  /^\/(?:bin|boot|dev|etc|lib\w*|proc|run|sbin|sys|usr|System|Library)(?:\/|$)|^\/var\/(?!tmp\/|folders\/)/;
const OF_OTHERS = /(?:^|[/\\])\.(?:git|agent|lockstep)(?:[/\\]|$)/i;

/** WORKTREE_UNAVAILABLE unless worktrees may be made there: `worktree.root` may name any folder. */
function requireWorktreeRoot(folder: string): void {
  const real = realPath(folder);
  const refuse = (why: string) =>
    new RunnerError(
      "WORKTREE_UNAVAILABLE",
      `Worktrees are not made in ${folder} (runner.execution.worktree.root): ${why}. Name a folder of your own there.`,
    );
  if (OF_THE_SYSTEM.test(real)) throw refuse("it is a folder of the system");
  if (OF_OTHERS.test(real)) throw refuse("git, agents and records are kept there");
  const uid = process.geteuid?.();
  const owner = lstatSync(nearest(real), { throwIfNoEntry: false })?.uid ?? 0;
  if (uid !== undefined && uid !== 0 && owner !== 0 && owner !== uid)
    throw refuse(`it belongs to another user (uid ${owner})`);
}

function nearest(path: string): string {
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  return isThere || dirname(path) === path ? path : nearest(dirname(path));
}

/** Of one that goes on. When only the end is left of one that worked, there is nothing to work in any more. */
export async function restorePlace(
  flow: Flow,
  about: Omit<Continuing, "notify">,
  state: State,
  options: DriveOptions,
): Promise<readonly string[]> {
  if (decidedEnd(state) !== null && about.isBegun) return [];
  const { continueWorktree } = await import("./worktree.ts");
  const notify = (text: string) => options.notify?.(text);
  return await continueWorktree(flow, { ...about, notify }, surroundings(options));
}

export function startFolder({ cwd }: Pick<DriveOptions, "cwd">): string {
  return resolve(cwd ?? process.cwd());
}

export function surroundings({ env, signal }: Pick<DriveOptions, "env" | "signal">): WorktreeSurroundings {
  return { env: env ?? process.env, signal: signal ?? new AbortController().signal };
}
