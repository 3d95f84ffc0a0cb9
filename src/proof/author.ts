/** The author's own properties, from `tests/settings.yaml`: what must hold for every run of the flow. */
import { visitKey } from "../flow/deed.ts";
import { WITHIN_KEYS, type TestSettings, type WithinKey } from "../flow/test-settings.ts";
import type { State } from "../engine/decide/state.ts";
import { begunIn, type Moment } from "../story/story.ts";
import { holdsPath } from "./expect.ts";
import { legsOf } from "./observe.ts";

/** `rule`: as it is written in the settings. `at`: the visit, as STEP@VISIT. */
export type Breach = {
  readonly rule: string;
  readonly seq: number;
  readonly at: string;
  readonly what: string;
};

/** The first breach of each rule. */
export function breachesIn(moments: readonly Moment[], settings: TestSettings): readonly Breach[] {
  const { before, never, within } = settings;
  const found = new Map<string, Breach>();
  const add = (breach: Breach) => {
    if (!found.has(breach.rule)) found.set(breach.rule, breach);
  };
  const path: string[] = [];
  const begun = new Set<string>();
  for (const moment of moments) {
    const { seq } = moment.entry;
    for (const deed of begunIn(moment)) {
      for (const needed of before[deed.step] ?? [])
        if (!begun.has(needed))
          add({
            rule: `before ${deed.step}`,
            seq,
            at: visitKey(deed),
            what: `${deed.step} began before ${needed}`,
          });
      begun.add(deed.step);
    }
    const legs = never.length === 0 ? [] : legsOf([moment]);
    path.push(...legs.map(({ text }) => text));
    const leg = legs.at(-1);
    if (leg !== undefined)
      for (const { path: forbidden } of never)
        if (holdsPath(forbidden, path))
          add({
            rule: `never ${forbidden.join(", ")}`,
            seq,
            at: visitKey(leg),
            what: `${leg.text} completes this path`,
          });
    for (const key of WITHIN_KEYS) {
      const most = within[key];
      const taken = TAKEN[key](moment.after);
      if (most !== undefined && taken > most) {
        const lane = moment.after.lanes[0] ?? moment.before.lanes[0];
        add({
          rule: `within ${key}`,
          seq,
          at: lane === undefined ? "" : visitKey(lane),
          what: `the run took ${taken} ${key}, and at most ${most} are allowed`,
        });
      }
    }
  }
  return [...found.values()];
}

const TAKEN: { readonly [key in WithinKey]: (state: State) => number } = {
  visits: ({ visits }) => Object.values(visits).reduce((sum, count) => sum + count, 0),
  turns: ({ usage }) => usage.turns,
  tokens: ({ usage }) => usage.inputTokens + usage.outputTokens,
  costUsd: ({ usage }) => usage.costUsd ?? 0,
};
