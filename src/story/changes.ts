/** What is different between two flows, in the words of those who wrote them. */
import { differences } from "../flow/difference.ts";
import type { Answer, Flow, Move, Prompt, Step, StepId } from "../flow/flow.ts";
import { own, sameJson, type Json } from "../flow/json.ts";

export type FlowChange = {
  readonly kind: "added" | "removed" | "changed";
  /** null: it is about the whole flow. */
  readonly step: StepId | null;
  /** `step`, `edge closing`, `prompt`, `answer`, `check git-clean`, `limit visits` … */
  readonly what: string;
  /** One line each, where there is something to tell. */
  readonly before: string | null;
  readonly after: string | null;
};

/** Empty exactly when the flows are equal. Steps come first, in the order of the later flow. */
export function flowChanges(before: Flow, after: Flow): readonly FlowChange[] {
  const plain = (Object.keys({ ...before, ...after }) as (keyof Flow)[]).filter(
    (key) => !TOLD_APART.has(key),
  );
  return [
    ...members(before.steps, after.steps, null, () => "step", stepChanges),
    ...members(before.checks, after.checks, null, (name) => `check ${name}`, null),
    ...members(
      byName(before.parameters),
      byName(after.parameters),
      null,
      (name) => `parameter ${name}`,
      null,
    ),
    ...members(before.limits, after.limits, null, (name) => `limit ${name}`, null),
    ...members(before.settings, after.settings, null, (name) => `setting ${name}`, null),
    ...members(before.sections ?? {}, after.sections ?? {}, null, (name) => `section ${name}`, null),
    ...plain.flatMap((key) => changed(null, FLOW_WORDS[key] ?? key, before[key], after[key])),
  ];
}

/** One line: `~ closure.issue: edge closing: end → review.issue`. */
export function changeText({ kind, step, what, before, after }: FlowChange): string {
  const mark = { added: "+", removed: "-", changed: "~" }[kind];
  const about = step === null ? what : what === "step" ? `step ${step}` : `${step}: ${what}`;
  if (kind !== "changed") return `${mark} ${about}${suffix(after ?? before)}`;
  if (before === null || after === null) return `${mark} ${about}${suffix(after ?? before)}`;
  return `${mark} ${about}: ${before} → ${after}`;
}

function suffix(text: string | null): string {
  return text === null ? "" : `: ${text}`;
}

const TOLD_APART: ReadonlySet<keyof Flow> = new Set([
  "steps",
  "checks",
  "parameters",
  "limits",
  "settings",
  "sections",
]);

const FLOW_WORDS: { readonly [key in keyof Flow]?: string } = {
  system: "system prompt",
  entry: "entry",
  stop: "stop rule",
  stopGuard: "checks of the stop rule",
  criteria: "criteria",
  hooks: "hooks",
};

const STEP_WORDS: { readonly [key in keyof Step]?: string } = {
  answer: "answer",
  decide: "gate",
  guard: "checks",
  carry: "handoff",
  needs: "inputs",
  tools: "tools",
  turns: "limit turns",
  by: "performer",
};

function stepChanges(id: StepId, before: Step, after: Step): readonly FlowChange[] {
  const plain = (Object.keys({ ...before, ...after }) as (keyof Step)[]).filter((key) => key !== "edges");
  return [
    ...members(before.edges, after.edges, id, (label) => `edge ${label}`, null),
    ...plain.flatMap((key) => changed(id, STEP_WORDS[key] ?? key, before[key], after[key])),
  ];
}

/** Members that came, went and changed. `inside` looks into those that are in both. */
function members<T extends object | number | string | boolean>(
  before: { readonly [name: string]: T },
  after: { readonly [name: string]: T },
  step: StepId | null,
  nameOf: (name: string) => string,
  inside: ((name: string, before: T, after: T) => readonly FlowChange[]) | null,
): readonly FlowChange[] {
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
  return names.flatMap((name): readonly FlowChange[] => {
    const [was, is] = [own(before, name), own(after, name)];
    const what = nameOf(name);
    const about = what === "step" ? { step: name, what } : { step, what };
    if (is === undefined)
      return [{ kind: "removed", ...about, before: was === undefined ? null : lineOf(was), after: null }];
    if (was === undefined) return [{ kind: "added", ...about, before: null, after: lineOf(is) }];
    return inside === null ? changed(step, what, was, is) : inside(name, was, is);
  });
}

