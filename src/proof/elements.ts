/**
 * Everything about a flow that a run can show: its steps, ways, branches, checks, prompts about failed checks, answers,
 * limits and data. The universe that coverage is measured against.
 */
import { backTargets, branchesOf } from "../flow/branches.ts";
import type { Flow, Guard, Label, Move, Step, StepId, StopRule } from "../flow/flow.ts";
import { own, type Path } from "../flow/json.ts";
import { fewestVisits, partsOf } from "../flow/rules.ts";
import type { ElementKind } from "../flow/test-settings.ts";
import { budgetOf } from "../tell/budget.ts";
import { outlineOf } from "../tell/outline.ts";
import { canLack } from "./answers.ts";
import { callsWithin } from "./calls.ts";

export type Element = {
  readonly id: string;
  readonly kind: ElementKind;
  readonly step: StepId | null;
  /** The part of the flow that it belongs to, as `origin` takes it. */
  readonly part: Path;
};

/** What each element is called; a fold over a run uses the same names. */
export const called = {
  step: (step: StepId): string => step,
  edge: (step: StepId, label: Label, to: string) => `${step} ${label} -> ${to}`,
  join: (step: StepId, to: StepId | null) => `${step} joins -> ${to ?? "end"}`,
  back: (step: StepId, to: StepId) => `${step} x -> ${to}`,
  goesOn: () => `flow x -> on`,
  branch: (step: StepId, label: Label, when: string) => `${step} ${label} when ${when}`,
  check: (owner: string, name: string, ok: boolean) => `${owner} check ${name} ${ok ? "passes" : "fails"}`,
  edition: (owner: string, pattern: string) => `${owner} says ${pattern}`,
  answer: (step: StepId, how: string) => `${step} answers ${how}`,
  limit: (owner: string, name: string) => `${owner} reaches ${name}`,
  stop: (part: string, met: boolean) => `stop ${part} ${met ? "met" : "not met"}`,
  phase: (step: StepId, what: string) => `${step} ${what}`,
  tool: (step: StepId, tool: string) => `${step} may call ${tool}`,
  denied: (step: StepId) => `${step} is denied a call`,
  data: (step: StepId, key: string, isThere: boolean) =>
    `${step} hands on ${key}: ${isThere ? "present" : "absent"}`,
} as const;

/** The checks of the stop rule belong to no step. */
export const WHOLE_FLOW = "flow";

export function targetName(move: Exclude<Move, { kind: "switch" | "times" | "jump" }>): string {
  if (move.kind === "goto") return move.step;
  if (move.kind === "fork") return `fork ${move.steps.join("+")}`;
  return move.outcome === "completed" ? "end" : `end ${move.code}`;
}

/** A jump to one of many steps is one branch. */
export const MOST_TARGETS = 4;

/** Of the steps that a run can come to; each element once. */
export function elementsOf(flow: Flow): readonly Element[] {
  const live = new Set(
    outlineOf(flow)
      .nodes.filter(({ isReached }) => isReached)
      .map(({ id }) => id),
  );
  const found = new Map<string, Element>();
  const add = (kind: ElementKind, id: string, step: StepId | null, ...part: readonly string[]) => {
    if (!found.has(id)) found.set(id, { id, kind, step, part });
  };
  const back = backTargets(flow);
  const joins = joinsOf(flow, live);
  for (const step of Object.values(flow.steps)) {
    if (!live.has(step.id)) continue;
    const here: Adding = (kind, id, ...part) => add(kind, id, step.id, "steps", step.id, ...part);
    here("steps", called.step(step.id));
    addWays(here, flow, step, joins.get(step.id) ?? new Set());
    if (step.stage === undefined)
      for (const to of back.get(step.id) ?? [])
        if (live.has(to)) here("transitions", called.back(step.id, to), "guard");
    if (step.guard !== undefined) addGuard(here, flow, step.id, step.guard);
    addAnswers(here, flow, step);
    addStage(here, flow, step);
    addLimits(here, step);
    if (step.by.kind === "model") {
      for (const { rule } of callsWithin(step)) here("boundaries", called.tool(step.id, rule), "tools");
      here("boundaries", called.denied(step.id), "tools");
    }
    for (const { key } of step.carry)
      for (const isThere of [true, false])
        if (isThere || canLack(step, key)) here("data", called.data(step.id, key, isThere), "carry", key);
  }
  addStop((kind, id, ...part) => add(kind, id, null, ...part), flow);
  return [...found.values()];
}

