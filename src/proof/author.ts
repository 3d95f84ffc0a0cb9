/** The author's own properties, from `tests/settings.yaml`: what must hold for every run of the flow. */
import { visitKey } from "../flow/deed.ts";
import { WITHIN_KEYS, type TestSettings, type WithinKey } from "../flow/test-settings.ts";
import type { State } from "../engine/decide/state.ts";
import { begunIn, type Moment } from "../story/story.ts";
import { holdsPath } from "./expect.ts";
import { legsOf } from "./observe.ts";

/** `rule`: as it is written in the settings, in this line; null: that is not known. `at`: the visit, as STEP@VISIT. */
export type Breach = {
  readonly rule: string;
  readonly line: number | null;
  readonly seq: number;
  readonly at: string;
  readonly what: string;
};

/** A fold over the moments of one run, however they are read. */
export type Watching = {
  readonly add: (moment: Moment) => void;
  /** The first breach of each rule so far. */
  readonly breaches: () => readonly Breach[];
};

export function breachesIn(moments: readonly Moment[], settings: TestSettings): readonly Breach[] {
  if (!hasRules(settings)) return [];
  const { add, breaches } = watchRules(settings);
  for (const moment of moments) add(moment);
  return breaches();
}

/** Whether the settings say anything about runs. */
export function hasRules({ before, never, within }: TestSettings): boolean {
  return never.length > 0 || Object.keys(before).length > 0 || Object.keys(within).length > 0;
}

export function watchRules({ before, never, within, lines = {} }: TestSettings): Watching {
  const found = new Map<string, Breach>();
  const begun = new Set<string>();
  const path: string[] = [];
  const orders = Object.keys(before).length > 0;
  const limits = WITHIN_KEYS.flatMap((key) =>
    within[key] === undefined ? [] : [[key, within[key]] as const],
  );
  const add = (rule: string, breach: () => Omit<Breach, "rule" | "line">) => {
    if (!found.has(rule)) found.set(rule, { rule, line: lines[rule] ?? null, ...breach() });
  };
  return {
    breaches: () => [...found.values()],
    add: (moment) => {
      const { seq } = moment.entry;
      for (const deed of orders ? begunIn(moment) : []) {
        const missing = before[deed.step]?.find((needed) => !begun.has(needed));
        if (missing !== undefined)
          add(`before ${deed.step}`, () => ({
            seq,
            at: visitKey(deed),
            what: `${deed.step} began before ${missing}`,
          }));
        begun.add(deed.step);
      }
      const legs = never.length === 0 ? [] : legsOf([moment]);
      path.push(...legs.map(({ text }) => text));
      const leg = legs.at(-1);
      if (leg !== undefined)
        for (const { path: forbidden } of never) {
          const rule = `never ${forbidden.join(", ")}`;
          if (!found.has(rule) && holdsPath(forbidden, path))
            add(rule, () => ({ seq, at: visitKey(leg), what: `${leg.text} completes this path` }));
        }
      for (const [key, most] of limits) {
        const taken = TAKEN[key](moment.after);
        if (taken <= most) continue;
        add(`within ${key}`, () => ({
          seq,
          at: visitAt(moment, key),
          what: `the run took ${taken} ${key}, and at most ${most} are allowed`,
        }));
      }
    },
  };
}

/** A visit is one too many when it begins; everything else is used up by the visit that the entry is about. */
function visitAt({ entry: { event }, before, after }: Moment, key: WithinKey): string {
  if (key !== "visits" && "step" in event && "visit" in event) return visitKey(event);
  const lane = after.lanes.at(-1) ?? before.lanes[0];
  return lane === undefined ? "" : visitKey(lane);
}

const TAKEN: { readonly [key in WithinKey]: (state: State) => number } = {
  visits: ({ visits }) => Object.values(visits).reduce((sum, count) => sum + count, 0),
  turns: ({ usage }) => usage.turns,
  tokens: ({ usage }) => usage.inputTokens + usage.outputTokens,
  costUsd: ({ usage }) => usage.costUsd ?? 0,
};
