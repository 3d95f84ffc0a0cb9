/** What is to be done next (commands), and what is then said to the model. */
import type { AtVisit } from "./deed.ts";
import type { Due } from "./due.ts";
import type { Call, CallResult, CheckResult, HookName, Question, Ruling } from "./event.ts";
import type { StepId } from "./flow.ts";
import type { JsonObject } from "./json.ts";
import type { Verdict } from "./verdict.ts";

/** What a step says to the model; the words themselves are made by the prompts room. */
export type Say =
  | { readonly kind: "prompt" }
  /** `guard` is the step whose check failed; null: a check of the whole flow. */
  | { readonly kind: "failed-check"; readonly guard: StepId | null; readonly result: CheckResult }
  /** A limit is near. */
  | { readonly kind: "budget"; readonly text: string }
  /** Another attempt, in the same conversation. */
  | { readonly kind: "retry"; readonly reason: string }
  | { readonly kind: "repair"; readonly errors: readonly string[] }
  | { readonly kind: "steer"; readonly tool: string }
  | { readonly kind: "results"; readonly results: readonly CallResult[] };

/** What is to be done next. */
export type Command =
  | StepCommand
  /**
   * Comes before everything else that is pending. That it is done is not recorded: the next entry of a step, or the end,
   * says so.
   */
  | { readonly type: "act"; readonly due: readonly Due[]; readonly args: JsonObject }
  | { readonly type: "end"; readonly verdict: Verdict };

/**
 * What is to be done in a visit. `attempt` is above 1 when an earlier process may have begun the same command and died:
 * together with run, step, visit and turn it makes the idempotency key.
 */
export type StepCommand = AtVisit & { readonly attempt: number } & (
    | { readonly type: "ask"; readonly turn: number; readonly say: readonly Say[] }
    | {
        readonly type: "call";
        readonly turn: number;
        readonly calls: readonly Call[];
        /** What people, code or settings decided about some of them. */
        readonly ruled?: readonly Ruling[];
      }
    | {
        readonly type: "check";
        /** In this order; the first that fails is the last that is run. */
        readonly checks: readonly string[];
      }
    | { readonly type: "look" }
    | { readonly type: "hook"; readonly hook: HookName; readonly input: JsonObject }
    | {
        readonly type: "question";
        readonly question: Question;
        /** It is in the journal. */
        readonly asked: boolean;
        /** What comes after the answer; absent: the lifecycle goes on. */
        readonly next?: StepCommand;
      }
    | {
        readonly type: "wait";
        /** The next request is this one of so many. Absent: the wait has another reason than a fault. */
        readonly retry?: { readonly next: number; readonly of: number };
        readonly ms: number;
        /** What comes then; absent: the model is asked. */
        readonly next?: StepCommand;
      }
  );
