/** What is not committed in the worktree of a run, and being rid of the worktree where nothing is lost with it. */
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Worktree } from "../../flow/event.ts";
import type { Git } from "./git.ts";
import { changesOf, mergedTip, tipOf, type GitChange } from "./git-queries.ts";
import { findGitPlace } from "./git-place.ts";
import { filledIn, linksIn, unsavedIn } from "./submodules.ts";
import { inTurn } from "../process/turn.ts";
import { isWithinFolder } from "../grounded.ts";
import { namedPaths, quoted } from "./words.ts";
import {
  awayOf,
  discardWorktree,
  isHalfMade,
  isOwnWorktree,
  isSame,
  lockOn,
  ownerOf,
  worktreeRecords,
} from "./worktree-records.ts";
import { errorText } from "../../flow/text/harmless.ts";

/** What is not committed in a worktree. */
export type Left = {
  readonly work: readonly GitChange[];
  /** Inputs that were copied into it and are not as they were. They are not part of the repository, and so no work. */
  readonly changed: readonly GitChange[];
  /** Inputs as they were copied. */
  readonly copies: readonly GitChange[];
};

export const NOTHING_LEFT: Left = { work: [], changed: [], copies: [] };

/** null: git cannot tell. */
export async function leftIn(git: Git, worktree: Worktree, copy: readonly string[]): Promise<Left | null> {
  const { path, home } = worktree;
  if (!isOwnWorktree(worktree)) return null;
  const changes = await changesOf(git, path, "all");
  if (changes === null) return null;
  const placeOf = (change: GitChange): keyof Left => {
    const isInput =
      change.kind === "untracked" &&
      copy.some((name) => isWithinFolder(join("/", name), join("/", change.path)));
    if (!isInput) return "work";
    return isEqual(join(home, change.path), join(path, change.path)) ? "copies" : "changed";
  };
  const { work = [], changed = [], copies = [] } = Object.groupBy(changes, placeOf);
  return { work, changed, copies };
}

/**
 * What of it can be committed. A repository inside of the worktree cannot become part of it, nor is what was taken from
 * commands to be committed, should they have made git see it.
 */
export function toCommit(work: readonly GitChange[]): readonly GitChange[] {
  return work.filter(({ path }) => !path.endsWith("/") && !REFUSED.test(path));
}

/** As the sandbox calls what it moves away. */
const REFUSED = /(?:^|\/)lockstep-refused-[^/]*(?:\/|$)/;

export type Removed =
  | { readonly ok: true; readonly branch: "deleted" | "kept" }
  | { readonly ok: false; readonly why: string };

export type WorktreeRemoval = {
  readonly run: string;
  /** The inputs that were copied into it. */
  readonly copy: readonly string[];
  /** It was decided before that the worktree goes, so that files which are missing in it are not work. */
  readonly isBegun?: boolean;
};

/** Nothing that is not committed is removed. The branch goes with the worktree if its base has all of it. */
export async function removeWorktree(git: Git, worktree: Worktree, how: WorktreeRemoval): Promise<Removed> {
  const { home, branch, base, path } = worktree;
  const owner = ownerOf(worktree) ?? how.run;
  if (owner !== how.run) return { ok: false, why: `it is the worktree of run ${owner}` };
  const why = existsSync(path) && !isHalfMade(worktree, how.run) ? await whyKept(git, worktree, how) : null;
  if (why !== null) return { ok: false, why };
  try {
    await inTurn(home, async () => await discardWorktree(worktree, how.run));
  } catch (error) {
    const reason = errorText(error);
    const [folder] = awayOf(worktree);
    const rest = existsSync(folder) ? `; remove what is left with: rm -rf ${quoted(folder)}` : "";
    return { ok: false, why: `it cannot be removed: ${reason}${rest}` };
  }
  const tip = await mergedTip(git, home, branch, base, "nowhere");
  if (tip === null) {
    const isGone = (await tipOf(git, home, `refs/heads/${branch}`)) === null;
    return { ok: true, branch: isGone ? "deleted" : "kept" };
  }
  const deleted = await git(home, ["update-ref", "-d", `refs/heads/${branch}`, tip], { whole: true });
  return { ok: true, branch: deleted.ok ? "deleted" : "kept" };
}

