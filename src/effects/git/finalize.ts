/** What becomes of the worktree of a completed run: its work is committed, merged or pushed, and the worktree removed. */
import { existsSync } from "node:fs";
import type { Worktree } from "../../flow/event.ts";
import { heldChangesOn, heldFor, isHeld } from "./control-changes.ts";
import { waitingText } from "./checkout.ts";
import { CHECKOUT_MS, GitInterrupted, unlessInterrupted, waitForGit, type Git } from "./git.ts";
import { branchOf, isAncestor, tipOf, type GitChange } from "./git-queries.ts";
import { findGitPlace } from "./git-place.ts";
import { copyIn, dropIndex, holdIndex, isLockedBy, putIndex } from "./index-lock.ts";
import { applied, failedEffect, held, type Done, type Ledger } from "../actions/ledger.ts";
import { mergeBranch } from "./merge.ts";
import { mergeOnRemote } from "./merge-remote.ts";
import { closingsIn, proposePull, type Proposing } from "../actions/pull.ts";
import { removeRefLocks, removeTrackingLock } from "./ref-locks.ts";
import { troubleWith } from "./remote.ts";
import { bringHome, filledIn, newCommitIn, uncommittedIn } from "./submodules.ts";
import { namedPaths, quoted } from "./words.ts";
import { isLeft, isOwnWorktree, onlyInWorktree } from "./worktree-records.ts";
import { leftIn, notOwn, removeWorktree, toCommit } from "./worktree-remove.ts";

export type Finalizing = {
  readonly git: Git;
  readonly ledger: Ledger;
  readonly worktree: Worktree;
  readonly copy: readonly string[];
  readonly run: string;
  readonly agent: string;
  readonly proposing: Proposing;
  /** Hears what is being waited for. */
  readonly onWait: (text: string) => void;
  readonly signal: AbortSignal;
};

/** false: something failed, or was interrupted. It can be called again, and goes on where it stopped. */
export async function finalize(it: Finalizing): Promise<boolean> {
  const git = unlessInterrupted(onlyInWorktree(it.git, it.worktree), it.signal);
  try {
    return await inOrder({ ...it, git });
  } catch (error) {
    if (error instanceof GitInterrupted) return false;
    throw error;
  }
}

async function inOrder(it: Finalizing): Promise<boolean> {
  const { git, worktree, ledger, run } = it;
  if (ledger.isOpen()) {
    const pid = await waitForGit(run, (one) => it.onWait(waitingText(run, one, worktree.home)));
    if (pid !== null) return await stillAtWork(it, pid);
  }
  // All else is done then, and what is left of the worktree is not work.
  if (ledger.stateOf("remove") === "intended") return await tidy(it);
  const { branch, base, home, commit } = worktree;
  const { autoMerge, createPr, push } = worktree.finalize;
  const left = await lookAtLeft(it);
  if (!(await commitLeft(it, left)) || !(await bringSubmodules(it))) return false;
  // Whether there is anything to merge is looked at where it is merged.
  const isEmpty =
    (createPr || push || !autoMerge) &&
    left.paths.length === 0 &&
    (await tipOf(git, home, `refs/heads/${branch}`)) === commit;
  if (createPr && !isEmpty) {
    const why = await whyHeld(it, branch, "no pull request was opened");
    if (why !== null) return await proposePull(it, why);
    if (!(await pushTo(it, branch))) return false;
    const isHeld = !it.ledger.dryRun && it.ledger.stateOf("push") === "held";
    return await proposePull(it, isHeld ? "no pull request was opened: its branch was not pushed" : null);
  }
  if (worktree.onRemote === true && !createPr) {
    // Its folder goes when the machine that drives it needs it no more.
    if (autoMerge && push) return await mergeOnRemote(it);
    return isEmpty || !push || (await pushTo(it, branch));
  }
  if (!createPr && autoMerge) {
    if (!(await mergeBranch(it))) return false;
    // What a person has to look at first stays where it is.
    if (!it.ledger.dryRun && it.ledger.stateOf("merge") === "held") return true;
    if (push && !isEmpty && !(await pushTo(it, base, await closingsIn(it)))) return false;
    return await tidy(it);
  }
  if (!createPr && push && !isEmpty) return await pushTo(it, branch);
  return isEmpty ? await tidy(it) : true;
}

