/** What becomes of the worktree of a completed run: its work is committed, merged or pushed, and the worktree removed. */
import { existsSync } from "node:fs";
import type { Worktree } from "../flow/event.ts";
import { branchOf, isAncestor, tipOf, type Change, type Git } from "./git.ts";
import { applied, failed, type Done, type Ledger } from "./ledger.ts";
import { mergeBranch } from "./merge.ts";
import { closingsIn, proposePull, type Proposing } from "./pull.ts";
import { leftIn, named, quoted, removeWorktree } from "./worktree.ts";

export type Finalizing = {
  readonly git: Git;
  readonly ledger: Ledger;
  readonly worktree: Worktree;
  readonly copy: readonly string[];
  readonly run: string;
  readonly agent: string;
  readonly proposing: Proposing;
};

/** false: something failed, or was interrupted. It can be called again, and goes on where it stopped. */
export async function finalize(it: Finalizing): Promise<boolean> {
  const { git, worktree } = it;
  const { branch, base, home, commit } = worktree;
  const { autoMerge, createPr, push } = worktree.finalize;
  const left = await lookAtLeft(it);
  if (!(await commitLeft(it, left))) return false;
  const isEmpty = left.paths.length === 0 && (await tipOf(git, home, `refs/heads/${branch}`)) === commit;
  if (createPr && !isEmpty) return (await pushTo(it, branch)) && (await proposePull(it));
  if (!createPr && autoMerge) {
    if (!(await mergeBranch(it))) return false;
    if (push && !isEmpty && !(await pushTo(it, base, await closingsIn(it)))) return false;
    return await tidy(it);
  }
  if (!createPr && push && !isEmpty) return await pushTo(it, branch);
  return isEmpty ? await tidy(it) : true;
}

// What the run left uncommitted.

type Uncommitted = { readonly paths: readonly Change[]; readonly fault: string | null };

async function lookAtLeft({ git, worktree, copy }: Finalizing): Promise<Uncommitted> {
  const { path, branch } = worktree;
  // Without the folder the branch is all there is.
  if (!existsSync(path)) return { paths: [], fault: null };
  const left = await leftIn(git, worktree, copy);
  if (left === null) return { paths: [], fault: `git cannot tell what is in ${path}` };
  // A repository inside of the worktree cannot become part of it; it keeps the worktree from being removed.
  const paths = left.work.filter((change) => !change.path.endsWith("/"));
  const unmerged = paths.filter(({ kind }) => kind === "unmerged");
  if (unmerged.length > 0)
    return {
      paths,
      fault: `conflicts are not resolved in ${path}: ${named(unmerged)}; resolve and commit them`,
    };
  return { paths, fault: await strayed(git, path, branch, paths) };
}

/** Commits that are not on the run's branch would not be merged, and could be lost with the worktree. */
async function strayed(
  git: Git,
  path: string,
  branch: string,
  paths: readonly Change[],
): Promise<string | null> {
  const on = await branchOf(git, path);
  if (on === branch) return null;
  if (paths.length === 0 && (await isAncestor(git, path, "HEAD", `refs/heads/${branch}`))) return null;
  const where = on === null ? "no branch" : `the branch "${on}"`;
  const from = on ?? (await tipOf(git, path, "HEAD")) ?? "HEAD";
  const mend = `git -C ${quoted(path)} switch ${quoted(branch)} && git -C ${quoted(path)} merge ${quoted(from)}`;
  return `the worktree ${path} is on ${where}, with work that "${branch}" does not have; bring it there with: ${mend}`;
}

async function commitLeft(it: Finalizing, { paths, fault }: Uncommitted): Promise<boolean> {
  const { ledger, worktree } = it;
  const isOpen = ["intended", "failed"].includes(ledger.stateOf("commit") ?? "");
  if (paths.length === 0 && fault === null && !isOpen) return true;
  return await ledger.act({
    kind: "commit",
    key: "commit",
    target: worktree.branch,
    detail: `commit what is left in ${worktree.path}: ${named(paths) || "nothing"}`,
    again: true,
    find: async () => (paths.length === 0 && fault === null ? "everything is committed" : null),
    perform: async () => (fault === null ? await commitPaths(it, paths) : failed(`not committed: ${fault}`)),
  });
}

