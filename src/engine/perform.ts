/** Doing one command: the only place where the engine meets its ports. What comes back is always an event. */
import type { Command, Event, Reply } from "../flow/event.ts";
import type { Flow, Step, StepId } from "../flow/flow.ts";
import { isObject } from "../flow/json.ts";
import { ANSWER_CAPS, bound, extractObject } from "./answer.ts";
import type { Gate, Message, Ports, TurnRequest, TurnResult } from "./ports.ts";
import { schemaFault } from "./schema.ts";
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
  const unaskable = schemaTrouble(step);
  if (unaskable !== null) return unaskable;
  const said = sayAll(flow, state, step, command.say, ports);
  if (said.kind === "unaskable") return said;

  const { messages, session } = talk.open(step, command.visit);
  // Said only now, and taken back if nothing comes of it: a fault must not leave the question in the conversation.
  for (const message of said.messages) messages.push(message);
  const request = toRequest(flow, state, step, command, ports, messages, signal);
  const { turn, run } = ports.backend;
  const asked =
    turn !== undefined
      ? turn(request)
      : run?.({
          ...request,
          messages: said.messages,
          cwd: ports.cwd,
          maxTurns: step.turns,
          gate: gateOf(step, ports),
          ...(session === undefined ? {} : { session }),
        });
  if (asked === undefined)
    throw new Error(`The backend ${ports.backend.spec.id} offers neither turn nor run`);
  const result = await asked.catch(toFault);
  if (result.kind === "fault") messages.length -= said.messages.length;
  return readReply(step, result);
}

/** A step whose schema is missing or cannot be compiled is not asked: its answer could not be judged. */
function schemaTrouble({ id, answer }: Step): (Reply & { kind: "unaskable" }) | null {
  if (answer.kind === "text" || answer.schema.kind === "any") return null;
  const { schema } = answer;
  if (schema.kind === "unresolved") return { kind: "unaskable", code: schema.code, why: schema.why };
  const fault = schemaFault(schema.schema);
  if (fault === null) return null;
  const why = `The schema ${schema.name} of step "${id}" is no valid JSON Schema: ${fault}`;
  return { kind: "unaskable", code: "FAILED_SCHEMA_RESOLUTION", why };
}

function toRequest(
  flow: Flow,
  state: State,
  step: Step,
  command: Command & { type: "ask" },
  ports: Ports,
  messages: readonly Message[],
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
  const system = ports.compose.system(flow);
  const tools = ports.toolbox.offer(step);
  if (answer.kind === "text") return { asker, model, system, messages, tools, signal };
  const schema = answer.schema.kind === "schema" ? answer.schema.schema : null;
  return { asker, model, system, messages, tools, output: { schema, channel: answer.channel }, signal };
}

const NOBODY: readonly StepId[] = [];

/** A backend should not throw. One that does all the same stops its run, not the program. */
function toFault(error: unknown): TurnResult {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "fault", fault: { kind: "other", message: `The backend threw: ${message}` } };
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
  const bounded = payload === undefined ? null : bound(payload);
  const more = {
    ...(session === undefined ? undefined : { session }),
    ...(mark === undefined ? undefined : { mark }),
  };
  if (bounded?.kind === "oversized") return { ...bounded, ...more };
  return bounded !== null && isObject(bounded.value)
    ? { kind: "said", text, calls, output: bounded.value, usage, ...more }
    : { kind: "said", text, calls, usage, ...more };
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
