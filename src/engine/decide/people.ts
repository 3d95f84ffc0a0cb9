/**
 * People in the loop: a question is put on record, its visit waits apart from the others, and the answer leads on.
 * Pure, like `decide`, of which it is the part for questions.
 */
import { laneIn, type AtVisit } from "../../flow/deed.ts";
import type { Question, Ruling, Teller } from "../../flow/event.ts";
import type { Command } from "../../flow/command.ts";
import { own } from "../../flow/json.ts";
import { questionId, waitingCode } from "../../flow/question.ts";
import { told } from "./opening.ts";
import type { Lane, State } from "./state.ts";
import { doNext, end, fail, led, withLanes, type Deciding, type Here } from "./visit.ts";

type Asking = Command & { type: "question" };

/** The question is in the journal: now it can be answered. */
export function asked(here: Here, question: Question, ruled: readonly Ruling[] | undefined): State {
  const { step, visit, command } = here.lane;
  const after = command.type === "question" ? command.next : command;
  const next = after?.type === "call" && ruled !== undefined ? { ...after, ruled } : after;
  const asking: Asking = { type: "question", step, visit, attempt: 1, question, asked: true };
  return doNext(here, next === undefined ? asking : { ...asking, next });
}

export function answeredBy(here: Here, answer: string | null, by: Teller): State {
  const { command } = here.lane;
  if (command.type !== "question" || command.next === undefined) return told(here, answer);
  const { question, next } = command;
  switch (question.about) {
    case "gate":
      return told(here, answer);
    case "interrupted":
      return answer === "retry" ? doNext(here, next) : interruptedFor(here, whoSays(answer, by));
    case "permission":
    case "grant":
    case "user": {
      if (answer === "stop" && question.about !== "user") return stopped(here, question);
      if (next.type !== "call") throw new Error(`Question ${question.id} is about no call`);
      const ruled = [...(next.ruled ?? []), { call: question.call ?? 0, answer, by }];
      const { pattern } = question;
      const isForAll = answer === "allow-run" && pattern !== undefined;
      const { state } = here;
      const allowing = isForAll ? { ...state, allowed: [...state.allowed, pattern] } : state;
      return doNext({ ...here, state: allowing }, { ...next, ruled });
    }
  }
}

function whoSays(answer: string | null, by: Teller): string {
  if (by === "expired") return "nobody answered in time";
  return answer === null ? "there was nobody to ask" : "a person said so";
}

function stopped(here: Here, { text }: Question): State {
  const reason = `A person denied it and stopped the run: ${text.split("\n", 1)[0]}`;
  return end(here, here.state, led(here, null, null, []), "PERMISSION_DENIED", reason, here.step.id);
}

// Waiting.

/** Nobody is there: the visit waits, and what goes on beside it goes on. */
export function park({ deeds, state, lane }: Here): State {
  const beside = state.lanes.filter((other) => other !== lane);
  deeds?.push({ kind: "held", visits: [lane] });
  return { ...withLanes(state, beside, null), halted: [...state.halted, lane] };
}

/** Nothing can be done any more but to answer: this stretch of the run ends. */
export function waiting({ deeds }: Deciding, state: State): State {
  const open = openQuestions(state);
  const [first] = open;
  const verdict = {
    outcome: "waiting",
    code: first === undefined ? "AnswerRequired" : waitingCode(first.question),
    // Without the run's own name: a fork or an import has another, and still comes to the same.
    reason: open.map(({ question }) => question.text).join("\n"),
    step: state.halted[0]?.step ?? null,
  } as const;
  deeds?.push({ kind: "ended", verdict });
  return { ...state, verdict, pending: [{ type: "end", verdict }] };
}

export type Open = AtVisit & { readonly question: Question };

/** Every question of the run that is on record and not answered. */
export function openQuestions({ lanes, halted }: Pick<State, "lanes" | "halted">): readonly Open[] {
  return [...halted, ...lanes].flatMap(({ step, visit, command }) =>
    command.type === "question" && command.asked ? [{ step, visit, question: command.question }] : [],
  );
}

// What was cut off.

/** What becomes of visits whose model, command or tools may have been at work when the last process went away. */
export function cutOff(deciding: Deciding, state: State, cut: readonly Lane[]): State {
  const { flow, deeds } = deciding;
  let now = state;
  for (const { step: id, visit } of cut) {
    const step = own(flow.steps, id);
    const lane = laneIn(now, { step: id, visit });
    if (step?.ifInterrupted === undefined || lane === undefined) continue;
    const { command } = lane;
    if (command.type !== "ask" && command.type !== "call") continue;
    const here: Here = { flow, deeds, state: now, lane, step };
    if (step.ifInterrupted === "fail") return interruptedFor(here, "its ifInterrupted says fail");
    now = doNext(here, askWhether(lane, command));
  }
  return now;
}

function askWhether({ step, visit, turn }: Lane, command: Command & { type: "ask" | "call" }): Asking {
  const what = command.type === "call" ? "its tools" : "what it asked for";
  const question: Question = {
    id: questionId(step, visit, turn, "interrupted", command.attempt),
    about: "interrupted",
    text: `${step}@${visit} was under way when the run was cut off, and ${what} may have had effects. Do it again, or let the run fail?`,
    choices: ["retry", "fail"],
  };
  return { type: "question", step, visit, attempt: 1, question, asked: false, next: command };
}

function interruptedFor(here: Here, why: string): State {
  const { step, visit } = here.lane;
  const reason = `${step}@${visit} was under way when the run was cut off, and is not done again: ${why}.`;
  return fail(here, "STEP_INTERRUPTED", reason);
}
