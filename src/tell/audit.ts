/**
 * What a run of stages did, in the words of their life: phases, outcomes, grants, transitions. A table over the deeds of
 * its journal and nothing else: whatever it reports can be reported again from the same entries.
 */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { laneIn, type AtVisit, type Deed, type Phase } from "../flow/deed.ts";
import type { Call, CallResult, Entry, Event, Led } from "../flow/event.ts";
import { canonicalJson, own, type Json, type JsonObject } from "../flow/json.ts";
import type { Verdict } from "../flow/verdict.ts";
import { executionId } from "../flow/lifecycle.ts";
import type { Fork, State } from "../engine/decide/state.ts";
import { phaseOf } from "../engine/decide/visit.ts";
import { deedsOf, story, type Moment } from "../story/story.ts";

export type AuditRecord = { readonly at: number; readonly name: string; readonly about: JsonObject };

/** `entries` from the first one on. */
export function audit(
  began: Prepared,
  entries: readonly Entry[],
  adopted?: PreparedFlows,
): readonly AuditRecord[] {
  return [...story(began, entries, adopted)].flatMap(auditRecords);
}

export function auditRecords(moment: Moment): readonly AuditRecord[] {
  const { at } = moment.entry;
  return Array.from(recordsOf(moment), ([name, about]) => ({ at, name, about }));
}

type Told = readonly [name: string, about: JsonObject];

/** What one entry tells. */
export function* recordsOf(moment: Moment): Generator<Told> {
  const { flow, entry, deeds } = moment;
  const { event } = entry;
  if (event.type === "run.started") yield ["SMAttached", { smId: flow.agent, resumed: false }];
  if (event.type === "run.resumed") yield ["SMAttached", { smId: flow.agent, resumed: true }];
  if ("visit" in event) yield* happened(moment, event);
  for (const deed of deeds) yield* done(moment, deed);
  if (event.type === "run.ended") yield ["SMDetached", { ...event.verdict }];
}

/** What the newest event says of the visit it belongs to. */
function* happened(moment: Moment, event: Extract<Event, AtVisit>): Generator<Told> {
  const lane = laneIn(moment.before, event);
  if (lane === undefined || lane.life === null) return;
  const at = { stageExecutionId: executionId(moment.before.run, lane), attempt: lane.life.tries.length };
  switch (event.type) {
    case "step.answered": {
      if (event.reply.kind !== "unaskable") return;
      const { code, why: message } = event.reply;
      yield ["StageInitFailed", { ...at, stageId: lane.step, code, message }];
      return;
    }
    case "step.hooked":
      if (event.result.kind !== "absent") yield ["StageHook", { ...at, hook: event.hook, ...event.result }];
      return;
    case "step.told": {
      const { answer, by } = event;
      yield ["InteractionAnswered", { ...at, answer, ...(by !== undefined && { by }) }];
      return;
    }
    case "step.asked": {
      const { id, about, text, choices } = event.question;
      yield ["InteractionRaised", { ...at, id, kind: about, prompt: text, choices }];
      return;
    }
    case "step.suspended":
      if (event.id === undefined) yield ["InteractionRaised", { ...at, code: event.code, why: event.why }];
      return;
    default:
  }
}

function* done(moment: Moment, deed: Deed): Generator<Told> {
  const { before, after } = moment;
  switch (deed.kind) {
    case "sent-back": {
      const now = laneIn(after, deed);
      if (now === undefined || now.life === null || now.command.type !== "ask") return;
      const at = atOf(before, deed);
      const { why, errors, calls } = deed;
      if (why === "silent") yield ["StageSteered", at];
      if (why === "batch") yield ["StageBatchRejected", { ...at, calls }];
      const isSame = now.life.tries.length === at.attempt;
      if (why === "misfit" && calls > 0 && isSame)
        yield ["StageParseError", { ...at, parseError: errors.join("; ") }];
      return;
    }
    case "called":
      if (laneIn(before, deed)?.life != null)
        for (const result of deed.results) yield* invocation(deed.calls, result, atOf(before, deed));
      return;
    case "checked":
      if (laneIn(before, deed)?.life != null)
        for (const { name, ok, summary } of deed.results)
          yield ["StageCheck", { ...atOf(before, deed), check: name, ok, summary }];
      return;
    case "phase":
      yield* deed.from === null ? began(moment, deed) : phase(moment, deed, deed.from);
      return;
    case "settled":
      yield* settled(moment, deed.led);
      return;
    case "ended":
      yield* groupFailed(moment, deed.verdict);
      return;
    default:
  }
}

