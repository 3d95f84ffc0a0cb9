/**
 * What can happen next in a run: one choice for each case that the engine distinguishes. A choice is data without a place,
 * so that a list of choices can be tried from any state.
 */
import type { State } from "../engine/decide/state.ts";
import { outsideOf } from "../engine/decide/stop.ts";
import { partsOf } from "../flow/rules.ts";
import type { CallResult, CheckResult, Event, FaultKind, HookName, Reply, Usage } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { Flow, Label, Step } from "../flow/flow.ts";
import { own, type Json, type JsonObject } from "../flow/json.ts";
import { completed, draftsOf, having, lacking, otherWord, withoutLabel, type GivenValue } from "./answers.ts";
import { neededIn, nextCommand, unaskableIn } from "./asking.ts";
import { callBeyond, callsWithin, refusal } from "./calls.ts";

export type Happening =
  | {
      readonly kind: "answers";
      readonly label: Label;
      readonly with: readonly GivenValue[];
      readonly payload: JsonObject;
      /** What is said beside the answer. */
      readonly text?: string;
    }
  | { readonly kind: "says"; readonly text: string; readonly payload?: JsonObject }
  | { readonly kind: "calls"; readonly tool: string; readonly input: JsonObject; readonly isAllowed: boolean }
  | { readonly kind: "faults"; readonly fault: FaultKind }
  /** The checks up to this one pass; it fails. null: all pass. */
  | { readonly kind: "checks"; readonly failed: string | null }
  | { readonly kind: "called" }
  | { readonly kind: "looks"; readonly met: readonly boolean[] }
  | { readonly kind: "hooks"; readonly hook: HookName; readonly value: Json }
  | { readonly kind: "told"; readonly answer: string | null }
  | { readonly kind: "waits" }
  /** The prompt cannot be made. */
  | { readonly kind: "unaskable" }
  | { readonly kind: "ends" };

export function choicesFor(flow: Flow, state: State): readonly Happening[] {
  const command = nextCommand(state);
  if (command === undefined) return [];
  if (command.type === "end") return ENDS;
  if (command.type === "act") return [];
  const step = flow.steps[command.step]!;
  switch (command.type) {
    case "ask":
      if (unaskableIn(flow, state) !== null) return UNASKABLE;
      return step.by.kind === "command" ? byCommand(flow, step) : byModel(flow, step);
    case "call":
      return CALLED;
    case "check":
      return [PASSES, ...command.checks.map((failed): Happening => ({ kind: "checks", failed }))];
    case "look":
      return sights(outsideOf(flow.stop).length).map((met): Happening => ({ kind: "looks", met }));
    case "hook":
      return hookValues(command.hook, step).map((value): Happening => ({
        kind: "hooks",
        hook: command.hook,
        value,
      }));
    case "question":
      return command.asked
        ? [
            ...command.question.choices.map((answer): Happening => ({ kind: "told", answer })),
            { kind: "told", answer: null },
          ]
        : [{ kind: "told", answer: null }];
    case "wait":
      return WAITS;
  }
}

const ENDS: readonly Happening[] = [{ kind: "ends" }];
const WAITS: readonly Happening[] = [{ kind: "waits" }];
const UNASKABLE: readonly Happening[] = [{ kind: "unaskable" }];
const PASSES: Happening = { kind: "checks", failed: null };
const CALLED: readonly Happening[] = [{ kind: "called" }];

const byModelKnown = new WeakMap<Step, readonly Happening[]>();

function byModel(flow: Flow, step: Step): readonly Happening[] {
  const known = byModelKnown.get(step);
  if (known !== undefined) return known;
  const other = otherWord(step);
  const strange = withoutLabel(step);
  const elsewhere = wrongName(step);
  const made: Happening[] = [
    ...draftsOf(step),
    ...(other === null ? [] : [{ kind: "says", text: "", payload: other.payload } as const]),
    ...(strange === null ? [] : [{ kind: "says", text: "", payload: strange } as const]),
    ...(elsewhere === null ? [] : [{ kind: "says", text: "", payload: elsewhere } as const]),
    { kind: "says", text: "I am not sure." },
    ...wholeDrafts(flow, step),
    ...variedData(step),
    ...keywords(flow, step),
    ...callsOf(step),
    { kind: "faults", fault: "rate-limit" },
    { kind: "faults", fault: "auth" },
  ];
  byModelKnown.set(step, made);
  return made;
}

