/** How a run stood after any of its entries: a fold over its frames, for the graph, the counts and the list of visits. */
import type { Frame, FrameLane } from "../../tell/frames.ts";

export type RunStand = {
  readonly seq: number;
  readonly ms: number;
  readonly lanes: readonly FrameLane[];
  /** By step. */
  readonly steps: ReadonlyMap<string, StepStand>;
  /** How often each way was taken, by `wayKey`. */
  readonly ways: ReadonlyMap<string, number>;
  readonly total: SpentSoFar;
  readonly asks: number;
  readonly ended: { readonly outcome: string; readonly code: string | null } | null;
};

export type SpentSoFar = {
  readonly turns: number;
  readonly tokens: number;
  /** null: the price of something is not known. */
  readonly costUsd: number | null;
};

export type StepStand = SpentSoFar & {
  readonly visits: number;
  /** Checks that failed at this step, each with how often. */
  readonly failed: ReadonlyMap<string, number>;
};

const NOTHING: SpentSoFar = { turns: 0, tokens: 0, costUsd: 0 };
const UNVISITED: StepStand = { ...NOTHING, visits: 0, failed: new Map() };

/**
 * `to` is null where the run ends: then the label says which end. A way back after a failed check is not the way of the
 * label.
 */
export function wayKey(from: string, to: string | null, isBack: boolean, label: string | null): string {
  return JSON.stringify([from, to, isBack, to === null ? label : null]);
}

/** After the last frame whose `seq` is not above the given one; null: after all of them. */
export function standAt(frames: readonly Frame[], seq: number | null): RunStand {
  const steps = new Map<string, StepStand>();
  const ways = new Map<string, number>();
  let lanes: readonly FrameLane[] = [];
  let total = NOTHING;
  let asks = 0;
  let ended: RunStand["ended"] = null;
  let last: Frame | undefined;
  for (const frame of frames) {
    const [at, , type, step, , changed, more] = frame;
    if (seq !== null && at > seq) break;
    last = frame;
    if (changed !== 0) lanes = changed;
    if (type === "run.resumed") ended = null;
    if (more === undefined) continue;
    for (const [from, to, label, how] of more.ways ?? []) {
      if (from === null) continue;
      const key = wayKey(from, to, how === "back", label);
      ways.set(key, (ways.get(key) ?? 0) + 1);
    }
    for (const [begun] of more.began ?? []) change(begun, (now) => ({ ...now, visits: now.visits + 1 }));
    if (more.used !== undefined) {
      const { used } = more;
      total = added(total, used);
      if (step !== null) change(step, (now) => ({ ...now, ...added(now, used) }));
    }
    if (more.failed !== undefined && step !== null) {
      const { failed } = more;
      change(step, (now) => ({ ...now, failed: counted(now.failed, failed) }));
    }
    if (more.asks !== undefined) asks = more.asks;
    if (more.ended !== undefined) ended = { outcome: more.ended[0], code: more.ended[1] };
  }
  return {
    seq: last?.[0] ?? 0,
    ms: last?.[1] ?? 0,
    lanes: ended === null ? lanes : [],
    steps,
    ways,
    total,
    asks,
    ended,
  };

  function change(step: string, to: (now: StepStand) => StepStand): void {
    steps.set(step, to(steps.get(step) ?? UNVISITED));
  }
}

function added(
  now: SpentSoFar,
  [turns, input, output, cost]: readonly [number, number, number, number | null],
): SpentSoFar {
  const costUsd = now.costUsd === null || cost === null ? null : now.costUsd + cost;
  return { turns: now.turns + turns, tokens: now.tokens + input + output, costUsd };
}

function counted(now: ReadonlyMap<string, number>, names: readonly string[]): ReadonlyMap<string, number> {
  const next = new Map(now);
  for (const name of names) next.set(name, (next.get(name) ?? 0) + 1);
  return next;
}

/** A visit as it ran. `label` and `to` are absent while it is under way. */
export type VisitRun = {
  readonly step: string;
  readonly visit: number;
  readonly seq: number;
  readonly label?: string | null;
  readonly to?: readonly (string | null)[];
  readonly overturned?: boolean;
};

/** In the order in which they began. */
export function visitsIn(frames: readonly Frame[], seq: number | null = null): readonly VisitRun[] {
  const visits: VisitRun[] = [];
  const newest = new Map<string, number>();
  for (const [at, , , step, visit, , more] of frames) {
    if (seq !== null && at > seq) break;
    if (more === undefined) continue;
    for (const from of new Set((more.ways ?? []).map(([from]) => from))) {
      if (from === null) continue;
      const ways = more.ways!.filter((way) => way[0] === from && way[2] !== null);
      if (ways.length === 0) continue;
      const place = newest.get(from === step ? `${from}@${visit}` : from) ?? newest.get(from);
      if (place === undefined) continue;
      const overturned = ways.some(([, , , how]) => how === "back");
      visits[place] = { ...visits[place]!, label: ways[0]![2], to: ways.map(([, to]) => to), overturned };
    }
    for (const [begun, number] of more.began ?? []) {
      newest.set(begun, visits.length).set(`${begun}@${number}`, visits.length);
      visits.push({ step: begun, visit: number, seq: at });
    }
  }
  return visits;
}

/** Visits in a row, or a round of several that was repeated `times` times. */
export type StripPart = { readonly visits: readonly VisitRun[]; readonly times: number };

const LONGEST_ROUND = 6;
const LEAST_ROUNDS = 3;

/** Rounds of the same steps and labels become one part, from the third on. */
export function foldedVisits(visits: readonly VisitRun[]): readonly StripPart[] {
  const keys = visits.map(({ step, label, overturned }) => JSON.stringify([step, label, overturned]));
  const parts: StripPart[] = [];
  let at = 0;
  while (at < visits.length) {
    const found = roundAt(keys, at);
    const { length, times } = found ?? { length: 1, times: 1 };
    parts.push({ visits: visits.slice(at, at + length), times });
    at += length * times;
  }
  return parts;
}

function roundAt(
  keys: readonly string[],
  at: number,
): { readonly length: number; readonly times: number } | null {
  let best: { readonly length: number; readonly times: number } | null = null;
  for (let length = 1; length <= LONGEST_ROUND; length += 1) {
    let times = 1;
    while (isSameRound(keys, at, at + length * times, length)) times += 1;
    if (times >= LEAST_ROUNDS && times * length > (best === null ? 0 : best.times * best.length))
      best = { length, times };
  }
  return best;
}

function isSameRound(keys: readonly string[], a: number, b: number, length: number): boolean {
  if (b + length > keys.length) return false;
  for (let place = 0; place < length; place += 1) if (keys[a + place] !== keys[b + place]) return false;
  return true;
}
