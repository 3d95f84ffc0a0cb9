/** Makes the files of a run ready that were just put in place: `runner.execution.place.prepare`, held as its other commands are. */
import { RunnerError, type Shell } from "../../engine/ports.ts";
import type { Flow } from "../../flow/flow.ts";
import { shownInLine } from "../../flow/text/harmless.ts";

/** WORKTREE_UNAVAILABLE where it fails: nothing of the run is asked or done on files that are not ready. */
export async function preparePlace(flow: Flow, shell: Shell, signal: AbortSignal): Promise<void> {
  const command = flow.settings.place?.prepare;
  if (command === undefined) return;
  const { ok, summary } = await shell.check(
    {
      kind: "command",
      name: "prepare",
      pattern: "prepare",
      description: "runner.execution.place.prepare",
      command,
      success: { kind: "exit", code: 0 },
      extract: {},
      timeoutMs: PREPARE_MS,
      maxOutputBytes: 64 * 1024,
    },
    signal,
  );
  if (ok) return;
  throw new RunnerError(
    "WORKTREE_UNAVAILABLE",
    `The files of the run were put in place, and runner.execution.place.prepare failed there: ${shownInLine(summary, 500)}`,
  );
}

/** Installing packages takes a while. */
const PREPARE_MS = 15 * 60_000;
