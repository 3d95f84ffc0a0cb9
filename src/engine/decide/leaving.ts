/** How a visit with a result is left: exit makes the result, next says where the run goes on. */
import type { PlainMove } from "../../flow/deed.ts";
import type { HookName } from "../../flow/event.ts";
import type { Carry, Label, StepId } from "../../flow/flow.ts";
import { own, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import { readNextPlan, visitResult, type VisitResult } from "../../flow/lifecycle.ts";
import { lifecycleEndings, messages, type Ending } from "../../flow/text/endings.ts";
import { edgeTaken, follow, join, move } from "./advance.ts";
import { inPhase, judged, lastTry, lifeOf, runHook } from "./attempt.ts";
import type { Lane, Life, State } from "./state.ts";
import { enter, fail, led, type Here } from "./visit.ts";

export function conclude(here: Here, verdict: VisitResult["verdict"], reason: string): State {
  const { life } = lifeOf(here);
  const { answer } = here.lane;
  const capHit = answer?.label === "cap";
  const attemptCount = attemptsMade(life);
  const said = reason === "" ? {} : { reason };
  const result = visitResult(here.state.run, here.lane, {
    verdict,
    ...said,
    ...(verdict !== "skip" && answer !== null && !capHit && { parsed: answer.payload }),
    capHit,
    attemptCount,
  });
  const tries = attemptCount === 0 ? life.tries : lastTry(life, { verdict, ...said });
  if (attemptCount > 0) judged(here, verdict, reason, capHit);
  return runHook(inPhase(here, "exit", { tries, result }), "exit", (left) => afterExit(left, undefined));
}

function attemptsMade({ phase, tries }: Life): number {
  return phase === "setup" || phase === "gate" ? 0 : tries.length;
}

/** The visit cannot go on. Where its siblings go on without it, that is its result; anywhere else it ends the run. */
export function breakOff(here: Here, { code, why }: Ending): State {
  const { state, lane } = here;
  if (lane.life === null || state.fork?.policy !== "independent") return fail(here, code, why);
  const attemptCount = attemptsMade(lane.life);
  const reason = `${code}: ${why}`;
  const result = visitResult(state.run, lane, { verdict: "fail", reason, capHit: false, attemptCount });
  const handoff = { ...state.handoff, [lane.step]: result };
  return join({ ...here, state: { ...state, handoff } }, "fail", []);
}

export function badHook(here: Here, hook: HookName, what: string): State {
  return breakOff(here, lifecycleEndings.badHook(here.step.id, hook, what));
}

/** What the visit leaves behind is kept, and the shared context with it; siblings leave only their results. */
export function afterExit(here: Here, value: Json | undefined): State {
  const { life, rules } = lifeOf(here);
  const bare = life.result!;
  const output = value ?? (rules.output.length === 0 ? undefined : pick(rules.output, bare));
  const result: VisitResult = output === undefined ? bare : { ...bare, output };
  const ctx = rules.share === undefined ? life.ctx : { ...life.ctx, ...pick(rules.share, result) };
  const state: State = {
    ...here.state,
    handoff: { ...here.state.handoff, [here.step.id]: result },
    ctx: here.state.fork === null ? ctx : here.state.ctx,
    last: {
      step: here.step.id,
      iteration: here.state.iterations,
      label: result.verdict,
      reason: result.reason ?? "",
      text: "",
      payload: result.parsed ?? {},
    },
  };
  if (result.verdict === "fail") {
    const lane: Lane = { ...here.lane, life: { ...life, phase: "next", result } };
    return depart({ ...here, state, lane });
  }
  return runHook(inPhase({ ...here, state }, "next", { result }), "next", depart);
}

/** Parts of a result under new names; what is not there is left out. */
function pick(wanted: readonly Carry[], result: VisitResult): JsonObject {
  const found = wanted.flatMap(({ key, path }) => {
    const value = readPath(result, path);
    return value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(found);
}

/** By the edge that the verdict names. */
export function depart(here: Here): State {
  const { verdict, capHit, parsed } = lifeOf(here).life.result!;
  const label: Label = verdict === "fail" && capHit ? "cap" : verdict;
  return departBy(here, label, (notes) => follow(here, label, parsed ?? {}, notes));
}

/** A sibling that is not content takes its group with it. */
function departBy(here: Here, label: Label, go: (notes: readonly string[]) => State): State {
  const { verdict, capHit } = lifeOf(here).life.result!;
  const { fork } = here.state;
  const notes = verdict === "ok" && capHit ? ["accepted although the turn cap was reached"] : [];
  if (fork === null || fork.failed !== undefined || verdict === "ok") return go(notes);
  const { state, lane, step } = here;
  const edge = own(step.edges, label);
  if (edge?.kind === "goto" || edge?.kind === "end") edgeTaken(here, label, edge);
  if (fork.policy === "independent") return join(here, label, notes);
  const reason = lane.life?.result?.reason ?? `verdict ${label}`;
  const code = edge?.kind === "end" && edge.outcome === "failed" ? edge.code : "AGENT_VALIDATION_ABORT";
  if (edge?.kind !== "goto") return fail(here, code, reason, { label, notes });
  // It takes its own edge to an end, alone; then the group has failed all the same.
  const why = messages.siblingFailed(step.id, fork, `${code}: ${reason}`);
  const failed = { ...fork, failed: { step: step.id, why } };
  const alone: State = { ...state, lanes: [lane], halted: [], fork: failed };
  const settled = led(here, label, edge.step, notes);
  return enter(here, alone, { step: edge.step, origin: step.id, leaving: lane, settled });
}

/** By what a `next` hook gave. */
export function hookedNext(here: Here, value: Json): State {
  const plan = planOf(here, value);
  if ("code" in plan) return breakOff(here, plan);
  const { verdict } = lifeOf(here).life.result!;
  return departBy(here, verdict, (notes) => {
    edgeTaken(here, verdict, plan.move);
    const { state } = here;
    const queued = plan.queue.length === 0 ? state : { ...state, queue: [...plan.queue, ...state.queue] };
    return move({ ...here, state: queued }, verdict, plan.move, notes);
  });
}

type Plan = { readonly move: PlainMove; readonly queue: readonly StepId[] };

function planOf({ flow, state, step: { id } }: Here, value: Json): Plan | Ending {
  const plan = readNextPlan(value);
  if (plan === null) return lifecycleEndings.badPlan(id);
  const { steps, join: at, isParallel, isIndependent } = plan;
  const stranger = [...steps, ...(at === null ? [] : [at])].find((one) => own(flow.steps, one) === undefined);
  if (stranger !== undefined) return lifecycleEndings.unknownTarget(id, stranger);
  if (state.fork !== null && (steps.length > 0 || isParallel)) return lifecycleEndings.nestedFork(id);
  if (!isParallel) {
    const [first, ...queue] = steps;
    if (first === undefined) return { move: { kind: "end", outcome: "completed" }, queue };
    return { move: { kind: "goto", step: first }, queue };
  }
  if (at !== null && !steps.includes(at) && flow.hooks?.joinRule !== "declared")
    return lifecycleEndings.danglingJoin(id, at);
  const siblings = steps.filter((one) => one !== at);
  if (siblings.length < 2 || new Set(siblings).size < siblings.length)
    return lifecycleEndings.fewSiblings(id);
  const policy = isIndependent ? ({ policy: "independent" } as const) : {};
  return { move: { kind: "fork", steps: siblings, join: at, ...policy }, queue: [] };
}
