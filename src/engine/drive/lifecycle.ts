/** What performing a visit with a lifecycle needs besides: its preparation, and the project's hooks. */
import { cached } from "../../flow/cached.ts";
import { laneIn } from "../../flow/deed.ts";
import type { Event, HookResult, Reply } from "../../flow/event.ts";
import type { Command } from "../../flow/command.ts";
import type { Step } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { contextOf, hookHost, lifecycleOf } from "../../flow/lifecycle.ts";
import { lifecycleEndings, type Ending } from "../../flow/text/endings.ts";
import { lifeOf } from "../decide/attempt.ts";
import type { Lane, State } from "../decide/state.ts";
import type { Ports, Toolbox } from "../ports.ts";
import { validate } from "../schema/schema.ts";
import type { Talk } from "./talk.ts";

/**
 * Once for a visit: what it was given fits, its tools are there, its completion tool is nobody else's, and its prompt can
 * be rendered. Null when all is well, and for steps without a lifecycle.
 */
export function initTrouble(
  state: State,
  step: Step,
  visit: number,
  { toolbox, compose }: Ports,
  talk: Talk,
): (Reply & { kind: "unaskable" }) | null {
  if (lifecycleOf(step) === undefined) return null;
  const conversation = talk.open(step, visit);
  if (conversation.system !== undefined) return null;
  const ctx = contextFor(state, step, visit);
  const trouble = inputTrouble(step, ctx) ?? toolTrouble(step, toolbox);
  if (trouble !== null) return { kind: "unaskable", ...trouble };
  const composed = compose.ownSystem(step, ctx);
  if (composed.kind === "unaskable") return composed;
  conversation.system = composed.text;
  return null;
}

function inputTrouble(step: Step, ctx: JsonObject): Ending | null {
  const inputs = lifecycleOf(step)?.inputs;
  const upstream = own(ctx, "upstream");
  if (inputs?.kind !== "schema" || !Array.isArray(upstream)) return null;
  for (const [index, result] of (upstream as readonly Json[]).entries()) {
    const errors = validate(inputs.schema, result);
    if (errors.length > 0) return lifecycleEndings.inputs(step.id, index, result, errors);
  }
  return null;
}

/** The step as if it might use every tool; what it is offered then is worked out once. */
const unbound = cached((step: Step): Step => ({
  ...step,
  kind: "work",
  tools: { allow: ["*"], mode: "bypassPermissions" },
}));

function toolTrouble(step: Step, toolbox: Toolbox): Ending | null {
  const { answer } = step;
  const names = new Set(toolbox.offer(unbound(step)).map(({ name }) => name));
  // `Bash(git status)` allows a tool in part.
  const allowed = step.tools.allow.map((pattern) => pattern.split("(", 1)[0]!.trim());
  const stranger = allowed.find((name) => name !== "*" && !names.has(name));
  if (stranger !== undefined) return lifecycleEndings.unknownTool(step.id, stranger, names);
  const completion = answer.kind === "object" && answer.channel.kind === "tool" ? answer.channel.name : null;
  if (completion === null || !names.has(completion)) return null;
  return lifecycleEndings.reservedTool(step.id, completion);
}

export async function hook(
  state: State,
  step: Step,
  command: Command & { type: "hook" },
  ports: Ports,
  talk: Talk,
  signal: AbortSignal,
): Promise<Event> {
  const { visit, hook: name, input } = command;
  const at = { step: step.id, visit };
  const isSetup = name === "setup";
  // The preparation comes between setup and everything else.
  const trouble = isSetup ? null : initTrouble(state, step, visit, ports, talk);
  if (trouble !== null) return { type: "step.answered", ...at, turn: 1, reply: trouble };
  const ctx = isSetup ? contextFor(state, step, visit) : (own(input, "ctx") ?? {});
  const judged = own(input, "act") ?? own(input, "result");
  const act =
    name === "assert" && isObject(judged)
      ? { ...judged, transcript: talk.open(step, visit).messages as unknown as Json }
      : judged;
  const args = [ctx, ...(act === undefined ? [] : [act]), hookHost(state.run, at, ports.cwd)];
  const result: HookResult =
    ports.hooks === undefined
      ? { kind: "absent" }
      : await ports.hooks.call([step.id, name], args, signal, isSetup ? { mutable: true } : {});
  return { type: "step.hooked", ...at, hook: name, result: isSetup ? changedOf(result) : result };
}

/** Of a setup what counts is the context it leaves. */
function changedOf(result: HookResult): HookResult {
  if (result.kind !== "gave" || !isObject(result.value)) return result;
  return { kind: "gave", value: own(result.value, "changed") ?? null };
}

function contextFor(state: State, step: Step, visit: number): JsonObject {
  const { life } = lifeOf({ step, lane: laneOf(state, step, visit) });
  return contextOf(state.run, { step: step.id, visit, life });
}

export function laneOf(state: State, step: Step, visit: number): Lane {
  const lane = laneIn(state, { step: step.id, visit });
  if (lane === undefined) throw new Error(`${step.id}@${visit} is not under way`);
  return lane;
}
