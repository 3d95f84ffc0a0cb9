/**
 * The loop: fold the journal, do what is pending, append what happened, again. Starting and resuming are the same code.
 * An event counts once it is appended; until then nothing of it is believed.
 */
import type { Prepared, PreparedFlows } from "../schema/prepared.ts";
import { visitKey, type Deed } from "../../flow/deed.ts";
import type { Entry, Event, Tree } from "../../flow/event.ts";
import type { StepCommand } from "../../flow/command.ts";
import { flowFrom } from "../../flow/adopted.ts";
import type { Flow, Granted } from "../../flow/flow.ts";
import { stateAfter } from "../decide/decide.ts";
import { attended, besidesAct } from "../decide/due.ts";
import { perform } from "./perform.ts";
import { outOfTime, type TimeUp } from "../decide/spend.ts";
import { STORED, type Ports, type RunHandle } from "../ports.ts";
import { createStamp, drivenMs } from "./stamp.ts";
import { EMPTY_STATE, recordedWith, type State } from "../decide/state.ts";
import { createTalk, type Talk } from "./talk.ts";
import { createStopwatch, hasTimedSteps, isTimedStep, isWhole, spentBy, type Stopwatch } from "./time.ts";
import { createWaits } from "./waits.ts";

export type Drive = {
  /** The one that the run began with. */
  readonly flow: Prepared;
  /** Those that it adopted on its way. */
  readonly adopted?: PreparedFlows;
  readonly ports: Ports;
  readonly handle: RunHandle;
  /** What the journal holds already. */
  readonly past: readonly Entry[];
  /** What begins this stretch: the entry that a new run was made with, or the resuming, which is still to be written. */
  readonly begin: Entry | (Event & { type: "run.resumed" });
  readonly signal: AbortSignal;
  /**
   * What others want of the run while it goes on. `pause`: what is under way is finished and recorded, and nothing more
   * is begun. `stop`: only told in the journal; `signal` has to abort as well. `yield`: as `pause`, but another process
   * may go on at once.
   */
  readonly wishes?: {
    readonly pause?: AbortSignal;
    readonly stop?: AbortSignal;
    readonly yield?: AbortSignal;
  };
  /** The run yields when it has nothing to do for longer than this. Absent: it waits here, however long. */
  readonly parkMs?: number;
  /** Called for each entry of the past, with the state it led to, before anything is done. Must not throw. */
  readonly recall?: Hear;
  /** Called after each append, with the state it led to. Must not throw. */
  readonly observe?: Hear;
  /** Whether `recall` and `observe` are given the deeds that led to the state; else they get none, which is faster. */
  readonly wantsDeeds?: boolean;
  /** Where the run stands after its past, and what was said until then: the past is not folded again, and nothing begins. */
  readonly from?: State;
  /** The conversations, if somebody else needs them. */
  readonly talk?: Talk;
};

export type Hear = (entry: Entry, state: State, deeds: readonly Deed[]) => void;

const NO_DEEDS: readonly Deed[] = [];

/** The state in which the run ended, or in which it was stopped or yielded: then there is no verdict. */
export function drive(options: Drive): Promise<State> {
  const watch = stopwatchOf(options);
  return watch === null ? driveOn(options) : driveTimed(options, watch);
}

async function driveTimed(options: Drive, watch: Stopwatch): Promise<State> {
  const { ports, signal, recall, observe } = options;
  const watched: Drive = {
    ...options,
    recall: (entry, state, deeds) => {
      watch.note(entry, state);
      recall?.(entry, state, deeds);
    },
    observe: (entry, state, deeds) => {
      watch.note(entry, state);
      observe?.(entry, state, deeds);
    },
  };
  const limit = wallOf(options);
  if (limit === null) return driveOn(watched, watch.perform);
  const over = new AbortController();
  const late = new AbortController();
  const { sleep, alarm = sleep } = ports.clock;
  void alarm(Math.max(0, limit.left), over.signal).then(() => late.abort());
  try {
    const both = AbortSignal.any([signal, late.signal]);
    const ended = () => (signal.aborted ? null : limit.event);
    return await driveOn({ ...watched, signal: both }, watch.perform, ended);
  } finally {
    over.abort();
  }
}