/** The record keeps what the person has to know. */
async function stillAtWork({ ledger, worktree, run }: Finalizing, pid: number): Promise<boolean> {
  const why = `git (process ${pid}), which an earlier process of run ${run} started, is still at work`;
  return await ledger.act({
    kind: "commit",
    key: "commit",
    target: worktree.branch,
    detail: `commit what is left in ${worktree.path}`,
    again: true,
    find: async () => null,
    perform: async () => failedEffect(`nothing was done: ${why}; wait for it, or end it with: kill ${pid}`),
  });
}

// What the run left uncommitted.

type Uncommitted = { readonly paths: readonly GitChange[]; readonly fault: string | null };

async function lookAtLeft(it: Finalizing): Promise<Uncommitted> {
  const { git, worktree, copy } = it;
  const { path, branch } = worktree;
  // Without the folder the branch is all there is.
  if (!existsSync(path)) return { paths: [], fault: null };
  if (!isOwnWorktree(worktree)) return { paths: [], fault: notOwn(worktree) };
  await finishCommit(it);
  const left = await leftIn(git, worktree, copy);
  if (left === null) return { paths: [], fault: `git cannot read the status of ${path}` };
  // What cannot be committed keeps the worktree from being removed.
  const paths = toCommit(left.work);
  const unmerged = paths.filter(({ kind }) => kind === "unmerged");
  if (unmerged.length > 0)
    return {
      paths,
      fault: `conflicts are not resolved in ${path}: ${namedPaths(unmerged)}; resolve and commit them`,
    };
  const fault = (await uncommittedIn(git, worktree)) ?? (await strayed(git, path, branch, paths));
  return { paths, fault };
}

/** Commits that are not on the run's branch would not be merged, and could be lost with the worktree. */
async function strayed(
  git: Git,
  path: string,
  branch: string,
  paths: readonly GitChange[],
): Promise<string | null> {
  const on = await branchOf(git, path);
  if (on === branch) return null;
  if (paths.length === 0 && (await isAncestor(git, path, "HEAD", `refs/heads/${branch}`))) return null;
  const where = on === null ? "no branch" : `the branch "${on}"`;
  const from = on ?? (await tipOf(git, path, "HEAD")) ?? "HEAD";
  const fix = `git -C ${quoted(path)} switch ${quoted(branch)} && git -C ${quoted(path)} merge ${quoted(from)}`;
  return `the worktree ${path} is on ${where}, with work that "${branch}" does not have; bring it there with: ${fix}`;
}

async function commitLeft(it: Finalizing, { paths, fault }: Uncommitted): Promise<boolean> {
  const { ledger, worktree } = it;
  const isOpen = ["intended", "failed"].includes(ledger.stateOf("commit") ?? "");
  if (paths.length === 0 && fault === null && !isOpen) return true;
  return await ledger.act({
    kind: "commit",
    key: "commit",
    target: worktree.branch,
    detail: `commit what is left in ${worktree.path}: ${namedPaths(paths) || "nothing"}`,
    again: true,
    find: async () => (paths.length === 0 && fault === null ? "everything is committed" : null),
    perform: async () =>
      fault === null ? await commitPaths(it, paths) : failedEffect(`not committed: ${fault}`),
  });
}

/** What the lock of the worktree's index says while we commit in it. */
function commitText(run: string): string {
  return `lockstep run ${run} commits\n`;
}

/** A process of ours was killed while it committed: the index goes with what is checked out. */
async function finishCommit({ git, worktree: { path, branch }, run }: Finalizing): Promise<void> {
  const gitDir = findGitPlace(path)?.gitDir;
  const text = commitText(run);
  if (gitDir === undefined || !isLockedBy(gitDir, text)) return;
  removeRefLocks(path, branch);
  const index = copyIn(gitDir);
  const isNew = existsSync(index) && (await isCommitted(git, path, index));
  (isNew ? putIndex : dropIndex)(gitDir, text);
}

async function isCommitted(git: Git, path: string, index: string): Promise<boolean> {
  return (await git(path, ["diff-index", "--cached", "--quiet", "HEAD", "--"], { index })).ok;
}

