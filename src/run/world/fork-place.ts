/** The worktree of a fork: its own, on a branch of its own, with the work that its original had done. */
import { join, relative } from "node:path";
import { forkStart } from "../../effects/git/fork-start.ts";
import { IN_PLACE, planWorktree } from "../../effects/git/worktree-plan.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { Worktree } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { gitFor, worktreePlaces, type WorktreeSurroundings } from "./worktree.ts";

/** The run that is forked. */
export type Original = {
  readonly run: string;
  readonly cwd: string;
  readonly worktree: Worktree;
  /** A living process drives it. */
  readonly isDriven: boolean;
};

export type ForkPlace = {
  readonly cwd: string;
  readonly worktree: Worktree;
  readonly warnings: readonly string[];
};

/** Makes no worktree: that is made when the fork is first driven. WORKTREE_UNAVAILABLE when there cannot be one. */
export async function planFork(
  flow: Flow,
  run: string,
  original: Original,
  around: WorktreeSurroundings,
): Promise<ForkPlace> {
  const { worktree } = original;
  const { home, base, finalize, pushTo } = worktree;
  const { root, copy = [] } = flow.settings.worktree;
  const { agent } = flow;
  const git = gitFor(around, [original.cwd, ...worktreePlaces(worktree)], { run });
  const wish = { run, agent, cwd: home, root, baseBranch: base, finalize };
  const plan = await planWorktree(git, wish).catch((error: unknown) => {
    if (!(error instanceof RunnerError)) throw error;
    throw new RunnerError(error.code, error.message.replace(IN_PLACE, ""));
  });
  const { commit: from, warnings } = await forkStart(git, { ...original, agent, copy });
  const cwd = join(plan.worktree.path, relative(worktree.path, original.cwd));
  // Where it is pushed was settled when the original began.
  const own = { ...plan.worktree, ...(pushTo !== undefined && { pushTo }) };
  if (from !== null) return { cwd, worktree: { ...own, commit: worktree.commit, from }, warnings };
  const gone = `the worktree and the branch of run ${original.run} do not exist any more: the fork begins at the newest commit of "${base}"`;
  return { cwd, worktree: own, warnings: [gone] };
}
