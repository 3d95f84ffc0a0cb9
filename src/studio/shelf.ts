/** What was folded of runs, kept while there is room: a second look at a run reads only what is new. */
import type { Journal, RunRow } from "../engine/ports.ts";
import { damageOf, untilDamage, type Damage } from "../run/records/runs.ts";
import { createMoments, type Moments } from "../run/watch/follow.ts";
import type { Moment } from "../story/story.ts";
import { logLines } from "../tell/log.ts";
import { createTranscript } from "../tell/transcript.ts";
import { createLineFold, type LineFold } from "./lines.ts";
import { createReel, type Reel } from "./reel.ts";
import type { LogEntry, TalkDocument } from "./wire.ts";

export type SaidInRun = TalkDocument["utterances"][number] & { readonly of: string };

/** Folds of a run, by the name under which they are kept. */
type Folds = {
  readonly reel: Reel;
  readonly line: LineFold;
  readonly log: readonly LogEntry[];
  readonly talk: readonly SaidInRun[];
};

export type FoldName = keyof Folds;

export type FoldShelf = {
  /** The fold of a run up to its newest entry; with `least`, once so many entries are in it. */
  readonly look: <N extends FoldName>(
    name: N,
    journal: Journal,
    row: RunRow,
    least?: number,
  ) => Promise<Looked<Folds[N]>>;
  /** Forgets a run that was removed. */
  readonly forget: (run: string) => void;
  /** What is kept, in about so many bytes. */
  readonly weight: () => number;
};

export type Looked<T> = {
  readonly fold: T;
  /** Where the run stops being readable, as far as it was read. */
  readonly damage: Damage | null;
  /** It was read to its end, or to the damage. */
  readonly isWhole: boolean;
};

type Started<T> = {
  readonly fold: T;
  readonly add: (moment: Moment) => void;
  /** Bytes for an entry, about. */
  readonly weigh: (moment: Moment) => number;
};

/** States share what did not change; most of a frame is a few numbers. */
const FRAME_BYTES = 400;

/** `redact` takes secrets out of what is kept as the text that is sent. */
const STARTS: { readonly [N in FoldName]: (redact: (text: string) => string) => Started<Folds[N]> } = {
  reel: (redact) => {
    const fold = createReel(redact);
    return { fold, add: fold.add, weigh: () => FRAME_BYTES };
  },
  line: () => {
    const fold = createLineFold();
    return { fold, add: fold.add, weigh: () => 0 };
  },
  log: () => {
    const fold: LogEntry[] = [];
    const add = (moment: Moment) => {
      const { event, seq } = moment.entry;
      const at = "step" in event ? { step: event.step, visit: event.visit } : { step: null, visit: 0 };
      for (const line of logLines(moment)) fold.push({ ...line, seq, ...at });
    };
    return { fold, add, weigh: bytesOf };
  },
  talk: () => {
    const fold: SaidInRun[] = [];
    const next = createTranscript();
    const counts = new Map<string, number>();
    const add = (moment: Moment) => {
      for (const said of next(moment)) {
        const isShared = moment.flow.steps[said.step]?.transcript === "shared";
        const of = isShared ? "shared" : `${said.step}@${said.visit}`;
        const index = counts.get(of) ?? 0;
        counts.set(of, index + 1);
        fold.push({ ...said, seq: moment.entry.seq, of, index });
      }
    };
    return { fold, add, weigh: bytesOf };
  },
};

/** A rough measure that costs little. */
function bytesOf({ entry: { event } }: Moment): number {
  if (event.type === "step.answered" && event.reply.kind === "said")
    return 2000 + 2 * event.reply.text.length;
  if (event.type === "step.called")
    return event.results.reduce((sum, { content }) => sum + 2 * content.length, 2000);
  return 1000;
}

type Kept = {
  readonly row: RunRow;
  readonly moments: Moments;
  readonly started: Started<unknown>;
  bytes: number;
  damage: Damage | null;
  /** Requests for the same fold come one after the other. */
  busy: Promise<unknown>;
  /** Those who need only the first entries, and are called when these are there. */
  readonly waiting: Set<() => void>;
};

