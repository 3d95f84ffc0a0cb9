/** Submodules in the worktree of a run: filled from the user's own copies of them, and looked at before work is published. */
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Worktree } from "../../flow/event.ts";
import { findGitPlace } from "./git-place.ts";
import { CHECKOUT_MS, type Git } from "./git.ts";
import { changesOf, tipOf, type GitChange } from "./git-queries.ts";
import { namedPaths, quoted } from "./words.ts";
import { errorText } from "../../flow/text/harmless.ts";

/** A folder that an index records as a repository of its own. */
export type Link = { readonly path: string; readonly commit: string };

/** null: git cannot tell. */
export async function linksIn(git: Git, tree: string): Promise<readonly Link[] | null> {
  if (!mayHaveLinks(tree)) return [];
  // Of a large repository the whole list is more than is read, and hardly any has such an entry.
  const modes = await git(tree, ["ls-files", "--format=%(objectmode)"]);
  if (!modes.ok) return null;
  if (!modes.out.includes(LINK)) return [];
  const answer = await git(tree, ["ls-files", "--stage", "-z"]);
  if (!answer.ok) return null;
  return answer.out.split("\0").flatMap((line) => {
    const [, commit = "", path = ""] = /^160000 (\S+) \d\t(.*)$/s.exec(line) ?? [];
    return path === "" ? [] : [{ path, commit }];
  });
}

export const LINK = "160000";

/**
 * Whether the index can have such an entry. The file of an index holds the mode of each entry in four bytes, unless it is
 * split or has entries for whole folders. Where it holds these bytes for another reason, git is asked and finds none.
 */
function mayHaveLinks(tree: string): boolean {
  const place = findGitPlace(tree);
  if (place === null) return true;
  const file = join(place.gitDir, "index");
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true || found.size > MOST_INDEX_BYTES) return true;
  const bytes = readFileSync(file);
  return [Buffer.from([0, 0, 0xe0, 0]), "link", "sdir"].some((mark) => bytes.includes(mark));
}

const MOST_INDEX_BYTES = 64 * 1024 * 1024;
/** Deeper ones stay empty. */
const DEEPEST = 8;

/**
 * Each submodule that the user has gets a repository of its own, where git itself keeps those of a worktree, which reads the
 * objects of the user's copy: nothing is fetched, and nothing that the project says about it is obeyed. What the run
 * commits there is on a branch with the name of the run's own. Gives what a person should hear of.
 */
export async function fillSubmodules(git: Git, worktree: Tree, depth = 0): Promise<readonly string[]> {
  const { home, path, branch } = worktree;
  const links = await linksOf(git, path, depth);
  if (links === null) return [`git cannot list the submodules of ${path}: they are empty there`];
  const warnings: string[] = [];
  for (const link of links) {
    const one = submoduleOf(worktree, link);
    if (one === null || !isEmptyFolder(one.to)) continue;
    if (!isOneLine(link.path)) {
      const path = JSON.stringify(link.path);
      warnings.push(
        `the submodule ${path} is empty in the worktree: its path has control characters. To have it, rename it`,
      );
      continue;
    }
    const why = await fillOne(git, one, branch, link.commit);
    if (why === null)
      warnings.push(...(await fillSubmodules(git, { home: one.from, path: one.to, branch }, depth + 1)));
    else {
      const update = `git -C ${quoted(home)} submodule update --init -- ${quoted(link.path)}`;
      warnings.push(`the submodule ${link.path} is empty in the worktree: ${why}. To have it: ${update}`);
    }
  }
  return warnings;
}

type Tree = Pick<Worktree, "home" | "path" | "branch">;

/** A submodule: the user's copy, its folder in the worktree, and where git keeps the repository of that. */
type Submodule = { readonly from: string; readonly to: string; readonly gitDir: string };

function submoduleOf({ home, path }: Tree, link: Link): Submodule | null {
  const outer = findGitPlace(path);
  if (outer === null) return null;
  return {
    from: join(home, link.path),
    to: join(path, link.path),
    gitDir: join(outer.gitDir, "modules", link.path),
  };
}

async function linksOf(git: Git, tree: string, depth: number): Promise<readonly Link[] | null> {
  return existsSync(join(tree, ".gitmodules")) && depth < DEEPEST ? await linksIn(git, tree) : [];
}

