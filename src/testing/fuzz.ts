/** Runs a flow against a hostile model, many times: in memory, the same for the same seed, shrunk to the smallest case. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { Entry } from "../flow/event.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Step, StepId } from "../flow/flow.ts";
import { sameJson, type JsonObject } from "../flow/json.ts";
import { NO_SETTINGS, type TestSettings } from "../flow/test-settings.ts";
import { argumentsFor, inputFor } from "../proof/arguments.ts";
import { breachesIn } from "../proof/author.ts";
import { addHits, type Hits } from "../proof/cover.ts";
import { createGuide } from "../proof/guide.ts";
import { mannersOf } from "../proof/manners.ts";
import { createDraw, seeded, varied, type Draw } from "../proof/draw.ts";
import { expandReplies } from "../proof/expand.ts";
import { kindOf, oddAnswer, PERSONA_NAMES, type Persona } from "../proof/personas.ts";
import {
  isBroken,
  isBrokenRedacted,
  PROPERTIES,
  SHOWN,
  weaknessesIn,
  type Broken,
  type Weakness,
} from "../proof/properties.ts";
import { shrink } from "../proof/shrink.ts";
import { testOf } from "./hostile-case.ts";
import { drawnSurroundings, givenBy, markOf, repeated, type Cast } from "./hostile-surroundings.ts";
import { hostileRun, type FuzzGround, type FuzzParts, type HostileRun } from "./hostile.ts";

export type FuzzOptions = {
  readonly seed?: number;
  readonly runs?: number;
  /** Asked before each run: whether it is the last that is wanted. */
  readonly isOver?: () => boolean;
  readonly personas?: readonly Persona[];
  readonly params?: JsonObject;
  /** The author's own properties. */
  readonly settings?: TestSettings;
  /** Whether half of the runs go on from runs that showed something new. */
  readonly isGuided?: boolean;
  readonly parts?: FuzzParts;
};

export type FuzzCase = {
  readonly persona: Persona;
  readonly numbers: readonly number[];
  readonly test: FlowTest;
  /** The run of the test. */
  readonly entries: readonly Entry[];
  readonly tries: number;
};

export type Fuzzed = {
  readonly runs: number;
  /** How the runs of each persona ended, by outcome and code. */
  readonly ends: ReadonlyMap<Persona, ReadonlyMap<string, number>>;
  readonly hits: Hits;
  readonly broken: readonly (Broken & FuzzCase)[];
  readonly weaknesses: readonly (Weakness & FuzzCase)[];
};

