/** The eight ways a run can be declared to end, with the names that earlier files use for them. */

export const VERDICT_TYPES = [
  "count:iteration",
  "count:check",
  "poll:state",
  "detect:keyword",
  "detect:structured",
  "detect:graph",
  "meta:composite",
  "meta:custom",
] as const;

export type VerdictType = (typeof VERDICT_TYPES)[number];

/** Newest first. */
const FORMER: { readonly [type in VerdictType]: readonly string[] } = {
  "count:iteration": ["iterationBudget", "iterate"],
  "count:check": ["checkBudget"],
  "poll:state": ["externalState", "issue"],
  "detect:keyword": ["keywordSignal", "manual"],
  "detect:structured": ["structuredSignal"],
  "detect:graph": ["stepMachine", "stepFlow"],
  "meta:composite": ["composite", "facilitator"],
  "meta:custom": ["custom"],
};

export const FORMER_TYPES: { readonly [word: string]: VerdictType } = Object.fromEntries(
  VERDICT_TYPES.flatMap((type) => FORMER[type].map((word) => [word, type] as const)),
);

/** Every name a file may use for the type, the present one first. */
export function namesOf(type: VerdictType): readonly string[] {
  return [type, ...FORMER[type]];
}

/** The closure under whose id files of this verdict type keep their validation, by custom. */
export function customaryClosure(type: VerdictType): string {
  return `closure.${CLOSURE_WORD[type]}`;
}

const CLOSURE_WORD: { readonly [type in VerdictType]: string } = {
  "count:iteration": "iteration",
  "count:check": "check",
  "poll:state": "polling",
  "detect:keyword": "keyword",
  "detect:structured": "structured",
  "detect:graph": "graph",
  "meta:composite": "composite",
  "meta:custom": "custom",
};