/** null: nothing limits the time of the run, nor that of its steps. */
function stopwatchOf(options: Drive): Stopwatch | null {
  const { flow, adopted = {} } = options;
  const { wallMs, steps } = grantedIn(options) ?? currentLimits(options);
  const isTimed =
    wallMs !== undefined ||
    (steps !== undefined && Object.values(steps).some(isTimedStep)) ||
    hasTimedSteps(flow) ||
    Object.values(adopted).some(hasTimedSteps);
  return isTimed ? createStopwatch() : null;
}

/** What was granted to the run, if that was said when it was started or resumed. */
function grantedIn({ past, begin }: Drive): Granted | undefined {
  const first = "type" in begin ? begin : begin.event;
  if ("spending" in first) return first.spending;
  const given = past.findLast(({ event }) => "spending" in event)?.event;
  return given !== undefined && "spending" in given ? given.spending : undefined;
}

/** Of the flow that the run has adopted last. */
function currentLimits({ flow, past, adopted = {} }: Drive): Granted {
  if (Object.keys(adopted).length === 0) return flow.limits;
  return past.reduce((held, { event }) => flowFrom(held, event, adopted), flow).limits;
}

/** The time that is left of what the run may be driven, and the event that ends it then; null: there is no limit. */
function wallOf(options: Drive): { readonly left: number; readonly event: TimeUp } | null {
  const { past } = options;
  const { wallMs } = grantedIn(options) ?? currentLimits(options);
  if (wallMs === undefined) return null;
  return { left: wallMs - drivenMs(past), event: outOfTime({ of: "run", step: "" }, wallMs) };
}

