/**
 * The heart: a flow, a state and what happened give the next state, whose `pending` says what to do next, and the deeds
 * that led there. Pure. Starting, resuming, replaying and reporting are all folds of this one function.
 */
import type { Prepared } from "../schema/prepared.ts";
import type { AnswerRead, Deed } from "../../flow/deed.ts";
import { countedUsage } from "../../flow/figure.ts";
import type {
  Call,
  CallResult,
  CheckResult,
  Event,
  Fault,
  Led,
  Reply,
  Say,
  Usage,
} from "../../flow/event.ts";
import type { Answer, Guard, Label, Step, StepId } from "../../flow/flow.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import { readAnswer, readCarry, readReason } from "./gate.ts";
import { messages } from "./messages.ts";
import { follow, move, pendingAnswer, runChecks } from "./advance.ts";
import { answeredBy, asked, cutOff, park, waiting } from "./people.ts";
import { attended, withDue } from "./due.ts";
import { route } from "./route.ts";
import { askOn, asserted, completed, gateChecked, hooked, misfit } from "./stage.ts";
import { breakOff } from "./stage-exit.ts";
import { addUsage, EMPTY_STATE, type Lane, type State } from "./state.ts";
import { bounded, openBudget, reopened, spend, tell } from "./spend.ts";
import { listens } from "./stop.ts";
import { watched } from "./stuck.ts";
import {
  ask,
  askAgain,
  attemptAgain,
  checksRead,
  doNext,
  end,
  enter,
  fail,
  find,
  halt,
  haltAll,
  leave,
  led,
  paused,
  suspend,
  withLanes,
  type Deciding,
  type Here,
} from "./visit.ts";

export type Decided = { readonly state: State; readonly deeds: readonly Deed[] };

export function decide(flow: Prepared, state: State, event: Event): Decided {
  const deeds: Deed[] = [];
  return { state: stateAfter(flow, state, event, deeds), deeds };
}

/** The state alone, for folds that nothing reads the deeds of: those cost nothing there. */
export function stateAfter(flow: Prepared, state: State, event: Event, deeds: Deed[] | null = null): State {
  if (state.acts === undefined && event.type !== "run.started" && event.type !== "run.adopted")
    return inside({ flow, deeds }, state, event);
  const before = attended(state);
  return withDue(flow, before, event, inside({ flow, deeds }, before, event));
}

/** Whatever is due outside. */
function inside(deciding: Deciding, state: State, event: Event): State {
  const { flow } = deciding;
  const after = next(deciding, state, event);
  if (after.lanes.length === 0 && after.verdict === null && after.halted.length > 0)
    return waiting(deciding, after);
  const most = flow.settings.watch?.repeats;
  return bounded(deciding, state, most === undefined ? after : watched(deciding, most, state, event, after));
}

