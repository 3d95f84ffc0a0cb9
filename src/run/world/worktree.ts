/** The worktree of a run, from the options it is started with to what becomes of it at the end. */
import { resolve } from "node:path";
import { waitingText } from "../../effects/git/checkout.ts";
import { createGit, waitForGit, type Git, type GitOptions } from "../../effects/git/git.ts";
import { runProcess, type RunProcess } from "../../effects/process/process.ts";
import { planWorktree, type Plan } from "../../effects/git/worktree-plan.ts";
import { makeWorktree, restoreWorktree } from "../../effects/git/worktree.ts";
import { ownerOf } from "../../effects/git/worktree-records.ts";
import { removeWorktree } from "../../effects/git/worktree-remove.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { Worktree } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import type { Finalize } from "../../flow/settings.ts";
import { programsFor } from "./programs.ts";

export type WorktreeOptions = {
  /** Whether the run has a worktree for itself; as the agent says, by default. */
  readonly worktree?: boolean;
  /** The name of its branch, which must be new. */
  readonly branch?: string;
  /** The branch it begins from and is merged into; the current one by default. */
  readonly baseBranch?: string;
  /** What becomes of its branch, where that is not as the agent says. */
  readonly finalize?: Partial<Finalize>;
  /** Nothing is done to the world (committed, merged, pushed, changed on GitHub): what would be done is reported. */
  readonly dryRun?: boolean;
};

export type WorktreeSurroundings = { readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal };

/** Where the worktree of a new run is to be. It is made when the run is recorded, so that nothing is made that no record knows. */
export type Planned = Plan & {
  /** Gives what a person should hear of. */
  readonly make: () => Promise<readonly string[]>;
  /** Whether nothing is left of it. */
  readonly undo: () => Promise<boolean>;
};

/** `folders`: what the run works in, and so nowhere to take a program from. */
export function gitFor(
  { env, signal }: WorktreeSurroundings,
  folders: readonly string[],
  how: Pick<GitOptions, "onOverruled" | "run"> & { readonly inside?: RunProcess } = {},
): Git {
  const { inside = runProcess, ...more } = how;
  const programs = programsFor(env, folders);
  return createGit({ env, programs, exec: inside, outside: runProcess, signal, ...more });
}

export function worktreePlaces({ home, path }: Worktree): readonly string[] {
  return [home, path];
}

function notObeyed(keys: readonly string[], top: string): string {
  return (
    `git settings of the repository in ${top} are ignored because they start programs or redirect connections: ` +
    `${keys.join(", ")}. To use them, add them to your own settings: git config --global KEY VALUE`
  );
}

/** Plans the worktree that a new run is to work in. WORKTREE_UNAVAILABLE when there cannot be one. */
export async function startWorktree(
  flow: Flow,
  options: WorktreeOptions,
  about: { readonly run: string; readonly cwd: string },
  around: WorktreeSurroundings,
): Promise<Planned> {
  const { root, copy = [] } = flow.settings.worktree;
  const { branch, baseBranch } = options;
  const ignored: string[] = [];
  const onOverruled = (keys: readonly string[], top: string) => void ignored.push(notObeyed(keys, top));
  const git = gitFor(around, [about.cwd, resolve(about.cwd, root)], { onOverruled, run: about.run });
  const plan = await planWorktree(git, {
    ...about,
    agent: flow.agent,
    root,
    ...(branch !== undefined && { branch }),
    ...(baseBranch !== undefined && { baseBranch }),
    finalize: { ...flow.settings.finalize, ...options.finalize },
  });
  return {
    ...plan,
    make: async () => {
      const warnings = await makeWorktree(git, plan.worktree, { run: about.run, cwd: plan.cwd, copy });
      return [...ignored, ...warnings];
    },
    undo: async () => {
      // Somebody else has made one of the same name meanwhile.
      if ((ownerOf(plan.worktree) ?? about.run) !== about.run) return true;
      const removed = await removeWorktree(git, plan.worktree, { run: about.run, copy });
      return removed.ok && removed.branch === "deleted";
    },
  };
}

/** A run that goes on, and whether it has worked in its worktree before. */
export type Continuing = {
  readonly run: string;
  readonly worktree: Worktree;
  readonly cwd: string;
  readonly isBegun: boolean;
  readonly notify: (text: string) => void;
};

/** The worktree of a run that goes on. */
export async function continueWorktree(
  flow: Flow,
  { run, worktree, cwd, isBegun, notify }: Continuing,
  around: WorktreeSurroundings,
): Promise<readonly string[]> {
  const pid = await waitForGit(run, (one) => notify(waitingText(run, one, worktree.path)));
  if (pid !== null)
    throw new RunnerError(
      "WORKTREE_UNAVAILABLE",
      `git (process ${pid}), which an earlier process of run ${run} started, is still working in ${worktree.path}. To continue, wait for it, or end it with: kill ${pid}.`,
    );
  const git = gitFor(around, [cwd, ...worktreePlaces(worktree)], { run });
  const { copy = [] } = flow.settings.worktree;
  return await restoreWorktree(git, worktree, { run, cwd, copy }, isBegun);
}
