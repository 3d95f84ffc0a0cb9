/** The worktree of a run, from the options it is started with to what becomes of it at the end. */
import { createGit, type Git } from "../effects/git.ts";
import { finalize } from "../effects/finalize.ts";
import { createLedger } from "../effects/ledger.ts";
import { runProcess } from "../effects/process.ts";
import { planWorktree, type Plan } from "../effects/worktree-plan.ts";
import { makeWorktree, removeWorktree, restoreWorktree } from "../effects/worktree.ts";
import type { Drive } from "../engine/drive.ts";
import type { Report } from "../engine/report.ts";
import type { Worktree } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { Finalize } from "../flow/settings.ts";

export type WorktreeOptions = {
  /** Whether the run has a worktree for itself; as the agent says, by default. */
  readonly worktree?: boolean;
  /** The name of its branch, which must be new. */
  readonly branch?: string;
  /** The branch it begins from and is merged into; the current one by default. */
  readonly baseBranch?: string;
  /** What becomes of its branch, where that is not as the agent says. */
  readonly finalize?: Partial<Finalize>;
  /** Nothing is committed, merged or pushed at the end: what would be is told. */
  readonly dryRun?: boolean;
};

export type Surroundings = { readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal };
export type Made = Plan & { readonly warnings: readonly string[]; readonly undo: () => Promise<void> };

export function gitFor({ env, signal }: Surroundings): Git {
  return createGit({ env, exec: runProcess, signal });
}

/** Makes the worktree that a new run is to work in. WORKTREE_UNAVAILABLE when there cannot be one. */
export async function startWorktree(
  flow: Flow,
  options: WorktreeOptions,
  about: { readonly run: string; readonly cwd: string },
  around: Surroundings,
): Promise<Made> {
  const { root, copy } = flow.settings.worktree;
  const { branch, baseBranch, dryRun = false } = options;
  const git = gitFor(around);
  const plan = await planWorktree(git, {
    ...about,
    agent: flow.agent,
    root,
    dryRun,
    ...(branch !== undefined && { branch }),
    ...(baseBranch !== undefined && { baseBranch }),
    finalize: { ...flow.settings.finalize, ...options.finalize },
  });
  const warnings = await makeWorktree(git, plan.worktree, plan.cwd, copy);
  return { ...plan, warnings, undo: async () => void (await removeWorktree(git, plan.worktree, copy)) };
}

/** The worktree of a run that goes on. */
export async function continueWorktree(
  flow: Flow,
  worktree: Worktree,
  cwd: string,
  around: Surroundings,
): Promise<readonly string[]> {
  return await restoreWorktree(gitFor(around), worktree, cwd, flow.settings.worktree.copy);
}

/** What is due when the run is complete: then its end is all that is pending. */
export function finalizing(
  flow: Flow,
  worktree: Worktree,
  run: string,
  effects: Report["effects"],
  around: Surroundings,
): NonNullable<Drive["attend"]> {
  return async ({ pending: [next] }, record) => {
    if (next?.type !== "end" || next.verdict.outcome !== "completed") return true;
    const dryRun = worktree.dryRun ?? false;
    const ledger = createLedger({ past: effects, record, dryRun, signal: around.signal });
    const { copy } = flow.settings.worktree;
    return await finalize({ git: gitFor(around), ledger, worktree, copy, run, agent: flow.agent });
  };
}