/** Why it stays empty; null: it is filled. */
async function fillOne(git: Git, one: Submodule, branch: string, commit: string): Promise<string | null> {
  const { from, to, gitDir } = one;
  if (!isOneLine(from) || !isOneLine(gitDir)) return "a folder above it has control characters in its name";
  const objects = isOwnTree(from) ? join(findGitPlace(from)!.common, "objects") : null;
  if (objects === null) return `it is not initialised in ${from}`;
  if (!(await git(from, ["cat-file", "-e", `${commit}^{commit}`])).ok)
    return `its commit ${commit.slice(0, 10)} is not in ${from}`;
  const empty = (why: string) => {
    discard(one);
    return why;
  };
  try {
    rmSync(gitDir, { recursive: true, force: true });
    mkdirSync(dirname(gitDir), { recursive: true });
    // In the folder above: what is a repository from then on was none before.
    const kept = ["--separate-git-dir", gitDir, to];
    const made = await git(dirname(to), ["init", "--quiet", "--template=", ...kept], { whole: true });
    if (!made.ok) return empty(made.why);
    mkdirSync(join(gitDir, "objects", "info"), { recursive: true });
    writeFileSync(join(gitDir, "objects", "info", "alternates"), `${objects}\n`);
    // A history that is cut off is so here as well.
    const shallow = join(findGitPlace(from)!.common, "shallow");
    if (existsSync(shallow)) copyFileSync(shallow, join(gitDir, "shallow"));
    const out = await git(to, ["checkout", "--quiet", "-B", branch, commit], {
      timeoutMs: CHECKOUT_MS,
      outside: true,
      whole: true,
    });
    return out.ok ? null : empty(out.why);
  } catch (error) {
    return empty(errorText(error));
  }
}

/** Files in which git keeps one path to a line would name other repositories otherwise. */
function isOneLine(path: string): boolean {
  return !/\p{Cc}/u.test(path);
}