function next(deciding: Deciding, state: State, event: Event): State {
  const { flow, deeds } = deciding;
  switch (event.type) {
    case "run.started": {
      const { run, args, input, spending = null } = event;
      const budget = openBudget(flow, spending, null);
      const begun: State = { ...EMPTY_STATE, run, args, input, ctx: args, budget };
      return enter(deciding, begun, { step: flow.entry, origin: null });
    }
    case "run.resumed": {
      // The end was decided but not recorded: it still holds.
      if (state.pending[0]?.type === "end" && state.verdict?.code !== "PAUSED")
        return { ...state, settled: null };
      const lanes = state.halted.length === 0 ? state.lanes : [...state.halted, ...state.lanes];
      const { spending } = event;
      const budget =
        spending === undefined ? reopened(state.budget) : openBudget(flow, spending, state.budget);
      const back = withLanes({ ...state, budget, verdict: null, halted: [] }, lanes.map(attemptAgain), null);
      return state.verdict === null && event.fresh === undefined ? cutOff(deciding, back, state.lanes) : back;
    }
    case "step.answered":
      return answered(find(deciding, state, event), event.reply);
    case "step.called": {
      const here = find(deciding, state, event);
      const { step, visit, command } = here.lane;
      const { results } = event;
      const calls = command.type === "call" ? command.calls : [];
      deeds?.push({ kind: "called", step, visit, calls, results });
      return again(here, [{ kind: "results", results }]);
    }
    case "step.checked": {
      const here = find(deciding, state, event);
      if (here.lane.stage === null) return checked(here, event.results);
      const inGate = here.lane.stage.phase !== "assert";
      return inGate ? gateChecked(here, event.results) : asserted(here, event.results);
    }
    case "step.waited": {
      const here = find(deciding, state, event);
      const { command } = here.lane;
      const next = command.type === "wait" ? command.next : undefined;
      return next === undefined ? askAgain(here.state, here.lane) : doNext(here, next);
    }
    case "step.looked": {
      const here = find(deciding, state, event);
      const { label, payload, notes } = pendingAnswer(here);
      return follow(here, label, payload, notes, event.sights);
    }
    case "step.hooked":
      return hooked(find(deciding, state, event), event.hook, event.result);
    case "step.told":
      return answeredBy(find(deciding, state, event), event.answer, event.by ?? "terminal");
    case "step.asked":
      return asked(find(deciding, state, event), event.question, event.ruled);
    case "step.suspended": {
      const here = find(deciding, state, event);
      return event.id === undefined ? suspend(here, event.code, event.why) : park(here);
    }
    case "run.paused":
      return paused(deciding, state);
    case "run.limited": {
      const { why, of, limit, spent } = event;
      const { budget } = state;
      const known = limit === undefined || budget === null ? budget : { ...budget, reached: limit };
      if (limit !== undefined) deeds?.push({ kind: "limited", reached: limit });
      const stopped = withUsage({ ...state, settled: null, budget: known }, spent);
      return haltAll(deciding, stopped, "BUDGET_EXHAUSTED", why, of);
    }
    case "step.cut":
      return { ...withUsage(state, event.usage), settled: null };
    case "step.warned": {
      const { step, visit, limit, text } = event;
      deeds?.push({ kind: "noted", step, visit, limit });
      return tell({ ...state, settled: null }, find(deciding, state, event).lane, limit, text);
    }
    case "run.adopted": {
      const budget = openBudget(flow, state.budget?.granted ?? null, state.budget);
      return { ...state, settled: null, budget };
    }
    case "run.left":
    case "run.stopped":
    case "effect.intended":
    case "effect.held":
    case "effect.applied":
    case "effect.failed":
      return state.settled === null ? state : { ...state, settled: null };
    case "run.edited":
      return { ...state, settled: null, handoff: merged(state.handoff, event.handoff) };
    case "run.ended":
      return { ...state, lanes: [], pending: [], settled: null, verdict: event.verdict };
  }
}

function withUsage(state: State, usage: Usage | undefined): State {
  return usage === undefined ? state : { ...state, usage: addUsage(state.usage, countedUsage(usage)) };
}

function merged(handoff: State["handoff"], edited: State["handoff"]): State["handoff"] {
  const changed = Object.entries(edited).map(([step, data]) => [step, { ...own(handoff, step), ...data }]);
  return { ...handoff, ...Object.fromEntries(changed) };
}

// What an answer leads to.

function answered(here: Here, reply: Reply): State {
  const { state, lane, step } = here;
  switch (reply.kind) {
    case "unaskable":
      return unaskable(here, reply.code, reply.why);
    case "fault": {
      return faulted({ ...here, state: withUsage(state, reply.fault.usage) }, reply.fault);
    }
    case "oversized":
      return breakOff(here, "GATE_INTERPRETATION_ERROR", messages.oversized(step.id, reply.why));
    case "said": {
      const spent = countedUsage(reply.usage);
      const usage = addUsage(state.usage, spent);
      const budget = state.budget === null ? null : spend(state.budget, lane, spent);
      const calm = lane.faults === 0 ? lane : { ...lane, faults: 0 };
      // A whole query of an agent took several responses: they count like those that were asked for one by one.
      const more = spent.turns - 1;
      const counted = more > 0 ? { ...calm, turn: calm.turn + more } : calm;
      const heard = listens(here.flow.stop)
        ? { ...counted, said: remember(counted.said, reply.text) }
        : counted;
      const { flow, deeds } = here;
      return said({ flow, deeds, state: { ...state, usage, budget }, lane: heard, step }, reply);
    }
  }
}

