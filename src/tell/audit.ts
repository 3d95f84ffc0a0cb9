/**
 * What a run of stages did, in the words of their life: phases, outcomes, grants, transitions. A projection of the
 * journal and nothing else: whatever it tells can be told again from the same entries.
 */
import type { CallResult, Entry, Event, Led } from "../flow/event.ts";
import { flowFrom } from "../flow/adopted.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import { canonicalJson, own, type Json, type JsonObject } from "../flow/json.ts";
import { decide } from "../engine/decide/decide.ts";
import { executionId } from "../engine/decide/stage-lane.ts";
import { EMPTY_STATE, type Fork, type Lane, type State } from "../engine/decide/state.ts";

export type AuditRecord = { readonly at: number; readonly name: string; readonly about: JsonObject };

/** `entries` from the first one on. */
export function audit(began: Flow, entries: readonly Entry[], adopted?: Flows): readonly AuditRecord[] {
  const records: AuditRecord[] = [];
  let flow = began;
  let state = EMPTY_STATE;
  for (const entry of entries) {
    flow = flowFrom(flow, entry.event, adopted);
    const after = decide(flow, state, entry.event);
    for (const [name, about] of recordsOf({ flow, before: state, after, entry })) {
      records.push({ at: entry.at, name, about });
    }
    state = after;
  }
  return records;
}

type Told = readonly [name: string, about: JsonObject];
export type Moment = {
  readonly flow: Flow;
  readonly before: State;
  readonly after: State;
  readonly entry: Entry;
};

/** What one entry tells. */
export function* recordsOf(moment: Moment): Generator<Told> {
  const { flow, before, after, entry } = moment;
  const { event, led } = entry;
  if (event.type === "run.started") yield ["SMAttached", { smId: flow.agent, resumed: false }];
  if (event.type === "run.resumed") yield ["SMAttached", { smId: flow.agent, resumed: true }];
  if ("step" in event) yield* happenings(moment, event);
  for (const lane of before.lanes) {
    const now = after.lanes.find((other) => isSame(other, lane));
    if (now !== undefined) yield* phases(before, lane, now);
  }
  if (led !== undefined) yield* settled(moment, led);
  yield* groupFailed(moment);
  // What a resumed run goes on with had begun before.
  const known = [...before.lanes, ...before.halted];
  for (const lane of after.lanes) {
    if (!known.some((other) => isSame(other, lane))) yield* begun(before, after, lane);
  }
  if (event.type === "run.ended") yield ["SMDetached", { ...event.verdict }];
}

// What the newest event says of the visit it belongs to.

function* happenings({ before, after }: Moment, event: Event & { readonly step: string }): Generator<Told> {
  const lane = before.lanes.find(
    (other) => other.step === event.step && "visit" in event && other.visit === event.visit,
  );
  if (lane === undefined || lane.stage === null) return;
  const now = after.lanes.find((other) => isSame(other, lane));
  const at = { stageExecutionId: executionId(before, lane), attempt: lane.stage.tries.length };
  switch (event.type) {
    case "step.answered":
      if (event.reply.kind === "unaskable") {
        yield [
          "StageInitFailed",
          { ...at, stageId: lane.step, code: event.reply.code, message: event.reply.why },
        ];
      }
      if (event.reply.kind === "said") yield* answer(lane, now, at);
      return;
    case "step.called":
      for (const result of event.results) yield* invocation(lane, result, at);
      return;
    case "step.hooked":
      if (event.result.kind !== "absent") yield ["StageHook", { ...at, hook: event.hook, ...event.result }];
      return;
    case "step.told":
      yield [
        "InteractionAnswered",
        { ...at, answer: event.answer, ...(event.by !== undefined && { by: event.by }) },
      ];
      return;
    case "step.asked": {
      const { id, about, text, choices } = event.question;
      yield ["InteractionRaised", { ...at, id, kind: about, prompt: text, choices }];
      return;
    }
    case "step.suspended":
      if (event.id !== undefined) return;
      yield ["InteractionRaised", { ...at, code: event.code, why: event.why }];
      return;
    case "step.checked":
      for (const { name, ok, summary } of event.results)
        yield ["StageCheck", { ...at, check: name, ok, summary }];
      return;
    default:
  }
}

