/** A run with everything that its screens show of it, folded entry by entry: frames, visits, report, and states to begin from. */
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import { RunnerError, type Journal, type RunRow } from "../engine/ports.ts";
import type { Entry, Event } from "../flow/event.ts";
import { createStanding, type RunStanding } from "../run/records/standing.ts";
import { flowOf, type Damage } from "../run/records/runs.ts";
import { openStory, type Moment } from "../story/story.ts";
import { createFrames, type Frame, type FrameLane } from "../tell/frames.ts";
import { createLineFold, type LineFold } from "./lines.ts";
import type { LaneSeen, VisitSeen } from "./wire.ts";

export type Reel = {
  readonly add: (moment: Moment) => void;
  readonly frames: readonly Frame[];
  readonly visits: readonly VisitSeen[];
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

export function createReel(): Reel {
  const frames: Frame[] = [];
  const visits: VisitSeen[] = [];
  const kept: Kept[] = [];
  const next = createFrames();
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
    visits,
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
      const frame = next(moment);
      frames.push(frame);
      for (const [step, visit] of frame[6]?.began ?? []) visits.push({ step, visit, seq });
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
      const last = frames.at(-1)?.[0] ?? 0;
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
    lanesAt: (seq) => lanesAt(frames, seq, begun().at),
  };
}

async function flowFor(journal: Journal, row: RunRow, { event }: Entry, flow: Prepared): Promise<Prepared> {
  return event.type === "run.adopted" ? await flowOf(journal, row.id, event.flow) : flow;
}

/** Walks back to where each lane began to do what it does. */
function lanesAt(frames: readonly Frame[], seq: number, startedAt: number): readonly LaneSeen[] {
  const first = frames[0]?.[0] ?? 1;
  const changes = frames.slice(0, Math.max(0, seq - first + 1)).filter(([, , , , , lanes]) => lanes !== 0);
  const last = changes.at(-1)?.[5];
  return (last || []).map((lane) => {
    let since = changes.length - 1;
    while (since > 0 && has(changes[since - 1]![5], lane)) since -= 1;
    const [step, visit, doing, halted] = lane;
    return { step, visit, doing, halted: halted === 1, since: startedAt + (changes[since]?.[1] ?? 0) };
  });
}

function has(lanes: Frame[5], [step, visit, doing]: FrameLane): boolean {
  return lanes !== 0 && lanes.some((lane) => lane[0] === step && lane[1] === visit && lane[2] === doing);
}
