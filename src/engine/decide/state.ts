/** Where a run stands: a fold of its journal. Its size depends on the flow, never on the length of the run. */
import type { Acts } from "./due.ts";
import type { Last } from "../../flow/scene.ts";
import { type AtVisit, type Phase } from "../../flow/deed.ts";
import type { Call, Entry, Figure, Led, LimitName, Reached, Usage } from "../../flow/event.ts";
import type { Command, Say, StepCommand } from "../../flow/command.ts";
import { countedUsage } from "../../flow/figure.ts";
import type { Granted, Label, Limits, StepId, StepLimits } from "../../flow/flow.ts";
import type { JsonObject } from "../../flow/json.ts";
import type { Try, VisitResult } from "../../flow/lifecycle.ts";
import type { Verdict } from "../../flow/verdict.ts";

export type State = {
  readonly run: string;
  readonly args: JsonObject;
  /** What was piped in, for prompts that ask for it. */
  readonly input: string;
  /** Visits begun, over all steps. */
  readonly iterations: number;
  readonly visits: { readonly [step: StepId]: number };
  /** The newest data each step handed on, under the step's own name. */
  readonly handoff: { readonly [step: StepId]: JsonObject };
  /** Failed checks so far, by the step they guard; those of the stop rule under `*`. */
  readonly failures: { readonly [step: StepId]: number };
  /** How often counted edges were taken since their step was entered from another one. */
  readonly taken: { readonly [step: StepId]: { readonly [edge: string]: number } };
  /** What its visits have set up between them; it begins with the arguments. */
  readonly ctx: JsonObject;
  /** Steps that come when the way of the one before them has ended. */
  readonly queue: readonly StepId[];
  /** null: nothing limits what the run may spend. */
  readonly budget: Budget | null;
  /** One lane, or one per sibling while a fork is open. */
  readonly lanes: readonly Lane[];
  readonly fork: Fork | null;
  /** Tools that a person allowed for the rest of the run where its mode would ask again: patterns as in `allowedTools`. */
  readonly allowed: readonly string[];
  /** What each step did last, and how often in a row; absent: nobody watches that. */
  readonly repeated?: { readonly [step: StepId]: { readonly key: string; readonly times: number } };
  /** Something went wrong that the flow is still fixing, so reaching a count is not yet success. */
  readonly failing: boolean;
  readonly usage: Usage;
  /** The newest answer, for the summary that the next prompt may show. */
  readonly last: Last | null;
  /** How the newest event settled a visit; null when it settled none. */
  readonly settled: Led | null;
  /** What is to be done next; empty only after the end. */
  readonly pending: readonly Command[];
  readonly verdict: Verdict | null;
  /**
   * Visits that wait for somebody while others go on, and what was under way when the run stopped for a reason outside
   * the flow: a resumed run goes on there.
   */
  readonly halted: readonly Lane[];
  /** What `act` in `pending` is made of; absent: nothing can be due outside of this run. */
  readonly acts?: Acts;
};

/** What may be spent, and what was. */
export type Budget = {
  /** What holds in the place of what the flow says. */
  readonly granted: Granted | null;
  readonly limits: Limits;
  readonly steps: { readonly [step: StepId]: StepLimits };
  /** Since the run has limits. */
  readonly spent: { readonly [step: StepId]: Spent };
  /** The limits of the run that the model was told of. */
  readonly told: readonly LimitName[];
  /** Limits that answers were not counted against, because they came without the figure. */
  readonly unmetered?: readonly Unmetered[];
  /** Such an answer came since the run was started or resumed, and the user did not allow it. */
  readonly blind?: true;
  /** The limit that ended the run. */
  readonly reached?: Reached;
};

export type Unmetered = Pick<Reached, "of" | "step" | "most"> & { readonly name: Figure };

export type Amounts = { readonly turns: number; readonly tokens: number; readonly costUsd: number };

/** What a step has spent, in all and in its newest attempt; the largest of its calls; and what it was told of. */
export type Spent = {
  readonly all: Amounts;
  readonly largest: Amounts;
  readonly attempt: {
    readonly visit: number;
    readonly index: number;
    readonly spent: Amounts;
  };
  readonly told: readonly LimitName[];
};

