/** Doing one command: the only place where the engine meets its ports. What comes back is always an event. */
import type { Command, Event, Reply } from "../flow/event.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { isObject } from "../flow/json.ts";
import { ANSWER_CAPS, bound, extractObject } from "./answer.ts";
import type { Gate, Ports, TurnRequest, TurnResult } from "./ports.ts";
import type { State } from "./state.ts";
import { sayAll, type Talk } from "./talk.ts";

type Doable = Exclude<Command, { type: "end" }>;

export async function perform(
  flow: Flow,
  state: State,
  command: Doable,
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Event> {
  const step = flow.steps[command.step]!;
  const at = { step: command.step, visit: command.visit };
  switch (command.type) {
    case "ask": {
      const reply = await ask(flow, state, step, command, ports, talk, signal);
      return { type: "step.answered", ...at, turn: command.turn, reply };
    }
    case "call": {
      const results = await ports.toolbox.call(step, command.calls, signal);
      return { type: "step.called", ...at, turn: command.turn, results };
    }
    case "check":
      return { type: "step.checked", ...at, results: await check(flow, step, ports, signal) };
    case "wait":
      await ports.clock.sleep(command.ms, signal);
      return { type: "step.waited", ...at, ms: command.ms };
  }
}

async function ask(
  flow: Flow,
  state: State,
  step: Step,
  command: Command & { type: "ask" },
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Reply> {
  if (step.by.kind === "command") return readReply(step, await ports.shell.perform(step, state.args, signal));
  const { answer } = step;
  if (answer.kind === "object" && answer.schema.kind === "unresolved") {
    return { kind: "unaskable", code: answer.schema.code, why: answer.schema.why };
  }
  const said = sayAll(flow, state, step, command.say, ports);
  if (said.kind === "unaskable") return said;

  const conversation = talk.open(step, command.visit);
  const request = toRequest(flow, state, step, command, ports, signal);
  const { run, turn } = ports.backend;
  // Said only now, and taken back if nothing comes of it: a fault must not leave the question in the conversation.
  conversation.messages.push(...said.messages);
  let result: TurnResult;
  if (turn !== undefined) result = await turn({ ...request, messages: conversation.messages });
  else if (run !== undefined) {
    const session = conversation.session === undefined ? {} : { session: conversation.session };
    const gate = gateOf(step, ports);
    const whole = { ...request, messages: said.messages, cwd: ports.cwd, maxTurns: step.turns, gate };
    result = await run({ ...whole, ...session });
  } else throw new Error(`The backend ${ports.backend.spec.id} offers neither turn nor run`);
  if (result.kind === "fault") conversation.messages.length -= said.messages.length;
  return readReply(step, result);
}

function toRequest(
  flow: Flow,
  state: State,
  step: Step,
  command: Command & { type: "ask" },
  ports: Ports,
  signal: AbortSignal,
): Omit<TurnRequest, "messages"> {
  const { answer } = step;
  const { visit, turn, attempt } = command;
  const beside = state.lanes.length === 1 ? [] : state.lanes.map((lane) => lane.step);
  const request = {
    asker: { key: `${state.run}/${step.id}@${visit}/${turn}`, step: step.id, visit, turn, attempt, beside },
    model: step.model,
    system: ports.compose.system(flow),
    tools: ports.toolbox.offer(step),
    signal,
  };
  if (answer.kind === "text") return request;
  const schema = answer.schema.kind === "schema" ? answer.schema.schema : null;
  return { ...request, output: { schema, channel: answer.channel } };
}

function gateOf(step: Step, ports: Ports): Gate {
  return (call, batch) => {
    const reason = ports.toolbox.judge(step, call, batch);
    return Promise.resolve(reason === null ? { allow: true } : { allow: false, reason });
  };
}

/** Bounds what came back before anything is recorded, and reads the payload where the backend did not. */
function readReply(step: Step, result: TurnResult): Reply | Promise<Reply> {
  const mark = result.mark === undefined ? undefined : { mark: result.mark };
  if (result.kind === "fault") return { kind: "fault", fault: result.fault, ...mark };
  if (result.text.length > ANSWER_CAPS.bytes) {
    return { kind: "oversized", why: `longer than ${ANSWER_CAPS.bytes} characters`, ...mark };
  }
  if (result.calls.length > 0) {
    const calls = bound(result.calls);
    if (calls.kind === "oversized") return { ...calls, ...mark };
  } else if (result.output === undefined && result.text !== "" && wantsObject(step)) {
    return extractObject(result.text).then((found) => said(result, found));
  }
  return said(result, result.output);
}

function said(result: TurnResult & { kind: "reply" }, payload: unknown): Reply {
  const { text, calls, usage, session, mark } = result;
  const plain = {
    kind: "said",
    text,
    calls,
    usage,
    ...(session === undefined ? undefined : { session }),
    ...(mark === undefined ? undefined : { mark }),
  } as const;
  if (payload === undefined) return plain;
  const output = bound(payload);
  if (output.kind === "oversized") return { ...output, ...(mark === undefined ? undefined : { mark }) };
  return isObject(output.value) ? { ...plain, output: output.value } : plain;
}

function wantsObject({ answer }: Step): boolean {
  return answer.kind === "object" && answer.channel.kind === "output";
}

/** In order; the first failure wins and the rest is not run. */
async function check(flow: Flow, step: Step, ports: Ports, signal: AbortSignal) {
  const results = [];
  for (const { check: name } of step.guard?.checks ?? []) {
    const result = await ports.shell.check(flow.checks[name]!, signal);
    results.push(result);
    if (!result.ok) break;
  }
  return results;
}