/** Path by path: nothing is committed that was not listed. */
async function commitPaths(
  { git, worktree, run, agent }: Finalizing,
  paths: readonly Change[],
): Promise<Done> {
  const { path } = worktree;
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    const part = paths.slice(at, at + AT_ONCE).map((change) => change.path);
    const added = await git(path, ["add", "--all", "--", ...part]);
    if (!added.ok) return failed(`the work left in ${path} was not committed: ${added.why}`);
  }
  const message = `Work of ${agent}, run ${run}\n\nIt was left uncommitted when the run was complete.`;
  const made = await git(path, ["commit", "--quiet", "--no-verify", "--cleanup=verbatim", "-m", message]);
  if (made.ok) return applied(`committed ${named(paths)}`);
  const staged = await git(path, ["diff-index", "--cached", "--quiet", "HEAD", "--"]);
  if (staged.ok)
    return { state: "held", detail: `not committed: ${named(paths)} in ${path}, git takes nothing of it` };
  return failed(`the work left in ${path} was not committed: ${made.why}`);
}

/** As many as a command line takes, however long their names are. */
const AT_ONCE = 100;

// Pushing.

/** `closings`: what the commits say that GitHub would obey at once; then pushing is for a person to do. */
async function pushTo(
  { git, ledger, worktree }: Finalizing,
  branch: string,
  closings: readonly string[] = [],
): Promise<boolean> {
  const { home, finalize } = worktree;
  const { remote } = finalize;
  const ref = `refs/heads/${branch}`;
  return await ledger.act({
    kind: "push",
    key: "push",
    target: `${remote} ${branch}`,
    detail: `push ${branch} to ${remote}`,
    find: async () => {
      const there = await git(home, ["ls-remote", "--heads", remote, ref], { timeoutMs: PUSH_MS });
      const tip = await tipOf(git, home, ref);
      return there.ok && tip !== null && there.out.startsWith(`${tip}\t`) ? `${remote} has ${branch}` : null;
    },
    perform: async () => {
      if (closings.length > 0) {
        const why = `its commits would close other issues on GitHub (${closings.slice(0, 10).join(", ")})`;
        const hand = `git -C ${quoted(home)} push ${remote} ${quoted(branch)}`;
        return { state: "held", detail: `${branch} was not pushed to ${remote}: ${why}; by hand: ${hand}` };
      }
      // The program at the other end is not for the repository's configuration to choose.
      const flags = ["--porcelain", "--no-verify", "--receive-pack=git-receive-pack"];
      const answer = await git(home, ["push", ...flags, remote, `${ref}:${ref}`], { timeoutMs: PUSH_MS });
      if (answer.ok) return applied(`pushed ${branch} to ${remote}`);
      const reason = /^!\t[^\t]*\t(.*)$/m.exec(answer.out)?.[1];
      const isBehind = reason !== undefined && /fetch first|non-fast-forward/.test(reason);
      const at = `git -C ${quoted(home)}`;
      const mend = isBehind
        ? `${remote} has commits that ${branch} has not; take them in with: ${at} pull --no-rebase ${remote} ${quoted(branch)}`
        : `what it takes to push by hand: ${at} push ${remote} ${quoted(branch)}`;
      const why = [reason, answer.why].filter(Boolean).join(", ");
      return failed(`${branch} was not pushed to ${remote}: ${why}; ${mend}`);
    },
  });
}

const PUSH_MS = 5 * 60_000;

/** Only what nothing is left in: git itself refuses otherwise, and then it is kept. */
async function tidy({ git, ledger, worktree, copy }: Finalizing): Promise<boolean> {
  const { path, branch, home } = worktree;
  const gone = `removed the worktree ${path} and its branch`;
  return await ledger.act({
    kind: "remove",
    key: "remove",
    target: path,
    detail: `remove the worktree ${path} and its branch`,
    find: async () =>
      !existsSync(path) && (await tipOf(git, home, `refs/heads/${branch}`)) === null ? gone : null,
    perform: async () => {
      const removed = await removeWorktree(git, worktree, copy);
      if (!removed.ok) return { state: "held", detail: `the worktree ${path} is kept: ${removed.why}` };
      return applied(
        removed.branch === "deleted" ? gone : `removed the worktree ${path}; its branch is kept`,
      );
    },
  });
}