function changed(step: StepId | null, what: string, before: unknown, after: unknown): readonly FlowChange[] {
  if (sameJson((before ?? null) as Json, (after ?? null) as Json)) return [];
  if (before === undefined) return [{ kind: "added", step, what, before: null, after: lineOf(after) }];
  if (after === undefined) return [{ kind: "removed", step, what, before: lineOf(before), after: null }];
  const [was, is] = [lineOf(before), lineOf(after)];
  if (was !== null && is !== null && was !== is)
    return [{ kind: "changed", step, what, before: was, after: is }];
  return [{ kind: "changed", step, what, before: null, after: placesOf(before, after) }];
}

/** What can be said in a few words; null: it is more than that. */
function lineOf(value: unknown): string | null {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return JSON.stringify(value).slice(0, 80);
  if (isMove(value)) return moveText(value);
  return null;
}

function placesOf(before: unknown, after: unknown): string {
  if (isPrompt(before) && isPrompt(after)) return promptText(before, after);
  if (isAnswer(before) && isAnswer(after)) {
    const [was, is] = [schemaOf(before), schemaOf(after)];
    const places = differences(was, is).map(({ pointer }) => `schema ${pointer}`);
    if (places.length > 0) return few(places);
  }
  return few(differences(before as Json, after as Json).map(({ pointer }) => pointer));
}

const MOST_PLACES = 4;

function few(places: readonly string[]): string {
  const rest = places.length - MOST_PLACES;
  return [...places.slice(0, MOST_PLACES), ...(rest > 0 ? [`${rest} more`] : [])].join(", ");
}

function promptText(before: Prompt, after: Prompt): string {
  const file = after.file ?? "no file";
  if (before.text === after.text)
    return before.file === after.file ? file : `${before.file ?? "no file"}, now ${file}`;
  const [was, is] = [before.text.split("\n"), after.text.split("\n")];
  return `${file}, ${without(is, was)} lines in, ${without(was, is)} out`;
}

function without(lines: readonly string[], others: readonly string[]): number {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const times = left.get(line) ?? 0;
    left.set(line, times - 1);
    return times <= 0;
  }).length;
}

/** Where a move leads, in one line. */
export function moveText(move: Move): string {
  switch (move.kind) {
    case "goto":
      return move.step;
    case "fork":
      return `${move.steps.join(" + ")} then ${move.join ?? "end"}`;
    case "end":
      return move.outcome === "completed" ? "end" : `end (${move.code})`;
    case "switch": {
      const cases = Object.entries(move.cases).map(([value, to]) => `${value}: ${moveText(to)}`);
      const rest = move.otherwise === undefined ? [] : [`else ${moveText(move.otherwise)}`];
      return `by ${move.on.join(".")} (${[...cases, ...rest].join(", ")})`;
    }
    case "jump":
      return `where ${move.field.join(".")} says`;
    case "times":
      return `${moveText(move.move)}, ${move.max} times, then ${moveText(move.after)}`;
  }
}

const MOVES: ReadonlySet<unknown> = new Set(["goto", "fork", "end", "switch", "jump", "times"]);

function isMove(value: unknown): value is Move {
  if (typeof value !== "object" || value === null || !("kind" in value) || !MOVES.has(value.kind))
    return false;
  // A stop rule may be of the kind `end` too, and says nothing else.
  return value.kind !== "end" || "outcome" in value;
}

function isPrompt(value: unknown): value is Prompt {
  return typeof value === "object" && value !== null && "text" in value && "tried" in value;
}

function isAnswer(value: unknown): value is Answer {
  return typeof value === "object" && value !== null && "channel" in value && "repairs" in value;
}

function schemaOf(answer: Answer): Json | undefined {
  return answer.kind === "object" && answer.schema.kind === "schema" ? answer.schema.schema : undefined;
}

function byName<T extends { readonly name: string }>(list: readonly T[]): { readonly [name: string]: T } {
  return Object.fromEntries(list.map((item) => [item.name, item]));
}
