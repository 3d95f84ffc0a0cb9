/** Where a run works: the folder it is started in, or the same folder in a worktree of its own. */
import { resolve } from "node:path";
import type { State } from "../engine/state.ts";
import type { Worktree } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { DriveOptions, RunOptions } from "./options.ts";
import type { Surroundings } from "./worktree.ts";

export type Place = {
  readonly cwd: string;
  readonly worktree?: Worktree;
  readonly warnings: readonly string[];
  /** For when there turns out to be no run. */
  readonly undo?: () => Promise<void>;
};

/** Of a new run. */
export async function placeOf(flow: Flow, options: Omit<RunOptions, "agent">, run: string): Promise<Place> {
  const cwd = resolve(options.cwd ?? process.cwd());
  if (!(options.worktree ?? flow.settings.worktree.enabled)) return { cwd, warnings: [] };
  const { startWorktree } = await import("./worktree.ts");
  return await startWorktree(flow, options, { run, cwd }, surroundings(options));
}

/** Of one that goes on. When only the end is left of it, there is nothing to work in any more. */
export async function restorePlace(
  flow: Flow,
  worktree: Worktree,
  cwd: string,
  state: State,
  options: DriveOptions,
): Promise<readonly string[]> {
  if (state.pending[0]?.type === "end") return [];
  const { continueWorktree } = await import("./worktree.ts");
  return await continueWorktree(flow, worktree, cwd, surroundings(options));
}

export function surroundings({ env, signal }: DriveOptions): Surroundings {
  return { env: env ?? process.env, signal: signal ?? new AbortController().signal };
}
