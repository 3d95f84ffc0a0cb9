/** The eight ways a run can be declared to end. */

/**
 * `former`: the names that earlier files use, newest first. `closure`: the closure under whose id files of this type keep
 * their validation, by custom. `needs`: the settings that the type cannot do without, as they are documented.
 */
export const VERDICTS = {
  "count:iteration": { former: ["iterationBudget", "iterate"], closure: "closure.iteration", needs: [] },
  "count:check": { former: ["checkBudget"], closure: "closure.check", needs: ["maxChecks"] },
  "poll:state": { former: ["externalState", "issue"], closure: "closure.polling", needs: [] },
  "detect:keyword": {
    former: ["keywordSignal", "manual"],
    closure: "closure.keyword",
    needs: ["verdictKeyword"],
  },
  "detect:structured": { former: ["structuredSignal"], closure: "closure.structured", needs: ["signalType"] },
  "detect:graph": { former: ["stepMachine", "stepFlow"], closure: "closure.graph", needs: [] },
  "meta:composite": {
    former: ["composite", "facilitator"],
    closure: "closure.composite",
    needs: ["operator", "conditions"],
  },
  "meta:custom": { former: ["custom"], closure: "closure.custom", needs: ["handlerPath"] },
} as const;

export type VerdictType = keyof typeof VERDICTS;

export const VERDICT_TYPES = Object.keys(VERDICTS) as readonly VerdictType[];

export const FORMER_TYPES: { readonly [word: string]: VerdictType } = Object.fromEntries(
  VERDICT_TYPES.flatMap((type) => VERDICTS[type].former.map((word) => [word, type] as const)),
);

/** Every name a file may use for the type, the present one first. */
export function namesOf(type: VerdictType): readonly string[] {
  return [type, ...VERDICTS[type].former];
}
