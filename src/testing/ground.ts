/** Runs a test of a flow in memory: the real engine, prompts, gate and rules of checks; everything else is a table. */
import { createScripted } from "../backends/scripted/scripted.ts";
import { judgeCommand } from "../effects/checks/check-command.ts";
import type { ProcessResult } from "../effects/process/process.ts";
import { EMPTY_STATE } from "../engine/decide/state.ts";
import { drive, type Hear } from "../engine/drive/drive.ts";
import { createTalk, type Talk } from "../engine/drive/talk.ts";
import type { Backend, Hooks, Message, Ports, TurnRequest, TurnResult } from "../engine/ports.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import type { CheckResult, Entry } from "../flow/event.ts";
import type { Around, CheckGiven, FlowTest } from "../flow/flow-test.ts";
import type { Check, Step, StepId } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import { createMemoryJournal } from "../journal/memory.ts";
import { composer } from "../prompts/compose.ts";
import { expandReplies } from "../proof/expand.ts";
import type { Heard, Observed } from "../proof/observe.ts";
import type { Moment } from "../story/story.ts";
import { inOrder } from "./in-order.ts";
import { memoryClock } from "./test-clock.ts";
import { testToolbox } from "./test-toolbox.ts";

export type Ran = {
  readonly entries: readonly Entry[];
  /** Those of the story of the entries, where the run gave them as it went. */
  readonly moments?: readonly Moment[];
  readonly heard: readonly Heard[];
  readonly waits: readonly number[];
  /** Replies that were not used, and what else a person should know. */
  readonly warnings: readonly string[];
  /** Why the test could not be run; the line is that of the reply, or of the test. */
  readonly fault?: { readonly of: "script" | "project" | "run"; readonly line: number; readonly why: string };
  /** What the run left behind in its project and on GitHub. */
  readonly left?: Observed;
  /** Parts of its texts that differ from run to run, and what is written for them in a snapshot. */
  readonly volatile?: readonly (readonly [text: string, name: string])[];
};

/** A place in a run from which other tests with the same beginning go on. */
export type HeldRun = { readonly moments: readonly Moment[]; readonly talk: Talk };

/** What tests with the same beginning share. */
export type SharedRun = {
  readonly from?: HeldRun;
  /** The numbers of entries after which the run is held, and where it is put. */
  readonly at: ReadonlySet<number>;
  readonly held: Map<number, HeldRun>;
};

export async function runInMemory(
  flow: Prepared,
  test: FlowTest,
  past: readonly Entry[] = [],
  shared?: SharedRun,
): Promise<Ran> {
  const heard: Heard[] = [];
  const waits: number[] = [];
  const from = shared?.from;
  const moments: Moment[] = [...(from?.moments ?? [])];
  const talk = from?.talk.copy() ?? createTalk({ compose: composer });
  const note: Hear = (entry, after, deeds) => {
    moments.push({ entry, flow, before: moments.at(-1)?.after ?? EMPTY_STATE, after, deeds });
    const isAlone = after.pending.length === 1 && after.fork === null && after.verdict === null;
    if (shared?.at.has(moments.length) && isAlone)
      shared.held.set(moments.length, { moments: moments.slice(), talk: talk.copy() });
  };
  const expansion = expandReplies(flow, test.script);
  if (expansion.kind === "none")
    return {
      entries: [],
      heard,
      waits,
      warnings: [],
      fault: { of: "script", line: expansion.line, why: expansion.why },
    };
  const scripted = createScripted(expansion.replies, marksIn(past), moreInTest);
  const stop = new AbortController();
  const turns = createTurns(test.around.order);
  turns.now(from?.moments.at(-1)?.after.lanes ?? []);
  const journal = createMemoryJournal();
  const { params: args, input, around, until } = test;
  const backend = { id: "scripted", options: null };
  const first: Entry = {
    seq: 1,
    at: around.clock,
    event: {
      type: "run.started",
      run: RUN,
      agent: flow.agent,
      flow: "digest",
      args,
      input,
      cwd: "/",
      backend,
    },
  };
  const about = { id: RUN, agent: flow.agent, at: around.clock, digest: "digest", flow };
  const handle = await journal.create(about, past.length === 0 ? [first] : past);
  await drive({
    flow,
    ports: portsFor(flow, test, listening(scripted, heard, turns), turns, waits, past, (step, signal) =>
      performed(scripted, turns, step, signal),
    ),
    handle,
    past,
    begin: past.length === 0 ? first : { type: "run.resumed", epoch: 2 },
    signal: stop.signal,
    wantsDeeds: true,
    talk,
    ...(from !== undefined && { from: from.moments.at(-1)!.after }),
    recall: (entry, state, deeds) => {
      note(entry, state, deeds);
      turns.now(state.lanes);
    },
    observe: (entry, state, deeds) => {
      note(entry, state, deeds);
      turns.now(state.lanes);
      if (deeds.some((deed) => deed.kind === "began" && deed.step === until)) stop.abort();
    },
  });
  const isCut = stop.signal.aborted;
  return {
    entries: await journal.read(RUN),
    heard,
    waits,
    warnings: isCut ? [] : (scripted.leftovers?.() ?? []),
    moments,
  };
}

