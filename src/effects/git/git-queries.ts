/** Questions to git, with their answers parsed. */
import { join } from "node:path";
import type { GitAnswer, Git } from "./git.ts";
import { findGitPlace, pointerIn, type GitPlace } from "./git-place.ts";

/** The commit that a name stands for; null: none. */
export async function tipOf(git: Git, cwd: string, name: string): Promise<string | null> {
  const answer = await git(cwd, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  return answer.ok ? answer.out.trim() : null;
}

/** The branch that a working tree is on; null: on none. */
export async function branchOf(git: Git, cwd: string): Promise<string | null> {
  const inHead = branchInHead(cwd);
  if (inHead !== null) return inHead;
  const answer = await git(cwd, ["symbolic-ref", "--quiet", "HEAD"]);
  return answer.ok ? answer.out.trim().replace(/^refs\/heads\//, "") : null;
}

/** As the file says it; null: git has to be asked. */
function branchInHead(cwd: string): string | null {
  const place = findGitPlace(cwd);
  return place === null ? null : branchIn(inFile(place.gitDir, "HEAD"));
}

function branchIn(head: string): string | null {
  const name = /^ref: refs\/heads\/([^\s]+)\n$/.exec(head)?.[1] ?? null;
  // What stands there where branches are kept in another format.
  return name === ".invalid" ? null : name;
}

export type Head = { readonly branch: string | null; readonly commit: string };

/** As the files of a working tree say it, unchecked; null: git has to be asked. */
export function headInFiles(cwd: string): Head | null {
  const place = findGitPlace(cwd);
  if (place === null) return null;
  const head = inFile(place.gitDir, "HEAD");
  const branch = branchIn(head);
  const commit = branch === null ? commitIn(head) : tipInFile(place, branch);
  return commit === null ? null : { branch, commit };
}

function tipInFile({ common }: GitPlace, branch: string): string | null {
  // A recorded name is a claim, and no branch has one that leads elsewhere.
  return branch.includes("..") ? null : commitIn(inFile(common, `refs/heads/${branch}`));
}

function commitIn(text: string): string | null {
  return /^([\da-f]{40}|[\da-f]{64})\n$/.exec(text)?.[1] ?? null;
}

function inFile(folder: string, name: string): string {
  try {
    return pointerIn(join(folder, name));
  } catch {
    return "";
  }
}

export type GitBranch = {
  readonly name: string;
  readonly tip: string;
  /** The working tree that has it checked out; null: none has. */
  readonly place: string | null;
};

/** Branches by name, in one question. null: git cannot tell. */
export async function listBranches(
  git: Git,
  cwd: string,
  names: readonly string[],
): Promise<readonly GitBranch[] | null> {
  const fields = ["%(refname)", "%(objectname)", "%(worktreepath)"];
  const patterns = names.map((name) => `refs/heads/${name}`);
  const answer = await askAgain(git, cwd, ["for-each-ref", `--format=${fields.join("%00")}%00`, ...patterns]);
  if (!answer.ok) return null;
  const facts = answer.out.split("\0");
  return Array.from({ length: Math.floor(facts.length / fields.length) }, (_, index) => {
    const [ref = "", tip = "", place = ""] = facts.slice(index * fields.length);
    const name = ref.trimStart().replace(/^refs\/heads\//, "");
    return { name, tip, place: place === "" ? null : place };
  });
}

/** The same of a branch and the one that is checked out at `home`, as the files of the repository say it; null: git has to be asked. */
export function twoInFiles(home: string, branch: string, checkedOut: string): readonly GitBranch[] | null {
  const place = findGitPlace(home);
  const tip = place === null ? null : tipInFile(place, branch);
  const head = headInFiles(home);
  if (tip === null || head === null || head.branch !== checkedOut) return null;
  return [
    { name: branch, tip, place: null },
    { name: checkedOut, tip: head.commit, place: home },
  ];
}

/** The tip of a branch that `base` has all of, and which is checked out nowhere, if that is wanted; null: there is none. */
export async function mergedTip(
  git: Git,
  cwd: string,
  branch: string,
  base: string,
  where: "anywhere" | "nowhere" = "anywhere",
): Promise<string | null> {
  const among = ["--merged", `refs/heads/${base}`, `refs/heads/${branch}`];
  const place = where === "nowhere" ? "%(worktreepath)" : "";
  const answer = await git(cwd, ["for-each-ref", `--format=%(refname) %(objectname) ${place}`, ...among]);
  const found = answer.out.split("\n").find((line) => line.startsWith(`refs/heads/${branch} `));
  const [, tip = null, ...checkedOut] = found?.split(" ") ?? [];
  return answer.ok && checkedOut.join("") === "" ? tip : null;
}

export async function isAncestor(git: Git, cwd: string, older: string, newer: string): Promise<boolean> {
  return (await git(cwd, ["merge-base", "--is-ancestor", older, newer])).ok;
}

/** Somebody may make or remove a worktree in this moment, and git gives up over a file of it that it finds half written. */
async function askAgain(git: Git, cwd: string, question: readonly string[]): Promise<GitAnswer> {
  for (let left = TIMES; ; left -= 1) {
    const answer = await git(cwd, question);
    if (answer.ok || answer.exit === null || left === 1) return answer;
  }
}

const TIMES = 3;

export type ListedWorktree = { readonly path: string; readonly branch: string | null };

/** The working trees of a repository, also those whose folder is gone; null: git cannot tell. */
export async function treesOf(git: Git, cwd: string): Promise<readonly ListedWorktree[] | null> {
  const answer = await askAgain(git, cwd, ["worktree", "list", "--porcelain", "-z"]);
  if (!answer.ok) return null;
  return answer.out.split("\0\0").flatMap((text) => {
    const facts = text.split("\0");
    const value = (name: string) => facts.find((fact) => fact.startsWith(`${name} `))?.slice(name.length + 1);
    const path = value("worktree");
    if (path === undefined) return [];
    return [{ path, branch: value("branch")?.replace(/^refs\/heads\//, "") ?? null }];
  });
}

/** A file that is different between two commits or trees; `mode` is all zeros where one has none. */
export type RawChange = { readonly path: string; readonly before: FileVersion; readonly after: FileVersion };
export type FileVersion = { readonly mode: string; readonly blob: string };

/** null: git cannot tell. */
export async function rawChanges(
  git: Git,
  cwd: string,
  from: string,
  to: string,
): Promise<readonly RawChange[] | null> {
  // Plumbing: no setting of a repository has a say, and no other program is asked about differences.
  const answer = await git(cwd, ["diff-tree", "-r", "-z", "--no-renames", "--raw", from, to, "--"]);
  if (!answer.ok) return null;
  const parts = answer.out.split("\0");
  return Array.from({ length: Math.floor(parts.length / 2) }, (_, index) => {
    const [fact = "", path = ""] = parts.slice(index * 2);
    const [old = "", young = "", blob = "", next = ""] = fact.replace(/^:/, "").split(" ");
    return { path, before: { mode: old, blob }, after: { mode: young, blob: next } };
  });
}

export type GitChange = {
  /** From the top of the working tree; a repository inside of it ends with a slash. */
  readonly path: string;
  readonly kind: "changed" | "deleted" | "untracked" | "unmerged";
  /** The index is not as the commit that is checked out. */
  readonly isStaged: boolean;
};

/** What is not committed in a working tree; null: git cannot tell. What git ignores does not count. */
export async function changesOf(
  git: Git,
  cwd: string,
  untracked: "all" | "no",
): Promise<readonly GitChange[] | null> {
  // Else git would look into repositories inside of this one, and obey their settings.
  const flags = ["--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty"];
  const answer = await git(cwd, ["status", ...flags, `--untracked-files=${untracked}`]);
  if (!answer.ok) return null;
  return answer.out.split("\0").flatMap((line): readonly GitChange[] => {
    if (line === "") return [];
    const [code, path] = [line.slice(0, 2), line.slice(3)];
    const isStaged = code !== "??" && !code.startsWith(" ");
    if (code === " D") return [{ path, kind: "deleted", isStaged }];
    const kind = code === "??" ? "untracked" : UNMERGED.has(code) ? "unmerged" : "changed";
    return [{ path, kind, isStaged }];
  });
}

const UNMERGED: ReadonlySet<string> = new Set("DD AU UD UA DU AA UU".split(" "));
