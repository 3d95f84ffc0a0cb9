/** How a visit with a result is left: exit makes the result, next says where the run goes on. */
import type { PlainMove } from "../../flow/deed.ts";
import type { HookName } from "../../flow/event.ts";
import type { Carry, Label, StepId } from "../../flow/flow.ts";
import { isObject, own, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import { edgeTaken, follow, join, move } from "./advance.ts";
import { at, executionId, inPhase, judged, lastTry, runHook } from "./attempt.ts";
import { messages } from "./messages.ts";
import type { Lane, StageResult, State } from "./state.ts";
import { enter, fail, led, type Here } from "./visit.ts";

export function conclude(here: Here, verdict: StageResult["verdict"], reason: string): State {
  const { stage } = at(here);
  const { answer } = here.lane;
  const capHit = answer?.label === "cap";
  const asked = stage.phase !== "gate" && stage.phase !== "setup";
  const result: StageResult = {
    stageId: here.step.id,
    stageExecutionId: executionId(here.state, here.lane),
    verdict,
    ...(reason !== "" && { reason }),
    ...(verdict !== "skip" && answer !== null && !capHit && { parsed: answer.payload }),
    capHit,
    attemptCount: asked ? stage.tries.length : 0,
  };
  const tries = asked ? lastTry(stage, { verdict, ...(reason !== "" && { reason }) }) : stage.tries;
  if (asked) judged(here, verdict, reason, capHit);
  return runHook(inPhase(here, "exit", { tries, result }), "exit", (left) => afterExit(left, undefined));
}

/** The stage cannot go on. Where its siblings go on without it, that is its result; anywhere else it ends the run. */
export function breakOff(here: Here, code: string, reason: string): State {
  const { state, lane } = here;
  if (lane.stage === null || state.fork?.policy !== "independent") return fail(here, code, reason);
  const { phase, tries } = lane.stage;
  const result: StageResult = {
    stageId: lane.step,
    stageExecutionId: executionId(state, lane),
    verdict: "fail",
    reason: `${code}: ${reason}`,
    capHit: false,
    attemptCount: phase === "setup" || phase === "gate" ? 0 : tries.length,
  };
  const handoff = { ...state.handoff, [lane.step]: result };
  return join({ ...here, state: { ...state, handoff } }, "fail", []);
}

export function badHook(here: Here, hook: HookName, what: string): State {
  return breakOff(
    here,
    "LifecycleFailure",
    `The ${hook} hook of stage "${here.step.id}" gave something else: ${what}.`,
  );
}

/** What the stage leaves behind is kept, and the machine's context with it; siblings leave only their results. */
export function afterExit(here: Here, value: Json | undefined): State {
  const { stage, rules } = at(here);
  const bare = stage.result!;
  const output = value ?? (rules.output.length === 0 ? undefined : pick(rules.output, bare));
  const result: StageResult = output === undefined ? bare : { ...bare, output };
  const ctx = rules.share === undefined ? stage.ctx : { ...stage.ctx, ...pick(rules.share, result) };
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
    const lane: Lane = { ...here.lane, stage: { ...stage, phase: "next", result } };
    return depart({ ...here, state, lane });
  }
  return runHook(inPhase({ ...here, state }, "next", { result }), "next", depart);
}

