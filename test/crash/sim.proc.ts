/**
 * crash-sim: the loop of the engine on a disk that loses what was not synced. Power fails before, in the middle of and
 * after every write of every kind of flow, and again while the run recovers, and again. After each of these crashes:
 * nothing that was committed is lost or done again, and the run ends exactly as it does without them.
 *
 * CRASH_POINTS and CRASH_SEED choose how many and which.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { drive, fold } from "../../src/engine/drive/drive.ts";
import { addEntry, createReport } from "../../src/story/report.ts";
import type { State } from "../../src/engine/decide/state.ts";
import type { Entry, Led } from "../../src/flow/event.ts";
import { random as seeded } from "../load/random.ts";
import { openLog, recover, toFrame, type Moment } from "./disk.ts";
import { outsideFor, type Recorded } from "./outside.ts";
import { wholeRuns } from "./recorded.ts";
import { IS_WHOLE } from "../rounds.ts";
import { ready } from "../ready.ts";

const POINTS = Number(process.env.CRASH_POINTS ?? (IS_WHOLE ? 100_000 : 30_000));
const SEED = Number(process.env.CRASH_SEED ?? 20_261);
const random = seeded(SEED);
/** How often the power fails in one run. */
const DEPTH = 3;

/** The disk and the world as a crash leaves them, and how it came to that. */
type Crash = {
  readonly image: string;
  readonly acts: readonly string[];
  /** How many entries of each run somebody had heard of. */
  readonly heard: ReadonlyMap<string, number>;
  readonly after: readonly string[];
};

const runs = await wholeRuns();
/** The short ones first: what they leave of the budget is for the long ones. */
const worlds = [
  ...runs.map((one) => [one.name, [one]] as const),
  ...[0, 1, 2].map((first) => {
    const group = runs.filter((_, place) => place % 7 === first);
    return [`${group.length} runs that share their commits, from ${first}`, group] as const;
  }),
].toSorted(([, a], [, b]) => lengthOf(a) - lengthOf(b));
let done = 0;

for (const [place, [name, group]] of worlds.entries()) {
  test(`${name}: every crash leads to the same end`, async () => {
    const begun: Crash = {
      image: group
        .map(({ entries }) => toFrame([{ run: runOf(entries), entries: entries.slice(0, 1) }]))
        .join(""),
      acts: [],
      heard: new Map(),
      after: [],
    };
    const budget = Math.ceil((POINTS - done) / (worlds.length - place));
    const crashes = await goOn(group, begun);
    const tried = await tryAll(group, crashes, 1, budget);
    assert.ok(tried >= crashes.length, "every crash is tried");
    done += tried;
  });
}

test(`there were ${POINTS} crashes`, (context) => {
  context.diagnostic(`${done} crashes, seed ${SEED}`);
  assert.ok(done >= POINTS, String(done));
});

/** Each of them, and as many of those that could come after it as the budget allows; how many that were. */
async function tryAll(
  group: readonly Recorded[],
  crashes: readonly Crash[],
  depth: number,
  budget: number,
): Promise<number> {
  const waiting = shuffled(crashes);
  let tried = 0;
  for (let crash = waiting.pop(); crash !== undefined; crash = waiting.pop()) {
    const more = await goOn(group, crash);
    tried += 1;
    const share = Math.floor((budget - tried) / (waiting.length + 1));
    if (depth < DEPTH && share > 0) tried += await tryAll(group, more, depth + 1, share);
    if (depth > 1 && tried >= budget) break;
  }
  return tried;
}