function said(here: Here, reply: Reply & { kind: "said" }): State {
  const { answer, decide } = here.step;
  const { text, calls, output } = reply;
  if (reply.capped) return again(here, []);
  if (answer.kind === "object" && answer.channel.kind === "tool" && output === undefined) {
    const tool = answer.channel.name;
    const completion = calls.find((call) => call.name === tool);
    if (completion !== undefined && calls.length > 1) return refuseBatch(here, tool, calls);
    if (completion !== undefined) return accept(here, answer, completion.input, text, completion);
    if (calls.length === 0) {
      sentBack(here, "silent", NO_ERRORS, 0);
      return again(here, [{ kind: "steer", tool }]);
    }
  }
  if (calls.length > 0) {
    const { step, visit, turn } = here.lane;
    return doNext(here, { type: "call", step, visit, turn, attempt: 1, calls });
  }
  if (answer.kind === "text") {
    const label = decide.by === "const" ? decide.label : "done";
    read(here, output ?? null, label, "const", NO_ERRORS);
    return settle(here, label, output ?? {}, text, []);
  }
  if (output === undefined) return sendBack(here, answer, null, [messages.noObject]);
  return accept(here, answer, output, text);
}

type ObjectAnswer = Answer & { kind: "object" };

const NO_ERRORS: readonly string[] = [];

function read(
  { deeds, lane }: Here,
  payload: JsonObject | null,
  label: Label | null,
  by: AnswerRead["by"],
  errors: readonly string[],
): void {
  deeds?.push({ kind: "read", step: lane.step, visit: lane.visit, payload, label, by, errors });
}

function sentBack(
  { deeds, lane: { step, visit } }: Here,
  why: (Deed & { kind: "sent-back" })["why"],
  errors: readonly string[],
  calls: number,
): void {
  deeds?.push({ kind: "sent-back", step, visit, why, errors, calls });
}

/** `call`: the completion it came with. */
function accept(
  here: Here,
  answer: ObjectAnswer,
  output: JsonObject,
  text: string,
  call: Call | null = null,
): State {
  const { step } = here;
  const reading = readAnswer(step, answer, output);
  switch (reading.kind) {
    case "label":
      read(here, output, reading.label, reading.by, NO_ERRORS);
      if (step.stage !== undefined) return completed(here, reading.payload, call);
      return settle(here, reading.label, reading.payload, text, reading.notes);
    case "misfit":
      if (step.stage === undefined) return sendBack(here, answer, output, reading.errors);
      read(here, output, null, null, reading.errors);
      sentBack(here, "misfit", reading.errors, call === null ? 0 : 1);
      return misfit(here, call, reading.errors);
    case "no-label": {
      const { step: id, visit } = here.lane;
      const { found } = reading;
      const nothing = { payload: output, label: null, by: null, errors: NO_ERRORS };
      here.deeds?.push({ kind: "read", step: id, visit, ...nothing, found });
      const allowed = step.decide.by === "field" ? [...step.decide.allow, ...step.decide.always] : [];
      const why = messages.badIntent(step.id, decidedField(step), found, allowed);
      return fail(here, "GATE_INTERPRETATION_ERROR", why);
    }
  }
}

/** The completion tool beside other calls: nothing of the batch is run, and every call is answered. */
function refuseBatch(here: Here, tool: string, calls: readonly Call[]): State {
  const why = `${tool} must be the only tool call in its response; nothing of this response was run.`;
  const results: CallResult[] = calls.map(({ id, name }) => ({
    id,
    name,
    ok: false,
    content: why,
    denied: why,
  }));
  sentBack(here, "batch", NO_ERRORS, results.length);
  return again(here, [{ kind: "results", results }]);
}

/** One more response, within the bounds of the step. */
function again(here: Here, say: readonly Say[]): State {
  return here.step.stage === undefined ? ask(here, say) : askOn(here, say);
}

