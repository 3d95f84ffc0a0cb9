/** Asks people: the question is recorded first, then anyone with access may answer it. */
import type { AskedWithin, CallResult, Event, JudgedCall, Question, Ruling } from "../../flow/event.ts";
import type { Command } from "../../flow/command.ts";
import type { Step } from "../../flow/flow.ts";
import { questionId, waitingCode } from "../../flow/question.ts";
import {
  RunnerError,
  type Allowance,
  type Approved,
  type Gate,
  type Ports,
  type RunRequest,
  type ToolCall,
  type TurnRequest,
  type Wish,
} from "../ports.ts";
import type { State } from "../decide/state.ts";

type Calling = Command & { type: "call" };

export function approvedFor({ allowed }: State, { ruled = NOTHING }: Calling): Approved {
  return { ruled, allowed };
}

const NOTHING: readonly Ruling[] = [];

/** Nothing of the batch is run before a person has said what becomes of this call. */
export function wished(
  { step, visit, turn }: Calling,
  wish: Wish,
  ruled: readonly Ruling[],
  ports: Ports,
): Event {
  const id = questionId(step, visit, turn, wish.about, wish.call ?? 0);
  const asked: Event = { type: "step.asked", step, visit, question: onRecord({ id, ...wish }, ports) };
  return ruled.length === 0 ? asked : { ...asked, ruled };
}

export async function question(
  { run }: State,
  { step, visit, question: open, asked }: Command & { type: "question" },
  ports: Ports,
  signal: AbortSignal,
): Promise<Event> {
  const { person } = ports;
  const { id, about, choices } = open;
  // Whether something is done twice is never decided without anybody.
  const waits = person.absent === "halt" || about === "interrupted";
  if (!asked && (person.isReachable || waits))
    return { type: "step.asked", step, visit, question: onRecord(open, ports) };
  const told = asked ? await person.ask({ ...open, run, step, visit }, signal) : null;
  if (told !== null) return { type: "step.told", step, visit, ...told, id };
  if (waits)
    return {
      type: "step.suspended",
      step,
      visit,
      code: waitingCode(open),
      why: open.text,
      choices,
      id,
    };
  const isAllowed = person.absent === "allow" && (about === "permission" || about === "grant");
  if (isAllowed) return { type: "step.told", step, visit, answer: "allow", id, by: "setting" };
  return { type: "step.told", step, visit, answer: null, id, by: "headless" };
}

function onRecord(question: Question, { person, clock }: Ports): Question {
  const held = person.absent === "halt" || question.about === "interrupted";
  return {
    ...question,
    ...(person.expireMs !== undefined && { expiresAt: clock.now() + person.expireMs }),
    ...(held && { held: true }),
  };
}

/** What stands between an agent with a loop of its own and tools: our gate, and the tools that we run for it. */
export type Within = Pick<RunRequest, "gate" | "call"> & {
  /** What people were asked on the way. */
  readonly asked: readonly AskedWithin[];
  /** Why the run must not go on, although the agent only heard of a call that failed; null: nothing of the kind. */
  readonly broken: () => RunnerError | null;
};

/** Its query cannot wait: only a person who is present is asked. `judged` is called with every decision. */
export function gateOf(
  state: State,
  step: Step,
  { asker: { key, visit, turn }, signal }: TurnRequest,
  { toolbox, person }: Ports,
  judged: JudgedCall[],
): Within {
  const asked: AskedWithin[] = [];
  const approved = new Set<string>();
  let { allowed } = state;
  let calls = 0;
  let broken: RunnerError | null = null;

  async function decide(call: ToolCall, batch: readonly string[] | null): Promise<Allowance> {
    const reason = toolbox.judge(step, call, batch, allowed);
    if (reason === null) return { allow: true };
    const wish = toolbox.wish?.(step, [{ id: "", ...call }], { ruled: NOTHING, allowed }) ?? null;
    if (wish === null) return { allow: false, reason };
    const id = questionId(step.id, visit, turn, "live", asked.length);
    const choices = wish.choices.filter((choice) => choice !== "stop");
    const about = { ...wish, id, choices, run: state.run, step: step.id, visit, live: true } as const;
    const { answer, by } = (await person.ask(about, signal)) ?? { answer: null, by: "headless" };
    asked.push({ tool: call.name, answer, by });
    if (answer === "allow-run" && wish.pattern !== undefined) allowed = [...allowed, wish.pattern];
    if (answer === "allow" || answer === "allow-run") {
      approved.add(JSON.stringify(call));
      return { allow: true };
    }
    return {
      allow: false,
      reason:
        answer === null ? reason : `The user denied ${call.name} in step "${step.id}". Go on without it.`,
    };
  }

  const isServed = (name: string) => toolbox.served?.some((tool) => tool.name === name) === true;
  const gate: Gate = async ({ name, input }, batch) => {
    const allowance = await decide({ name, input }, batch);
    // What a server does is told when it is done: not every agent asks before.
    if (!allowance.allow) note(judged, name, allowance.reason);
    else if (!isServed(name)) note(judged, name, null);
    return allowance;
  };

  const call: RunRequest["call"] = async ({ name, input }, stop) => {
    const isApproved = approved.delete(JSON.stringify({ name, input }));
    const ruled = isApproved ? [{ call: 0, answer: "allow", by: "terminal" } as const] : NOTHING;
    const one = { id: `${key}/${++calls}`, name, input };
    const settle = toolbox.call(step, [one], stop, { ruled, allowed });
    const [result] = await settle.catch((error: unknown): readonly CallResult[] => {
      if (!(error instanceof RunnerError)) throw error;
      broken ??= error;
      return [{ id: one.id, name, ok: false, content: error.message }];
    });
    if (isServed(name)) note(judged, name, result!.denied ?? null);
    return result!;
  };
  return { gate, call, asked, broken: () => broken };
}

/** As much of it as anybody will read. */
const MOST_JUDGED = 500;

function note(judged: JudgedCall[], name: string, denied: string | null): void {
  if (judged.length >= MOST_JUDGED) return;
  const tool = name.length > 80 ? `${name.slice(0, 80)}…` : name;
  judged.push(denied === null ? { name: tool } : { name: tool, denied });
}
