/** The flow, or one step of it, that the good agent becomes after changes. */
import assert from "node:assert/strict";
import type { Flow, Step } from "../../src/flow/flow.ts";
import { load, tree, type Changes } from "./world.ts";

/** The flow of the good agent with these changes; it must have no errors. */
export function flowWith(changes: Changes = {}): Flow {
  const { flow, problems } = load(tree(changes));
  assert.deepEqual(
    problems.filter((problem) => problem.severity === "error"),
    [],
  );
  assert.ok(flow);
  return flow;
}

export function stepWith(id: string, changes: Changes): Step {
  return flowWith(changes).steps[id]!;
}

export const S = "registry /steps/initial.issue";
export const CLOSURE = "registry /steps/closure.issue";

export const VALIDATION = { c2: "retry", c3: "issue", validationConditions: [{ validator: "git-clean" }] };
