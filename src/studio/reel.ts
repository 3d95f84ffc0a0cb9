/** A run with everything that its screens show of it, folded entry by entry: frames, report, and states to begin from. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import { RunnerError, type Journal, type RunRow } from "../engine/ports.ts";
import type { Entry, Event } from "../flow/event.ts";
import { createStanding, type RunStanding } from "../run/records/standing.ts";
import { jsonLine } from "../flow/text/harmless.ts";
import { flowOf, type Damage } from "../run/records/runs.ts";
import { openStory, type Moment } from "../story/story.ts";
import { createFrames, type FrameLane } from "../tell/frames.ts";
import { createKeptFrames, TOGETHER, type KeptFrames } from "./kept-frames.ts";
import { createLineFold, type LineFold } from "./lines.ts";
import type { LaneSeen, VisitSeen } from "./wire.ts";

export type Reel = {
  readonly add: (moment: Moment) => void;
  readonly frames: Omit<KeptFrames, "add">;
  /** In the order in which they began. They are looked for in the frames. */
  readonly visits: () => AsyncGenerator<VisitSeen>;
  /** What a row of the list says of the run. */
  readonly line: LineFold;
  readonly started: () => Started;
  /** How the run stands after the newest entry. */
  readonly state: () => State;
  readonly flow: () => Prepared;
  readonly standing: (row: RunRow, damage: Damage | null, now: number) => RunStanding;
  readonly effects: () => readonly Effects[];
  readonly dryRun: () => boolean;
  /** The moment of an entry. ENTRY_UNKNOWN where there is none. */
  readonly at: (journal: Journal, row: RunRow, seq: number) => Promise<Moment>;
  /** The visits under way after the entry `seq`, each with the time from which on it does what it does. */
  readonly lanesAt: (seq: number) => readonly LaneSeen[];
};

export type Started = Extract<Event, { type: "run.started" }>;
type Effects =
  ReturnType<typeof createStanding>["report"]["effects"] extends Map<string, infer E> ? E : never;

/** States share their structure, and with one every so many entries any other is near. */
const EVERY = 500;

type Kept = { readonly seq: number; readonly state: State; readonly flow: Prepared };

/** `redact` takes secrets out of the names in frames. */
export function createReel(redact: (name: string) => string = same): Reel {
  const kept: Kept[] = [];
  const frames = createKeptFrames();
  const next = createFrames((name) => jsonLine(redact(name)));
  const line = createLineFold();
  const { add: addToStanding, standing, report } = createStanding();
  let started: { readonly event: Started; readonly at: number } | null = null;
  let newest: Moment | null = null;
  let digest = "";

  const begun = () => {
    if (started !== null) return started;
    throw new RunnerError("JOURNAL_UNAVAILABLE", "The first entry of the run cannot be read.");
  };
  const now = () => {
    if (newest !== null) return newest;
    throw new RunnerError("JOURNAL_UNAVAILABLE", "No entry of the run can be read.");
  };

  return {
    frames,
    visits: () => visitsIn(frames),
    line,
    started: () => begun().event,
    state: () => newest?.after ?? EMPTY_STATE,
    flow: () => now().flow,
    effects: () => [...report.effects.values()],
    dryRun: () => report.dryRun,
    add(moment) {
      const { entry, after, flow } = moment;
      const { event, seq, at } = entry;
      if (event.type === "run.started") started ??= { event, at };
      if (event.type === "run.started" || event.type === "run.adopted") digest = event.flow;
      frames.add(next(moment));
      line.add(moment);
      addToStanding(moment);
      if (seq % EVERY === 0) kept.push({ seq, state: after, flow });
      newest = moment;
    },
    standing: (row, damage, time) => {
      const { after: state, flow, entry: last } = now();
      return standing(row, { state, flow, digest, last, damage }, time);
    },
    async at(journal, row, seq) {
      const last = newest?.entry.seq ?? 0;
      if (seq < 1 || seq > last)
        throw new RunnerError(
          "ENTRY_UNKNOWN",
          `Run ${row.id} has ${last} entries; there is no entry ${seq}.`,
        );
      const near = kept.findLast((one) => one.seq < seq);
      const tell = openStory(near?.state);
      let flow = near?.flow ?? (await flowOf(journal, row.id, row.digest));
      let moment: Moment | null = null;
      for (const entry of await journal.read(row.id, near?.seq ?? 0, seq - (near?.seq ?? 0))) {
        flow = await flowFor(journal, row, entry, flow);
        moment = tell(entry, flow);
      }
      return moment ?? now();
    },
    lanesAt: (seq) => lanesAt(frames.slice, seq, begun().at),
  };
}

function same(name: string): string {
  return name;
}

async function flowFor(journal: Journal, row: RunRow, { event }: Entry, flow: Prepared): Promise<Prepared> {
  return event.type === "run.adopted" ? await flowOf(journal, row.id, event.flow) : flow;
}

type Change = { readonly ms: number; readonly lanes: readonly FrameLane[] };

async function* visitsIn({ count, slice }: Omit<KeptFrames, "add">): AsyncGenerator<VisitSeen> {
  for (let from = 0; from < count(); from += PIECE) {
    for (const [seq, , , , , , more] of slice(from, from + PIECE))
      for (const [step, visit] of more?.began ?? []) yield { step, visit, seq };
    await nextTurn();
  }
}

/** Frames that are looked at before others get their turn. */
const PIECE = 20 * TOGETHER;

/** The changes of lanes up to the entry `seq`, the newest first. */
function* changesBefore(slice: KeptFrames["slice"], seq: number): Generator<Change> {
  for (let to = seq; to > 0; to -= TOGETHER)
    for (const [, ms, , , , lanes] of slice(Math.max(0, to - TOGETHER), to).toReversed())
      if (lanes !== 0) yield { ms, lanes };
}

/** Walks back to where each lane began to do what it does. */
function lanesAt(slice: KeptFrames["slice"], seq: number, startedAt: number): readonly LaneSeen[] {
  const since = new Map<FrameLane, number>();
  const going = new Set<FrameLane>();
  let isFirst = true;
  for (const { ms, lanes } of changesBefore(slice, seq)) {
    if (isFirst) for (const lane of lanes) going.add(lane);
    isFirst = false;
    for (const lane of going)
      if (has(lanes, lane)) since.set(lane, ms);
      else going.delete(lane);
    if (going.size === 0) break;
  }
  return [...since].map(([[step, visit, doing, halted], ms]) => ({
    step,
    visit,
    doing,
    halted: halted === 1,
    since: startedAt + ms,
  }));
}

function has(lanes: readonly FrameLane[], [step, visit, doing]: FrameLane): boolean {
  return lanes.some((lane) => lane[0] === step && lane[1] === visit && lane[2] === doing);
}