/** An answer that cannot be used: back to the model while the contract allows it, then what the contract says. */
function sendBack(
  here: Here,
  answer: ObjectAnswer,
  payload: JsonObject | null,
  errors: readonly string[],
): State {
  const { state, lane, step } = here;
  const { miss } = answer;
  const isLast = lane.repairs >= answer.repairs;
  const label = isLast && miss.kind === "label" ? miss.label : null;
  read(here, payload, label, label === null ? null : "miss", errors);
  if (!isLast) {
    sentBack(here, "misfit", errors, 0);
    return ask({ ...here, lane: { ...lane, repairs: lane.repairs + 1 } }, [{ kind: "repair", errors }]);
  }
  if (miss.kind === "label") return settle(here, miss.label, {}, "", errors);
  if (miss.forgiveFirst && state.iterations === 1 && step.aside === undefined) {
    return move(here, null, { kind: "goto", step: step.id }, errors);
  }
  return fail(here, miss.code, messages.noIntent(state.iterations, step.id, decidedField(step)), {
    notes: errors,
  });
}

/** A label was given: what it carries is kept, then come its checks, then its edge. */
function settle(
  here: Here,
  label: Label,
  payload: JsonObject,
  text: string,
  notes: readonly string[],
): State {
  const { flow, deeds, step, lane } = here;
  const carry = readCarry(step, payload);
  const said =
    carry.missing.length === 0 ? notes : [...notes, `handoff fields absent: ${carry.missing.join(", ")}`];
  const state: State = {
    ...here.state,
    last: {
      step: step.id,
      iteration: here.state.iterations,
      label,
      reason: readReason(step, payload),
      text: text.slice(0, 1000),
      payload,
    },
    mending: step.by.kind === "command" ? false : here.state.mending,
    handoff: step.carry.length === 0 ? here.state.handoff : { ...here.state.handoff, [step.id]: carry.data },
  };
  if (step.guard?.on !== label) return follow({ flow, deeds, state, lane, step }, label, payload, said);
  return runChecks(
    { ...here, state, lane: { ...lane, answer: { label, payload, notes: said } } },
    step.guard,
  );
}

// What comes of checks, of faults, and of a step that cannot be asked.

function checked(here: Here, results: readonly CheckResult[]): State {
  const { flow, state, step } = here;
  const answer = pendingAnswer(here);
  const { label, payload, over } = answer;
  const notes = [...answer.notes, ...results.flatMap(({ note }) => note ?? [])];
  const guard = over === undefined ? step.guard : flow.stopGuard;
  if (guard === undefined) throw new Error(`Step "${step.id}" asked for no checks`);
  const passed = (at: Here, said: readonly string[]) =>
    over === undefined
      ? follow(at, label, payload, said)
      : end(at, at.state, led(at, label, null, said), null, over, step.id);
  const failed = results.find((result) => !result.ok);
  checksRead(here, over === undefined ? "label" : "stop", guard, results, failed);
  if (failed === undefined) return passed({ ...here, state: { ...state, mending: false } }, notes);
  if (guard.onFailure === "skip" && failed.unrecoverable === undefined) {
    return passed(here, [...notes, `check "${failed.name}" failed and was skipped: ${failed.summary}`]);
  }
  return overturn(here, guard, failed, notes);
}

/** The label does not take effect: the run goes on where the guard says, and the model is told what failed. */
function overturn(here: Here, guard: Guard, failed: CheckResult, notes: readonly string[]): State {
  const { deeds, lane, step } = here;
  const { label, over } = pendingAnswer(here);
  const owner = over === undefined ? step.id : "*";
  const failures = (own(here.state.failures, owner) ?? 0) + 1;
  const state: State = {
    ...here.state,
    mending: true,
    failures: { ...here.state.failures, [owner]: failures },
  };
  const final = guard.onFailure === "abort" || failed.unrecoverable !== undefined;
  if (final || failures >= guard.maxFailures) {
    const why = final
      ? messages.checkAborts(step.id, failed.name, failed.summary)
      : messages.checksExhausted(step.id, failed.name, failures, failed.summary);
    deeds?.push({ kind: "overturned", step: lane.step, visit: lane.visit, failed, to: null });
    return fail({ ...here, state }, "AGENT_VALIDATION_ABORT", why, { label, notes, overturned: true });
  }
  const back = backFrom(here, guard);
  deeds?.push({ kind: "overturned", step: lane.step, visit: lane.visit, failed, to: back });
  const settled: Led = { ...led(here, label, back, notes), overturned: true };
  return enter(here, state, {
    leaving: lane,
    settled,
    step: back,
    origin: back === step.id ? lane.origin : step.id,
    say: { kind: "failed-check", guard: over === undefined ? step.id : null, result: failed },
  });
}