const MOST_BYTES = 64 * 1024 * 1024;
/** What every fold weighs besides. */
const LEAST_BYTES = 4096;

export function createShelf(redact: (text: string) => string = (text) => text, most = MOST_BYTES): FoldShelf {
  /** The one that was looked at last comes last. */
  const kept = new Map<string, Kept>();
  let weight = 0;

  const drop = (key: string) => {
    const one = kept.get(key);
    if (one === undefined) return;
    kept.delete(key);
    weight -= one.bytes;
  };

  const tidy = (except: string) => {
    for (const key of kept.keys()) {
      if (weight <= most) return;
      if (key !== except) drop(key);
    }
  };

  const keptOf = (name: FoldName, row: RunRow): Kept | null => {
    const found = kept.get(keyOf(name, row.id));
    const isSame =
      found !== undefined &&
      found.row.createdAt === row.createdAt &&
      found.row.digest === row.digest &&
      found.moments.seq() <= row.events;
    return isSame ? found : null;
  };

  const find = (name: FoldName, row: RunRow): Kept => {
    const key = keyOf(name, row.id);
    const found = keptOf(name, row);
    if (found === null) drop(key);
    const one: Kept = found ?? {
      row,
      moments: createMoments(row),
      started: STARTS[name](redact),
      bytes: LEAST_BYTES,
      damage: null,
      busy: Promise.resolve(),
      waiting: new Set(),
    };
    if (found === null) weight += one.bytes;
    kept.delete(key);
    kept.set(key, one);
    return one;
  };

  const advance = async (key: string, one: Kept, journal: Journal, row: RunRow) => {
    const { add, weigh } = one.started;
    let bytes = 0;
    const hear = (moment: Moment) => {
      add(moment);
      bytes += weigh(moment);
    };
    const met = await untilDamage(async () => {
      for await (const _ of one.moments.more(journal, hear)) {
        one.bytes += bytes;
        if (kept.get(key) === one) weight += bytes;
        bytes = 0;
        for (const look of one.waiting) look();
      }
    });
    if (met !== null && met.seq <= 1) throw met;
    one.damage = damageOf(row, met);
    tidy(key);
  };

  /** Goes on reading where that is needed. What a half-read fold holds is not to be relied on. */
  const readOn = (name: FoldName, one: Kept, journal: Journal, row: RunRow): Promise<unknown> => {
    if (one.moments.seq() >= row.events && one.damage === null && row.damaged === undefined) return one.busy;
    const key = keyOf(name, row.id);
    const turn = one.busy.then(() => advance(key, one, journal, row));
    one.busy = turn.catch(() => {
      if (kept.get(key) === one) drop(key);
    });
    return turn;
  };

  const lookAt = async (
    name: FoldName,
    journal: Journal,
    row: RunRow,
    least: number,
  ): Promise<Looked<unknown>> => {
    // The screen of the run is open, and all of it is read for that.
    if (name === "line" && keptOf("reel", row) !== null) {
      const { fold, ...rest } = await lookAt("reel", journal, row, least);
      return { ...rest, fold: (fold as Reel).line };
    }
    const one = find(name, row);
    const turn = readOn(name, one, journal, row);
    await (least < row.events ? Promise.race([turn, reached(one, least)]) : turn);
    return {
      fold: one.started.fold,
      damage: one.damage,
      isWhole: one.moments.seq() >= row.events || one.damage !== null,
    };
  };

  return {
    async look<N extends FoldName>(name: N, journal: Journal, row: RunRow, least = row.events) {
      return (await lookAt(name, journal, row, least)) as Looked<Folds[N]>;
    },
    forget(run) {
      for (const name of Object.keys(STARTS)) drop(keyOf(name, run));
    },
    weight: () => weight,
  };
}

/** Until so many entries are in the fold. */
async function reached({ moments, waiting }: Kept, least: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = () => {
    if (moments.seq() < least) return;
    waiting.delete(look);
    resolve();
  };
  waiting.add(look);
  look();
  await promise;
}

function keyOf(name: string, run: string): string {
  return `${name} ${run}`;
}