/** Path by path: nothing is committed that was not listed. */
async function commitPaths(
  { git, worktree, run, agent }: Finalizing,
  paths: readonly GitChange[],
): Promise<Done> {
  const { path } = worktree;
  const notDone = (why: string) => failedEffect(`the work left in ${path} was not committed: ${why}`);
  const gitDir = findGitPlace(path)?.gitDir;
  const held = gitDir === undefined ? { why: notOwn(worktree) } : holdIndex(gitDir, commitText(run));
  if ("why" in held) return notDone(held.why);
  const { copy: index } = held.puts;
  try {
    const isNew = isSurelyNew(paths);
    const isAtOnce = isNew && paths.length <= AT_ONCE;
    const fault = isAtOnce ? null : await addPaths(git, path, index, paths);
    if (fault !== null) return notDone(fault);
    // Nor is `git commit` asked for what would be nothing: it would look for the reason everywhere.
    if (!isNew && (await isCommitted(git, path, index)))
      return {
        state: "held",
        detail: `not committed: ${namedPaths(paths)} in ${path}, git takes nothing of it`,
      };
    const message = `Work of ${agent}, run ${run}\n\nIt was left uncommitted when the run was complete.`;
    const flags = ["--quiet", "--no-verify", "--allow-empty", "--cleanup=verbatim", "-m", message];
    const commit = ["commit", ...flags];
    const how = { timeoutMs: CHECKOUT_MS, whole: true, puts: held.puts } as const;
    const made = isAtOnce
      ? await git(path, addingOf(paths), { ...how, next: commit })
      : await git(path, commit, how);
    return made.ok ? applied(`committed ${namedPaths(paths)}`) : notDone(made.why);
  } finally {
    held.drop();
  }
}

/** Whether the index is another one for sure when these are added to it: it has nothing yet of what one of them is now. */
function isSurelyNew(paths: readonly GitChange[]): boolean {
  const staged = new Set(paths.filter(({ isStaged }) => isStaged).map((change) => change.path));
  return paths.some((change) => !staged.has(change.path));
}

/** Adds what is listed to an index, and nothing else. Gives why that failed; null: it did not. */
export async function addPaths(
  git: Git,
  top: string,
  index: string,
  paths: readonly GitChange[],
): Promise<string | null> {
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    const added = await git(top, addingOf(paths.slice(at, at + AT_ONCE)), { whole: true, index });
    if (!added.ok) return added.why;
  }
  return null;
}

/** Not `git add`: of a repository inside of this one that asks what is in it, and so obeys its settings. */
function addingOf(paths: readonly GitChange[]): readonly string[] {
  return ["update-index", "--add", "--remove", "--replace", "--", ...paths.map((change) => change.path)];
}

/** As many as a command line takes, however long their names are. */
const AT_ONCE = 100;

/** What the run committed in submodules is in the user's own copies before anything names it. */
async function bringSubmodules({ git, ledger, worktree }: Finalizing): Promise<boolean> {
  for (const one of (await filledIn(git, worktree)) ?? []) {
    const commit = await newCommitIn(git, one);
    if (commit === null) continue;
    const about = `${commit.slice(0, 10)} of the submodule ${one.place}`;
    const isDone = await ledger.act({
      kind: "submodule",
      key: `submodule ${one.place} ${commit}`,
      target: one.place,
      detail: `bring ${about} to ${one.from}`,
      find: async () => ((await newCommitIn(git, one)) === null ? `${about} is in ${one.from}` : null),
      perform: async () => {
        const brought = await bringHome(git, one, worktree.branch, commit);
        if ("why" in brought) return failedEffect(`${about} was not brought to ${one.from}: ${brought.why}`);
        return applied(`brought ${about} to ${one.from}, branch ${brought.branch}`);
      },
    });
    if (!isDone) return false;
  }
  return true;
}

// Pushing.

