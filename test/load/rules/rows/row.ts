/** The forms of a row about a finding, and the changes that rows of several subjects make to the good agent. */
import type { Problem } from "../../../../src/flow/problem.ts";
import type { Code } from "../../../../src/load/codes.ts";
import type { Changes } from "../../world.ts";

/** One change to the good agent, and the one finding it must bring. `at` is the file and the JSON pointer. */
export type Row = {
  readonly code: Code;
  readonly severity?: Problem["severity"];
  readonly name: string;
  readonly changes: Changes;
  readonly at: string;
  readonly step?: string | null;
  readonly says?: RegExp;
  readonly witness?: readonly string[];
  /** Line and column. */
  readonly place?: readonly [number, number];
};

/** A change that resembles the mistake of this code and is not one: it must not bring a finding of this code. */
export type NotFound = Pick<Row, "code" | "name" | "changes">;

export const S = "/steps/initial.issue";
export const CLOSURE = "/steps/closure.issue";
export const gate = (more: { readonly [key: string]: unknown } = {}) => ({
  allowedIntents: ["next", "repeat"],
  intentSchemaRef: "#/properties/next_action/properties/action",
  intentField: "next_action.action",
  ...more,
});

export const conditional = (rule: object): Changes => ({ [`registry ${S}/transitions/next`]: rule });

export const acting = (actions: object): Changes => ({
  "agent /runner/actions": { enabled: true, ...actions },
});

export const V = "/validators/git-clean";
export const CONDITION = "/validationSteps/closure.issue/validationConditions/0";

/** Another validator in place of the good one, and the values that its condition gives. */
export const judgedBy = (validator: object, params: object = {}): Changes => ({
  [`registry ${V}`]: { failurePattern: "git-dirty", ...validator },
  [`registry ${CONDITION}/params`]: params,
});

/** Written apart, so that no tool takes the address for a secret. */
export const WORD = "pass";
export const polled = (config: object) => ({
  type: "poll:state",
  config: { resourceType: "file", ...config },
});
export const asked = (url: string) => ({
  type: "poll:state",
  config: { resourceType: "api", url, targetState: { state: "done" } },
});
export const GATELESS: Changes = {
  [`registry ${S}/structuredGate`]: undefined,
  "registry /steps/continuation.issue/structuredGate": undefined,
  [`registry ${CLOSURE}/structuredGate`]: undefined,
  "registry /entryStep": "initial.issue",
  "registry /validationSteps": {},
};

/** A count, with checks before it ends the run. */
export const before = (more: object, key = "closure.iteration"): Changes => ({
  "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 3 } },
  "registry /entryStep": "initial.issue",
  [`registry /validationSteps/${key}`]: {
    c2: "retry",
    c3: "issue",
    validationConditions: [{ validator: "git-clean" }],
    ...more,
  },
});

export const FAILURE_PROMPT = "prompts/steps/retry/issue/f_failed_git-dirty.md";
