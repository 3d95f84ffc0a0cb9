/** What can be done with a run, by the state that it is in. */
import type { RunDocument, RunLine } from "../wire.ts";
import type { ResumeRequest } from "../wire-acts.ts";

export type RunAction = {
  readonly act: "pause" | "stop" | "continue" | "resume" | "adopt";
  readonly name: string;
  readonly about: string;
  /** Below `runs/RUN/`. */
  readonly route: "pause" | "stop" | "resume";
  readonly body: ResumeRequest | Record<string, never>;
  /** What is said once it is done. */
  readonly done: string;
  readonly isMain?: true;
  /** It cannot be undone: the button asks this before it does anything. */
  readonly asks?: string;
};

const PAUSE: RunAction = {
  act: "pause",
  name: "Pause",
  about: "Finish what is under way, then wait",
  route: "pause",
  body: {},
  done: "The run was asked to pause.",
};
const STOP: RunAction = {
  act: "stop",
  name: "Stop",
  about: "Give up what is under way, at once",
  route: "stop",
  body: {},
  done: "The run was asked to stop.",
  asks: "Really stop?",
};
const CONTINUE: RunAction = {
  act: "continue",
  name: "Continue",
  about: "Go on where it was paused",
  route: "resume",
  body: {},
  done: "The run goes on.",
  isMain: true,
};
const RESUME: RunAction = { ...CONTINUE, act: "resume", name: "Resume", about: "Go on where it stopped" };
const ADOPT: RunAction = {
  act: "adopt",
  name: "Resume with new files",
  about: "Go on with the agent's files as they are now",
  route: "resume",
  body: { adopt: true },
  done: "The run goes on.",
};

export function actionsOf(
  state: RunLine["state"],
  { shown, changes }: Pick<RunDocument, "shown" | "changes">,
): readonly RunAction[] {
  const hasChanged = changes !== null && changes.length > 0;
  // A fork may hold an edit, which the files would replace: both are offered.
  const adopt = hasChanged ? [ADOPT] : [];
  switch (state) {
    case "running":
      return [PAUSE, STOP];
    case "paused":
      return [CONTINUE, ...adopt];
    case "queued":
    case "poisoned":
    case "interrupted":
      return [RESUME, ...adopt];
    case "failed":
      return shown.resumable ? [RESUME, ...adopt] : [];
    // No process drives it, so there is nothing to stop; the inbox has its question.
    case "waiting":
    case "completed":
    case "damaged":
      return [];
  }
}
