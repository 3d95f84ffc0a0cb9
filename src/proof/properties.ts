/** What must hold for every run, whatever the model says; and what an author should know although it is allowed. */
import type { Prepared } from "../engine/schema/prepared.ts";
import { visitKey } from "../flow/deed.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { parseRetry } from "../flow/text/retry.ts";
import { editionOf } from "../prompts/compose.ts";
import { renderRetry } from "../prompts/retry.ts";
import { replay } from "../story/replay.ts";
import { deedsOf, type Moment } from "../story/story.ts";
import { answersOf, budgetOf, responsesOf } from "../tell/budget.ts";
import { outlineOf } from "../tell/outline.ts";
import { redact } from "../tell/redact-run.ts";
import type { Heard } from "./observe.ts";

export const PROPERTIES = [
  "ends",
  "graph",
  "checked",
  "budget",
  "replay",
  "resume",
  "tools",
  "words",
  "secrets",
  "unmoved",
  "calm",
] as const;

export type Property = (typeof PROPERTIES)[number];

/** `seq`: the entry at which it broke. */
export type Broken = { readonly property: Property | "author"; readonly seq: number; readonly what: string };

/** Allowed, and still not what an author wants. */
export type Weakness = {
  readonly code: "FUZZ-LEGAL-END" | "FUZZ-UNASKABLE" | "FUZZ-EDITION-BLANK" | "FUZZ-LIVELOCK";
  readonly step: StepId;
  readonly seq: number;
  readonly what: string;
};

export type FuzzedRun = {
  readonly moments: readonly Moment[];
  readonly entries: readonly Entry[];
  readonly heard: readonly Heard[];
  /** Calls that the box ran although it must not. */
  readonly trespasses: readonly string[];
  /** Texts that must not be on record. */
  readonly canaries: readonly string[];
  /** All that models, tools and checks said, as one text. */
  readonly outside: () => string;
  /** Why the run could not go on: the engine threw, or did not come to an end. */
  readonly thrown: { readonly kind: "error" | "endless"; readonly message: string } | null;
};

/** Properties that a run shows by itself; `resume` and `unmoved` need a second run. */
export type ShownProperty = Exclude<Property, "resume" | "unmoved">;

const BROKEN: {
  readonly [property in ShownProperty]: (flow: Prepared, run: FuzzedRun) => Omit<Broken, "property"> | null;
} = {
  ends: neverEnds,
  graph: offGraph,
  checked: unchecked,
  budget: beyondBudget,
  replay: notReplayed,
  tools: trespassed,
  words: badWords,
  secrets: leaked,
  calm: notCalm,
};

export const SHOWN = Object.keys(BROKEN) as readonly ShownProperty[];

export function isBroken(flow: Prepared, run: FuzzedRun, property: ShownProperty): Broken | null {
  const found = BROKEN[property](flow, run);
  return found === null ? null : { property, ...found };
}

/** Without words: replayed once more as it is exported. */
export function isBrokenRedacted(flow: Prepared, { entries }: FuzzedRun): Broken | null {
  try {
    const { difference } = replay(flow, redact(flow, entries, {}).entries);
    if (difference === null) return null;
    return {
      property: "replay",
      seq: difference.seq,
      what: `redacted, ${difference.about} comes out differently`,
    };
  } catch (error) {
    return {
      property: "replay",
      seq: entries.length,
      what: error instanceof Error ? error.message : String(error),
    };
  }
}

type Found = Omit<Broken, "property"> | null;

/** What is worked out once for all runs of a flow. */
type FuzzFacts = {
  readonly ways: ReadonlySet<string>;
  readonly answers: number;
  readonly responses: number;
  readonly ownWords: ReadonlySet<string>;
};

const known = new WeakMap<Flow, FuzzFacts>();

function knownOf(flow: Flow): FuzzFacts {
  const before = known.get(flow);
  if (before !== undefined) return before;
  const ways = new Set<string>();
  for (const { from, to, kind } of outlineOf(flow).edges) {
    const owner = own(flow.steps, from)?.aside ?? from;
    const targets = to.kind === "any" ? to.among : [to.kind === "end" ? "end" : to.step];
    for (const target of targets) {
      ways.add(`${owner} ${target}`);
      if (kind === "back") ways.add(`${owner} x ${target}`);
    }
  }
  // An answer that cannot be used may lead to the same step again, and any step may be the last.
  for (const id of Object.keys(flow.steps)) ways.add(`${id} ${id}`).add(`${id} end`);
  const texts = JSON.stringify(flow);
  const { answers, responses } = budgetOf(flow);
  const made: FuzzFacts = {
    ways,
    answers: answers.most ?? Infinity,
    responses: responses.most ?? Infinity,
    ownWords: new Set(BAD_WORDS.filter((word) => texts.includes(word))),
  };
  known.set(flow, made);
  return made;
}

