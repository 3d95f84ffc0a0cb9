/**
 * What the engine needs from outside. Each port is a few functions; none of them throws for a failure that belongs to
 * the model or to the flow: those come back as values. A throw means a broken environment and stops the run where it
 * stands, with everything committed so far kept.
 */
import type { AtVisit } from "../flow/deed.ts";
import type {
  AskedWithin,
  BackendSpec,
  Call,
  CallResult,
  CheckResult,
  EffectEvent,
  Fault,
  HookResult,
  Question,
  ReplyFacts,
  Ruling,
  Sight,
  Teller,
  Tree,
  Usage,
} from "../flow/event.ts";
import type { Command } from "../flow/command.ts";
import type { Check, Step, StepId } from "../flow/flow.ts";
import type { Json, JsonObject, JsonSchema } from "../flow/json.ts";
import type { Compose } from "../flow/scene.ts";
import type { OutsideRule } from "./decide/stop.ts";

export type { OutsideRule } from "./decide/stop.ts";
export { STORED } from "./journal-port.ts";
export type { Blobs, Journal, NewEntry, NewRun, News, RunHandle, RunRow, WhichRuns } from "./journal-port.ts";

/** Everything a run touches. */
export type Ports = {
  readonly backend: Backend;
  /** What becomes of every answer of the backend before anything else does. */
  readonly tidy?: (result: TurnResult) => TurnResult;
  readonly toolbox: Toolbox;
  readonly shell: Shell;
  readonly watch: Watch;
  /** Absent: the project has no code that takes part in a visit. */
  readonly hooks?: Hooks;
  /** Absent: nothing is done outside, whatever is due there. */
  readonly act?: ActPort;
  readonly person: Person;
  readonly compose: Compose;
  readonly clock: Clock;
  readonly cwd: string;
  /** The files of the run, stored where others find them, before the entry of something that may have changed them; null: they did not change. Absent: they stay where they are. */
  readonly snapshot?: () => Promise<Tree | null>;
  /** Hears what a model says while it says it. Must not throw. */
  readonly onText?: (step: StepId, delta: string) => void;
};

/** Epoch milliseconds, and sleeping. `sleep` resolves early when the signal aborts, and is not affected by system clock changes. */
export type Clock = {
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets, from any beginning. Absent: nobody sets `now` either. */
  readonly steady?: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Resolves when a time limit is over, while something else is under way. Absent: as `sleep`. */
  readonly alarm?: (ms: number, signal: AbortSignal) => Promise<void>;
};

// Backends.

/**
 * A model (`turn`: one response, tools are only described) or a coding agent (`run`: a whole agentic query of its own).
 * At least one verb is there. Neither throws for a model-side failure, and both settle soon after `signal` aborts.
 */
export type Backend = {
  readonly spec: BackendSpec;
  readonly turn?: (request: TurnRequest) => Promise<TurnResult>;
  readonly run?: (request: RunRequest) => Promise<TurnResult>;
  /** Whether it, or the model of this name, can be given tools to call; it can, unless it says otherwise. */
  readonly toolCalling?: boolean | ((model: string) => boolean);
  /** Its answers take no tokens and cost nothing, as those of a script do. */
  readonly free?: true;
  /** The model that this name means, if its answers have no known price; null: they have one, or that is not known yet. */
  readonly unpriced?: (model: string) => string | null;
  /** It starts commands by its own means, where no sandbox of ours can hold them. */
  readonly unconfinable?: boolean;
  /** What is left over at the end of a run that a person should hear of. */
  readonly leftovers?: () => readonly string[];
  readonly close?: () => Promise<void>;
};

/** Who is asking: with run, step, visit and turn in `key`, a repeated request can be recognised as the same. */
export type Asker = AtVisit & {
  readonly key: string;
  readonly turn: number;
  readonly attempt: number;
  /** Steps that are being asked at this moment beside this one. */
  readonly beside: readonly StepId[];
};

export type TurnRequest = {
  readonly asker: Asker;
  readonly model: string;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** The payload wanted, and by which channel. Absent: free text. */
  readonly output?: {
    readonly schema: JsonSchema | null;
    readonly channel: { readonly kind: "output" } | { readonly kind: "tool"; readonly name: string };
  };
  readonly signal: AbortSignal;
  /** Hears the text as it comes. Absent: nobody listens. */
  readonly onText?: (delta: string) => void;
};

export type RunRequest = TurnRequest & {
  readonly cwd: string;
  readonly session?: string;
  /** Everything that was said in the visit, for an agent that has lost its session. Absent: `messages` is all. */
  readonly whole?: readonly Message[];
  readonly maxTurns: number;
  readonly gate: Gate;
  /** Runs a tool of ours, for an agent that leaves it to us. The gate is asked again. Does not reject. */
  readonly call: (call: ToolCall, signal: AbortSignal) => Promise<CallResult>;
  /** Tools of servers, all of the run; which of them the step may use is told by `tools`. Absent: there are none. */
  readonly served?: readonly ToolSpec[];
};

/** Called before every tool call of an agent that runs its own tools; `batch` is null where it cannot be known. */
export type Gate = (call: ToolCall, batch: readonly string[] | null) => Promise<Allowance>;

/** A call that an agent is about to make by itself. */
export type ToolCall = Pick<Call, "name" | "input">;

export type Allowance = { readonly allow: true } | { readonly allow: false; readonly reason: string };

