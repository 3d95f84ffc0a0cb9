/** A run over time: a row for each step, with bars for what was done there. Time in which nothing drove it is cut out. */
import type { Frame, FrameLane } from "../../tell/frames.ts";

export type BarKind = "model" | "tools" | "checks" | "hooks" | "person" | "waiting";

export type TimeBar = {
  readonly kind: BarKind;
  /** Pixels from the left. */
  readonly x: number;
  readonly width: number;
  /** Milliseconds of work in it; where several were merged, of all of them. */
  readonly ms: number;
  readonly merged: number;
  /** Milliseconds of the longest of them: it gives the kind. */
  readonly longest: number;
  readonly step: string;
  readonly visit: number;
  /** The entry at which the first of them began. */
  readonly seq: number;
};

export type TimeRow = { readonly step: string; readonly bars: readonly TimeBar[] };

export type Timeline = {
  readonly rows: readonly TimeRow[];
  /** Milliseconds in which the run was driven. */
  readonly ms: number;
  /** Where time was cut out: pixels from the left, and how much it was. */
  readonly cuts: readonly { readonly x: number; readonly ms: number }[];
  /** Where an entry stands, in pixels from the left. */
  readonly xOf: (seq: number) => number;
};

const KINDS: { readonly [doing in FrameLane[2]]: BarKind } = {
  ask: "model",
  call: "tools",
  check: "checks",
  look: "checks",
  hook: "hooks",
  question: "person",
  wait: "waiting",
};

type Piece = {
  readonly kind: BarKind;
  readonly step: string;
  readonly visit: number;
  readonly seq: number;
  readonly from: number;
  readonly to: number;
};

/** @param width of the drawing in pixels; bars narrower than a pixel are merged with their neighbours */
export function timelineOf(frames: readonly Frame[], width: number): Timeline {
  const { pieces, ms, cuts, times } = piecesOf(frames);
  const scale = ms === 0 ? 0 : width / ms;
  const bySteps = Map.groupBy(pieces, ({ step }) => step);
  return {
    rows: [...bySteps].map(([step, all]) => ({ step, bars: barsOf(all, scale) })),
    ms,
    cuts: cuts.map((cut) => ({ x: cut.at * scale, ms: cut.ms })),
    xOf: (seq) => (times.get(seq) ?? ms) * scale,
  };
}

/** What was done between two entries is what the lanes said after the first one. */
function piecesOf(frames: readonly Frame[]) {
  const pieces: Piece[] = [];
  const cuts: { readonly at: number; readonly ms: number }[] = [];
  const times = new Map<number, number>();
  const open = new Map<string, Piece>();
  let now = 0;
  let before: Frame | undefined;
  const close = (key: string, piece: Piece) => {
    open.delete(key);
    if (now > piece.from) pieces.push({ ...piece, to: now });
  };
  for (const frame of frames) {
    const [seq, ms, type, , , lanes, more] = frame;
    const passed = before === undefined ? 0 : Math.max(0, ms - before[1]);
    if (type === "run.resumed" && passed > 0) {
      // Nothing drove it since the entry before.
      cuts.push({ at: now, ms: passed });
      for (const [key, piece] of open) close(key, piece);
    } else now += passed;
    times.set(seq, now);
    before = frame;
    if (lanes !== 0) {
      const wanted = new Map(
        lanes
          .filter(([, , , halted]) => halted === undefined)
          .map(([step, visit, doing]) => [JSON.stringify([step, visit, doing]), { step, visit, doing }]),
      );
      for (const [key, piece] of open) if (!wanted.has(key)) close(key, piece);
      for (const [key, { step, visit, doing }] of wanted)
        if (!open.has(key)) open.set(key, { kind: KINDS[doing], step, visit, seq, from: now, to: now });
    }
    if (more?.ended !== undefined) for (const [key, piece] of open) close(key, piece);
  }
  for (const [key, piece] of open) close(key, piece);
  return { pieces: pieces.toSorted((a, b) => a.from - b.from), ms: now, cuts, times };
}

/** Bars are at least a pixel wide; what would lie within a pixel of the one before joins it, as the kind with most time. */
function barsOf(pieces: readonly Piece[], scale: number): readonly TimeBar[] {
  const bars: TimeBar[] = [];
  for (const { kind, step, visit, seq, from, to } of pieces) {
    const x = from * scale;
    const width = (to - from) * scale;
    const last = bars.at(-1);
    const isNear = last !== undefined && x < last.x + last.width + 1 && (width < 1 || last.width <= 1);
    if (!isNear) {
      bars.push({
        kind,
        x,
        width: Math.max(1, width),
        ms: to - from,
        merged: 1,
        step,
        visit,
        seq,
        longest: to - from,
      });
      continue;
    }
    const isLonger = to - from > last.longest;
    bars[bars.length - 1] = {
      ...last,
      kind: isLonger ? kind : last.kind,
      width: Math.max(last.width, x + width - last.x),
      ms: last.ms + to - from,
      merged: last.merged + 1,
      longest: Math.max(last.longest, to - from),
    };
  }
  return bars;
}