function neverEnds(_flow: Prepared, { moments, entries, thrown }: FuzzedRun): Found {
  if (thrown?.kind === "endless") return { seq: entries.length, what: thrown.message };
  if (thrown !== null || moments.at(-1)?.after.verdict != null) return null;
  return { seq: entries.length, what: "the run has no verdict" };
}

/** By the ways that the flow declares, and not by how the engine finds them. */
function offGraph(flow: Prepared, { entries }: FuzzedRun): Found {
  const { ways } = knownOf(flow);
  const mayStop = flow.stopGuard !== undefined || flow.stop.kind !== "end";
  for (const { seq, led } of entries) {
    if (led === undefined || led.fork !== undefined || led.place !== undefined) continue;
    const to = led.to ?? "end";
    const isDeclared =
      ways.has(`${led.step} ${to}`) || (led.overturned && (mayStop || ways.has(`${led.step} x ${to}`)));
    if (!isDeclared) return { seq, what: `${led.step} led to ${to}, which is not declared` };
  }
  return null;
}

/** No completed end by a guarded label, unless all its checks passed in that visit or their failure is noted. */
function unchecked({ steps }: Prepared, { entries }: FuzzedRun): Found {
  const passed = new Map<string, ReadonlySet<string>>();
  const last = entries.at(-1)?.event;
  const isCompleted = last?.type === "run.ended" && last.verdict.outcome === "completed";
  for (const { seq, event, led } of entries) {
    if (event.type === "step.checked") {
      const good = event.results.filter(({ ok }) => ok).map(({ name }) => name);
      passed.set(visitKey(event), new Set(good));
    }
    if (led === undefined || led.overturned || led.to !== null || !isCompleted) continue;
    const step = own(steps, led.step);
    const guard = step?.guard;
    if (guard?.on !== led.label || step?.stage !== undefined || guard.onFailure === "skip") continue;
    const done = passed.get(visitKey(led));
    const missing = guard.checks.find(({ check }) => done?.has(check) !== true);
    if (missing !== undefined)
      return { seq, what: `${led.step} took effect as ${led.label} without its check ${missing.check}` };
  }
  return null;
}

function beyondBudget(flow: Prepared, { entries }: FuzzedRun): Found {
  const most = knownOf(flow);
  const counts = new Map<string, { answers: number; responses: number }>();
  const all = { answers: 0, responses: 0 };
  for (const { seq, event } of entries) {
    if (event.type !== "step.answered" || event.reply.kind !== "said") continue;
    const step = own(flow.steps, event.step);
    if (step === undefined || step.by.kind === "command") continue;
    const key = visitKey(event);
    const here = counts.get(key) ?? { answers: 0, responses: 0 };
    counts.set(key, here);
    const isAnswer = event.reply.calls.length === 0;
    for (const count of [here, all]) {
      count.responses += 1;
      if (isAnswer) count.answers += 1;
    }
    if (all.answers > most.answers)
      return { seq, what: `${all.answers} answers, and at most ${most.answers} are possible` };
    if (all.responses > most.responses)
      return { seq, what: `${all.responses} responses, and at most ${most.responses} are possible` };
    if (here.responses > responsesOf(step) || here.answers > answersOf(step))
      return {
        seq,
        what: `${key} took ${here.answers} answers and ${here.responses} responses, more than its limits allow`,
      };
  }
  return null;
}

function notReplayed(flow: Prepared, { entries }: FuzzedRun): Found {
  const { difference } = replay(flow, entries);
  return difference === null
    ? null
    : { seq: difference.seq, what: `replayed, the ${difference.about} comes out differently` };
}

function trespassed(_flow: Prepared, { trespasses, entries }: FuzzedRun): Found {
  const [first] = trespasses;
  return first === undefined ? null : { seq: entries.length, what: first };
}

const BAD_WORDS = ["{uv-", "[object Object]", "undefined"];