export async function fuzz(flow: Prepared, options: FuzzOptions = {}): Promise<Fuzzed> {
  const { seed = 1, runs: most = 1000, isOver, personas = PERSONA_NAMES, params, parts = {} } = options;
  const { settings = NO_SETTINGS, isGuided = true } = options;
  const manners = mannersOf(flow);
  const ground: FuzzGround = {
    flow,
    args: argumentsFor(flow, params),
    input: inputFor(flow),
    manners,
    parts,
  };
  const judge = createJudge(ground, settings);
  const hits: Hits = new Map();
  const ends = new Map<Persona, Map<string, number>>(
    PERSONA_NAMES.filter((name) => personas.includes(name)).map((name) => [name, new Map()]),
  );
  const guide = createGuide(flow);
  const broken = new Map<string, Broken & FuzzCase>();
  const weaknesses = new Map<string, Weakness & FuzzCase>();
  const rare = new Map<string, number[]>();
  let runs = 0;
  for (; runs < most; runs++) {
    if (isOver?.() === true) break;
    // An interruption is heard only between runs.
    if (runs % BREATH === BREATH - 1) await new Promise(setImmediate);
    const more = seeded(seed * 1_000_003 + runs);
    const way = isGuided && more(5) > 0 ? guide.wayTo(hits, more) : null;
    const least = isGuided ? varied(more, rare) : more;
    let odd: { readonly persona: Persona; readonly about: string } | null = null;
    const same = new Map<string, number>();
    const next: Draw["next"] = (of, about) => {
      const key = `${of} ${about}`;
      const before = constant !== undefined && about !== undefined ? same.get(key) : undefined;
      if (before !== undefined) return before;
      const value = odd !== null && about === odd.about ? oddAnswer(odd.persona, least) : least(of, about);
      same.set(key, value);
      return value;
    };
    const persona = personas[least(personas.length)]!;
    const cast: Persona[] = way === null ? [] : [...way.cast];
    const mayAsk = (step: StepId) => guide.askers(hits, step).filter((one) => personas.includes(one));
    // Limits are reached by one that answers alike each time, most other things by one that suits the step.
    const [constant] = way === null || more(2) === 0 ? [] : oneOf(mayAsk(way.step), more);
    const draw = createDraw(way?.numbers ?? [], next);
    const who = (step: Step) => {
      guide.note({ step: step.id, cast, numbers: draw.drawn });
      const askers = way === null ? [] : constant === undefined ? mayAsk(step.id) : [constant];
      const asker = askers[least(askers.length || 1, `${step.id} who`)] ?? persona;
      odd = askers.length > 0 && more(4) > 0 ? { persona: asker, about: kindOf(step, asker) } : null;
      return asker;
    };
    const run = await hostileRun(ground, drawnSurroundings(ground, cast, draw, who));
    for (const moment of run.moments) addHits(hits, moment);
    const [end, counts] = [endOf(run), ends.get(persona)!];
    counts.set(end, (counts.get(end) ?? 0) + 1);
    const smallest = <T extends Found>({ seq }: Found, seek: Seek<T>, tries: number) =>
      smallestCase(ground, { cast, numbers: draw.drawn, by: speakerAt(run, cast, seq) }, seek, tries);
    for (const fault of await judge.all(run, more)) {
      const key = nameOf(fault);
      if (broken.has(key)) continue;
      broken.set(key, { ...fault, ...(await smallest(fault, (next) => judge.one(next, fault), 2000)) });
    }
    for (const weakness of weaknessesIn(run)) {
      const key = keyOf(weakness);
      if (weaknesses.has(key)) continue;
      const seek: Seek<Weakness> = (next) =>
        Promise.resolve(weaknessesIn(next).find((one) => keyOf(one) === key) ?? null);
      weaknesses.set(key, { ...weakness, ...(await smallest(weakness, seek, 600)) });
    }
  }
  const byName = <T>(all: ReadonlyMap<string, T>) =>
    [...all].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  return { runs, ends, hits, broken: byName(broken), weaknesses: byName(weaknesses) };
}

/** What a case that was saved before still shows: properties that it breaks, and weaknesses. */
export async function shownBy(
  flow: Prepared,
  test: FlowTest,
  { settings = NO_SETTINGS, parts = {} }: Pick<FuzzOptions, "settings" | "parts"> = {},
): Promise<readonly (Broken | Weakness)[]> {
  const { params: args, input } = test;
  const expansion = expandReplies(flow, test.script);
  if (expansion.kind === "none") return [];
  const ground: FuzzGround = { flow, args, input, manners: mannersOf(flow), parts };
  const judge = createJudge(ground, settings);
  const run = await hostileRun(ground, givenBy(test, expansion.replies));
  const found: (Broken | Weakness)[] = [...breachesOf(run, settings), ...weaknessesIn(run)];
  for (const property of PROPERTIES)
    found.push(...[await judge.one(run, { property, seq: 0, what: "" })].filter((one) => one !== null));
  return found;
}

const BREATH = 64;

function oneOf<T>(all: readonly T[], more: (of: number) => number): readonly T[] {
  return all.length === 0 ? [] : [all[more(all.length)]!];
}

function endOf({ state: { verdict }, thrown }: HostileRun): string {
  if (thrown !== null || verdict === null) return "no verdict";
  return verdict.code === null ? verdict.outcome : `${verdict.outcome} ${verdict.code}`;
}

/** A run that does not get out of its steps can be found at any of them. */
function keyOf({ code, step }: Weakness): string {
  return code === "FUZZ-LIVELOCK" ? code : `${code} ${step}`;
}