/** `stopped`: what ends the run when the signal aborts, where it is not only interrupted. */
async function driveOn(
  options: Drive,
  act: typeof perform = perform,
  stopped: () => TimeUp | null = () => null,
): Promise<State> {
  const { flow: began, adopted, ports, handle, past, begin: first, signal, wishes = {} } = options;
  const { recall, observe, wantsDeeds = false, from, talk = createTalk(ports), parkMs } = options;
  /** What ends a wait, besides what stops the run. */
  const rests = [wishes.pause, wishes.yield].filter((one) => one !== undefined);
  const waits = createWaits(ports.clock, parkMs, wishes.yield !== undefined);
  let flow = began;
  let state = from ?? EMPTY_STATE;
  let seq = from === undefined ? 0 : past.length;
  for (const entry of from === undefined ? past : []) {
    flow = flowFrom(flow, entry.event, adopted);
    talk.recall(flow, state, entry.event);
    const deeds: Deed[] | null = wantsDeeds ? [] : null;
    state = stateAfter(flow, state, entry.event, deeds);
    ({ seq } = entry);
    recall?.(entry, state, deeds ?? NO_DEEDS);
  }

  const movedAt = createStamp(ports.clock, "at" in first ? first.at : null);

  /**
   * What an event would lead to. The end of a run is written together with what led to it, unless others must stop first
   * or something is due before.
   */
  const draft = (event: Event, alone = true, tree: Tree | null = null): Draft => {
    const deeds: Deed[] | null = wantsDeeds ? [] : null;
    const next = stateAfter(flow, state, event, deeds);
    const at = ports.clock.now();
    const moved = movedAt(at);
    const plain = entryOf(seq + 1, at, event, next);
    const made = tree === null ? plain : { ...plain, tree };
    const entry = moved === 0 ? made : { ...made, moved };
    const first = next.pending[0];
    if (first?.type !== "end" || !alone) return { entries: [entry], next, after: next, deeds };
    const ended: Event = { type: "run.ended", verdict: first.verdict };
    return {
      entries: [entry, { seq: seq + 2, at, event: ended }],
      next,
      after: stateAfter(flow, next, ended),
      deeds,
    };
  };

  /** It is written: now it counts. */
  const believe = ({ entries, next, after, deeds }: Draft): void => {
    const entry = entries[0];
    const ending = entries[1];
    seq += entries.length;
    state = after;
    if (entry === undefined) return;
    waits.note(entry.event);
    talk.heard(flow, entry.event);
    observe?.(entry, next, deeds ?? NO_DEEDS);
    if (ending !== undefined) observe?.(ending, after, NO_DEEDS);
  };

  const commit = async (event: Event, alone = true): Promise<void> => {
    const drafted = draft(event, alone, mayChangeFiles(flow, event, ports) ? await ports.snapshot!() : null);
    await handle.append(drafted.entries);
    believe(drafted);
  };

  if (from === undefined && "type" in first) await commit(first);
  else if (from === undefined && "event" in first) {
    const deeds: Deed[] = [];
    state = stateAfter(flow, state, first.event, deeds);
    ({ seq } = first);
    observe?.(first, state, deeds);
  }
  let isUndone = false;
  while (state.pending.length > 0 && !signal.aborted && !isPausing() && !isYielding()) {
    const due = state.pending[0];
    if (due?.type === "act") {
      isUndone = ports.act !== undefined && !(await ports.act(due, commit));
      if (isUndone) break;
      state = attended(state);
      if (isYielding()) break;
    }
    const only = state.pending[0];
    if (state.pending.length > 1) await driveSiblings();
    else if (only?.type === "end") await commit({ type: "run.ended", verdict: only.verdict });
    else {
      const command = only as StepCommand;
      waits.begin(command);
      const event = await act(flow, state, command, ports, talk, signalFor(command, signal));
      if (isCutOff(command) && !isWhole(event)) {
        await commitCut(event);
        break;
      }
      const drafted = draft(event, true, mayChangeFiles(flow, event, ports) ? await ports.snapshot!() : null);
      const stored = handle.append(drafted.entries);
      if (stored !== STORED) await stored;
      believe(drafted);
    }
  }
  const limited = signal.aborted && state.verdict === null ? stopped() : null;
  if (limited !== null) await endWith(limited);
  else if (!signal.aborted && isPausing()) await endWith({ type: "run.paused" }, false);
  else if (signal.aborted && state.verdict === null) await recordStop();
  else if (!isUndone && state.pending.length > 0 && isYielding()) await recordYield();
  return state;

  /** How long what was under way went on is known only here. A stop counts also where it cannot be recorded. */
  async function recordStop(): Promise<void> {
    const at = state.lanes.map(({ step }) => step);
    const isWished = wishes.stop?.aborted === true;
    const stopped = commit({ type: "run.stopped", ...(!isWished && { by: "signal" }), at });
    await (isWished ? stopped : stopped.catch(() => undefined));
  }

  /** What a stopped query gave is not recorded, only what it cost. */
  async function commitCut(event: Event): Promise<void> {
    const usage = spentBy(event);
    if (usage === undefined || event.type !== "step.answered") return;
    const { step, visit } = event;
    await commit({ type: "step.cut", step, visit, usage }, false);
  }

  /** A run that is over, or is about to be, is not paused any more. */
  function isPausing(): boolean {
    return wishes.pause?.aborted === true && (state.verdict === null || state.verdict.outcome === "waiting");
  }

  /** A run whose end is decided comes to it. */
  function isYielding(): boolean {
    return state.verdict === null && (wishes.yield?.aborted === true || waits.isLong(state.pending));
  }

  async function recordYield(): Promise<void> {
    const open = waits.open(state.pending);
    await commit({ type: "run.yielded", ...(open.length > 0 && { waits: open }) });
  }

  /** What is due outside stays due: the run goes on when it is resumed. */
  async function endWith(event: Event, alone = true): Promise<void> {
    await commit(event, alone);
    const { verdict, pending } = state;
    if (verdict !== null && pending.length > 0) await commit({ type: "run.ended", verdict });
  }

  function signalFor({ type }: StepCommand, stop: AbortSignal): AbortSignal {
    return rests.length > 0 && isIdle(type) ? AbortSignal.any([stop, ...rests]) : stop;
  }

  function isCutOff({ type }: StepCommand): boolean {
    return signal.aborted || (isIdle(type) && rests.some(({ aborted }) => aborted));
  }

  /** Several lanes at once: each is committed as it comes in. A lane that is given up is stopped and waited for. */
  async function driveSiblings(): Promise<void> {
    const running = new Map<string, Running>();
    try {
      for (;;) {
        // What becomes due on the way is done when they have come to rest.
        const pending = besidesAct(state);
        if (pending.length <= 1 && running.size === 0) return;
        const wanted = new Map(
          (pending as readonly StepCommand[]).map((command) => [visitKey(command), command]),
        );
        const given = [...running].filter(([key]) => state.verdict !== null || !wanted.has(key));
        await giveUp(running, given);
        if (state.verdict !== null || signal.aborted) return;
        if (waits.isLong(state.pending)) return;
        for (const [key, command] of isPausing() || isYielding() ? [] : wanted)
          if (!running.has(key)) running.set(key, begin(key, command));
        if (running.size === 0) return;
        const { key, event, command } = await Promise.race([...running.values()].map(({ done }) => done));
        running.delete(key);
        if (!isCutOff(command) || isWhole(event)) await commit(event, running.size === 0);
        else await commitCut(event);
      }
    } finally {
      await giveUp(running, [...running]);
    }
  }

  function begin(key: string, command: StepCommand): Running {
    const stop = new AbortController();
    waits.begin(command);
    const both = signalFor(command, AbortSignal.any([signal, stop.signal]));
    const done = act(flow, state, command, ports, talk, both).then((event) => ({ key, event, command }));
    return { stop, done };
  }

  /** What they still do is nobody's any more; but nobody goes on before they have stopped, or had the time to. */
  async function giveUp(
    running: Map<string, Running>,
    given: readonly (readonly [string, Running])[],
  ): Promise<void> {
    if (given.length === 0) return;
    const still = new Set<string>();
    const came: Event[] = [];
    for (const [key, { stop, done }] of given) {
      running.delete(key);
      still.add(key);
      const settle = () => void still.delete(key);
      done.then(({ event }) => came.push(event)).then(settle, settle);
      stop.abort();
    }
    const over = new AbortController();
    const stopped = Promise.allSettled(given.map(([, { done }]) => done));
    const { sleep, alarm = sleep } = ports.clock;
    await Promise.race([stopped, alarm(GRACE_MS, over.signal)]);
    over.abort();
    // One more turn of the loop for what has settled in this very moment.
    await Promise.resolve();
    for (const event of came) await commitCut(event);
    if (still.size > 0) await commit({ type: "run.left", still: [...still] }, false);
  }
}