const RUN = "test";

/** The run of a test is not recorded, so nothing can go on with it. */
export function moreInTest(): string {
  return "Add it to the script of the test.";
}

function marksIn(past: readonly Entry[]): readonly Json[] {
  return past.flatMap(({ event }) =>
    event.type === "step.answered" && "mark" in event.reply && event.reply.mark !== undefined
      ? [event.reply.mark]
      : [],
  );
}

/** Siblings of a fork are done one after the other, so that a test goes the same way each time. */
export type Turns = {
  readonly now: (lanes: readonly { readonly step: StepId }[]) => void;
  /** Waits until it is the turn of the step. */
  readonly of: (step: StepId, signal: AbortSignal) => Promise<void>;
  /** Steps that are at work beside this one. */
  readonly beside: (step: StepId) => readonly StepId[];
};

export function createTurns(order: readonly StepId[]): Turns {
  let first: StepId | undefined;
  let working: readonly StepId[] = [];
  let waiting: (() => void)[] = [];
  const placeOf = (step: StepId) => (order.includes(step) ? order.indexOf(step) : order.length);
  return {
    beside: (step) => working.filter((one) => one !== step),
    now: (lanes) => {
      working = lanes.map(({ step }) => step);
      if (working.length > 1) working = working.toSorted((a, b) => placeOf(a) - placeOf(b));
      [first] = working;
      if (waiting.length === 0) return;
      const woken = waiting;
      waiting = [];
      for (const wake of woken) wake();
    },
    of: async (step, signal) => {
      const isOthers = () => first !== undefined && first !== step && !signal.aborted;
      while (isOthers())
        await new Promise<void>((wake) => {
          waiting.push(wake);
          signal.addEventListener("abort", () => wake(), { once: true });
        });
    },
  };
}

function listening(backend: Backend, heard: Heard[], turns: Turns): Backend {
  const { turn } = backend;
  if (turn === undefined) return backend;
  return {
    ...backend,
    turn: async (request) => {
      await turns.of(request.asker.step, request.signal);
      heard.push(heardIn(request));
      return await turn(request);
    },
  };
}

/** A step that a command performs is answered from the script like any other; it costs nothing. */
async function performed(
  scripted: Backend,
  turns: Turns,
  { id, model }: Step,
  signal: AbortSignal,
): Promise<TurnResult> {
  await turns.of(id, signal);
  const asker = { step: id, visit: 1, turn: 1, attempt: 1, key: id, beside: turns.beside(id) };
  const result = await scripted.turn!({ asker, model, system: "", messages: [], tools: [], signal });
  if (result.kind === "fault") return result;
  return { ...result, output: result.output ?? { raw: result.text }, usage: NO_USAGE };
}

