/** What a run made: the data of the answer that ended it. */
import type { Report } from "../story/report.ts";
import type { State } from "../engine/decide/state.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, own, type Json } from "../flow/json.ts";

/**
 * What the last step handed on; where it hands on nothing, its answer without what only routes the run. Of a stage what
 * its exit gave, or its completion; of a step that answers in text that text. null: the run did not complete, or its last
 * answer holds nothing else.
 */
export function productOf(flow: Flow, { last, handoff, verdict }: State, { said }: Report): Json {
  if (last === null || verdict?.outcome !== "completed") return null;
  // A question about the work of a step is not what the run was for.
  const id = own(flow.steps, last.step)?.aside ?? last.step;
  const step = own(flow.steps, id);
  const left = own(handoff, id);
  if (flow.dialect === "stage") return filled(own(left ?? {}, "output") ?? own(left ?? {}, "parsed") ?? null);
  if (step?.answer.kind === "text") return filled(said.get(id) ?? null);
  if (left !== undefined && Object.keys(left).length > 0) return left;
  const routing = step?.decide.by === "field" ? step.decide.path[0] : undefined;
  const rest = Object.entries(last.payload).filter(([key]) => key !== "stepId" && key !== routing);
  return filled(Object.fromEntries(rest));
}

function filled(value: Json): Json {
  const isEmpty = isObject(value) ? Object.keys(value).length === 0 : value === "";
  return isEmpty ? null : value;
}