/** How long those that were told to stop are waited for. */
const GRACE_MS = 5000;

type Running = {
  readonly stop: AbortController;
  readonly done: Promise<{ readonly key: string; readonly event: Event; readonly command: StepCommand }>;
};

/** Whether the files that travel with the run may be others after it. A model that is asked for one response changes none. */
function mayChangeFiles(flow: Flow, event: Event, { snapshot, backend }: Ports): boolean {
  if (snapshot === undefined) return false;
  switch (event.type) {
    case "step.called":
    case "step.checked":
    case "step.hooked":
    case "effect.applied":
      return true;
    case "step.answered":
      return backend.turn === undefined || flow.steps[event.step]?.by.kind === "command";
    default:
      return false;
  }
}

/** Waiting is nothing that has to be finished: a question is open just the same when the run goes on. */
function isIdle(type: StepCommand["type"]): boolean {
  return type === "question" || type === "wait";
}

type Draft = {
  readonly entries: readonly Entry[];
  readonly next: State;
  readonly after: State;
  readonly deeds: readonly Deed[] | null;
};

/** Nearly every entry has a decision and no fork, or neither. */
function entryOf(seq: number, at: number, event: Event, next: State): Entry {
  if (next.fork !== null) return { seq, at, event, ...recordedWith(next) };
  return next.settled === null ? { seq, at, event } : { seq, at, event, led: next.settled };
}

/** The state a journal tells of. */
export function fold(flow: Prepared, entries: readonly Entry[], adopted?: PreparedFlows): State {
  let state = EMPTY_STATE;
  let held = flow;
  for (const { event } of entries) {
    held = flowFrom(held, event, adopted);
    state = stateAfter(held, state, event);
  }
  return state;
}
