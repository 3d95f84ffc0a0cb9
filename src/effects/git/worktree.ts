/**
 * The worktree of a run: making it, and making it again. A note says so until all of it is there, so that one which was killed
 * on the way is never taken for the whole.
 */
import { cpSync, existsSync, lstatSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import type { Worktree } from "../../flow/event.ts";
import { CHECKOUT_MS, type Git } from "./git.ts";
import { tipOf, treesOf } from "./git-queries.ts";
import { fillSubmodules } from "./submodules.ts";
import { inTurn } from "../process/turn.ts";
import { isWithinFolder } from "../grounded.ts";
import { quoted } from "./words.ts";
import {
  beginMaking,
  discardWorktree,
  endMaking,
  isHalfMade,
  isOwnWorktree,
  isSame,
  making,
  ownerOf,
} from "./worktree-records.ts";
import { notOwn } from "./worktree-remove.ts";
import { errorText } from "../../flow/text/harmless.ts";

/** Makes the worktree. Gives back what a person should hear of; WORKTREE_UNAVAILABLE when git refuses. */
export async function makeWorktree(git: Git, worktree: Worktree, about: Making): Promise<readonly string[]> {
  const { path, branch, commit } = worktree;
  return await make(git, worktree, about, ["-b", branch, path, commit]);
}

export type Making = {
  readonly run: string;
  /** The folder that the run works in. */
  readonly cwd: string;
  /** The inputs that git does not have. */
  readonly copy: readonly string[];
};

/**
 * The same for a run that goes on: the worktree is as the run left it, or made again from its branch. `isBegun`: the run
 * has worked in it, so that something is lost with it.
 */
export async function restoreWorktree(
  git: Git,
  worktree: Worktree,
  about: Making,
  isBegun: boolean,
): Promise<readonly string[]> {
  const { path, branch, home, commit, from = commit } = worktree;
  if (!existsSync(home)) throw refusal(`${home}, which the run was started in, is gone`, "put it back");
  const owner = ownerOf(worktree) ?? about.run;
  if (owner !== about.run)
    throw refusal(`${path} with the branch "${branch}" is the worktree of run ${owner}`, "start a new run");
  if (isHalfMade(worktree, about.run)) await discardWorktree(worktree, about.run);
  const trees = await treesOf(git, home);
  if (trees === null)
    throw refusal(`git cannot list the worktrees of ${home}`, "repair them with `lockstep worktree repair`");
  if (existsSync(path)) {
    if (isOwnWorktree(worktree) && trees.some((tree) => isSame(tree.path, path))) {
      mkdirSync(about.cwd, { recursive: true });
      return [];
    }
    throw refusal(notOwn(worktree), "do that, and resume the run");
  }
  const elsewhere = trees.find((tree) => tree.branch === branch && existsSync(tree.path));
  if (elsewhere !== undefined)
    throw refusal(
      `The worktree ${path} is gone, and its branch "${branch}" is checked out at ${elsewhere.path}`,
      "switch that to another branch",
    );
  const isBranch = (await tipOf(git, home, `refs/heads/${branch}`)) !== null;
  if (!isBranch && !isBegun) return await make(git, worktree, about, ["-b", branch, path, from]);
  if (!isBranch)
    throw refusal(
      `The worktree ${path} is gone, and so is its branch "${branch}": there is nothing to go on with`,
      `bring the branch back with \`git -C ${quoted(home)} branch ${quoted(branch)} COMMIT\`, or start a new run`,
    );
  // Forced, because git still knows the folder that is gone.
  const warnings = await make(git, worktree, about, ["-f", path, branch]);
  const lost = `the worktree ${path} was gone and is made again from its branch: what was not committed in it is not part of the run`;
  return isBegun ? [lost, ...warnings] : warnings;
}

/** All of it: the files of the branch, the folder that the run works in, the submodules, and the inputs. */
async function make(
  git: Git,
  worktree: Worktree,
  { run, cwd, copy }: Making,
  args: readonly string[],
): Promise<readonly string[]> {
  const { home, path } = worktree;
  const refused = (why: string) =>
    refusal(
      `The worktree ${path} could not be made: ${why}`,
      "repair that, or try `lockstep worktree repair`",
    );
  try {
    makeFolder(dirname(path), home);
    beginMaking(worktree, run);
    const command = ["worktree", "add", "--quiet", "--lock", "--reason", making(run), ...args];
    // Two at once read what the other has half written.
    const answer = await inTurn(
      home,
      async () => await git(home, command, { timeoutMs: CHECKOUT_MS, outside: true, whole: true }),
    );
    if (!answer.ok) throw refused(answer.why);
    mkdirSync(cwd, { recursive: true });
    const warnings = [...(await fillSubmodules(git, worktree)), ...copyInputs(worktree, copy)];
    endMaking(worktree, run);
    return warnings;
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
  if (lstatSync(from, { throwIfNoEntry: false }) === undefined) return "it does not exist";
  const isCopied = (source: string) => !PRIVATE.has(basename(source)) && resolve(source) !== dirname(path);
  try {
    if (!leadsInto(home, from) || !leadsInto(path, nearest(dirname(to))))
      return "it leads out of the repository";
    cpSync(from, to, { recursive: true, force: false, verbatimSymlinks: true, filter: isCopied });
    return null;
  } catch (error) {
    return errorText(error);
  }
}

function leadsInto(folder: string, path: string): boolean {
  return isWithinFolder(realpathSync.native(folder), realpathSync.native(path));
}

/** The folder itself, or the nearest above it that exists. */
function nearest(folder: string): string {
  return existsSync(folder) ? folder : nearest(dirname(folder));
}

/** Never copied, at any depth. */
const PRIVATE: ReadonlySet<string> = new Set([".git", ".lockstep"]);

function refusal(what: string, fix: string): RunnerError {
  return new RunnerError("WORKTREE_UNAVAILABLE", `${what}. To continue: ${fix}.`);
}
