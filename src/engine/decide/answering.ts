/** What a response leads to: tools, another response, a label and its effect, a wait, or the end of the visit. */
import type { AnswerRead, Deed } from "../../flow/deed.ts";
import type { Call, CallResult, Fault, Reply } from "../../flow/event.ts";
import type { Say } from "../../flow/command.ts";
import { countedUsage } from "../../flow/figure.ts";
import type { Answer, Label, Step } from "../../flow/flow.ts";
import type { JsonObject } from "../../flow/json.ts";
import { follow, move, runChecks } from "./advance.ts";
import { lastTry, lifeOf } from "./attempt.ts";
import { attempted } from "./checking.ts";
import { readAnswer, readCarry, readReason } from "./gate.ts";
import { breakOff } from "./leaving.ts";
import { messages } from "../../flow/text/endings.ts";
import { spend } from "./spend.ts";
import { addUsage, withUsage, type Lane, type State } from "./state.ts";
import { listens } from "./stop.ts";
import { askAgain, doNext, enter, fail, halt, leave, led, type Here } from "./visit.ts";

export function answered(here: Here, reply: Reply): State {
  const { state, lane, step } = here;
  switch (reply.kind) {
    case "unaskable":
      return unaskable(here, reply.code, reply.why);
    case "fault": {
      return faulted({ ...here, state: withUsage(state, reply.fault.usage) }, reply.fault);
    }
    case "oversized":
      return breakOff(here, {
        code: "GATE_INTERPRETATION_ERROR",
        why: messages.oversized(step.id, reply.why),
      });
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
      if (here.lane.life !== null) return attempted(here, "ok", reading.payload, call);
      return settle(here, reading.label, reading.payload, text, reading.notes);
    case "misfit":
      if (here.lane.life === null) return sendBack(here, answer, output, reading.errors);
      read(here, output, null, null, reading.errors);
      sentBack(here, "misfit", reading.errors, call === null ? 0 : 1);
      return refusePayload(here, call, reading.errors);
    case "no-label": {
      const { step: id, visit } = here.lane;
      const { found } = reading;
      const nothing = { payload: output, label: null, by: null, errors: NO_ERRORS };
      here.deeds?.push({ kind: "read", step: id, visit, ...nothing, found });
      const allowed = step.decide.by === "field" ? [...step.decide.allow, ...step.decide.always] : [];
      const why = messages.badLabel(step.id, decidedField(step), found, allowed);
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
    return again({ ...here, lane: { ...lane, repairs: lane.repairs + 1 } }, [{ kind: "repair", errors }]);
  }
  if (miss.kind === "label") return settle(here, miss.label, {}, "", errors);
  if (miss.forgiveFirst && state.iterations === 1 && step.aside === undefined) {
    return move(here, null, { kind: "goto", step: step.id }, errors);
  }
  return fail(here, miss.code, messages.noLabel(state.iterations, step.id, decidedField(step)), {
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
  // The state was copied for this answer (see `answered`), and a copy of it is most of what an answer costs here.
  const state: { -readonly [key in keyof State]: State[key] } = here.state;
  const { iterations: iteration } = state;
  const reason = readReason(step, payload);
  state.last = { step: step.id, iteration, label, reason, text: text.slice(0, 1000), payload };
  if (step.by.kind === "command") state.failing = false;
  if (step.carry.length > 0) state.handoff = { ...state.handoff, [step.id]: carry.data };
  if (step.guard?.on !== label) return follow({ flow, deeds, state, lane, step }, label, payload, said);
  return runChecks(
    { ...here, state, lane: { ...lane, answer: { label, payload, notes: said } } },
    step.guard,
  );
}

/** One more response, while the attempt has any left. */
export function again(here: Here, say: readonly Say[]): State {
  const { state, lane, step } = here;
  if (lane.turn - (lane.life?.since ?? 0) < step.turns)
    return askAgain(state, { ...lane, turn: lane.turn + 1, say });
  if (lane.life !== null) return attempted({ ...here, lane: { ...lane, say } }, "cap", {}, null);
  return fail(here, "AGENT_TURN_LIMIT", messages.turnLimit(step.id, step.turns));
}

/** The payload does not fit: the model hears it in the place of a tool result. */
function refusePayload(here: Here, call: Call | null, errors: readonly string[]): State {
  const { life } = lifeOf(here);
  const tries = lastTry(life, { parseError: errors.join("; ") });
  const noted: Here = { ...here, lane: { ...here.lane, life: { ...life, tries } } };
  if (call === null) return again(noted, [{ kind: "repair", errors }]);
  const { id, name } = call;
  const content = [
    `${name} was not accepted; the payload does not fit its schema:`,
    ...errors.map((error) => `- ${error}`),
    `Call ${name} again with a payload that fits.`,
  ].join("\n");
  return again(noted, [{ kind: "results", results: [{ id, name, ok: false, content }] }]);
}

function remember(said: string, text: string): string {
  return said === "" ? text : `${said}\n${text}`.slice(-MOST_REMEMBERED);
}

const MOST_REMEMBERED = 256 * 1024;

/** Without its schema a step is tried once more, and ends the run the second time; any other cause ends it at once. */
function unaskable(here: Here, code: string, why: string): State {
  const { state, lane, step } = here;
  const { answer } = step;
  if (answer.kind !== "object" || answer.schema.kind !== "unresolved") return breakOff(here, { code, why });
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
/** A provider that wants more patience than this gets it when the run is resumed, not from a sleeping process. */
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
      { ...leave(here, state, lane, settled), failing: true },
      { step: step.id, origin: lane.origin },
    );
  }
  const passing = fault.kind === "rate-limit" || fault.kind === "overloaded" || fault.kind === "network";
  // The question was not asked: all workers together have asked enough for now.
  const isHeldBack = fault.kind === "rate-limit" && fault.code === "FLEET_RATE";
  if (!passing || (lane.faults >= RETRIES && !isHeldBack))
    return halt(here, fault.code ?? FAULT_CODES[fault.kind], fault.message);
  const { retryAfterMs } = fault;
  if (retryAfterMs !== undefined && retryAfterMs > LONGEST_ASKED_MS && !isHeldBack)
    return halt(here, FAULT_CODES[fault.kind], messages.tooLong(fault.message, retryAfterMs));
  const ms = retryAfterMs ?? Math.min(5000 * 2 ** lane.faults, LONGEST_WAIT_MS);
  const waiting: Lane = isHeldBack ? lane : { ...lane, faults: lane.faults + 1 };
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
