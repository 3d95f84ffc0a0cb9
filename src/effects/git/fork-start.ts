/** The commit that the branch of a fork begins at: the one its original stands at, with the work that is not committed there. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worktree } from "../../flow/event.ts";
import { addPaths } from "./finalize.ts";
import type { Git } from "./git.ts";
import { tipOf, type GitChange } from "./git-queries.ts";
import { namedPaths } from "./words.ts";
import { isOwnWorktree } from "./worktree-records.ts";
import { leftIn, toCommit } from "./worktree-remove.ts";

/** The run that is forked. */
export type Forked = {
  readonly run: string;
  readonly agent: string;
  readonly worktree: Worktree;
  readonly copy: readonly string[];
  /** A living process drives it: its files may be half written. */
  readonly isDriven: boolean;
};

/** `commit` is null where neither the worktree nor its branch exists any more. */
export type ForkStart = { readonly commit: string | null; readonly warnings: readonly string[] };

/** Writes objects only: the worktree, its index and its branch stay as they are. */
export async function forkStart(git: Git, forked: Forked): Promise<ForkStart> {
  const { run, worktree, copy, isDriven } = forked;
  const { path, home, branch } = worktree;
  const isThere = existsSync(path) && isOwnWorktree(worktree);
  const head = isThere ? await tipOf(git, path, "HEAD") : await tipOf(git, home, `refs/heads/${branch}`);
  if (head === null || !isThere) return { commit: head, warnings: [] };
  const without = (what: string, why: string): ForkStart => ({
    commit: head,
    warnings: [
      `the fork begins at commit ${head.slice(0, 10)} of run ${run}, without ${what} in ${path}: ${why}`,
    ],
  });
  const left = await leftIn(git, worktree, copy);
  if (left === null) return without("the uncommitted work", "git cannot read its status");
  const work = toCommit(left.work);
  if (isDriven && left.work.length > 0)
    return without(`the uncommitted work (${namedPaths(left.work)})`, "that run is still being driven");
  if (work.some(({ kind }) => kind === "unmerged"))
    return without(`the uncommitted work (${namedPaths(work)})`, "conflicts are not resolved there");
  const other = left.work.filter((change) => !work.includes(change));
  const warnings = other.length === 0 ? [] : without(namedPaths(other), "git cannot commit that").warnings;
  if (work.length === 0) return { commit: head, warnings };
  const made = await commitBeside(git, forked, head, work);
  if ("why" in made) return without(`the uncommitted work (${namedPaths(work)})`, made.why);
  return { commit: made.commit, warnings };
}

/** With an index of its own. */
async function commitBeside(
  git: Git,
  { run, agent, worktree: { path } }: Forked,
  head: string,
  work: readonly GitChange[],
): Promise<{ readonly commit: string } | { readonly why: string }> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-fork-"));
  const index = join(folder, "index");
  try {
    const read = await git(path, ["read-tree", head], { index });
    if (!read.ok) return { why: read.why };
    const fault = await addPaths(git, path, index, work);
    if (fault !== null) return { why: fault };
    const tree = await git(path, ["write-tree"], { index });
    if (!tree.ok) return { why: tree.why };
    const message = `Work of ${agent}, run ${run}\n\nIt was left uncommitted when the run was forked.`;
    const made = await git(path, ["commit-tree", tree.out.trim(), "-p", head, "-m", message]);
    return made.ok ? { commit: made.out.trim() } : { why: made.why };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
