/** Reading the project's journal, without leaving a trace where there is none. */
import { openExistingJournal, type Journal } from "../run/index.ts";
import { findProject } from "../run/project.ts";
import type { Call } from "./call.ts";

/** `journal` is null where nothing was ever recorded. */
export async function withJournal<T>(
  call: Call,
  use: (journal: Journal | null, stateDir: string) => Promise<T>,
): Promise<T> {
  const { stateDir } = findProject(call.cwd, call.stateDir);
  const journal = await openExistingJournal(stateDir, { now: Date.now });
  try {
    return await use(journal, stateDir);
  } finally {
    await journal?.close();
  }
}
