/**
 * The heart: a flow, a state and what happened give the next state, whose `pending` says what to do next.
 * Pure. Starting, resuming, replaying and reporting are all folds of this one function.
 */
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
import type { Answer, Flow, Guard, Label, Step, StepId } from "../../flow/flow.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import { readAnswer, readCarry, readReason } from "./gate.ts";
import { messages } from "./messages.ts";
import { follow, move, pendingAnswer, runChecks } from "./advance.ts";
import { answeredBy, asked, cutOff, park, waiting } from "./people.ts";
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
  type Here,
} from "./visit.ts";

export function decide(flow: Flow, state: State, event: Event): State {
  const after = next(flow, state, event);
  if (after.lanes.length === 0 && after.verdict === null && after.halted.length > 0) return waiting(after);
  const most = flow.settings.watch?.repeats;
  return bounded(flow, state, most === undefined ? after : watched(most, state, event, after));
}

function next(flow: Flow, state: State, event: Event): State {
  switch (event.type) {
    case "run.started": {
      const { run, args, input, spending = null } = event;
      const budget = openBudget(flow, spending, null);
      const begun: State = { ...EMPTY_STATE, run, args, input, ctx: args, budget };
      return enter(flow, begun, { step: flow.entry, origin: null });
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
      return state.verdict === null && event.fresh === undefined ? cutOff(flow, back, state.lanes) : back;
    }
    case "step.answered":
      return answered(find(flow, state, event), event.reply);
    case "step.called":
      return again(find(flow, state, event), [{ kind: "results", results: event.results }]);
    case "step.checked": {
      const here = find(flow, state, event);
      if (here.lane.stage === null) return checked(here, event.results);
      const inGate = here.lane.stage.phase !== "assert";
      return inGate ? gateChecked(here, event.results) : asserted(here, event.results);
    }
    case "step.waited": {
      const here = find(flow, state, event);
      const { command } = here.lane;
      const next = command.type === "wait" ? command.next : undefined;
      return next === undefined ? askAgain(here.state, here.lane) : doNext(here, next);
    }
    case "step.looked": {
      const here = find(flow, state, event);
      const { label, payload, notes } = pendingAnswer(here);
      return follow(here, label, payload, notes, event.sights);
    }
    case "step.hooked":
      return hooked(find(flow, state, event), event.hook, event.result);
    case "step.told":
      return answeredBy(find(flow, state, event), event.answer, event.by ?? "terminal");
    case "step.asked":
      return asked(find(flow, state, event), event.question, event.ruled);
    case "step.suspended": {
      const here = find(flow, state, event);
      return event.id === undefined ? suspend(here, event.code, event.why) : park(here);
    }
    case "run.paused":
      return paused(state);
    case "run.limited": {
      const { why, of, limit, spent } = event;
      const { budget } = state;
      const known = limit === undefined || budget === null ? budget : { ...budget, reached: limit };
      return haltAll(withUsage({ ...state, budget: known }, spent), "BUDGET_EXHAUSTED", why, of);
    }
    case "step.cut":
      return { ...withUsage(state, event.usage), settled: null };
    case "step.warned":
      return tell({ ...state, settled: null }, find(flow, state, event).lane, event.limit, event.text);
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
      return said({ flow: here.flow, state: { ...state, usage, budget }, lane: heard, step }, reply);
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
    if (calls.length === 0) return again(here, [{ kind: "steer", tool }]);
  }
  if (calls.length > 0) {
    const { step, visit, turn } = here.lane;
    return doNext(here, { type: "call", step, visit, turn, attempt: 1, calls });
  }
  if (answer.kind === "text") {
    return settle(here, decide.by === "const" ? decide.label : "done", output ?? {}, text, []);
  }
  if (output === undefined) return sendBack(here, answer, [messages.noObject]);
  return accept(here, answer, output, text);
}

type ObjectAnswer = Answer & { kind: "object" };

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
      if (step.stage !== undefined) return completed(here, reading.payload, call);
      return settle(here, reading.label, reading.payload, text, reading.notes);
    case "misfit":
      if (step.stage !== undefined) return misfit(here, call, reading.errors);
      return sendBack(here, answer, reading.errors);
    case "no-label": {
      const allowed = step.decide.by === "field" ? [...step.decide.allow, ...step.decide.always] : [];
      const why = messages.badIntent(step.id, decidedField(step), reading.found, allowed);
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
  return again(here, [{ kind: "results", results }]);
}

/** One more response, within the bounds of the step. */
function again(here: Here, say: readonly Say[]): State {
  return here.step.stage === undefined ? ask(here, say) : askOn(here, say);
}

/** An answer that cannot be used: back to the model while the contract allows it, then what the contract says. */
function sendBack(here: Here, answer: ObjectAnswer, errors: readonly string[]): State {
  const { state, lane, step } = here;
  if (lane.repairs < answer.repairs) {
    return ask({ ...here, lane: { ...lane, repairs: lane.repairs + 1 } }, [{ kind: "repair", errors }]);
  }
  const { miss } = answer;
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
  const { step, lane } = here;
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
  if (step.guard?.on !== label) return follow({ flow: here.flow, state, lane, step }, label, payload, said);
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
      : end(at.state, led(at, label, null, said), null, over, step.id);
  const failed = results.find((result) => !result.ok);
  if (failed === undefined) return passed({ ...here, state: { ...state, mending: false } }, notes);
  if (guard.onFailure === "skip" && failed.unrecoverable === undefined) {
    return passed(here, [...notes, `check "${failed.name}" failed and was skipped: ${failed.summary}`]);
  }
  return overturn(here, guard, failed, notes);
}

/** The label does not take effect: the run goes on where the guard says, and the model is told what failed. */
function overturn(here: Here, guard: Guard, failed: CheckResult, notes: readonly string[]): State {
  const { flow, lane, step } = here;
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
    return fail({ ...here, state }, "AGENT_VALIDATION_ABORT", why, { label, notes, overturned: true });
  }
  const back = backFrom(here, guard);
  const settled: Led = { ...led(here, label, back, notes), overturned: true };
  return enter(flow, state, {
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
  const { flow, state, lane, step } = here;
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
  return enter(flow, state, { step: step.id, origin: lane.origin, strikes: 1, leaving: lane, settled });
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
  const { flow, state, lane, step } = here;
  if (step.by.kind === "command") {
    const settled = led(here, null, step.id, [fault.message]);
    return enter(
      flow,
      { ...leave(state, lane, settled), mending: true },
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
  return doNext(
    { ...here, lane: waiting },
    {
      type: "wait",
      step: step.id,
      visit: lane.visit,
      attempt: 1,
      ms,
      retry: { next: waiting.faults + 1, of: RETRIES + 1 },
    },
  );
}

function decidedField(step: Step): string {
  return step.decide.by === "field" ? step.decide.path.join(".") : "an answer";
}
