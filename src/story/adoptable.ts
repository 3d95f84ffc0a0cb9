/** Whether a run that is under way can go on with another flow. */
import type { Led } from "../flow/event.ts";
import type { Flow, Step, StepId } from "../flow/flow.ts";
import { own, sameJson, type Json } from "../flow/json.ts";
import type { Lane, State } from "../engine/decide/state.ts";

/**
 * Why it cannot, one line a reason; empty when it can. What the run has seen must still be there and mean the same: its
 * steps with their contracts, the labels that it took, and whatever is pending.
 */
export function obstacles(before: Flow, after: Flow, state: State, path: readonly Led[]): readonly string[] {
  const lanes = [...state.lanes, ...state.halted];
  return [
    ...new Set([
      ...Object.keys(state.visits).flatMap((id) =>
        stepObstacles(id, own(before.steps, id), own(after.steps, id)),
      ),
      ...toCome(state)
        .filter((id) => own(after.steps, id) === undefined)
        .map((id) => `step "${id}" is still to come, and is not there any more`),
      ...path.flatMap((led) => labelObstacles(before, after, led)),
      ...lanes.flatMap((lane) => laneObstacles(after, lane)),
    ]),
  ];
}

function toCome({ queue, fork }: State): readonly StepId[] {
  return [...queue, ...(fork?.steps ?? []), ...(fork?.join == null ? [] : [fork.join])];
}

function stepObstacles(id: StepId, was: Step | undefined, is: Step | undefined): readonly string[] {
  if (is === undefined) return [`step "${id}" was visited, and is not there any more`];
  if (was === undefined || sameJson(contractOf(was), contractOf(is))) return [];
  return [`step "${id}" was visited, and its answer has another contract now`];
}

/** What an answer must be, whatever the files that say so are called. */
function contractOf({ by, answer, decide, stage }: Step): Json {
  const kind = [by.kind, stage !== undefined, decide.by === "field" ? decide.path : decide.by];
  if (answer.kind === "text") return [...kind, "text"];
  const schema = answer.schema.kind === "schema" ? answer.schema.schema : answer.schema.kind;
  return [...kind, schema, answer.channel];
}

function labelObstacles(before: Flow, after: Flow, { step, label }: Led): readonly string[] {
  const [was, is] = [own(before.steps, step), own(after.steps, step)];
  if (label === null || is === undefined || was === undefined) return [];
  if (own(was.edges, label) === undefined || own(is.edges, label) !== undefined) return [];
  return [`step "${step}" went on by "${label}", which leads nowhere now`];
}

function laneObstacles(flow: Flow, { step, visit, answer, command }: Lane): readonly string[] {
  const found = own(flow.steps, step);
  if (found === undefined) return [];
  const at = `${step}@${visit}`;
  const pending = command.type === "wait" ? (command.next ?? command) : command;
  const checks =
    pending.type === "check" ? pending.checks.filter((name) => own(flow.checks, name) === undefined) : [];
  return [
    ...checks.map((name) => `check "${name}" of ${at} is pending, and is not there any more`),
    ...(pending.type === "hook" && flow.hooks === undefined
      ? [`the ${pending.hook} hook of ${at} is pending, and there are no hooks any more`]
      : []),
    ...(answer !== null &&
    pending.type === "check" &&
    found.stage === undefined &&
    guardOf(flow, found, answer) === undefined
      ? [`checks of ${at} are pending, and nothing is guarded there any more`]
      : []),
  ];
}

function guardOf(flow: Flow, step: Step, answer: NonNullable<Lane["answer"]>): unknown {
  return answer.over === undefined ? step.guard : flow.stopGuard;
}