async function whyKept(
  git: Git,
  worktree: Worktree,
  { copy, isBegun = false }: WorktreeRemoval,
): Promise<string | null> {
  const { path, home } = worktree;
  const unknown = `git cannot read the status of ${path}`;
  if (isSame(home, path)) return `${path} is the repository itself`;
  if (lstatSync(path).isSymbolicLink()) return `${path} is a link`;
  if (!isOwnWorktree(worktree)) return isBegun ? await whyNotHalfRemoved(git, worktree) : notOwn(worktree);
  const records = worktreeRecords(worktree);
  const locked = records === null ? null : lockOn(records);
  if (locked !== null)
    return `it is locked${locked === "" ? "" : ` (${locked})`}; unlock it with: git -C ${quoted(home)} worktree unlock ${quoted(path)}`;
  const left = await leftIn(git, worktree, copy);
  if (left === null) return unknown;
  const work = [...left.work, ...left.changed].filter(({ kind }) => !isBegun || kind !== "deleted");
  if (work.length > 0) return `not committed: ${namedPaths(work)}`;
  const unsaved = await unsavedIn(git, worktree);
  if (unsaved !== null) return unsaved;
  const nested = await nestedIn(git, worktree);
  if (nested === null) return unknown;
  return nested.length === 0
    ? null
    : `repositories are inside of it: ${namedPaths(nested.map((one) => ({ path: one })))}`;
}

/** What to do about a folder in the place of the worktree that git would not work in, but in the tree around it. */
export function notOwn(worktree: Worktree): string {
  const { path, home } = worktree;
  const repair = `put that back with: git -C ${quoted(home)} worktree repair`;
  const move = `move it away with: mv ${quoted(path)} ${quoted(`${path}.old`)}`;
  const isKnown = worktreeRecords(worktree) !== null && !existsSync(join(path, ".git"));
  return isKnown
    ? `${path} has no .git file, so that it is not a worktree any more; ${repair}`
    : `${path} is not the worktree of the run any more. The run would go on with what is committed on its branch, without what is uncommitted in that folder; ${move}`;
}

/** Its `.git` is gone, and so are some files; those that are there must be as the branch has them. null: they are. */
async function whyNotHalfRemoved(git: Git, worktree: Worktree): Promise<string | null> {
  const { path, home, branch } = worktree;
  const folder = findGitPlace(home)?.gitDir;
  if (folder === undefined || existsSync(join(path, ".git"))) return notOwn(worktree);
  const index = join(folder, "lockstep-removed-index");
  const inPlace = (args: readonly string[]) => git(home, [`--work-tree=${path}`, ...args], { index });
  // Git would write through a link that was put there.
  rmSync(index, { recursive: true, force: true });
  try {
    if (!(await inPlace(["read-tree", `refs/heads/${branch}`])).ok) return notOwn(worktree);
    await inPlace(["update-index", "-q", "--refresh"]);
    const which = ["--modified", "--deleted", "--others", "--exclude-standard"];
    const listed = await inPlace(["ls-files", "-z", "-t", ...which]);
    if (!listed.ok) return notOwn(worktree);
    const lines = listed.out.split("\0").filter((line) => line !== "");
    const gone = new Set(lines.filter((line) => line.startsWith("R ")).map((line) => line.slice(2)));
    const there = lines.map((line) => line.slice(2)).filter((name) => !gone.has(name));
    if (there.length === 0) return null;
    const files = namedPaths(there.map((name) => ({ path: name })));
    return `${path} is half removed, and the branch ${branch} does not have: ${files}`;
  } finally {
    for (const suffix of ["", ".lock"]) rmSync(`${index}${suffix}`, { force: true });
  }
}

/** Folders that the index records as repositories of their own and that hold anything: git does not look into them. */
async function nestedIn(git: Git, worktree: Worktree): Promise<readonly string[] | null> {
  const { path } = worktree;
  const links = await linksIn(git, path);
  if (links === null || links.length === 0) return links?.map((link) => link.path) ?? null;
  const filled = await filledIn(git, worktree);
  if (filled === null) return null;
  const ours = new Set(filled.map(({ place }) => place));
  return links
    .map((link) => link.path)
    .filter((folder) => {
      const full = join(path, folder);
      const isFolder = lstatSync(full, { throwIfNoEntry: false })?.isDirectory() === true;
      return isFolder && !ours.has(folder) && readdirSync(full).length > 0;
    });
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [one, other].map((file) => lstatSync(file, { throwIfNoEntry: false }));
  if (!a?.isFile() || !b?.isFile() || a.size !== b.size) return false;
  return readFileSync(one).equals(readFileSync(other));
}