function* invocation(calls: readonly Call[], result: CallResult, at: JsonObject): Generator<Told> {
  const { id, name, ok, denied, grant, content } = result;
  const call = { ...at, toolCallId: id, toolName: name };
  const input = calls.find((one) => one.id === id)?.input ?? {};
  const source =
    grant === undefined
      ? denied === undefined
        ? "sm-envelope"
        : "gate"
      : grant.by === "hook"
        ? "sm-grant-token"
        : grant.by;
  yield ["ToolInvocationProposed", { ...call, input: canonicalJson(input).slice(0, 1000) }];
  if (grant?.decision === "approve")
    yield ["GrantIssued", { ...call, argsDigest: grant.argsDigest, by: grant.by }];
  yield ["Approval", { ...call, decision: denied === undefined ? "approve" : "deny", source }];
  if (grant?.decision === "approve") yield ["GrantConsumed", { ...call, argsDigest: grant.argsDigest }];
  if (denied !== undefined)
    yield ["ToolInvocationCancelled", { ...call, reason: "approval-denied", why: denied }];
  else
    yield [
      ok ? "ToolInvocationSucceeded" : "ToolInvocationFailed",
      { ...call, content: content.slice(0, 200) },
    ];
}

// The phases of a visit, those included that have nothing to do and are over at once.

const PHASES = ["Setup", "Init", "CheckGate", "Act", "Assert", "Exit", "Next"] as const;
const PLACES: { readonly [phase in Phase]: number } = {
  setup: 0,
  gate: 2,
  act: 3,
  assert: 4,
  exit: 5,
  next: 6,
};
type PhaseDeed = Deed & { readonly kind: "phase" };

function* began(moment: Moment, deed: PhaseDeed): Generator<Told> {
  const { before, after } = moment;
  if (laneIn(after, deed) === undefined) return;
  const { fork } = after;
  const about = aboutOf(after, deed);
  // Siblings and their join are one turn; it begins with the first of them and ends with the join.
  const isJoin = before.fork !== null && fork === null;
  if (fork === null ? !isJoin : fork.steps[0] === deed.step) yield ["SessionTurnStart", about];
  yield ["StageExecutionSpanStart", about];
  yield* passed(-1, PLACES[deed.phase], about);
}

/** The phases after `from` up to `to`, which goes on. */
function* passed(from: number, to: number, about: JsonObject): Generator<Told> {
  for (let place = from + 1; place <= to; place++) {
    yield ["StagePreFired", { phase: PHASES[place]!, ...about }];
    if (place < to) yield ["StagePostFired", { phase: PHASES[place]!, ...about }];
  }
}

function* phase(moment: Moment, deed: PhaseDeed, left: Phase): Generator<Told> {
  const { before, after, entry } = moment;
  const settles = entry.led?.step === deed.step && entry.led.visit === deed.visit;
  if (!settles && laneIn(after, deed) === undefined) return;
  const [from, to] = [PLACES[left], PLACES[deed.phase]];
  const isRetry = to < from;
  const about = aboutOf(before, deed);
  const then = isRetry ? { ...about, attempt: deed.attempt - 1 } : about;
  yield ["StagePostFired", { phase: PHASES[from]!, ...then }];
  if (left === "act" && deed.capHit) yield ["StageCapHit", then];
  if (left === "assert")
    for (const { step, visit, attempt, verdict, reason, capHit } of deedsOf(moment, "judged")) {
      if (step !== deed.step || visit !== deed.visit) continue;
      const stageExecutionId = executionId(before.run, deed);
      const parsed = settles && { parsed: own(after.handoff, step)?.parsed !== undefined };
      yield ["StageAssertOutcome", { stageExecutionId, attempt, verdict, reason, capHit, ...parsed }];
    }
  // A stage that was not let in by its gate has neither Act nor Assert.
  const isBarred = from <= PLACES.gate && to >= PLACES.exit;
  yield* passed(isRetry ? to - 1 : isBarred ? PLACES.assert : from, to, about);
}

