/** The figures of one recorded run: a fold of its story, small enough to keep for every run of a project. */
import type { State } from "../engine/decide/state.ts";
import { judgedIn, type Entry, type Question, type Reply, type Usage } from "../flow/event.ts";
import type { StepId } from "../flow/flow.ts";
import { deedsOf, type Moment } from "../story/story.ts";
import { addToTally, createTally, tallied, type StepTally } from "../story/tally.ts";
import { addHits, type Hits } from "./cover.ts";
import { createClaims, type DoneClaim } from "./honesty.ts";

export type RunFigures = {
  /** Epoch milliseconds of its first entry. */
  readonly at: number;
  /** The digest of the flow that held in the end. */
  readonly flow: string;
  /** While a process drove it. */
  readonly ms: number;
  readonly visits: number;
  readonly usage: Usage;
  readonly steps: readonly StepTally[];
  readonly retries: readonly StepRetries[];
  readonly claims: readonly DoneClaim[];
  /** Whether the flow has ended the run; else it may go on. */
  readonly isOver: boolean;
  readonly questions: readonly QuestionFigures[];
  readonly denials: readonly { readonly step: StepId; readonly tool: string; readonly times: number }[];
  /** How often it has shown each element of its flow. */
  readonly hits: Hits;
};

/** What it took until a model's answers of a step could be used. */
export type StepRetries = {
  readonly step: StepId;
  readonly model: string;
  readonly answers: number;
  /** Answers that were sent back. */
  readonly repairs: number;
  readonly faults: { readonly [kind: string]: number };
  /** Labels that were given by another word, or for want of one. */
  readonly aliases: number;
  readonly fallbacks: number;
};

export type QuestionFigures = {
  readonly about: Question["about"];
  readonly askedAt: number;
  /** null: it is open. */
  readonly waitedMs: number | null;
  /** Who settled it; null: it is open, or nobody was there. */
  readonly by: string | null;
};

type Growing<T> = { -readonly [key in keyof T]: T[key] };
type Retries = Growing<Omit<StepRetries, "faults">> & { readonly faults: { [kind: string]: number } };

/** Give it every moment of the run, then ask for its figures. */
export function createRunFigures(digest: string): {
  readonly add: (moment: Moment) => void;
  readonly figures: () => RunFigures;
} {
  const { add: addClaims, claims, isOver } = createClaims();
  const tally = createTally();
  const hits: Hits = new Map();
  const people = createQuestions();
  const retries = new Map<string, Retries>();
  const denials = new Map<string, Growing<RunFigures["denials"][number]>>();
  const models = new Map<StepId, string>();
  let flow = digest;
  let last: Moment | null = null;
  let began = 0;
  let ms = 0;

  const retriesOf = (step: StepId): Retries => {
    const model = models.get(step) ?? UNKNOWN;
    const key = `${step}\0${model}`;
    const known = retries.get(key);
    if (known !== undefined) return known;
    const made = { step, model, answers: 0, repairs: 0, faults: {}, aliases: 0, fallbacks: 0 };
    retries.set(key, made);
    return made;
  };
  const deny = (step: StepId, tool: string) => {
    const key = `${step}\0${tool}`;
    const known = denials.get(key);
    if (known === undefined) denials.set(key, { step, tool, times: 1 });
    else known.times += 1;
  };

  const addReply = (step: StepId, reply: Reply) => {
    for (const { name, denied } of judgedIn(reply)) if (denied !== undefined) deny(step, name);
    if (reply.kind === "unaskable") return;
    const model = reply.by?.answered ?? reply.by?.model;
    if (model !== undefined) models.set(step, model);
    const mine = retriesOf(step);
    if (reply.kind === "said") mine.answers += 1;
    else {
      const kind = reply.kind === "fault" ? reply.fault.kind : reply.kind;
      mine.faults[kind] = (mine.faults[kind] ?? 0) + 1;
    }
  };

  const add = (moment: Moment) => {
    const { entry, after } = moment;
    const { event } = entry;
    if (last === null) began = entry.at;
    ms += drivenBetween(last?.entry ?? null, entry);
    last = moment;
    addToTally(tally, entry, after);
    addClaims(moment);
    addHits(hits, moment);
    people.add(entry);
    if (event.type === "run.adopted") ({ flow } = event);
    if (event.type === "step.answered") addReply(event.step, event.reply);
    if (event.type === "step.called")
      for (const { name, denied } of event.results) if (denied !== undefined) deny(event.step, name);
    for (const { step } of deedsOf(moment, "sent-back")) retriesOf(step).repairs += 1;
    for (const { step, by } of deedsOf(moment, "read")) {
      if (by === "alias") retriesOf(step).aliases += 1;
      if (by === "fallback") retriesOf(step).fallbacks += 1;
    }
  };

  const figures = (): RunFigures => {
    const { iterations, usage }: Pick<State, "iterations" | "usage"> = last?.after ?? NOTHING;
    return {
      at: began,
      flow,
      ms,
      visits: iterations,
      usage,
      steps: tallied(tally),
      retries: [...retries.values()],
      claims,
      isOver: isOver(),
      questions: people.questions,
      denials: [...denials.values()],
      hits,
    };
  };
  return { add, figures };
}

const UNKNOWN = "unknown";
const NOTHING = { iterations: 0, usage: { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: null } };

/** The time between two entries, unless nobody drove the run in between. */
function drivenBetween(before: Entry | null, { at, moved = 0, event }: Entry): number {
  if (before === null || event.type === "run.resumed" || event.type === "run.noted") return 0;
  return Math.max(0, at - before.at - moved);
}

function createQuestions() {
  const questions: Growing<QuestionFigures>[] = [];
  const open = new Map<string, Growing<QuestionFigures>>();
  const add = ({ at, event }: Entry) => {
    if (event.type === "step.asked") {
      const { id, about } = event.question;
      const asked = { about, askedAt: at, waitedMs: null, by: null };
      open.set(id, asked);
      questions.push(asked);
    }
    if (event.type !== "step.told" || event.id === undefined) return;
    const asked = open.get(event.id);
    if (asked === undefined) return;
    open.delete(event.id);
    asked.waitedMs = Math.max(0, at - asked.askedAt);
    asked.by = event.by === "headless" ? null : (event.by ?? null);
  };
  return { questions, add };
}
