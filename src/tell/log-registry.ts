/** The log of registry flows: lines that begin with the words by which such logs are searched. */
import { laneIn, type AtVisit } from "../flow/deed.ts";
import {
  judgedIn,
  type CallResult,
  type CheckResult,
  type Event,
  type JudgedCall,
  type Led,
  type Reply,
} from "../flow/event.ts";
import type { Say } from "../flow/command.ts";
import type { Flow, Step, StepKind } from "../flow/flow.ts";
import { own, type JsonObject } from "../flow/json.ts";
import { editionOf } from "../prompts/compose.ts";
import { begunIn, deedsOf, type Moment } from "../story/story.ts";
import type { LogFacts } from "./log-line.ts";

export function* registryLines(moment: Moment): Generator<LogFacts> {
  const { event } = moment.entry;
  if ("visit" in event) yield* happened(moment, event);
  for (const { led } of deedsOf(moment, "settled")) yield* settled(moment, led);
  yield* begun(moment);
}

function* happened(moment: Moment, event: Event): Generator<LogFacts> {
  if (!("visit" in event)) return;
  const at = { stepId: event.step, visit: event.visit };
  switch (event.type) {
    case "step.answered":
      for (const one of judgedIn(event.reply)) yield judged(one, at);
      if (event.reply.kind === "said") yield* read(moment, event.reply, at);
      if (deedsOf(moment, "checking").length > 0) yield ["info", "[CompletionLoop] Enter", at];
      return;
    case "step.called":
      for (const result of event.results) yield called(result, at);
      return;
    case "step.checked":
      yield checked(event.results, at);
      return;
    case "step.looked":
      for (const { met, what } of event.sights)
        yield ["info", `[CompletionLoop] Target state ${met ? "met" : "not met"}: ${what}`, { ...at, met }];
      return;
    case "step.waited":
      yield ["debug", `Waited ${event.ms}ms: ${event.step}`, at];
      return;
    case "step.warned":
      yield ["warn", event.text, at];
      return;
    case "step.cut":
      yield ["info", `Interrupted: ${event.step}`, { ...at, turns: event.usage.turns }];
      return;
    case "step.suspended":
      yield ["warn", `Suspended: ${event.why}`, { ...at, code: event.code }];
      return;
    case "step.asked":
      yield ["info", `Asked a person: ${event.question.text}`, { ...at, question: event.question.id }];
      return;
    case "step.told":
      yield ["info", `Answered: ${event.answer ?? "nothing"}`, { ...at, by: event.by ?? "terminal" }];
      return;
    case "step.hooked":
  }
}

function* read(moment: Moment, reply: Reply & { kind: "said" }, at: JsonObject): Generator<LogFacts> {
  if (reply.output !== undefined)
    yield [
      "info",
      "[StructuredOutput] Got structured output from result",
      { ...at, fields: Object.keys(reply.output) },
    ];
  for (const { errors, why, ...visit } of deedsOf(moment, "sent-back"))
    if (why === "misfit" && laneIn(moment.after, visit) !== undefined)
      yield ["warn", `[StructuredOutput] Sent back: ${errors.join("; ")}`, { ...at, errors }];
  for (const { step, label } of deedsOf(moment, "read")) {
    if (label === null) continue;
    const { handoff, last } = moment.after;
    yield ["info", `[StepFlow] Interpreted intent: ${label}`, { ...at, reason: last?.reason ?? "" }];
    const handed = Object.keys(own(handoff, step) ?? {});
    if (handed.length > 0)
      yield ["debug", `[StepFlow] Stored handoff data for step: ${step}`, { ...at, handoffKeys: handed }];
  }
}

function judged({ name, denied }: JudgedCall, at: JsonObject): LogFacts {
  return denied === undefined
    ? ["debug", `[ToolPolicy] Allowed ${name}`, { ...at, tool: name }]
    : ["warn", `[ToolPolicy] Denied ${name}: ${denied}`, { ...at, tool: name }];
}

function called({ name, ok, denied, content }: CallResult, at: JsonObject): LogFacts {
  if (denied !== undefined) return judged({ name, denied }, at);
  return [
    "debug",
    `[ToolPolicy] Allowed ${name}: ${ok ? "done" : "failed"}`,
    { ...at, tool: name, ok, characters: content.length },
  ];
}