/** As it was before: an empty folder. */
function discard({ to, gitDir }: Submodule): void {
  rmSync(to, { recursive: true, force: true });
  rmSync(gitDir, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
}

/** `place` is its path from the top of the worktree. */
export type FilledSubmodule = Submodule & { readonly place: string };

/** Inner ones first. Repositories elsewhere than where we put them are not among them: they are not looked into. */
export async function filledIn(
  git: Git,
  worktree: Tree,
  place = "",
  depth = 0,
): Promise<readonly FilledSubmodule[] | null> {
  if (!existsSync(worktree.path)) return [];
  const links = await linksOf(git, worktree.path, depth);
  if (links === null) return null;
  const all: FilledSubmodule[] = [];
  for (const link of links) {
    const one = submoduleOf(worktree, link);
    if (one === null || !isOwnTree(one.from) || !isOwnTree(one.to)) continue;
    if (findGitPlace(one.to)?.gitDir !== one.gitDir) continue;
    const outer = join(place, link.path);
    const inner = await filledIn(git, { ...worktree, home: one.from, path: one.to }, outer, depth + 1);
    if (inner === null) return null;
    all.push(...inner, { ...one, place: outer });
  }
  return all;
}

/** A submodule with what is not committed in it. */
type Dirty = { readonly place: string; readonly to: string; readonly changes: readonly GitChange[] };

/** Those of a worktree that hold anything of the kind, inner ones first; null: git cannot tell. */
export async function dirtyIn(git: Git, worktree: Tree): Promise<readonly Dirty[] | null> {
  const filled = await filledIn(git, worktree);
  if (filled === null) return null;
  const dirty: Dirty[] = [];
  for (const { place, to } of filled) {
    const changes = await changesOf(git, to, "all");
    if (changes === null) return null;
    if (changes.length > 0) dirty.push({ place, to, changes });
  }
  return dirty;
}

/** What the run left uncommitted in submodules, and how to commit it; null: nothing. */
export async function uncommittedIn(git: Git, worktree: Tree): Promise<string | null> {
  const dirty = await dirtyIn(git, worktree);
  if (dirty === null) return `git cannot read the status of the submodules of ${worktree.path}`;
  const [first] = dirty;
  if (first === undefined) return null;
  const { place, to, changes } = first;
  const commit = `git -C ${quoted(to)} add -A && git -C ${quoted(to)} commit -m MESSAGE`;
  return `work in the submodule ${place} is not committed (${namedPaths(changes)}); commit it with: ${commit}`;
}

/** The commit that a submodule is at, where the user's copy has it not; null: there is none. */
export async function newCommitIn(git: Git, { from, to }: FilledSubmodule): Promise<string | null> {
  const tip = await tipOf(git, to, "HEAD");
  return tip === null || (await isReachable(git, from, tip)) ? null : tip;
}

/** The user's copy gets the commit, on a branch of its own. Gives the name of that, or why there is none. */
export async function bringHome(
  git: Git,
  { from, to }: FilledSubmodule,
  branch: string,
  commit: string,
): Promise<{ readonly branch: string } | { readonly why: string }> {
  let folder: string | null = null;
  try {
    const name = await freeName(git, from, branch);
    // By a file: a git at the other end would obey the settings there, which the run could write. The file is in a new
    // folder of the user's copy, because the run could put anything into the place of one in its own.
    // Its name is that of the branch, which is the run's alone: what a killed process left there is found again.
    folder = join(findGitPlace(from)!.gitDir, `lockstep-${branch.replaceAll("/", "-")}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    const bundle = join(folder, "commits");
    const known = await tipOf(git, from, "HEAD");
    const without = known === null ? [] : ["--not", known];
    const packed = await git(to, ["bundle", "create", "--quiet", bundle, "HEAD", ...without], {
      whole: true,
    });
    if (!packed.ok) return { why: packed.why };
    // `git fetch` would take the path for an address, which settings of the user's copy can redirect to a server.
    const taken = await git(from, ["bundle", "unbundle", bundle], { whole: true });
    if (!taken.ok) return { why: taken.why };
    if (!taken.out.startsWith(`${commit} `)) return { why: `${to} has moved on meanwhile` };
    if (!(await hasCommit(git, from, commit))) return { why: `objects of its history are missing in ${to}` };
    const made = await git(from, ["update-ref", `refs/heads/${name}`, commit, ""], { whole: true });
    return made.ok ? { branch: name } : { why: made.why };
  } catch (error) {
    return { why: errorText(error) };
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
}

async function freeName(git: Git, from: string, branch: string): Promise<string> {
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? branch : `${branch}-${n}`;
    if ((await tipOf(git, from, `refs/heads/${name}`)) === null) return name;
  }
}

/** Why the submodules of a worktree have to stay; null: the user's own copies have all that is in them. */
export async function unsavedIn(git: Git, worktree: Tree): Promise<string | null> {
  const filled = await filledIn(git, worktree);
  if (filled === null) return `git cannot list the submodules of ${worktree.path}`;
  const left = filled.length === 0 ? null : await uncommittedIn(git, worktree);
  if (left !== null) return left;
  for (const { place, from, to } of filled) {
    const refs = await git(to, ["for-each-ref", "--format=%(objectname)"]);
    const tips = refs.ok ? [...refs.out.split("\n").filter((tip) => tip !== ""), "HEAD"] : [];
    for (const tip of new Set(tips)) {
      const commit = await tipOf(git, to, tip);
      if (commit !== null && !(await isReachable(git, from, commit)))
        return `the submodule ${place} has commits that ${from} does not have: ${commit.slice(0, 10)} in ${to}`;
    }
    if (!refs.ok) return `git cannot read the status of ${to}`;
  }
  return null;
}

/** Whether a branch, a tag or what is checked out has it: a commit that only lies there is removed by git some day. */
async function isReachable(git: Git, repository: string, commit: string): Promise<boolean> {
  const answer = await git(repository, ["rev-list", "--max-count=1", commit, "--not", "--all"]);
  return answer.ok && answer.out.trim() === "";
}

/** With all that it needs: the check that `git fetch` makes before a branch names a commit. */
async function hasCommit(git: Git, repository: string, commit: string): Promise<boolean> {
  const objects = ["--objects", "--quiet", "--exclude-promisor-objects"];
  return (await git(repository, ["rev-list", ...objects, commit, "--not", "--all"])).ok;
}

/** A working tree of its own at this very place, and not behind a link. */
export function isOwnTree(folder: string): boolean {
  try {
    return realpathSync.native(folder) === folder && findGitPlace(folder)?.top === folder;
  } catch {
    return false; // there is none
  }
}

function isEmptyFolder(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && readdirSync(folder).length === 0;
}