/** What begins with a crash and goes on to the end of all runs; gives every crash that could have come on the way. */
async function goOn(group: readonly Recorded[], crash: Crash): Promise<readonly Crash[]> {
  const isFirst = crash.after.length === 0;
  const { runs: found, whole } = recover(crash.image);
  const disk = new Map([...found].map(([run, entries]) => [run, [...entries]]));
  const acts = [...crash.acts];
  const crashes: Crash[] = [];
  const crashing = ({ what, image }: Moment) => {
    const heard = new Map([...disk].map(([run, entries]) => [run, entries.length]));
    const after = [...crash.after, `${what} ${[...heard.values()].join("+")}`];
    crashes.push({ image, acts: [...acts], heard, after });
  };
  const log = openLog(whole, random, crashing, (run, entries) => {
    disk.get(run)!.push(...entries);
  });
  try {
    for (const [run, heard] of crash.heard) assert.ok(found.get(run)!.length >= heard, `${run} lost entries`);
    await Promise.all(
      group.map(async (recorded) => {
        const run = runOf(recorded.entries);
        const past = found.get(run)!;
        const committed = () => disk.get(run)!;
        const { ports, done: performed } = outsideFor(recorded, committed, acts);
        const begin = isFirst ? past[0]! : ({ type: "run.resumed", epoch: crash.after.length + 1 } as const);
        const isOver = past.at(-1)!.event.type === "run.ended";
        const state = isOver
          ? fold(ready(recorded.flow), past)
          : await drive({
              flow: ready(recorded.flow),
              ports,
              handle: {
                run,
                epoch: 1,
                append: (entries) => log.append(run, entries),
                release: async () => {},
              },
              past: isFirst ? [] : past,
              begin,
              signal: new AbortController().signal,
            });
        const all = disk.get(run)!;
        same(essence(state, all), wholes.get(recorded) ?? keep(recorded, essence(state, all)));
        same(performed, isOver ? {} : commitsOf(all.slice(past.length)));
        same(
          acts.filter((act) => keysOf(recorded).includes(act)),
          keysOf(recorded),
        );
      }),
    );
  } catch (error) {
    const how = `${group.map(({ name }) => name).join(", ")}; crashed ${crash.after.join(", then ")}; CRASH_SEED=${SEED}`;
    throw new Error(how, { cause: error });
  }
  return crashes;
}

const wholes = new WeakMap<Recorded, unknown>();

/** The first time there is no crash: what comes out then is held against the record, and all else against that. */
function keep(recorded: Recorded, whole: ReturnType<typeof essence>): unknown {
  const { path } = essence(fold(ready(recorded.flow), recorded.entries), recorded.entries);
  // Earlier versions did not record which siblings were started.
  assert.deepEqual(withoutForks(whole.path), withoutForks(path));
  wholes.set(recorded, whole);
  return whole;
}

/** Mostly it is the same letter by letter, and then that is found out much faster. */
function same(actual: unknown, expected: unknown): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) assert.deepEqual(actual, expected);
}

/** All of the state, the way it took, and how much of each kind is recorded. */
function essence(state: State, entries: readonly Entry[]) {
  const report = createReport();
  for (const entry of entries) addEntry(report, entry);
  // Whoever waits has been gone on with once more: that alone is counted.
  const halted: unknown = JSON.parse(
    JSON.stringify(state.halted, (key, value: unknown) => (key === "attempt" ? 0 : value)),
  );
  return { state: { ...state, halted }, path: report.path, commits: commitsOf(entries) };
}

function withoutForks(path: readonly Led[]): readonly object[] {
  return path.map(({ fork: _fork, ...led }) => led);
}

/** What was done, by the records of it. */
function commitsOf(entries: readonly Entry[]): { readonly [type: string]: number } {
  const counts: { [type: string]: number } = {};
  const add = (type: string, count: number) => (counts[type] = (counts[type] ?? 0) + count);
  for (const { event } of entries) {
    if (event.type === "step.checked") add("check", event.results.length);
    else if (event.type === "step.looked") add("sight", event.sights.length);
    else if (["step.answered", "step.called", "step.hooked"].includes(event.type)) add(event.type, 1);
  }
  return counts;
}

function lengthOf(group: readonly Recorded[]): number {
  return group.reduce((sum, { entries }) => sum + entries.length, 0);
}

function keysOf({ entries }: Recorded): readonly string[] {
  return entries.flatMap(({ event }) => (event.type === "effect.intended" ? [event.key] : []));
}

function runOf([first]: readonly Entry[]): string {
  assert.ok(first?.event.type === "run.started");
  return first.event.run;
}

function shuffled<T>(list: readonly T[]): T[] {
  const copy = [...list];
  for (let at = copy.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [copy[at], copy[other]] = [copy[other]!, copy[at]!];
  }
  return copy;
}