function checked(results: readonly CheckResult[], at: JsonObject): LogFacts {
  const valid = results.every(({ ok }) => ok);
  const checks = results.map(({ name, ok, pattern, summary }) => ({
    name,
    ok,
    ...(!ok && { pattern, summary }),
  }));
  return [valid ? "info" : "warn", "[CompletionLoop] Validation result", { ...at, valid, checks }];
}

/** The visit is over, and this is where it leads. */
function* settled(moment: Moment, led: Led): Generator<LogFacts> {
  const { after, flow } = moment;
  const step = own(flow.steps, led.step);
  const kind = KINDS[step?.kind ?? "work"];
  const isClosed = led.to === null && after.verdict?.outcome === "completed";
  for (const note of led.notes ?? [])
    yield [
      "warn",
      note.startsWith("[") ? note : `[StepFlow] ${note}`,
      { stepId: led.step, visit: led.visit },
    ];
  if (kind === "closure") {
    const about = { stepId: led.step, done: isClosed, ...(led.overturned && { overturned: true }) };
    const isIt = ({ step, visit }: AtVisit) => step === led.step && visit === led.visit;
    const wasChecked = deedsOf(moment, "checked").some(isIt);
    if (isClosed && !wasChecked) yield ["info", "[CompletionLoop] Enter", about];
    if (isClosed)
      yield [
        "info",
        `[BoundaryHook] Invoked for closure step: ${led.step}`,
        { stepId: led.step, stepKind: kind },
      ];
    if (isClosed || wasChecked) yield ["info", "[CompletionLoop] Exit", about];
    yield ["info", "[CompletionLoop] Iteration exit", about];
  }
  const about = { stepKind: kind, intent: led.label, visit: led.visit, signalCompletion: led.to === null };
  const level = led.overturned || led.label === null ? "warn" : "info";
  yield [
    level,
    `[StepFlow] Routing decision: ${led.step} -> ${led.to ?? "end"}`,
    led.overturned ? { ...about, overturned: true } : about,
  ];
}

/** Visits that begin here. */
function* begun(moment: Moment): Generator<LogFacts> {
  const { flow, after } = moment;
  for (const { step: id, visit, iteration } of begunIn(moment)) {
    const step = own(flow.steps, id)!;
    const at = { iteration, stepId: id, visit };
    const kind = KINDS[step.kind];
    if (step.aside === undefined) {
      yield ["info", `=== Iteration ${iteration} ===`, at];
      yield ["info", "[FlowLoop] Enter", at];
    }
    if (step.kind === "close") yield ["info", "[CompletionLoop] Iteration enter", at];
    if (step.by.kind === "command") continue;
    yield* prompts(flow, step, laneIn(after, { step: id, visit })!.say, at);
    const { allow, mode } = step.tools;
    yield [
      "info",
      `[ToolPolicy] Step "${step.id}" (${kind}): ${allow.join(", ")} in mode ${mode}`,
      { ...at, allow, mode },
    ];
    if (step.answer.kind === "object" && step.answer.schema.kind === "schema")
      yield [
        "info",
        `[StructuredOutput] Using schema for step: ${step.id}`,
        { ...at, schema: step.answer.schema.name },
      ];
  }
}

function* prompts(flow: Flow, step: Step, says: readonly Say[], at: JsonObject): Generator<LogFacts> {
  for (const say of says) {
    if (say.kind !== "prompt" && say.kind !== "failed-check") continue;
    const prompt = say.kind === "prompt" ? step.prompt : editionOf(flow, say.guard, say.result.name);
    const source =
      prompt === undefined || prompt.file === null || prompt.builtIn !== undefined ? "builtin" : "user";
    const about = { ...at, source, promptPath: prompt?.file ?? null };
    const why = say.kind === "prompt" ? {} : { retry: true, check: say.result.name };
    yield ["info", `Prompt resolved: ${step.id}`, { ...about, ...why }];
    if (step.kind !== "close" || say.kind !== "prompt") continue;
    const { enabled, defaultClosureAction } = flow.settings.github;
    const adaptation = enabled ? defaultClosureAction : "close";
    yield [
      "info",
      `[ClosureAdaptation] Resolved closure prompt for step "${step.id}"`,
      { ...about, adaptation },
    ];
  }
}

const KINDS: { readonly [kind in StepKind]: string } = {
  work: "work",
  verify: "verification",
  close: "closure",
};