/** The visit is over. */
function* settled(moment: Moment, led: Led): Generator<Told> {
  const { before, after, entry } = moment;
  const lane = laneIn(before, led);
  if (lane === undefined || lane.life === null) return;
  const about = aboutOf(before, { ...led, attempt: lane.life.tries.length });
  const { stageExecutionId = "" } = about;
  const result = own(after.handoff, led.step);
  const isOwn = result !== undefined && own(result, "stageExecutionId") === stageExecutionId;
  const isIt = ({ step, visit }: PhaseDeed) => step === led.step && visit === led.visit;
  const last = deedsOf(moment, "phase").findLast(isIt)?.phase ?? phaseOf(lane);
  yield ["StagePostFired", { phase: PHASES[PLACES[last]]!, ...about }];
  if (isOwn) {
    const { parsed: _, ...told } = result;
    if (PLACES[last] < PLACES.exit) yield* brokenOff(entry.event, last, about, told);
    yield ["StageExited", told];
  }
  const outcome = led.label === "ok" || led.label === "skip" ? "ok" : "failed";
  yield ["StageExecution", { stageId: led.step, outcome, capHit: isOwn && own(result, "capHit") === true }];
  yield ["SMTransition", { from: led.step, to: led.to, nextKind: kindOf(after, led) }];
  if (before.fork === null || after.verdict !== null) yield ["SessionTurnEnd", about];
}

/** A stage that could not go on, beside siblings that do: it has a result, and leaves unless it could not begin or its code failed. */
function* brokenOff(event: Event, last: Phase, about: JsonObject, result: JsonObject): Generator<Told> {
  const { stageExecutionId = "" } = about;
  const { verdict = "", reason = "", capHit = false, attemptCount: attempt = 0 } = result;
  if (last === "assert")
    yield ["StageAssertOutcome", { stageExecutionId, attempt, verdict, reason, capHit, parsed: false }];
  const isBroken =
    event.type === "step.answered"
      ? event.reply.kind !== "said"
      : event.type === "step.hooked" && event.result.kind === "threw";
  if (isBroken) return;
  yield ["StagePreFired", { phase: "Exit", ...about }];
  yield ["StagePostFired", { phase: "Exit", ...about }];
}

/** A sibling took its group with it: which one, and how the others stood. */
function* groupFailed({ before, entry }: Moment, { code, step: failed, reason }: Verdict): Generator<Told> {
  const { fork } = before;
  if (fork === null || code !== "ParallelSiblingFailure" || failed === null) return;
  const ended = entry.led?.step;
  const status = (id: string) =>
    id === failed ? "failed" : fork.done.includes(id) || id === ended ? "done" : "stopped";
  yield [
    "ParallelSiblingFailure",
    {
      failedSiblingId: failed,
      failedSibling: failed,
      compoundTurnId: compoundTurn(before.run, fork),
      joinReady: false,
      siblings: Object.fromEntries(fork.steps.map((id) => [id, status(id)])),
      cause: reason,
    },
  ];
}

function kindOf({ fork }: State, { to }: Led): string {
  if (to === null) return "terminate";
  return fork === null ? "sequential" : "parallel";
}

/** The visit, and the attempt at it that was under way before. */
function atOf(before: State, at: AtVisit): { readonly stageExecutionId: string; readonly attempt: number } {
  return {
    stageExecutionId: executionId(before.run, at),
    attempt: laneIn(before, at)?.life?.tries.length ?? 1,
  };
}

function aboutOf({ run, fork }: State, at: AtVisit & { readonly attempt: number }): JsonObject {
  const about: { [key: string]: Json } = {
    stageId: at.step,
    stageExecutionId: executionId(run, at),
    attempt: at.attempt,
  };
  if (fork !== null) about.parentCompoundTurnId = compoundTurn(run, fork);
  return about;
}

function compoundTurn(run: string, { from }: Fork): string {
  return `${run}:${from.step}:compound:${from.visit}`;
}