/** One call for each rule that allows some, and one that the gate denies. */
function callsOf(step: Step): readonly Happening[] {
  const allowed = callsWithin(step).map(({ call }) => ({ call, isAllowed: true }));
  return [...allowed, { call: callBeyond(step), isAllowed: false }].map(
    ({ call: { name, input }, isAllowed }) => ({ kind: "calls", tool: name, input, isAllowed }),
  );
}

/** What the stop rule listens for. */
export function wordsOf({ stop }: Flow): readonly string[] {
  return partsOf(stop).flatMap((part) => {
    if (part.kind === "keyword") return [part.text];
    if (part.kind !== "signal") return [];
    const fields = part.fields.map(({ name, value = name }) => [name, value] as const);
    return [`\`\`\`${part.type}\n${JSON.stringify(Object.fromEntries(fields))}\n\`\`\``];
  });
}

/** The same, said beside each answer. */
function keywords(flow: Flow, step: Step): readonly Happening[] {
  return wordsOf(flow).flatMap((text) =>
    step.answer.kind === "text"
      ? [{ kind: "says", text } as const]
      : draftsOf(step).map(({ label, with: given, payload }): Happening => ({
          kind: "answers",
          label,
          with: given,
          payload,
          text,
        })),
  );
}

/** The answer of the shortest kind with the name of another step in it, where that is put right. */
function wrongName(step: Step): JsonObject | null {
  const { answer } = step;
  const [first] = draftsOf(step);
  if (answer.kind !== "object" || answer.correct === undefined || first === undefined) return null;
  return { ...first.payload, [answer.correct.field]: "another-step" };
}

function byCommand(flow: Flow, step: Step): readonly Happening[] {
  return [
    ...draftsOf(step),
    ...wholeDrafts(flow, step),
    ...variedData(step),
    { kind: "faults", fault: "process" },
  ];
}

/** Answers with all that later prompts read, for each that lacks some of it. */
function wholeDrafts(flow: Flow, step: Step): readonly Happening[] {
  const keys = neededIn(flow).flatMap((one) => (one.step === step.id ? [one.key] : []));
  return keys.length === 0 ? [] : draftsOf(step).flatMap((draft) => completed(step, draft, keys) ?? []);
}

/** For all that the step hands on, an answer with it and one without. */
function variedData(step: Step): readonly Happening[] {
  return step.carry.flatMap(({ key }) =>
    [lacking(step, key), having(step, key)].filter((draft) => draft !== null),
  );
}

function sights(count: number): readonly (readonly boolean[])[] {
  const none = Array.from({ length: count }, () => false);
  return [none, none.map(() => true), ...none.map((_, at) => none.with(at, true))].slice(
    0,
    count === 1 ? 2 : undefined,
  );
}

function hookValues(hook: HookName, _step: Step): readonly Json[] {
  switch (hook) {
    case "checkGate":
      return [null, "skip", "defer", "block"];
    case "assert":
      return [null, "retry", "skip", "fail"];
    case "setup":
    case "exit":
    case "next":
      return [null];
  }
}