type Adding = (kind: ElementKind, id: string, ...part: readonly string[]) => void;

function addWays(here: Adding, flow: Flow, step: Step, joins: ReadonlySet<StepId | null>): void {
  const taken = possibleLabels(flow, step);
  for (const [label, edge] of Object.entries(step.edges)) {
    if (!taken.has(label)) continue;
    for (const { move } of branchesOf(edge)) {
      if (move.kind === "jump") {
        for (const to of move.among) here("transitions", called.edge(step.id, label, to), "edges", label);
        continue;
      }
      here("transitions", called.edge(step.id, label, targetName(move)), "edges", label);
    }
    for (const when of selectorsOf(edge))
      here("branches", called.branch(step.id, label, when), "edges", label);
  }
  for (const to of joins) here("transitions", called.join(step.id, to), "edges");
}

/** Labels that a visit of the step can end with. */
export function possibleLabels({ hooks }: Flow, step: Step): ReadonlySet<Label> {
  const { stage, guard } = step;
  if (stage !== undefined) {
    const canAsk = stage.gate !== undefined && (stage.unresolved === "skip" || stage.unresolved === "ask");
    const canSkip = hooks !== undefined || canAsk;
    const canFail = hooks !== undefined || (guard?.checks.length ?? 0) > 0;
    return new Set(["ok", "cap", ...(canSkip ? ["skip"] : []), ...(canFail ? ["fail"] : [])]);
  }
  const { decide, answer } = step;
  const missed = answer.kind === "object" && answer.miss.kind === "label" ? [answer.miss.label] : [];
  const chosen = decide.by === "const" ? [decide.label] : [...decide.allow, ...decide.always];
  return new Set([...missed, ...chosen]);
}

function* selectorsOf(move: Move): Generator<string> {
  switch (move.kind) {
    case "switch":
      for (const [value, one] of Object.entries(move.cases)) {
        yield `${move.on.join(".")} = ${value}`;
        yield* selectorsOf(one);
      }
      if (move.otherwise === undefined) return;
      yield `${move.on.join(".")} is something else`;
      yield* selectorsOf(move.otherwise);
      return;
    case "jump":
      if (move.among.length > MOST_TARGETS) yield `${move.field.join(".")} names a step`;
      else for (const to of move.among) yield `${move.field.join(".")} = ${to}`;
      if (move.otherwise === undefined) return;
      yield `${move.field.join(".")} names no step`;
      yield* selectorsOf(move.otherwise);
      return;
    case "times":
      yield `under ${move.max} times`;
      yield `after ${move.max} times`;
      yield* selectorsOf(move.move);
      yield* selectorsOf(move.after);
      return;
    case "goto":
    case "fork":
    case "end":
  }
}

/** For each step, where the forks meet that it can be a sibling of. */
function joinsOf(flow: Flow, live: ReadonlySet<StepId>): ReadonlyMap<StepId, Set<StepId | null>> {
  const joins = new Map<StepId, Set<StepId | null>>();
  for (const step of Object.values(flow.steps)) {
    if (!live.has(step.id)) continue;
    for (const edge of Object.values(step.edges))
      for (const { move } of branchesOf(edge))
        if (move.kind === "fork")
          for (const sibling of move.steps)
            joins.set(sibling, (joins.get(sibling) ?? new Set()).add(move.join));
  }
  return joins;
}

function addGuard(here: Adding, { checks }: Flow, owner: string, guard: Guard): void {
  for (const [at, { check }] of guard.checks.entries()) {
    const part = ["guard", "checks", String(at)];
    for (const ok of [true, false]) here("checks", called.check(owner, check, ok), ...part);
    const pattern = own(checks, check)?.pattern;
    if (guard.onFailure === "retry" && pattern !== undefined)
      here("editions", called.edition(owner, pattern), ...part, "edition");
  }
}

