/** The worktree of a run: making it, making it again, what is in it that is not committed, and being rid of it. */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import type { Worktree } from "../flow/event.ts";
import { isSameRepository } from "./git-place.ts";
import { changesOf, CHECKOUT_MS, mergedTip, tipOf, treesOf, type Change, type Git } from "./git.ts";
import { emptySubmodules, fillSubmodules, linksIn } from "./submodules.ts";
import { inTurn } from "./turn.ts";
import { named, quoted } from "./words.ts";

/** Makes the worktree. Gives back what a person should hear of; WORKTREE_UNAVAILABLE when git refuses. */
export async function makeWorktree(
  git: Git,
  worktree: Worktree,
  cwd: string,
  copy: readonly string[],
): Promise<readonly string[]> {
  const { path, branch, commit } = worktree;
  await add(git, worktree, cwd, ["-b", branch, path, commit]);
  return [...(await fillSubmodules(git, worktree)), ...copyInputs(worktree, copy)];
}

/** The same for a run that goes on: the worktree is as the run left it, or made again from its branch. */
export async function restoreWorktree(
  git: Git,
  worktree: Worktree,
  cwd: string,
  copy: readonly string[],
): Promise<readonly string[]> {
  const { path, branch, home } = worktree;
  if (!existsSync(home)) throw refusal(`${home}, which the run was started in, is gone`, "put it back");
  const trees = await treesOf(git, home);
  if (trees === null) throw refusal(`git cannot list the worktrees of ${home}`, "mend the repository");
  if (existsSync(path)) {
    if (trees.some((tree) => isSame(tree.path, path))) return [];
    throw refusal(`${path} is not the worktree of the run any more`, "put it back, or move it away");
  }
  const elsewhere = trees.find((tree) => tree.branch === branch && existsSync(tree.path));
  if (elsewhere !== undefined)
    throw refusal(
      `The worktree ${path} is gone, and its branch "${branch}" is checked out at ${elsewhere.path}`,
      "switch that to another branch",
    );
  if ((await tipOf(git, home, `refs/heads/${branch}`)) === null)
    throw refusal(
      `The worktree ${path} is gone, and so is its branch "${branch}": there is nothing to go on with`,
      `bring the branch back with \`git -C ${quoted(home)} branch ${quoted(branch)} COMMIT\`, or run the agent anew`,
    );
  // Forced, because git still knows the folder that is gone.
  await add(git, worktree, cwd, ["-f", path, branch]);
  const lost = `the worktree ${path} was gone and is made again from its branch: what was not committed in it is lost`;
  return [lost, ...(await fillSubmodules(git, worktree)), ...copyInputs(worktree, copy)];
}

/** The folder that the run works in is there too, also if the branch has nothing in it. */
async function add(git: Git, { home, path }: Worktree, cwd: string, args: readonly string[]): Promise<void> {
  const refused = (why: string) => refusal(`The worktree ${path} could not be made: ${why}`, "mend that");
  try {
    makeFolder(dirname(path), home);
    const command = ["worktree", "add", "--quiet", ...args];
    // Two at once read what the other has half written.
    const answer = await inTurn(
      home,
      async () => await git(home, command, { timeoutMs: CHECKOUT_MS, outside: true }),
    );
    if (!answer.ok) throw refused(answer.why);
    mkdirSync(cwd, { recursive: true });
  } catch (error) {
    throw error instanceof RunnerError || !(error instanceof Error) ? error : refused(error.message);
  }
}

/** A folder of worktrees inside of the repository is none of its contents. */
function makeFolder(folder: string, home: string): void {
  if (existsSync(folder)) return;
  mkdirSync(folder, { recursive: true });
  if (leadsInto(home, folder)) writeFileSync(join(folder, ".gitignore"), "*\n");
}

/** What is there already stays as it is: a file of the repository, or what the run made of an earlier copy. */
function copyInputs(worktree: Worktree, copy: readonly string[]): readonly string[] {
  return copy.flatMap((name) => {
    const fault = copyInput(worktree, name);
    return fault === null ? [] : [`${name} of runner.execution.worktree.copy was not copied: ${fault}`];
  });
}