export type TurnResult =
  | (ReplyFacts & {
      readonly kind: "reply";
      readonly text: string;
      readonly calls: readonly Call[];
      /** A payload the backend already has as a value; else it is read out of `text`. */
      readonly output?: unknown;
      readonly usage: Usage;
      readonly session?: string;
      /** It had no response left to give, and was not done. */
      readonly capped?: true;
      /** What people were asked while it went on. */
      readonly asked?: readonly AskedWithin[];
    })
  /** `judged`: calls that the backend itself denied, or allowed; what the gate said is known without it. */
  | (ReplyFacts & { readonly kind: "fault"; readonly fault: Fault });

export type Message =
  | { readonly role: "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly calls: readonly Call[];
      /** The payload it answered with, where that is not in the text. */
      readonly output?: JsonObject;
    }
  | { readonly role: "tool"; readonly results: readonly CallResult[] };

export type ToolSpec = {
  readonly name: string;
  readonly description: string;
  readonly input: JsonSchema;
};

// Boundaries and effects.

/** The tools of a run, behind the gate. Every call of a batch gets exactly one result, in order. */
export type Toolbox = {
  readonly offer: (step: Step) => readonly ToolSpec[];
  /**
   * The gate: why the step may not make this call, or null if it may. `batch` as for Gate; `allowed` are patterns that a
   * person allowed for the whole run.
   */
  readonly judge: (
    step: Step,
    call: ToolCall,
    batch: readonly string[] | null,
    allowed?: readonly string[],
  ) => string | null;
  /** The first call of the batch that a person has to decide about before any of it is run; null: there is none. */
  readonly wish?: (step: Step, batch: readonly Call[], approved: Approved) => Wish | null;
  readonly call: (
    step: Step,
    batch: readonly Call[],
    signal: AbortSignal,
    approved?: Approved,
  ) => Promise<readonly CallResult[]>;
  /** Those that a coding agent does not bring along; absent: there are none. */
  readonly served?: readonly ToolSpec[];
  /** The same where tools beyond the list of the step may be granted. `ask`: nothing was run, a person has to decide. */
  readonly callGranted: (
    step: Step,
    batch: readonly Call[],
    about: GrantScope,
    signal: AbortSignal,
  ) => Promise<
    | { readonly kind: "results"; readonly results: readonly CallResult[] }
    | { readonly kind: "ask"; readonly wish: Wish; readonly ruled: readonly Ruling[] }
  >;
};

/** A question before it has a name. */
export type Wish = Omit<Question, "id" | "expiresAt" | "held">;

/** What was decided before: about calls of this batch, and for the whole run. */
export type Approved = { readonly ruled: readonly Ruling[]; readonly allowed: readonly string[] };

/** Which attempt of which visit calls: a grant holds for that and for nothing else. */
export type GrantScope = {
  readonly run: string;
  readonly visit: number;
  readonly attempt: number;
  readonly approved?: Approved;
};

/** Runs what a flow declares as commands, in the run's working directory. */
export type Shell = {
  readonly check: (check: Check, signal: AbortSignal) => Promise<CheckResult>;
  /** A step that a command performs: its stdout is the payload. */
  readonly perform: (step: Step, args: JsonObject, signal: AbortSignal) => Promise<TurnResult>;
};

/**
 * Does what is due outside, recording each effect before and after. false: something could not be done, and the run waits
 * there until it is resumed. What was done before is not done again.
 */
export type ActPort = (
  command: Command & { readonly type: "act" },
  record: (event: EffectEvent) => Promise<void>,
) => Promise<boolean>;

/** Looks at what is outside of a run, for its stop rule. What cannot be looked up is not met, and says why. */
export type Watch = {
  readonly look: (rule: OutsideRule, glance: Glance, signal: AbortSignal) => Promise<Sight>;
  readonly close?: () => Promise<void>;
};

/** Where the run stands when somebody looks outside for it. */
export type Glance = {
  readonly run: string;
  readonly step: StepId;
  readonly iteration: number;
  readonly args: JsonObject;
  /** What the model said in this visit, and the payload it gave. */
  readonly said: string;
  readonly payload: JsonObject;
};

/**
 * Code of the project. `path` leads through its default export to a function; `mutable` hands over the first argument to
 * be changed, and gives `{ value, changed }`.
 */
export type Hooks = {
  readonly call: (
    path: readonly string[],
    args: readonly Json[],
    signal: AbortSignal,
    how?: { readonly mutable?: boolean },
  ) => Promise<HookResult>;
  readonly close: () => Promise<void>;
};

/** The person who can be asked while a run is active. */
export type Person = {
  /** Settles a question that is on record; null: nobody is there to answer. `live`: it cannot wait, and is not on record. */
  readonly ask: (question: AskedQuestion, signal: AbortSignal) => Promise<Told | null>;
  /** Whether anybody could answer: somebody is there, or questions stay open until somebody is. */
  readonly isReachable: boolean;
  /** How long a question is open; absent: for ever. */
  readonly expireMs?: number;
  /** What becomes of a question when nobody is there: a tool call is denied or allowed, or the run waits. */
  readonly absent: "deny" | "halt" | "allow";
};

export type AskedQuestion = Question & AtVisit & { readonly run: string; readonly live?: true };

/** null: the question is settled without anybody's word. */
export type Told = { readonly answer: string | null; readonly by: Teller };

/** A broken environment, or a rule of the outside that was met; `code` is for programs. */
export class RunnerError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "RunnerError";
    this.code = code;
  }
}