/** One visit in progress. */
export type Lane = AtVisit & {
  readonly turn: number;
  /** Answers sent back within this visit. */
  readonly repairs: number;
  /** Faults in a row within this visit. */
  readonly faults: number;
  /** Times in a row that this step could not be asked for lack of a schema. */
  readonly strikes: number;
  /** The other step that led here. */
  readonly origin: StepId | null;
  /** What is said to the model in this turn; said again when the turn has to be repeated. */
  readonly say: readonly Say[];
  /** What the model said so far, where the stop rule listens to it. */
  readonly said: string;
  /** The answer whose checks are running, or whose effect waits for a look outside. */
  readonly answer: {
    readonly label: Label;
    readonly payload: JsonObject;
    readonly notes: readonly string[];
    /** Why the stop rule says that the run is over, if these checks pass. */
    readonly over?: string;
  } | null;
  readonly command: StepCommand;
  /** null: the step declares no lifecycle. */
  readonly life: Life | null;
};

/** What a visit knows of its lifecycle. */
export type Life = {
  readonly phase: Phase;
  readonly ctx: JsonObject;
  /** The results it was given when it was entered, in their order. */
  readonly upstream: readonly JsonObject[];
  /** How often the gate has said "not yet" in a row. */
  readonly deferred: number;
  /** Responses spent in earlier tries. */
  readonly since: number;
  /** One for each try, the present one last. */
  readonly tries: readonly Try[];
  /** The call that completed the present try: it has to be answered if the conversation goes on. */
  readonly completion: Call | null;
  readonly result: VisitResult | null;
};

export type Fork = {
  /** The visit that led to it. */
  readonly from: AtVisit;
  readonly steps: readonly StepId[];
  readonly join: StepId | null;
  readonly done: readonly StepId[];
  readonly policy?: "independent";
  /** A sibling that failed and has a way of its own to end on; the others are gone. */
  readonly failed?: { readonly step: StepId; readonly why: string };
};

const NO_USAGE: Usage = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: null };

export const EMPTY_STATE: State = {
  run: "",
  args: {},
  input: "",
  iterations: 0,
  visits: {},
  handoff: {},
  failures: {},
  taken: {},
  ctx: {},
  queue: [],
  budget: null,
  lanes: [],
  fork: null,
  allowed: [],
  failing: false,
  usage: NO_USAGE,
  last: null,
  settled: null,
  pending: [],
  verdict: null,
  halted: [],
};

/** What an event is recorded with: the decision it led to, and what is under way then. */
export function recordedWith({ settled, fork, lanes, halted }: State): Pick<Entry, "led" | "underWay"> {
  return {
    ...(settled !== null && { led: settled }),
    ...(fork !== null && { underWay: [...lanes, ...halted].map(({ step }) => step) }),
  };
}

export function withUsage(state: State, usage: Usage | undefined): State {
  return usage === undefined ? state : { ...state, usage: addUsage(state.usage, countedUsage(usage)) };
}

/** What no model was asked for costs nothing, and says nothing about prices. */
export function addUsage(a: Usage, b: Usage): Usage {
  if (b.turns === 0 && a.turns > 0) return a;
  const unknown = either(a.unknown, b.unknown);
  const turns = a.turns + b.turns;
  const inputTokens = a.inputTokens + b.inputTokens;
  const outputTokens = a.outputTokens + b.outputTokens;
  const known = a.turns === 0 ? b.costUsd : a.costUsd;
  const sum: Usage =
    unknown === undefined
      ? { turns, inputTokens, outputTokens, costUsd: known }
      : { turns, inputTokens, outputTokens, costUsd: known, unknown };
  if (a.turns === 0 || (a.costUsd === null && b.costUsd === null)) return sum;
  const costUsd = (a.costUsd ?? 0) + (b.costUsd ?? 0);
  const isWhole = a.partly === undefined && a.costUsd !== null && b.costUsd !== null;
  return isWhole ? { ...sum, costUsd } : { ...sum, costUsd, partly: true };
}

type Unknown = Usage["unknown"];

function either(a: Unknown, b: Unknown): Unknown {
  if (a === undefined || b === undefined) return a ?? b;
  return b.every((name) => a.includes(name)) ? a : [...new Set([...a, ...b])];
}