function backFrom(here: Here, { back }: Guard): StepId {
  const { flow, state, lane, step } = here;
  switch (back.kind) {
    case "goto":
      return back.step;
    case "caller": {
      const caller = lane.origin === null ? undefined : own(flow.steps, lane.origin);
      return caller?.kind === "work" ? caller.id : step.id;
    }
    case "onward": {
      const { label, payload } = pendingAnswer(here);
      const routed = route(step, label, payload, own(state.handoff, step.id) ?? {}, state.iterations, 0);
      return routed.kind === "move" && routed.move.kind === "goto" ? routed.move.step : step.id;
    }
    case "again":
      return step.id;
  }
}

export function remember(said: string, text: string): string {
  return said === "" ? text : `${said}\n${text}`.slice(-MOST_REMEMBERED);
}

const MOST_REMEMBERED = 256 * 1024;

/** Without its schema a step is tried once more, and ends the run the second time; any other cause ends it at once. */
function unaskable(here: Here, code: string, why: string): State {
  const { state, lane, step } = here;
  const { answer } = step;
  if (answer.kind !== "object" || answer.schema.kind !== "unresolved") return breakOff(here, code, why);
  if (lane.strikes > 0) {
    return fail(
      here,
      "FAILED_SCHEMA_RESOLUTION",
      messages.schemaUnresolved(step.id, answer.schema.name, why),
    );
  }
  const settled = led(here, null, step.id, [why]);
  return enter(here, state, { step: step.id, origin: lane.origin, strikes: 1, leaving: lane, settled });
}

const RETRIES = 4;
const LONGEST_WAIT_MS = 60_000;
/** A provider that wants more patience than this gets it from whoever resumes the run, not from a process that sleeps. */
const LONGEST_ASKED_MS = 5 * 60_000;
const FAULT_CODES = {
  auth: "BACKEND_UNAVAILABLE",
  "rate-limit": "AGENT_RATE_LIMIT",
  overloaded: "AGENT_RATE_LIMIT",
  network: "AGENT_QUERY_ERROR",
  "bad-request": "AGENT_QUERY_ERROR",
  process: "AGENT_QUERY_ERROR",
  script: "SCRIPT_MISMATCH",
  other: "AGENT_QUERY_ERROR",
} as const;

/** A failing command is another visit; a passing trouble of the model is waited out within the visit. */
function faulted(here: Here, fault: Fault): State {
  const { state, lane, step } = here;
  if (step.by.kind === "command") {
    const settled = led(here, null, step.id, [fault.message]);
    return enter(
      here,
      { ...leave(here, state, lane, settled), mending: true },
      { step: step.id, origin: lane.origin },
    );
  }
  const passing = fault.kind === "rate-limit" || fault.kind === "overloaded" || fault.kind === "network";
  if (!passing || lane.faults >= RETRIES)
    return halt(here, fault.code ?? FAULT_CODES[fault.kind], fault.message);
  const { retryAfterMs } = fault;
  if (retryAfterMs !== undefined && retryAfterMs > LONGEST_ASKED_MS)
    return halt(here, FAULT_CODES[fault.kind], messages.tooLong(fault.message, retryAfterMs));
  const ms = retryAfterMs ?? Math.min(5000 * 2 ** lane.faults, LONGEST_WAIT_MS);
  const waiting: Lane = { ...lane, faults: lane.faults + 1 };
  const retry = { next: waiting.faults + 1, of: RETRIES + 1 };
  here.deeds?.push({ kind: "waits", step: step.id, visit: lane.visit, ms, ...retry });
  return doNext(
    { ...here, lane: waiting },
    {
      type: "wait",
      step: step.id,
      visit: lane.visit,
      attempt: 1,
      ms,
      retry,
    },
  );
}

function decidedField(step: Step): string {
  return step.decide.by === "field" ? step.decide.path.join(".") : "an answer";
}