/** Of what the flow says: what a model, a tool or a check said may hold anything. */
function badWords(flow: Prepared, { heard, entries, outside }: FuzzedRun): Found {
  const { ownWords } = knownOf(flow);
  for (const { step, visit, system, said } of heard) {
    const word = BAD_WORDS.find((one) => (system.includes(one) || said.includes(one)) && !ownWords.has(one));
    if (word === undefined || outside().includes(word)) continue;
    const at = entries.findIndex(
      ({ event }) => event.type === "step.answered" && event.step === step && event.visit === visit,
    );
    return { seq: at + 1, what: `a request of ${step}@${visit} holds ${word}` };
  }
  return null;
}

function leaked(_flow: Prepared, { entries, canaries }: FuzzedRun): Found {
  if (canaries.length === 0) return null;
  const isIn = (value: unknown) => {
    const text = JSON.stringify(value);
    return canaries.some((canary) => text.includes(canary));
  };
  const first = isIn(entries) ? entries.find(isIn) : undefined;
  return first === undefined ? null : { seq: first.seq, what: `a secret is recorded in ${first.event.type}` };
}

/** Nothing is thrown, every entry is JSON, and a fault that passes costs no visit. */
function notCalm(_flow: Prepared, { entries, moments, thrown }: FuzzedRun): Found {
  if (thrown?.kind === "error") return { seq: entries.length, what: thrown.message };
  const odd = entries.find(({ event }) => !hasPlainMembers(event));
  if (odd !== undefined) return { seq: odd.seq, what: `${odd.event.type} is not JSON` };
  for (const { entry, deeds, before, after } of moments)
    for (const deed of deeds)
      if (deed.kind === "waits" && after.visits[deed.step] !== before.visits[deed.step])
        return { seq: entry.seq, what: `a passing fault cost ${deed.step} a visit` };
  return null;
}

function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return false;
  return Array.isArray(value) ? value.every(isPlain) : hasPlainMembers(value as Members);
}

type Members = { readonly [key: string]: unknown };

function hasPlainMembers(value: Members): boolean {
  for (const key in value) {
    const member = value[key];
    if (member !== undefined && !isPlain(member)) return false;
  }
  return true;
}

/** The first weakness that the run shows of each kind and step. */
export function weaknessesIn({ moments }: FuzzedRun): readonly Weakness[] {
  const found = new Map<string, Weakness>();
  const add = (weakness: Weakness) => {
    const key = `${weakness.code} ${weakness.step}`;
    if (!found.has(key)) found.set(key, weakness);
  };
  for (const moment of moments) {
    const { entry, after } = moment;
    const { seq, event } = entry;
    if (event.type !== "step.answered") continue;
    const { step, reply } = event;
    for (const what of blankEditions(moment, event)) add({ code: "FUZZ-EDITION-BLANK", step, seq, what });
    if (reply.kind === "unaskable") add({ code: "FUZZ-UNASKABLE", step, seq, what: reply.why });
    const { verdict } = after;
    const isStray = deedsOf(moment, "read").some(
      ({ found: word, errors }) => word !== undefined && errors.length === 0,
    );
    const isLost = deedsOf(moment, "followed").some(({ move, why }) => move === null && why !== null);
    if (verdict !== null && verdict.outcome !== "completed" && (isStray || isLost))
      add({
        code: "FUZZ-LEGAL-END",
        step,
        seq,
        what: `an answer that fits its schema ${isStray ? "ends the run" : "leads nowhere"}: ${verdict.reason}`,
      });
    if (after.verdict?.code === "AGENT_MAX_ITERATIONS")
      add({ code: "FUZZ-LIVELOCK", step, seq, what: after.verdict.reason });
  }
  return [...found.values()];
}

/** Retry prompts that read what their check gave, where all of that is empty: the model is not told what failed. */
function blankEditions(
  { flow, before }: Moment,
  { step, visit }: { readonly step: StepId; readonly visit: number },
): readonly string[] {
  const said = before.lanes.find((lane) => lane.step === step && lane.visit === visit)?.say ?? [];
  return said.flatMap((say) => {
    // Only a failure that the check's own rule found has the values that a run would have.
    if (say.kind !== "failed-check" || !Object.hasOwn(say.result.params, "command")) return [];
    const { name, params } = say.result;
    const edition = editionOf(flow, say.guard, name);
    if (edition?.file == null || parseRetry(edition.text).reads.length === 0) return [];
    if (renderRetry(edition.text, params) !== renderRetry(edition.text, {})) return [];
    return [`${edition.file} names nothing if "${name}" fails with this output: add {{summary}} to it`];
  });
}
