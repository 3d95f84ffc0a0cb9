/** The project's journal, opened where its run state lives. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RunnerError, type Clock, type Journal } from "../engine/ports.ts";
import { openSqliteJournal } from "../journal/sqlite.ts";

export async function openJournal(stateDir: string, clock: Pick<Clock, "now">): Promise<Journal> {
  keepOutOfGit(stateDir);
  return await openSqliteJournal({
    directory: stateDir,
    now: clock.now,
    ownerId: randomUUID(),
    pid: process.pid,
  });
}

/** Opens the journal only if there is one: listing runs must not leave traces. */
export async function openExistingJournal(
  stateDir: string,
  clock: Pick<Clock, "now">,
): Promise<Journal | null> {
  return existsSync(join(stateDir, "runs.db")) ? await openJournal(stateDir, clock) : null;
}

function keepOutOfGit(stateDir: string): void {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const ignore = join(stateDir, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunnerError(
      "JOURNAL_UNAVAILABLE",
      `The state folder ${stateDir} cannot be used: ${why}. Make it writable, or choose another with --state.`,
      { cause },
    );
  }
}
