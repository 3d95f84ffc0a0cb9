/** What a row of the list of runs says of one run, folded entry by entry. */
import { openQuestions } from "../engine/decide/people.ts";
import { EMPTY_STATE, type Lane, type State } from "../engine/decide/state.ts";
import type { RunRow } from "../engine/ports.ts";
import type { Entry, Event } from "../flow/event.ts";
import type { Json } from "../flow/json.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { namelessQuestion } from "../run/people/answer.ts";
import type { Moment } from "../story/story.ts";
import { waitingQuestions, type OpenQuestion } from "../tell/open-questions.ts";
import type { AnsweredQuestion, LaneSeen, LineFacts, QuestionSeen } from "./wire.ts";

export type LineFold = {
  readonly add: (moment: Moment) => void;
  readonly facts: () => LineFacts;
  /** Those that are open. */
  readonly questions: (row: Pick<RunRow, "id" | "agent" | "owned">) => readonly QuestionSeen[];
  /** Those that were answered, oldest first; of very many the newest. */
  readonly answered: (row: Pick<RunRow, "id" | "agent">) => readonly AnsweredQuestion[];
};

const MINUTE = 60_000;
const MOST_MINUTES = 20;
const LONGEST_ABOUT = 120;
const MOST_ANSWERED = 50;

export function createLineFold(): LineFold {
  let started: Started | null = null;
  let state: State = EMPTY_STATE;
  let lanes: readonly LaneSeen[] = [];
  let drivenMs = 0;
  let lastAt: number | null = null;
  /** Entries by minute, the newest last. */
  let pace: { minute: number; count: number }[] = [];
  const asked = new Map<string, { readonly at: number; readonly question: string }>();
  const told: Omit<AnsweredQuestion, "run" | "agent">[] = [];
  let suspended: { readonly event: Event; readonly at: number } | null = null;

  const nameless = (run: string) =>
    state.verdict?.outcome === "waiting" &&
    state.verdict.code !== "PAUSED" &&
    openQuestions(state).length === 0
      ? namelessQuestion(run, suspended?.event ?? null)
      : [];

  const hearPeople = ({ event, at }: Entry) => {
    if (event.type === "step.suspended") suspended = { event, at };
    if (event.type === "step.asked") asked.set(event.question.id, { at, question: event.question.text });
    if (event.type !== "step.told") return;
    const { step, visit, answer, id = null, by = null } = event;
    const question = asked.get(id ?? "")?.question ?? "";
    told.push({ id, step, visit, question, answer, by, at });
    if (told.length > MOST_ANSWERED) told.shift();
  };

  return {
    add({ entry, after }) {
      hearPeople(entry);
      const { event, at, moved = 0 } = entry;
      if (event.type === "run.started") started ??= event;
      if (lastAt !== null && event.type !== "run.resumed") drivenMs += Math.max(0, at - lastAt - moved);
      lastAt = at;
      if (after.lanes !== state.lanes || after.halted !== state.halted) lanes = lanesOf(after, lanes, at);
      state = after;
      const minute = Math.floor(at / MINUTE);
      const newest = pace.at(-1);
      if (newest?.minute === minute) newest.count += 1;
      else pace = [...pace, { minute, count: 1 }].slice(-MOST_MINUTES);
    },
    facts: () => ({
      about: started === null ? "" : aboutOf(started),
      batch: started?.batch ?? null,
      forkedFrom: started?.forkedFrom ?? null,
      branch: started?.worktree?.branch ?? null,
      lanes,
      visits: state.iterations,
      turns: state.usage.turns,
      tokens: state.usage.inputTokens + state.usage.outputTokens,
      costUsd: state.usage.costUsd,
      drivenMs,
      questions: openQuestions(state).length + nameless("").length,
      pace: paceOf(pace),
    }),
    questions({ id: run, agent, owned }) {
      const about = {
        run,
        agent,
        runAbout: started === null ? "" : aboutOf(started),
        isDriven: owned,
        isPaused: state.verdict?.code === "PAUSED",
      };
      const seen = (question: OpenQuestion, askedAt: number, isNameless: boolean): QuestionSeen => ({
        ...question,
        ...about,
        askedAt,
        isNameless,
        call: isNameless ? null : callOf(state, question),
      });
      return [
        ...waitingQuestions(run, state).map((one) => seen(one, asked.get(one.id)?.at ?? lastAt ?? 0, false)),
        ...nameless(run).map((one) => seen(one, suspended?.at ?? 0, true)),
      ];
    },
    answered: ({ id: run, agent }) => {
      const seen = (one: (typeof told)[number]) => ({ run, agent, ...one });
      return told.map(seen);
    },
  };
}

/** The call that a question is about. */
function callOf({ lanes, halted }: State, { id }: OpenQuestion): QuestionSeen["call"] {
  for (const { command } of [...lanes, ...halted]) {
    if (command.type !== "question" || command.question.id !== id || command.next?.type !== "call") continue;
    const call = command.next.calls[command.question.call ?? 0];
    return call === undefined ? null : { name: call.name, input: call.input };
  }
  return null;
}

type Started = Extract<Event, { type: "run.started" }>;

/** The first arguments as `name value`, else the first line of what was piped in. */
export function aboutOf({ args, input }: Pick<Started, "args" | "input">): string {
  const words = Object.entries(args)
    .filter(([, value]) => value !== null && value !== "")
    .slice(0, 3)
    .map(([name, value]) => `${name} ${wordOf(value)}`);
  return shownInLine(words.length > 0 ? words.join(", ") : input.slice(0, 1000).trim(), LONGEST_ABOUT);
}

function wordOf(value: Json): string {
  return typeof value === "string"
    ? value.slice(0, LONGEST_ABOUT)
    : JSON.stringify(value).slice(0, LONGEST_ABOUT);
}

function lanesOf({ lanes, halted }: State, before: readonly LaneSeen[], at: number): readonly LaneSeen[] {
  const seen: LaneSeen[] = [];
  for (const lane of lanes) seen.push(laneSeen(lane, before, at, false));
  for (const lane of halted) seen.push(laneSeen(lane, before, at, true));
  return seen;
}

/** A lane that goes on with the same keeps its time. */
function laneSeen(
  { step, visit, command: { type: doing } }: Lane,
  before: readonly LaneSeen[],
  at: number,
  halted: boolean,
): LaneSeen {
  for (const one of before)
    if (one.visit === visit && one.doing === doing && one.step === step)
      return { step, visit, doing, since: one.since, halted };
  return { step, visit, doing, since: at, halted };
}

/** One number a minute, with 0 for those in which nothing happened. */
function paceOf(minutes: readonly { readonly minute: number; readonly count: number }[]): readonly number[] {
  const last = minutes.at(-1)?.minute;
  if (last === undefined) return [];
  const first = Math.max(minutes[0]!.minute, last - MOST_MINUTES + 1);
  const counts = new Map(minutes.map(({ minute, count }) => [minute, count]));
  return Array.from({ length: last - first + 1 }, (_, place) => counts.get(first + place) ?? 0);
}