function addAnswers(here: Adding, flow: Flow, step: Step): void {
  const add = (how: string) => here("answers", called.answer(step.id, how), "answer");
  const { answer, decide } = step;
  if (step.by.kind === "command") return;
  if (decide.by === "field") {
    for (const label of [...decide.allow, ...decide.always]) add(`with ${label}`);
    if (Object.entries(decide.alias).some(([word, label]) => word !== label && canSay(decide.allow, label)))
      add("with another word");
    if (decide.fallback !== undefined) add("with a word that falls back");
  }
  if (answer.kind !== "object") return;
  if (answer.correct !== undefined) add("with the name of another step");
  if (answer.repairs > 0) add("with what is sent back");
  if (step.stage === undefined)
    add(answer.miss.kind === "label" ? `with nothing usable: ${answer.miss.label}` : "with nothing usable");
  if (answer.miss.kind === "fail" && answer.miss.forgiveFirst && step.id === flow.entry)
    add("nothing usable at first");
}

function canSay(allow: readonly Label[], label: Label): boolean {
  return allow.includes(label);
}

function addStage(here: Adding, flow: Flow, step: Step): void {
  const { stage } = step;
  if (stage === undefined) return;
  const add = (what: string) => here("limits", called.phase(step.id, what), "stage");
  if (stage.gate !== undefined)
    for (const ok of [true, false]) here("checks", called.check(step.id, stage.gate, ok), "stage", "gate");
  add("is judged ok");
  if (stage.attempts > 1) add("is judged retry");
  add("is judged fail");
  if (flow.hooks !== undefined) add("is judged skip");
}

function addLimits(here: Adding, step: Step): void {
  const add = (name: string) => here("limits", called.limit(step.id, name), "limits");
  if (step.by.kind === "model" && step.stage === undefined) add("its turns");
  if (step.guard !== undefined && step.guard.onFailure === "retry" && step.stage === undefined)
    add("its failures");
  for (const name of ["turns", "tokens", "costUsd", "wallMs"] as const)
    if (step.limits?.[name] !== undefined) add(name);
  if (step.by.kind !== "model") return;
  here("limits", called.limit(step.id, "a fault that is waited out"));
  here("limits", called.limit(step.id, "a fault that stops the run"));
}

function addStop(add: Adding, flow: Flow): void {
  if (flow.stop.kind !== "end")
    for (const part of partsOf(flow.stop))
      for (const met of [true, false]) add("limits", called.stop(part.kind, met), "stop");
  if (flow.stopGuard !== undefined) {
    addGuard(add, flow, WHOLE_FLOW, flow.stopGuard);
    if (flow.stopGuard.onFailure === "retry") add("transitions", called.goesOn(), "stopGuard");
  }
  if ((budgetOf(flow).visits.most ?? Infinity) >= flow.limits.visits && canGoRound(flow))
    add("limits", called.limit(WHOLE_FLOW, "its visits"), "limits", "visits");
  for (const name of ["turns", "tokens", "costUsd", "wallMs"] as const)
    if (flow.limits[name] !== undefined) add("limits", called.limit(WHOLE_FLOW, name), "limits", name);
  if (flow.settings.watch?.repeats !== undefined)
    add("limits", called.limit(WHOLE_FLOW, "its watch for repeats"));
}

/** The stop rule may end every run before the limit of visits does. */
function canGoRound({ stop, limits, stopGuard }: Flow): boolean {
  return fewestVisits(stop, true) > limits.visits || stopGuard !== undefined || !endsByCount(stop);
}

function endsByCount(rule: StopRule): boolean {
  if (rule.kind === "any") return rule.of.some(endsByCount);
  if (rule.kind === "all") return rule.of.length > 0 && rule.of.every(endsByCount);
  return rule.kind === "visits" || rule.kind === "checks";
}