const NO_USAGE = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };

export function heardIn({ asker: { step, visit }, system, messages }: TurnRequest): Heard {
  // The conversation goes on, and few tests look at all of it.
  const until = messages.slice();
  const last = until.at(-1);
  return {
    step,
    visit,
    system,
    said: last === undefined ? "" : textOf(last),
    get text() {
      return [system, ...until.map(textOf)].join("\n");
    },
  };
}

function textOf(message: Message): string {
  if (message.role === "tool") return message.results.map(({ content }) => content).join("\n");
  const payload =
    message.role === "assistant" && message.output !== undefined ? JSON.stringify(message.output) : "";
  return message.text + payload;
}

function portsFor(
  flow: Prepared,
  test: FlowTest,
  backend: Backend,
  turns: Turns,
  waits: number[],
  past: readonly Entry[],
  perform: (step: Step, signal: AbortSignal) => Promise<TurnResult>,
): Ports {
  const { around } = test;
  const checked = inOrder(around.checks, (name) => timesChecked(past, name));
  let looks = past.flatMap(({ event }) => (event.type === "step.looked" ? event.sights : [])).length;
  let told = past.filter(({ event }) => event.type === "step.told").length;
  const hooks = flow.hooks === undefined ? {} : { hooks: hooksOf(around, turns) };
  const reached = { isReachable: around.answers.length > 0, absent: "deny" } as const;
  return {
    backend,
    compose: composer,
    cwd: "/",
    clock: memoryClock(around.clock, waits),
    toolbox: testToolbox(flow, around, { person: reached, ...hooks }),
    ...hooks,
    shell: {
      check: (check, signal) => checkResult(check, checked(check.name) ?? { kind: "pass" }, signal),
      perform: (step, _args, signal) => perform(step, signal),
    },
    watch: {
      look: () => {
        looks += 1;
        return Promise.resolve({ met: around.sights[looks - 1] ?? false, what: `look ${looks}` });
      },
    },
    person: {
      ...reached,
      ask: () => {
        const answer = around.answers[told];
        told += 1;
        return Promise.resolve(answer == null ? null : { answer, by: "file" });
      },
    },
  };
}

function timesChecked(past: readonly Entry[], name: string): number {
  return past.flatMap(({ event }) =>
    event.type === "step.checked" ? event.results.filter((one) => one.name === name) : [],
  ).length;
}

/** What a command would give is judged by the check's own rule. */
export function checkResult(check: Check, given: CheckGiven, signal: AbortSignal): Promise<CheckResult> {
  const { name, pattern } = check;
  if (given.kind === "output" && check.kind === "command") {
    const { exit: exitCode, stdout, stderr } = given;
    const result: ProcessResult = {
      exitCode,
      stdout,
      stderr,
      signal: null,
      timedOut: false,
      aborted: false,
      truncated: false,
    };
    return judgeCommand(check, { cwd: "/", env: {}, exec: () => Promise.resolve(result), git: null }, signal);
  }
  const ok = given.kind === "pass" || (given.kind === "output" && given.exit === 0);
  const summary = given.kind === "fail" ? (given.summary ?? "the test lets it fail") : "";
  return Promise.resolve({
    name,
    ok,
    pattern,
    summary,
    params: ok ? {} : { summary, stdout: "", stderr: "", exitCode: 1 },
  });
}

function hooksOf({ hooks }: Around, turns: Turns): Hooks {
  const given = inOrder(hooks, () => 0);
  return {
    call: async (path, _args, signal) => {
      await turns.of(path[0]!, signal);
      const value = given(path.join(".")) ?? given(path.at(-1)!) ?? null;
      return value === null ? { kind: "absent" } : { kind: "gave", value };
    },
    close: () => Promise.resolve(),
  };
}
