/** What is known about the project as a whole, asked for once. */
import type { ProjectDocument } from "../wire.ts";
import { ask, refusedOf, type RefusedRequest } from "./ask.ts";
import { commandLine } from "./command.ts";
import { createStore, useStore } from "./store.ts";

type Known = { readonly project: ProjectDocument | null; readonly error: RefusedRequest | null };
const known = createStore<Known>({ project: null, error: null });

export function learnProject(): void {
  ask<ProjectDocument>("project").then(
    (project) => known.set(() => ({ project, error: null })),
    (error: unknown) => known.set((now) => ({ ...now, error: refusedOf(error) })),
  );
}

export function useProject(): Known {
  return useStore(known, (now) => now);
}

/** Whether buttons that change something are drawn. */
export function useMayAct(): boolean {
  return useStore(known, ({ project }) => project !== null && project.readOnly === null);
}

/** A command as this user types it, for this project; null: it must not be pasted. */
export function useCommand(words: readonly string[]): string | null {
  const { project } = useProject();
  return commandLine([...words, ...(project?.where ?? [])], project?.command);
}