/** Each property of the author counts by itself. */
function nameOf({ property, what }: Broken): string {
  return property === "author" ? `author ${what.split(":", 1)[0]!}` : property;
}

/** Where a run shows what was found. */
type Found = { readonly seq: number };
type Seek<T extends Found> = (run: HostileRun) => Promise<T | null>;

/** `by`: the persona that gave the response at which it was found. */
async function smallestCase<T extends Found>(
  ground: FuzzGround,
  { cast, numbers, by }: { readonly cast: Cast; readonly numbers: readonly number[]; readonly by: Persona },
  seek: Seek<T>,
  most: number,
): Promise<FuzzCase & Partial<T>> {
  const runOf = (who: Cast, list: readonly number[]) =>
    hostileRun(ground, drawnSurroundings(ground, [...who], createDraw(list)));
  const fails = async (who: Cast, list: readonly number[]) => (await seek(await runOf(who, list))) !== null;
  const isAlone = cast.every((persona) => persona === by);
  const start = isAlone ? null : await withoutPrefix(numbers, (list) => fails([by], list));
  const who = start === null ? cast : [by];
  const { list, tries } = await shrink(start ?? numbers, (next) => fails(who, next), most);
  const whole = await runOf(who, list);
  const found = await seek(whole);
  const cut = found === null ? null : await cutAt(ground, whole, found.seq, seek);
  const { run, it } = cut ?? { run: whole, it: found };
  const test = testOf(run, `a ${by} model`, ground);
  return { ...it, persona: by, numbers: list, test, entries: run.entries, tries } as FuzzCase & Partial<T>;
}

function speakerAt(run: HostileRun, cast: Cast, seq: number): Persona {
  return cast[lastMark(run, seq)] ?? cast.at(-1)!;
}

/** The place of the newest response that is recorded up to an entry. */
function lastMark({ entries }: HostileRun, seq: number): number {
  return Math.max(0, ...entries.slice(0, seq).flatMap(({ event }) => markOf(event) ?? []));
}

/** The same without the responses after what was found, if that still shows it. */
async function cutAt<T extends Found>(
  ground: FuzzGround,
  whole: HostileRun,
  seq: number,
  seek: Seek<T>,
): Promise<{ readonly run: HostileRun; readonly it: T } | null> {
  const script = whole.script.slice(0, lastMark(whole, seq) + 1);
  if (script.length >= whole.script.length) return null;
  const run = await hostileRun(ground, givenBy(testOf(whole, "", ground), script));
  const it = await seek(run);
  return it === null ? null : { run: { ...run, script }, it };
}

/** Others answered on the way to where the run began to be its own: plain answers, which are 0, may lead there too. */
async function withoutPrefix(
  numbers: readonly number[],
  fails: (list: readonly number[]) => Promise<boolean>,
): Promise<readonly number[] | null> {
  for (let plain = 0; plain <= MOST_PLAIN; plain++)
    for (let from = numbers.length - 1; from >= Math.max(0, numbers.length - MOST_OWN); from--) {
      const list = [...Array.from({ length: plain }, () => 0), ...numbers.slice(from)];
      if (await fails(list)) return list;
    }
  return null;
}

const MOST_PLAIN = 12;
const MOST_OWN = 24;