function copyInput({ home, path }: Worktree, name: string): string | null {
  const [from, to] = [join(home, name), join(path, name)];
  if (lstatSync(from, { throwIfNoEntry: false }) === undefined) return "it is not there";
  const isCopied = (source: string) => !PRIVATE.has(basename(source)) && resolve(source) !== dirname(path);
  try {
    if (!leadsInto(home, from) || !leadsInto(path, nearest(dirname(to))))
      return "it leads out of the repository";
    cpSync(from, to, { recursive: true, force: false, verbatimSymlinks: true, filter: isCopied });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function leadsInto(folder: string, path: string): boolean {
  return isWithin(realpathSync.native(folder), realpathSync.native(path));
}

/** The folder itself, or the nearest above it that exists. */
function nearest(folder: string): string {
  return existsSync(folder) ? folder : nearest(dirname(folder));
}

/** Never copied, at any depth. */
const PRIVATE: ReadonlySet<string> = new Set([".git", ".lockstep"]);

/** What is not committed in a worktree. */
export type Left = {
  readonly work: readonly Change[];
  /** Inputs that were copied into it and are not as they were. They are not part of the repository, and so no work. */
  readonly changed: readonly Change[];
  /** Inputs as they were copied. */
  readonly copies: readonly Change[];
};

/** null: git cannot tell. */
export async function leftIn(
  git: Git,
  { path, home }: Worktree,
  copy: readonly string[],
): Promise<Left | null> {
  // A folder that is not the repository's own worktree any more has nothing to say about it.
  if (!isSameRepository(path, home)) return null;
  const changes = await changesOf(git, path, "all");
  if (changes === null) return null;
  const placeOf = (change: Change): keyof Left => {
    const isInput =
      change.kind === "untracked" && copy.some((name) => isWithin(join("/", name), join("/", change.path)));
    if (!isInput) return "work";
    return isEqual(join(home, change.path), join(path, change.path)) ? "copies" : "changed";
  };
  const { work = [], changed = [], copies = [] } = Object.groupBy(changes, placeOf);
  return { work, changed, copies };
}

export type Removed =
  | { readonly ok: true; readonly branch: "deleted" | "kept" }
  | { readonly ok: false; readonly why: string };

/** Without force: git refuses to remove what is not committed. The branch goes with it if its base has all of it. */
export async function removeWorktree(
  git: Git,
  worktree: Worktree,
  copy: readonly string[],
): Promise<Removed> {
  const { path, home, branch, base } = worktree;
  const isThere = existsSync(path);
  const trees = isThere ? [] : await treesOf(git, home);
  if (trees === null) return { ok: false, why: `git cannot list the worktrees of ${home}` };
  if (isThere || trees.some((tree) => tree.branch === branch)) {
    const refused = await removeClean(git, worktree, copy);
    if (refused !== null) return { ok: false, why: refused };
  }
  const tip = await mergedTip(git, home, branch, base);
  if (tip === null) {
    const isGone = (await tipOf(git, home, `refs/heads/${branch}`)) === null;
    return { ok: true, branch: isGone ? "deleted" : "kept" };
  }
  const deleted = await git(home, ["update-ref", "-d", `refs/heads/${branch}`, tip]);
  return { ok: true, branch: deleted.ok ? "deleted" : "kept" };
}

/** Why it was not removed; null: it was. Only inputs that were copied into it are in the way of git. */
async function removeClean(git: Git, worktree: Worktree, copy: readonly string[]): Promise<string | null> {
  const { path, home } = worktree;
  const lookFor = async (): Promise<Left | null> =>
    existsSync(path) ? await leftIn(git, worktree, copy) : NOTHING_LEFT;
  const left = copy.length === 0 ? NOTHING_LEFT : await lookFor();
  if (left === null) return `git cannot tell what is in ${path}`;
  if (isWorkIn(left)) return workIn(left);
  if (left.copies.length > 0 && isSame(home, path)) return `${path} is the repository itself`;
  const filled = await emptySubmodules(git, worktree);
  if (filled !== null) return filled;
  const nested = await nestedIn(git, path);
  if (nested === null) return `git cannot tell what is in ${path}`;
  if (nested.length > 0)
    return `repositories are inside of it: ${named(nested.map((one) => ({ path: one })))}`;
  for (const input of left.copies) rmSync(join(path, input.path));
  const answer = await inTurn(
    home,
    async () => await git(home, ["worktree", "remove", path], { outside: true }),
  );
  if (answer.ok) return null;
  const still = await lookFor();
  return still !== null && isWorkIn(still) ? workIn(still) : answer.why;
}

/** Folders that the index records as repositories of their own and that hold anything: git does not look into them. */
async function nestedIn(git: Git, path: string): Promise<readonly string[] | null> {
  if (!existsSync(path)) return [];
  const links = await linksIn(git, path);
  if (links === null) return null;
  return links
    .map((link) => link.path)
    .filter((folder) => {
      const full = join(path, folder);
      return lstatSync(full, { throwIfNoEntry: false })?.isDirectory() && readdirSync(full).length > 0;
    });
}

function isWorkIn({ work, changed }: Left): boolean {
  return work.length + changed.length > 0;
}

function workIn({ work, changed }: Left): string {
  return `not committed: ${named([...work, ...changed])}`;
}

export const NOTHING_LEFT: Left = { work: [], changed: [], copies: [] };

function isSame(one: string, other: string): boolean {
  if (one === other) return true;
  return existsSync(one) && existsSync(other) && realpathSync.native(one) === realpathSync.native(other);
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [one, other].map((file) => lstatSync(file, { throwIfNoEntry: false }));
  if (!a?.isFile() || !b?.isFile() || a.size !== b.size) return false;
  return readFileSync(one).equals(readFileSync(other));
}

function refusal(what: string, fix: string): RunnerError {
  return new RunnerError("WORKTREE_UNAVAILABLE", `${what}. To go on: ${fix}.`);
}
