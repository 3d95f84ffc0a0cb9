/** Where the worktree of a run is to be. Looks only; whatever can be known to fail later is refused now, before a model is asked. */
import { existsSync, realpathSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import type { Worktree } from "../../flow/event.ts";
import type { Finalize } from "../../flow/settings.ts";
import type { Git } from "./git.ts";
import { branchOf, treesOf } from "./git-queries.ts";
import { addressesOf, remoteDigest } from "./remote.ts";
import { quoted } from "./words.ts";

export type WorktreeWish = {
  readonly run: string;
  readonly agent: string;
  /** Where the run was started. */
  readonly cwd: string;
  /** The folder of worktrees. */
  readonly root: string;
  readonly branch?: string;
  readonly baseBranch?: string;
  readonly finalize: Finalize;
};

/** `cwd` is the same folder in the worktree as the one that the run was started in. */
export type Plan = { readonly worktree: Worktree; readonly cwd: string };

export async function planWorktree(git: Git, wish: WorktreeWish): Promise<Plan> {
  const { cwd, finalize } = wish;
  await requireGit(git, cwd);
  const { home, isMain, base, commit, branches } = await lookAt(git, wish);
  await requireIdentity(git, home);
  const isPushed = finalize.createPr || finalize.push;
  const pushTo = isPushed ? await requireRemote(git, home, finalize.remote) : null;
  const folder = resolve(isMain ? home : await mainTree(git, home), wish.root);
  const branch = await freeBranch(git, home, folder, branches, wish);
  const path = pathOf(folder, branch);
  const within = relative(home, realpathSync.native(cwd));
  const worktree = { path, branch, base, commit, home, finalize, ...(pushTo !== null && { pushTo }) };
  return { worktree, cwd: join(path, within) };
}

/** What `git merge-tree --write-tree` needs. */
const OLDEST = [2, 38] as const;

async function requireGit(git: Git, cwd: string): Promise<void> {
  const answer = await git(cwd, ["version"], { settled: true });
  if (!answer.ok) throw refusal(`git cannot be used: ${answer.why}`, "install it");
  const [, major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(answer.out) ?? []).map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw refusal(`git is ${answer.out.trim()}, and ${OLDEST.join(".")} is needed`, "install a newer one");
}

type Start = {
  readonly home: string;
  readonly isMain: boolean;
  readonly base: string;
  readonly commit: string;
  /** The names of all branches. */
  readonly branches: ReadonlySet<string>;
};

/** Where the run was started and what it begins from, in one question to git. */
async function lookAt(git: Git, { cwd, baseBranch }: WorktreeWish): Promise<Start> {
  const start =
    baseBranch === undefined ? ["HEAD", "--symbolic-full-name", "HEAD"] : [`${HEADS}${baseBranch}`];
  const all = ["--symbolic", `--glob=${HEADS}*`];
  const answer = await git(cwd, ["rev-parse", ...FOLDERS, ...start, ...all, "--show-toplevel"]);
  if (!answer.ok && answer.exit === null)
    throw refusal(`git cannot list the branches of ${cwd}: ${answer.why}`, "repair the repository");
  if (!answer.ok) return await refuseStart(git, cwd, baseBranch);
  const [own, common, commit = "", ...more] = answer.out.replace(/\n$/, "").split("\n");
  const current = baseBranch === undefined ? more.shift()! : `${HEADS}${baseBranch}`;
  const end = more.findIndex((line) => !line.startsWith(HEADS));
  const [names, home] = [more.slice(0, end), more.slice(end).join("\n")];
  // A name like "main~1" stands for a commit, and is not a branch.
  if (!names.includes(current)) return await refuseStart(git, cwd, baseBranch);
  const branches = new Set(names.map((name) => name.slice(HEADS.length)));
  return { home, isMain: own === common, base: current.slice(HEADS.length), commit, branches };
}

const FOLDERS = ["--path-format=absolute", "--git-dir", "--git-common-dir"];
const HEADS = "refs/heads/";

async function refuseStart(git: Git, cwd: string, baseBranch: string | undefined): Promise<never> {
  const top = await git(cwd, ["rev-parse", "--show-toplevel"]);
  if (!top.ok) throw refusal(`${cwd} is in no working tree of git: ${top.why}`, "run `git init` and commit");
  const home = top.out.replace(/\n$/, "");
  const base = baseBranch ?? (await branchOf(git, home));
  if (base === null)
    throw refusal(
      `${home} is on no branch (HEAD is detached)`,
      "name the branch to start from with --base-branch",
    );
  throw refusal(
    `There is no branch "${base}" with a commit in ${home}`,
    baseBranch === undefined ? "create a first commit" : "name a branch that exists",
  );
}

/** A run that is started in another worktree has its own beside it, not inside. */
async function mainTree(git: Git, home: string): Promise<string> {
  return (await treesOf(git, home))?.[0]?.path ?? home;
}

async function requireIdentity(git: Git, home: string): Promise<void> {
  const answer = await git(home, ["var", "GIT_COMMITTER_IDENT"], { settled: true });
  if (answer.ok) return;
  const fix = "`git config --global user.name NAME` and `git config --global user.email ADDRESS`";
  throw refusal(`git has no user name or email for commits: ${answer.why}`, fix);
}

/** What is pushed to is settled before the run begins. */
async function requireRemote(git: Git, home: string, remote: string): Promise<string> {
  const answer = await git(home, ["remote"]);
  if (answer.ok && answer.out.split("\n").includes(remote)) {
    const addresses = await addressesOf(git, home, remote);
    if (addresses.length > 0) return remoteDigest(addresses);
  }
  throw refusal(
    `There is no remote "${remote}" in ${home}, but the result has to be pushed to it`,
    `run \`git -C ${quoted(home)} remote add ${quoted(remote)} URL\``,
  );
}

/** The branch that was asked for must be new; one of our own naming is made so that it is. */
async function freeBranch(
  git: Git,
  home: string,
  folder: string,
  taken: ReadonlySet<string>,
  { agent, run, branch }: WorktreeWish,
): Promise<string> {
  if (branch !== undefined) {
    const valid = await git(home, ["check-ref-format", "--branch", branch]);
    if (!valid.ok || valid.out.trim() !== branch)
      throw refusal(`"${branch}" cannot be the name of a branch`, "choose another --branch");
    if (taken.has(branch))
      throw refusal(
        `The branch "${branch}" already exists, but each run needs a new one`,
        `choose another --branch, or begin from it with --base-branch ${branch}`,
      );
    if (existsSync(pathOf(folder, branch)))
      throw refusal(`${pathOf(folder, branch)} already exists`, "remove it, or choose another --branch");
    return branch;
  }
  // A branch that is called like the agent leaves no room for others below its name.
  for (const name of [
    `${agent}/${run.slice(0, 6)}`,
    `${agent}/${run}`,
    `${agent}-${run}`,
    `lockstep-${run}`,
  ]) {
    const isName = PLAIN_NAME.test(name) || (await git(home, ["check-ref-format", "--branch", name])).ok;
    const [parent = ""] = name.split("/");
    if (isName && !existsSync(pathOf(folder, name)) && !taken.has(name) && !taken.has(parent)) return name;
  }
  throw refusal(`No name for a new branch is free in ${home}`, "name one with --branch");
}

/** Some of the names that a branch can have: git need not be asked. */
const PLAIN_NAME = /^[a-z][a-z\d]*(?:-[a-z\d]+)*(?:\/[a-z\d]+)?$/;

function pathOf(folder: string, branch: string): string {
  return join(folder, branch.replaceAll("/", "-"));
}

/** What only a new run can do. */
export const IN_PLACE = "; or pass --no-worktree to run in place";

function refusal(what: string, fix: string): RunnerError {
  return new RunnerError("WORKTREE_UNAVAILABLE", `${what}. To continue: ${fix}${IN_PLACE}.`);
}
