/** What a prompt can see of a run, and the function that turns what is to be said into words. */
import type { Say } from "./command.ts";
import type { Flow, Label, Step, StepId } from "./flow.ts";
import type { JsonObject } from "./json.ts";

export type Scene = {
  readonly args: JsonObject;
  readonly input: string;
  readonly iterations: number;
  readonly visits: { readonly [step: StepId]: number };
  readonly handoff: { readonly [step: StepId]: JsonObject };
  readonly last: Last | null;
};

/** The last answer that led somewhere. */
export type Last = {
  readonly step: StepId;
  readonly iteration: number;
  readonly label: Label;
  readonly reason: string;
  readonly text: string;
  /** What the answer held, whole: the report of a finished run reads it. */
  readonly payload: JsonObject;
};

export type Composed =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "unaskable"; readonly code: string; readonly why: string };

export type Compose = {
  readonly system: (flow: Flow) => string;
  /** The system prompt of a step that has one of its own, in the context of its visit. */
  readonly ownSystem: (step: Step, ctx: JsonObject) => Composed;
  /** Tool results are no words and never come here. */
  readonly say: (flow: Flow, step: Step, say: Exclude<Say, { kind: "results" }>, scene: Scene) => Composed;
};