/** `all`: what a run breaks; costly properties are looked at now and then. `one`: whether it breaks this one too. */
function createJudge(ground: FuzzGround, settings: TestSettings) {
  const { flow } = ground;
  const breaches = (run: HostileRun) => breachesOf(run, settings);
  return {
    all: async (run: HostileRun, more: (of: number) => number): Promise<readonly Broken[]> => {
      const found = SHOWN.flatMap((property) => isBroken(flow, run, property) ?? []);
      if (found.some(({ property }) => property === "calm" || property === "ends")) return found;
      const cut = more(Math.max(1, lastCut(run)));
      const isRedacted = more(REDACTED_EVERY) === 0 && !found.some(({ property }) => property === "replay");
      const again = [
        isRedacted ? isBrokenRedacted(flow, run) : null,
        more(RESUMED_EVERY) === 0 ? await notResumed(ground, run, 1 + cut) : null,
        more(MOVED_EVERY) === 0 ? await isMoved(ground, run) : null,
      ].filter((one) => one !== null);
      return [...found, ...again, ...breaches(run)];
    },
    one: async (run: HostileRun, fault: Broken): Promise<Broken | null> => {
      const { property } = fault;
      if (property === "author") return breaches(run).find((one) => nameOf(one) === nameOf(fault)) ?? null;
      if (property === "unmoved") return run.thrown === null ? await isMoved(ground, run) : null;
      if (property === "replay") return isBroken(flow, run, property) ?? isBrokenRedacted(flow, run);
      if (property !== "resume") return isBroken(flow, run, property);
      const last = run.thrown === null ? lastCut(run) : 0;
      const step = Math.max(1, Math.ceil(last / MOST_CUTS));
      for (let cut = 1; cut <= last; cut += step) {
        const broken = await notResumed(ground, run, cut);
        if (broken !== null) return broken;
      }
      return null;
    },
  };
}

function breachesOf({ moments }: HostileRun, settings: TestSettings): readonly Broken[] {
  return breachesIn(moments, settings).map(({ seq, rule, at, what }) => ({
    property: "author",
    seq,
    what: `${rule}: ${at}: ${what}`,
  }));
}

const REDACTED_EVERY = 16;
const RESUMED_EVERY = 1;
const MOVED_EVERY = 8;
const MOST_CUTS = 40;

/** After so many entries a run can be resumed. */
function lastCut({ entries }: HostileRun): number {
  const end = entries.findIndex(({ event }) => event.type === "run.ended");
  return (end === -1 ? entries.length : end) - 1;
}

/** Resumed from a prefix, the run comes to the same end, and asks for nothing that is on record. */
async function notResumed(ground: FuzzGround, run: HostileRun, cut: number): Promise<Broken | null> {
  if (cut > lastCut(run) || isAskedAbout(run, cut)) return null;
  const past = run.entries.slice(0, cut);
  const next = await hostileRun(ground, repeated(run, past), { past, isBare: true });
  const [was, is] = [endOf(run), endOf(next)];
  const what = next.thrown?.message ?? (was === is ? null : `it ends as ${is} and not as ${was}`);
  return what === null ? null : { property: "resume", seq: cut, what: `resumed after entry ${cut}: ${what}` };
}

/** A step that says what becomes of an interruption does not simply go on. */
function isAskedAbout({ moments }: HostileRun, cut: number): boolean {
  const moment = moments[cut - 1];
  const steps = moment?.flow.steps ?? {};
  return moment?.after.lanes.some(({ step }) => steps[step]?.ifInterrupted !== undefined) ?? false;
}

/** Other words of tools and checks, the same answers: the same way. */
async function isMoved(ground: FuzzGround, run: HostileRun): Promise<Broken | null> {
  const hasTexts =
    Object.keys(run.tools).length > 0 ||
    Object.values(run.checks)
      .flat()
      .some(({ kind }) => kind === "fail");
  if (!hasTexts) return null;
  const outside = repeated(run, [], () => "other words");
  const next = await hostileRun(ground, outside, { isBare: true });
  const [was, is] = [wayOf(run), wayOf(next)];
  const at = was.findIndex((led, place) => !sameJson(led, is[place] ?? null));
  if (next.thrown === null && at === -1 && was.length === is.length && endOf(run) === endOf(next))
    return null;
  const step = was[at === -1 ? was.length - 1 : at]?.[0] ?? "the run";
  return {
    property: "unmoved",
    seq: run.entries.length,
    what: `with other words in the results of tools and checks, ${step} leads elsewhere`,
  };
}

function wayOf({ entries }: HostileRun): readonly (readonly [StepId, string | null, StepId | null])[] {
  return entries.flatMap(({ led }) => (led === undefined ? [] : [[led.step, led.label, led.to] as const]));
}
