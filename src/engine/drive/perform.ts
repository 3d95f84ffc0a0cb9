/** Doing one command: the only place where the engine meets its ports. What comes back is always an event. */
import { laneIn } from "../../flow/deed.ts";
import type { CheckResult, Event, Figure, JudgedCall, Reply, Sight, Usage } from "../../flow/event.ts";
import type { StepCommand } from "../../flow/command.ts";
import type { Answer, Flow, Step, StepId } from "../../flow/flow.ts";
import { plainUsage } from "../../flow/figure.ts";
import { lifecycleOf } from "../../flow/lifecycle.ts";
import { approvedFor, gateOf, question, wished } from "./ask-people.ts";
import type { Message, Ports, RunRequest, TurnRequest, TurnResult } from "../ports.ts";
import { schemaFault } from "../schema/schema.ts";
import { attemptOf, turnsWithin } from "../decide/spend.ts";
import type { State } from "../decide/state.ts";
import { outsideOf } from "../decide/stop.ts";
import { hook, initTrouble, laneOf } from "./lifecycle.ts";
import { readTurn } from "./read-reply.ts";
import { sayAll, type Conversation, type Talk } from "./talk.ts";
import { errorText } from "../../flow/text/harmless.ts";

export function perform(
  flow: Flow,
  state: State,
  command: StepCommand,
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Event> {
  const step = flow.steps[command.step]!;
  switch (command.type) {
    case "ask":
      return ask(flow, state, step, command, ports, talk, signal);
    case "call":
      return call(state, step, command, ports, signal);
    case "check":
      return check(flow, state, step, command, ports, talk, signal);
    case "look":
      return look(flow, state, command, ports, signal);
    case "hook":
      return hook(state, step, command, ports, talk, signal);
    case "question":
      return question(state, command, ports, signal);
    case "wait":
      return wait(command, ports, signal);
  }
}

/** A question that was put to a model, and what is needed to read its answer. */
type Question = {
  readonly flow: Flow;
  readonly step: Step;
  readonly command: StepCommand & { type: "ask" };
  readonly ports: Ports;
  readonly talked: Conversation;
  /** What was said last. */
  readonly said: readonly Message[];
};

/** Not async itself: what waits for a model holds as little as possible. */
function ask(
  flow: Flow,
  state: State,
  step: Step,
  command: StepCommand & { type: "ask" },
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Event> {
  if (step.by.kind === "command") return performed(flow, state, step, command, ports, signal);
  const unaskable = schemaTrouble(step) ?? initTrouble(state, step, command.visit, ports, talk);
  if (unaskable !== null) return Promise.resolve(answered(command, unaskable));
  const said = sayAll(flow, state, step, command.say, ports);
  if (said.kind === "unaskable") return Promise.resolve(answered(command, said));

  const talked = talk.open(step, command.visit);
  const { messages } = talked;
  // Said only now, and taken back if nothing comes of it: a fault must not leave the question in the conversation.
  for (const message of said.messages) messages.push(message);
  const request = toRequest(flow, state, step, command, ports, messages, talked.system, signal);
  const question: Question = { flow, step, command, ports, talked, said: said.messages };
  return ports.backend.turn === undefined ? query(state, request, question) : turnOf(request, question);
}

async function performed(
  flow: Flow,
  state: State,
  step: Step,
  command: StepCommand & { type: "ask" },
  ports: Ports,
  signal: AbortSignal,
): Promise<Event> {
  const result = await ports.shell.perform(step, state.args, signal);
  return answered(command, await readTurn(flow, step, result));
}

/** One response of a model. */
async function turnOf(request: TurnRequest, question: Question): Promise<Event> {
  let result: TurnResult;
  try {
    result = await question.ports.backend.turn!(request);
  } catch (error) {
    result = threw(error);
  }
  const event = heard(question, result, UNJUDGED);
  return event instanceof Promise ? await event : event;
}

/** A whole query of an agent with a loop of its own. */
async function query(state: State, request: TurnRequest, question: Question): Promise<Event> {
  const { step, command, ports, talked, said } = question;
  const { run, spec } = ports.backend;
  if (run === undefined)
    return await heard(question, fault(`The backend ${spec.id} offers neither turn nor run`), UNJUDGED);
  const judged: JudgedCall[] = [];
  const most = turnsLeft(state, step, command);
  const within = gateOf(state, step, request, ports, judged);
  let result: TurnResult;
  try {
    result = await run(toRunRequest(request, said, most, talked.session, within, ports));
    const { asked } = within;
    if (result.kind === "reply" && asked.length > 0) result = { ...result, asked };
  } catch (error) {
    result = threw(error);
  }
  const broken = within.broken();
  if (broken !== null) throw broken;
  return await heard(question, result, judged);
}

/** A backend should not throw; one that does all the same stops its run, not the program. */
function threw(error: unknown): TurnResult {
  return fault(`The backend threw: ${errorText(error)}`);
}

function heard(
  { flow, step, command, ports, talked, said }: Question,
  came: TurnResult,
  judged: readonly JudgedCall[],
): Event | Promise<Event> {
  let result = came;
  const usage = usageOf(result, ports.backend.free === true);
  if (result.kind === "fault" && usage !== result.fault.usage)
    result = { ...result, fault: { ...result.fault, usage: usage! } };
  if (judged.length > 0) result = { ...result, judged: [...(result.judged ?? []), ...judged] };
  if (ports.tidy !== undefined) result = ports.tidy(result);
  if (result.kind === "fault") talked.messages.length -= said.length;
  const reply = readTurn(flow, step, result, usage);
  return reply instanceof Promise ? reply.then((read) => answered(command, read)) : answered(command, reply);
}

/** No backend, and no server behind one, can lower what was spent by a figure below 0. */
function usageOf(result: TurnResult, isFree: boolean): Usage | undefined {
  if (result.kind === "fault")
    return result.fault.usage === undefined ? undefined : plainUsage(result.fault.usage);
  const plain = plainUsage(result.usage);
  return isFree ? plain : metered(plain);
}

/** An absent figure is not a zero: what the backend did not report is recorded as unknown. */
function metered(usage: Usage): Usage {
  const isCounted = usage.inputTokens + usage.outputTokens > 0 && usage.unknown?.includes("tokens") !== true;
  const isPriced = usage.costUsd !== null;
  if (isCounted && isPriced) return usage;
  return { ...usage, unknown: isCounted ? NO_PRICE : isPriced ? NO_COUNT : NO_FIGURE };
}

const NO_PRICE: readonly Figure[] = ["costUsd"];
const NO_COUNT: readonly Figure[] = ["tokens"];
const NO_FIGURE: readonly Figure[] = ["tokens", "costUsd"];

function answered(
  { step, visit, turn }: Pick<StepCommand & { type: "ask" }, "step" | "visit" | "turn">,
  reply: Reply,
): Event {
  return { type: "step.answered", step, visit, turn, reply };
}

/** Beyond its list a step with a lifecycle may be granted a tool; whether it is, the toolbox finds out. */
async function call(
  state: State,
  step: Step,
  command: StepCommand & { type: "call" },
  ports: Ports,
  signal: AbortSignal,
): Promise<Event> {
  const { visit, turn, calls } = command;
  const { toolbox } = ports;
  const approved = approvedFor(state, command);
  const wish = toolbox.wish?.(step, calls, approved) ?? null;
  if (wish !== null) return wished(command, wish, approved.ruled, ports);
  const at = { step: step.id, visit, turn };
  if (lifecycleOf(step) === undefined)
    return { type: "step.called", ...at, results: await toolbox.call(step, calls, signal, approved) };
  const attempt = attemptOf(laneOf(state, step, visit));
  const called = await toolbox.callGranted(step, calls, { run: state.run, visit, attempt, approved }, signal);
  if (called.kind === "results") return { type: "step.called", ...at, results: called.results };
  return wished(command, called.wish, called.ruled, ports);
}

/** In order; the first failure wins and the rest is not run. */
async function check(
  flow: Flow,
  state: State,
  step: Step,
  { visit, checks }: StepCommand & { type: "check" },
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Event> {
  const trouble = initTrouble(state, step, visit, ports, talk);
  if (trouble !== null) return answered({ step: step.id, visit, turn: 1 }, trouble);
  const results: CheckResult[] = [];
  for (const name of checks) {
    const result = await ports.shell.check(flow.checks[name]!, signal);
    results.push(result);
    if (!result.ok) break;
  }
  return { type: "step.checked", step: step.id, visit, results };
}

/** At everything outside that the stop rule names, one after the other. */
async function look(
  flow: Flow,
  state: State,
  { step, visit }: StepCommand & { type: "look" },
  ports: Ports,
  signal: AbortSignal,
): Promise<Event> {
  const lane = laneIn(state, { step, visit });
  const glance = {
    run: state.run,
    step,
    iteration: state.iterations,
    args: state.args,
    said: lane?.said ?? "",
    payload: lane?.answer?.payload ?? {},
  };
  const sights: Sight[] = [];
  for (const rule of outsideOf(flow.stop)) {
    sights.push(await ports.watch.look(rule, glance, signal));
  }
  return { type: "step.looked", step, visit, sights };
}

async function wait(
  { step, visit, ms }: StepCommand & { type: "wait" },
  { clock }: Ports,
  signal: AbortSignal,
): Promise<Event> {
  await clock.sleep(ms, signal);
  return { type: "step.waited", step, visit, ms };
}

function fault(message: string): TurnResult {
  return { kind: "fault", fault: { kind: "other", message } };
}

/** A step whose schema is missing or cannot be compiled is not asked: its answer could not be judged. */
function schemaTrouble({ id, answer }: Step): (Reply & { kind: "unaskable" }) | null {
  if (answer.kind === "text" || answer.schema.kind === "any") return null;
  const { schema } = answer;
  if (schema.kind === "unresolved") return { kind: "unaskable", code: schema.code, why: schema.why };
  const fault = schemaFault(schema.schema);
  if (fault === null) return null;
  const why = `The schema ${schema.name} of step "${id}" is not a valid JSON Schema: ${fault}`;
  return { kind: "unaskable", code: "FAILED_SCHEMA_RESOLUTION", why };
}

function toRequest(
  flow: Flow,
  state: State,
  step: Step,
  command: StepCommand & { type: "ask" },
  ports: Ports,
  messages: readonly Message[],
  ownSystem: string | undefined,
  signal: AbortSignal,
): TurnRequest {
  const { visit, turn, attempt } = command;
  const beside = state.lanes.length === 1 ? NOBODY : state.lanes.map((lane) => lane.step);
  const asker = {
    key: `${state.run}/${step.id}@${visit}/${turn}`,
    step: step.id,
    visit,
    turn,
    attempt,
    beside,
  };
  const { model, answer } = step;
  const system = ownSystem ?? ports.compose.system(flow);
  const tools = ports.toolbox.offer(step);
  const request: TurnRequest =
    answer.kind === "text"
      ? { asker, model, system, messages, tools, signal }
      : { asker, model, system, messages, tools, output: outputOf(answer), signal };
  const { onText } = ports;
  return onText === undefined ? request : { ...request, onText: (delta) => onText(step.id, delta) };
}

function outputOf({ schema, channel }: Answer & { kind: "object" }): NonNullable<TurnRequest["output"]> {
  return { schema: schema.kind === "schema" ? schema.schema : null, channel };
}

const NOBODY: readonly StepId[] = [];
const UNJUDGED: readonly JudgedCall[] = [];

/** What an agent with a loop of its own needs besides: only what is new to it, and our gate. */
function toRunRequest(
  request: TurnRequest,
  news: readonly Message[],
  maxTurns: number,
  session: string | undefined,
  { gate, call }: Pick<RunRequest, "gate" | "call">,
  { cwd, toolbox }: Ports,
): RunRequest {
  const { served } = toolbox;
  return {
    ...request,
    messages: news,
    cwd,
    maxTurns,
    gate,
    call,
    ...(session !== undefined && { session, whole: request.messages }),
    ...(served !== undefined && { served }),
  };
}

/** Responses that this visit may still have, and the run; each attempt has its own. */
function turnsLeft(state: State, step: Step, { visit, turn }: StepCommand & { type: "ask" }): number {
  const lane = laneIn(state, { step: step.id, visit });
  const ofVisit = step.turns - turn + 1 + (lane?.life?.since ?? 0);
  return lane === undefined ? ofVisit : Math.min(ofVisit, turnsWithin(state, lane));
}
