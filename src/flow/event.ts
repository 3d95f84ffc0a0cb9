/** What happened (events), what is to be done next (commands), and the words of a conversation. */
import type { Label, Spending, StepId } from "./flow.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Finalize } from "./settings.ts";
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
  /** Its place among siblings that ran at the same time. */
  readonly place?: number;
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
      /** What it may spend, where that is not what the flow says. */
      readonly spending?: Spending;
      /** Absent: it works in the folder it was started in. */
      readonly worktree?: Worktree;
      /** The run whose past this one shares, up to and with that entry. */
      readonly forkedFrom?: Origin;
    }
  | {
      readonly type: "run.resumed";
      readonly epoch: number;
      readonly backend?: BackendSpec;
      readonly spending?: Spending;
    }
  /** Its time is up. */
  | { readonly type: "run.limited"; readonly why: string }
  /** From here on another flow holds. */
  | { readonly type: "run.adopted"; readonly flow: string }
  /** Somebody changed what was handed on; what is not named stays. */
  | { readonly type: "run.edited"; readonly handoff: { readonly [step: StepId]: JsonObject } }
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
  /** Whether what the stop rule asks of the outside holds, in the order in which the rule names it. */
  | {
      readonly type: "step.looked";
      readonly step: StepId;
      readonly visit: number;
      readonly sights: readonly Sight[];
    }
  | {
      readonly type: "step.hooked";
      readonly step: StepId;
      readonly visit: number;
      readonly hook: HookName;
      readonly result: HookResult;
    }
  /** A person was asked what to do; null: nobody was there. */
  | {
      readonly type: "step.told";
      readonly step: StepId;
      readonly visit: number;
      readonly answer: string | null;
    }
  /** The step cannot go on before somebody acts. */
  | {
      readonly type: "step.suspended";
      readonly step: StepId;
      readonly visit: number;
      readonly code: string;
      readonly why: string;
      /** What it can be told; absent: it is not a word that it waits for. */
      readonly choices?: readonly string[];
    }
  | { readonly type: "run.ended"; readonly verdict: Verdict }
  /** Visits that were told to stop and had not done so when the run was given up. */
  | { readonly type: "run.left"; readonly still: readonly string[] }
  | EffectEvent;

/**
 * Something done to the world when a run is complete, before its end is recorded. It is written down before it is done:
 * whoever finds only the intention looks whether it was done, and does not do it twice.
 */
export type EffectEvent =
  | {
      readonly type: "effect.intended";
      /** The same for every attempt at the same thing. */
      readonly key: string;
      readonly kind: string;
      readonly detail: string;
    }
  /** Not done, and not to be done by the run: `detail` tells what it would be, or how to do it by hand. */
  | {
      readonly type: "effect.held";
      readonly key: string;
      readonly kind: string;
      readonly detail: string;
    }
  | { readonly type: "effect.applied" | "effect.failed"; readonly key: string; readonly detail: string };

/** A git worktree that a run has for itself. */
export type Worktree = {
  readonly path: string;
  /** Made for the run. */
  readonly branch: string;
  /** The branch it was made from and is merged into, and the commit that this was at. */
  readonly base: string;
  readonly commit: string;
  /** The working tree that the run was started in. */
  readonly home: string;
  /** As the agent says, unless it was said otherwise when the run was started. */
  readonly finalize: Finalize;
  /** What would be done to the world is told, and not done. */
  readonly dryRun?: true;
};

/** `edits` tell in words what was changed at the parting. */
export type Origin = { readonly run: string; readonly seq: number; readonly edits?: readonly string[] };

/** What was seen of something outside. */
export type Sight = { readonly met: boolean; readonly what: string };

export type HookName = "setup" | "checkGate" | "assert" | "exit" | "next";

export type HookResult =
  /** The project has no code for this. */
  | { readonly kind: "absent" }
  | { readonly kind: "gave"; readonly value: Json }
  | { readonly kind: "threw"; readonly code: string; readonly message: string };

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
      /** An agent with a loop of its own used up all responses of its step, and was not done. */
      readonly capped?: true;
      /** Where the backend stands after this response; handed back to it on resume. */
      readonly mark?: Json;
      /** What an agent with a loop of its own was allowed and denied on the way. Absent: nothing was judged. */
      readonly judged?: readonly Judged[];
    }
  /** An answer beyond the size, depth or node caps. */
  | {
      readonly kind: "oversized";
      readonly why: string;
      readonly mark?: Json;
      readonly judged?: readonly Judged[];
    }
  /** The model or its transport failed. */
  | {
      readonly kind: "fault";
      readonly fault: Fault;
      readonly mark?: Json;
      readonly judged?: readonly Judged[];
    }
  /** The request could not be built: no prompt, no schema, a variable without a value. */
  | { readonly kind: "unaskable"; readonly code: string; readonly why: string };

/** A tool call before the gate, and why it was denied if it was. */
export type Judged = { readonly name: string; readonly denied?: string };

export function judgedIn(reply: Reply): readonly Judged[] {
  return reply.kind === "unaskable" ? NONE : (reply.judged ?? NONE);
}

const NONE: readonly Judged[] = [];

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
  /** What was spent all the same, where that is known. */
  readonly usage?: Usage;
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
  /** Who let it through, or did not, although the step's own list does not have it. */
  readonly grant?: Grant;
};

export type Grant = {
  readonly by: "hook" | "person" | "setting" | "nobody";
  readonly decision: "approve" | "deny";
  readonly argsDigest: string;
};

export type CheckResult = {
  readonly name: string;
  readonly ok: boolean;
  readonly pattern: string;
  readonly summary: string;
  readonly params: JsonObject;
  /** Failing again cannot help: the command is missing or forbidden. */
  readonly unrecoverable?: true;
  /** What is odd about it although it passed. */
  readonly note?: string;
};

/** What a step says to the model; the words themselves are made by the prompts room. */
export type Say =
  | { readonly kind: "prompt" }
  /** `guard` is the step whose check failed; null: a check of the whole flow. */
  | { readonly kind: "failed-check"; readonly guard: StepId | null; readonly result: CheckResult }
  /** A limit is near. */
  | { readonly kind: "budget"; readonly text: string }
  /** The stage has to be done again, in the same conversation. */
  | { readonly kind: "retry"; readonly reason: string }
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
      /** In this order; the first that fails is the last that is run. */
      readonly checks: readonly string[];
    }
  | { readonly type: "look"; readonly step: StepId; readonly visit: number; readonly attempt: number }
  | {
      readonly type: "hook";
      readonly step: StepId;
      readonly visit: number;
      readonly attempt: number;
      readonly hook: HookName;
      readonly input: JsonObject;
    }
  | {
      readonly type: "question";
      readonly step: StepId;
      readonly visit: number;
      readonly attempt: number;
      readonly question: string;
      readonly choices: readonly string[];
    }
  | {
      readonly type: "wait";
      readonly step: StepId;
      readonly visit: number;
      readonly attempt: number;
      readonly ms: number;
      /** What comes then; absent: the model is asked. */
      readonly next?: Command;
    }
  | { readonly type: "end"; readonly verdict: Verdict };