/** null: nothing that is to be pushed needs a person's look. */
async function whyHeld({ git, worktree }: Finalizing, branch: string, what: string): Promise<string | null> {
  const { home, finalize } = worktree;
  const changes = await heldChangesOn(git, worktree, branch);
  if (!isHeld(changes)) return null;
  return heldFor(changes, what, worktree, branch, {
    command: `git -C ${quoted(home)} push ${quoted(finalize.remote)} ${quoted(branch)}`,
    // Else the branch would name a commit that exists nowhere else.
    first: (folder, { to }) =>
      `git -C ${quoted(folder)} push ${quoted(finalize.remote)} ${to}:${quoted(`refs/heads/${branch}`)}`,
  });
}

/** `closings`: what the commits say that GitHub would obey at once; then pushing is for a person to do. */
async function pushTo(it: Finalizing, branch: string, closings: readonly string[] = []): Promise<boolean> {
  const { git, ledger, worktree } = it;
  const { home, finalize } = worktree;
  const { remote } = finalize;
  const ref = `refs/heads/${branch}`;
  if (ledger.stateOf("push") === "intended") removeTrackingLock(home, remote, branch);
  return await ledger.act({
    kind: "push",
    key: "push",
    target: `${remote} ${branch}`,
    detail: `push ${branch} to ${remote}`,
    find: async () => {
      const listing = ["ls-remote", "--heads", "--upload-pack=git-upload-pack", remote, ref];
      const there = await git(home, listing, { timeoutMs: PUSH_MS, outside: true });
      const tip = await tipOf(git, home, ref);
      return there.ok && tip !== null && there.out.startsWith(`${tip}\t`) ? `${remote} has ${branch}` : null;
    },
    perform: async () => {
      if (closings.length > 0) {
        const about = `its commits would close other issues on GitHub (${closings.slice(0, 10).join(", ")})`;
        const hand = `git -C ${quoted(home)} push ${remote} ${quoted(branch)}`;
        return held(`${branch} was not pushed to ${remote}: ${about}; by hand: ${hand}`);
      }
      const why = await whyHeld(it, branch, `${branch} was not pushed to ${remote}`);
      if (why !== null) return held(why);
      const trouble = await troubleWith(git, worktree);
      if (trouble !== null) return held(`${branch} was not pushed to ${remote}: ${trouble}`);
      // The program at the other end is not for the repository's configuration to choose.
      const flags = ["--porcelain", "--no-verify", "--receive-pack=git-receive-pack"];
      const answer = await git(home, ["push", ...flags, remote, `${ref}:${ref}`], {
        timeoutMs: PUSH_MS,
        outside: true,
        lasting: true,
      });
      if (answer.ok) return applied(`pushed ${branch} to ${remote}`);
      const reason = /^!\t[^\t]*\t(.*)$/m.exec(answer.out)?.[1];
      const isBehind = reason !== undefined && /fetch first|non-fast-forward/.test(reason);
      const at = `git -C ${quoted(home)}`;
      const fix = isBehind
        ? `${remote} has commits that ${branch} has not; take them in with: ${at} pull --no-rebase ${remote} ${quoted(branch)}`
        : `what it takes to push by hand: ${at} push ${remote} ${quoted(branch)}`;
      const words = [reason, answer.why].filter(Boolean).join(", ");
      return failedEffect(`${branch} was not pushed to ${remote}: ${words}; ${fix}`);
    },
  });
}

const PUSH_MS = 5 * 60_000;

/** Only what nothing is left in; otherwise it is kept. */
async function tidy({ git, ledger, worktree, copy, run }: Finalizing): Promise<boolean> {
  const { path, branch, home } = worktree;
  const gone = `removed the worktree ${path} and its branch`;
  const isBegun = ledger.stateOf("remove") === "intended";
  if (isBegun) removeRefLocks(home, branch);
  return await ledger.act({
    kind: "remove",
    key: "remove",
    target: path,
    detail: `remove the worktree ${path} and its branch`,
    find: async () =>
      !isLeft(worktree) && (await tipOf(git, home, `refs/heads/${branch}`)) === null ? gone : null,
    perform: async () => {
      const removed = await removeWorktree(git, worktree, { run, copy, isBegun });
      if (!removed.ok) return { state: "held", detail: `the worktree ${path} is kept: ${removed.why}` };
      return applied(
        removed.branch === "deleted" ? gone : `removed the worktree ${path}; its branch is kept`,
      );
    },
  });
}