/** Parts of a result under new names; what is not there is left out. */
function pick(wanted: readonly Carry[], result: StageResult): JsonObject {
  const found = wanted.flatMap(({ key, path }) => {
    const value = readPath(result, path);
    return value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(found);
}

/** By the edge that the verdict names. A sibling that is not content takes its group with it. */
export function depart(here: Here): State {
  const { result } = at(here).stage;
  const { verdict, capHit, parsed } = result!;
  const label: Label = verdict === "fail" && capHit ? "cap" : verdict;
  const notes = verdict === "ok" && capHit ? ["accepted although the turn cap was reached"] : [];
  if (here.state.fork !== null && here.state.fork.failed === undefined && verdict !== "ok") {
    return siblingFailed(here, label, notes);
  }
  return follow(here, label, parsed ?? {}, notes);
}

function siblingFailed(here: Here, label: Label, notes: readonly string[]): State {
  const { state, lane, step } = here;
  const fork = state.fork!;
  const edge = own(step.edges, label);
  if (edge?.kind === "goto" || edge?.kind === "end") edgeTaken(here, label, edge);
  if (fork.policy === "independent") return join(here, label, notes);
  const reason = lane.stage?.result?.reason ?? `verdict ${label}`;
  const code = edge?.kind === "end" && edge.outcome === "failed" ? edge.code : "AGENT_VALIDATION_ABORT";
  if (edge?.kind !== "goto") return fail(here, code, reason, { label, notes });
  // It takes its own edge to an end, alone; then the group has failed all the same.
  const why = messages.siblingFailed(step.id, fork, `${code}: ${reason}`);
  const alone: State = {
    ...state,
    lanes: [lane],
    halted: [],
    fork: { ...fork, failed: { step: step.id, why } },
  };
  const settled = led(here, label, edge.step, notes);
  return enter(here, alone, { step: edge.step, origin: step.id, leaving: lane, settled });
}

/** What a `next` hook gave: a stage id, "end", or `{ execution, nextStages, join }`. */
export function hookedNext(here: Here, value: Json): State {
  const plan = readPlan(here, value);
  if (plan.kind === "bad") return breakOff(here, plan.code, plan.why);
  const { verdict, capHit } = at(here).stage.result!;
  const notes = verdict === "ok" && capHit ? ["accepted although the turn cap was reached"] : [];
  if (here.state.fork !== null && here.state.fork.failed === undefined && verdict !== "ok")
    return siblingFailed(here, verdict, notes);
  edgeTaken(here, verdict, plan.move);
  const state: State =
    plan.queue.length === 0 ? here.state : { ...here.state, queue: [...plan.queue, ...here.state.queue] };
  return move({ ...here, state }, verdict, plan.move, notes);
}

type Plan =
  | { readonly kind: "plan"; readonly move: PlainMove; readonly queue: readonly StepId[] }
  | { readonly kind: "bad"; readonly code: string; readonly why: string };

function readPlan({ flow, state, step }: Here, value: Json): Plan {
  const bad = (code: string, why: string): Plan => ({
    kind: "bad",
    code,
    why: `next of stage "${step.id}" ${why}`,
  });
  const ids = typeof value === "string" ? [value] : isObject(value) ? (own(value, "nextStages") ?? []) : null;
  if (!Array.isArray(ids) || !ids.every((id): id is string => typeof id === "string")) {
    return bad("LifecycleFailure", 'must give a stage id, "end", or { execution, nextStages, join }.');
  }
  const stages = value === "end" ? [] : (ids as readonly StepId[]);
  const wanted = isObject(value) ? own(value, "join") : undefined;
  const stranger = [...stages, ...(typeof wanted === "string" ? [wanted] : [])].find(
    (id) => own(flow.steps, id) === undefined,
  );
  if (stranger !== undefined)
    return bad("StageTargetUnknown", `names "${stranger}", and there is no such stage.`);
  const isParallel = isObject(value) && own(value, "execution") === "parallel";
  const isNested = state.fork !== null && (stages.length > 0 || isParallel);
  if (isNested)
    return bad("StageDefinitionInvalid", "leads on, but a stage that runs beside others may only end.");
  if (!isParallel) {
    const [first, ...queue] = stages;
    if (first === undefined) return { kind: "plan", move: { kind: "end", outcome: "completed" }, queue: [] };
    return { kind: "plan", move: { kind: "goto", step: first }, queue };
  }
  const joinAt = typeof wanted === "string" ? wanted : null;
  if (joinAt !== null && !stages.includes(joinAt) && flow.hooks?.joinRule !== "declared") {
    const remedies = `List "${joinAt}" in nextStages, or set joinRule: declared in machine.yaml.`;
    return bad("StageJoinDangling", `joins at "${joinAt}", which is not among its nextStages. ${remedies}`);
  }
  const siblings = stages.filter((id) => id !== joinAt);
  if (siblings.length < 2 || new Set(siblings).size < siblings.length) {
    return bad("InvalidParallelPlan", "needs at least two different stages to run side by side.");
  }
  const independent = isObject(value) && own(value, "policy") === "independent";
  const fork: PlainMove = {
    kind: "fork",
    steps: siblings,
    join: joinAt,
    ...(independent && { policy: "independent" }),
  };
  return { kind: "plan", move: fork, queue: [] };
}
