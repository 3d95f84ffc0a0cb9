/** What the page asks the studio to do, and what it is answered. */
import type { StepId } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import type { StartRequest } from "../serve/command-line.ts";
import type { Refusal } from "../serve/refusal.ts";
import type { VisitSeen } from "./wire.ts";

// POST /api/…

/** `runs`: starts `lockstep run AGENT …` in a process of its own. */
export type { StartRequest };

/** 202. `command`: the line that was run. */
export type StartedDocument = {
  readonly v: 1;
  readonly run: string;
  readonly command: string;
  /** The run is recorded, and nothing drives it: why. */
  readonly refusal?: Refusal;
};

/** `runs/RUN/resume`, also for `continue`. */
export type ResumeRequest = { readonly adopt?: boolean; readonly trust?: string };

/** `runs/RUN/pause` and `runs/RUN/stop` */
export type SteeredDocument = {
  readonly v: 1;
  readonly run: string;
  readonly state: "paused" | "stopped" | "ended" | "asked";
  readonly command: string;
};

/** `runs/RUN/fork` parts the run and resumes the new one; `runs/RUN/part` only parts it. */
export type ForkRequest = {
  /** `STEP@VISIT`: the first visit that is not shared. */
  readonly at: string;
  readonly output?: JsonObject | string;
  readonly handoff?: { readonly [step: StepId]: JsonObject };
  readonly prompts?: { readonly [step: StepId]: string };
  readonly models?: { readonly [step: StepId]: string };
  readonly adopt?: boolean;
  readonly trust?: string;
};

/** `runs/RUN/judge` validates the edits of a fork: what the person would be told, and what the fork would share. */
export type JudgedDocument = {
  readonly v: 1;
  readonly errors: readonly { readonly field: string; readonly message: string }[];
  /** The last entry that both runs have. */
  readonly sharedUntil: number;
  readonly shared: readonly VisitSeen[];
  readonly costLine: string | null;
  /** The prompt of the step, before values are filled in; null: a command performs it. */
  readonly prompt: string | null;
};

/** `runs/RUN/questions/ID` */
export type AnswerRequest = {
  readonly answer: string;
  /** false: the run is not resumed. */
  readonly resume?: boolean;
};

export type AnsweredDocument = {
  readonly v: 1;
  readonly run: string;
  readonly question: string;
  readonly answer: string;
  /** What goes on with the run: the process that drives it, a command that was started, or nothing. */
  readonly goesOn: "driven" | "resumed" | "no";
  /** Why it does not go on although it should. */
  readonly refusal?: Refusal;
  readonly command: string;
};

/** `agents/NAME/arguments` validates arguments as the command line does. */
export type ArgumentsRequest = Omit<StartRequest, "agent">;
export type ArgumentsDocument = {
  readonly v: 1;
  readonly args: JsonObject;
  readonly errors: readonly { readonly field: string | null; readonly message: string }[];
  /** The line that would run; empty where a word of it cannot be shown. */
  readonly command: string;
};
