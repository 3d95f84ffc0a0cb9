/** What performing a stage needs besides: Init, the project's hooks, and grants for tools outside of its list. */
import type { Command, Event, HookResult, Reply } from "../../flow/event.ts";
import type { Step } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { approvedFor, wished } from "./ask-people.ts";
import type { Ports, Toolbox } from "../ports.ts";
import { validate } from "../schema/schema.ts";
import { contextOf, executionId } from "../decide/attempt.ts";
import type { Lane, State } from "../decide/state.ts";
import type { Talk } from "./talk.ts";

/**
 * Init, once for a visit: what the stage was given fits, its tools are there, its completion tool is nobody else's, and
 * its prompt can be rendered. Null when all is well, and for steps that are no stages.
 */
export function initTrouble(
  state: State,
  step: Step,
  visit: number,
  { toolbox, compose }: Ports,
  talk: Talk,
): (Reply & { kind: "unaskable" }) | null {
  if (step.stage === undefined) return null;
  const conversation = talk.open(step, visit);
  if (conversation.system !== undefined) return null;
  const ctx = contextOf(state, laneOf(state, step, visit));
  const trouble = inputTrouble(step, ctx) ?? toolTrouble(step, toolbox);
  if (trouble !== null) return trouble;
  const composed = compose.stage(step, ctx);
  if (composed.kind === "unaskable") return composed;
  conversation.system = composed.text;
  return null;
}

function inputTrouble(step: Step, ctx: JsonObject): (Reply & { kind: "unaskable" }) | null {
  const inputs = step.stage?.inputs;
  const upstream = own(ctx, "upstream");
  if (inputs?.kind !== "schema" || !Array.isArray(upstream)) return null;
  for (const [index, result] of (upstream as readonly Json[]).entries()) {
    const errors = validate(inputs.schema, result);
    if (errors.length === 0) continue;
    const from = isObject(result) ? own(result, "stageId") : undefined;
    const why = `ctx.upstream[${index}] of stage "${step.id}", from ${JSON.stringify(from)}, does not fit its inputsSchema: ${errors.join("; ")}`;
    return { kind: "unaskable", code: "StageInputsInvalid", why };
  }
  return null;
}

const EVERYTHING = { allow: ["*"], mode: "bypassPermissions" } as const;

function toolTrouble(step: Step, toolbox: Toolbox): (Reply & { kind: "unaskable" }) | null {
  const names = new Set(toolbox.offer({ ...step, kind: "work", tools: EVERYTHING }).map((tool) => tool.name));
  const stranger = step.tools.allow.map(toolIn).find((name) => name !== "*" && !names.has(name));
  if (stranger !== undefined) {
    const why = `Stage "${step.id}" allows the tool "${stranger}", and there is no such tool. There are: ${[...names].join(", ")}.`;
    return { kind: "unaskable", code: "StageToolUnknown", why };
  }
  const completion = completionTool(step);
  if (completion === null || !names.has(completion)) return null;
  const why = `Stage "${step.id}" calls its completion tool "${completion}", which is the name of a tool. Choose another name.`;
  return { kind: "unaskable", code: "CompletionToolReserved", why };
}

/** `Bash(git status)` allows a tool in part. */
function toolIn(pattern: string): string {
  return pattern.split("(", 1)[0]!.trim();
}

function completionTool({ answer }: Step): string | null {
  return answer.kind === "object" && answer.channel.kind === "tool" ? answer.channel.name : null;
}

// Hooks.

export async function hook(
  state: State,
  step: Step,
  command: Command & { type: "hook" },
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Event> {
  const { visit, hook: name, input } = command;
  // Init comes between Setup and everything else.
  const trouble = name === "setup" ? null : initTrouble(state, step, visit, ports, talk);
  if (trouble !== null) return { type: "step.answered", step: step.id, visit, turn: 1, reply: trouble };
  const lane = laneOf(state, step, visit);
  const ctx = name === "setup" ? contextOf(state, lane) : (own(input, "ctx") ?? {});
  const judged = own(input, "act") ?? own(input, "result");
  const act =
    name === "assert" && isObject(judged)
      ? { ...judged, transcript: talk.open(step, visit).messages as unknown as Json }
      : judged;
  const args = [ctx, ...(act === undefined ? [] : [act]), hostOf(state, step, visit, ports)];
  const result: HookResult =
    ports.hooks === undefined
      ? { kind: "absent" }
      : await ports.hooks.call([step.id, name], args, signal, name === "setup" ? { mutable: true } : {});
  return {
    type: "step.hooked",
    step: step.id,
    visit,
    hook: name,
    result: name === "setup" ? changedOf(result) : result,
  };
}

/** Of a setup what counts is the context it leaves. */
function changedOf(result: HookResult): HookResult {
  if (result.kind !== "gave" || !isObject(result.value)) return result;
  return { kind: "gave", value: own(result.value, "changed") ?? null };
}

/** What hooks are told of the run around them. */
function hostOf({ run }: State, { id }: Step, visit: number, { cwd }: Ports): JsonObject {
  return { cwd, workflowRunId: run, stageExecutionId: `${run}/${id}/${visit}`, stage: id };
}

// Tools.

/** Outside of its list a stage may be granted a tool; whether it is, the toolbox finds out. */
export async function callInStage(
  state: State,
  step: Step,
  command: Command & { type: "call" },
  ports: Ports,
  signal: AbortSignal,
): Promise<Event> {
  const { visit, turn, calls } = command;
  const approved = approvedFor(state, command);
  const wish = ports.toolbox.wish?.(step, calls, approved) ?? null;
  if (wish !== null) return wished(command, wish, approved.ruled, ports);
  const lane = laneOf(state, step, visit);
  const about = {
    run: state.run,
    stageExecutionId: executionId(state, lane),
    attempt: lane.stage?.tries.length ?? 1,
    approved,
  };
  const called = await ports.toolbox.callInStage(step, calls, about, signal);
  if (called.kind === "results")
    return { type: "step.called", step: step.id, visit, turn, results: called.results };
  return wished(command, called.wish, called.ruled, ports);
}

function laneOf(state: State, step: Step, visit: number): Lane {
  const lane = state.lanes.find((other) => other.step === step.id && other.visit === visit);
  if (lane === undefined) throw new Error(`${step.id}@${visit} is not under way`);
  return lane;
}
