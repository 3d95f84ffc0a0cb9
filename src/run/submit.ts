/** What a run is before anybody drives it: loaded, checked, trusted and pinned by the one who asks for it. */
import type { NewRun } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { RunOptions } from "./options.ts";

/** A run that can be recorded as it is. */
export type PreparedRun = {
  readonly run: NewRun;
  /** Its `run.started`, which says that nobody drives it yet. */
  readonly entries: readonly Entry[];
  readonly warnings: readonly string[];
};

/** `prepareRun`: records nothing. A RunnerError says what cannot run, and why. */
export type PrepareRun = (options: RunOptions) => Promise<PreparedRun>;
