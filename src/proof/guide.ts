/** Where fuzzed runs begin, and who answers there: at steps of which something has not been shown yet. */
import type { Flow, StepId } from "../flow/flow.ts";
import type { ElementKind } from "../flow/test-settings.ts";
import type { Hits } from "./cover.ts";
import { elementsOf } from "./elements.ts";
import type { Persona } from "./personas.ts";

/** Numbers that lead to a step, and who gives each response on the way. */
export type WayTo = {
  readonly step: StepId;
  readonly cast: readonly Persona[];
  readonly numbers: readonly number[];
};

export type Guide = {
  /** A run has come to a step: its shortest way is kept. */
  readonly note: (way: WayTo) => void;
  /** The way to one of the steps of which something is missing; null: nothing is known to be missing. */
  readonly wayTo: (hits: Hits, more: (of: number) => number) => WayTo | null;
  /** Who may show what is missing of the step; empty: nothing is. */
  readonly askers: (hits: Hits, step: StepId) => readonly Persona[];
};

/** Who is likely to show elements of a kind. */
const SHOW: { readonly [kind in ElementKind]: readonly Persona[] } = {
  steps: ["plain", "random"],
  transitions: ["random", "lost"],
  branches: ["random", "nearly"],
  checks: ["plain", "eager"],
  editions: ["plain", "eager"],
  answers: ["random", "lost", "refusing", "truncated", "nearly", "eager"],
  limits: ["flaky", "stubborn", "refusing", "injected", "grabbing", "random"],
  boundaries: ["random", "grabbing", "injected"],
  data: ["random", "nearly"],
};

export function createGuide(flow: Flow): Guide {
  const ways = new Map<StepId, WayTo>();
  // What is about the flow as a whole is looked for from its beginning on.
  const elements = elementsOf(flow).map(({ id, step, kind }) => ({ id, kind, step: step ?? flow.entry }));
  let known = -1;
  /** How often a run began at a step since it last showed something new. */
  const tried = new Map<StepId, number>();
  let left = new Map<StepId, number>();
  let missing = new Map<StepId, Set<Persona>>();
  let wanted: readonly StepId[] = [];
  const look = (hits: Hits) => {
    if (hits.size === known) return;
    known = hits.size;
    missing = new Map();
    const before = left;
    left = new Map();
    for (const { id, step, kind } of elements) {
      if (hits.has(id)) continue;
      left.set(step, (left.get(step) ?? 0) + 1);
      const askers = missing.get(step) ?? new Set();
      missing.set(step, askers);
      for (const persona of SHOW[kind]) askers.add(persona);
    }
    wanted = [...missing.keys()].filter((step) => ways.has(step));
    for (const step of wanted) if (left.get(step) !== before.get(step)) tried.set(step, 0);
  };
  return {
    note: (way) => {
      const before = ways.get(way.step);
      if (before !== undefined && before.numbers.length <= way.numbers.length) return;
      ways.set(way.step, { ...way, cast: [...way.cast], numbers: [...way.numbers] });
      if (before === undefined) known = -1;
    },
    wayTo: (hits, more) => {
      look(hits);
      if (wanted.length === 0) return null;
      const times = (step: StepId) => tried.get(step) ?? 0;
      const fewest = Math.min(...wanted.map(times));
      const next = wanted.filter((step) => times(step) === fewest);
      const step = next[more(next.length)]!;
      tried.set(step, fewest + 1);
      return ways.get(step)!;
    },
    askers: (hits, step) => {
      look(hits);
      return [...(missing.get(step) ?? [])];
    },
  };
}
