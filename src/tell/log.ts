/**
 * The log of a run: what each entry of its journal has to say, line by line. Pure, so that the same journal always
 * gives the same log, whether it is written while the run goes on or read afterwards.
 */
import { laneIn } from "../flow/deed.ts";
import { recordsOf } from "./audit.ts";
import type { State } from "../engine/decide/state.ts";
import type { EffectEvent, Event, Reply } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import { begunIn, deedsOf, type Moment } from "../story/story.ts";
import { own, type JsonObject } from "../flow/json.ts";
import { eventWords } from "./event-words.ts";
import { toLine, type Level, type LogLine, type LogFacts } from "./log-line.ts";
import { registryLines } from "./log-registry.ts";

/** What one entry has to say. */
export function logLines(moment: Moment): readonly LogLine[] {
  const timestamp = new Date(moment.entry.at).toISOString();
  const lines: LogLine[] = [];
  for (const told of tellAll(moment)) lines.push(toLine(timestamp, told));
  return lines;
}

function* tellAll(moment: Moment): Generator<LogFacts> {
  const { entry, after, flow } = moment;
  const { event } = entry;
  if (event.type === "run.started") {
    const { run, agent, args, cwd, backend, flow: digest } = event;
    const about = {
      run,
      agent,
      dialect: flow.dialect,
      digest,
      backend: backend.id,
      cwd,
      args,
    };
    yield ["info", `Run started: ${agent}`, about];
  }
  if (event.type === "run.resumed")
    yield ["info", `Run resumed: ${after.run}`, { run: after.run, epoch: event.epoch }];
  if (event.type === "run.resumed" && event.strays !== undefined)
    yield ["warn", `Ended before the run went on: ${event.strays.join(", ")}`, { processes: event.strays }];
  if (event.type === "step.answered") {
    yield* response(moment, event);
    yield* validated(moment);
  }
  yield* flow.dialect === "stage" ? stageLines(moment) : registryLines(moment);
  yield* resolved(moment);
  if (event.type === "run.left")
    yield ["warn", `Did not stop in time: ${event.still.join(", ")}`, { visits: event.still }];
  if (isEffect(event)) yield effect(event);
  const words = eventWords(event);
  if (words?.lasting) yield ["info", `[${words.title}] ${words.text}`];
  if (event.type === "run.ended") yield ended(event, after);
}

// What holds for every written form.

function* response(moment: Moment, event: Event & { type: "step.answered" }): Generator<LogFacts> {
  const { before, flow } = moment;
  const { reply, visit, turn } = event;
  const step = own(flow.steps, event.step);
  const at = { stepId: event.step, visit, turn };
  if (step === undefined) return;
  switch (reply.kind) {
    case "said": {
      const { turns: _, ...usage } = reply.usage;
      const about = {
        ...at,
        characters: reply.text.length,
        calls: reply.calls.map(({ name }) => name),
        ...usage,
      };
      yield [
        "debug",
        `Response of ${step.by.kind === "model" ? step.model : "the command"}: ${event.step}`,
        about,
      ];
      return;
    }
    case "fault": {
      const { kind, message, status } = reply.fault;
      const about = { ...at, kind, ...(status !== undefined && { status }) };
      yield ["warn", `Query execution failed: ${message}`, about];
      for (const { ms, next } of deedsOf(moment, "waits"))
        yield ["info", `Waiting ${ms}ms for ${kind} retry (attempt ${next - 1})`, at];
      return;
    }
    case "oversized":
      yield ["error", `[StructuredOutput] Refused: ${reply.why}`, at];
      return;
    case "unaskable":
      yield unaskable(reply, step, laneIn(before, event)?.strikes ?? 0, at);
  }
}

function unaskable(
  { code, why }: Reply & { kind: "unaskable" },
  { answer }: Step,
  strikes: number,
  at: JsonObject,
): LogFacts {
  if (answer.kind !== "object" || answer.schema.kind !== "unresolved")
    return ["error", `Prompt not resolved: ${why}`, { ...at, code }];
  const about = { ...at, code, schema: answer.schema.name };
  return [
    "warn",
    `[SchemaResolution] Failed to resolve schema pointer (failure ${strikes + 1}/2): ${why}`,
    about,
  ];
}

// Under `schemas.inspection`: what came of holding answers against schemas, and every schema as it is sent and checked.

function* validated(moment: Moment): Generator<LogFacts> {
  const { steps, settings } = moment.flow;
  if (!settings.inspectSchemas) return;
  for (const { step, visit, errors } of deedsOf(moment, "read")) {
    const answer = own(steps, step)?.answer;
    if (answer?.kind !== "object" || answer.schema.kind !== "schema") continue;
    const schema = answer.schema.name;
    const valid = errors.length === 0;
    const message = `[SchemaResolution] The answer of ${step} ${valid ? "fits" : "does not fit"} ${schema}`;
    yield [valid ? "info" : "warn", message, { stepId: step, visit, schema, valid, errors }];
  }
}

function* resolved(moment: Moment): Generator<LogFacts> {
  const { flow } = moment;
  if (!flow.settings.inspectSchemas) return;
  for (const { step, visit } of begunIn(moment)) {
    const answer = own(flow.steps, step)?.answer;
    if (visit > 1 || answer?.kind !== "object" || answer.schema.kind !== "schema") continue;
    const { name, schema } = answer.schema;
    const about = { stepId: step, name, schema };
    yield ["info", `[SchemaResolution] Resolved ${name} for step: ${step}`, about, "whole"];
  }
}

function isEffect(event: Event): event is EffectEvent {
  return event.type.startsWith("effect.");
}

const EFFECT_LEVELS = { intended: "debug", applied: "info", held: "warn", failed: "error" } as const;

function effect(event: EffectEvent): LogFacts {
  const { key, detail } = event;
  const state = event.type.slice("effect.".length) as keyof typeof EFFECT_LEVELS;
  const kind = "kind" in event ? { kind: event.kind } : {};
  return [EFFECT_LEVELS[state], `[Effect] ${state}: ${detail}`, { key, ...kind, state }];
}

function ended({ verdict }: Event & { type: "run.ended" }, { iterations, usage }: State): LogFacts {
  const { outcome, code, reason, step } = verdict;
  const { turns, inputTokens, outputTokens } = usage;
  const costUsd = usage.partly === undefined ? usage.costUsd : null;
  const about = { outcome, code, finalStepId: step, iterations, turns, inputTokens, outputTokens, costUsd };
  if (outcome === "completed")
    return ["info", `Agent completed after ${iterations} iteration(s): ${reason}`, about];
  if (outcome === "waiting") return ["warn", `Agent waits: ${reason}`, about];
  return ["error", `Agent failed: ${reason}`, about];
}

// Stages.

function* stageLines(moment: Moment): Generator<LogFacts> {
  for (const [name, about] of recordsOf(moment)) yield [levelOf(name, about), name, about];
}

function levelOf(name: string, { outcome, verdict, ok, kind, decision }: JsonObject): Level {
  if (name === "StagePreFired" || name === "StagePostFired" || name === "ToolInvocationProposed")
    return "debug";
  if (/Failed$|ParseError$|Rejected$|Cancelled$|CapHit$/.test(name)) return "warn";
  const isBad =
    outcome === "failed" || verdict === "fail" || ok === false || kind === "threw" || decision === "deny";
  return isBad ? "warn" : "info";
}
