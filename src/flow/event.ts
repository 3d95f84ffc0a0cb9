/** What happened (events), what is to be done next (commands), and the words of a conversation. */
import type { Label, StepId } from "./flow.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Verdict } from "./verdict.ts";

/** One entry of a journal. `seq` counts from 1 without gaps; `at` is epoch milliseconds. */
export type Entry = {
  readonly seq: number;
  readonly at: number;
  readonly event: Event;
  /** The decision this event led to, kept so that a replay can be compared with what was done. */
  readonly led?: Led;
};

/** How one visit of a step was settled. `to` is null when the run ended there. */
export type Led = {
  readonly step: StepId;
  readonly visit: number;
  readonly label: Label | null;
  readonly to: StepId | null;
  /** The checks failed: the label did not take effect. */
  readonly overturned?: true;
  /** What a question about this step's work found. */
  readonly check?: { readonly label: Label; readonly message: string };
  /** What was put right or worked around on the way. */
  readonly notes?: readonly string[];
};

export type Event =
  | {
      readonly type: "run.started";
      readonly run: string;
      readonly agent: string;
      readonly flow: string;
      readonly args: JsonObject;
      readonly input: string;
      readonly cwd: string;
      readonly backend: BackendSpec;
    }
  | { readonly type: "run.resumed"; readonly epoch: number; readonly backend?: BackendSpec }
  | {
      readonly type: "step.answered";
      readonly step: StepId;
      readonly visit: number;
      readonly turn: number;
      readonly reply: Reply;
    }
  | {
      readonly type: "step.called";
      readonly step: StepId;
      readonly visit: number;
      readonly turn: number;
      readonly results: readonly CallResult[];
    }
  | {
      readonly type: "step.checked";
      readonly step: StepId;
      readonly visit: number;
      readonly results: readonly CheckResult[];
    }
  | { readonly type: "step.waited"; readonly step: StepId; readonly visit: number; readonly ms: number }
  | { readonly type: "run.ended"; readonly verdict: Verdict };

/** Enough to build the same backend again on resume. */
export type BackendSpec = { readonly id: string; readonly options: Json };

/** One model response, read and bounded. */
export type Reply =
  | {
      readonly kind: "said";
      readonly text: string;
      readonly calls: readonly Call[];
      /** The payload, if one could be read. */
      readonly output?: JsonObject;
      readonly usage: Usage;
      readonly session?: string;
      /** Where the backend stands after this response; handed back to it on resume. */
      readonly mark?: Json;
    }
  /** An answer beyond the size, depth or node caps. */
  | { readonly kind: "oversized"; readonly why: string; readonly mark?: Json }
  /** The model or its transport failed. */
  | { readonly kind: "fault"; readonly fault: Fault; readonly mark?: Json }
  /** The request could not be built: no prompt, no schema, a variable without a value. */
  | { readonly kind: "unaskable"; readonly code: string; readonly why: string };

export type Usage = {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number | null;
};

export type Fault = {
  readonly kind: FaultKind;
  readonly message: string;
  /** Overrides the code that the kind would give. */
  readonly code?: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
};

export type FaultKind =
  | "auth"
  | "rate-limit"
  | "overloaded"
  | "network"
  | "bad-request"
  | "process"
  | "script"
  | "other";

export type Call = { readonly id: string; readonly name: string; readonly input: JsonObject };

export type CallResult = {
  readonly id: string;
  readonly name: string;
  readonly ok: boolean;
  readonly content: string;
  /** Why the boundary said no; absent when the tool ran. */
  readonly denied?: string;
};

export type CheckResult = {
  readonly name: string;
  readonly ok: boolean;
  readonly pattern: string;
  readonly summary: string;
  readonly params: JsonObject;
  /** Failing again cannot help: the command is missing or forbidden. */
  readonly unrecoverable?: true;
};

/** What a step says to the model; the words themselves are made by the prompts room. */
export type Say =
  | { readonly kind: "prompt" }
  | { readonly kind: "failed-check"; readonly guard: StepId; readonly result: CheckResult }
  | { readonly kind: "repair"; readonly errors: readonly string[] }
  | { readonly kind: "steer"; readonly tool: string }
  | { readonly kind: "results"; readonly results: readonly CallResult[] };

/**
 * What is to be done next. `attempt` is above 1 when an earlier process may have begun the same command and died:
 * together with run, step, visit and turn it makes the idempotency key.
 */
export type Command =
  | {
      readonly type: "ask";
      readonly step: StepId;
      readonly visit: number;
      readonly turn: number;
      readonly attempt: number;
      readonly say: readonly Say[];
    }
  | {
      readonly type: "call";
      readonly step: StepId;
      readonly visit: number;
      readonly turn: number;
      readonly attempt: number;
      readonly calls: readonly Call[];
    }
  | {
      readonly type: "check";
      readonly step: StepId;
      readonly visit: number;
      readonly attempt: number;
    }
  | {
      readonly type: "wait";
      readonly step: StepId;
      readonly visit: number;
      readonly attempt: number;
      readonly ms: number;
    }
  | { readonly type: "end"; readonly verdict: Verdict };
