/** What must hold for every run, whatever the model says; and what an author should know although it is allowed. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { replay } from "../story/replay.ts";
import { deedsOf, type Moment } from "../story/story.ts";
import { budgetOf } from "../tell/budget.ts";
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
  /** Calls that the box ran although the gate refuses them. */
  readonly trespasses: readonly string[];
  /** Texts that must not be on record. */
  readonly canaries: readonly string[];
};

export function brokenBy(flow: Prepared, run: FuzzedRun, known: FuzzFacts = knownOf(flow)): Broken | null {
  return (
    neverEnds(run) ??
    offGraph(run, known) ??
    unchecked(run) ??
    beyondBudget(run, known) ??
    notReplayed(flow, run) ??
    trespassed(run) ??
    badWords(run, known) ??
    leaked(run)
  );
}

/** What is worked out once for all runs of a flow. */
export type FuzzFacts = {
  readonly ways: ReadonlySet<string>;
  readonly answers: number;
  readonly ownWords: ReadonlySet<string>;
};

const known = new WeakMap<Flow, FuzzFacts>();

export function knownOf(flow: Flow): FuzzFacts {
  const before = known.get(flow);
  if (before !== undefined) return before;
  const ways = new Set<string>();
  for (const { from, to, kind, label } of outlineOf(flow).edges) {
    const owner = own(flow.steps, from)?.aside ?? from;
    const targets = to.kind === "any" ? to.among : [to.kind === "end" ? "end" : to.step];
    for (const target of targets) {
      ways.add(`${owner} ${target}`);
      if (kind === "back") ways.add(`${owner} x ${target}`);
    }
    if (kind === "fork") ways.add(`${owner} ${label} fork`);
  }
  // An answer that cannot be used may lead to the same step again, and any step may be the last.
  for (const id of Object.keys(flow.steps)) ways.add(`${id} ${id}`).add(`${id} end`);
  const texts = JSON.stringify(flow);
  const made: FuzzFacts = {
    ways,
    answers: budgetOf(flow).answers.most ?? Infinity,
    ownWords: new Set(BAD_WORDS.filter((word) => texts.includes(word))),
  };
  known.set(flow, made);
  return made;
}

function neverEnds({ moments, entries }: FuzzedRun): Broken | null {
  const last = moments.at(-1);
  if (last?.after.verdict != null || last?.after.pending.length === 0) return null;
  return { property: "ends", seq: entries.length, what: "the run has no verdict" };
}

/** By the ways that the flow declares, and not by how the engine finds them. */
function offGraph({ moments }: FuzzedRun, { ways }: FuzzFacts): Broken | null {
  for (const moment of moments)
    for (const { led } of deedsOf(moment, "settled")) {
      if (led.fork !== undefined || led.place !== undefined) continue;
      const to = led.to ?? "end";
      const stopped = moment.flow.stopGuard !== undefined || moment.flow.stop.kind !== "end";
      if (ways.has(`${led.step} ${to}`) || (led.overturned && (stopped || ways.has(`${led.step} x ${to}`))))
        continue;
      return {
        property: "graph",
        seq: moment.entry.seq,
        what: `${led.step} led to ${to}, which is not declared`,
      };
    }
  return null;
}

/** No completed end by a guarded label, unless all its checks passed in that visit or their failure is noted. */
function unchecked({ moments }: FuzzedRun): Broken | null {
  const passed = new Map<string, ReadonlySet<string>>();
  for (const { entry, flow, after } of moments) {
    const { event } = entry;
    if (event.type === "step.checked")
      passed.set(
        `${event.step}@${event.visit}`,
        new Set(event.results.filter(({ ok }) => ok).map(({ name }) => name)),
      );
    const { led } = entry;
    const guard = led === undefined ? undefined : own(flow.steps, led.step)?.guard;
    if (
      led === undefined ||
      guard?.on !== led.label ||
      led.overturned ||
      after.verdict?.outcome !== "completed"
    )
      continue;
    if (own(flow.steps, led.step)?.stage !== undefined || guard.onFailure === "skip") continue;
    const done = passed.get(`${led.step}@${led.visit}`) ?? new Set();
    const missing = guard.checks.find(({ check }) => !done.has(check));
    if (missing !== undefined)
      return {
        property: "checked",
        seq: entry.seq,
        what: `${led.step} took effect as ${led.label} without its check ${missing.check}`,
      };
  }
  return null;
}

function beyondBudget({ entries }: FuzzedRun, { answers }: FuzzFacts): Broken | null {
  let given = 0;
  for (const { seq, event } of entries) {
    if (event.type !== "step.answered" || event.reply.kind !== "said" || event.reply.calls.length > 0)
      continue;
    given += 1;
    if (given > answers)
      return { property: "budget", seq, what: `${given} answers, and ${answers} are proved to be the most` };
  }
  return null;
}

function notReplayed(flow: Prepared, { entries }: FuzzedRun): Broken | null {
  const { difference } = replay(flow, entries);
  if (difference !== null)
    return { property: "replay", seq: difference.seq, what: `${difference.about} came out another way` };
  const hidden = replay(flow, redact(flow, entries, {}).entries).difference;
  return hidden === null
    ? null
    : { property: "replay", seq: hidden.seq, what: `redacted, ${hidden.about} came out another way` };
}

function trespassed({ trespasses, entries }: FuzzedRun): Broken | null {
  const [first] = trespasses;
  return first === undefined ? null : { property: "tools", seq: entries.length, what: `${first} was run` };
}

const BAD_WORDS = ["{uv-", "[object Object]", "undefined"];

function badWords({ heard, entries }: FuzzedRun, { ownWords }: FuzzFacts): Broken | null {
  for (const { step, visit, system } of heard) {
    const word = BAD_WORDS.find((one) => !ownWords.has(one) && system.includes(one));
    if (word !== undefined) {
      const seq =
        entries.findIndex(
          ({ event }) => event.type === "step.answered" && event.step === step && event.visit === visit,
        ) + 1;
      return { property: "words", seq, what: `a request of ${step}@${visit} holds ${word}` };
    }
  }
  return null;
}

function leaked({ entries, canaries }: FuzzedRun): Broken | null {
  if (canaries.length === 0) return null;
  for (const entry of entries) {
    const text = JSON.stringify(entry);
    const canary = canaries.find((one) => text.includes(one));
    if (canary !== undefined) return { property: "secrets", seq: entry.seq, what: "a secret is on record" };
  }
  return null;
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
    if (reply.kind === "unaskable") add({ code: "FUZZ-UNASKABLE", step, seq, what: reply.why });
    for (const { found: word, payload } of deedsOf(moment, "read"))
      if (word !== undefined && payload !== null && after.verdict !== null)
        add({
          code: "FUZZ-LEGAL-END",
          step,
          seq,
          what: `an answer that fits its schema ends the run: ${after.verdict.reason}`,
        });
    if (after.verdict?.code === "FAILED_STEP_ROUTING")
      add({
        code: "FUZZ-LEGAL-END",
        step,
        seq,
        what: `an answer that fits its schema leads nowhere: ${after.verdict.reason}`,
      });
    if (after.verdict?.code === "AGENT_MAX_ITERATIONS")
      add({ code: "FUZZ-LIVELOCK", step, seq, what: after.verdict.reason });
  }
  return [...found.values()];
}