/** What is written when the choice comes to pass; null: it does not belong to what is pending. */
export function eventOf(flow: Flow, state: State, choice: Happening): Event | null {
  const command = nextCommand(state);
  if (command === undefined || command.type === "act") return null;
  if (command.type === "end")
    return choice.kind === "ends" ? { type: "run.ended", verdict: command.verdict } : null;
  const { step, visit } = command;
  switch (choice.kind) {
    case "answers":
    case "says":
    case "calls":
    case "faults":
      if (command.type !== "ask" || unaskableIn(flow, state) !== null) return null;
      return answered(flow, command, choice);
    case "unaskable": {
      const reply = unaskableIn(flow, state);
      if (command.type !== "ask" || reply === null) return null;
      return { type: "step.answered", step, visit, turn: command.turn, reply };
    }
    case "called":
      return command.type === "call" ? called(flow, command) : null;
    case "checks":
      return command.type === "check" ? checked(flow, command, choice) : null;
    case "looks":
      return command.type === "look"
        ? {
            type: "step.looked",
            step,
            visit,
            sights: choice.met.map((met, at) => ({ met, what: `look ${at + 1}` })),
          }
        : null;
    case "hooks":
      return command.type === "hook" && command.hook === choice.hook
        ? {
            type: "step.hooked",
            step,
            visit,
            hook: command.hook,
            result: { kind: "gave", value: choice.value },
          }
        : null;
    case "told":
      if (command.type !== "question") return null;
      return command.asked
        ? { type: "step.told", step, visit, answer: choice.answer, id: command.question.id, by: "file" }
        : { type: "step.asked", step, visit, question: command.question };
    case "waits":
      return command.type === "wait" ? { type: "step.waited", step, visit, ms: command.ms } : null;
    case "ends":
      return null;
  }
}

function called({ steps }: Flow, { step, visit, turn, calls }: StepCommand & { type: "call" }): Event {
  const names = calls.map(({ name }) => name);
  const results = calls.map(({ id, name, input }): CallResult => {
    const denied = refusal(steps[step]!, { name, input }, names);
    if (denied === null) return { id, name, ok: true, content: `${name} done` };
    return { id, name, ok: false, content: denied, denied };
  });
  return { type: "step.called", step, visit, turn, results };
}

type Asking = StepCommand & { readonly type: "ask" };

function answered(
  flow: Flow,
  { step: id, visit, turn }: Asking,
  choice: Extract<Happening, { kind: "answers" | "says" | "calls" | "faults" }>,
): Event | null {
  const step = own(flow.steps, id);
  if (step === undefined) return null;
  const reply = replyOf(step, visit, turn, choice);
  return reply === null ? null : { type: "step.answered", step: id, visit, turn, reply };
}

function replyOf(
  step: Step,
  visit: number,
  turn: number,
  choice: Extract<Happening, { kind: "answers" | "says" | "calls" | "faults" }>,
): Reply | null {
  if (choice.kind === "faults")
    return { kind: "fault", fault: { kind: choice.fault, message: `scripted ${choice.fault}` } };
  if (choice.kind === "calls")
    return said("", [{ id: `${step.id}@${visit}/${turn}#1`, name: choice.tool, input: choice.input }]);
  if (choice.kind === "says" && choice.payload === undefined) return said(choice.text, []);
  const { payload = {}, text = "" } = choice;
  if (step.answer.kind === "object" && step.answer.channel.kind === "tool" && step.by.kind === "model")
    return said(text, [
      { id: `${step.id}@${visit}/${turn}#done`, name: step.answer.channel.name, input: payload },
    ]);
  const usage = step.by.kind === "command" ? { ...USAGE, turns: 0 } : USAGE;
  return { ...said(text, []), output: payload, usage };
}

function said(text: string, calls: (Reply & { kind: "said" })["calls"]): Reply & { kind: "said" } {
  return { kind: "said", text, calls, usage: USAGE };
}

const USAGE: Usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };

function checked(
  flow: Flow,
  { step, visit, checks }: StepCommand & { type: "check" },
  { failed }: Happening & { kind: "checks" },
): Event | null {
  if (failed !== null && !checks.includes(failed)) return null;
  const run = failed === null ? checks : checks.slice(0, checks.indexOf(failed) + 1);
  const results = run.map((name): CheckResult => ({
    name,
    ok: name !== failed,
    pattern: own(flow.checks, name)?.pattern ?? name,
    summary: name === failed ? "exit code 1" : "",
    params: {},
  }));
  return { type: "step.checked", step, visit, results };
}
