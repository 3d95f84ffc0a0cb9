/**
 * What a decision did, and why: `decide` returns these with the next state, in the order in which they were done. They
 * hold references to what was decided on and no sentences; whatever reports a run turns them into words.
 */
import type { Call, CallResult, CheckResult, Led, LimitName, Reached, Sight } from "./event.ts";
import type { Guard, Label, Move, StepId } from "./flow.ts";
import type { Json, JsonObject, Path } from "./json.ts";
import type { Verdict } from "./verdict.ts";

/** The visit that a deed belongs to. */
export type AtVisit = { readonly step: StepId; readonly visit: number };

/** As `STEP@VISIT`. */
export function visitKey({ step, visit }: AtVisit): string {
  return `${step}@${visit}`;
}

export function laneIn<L extends AtVisit>(
  { lanes }: { readonly lanes: readonly L[] },
  { step, visit }: AtVisit,
): L | undefined {
  for (const lane of lanes) if (lane.visit === visit && lane.step === step) return lane;
  return undefined;
}

export type Deed =
  /** `iteration`: its number among all visits of the run. */
  | (AtVisit & { readonly kind: "began"; readonly iteration: number })
  | (AtVisit & AnswerRead)
  /** The model has to answer again, within the same visit. */
  | (AtVisit & {
      readonly kind: "sent-back";
      /** `batch`: the completion tool beside other calls. `silent`: neither a call nor a completion. */
      readonly why: "misfit" | "batch" | "silent";
      readonly errors: readonly string[];
      /** How many calls are answered with the refusal; 0: it is a message of its own. */
      readonly calls: number;
    })
  | (AtVisit & {
      readonly kind: "called";
      readonly calls: readonly Call[];
      readonly results: readonly CallResult[];
    })
  /** A request that failed is sent again after a wait: the `next` of at most `of` attempts. */
  | (AtVisit & { readonly kind: "waits"; readonly ms: number; readonly next: number; readonly of: number })
  | (AtVisit & { readonly kind: "checking"; readonly checks: readonly string[] })
  | (AtVisit & ChecksRead)
  /** The checks failed, and the label has no effect. `to` is null when that ends the run. */
  | (AtVisit & { readonly kind: "overturned"; readonly failed: CheckResult; readonly to: StepId | null })
  | (AtVisit & EdgeRead)
  | (AtVisit & { readonly kind: "forked"; readonly steps: readonly StepId[]; readonly join: StepId | null })
  /** A sibling is done; `left`: those still under way. */
  | (AtVisit & { readonly kind: "joined"; readonly join: StepId | null; readonly left: number })
  /** A stage goes on in its life; `from` is null when it begins. `capHit`: the attempt used all of its responses. */
  | (AtVisit & {
      readonly kind: "phase";
      readonly phase: Phase;
      readonly from: Phase | null;
      readonly attempt: number;
      readonly capHit: boolean;
    })
  /** The outcome of one attempt at a stage. */
  | (AtVisit & {
      readonly kind: "judged";
      readonly attempt: number;
      readonly verdict: "ok" | "retry" | "skip" | "fail";
      readonly reason: string;
      readonly capHit: boolean;
    })
  /** The model is informed of a limit that is near. */
  | (AtVisit & { readonly kind: "noted"; readonly limit: LimitName })
  /** Visits are kept for a resumed run: the run waits for a person, or stops for a reason outside the flow. */
  | { readonly kind: "held"; readonly visits: readonly AtVisit[] }
  | { readonly kind: "limited"; readonly reached: Reached }
  | { readonly kind: "stuck"; readonly step: StepId; readonly times: number }
  | { readonly kind: "settled"; readonly led: Led }
  | { readonly kind: "ended"; readonly verdict: Verdict };

export type DeedKind = Deed["kind"];

/** How an answer became a label, or why it did not. */
export type AnswerRead = {
  readonly kind: "read";
  /** What was taken for the answer; null: the response holds nothing of the kind. */
  readonly payload: JsonObject | null;
  readonly label: Label | null;
  /** `miss`: the label that stands for an answer which cannot be used. */
  readonly by: Naming | "miss" | null;
  /** Where it does not fit its contract. */
  readonly errors: readonly string[];
  /** What stands in the place of the label, where it fits and is none that the step may give. */
  readonly found?: string;
};

/** How a label was given: by the contract alone, by its name, by another word for it, or for want of one. */
export type Naming = "const" | "word" | "alias" | "fallback";

export type ChecksRead = {
  readonly kind: "checked";
  /** `gate` and `attempt`: of a stage, before its conversation and after an attempt. */
  readonly of: "label" | "stop" | "gate" | "attempt";
  readonly guard: Guard | null;
  readonly results: readonly CheckResult[];
  /** The one that failed. */
  readonly failed: CheckResult | null;
};

/** The edge of a label. It is not taken where the stop rule says that the run is over. */
export type EdgeRead = {
  readonly kind: "followed";
  readonly label: Label;
  readonly choices: readonly Choice[];
  readonly move: PlainMove | null;
  /** Why there is no way on. */
  readonly why: string | null;
  /** What the stop rule was judged by; null: it was not asked. */
  readonly stop: StopFacts | null;
};

export type PlainMove = Exclude<Move, { kind: "switch" } | { kind: "jump" } | { kind: "times" }>;

/** What a selector went by. `otherwise`: what it found led nowhere of its own. */
export type Choice =
  | {
      readonly kind: "switch";
      readonly on: Path;
      readonly value: string | null;
      readonly otherwise: boolean;
    }
  | { readonly kind: "jump"; readonly field: Path; readonly found: Json; readonly otherwise: boolean }
  /** Taken so often before; at `max` the other move is the one. */
  | { readonly kind: "times"; readonly taken: number; readonly max: number };

/** What there is to judge a stop rule by when a visit is settled. */
export type StopFacts = {
  readonly state: {
    readonly iterations: number;
    readonly visits: { readonly [step: StepId]: number };
  };
  /** What the model said during the visit. */
  readonly said: string;
  readonly payload: JsonObject;
  /** What was seen outside, in the order in which the rule names it; null: nothing has looked yet. */
  readonly sights: readonly Sight[] | null;
};

/** The life of a stage. */
export type Phase = "setup" | "gate" | "act" | "assert" | "exit" | "next";