/** What came of a response, read from how the conversation goes on. */
function* answer(lane: Lane, now: Lane | undefined, at: JsonObject): Generator<Told> {
  const parseError = now?.stage?.tries.at(-1)?.parseError;
  const isNew = parseError !== lane.stage?.tries.at(-1)?.parseError || now?.turn !== lane.turn;
  const says = now?.command.type === "ask" ? now.say : [];
  if (says.some((say) => say.kind === "steer")) yield ["StageSteered", at];
  const results = says.flatMap((say) => (say.kind === "results" ? say.results : []));
  if (results.some(({ denied }) => denied !== undefined))
    yield ["StageBatchRejected", { ...at, calls: results.length }];
  else if (parseError !== undefined && isNew && results.length > 0)
    yield ["StageParseError", { ...at, parseError }];
}

function* invocation(lane: Lane, result: CallResult, at: JsonObject): Generator<Told> {
  const { id, name, ok, denied, grant, content } = result;
  const call = { ...at, toolCallId: id, toolName: name };
  const command = lane.command.type === "call" ? lane.command : null;
  const input = command?.calls.find((one) => one.id === id)?.input ?? {};
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
const [GATE, ACT, ASSERT, EXIT, NEXT] = [2, 3, 4, 5, 6] as const;

function phaseOf({ stage, command }: Lane): number {
  if (stage === null) return 0;
  if (stage.phase === "setup") return command.type === "hook" ? 0 : command.type === "check" ? GATE : ACT;
  return { gate: GATE, act: ACT, assert: ASSERT, exit: EXIT, next: NEXT }[stage.phase];
}

/** The phases after `from` on the way to `to`. A stage that was not let in by its gate has neither Act nor Assert. */
function wayTo(from: number, to: number): readonly number[] {
  const between = Array.from({ length: to - from }, (_, place) => from + 1 + place);
  return from <= GATE && to >= EXIT ? between.filter((phase) => phase >= EXIT) : between;
}

function* begun(before: State, state: State, lane: Lane): Generator<Told> {
  if (lane.stage === null) return;
  const about = aboutOf(state, lane);
  // Siblings and their join are one turn; it begins with the first of them and ends with the join.
  const isJoin = before.fork !== null && state.fork === null;
  if (state.fork === null ? !isJoin : state.fork.steps[0] === lane.step) yield ["SessionTurnStart", about];
  yield ["StageExecutionSpanStart", about];
  for (let phase = 0; phase <= phaseOf(lane); phase++) {
    yield ["StagePreFired", { phase: PHASES[phase]!, ...about }];
    if (phase < phaseOf(lane)) yield ["StagePostFired", { phase: PHASES[phase]!, ...about }];
  }
}

function* phases(state: State, lane: Lane, now: Lane): Generator<Told> {
  if (lane.stage === null || now.stage === null) return;
  const [from, to] = [phaseOf(lane), phaseOf(now)];
  const isRetried = now.stage.tries.length > lane.stage.tries.length;
  if (from === to && !isRetried) return;
  const [then, about] = [aboutOf(state, lane), aboutOf(state, now)];
  yield ["StagePostFired", { phase: PHASES[from]!, ...then }];
  if (from === ACT && now.stage.tries[lane.stage.tries.length - 1]?.capHit === true)
    yield ["StageCapHit", then];
  if (isRetried) {
    // A cap that nobody has to be asked about is judged at once.
    if (from === ACT) {
      yield ["StagePreFired", { phase: PHASES[ASSERT], ...then }];
      yield ["StagePostFired", { phase: PHASES[ASSERT], ...then }];
    }
    yield* asserted(state, now);
    yield ["StagePreFired", { phase: PHASES[ACT], ...about }];
    return;
  }
  if (from === ASSERT) yield* asserted(state, now);
  for (const phase of wayTo(from, to)) {
    yield ["StagePreFired", { phase: PHASES[phase]!, ...about }];
    if (phase < to) yield ["StagePostFired", { phase: PHASES[phase]!, ...about }];
  }
}

/** Of the try that was judged last. */
function* asserted(state: State, lane: Lane): Generator<Told> {
  const judged = lane.stage?.tries.findLast(({ verdict }) => verdict !== undefined);
  if (judged === undefined) return;
  const { index, verdict = "", reason = "", capHit } = judged;
  const stageExecutionId = executionId(state, lane);
  yield ["StageAssertOutcome", { stageExecutionId, attempt: index, verdict, reason, capHit }];
}

/** The visit is over. What it left behind tells how it was judged, also where nobody had to be asked for that. */
function* settled({ before, after, entry }: Moment, led: Led): Generator<Told> {
  const lane = before.lanes.find((other) => other.step === led.step && other.visit === led.visit);
  if (lane === undefined || lane.stage === null) return;
  const about = aboutOf(before, lane);
  const result = own(after.handoff, led.step);
  const isOwn = result !== undefined && own(result, "stageExecutionId") === executionId(before, lane);
  const from = phaseOf(lane);
  yield ["StagePostFired", { phase: PHASES[from]!, ...about }];
  if (isOwn) {
    const { parsed, ...told } = result;
    const { verdict = "", reason = "", capHit = false, attemptCount = 0 } = told;
    const { stageExecutionId = "" } = about;
    const isThere = parsed !== undefined;
    const outcome: Told = [
      "StageAssertOutcome",
      { stageExecutionId, attempt: attemptCount, verdict, reason, capHit, parsed: isThere },
    ];
    if (from === ACT && capHit === true) yield ["StageCapHit", about];
    if (from === ASSERT) yield outcome;
    for (const phase of isBroken(entry.event) ? [] : wayTo(from, verdict === "fail" ? EXIT : NEXT)) {
      yield ["StagePreFired", { phase: PHASES[phase]!, ...about }];
      yield ["StagePostFired", { phase: PHASES[phase]!, ...about }];
      if (phase === ASSERT) yield outcome;
    }
    yield ["StageExited", told];
  }
  const outcome = led.label === "ok" || led.label === "skip" ? "ok" : "failed";
  yield ["StageExecution", { stageId: led.step, outcome, capHit: isOwn && own(result, "capHit") === true }];
  if (entry.event.type !== "run.ended")
    yield ["SMTransition", { from: led.step, to: led.to, nextKind: kindOf(after, led) }];
  if (before.fork === null || after.verdict !== null) yield ["SessionTurnEnd", about];
}

/** The stage did not come to its end: it could not begin, or its code failed. */
function isBroken(event: Event): boolean {
  if (event.type === "step.answered") return event.reply.kind !== "said";
  return event.type === "step.hooked" && event.result.kind === "threw";
}

/** A sibling took its group with it: which one, and how the others stood. */
function* groupFailed({ before, after, entry }: Moment): Generator<Told> {
  const { fork } = before;
  const { verdict } = after;
  if (fork === null || verdict?.code !== "ParallelSiblingFailure" || verdict.step === null) return;
  if (entry.event.type === "run.ended") return;
  const failed = verdict.step;
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
      cause: verdict.reason,
    },
  ];
}

function kindOf({ fork }: State, { to }: Led): string {
  if (to === null) return "terminate";
  return fork === null ? "sequential" : "parallel";
}

function aboutOf(state: State, lane: Lane): JsonObject {
  const about: { [key: string]: Json } = {
    stageId: lane.step,
    stageExecutionId: executionId(state, lane),
    attempt: lane.stage?.tries.length ?? 1,
  };
  if (state.fork !== null) about.parentCompoundTurnId = compoundTurn(state.run, state.fork);
  return about;
}

function compoundTurn(run: string, { from }: Fork): string {
  return `${run}:${from.step}:compound:${from.visit}`;
}

function isSame(a: Lane, b: Lane): boolean {
  return a.step === b.step && a.visit === b.visit;
}
