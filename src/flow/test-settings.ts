/** What holds for all tests of an agent: `.agent/NAME/tests/settings.yaml`. */
import type { HeardPart } from "./flow-test.ts";
import type { StepId } from "./flow.ts";

/** What coverage is measured in, in the order in which reports name it. */
export const ELEMENT_KINDS = [
  "steps",
  "transitions",
  "branches",
  "checks",
  "editions",
  "answers",
  "limits",
  "boundaries",
  "data",
] as const;

export type ElementKind = (typeof ELEMENT_KINDS)[number];

export type TestSettings = {
  /** null: there is no such file. */
  readonly file: string | null;
  /** The least percentage of each kind. */
  readonly coverage: { readonly [kind in ElementKind]?: number };
  /** Elements that coverage does not count. */
  readonly ignore: readonly Ignored[];
  /** Step → the steps that must have been visited before it. */
  readonly before: { readonly [step: StepId]: readonly StepId[] };
  /** Paths, written as in `expect.path`, that no run may hold. */
  readonly never: readonly NeverPath[];
  /** The most that any run may take, such as `visits: 8`. */
  readonly within: { readonly [what in WithinKey]?: number };
  /** Where each rule about runs is written, by the name that reports give it, such as `before close`. */
  readonly lines?: { readonly [rule: string]: number };
  /** What comes of a recorded response that was given to something else; `warn` unless said. */
  readonly drift: { readonly [part in HeardPart]?: DriftRule };
};

export const DRIFT_RULES = ["warn", "fail", "ignore"] as const;
export type DriftRule = (typeof DRIFT_RULES)[number];

export type Ignored = { readonly id: string; readonly why: string; readonly line: number };

export type NeverPath = { readonly path: readonly string[]; readonly line: number };

export const WITHIN_KEYS = ["visits", "turns", "tokens", "costUsd"] as const;

export type WithinKey = (typeof WITHIN_KEYS)[number];

export const NO_SETTINGS: TestSettings = {
  file: null,
  coverage: {},
  ignore: [],
  before: {},
  never: [],
  within: {},
  drift: {},
};
