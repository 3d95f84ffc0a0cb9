/** Small changes of a flow that its tests should notice: what a slip of the author's hand, or of a merge, would do. */
import type { Flow, Guard, Label, Step, StepId } from "../flow/flow.ts";
import type { Json, Path } from "../flow/json.ts";
import { withoutLabel } from "./answers.ts";
import { changesOfFlow } from "./mutants-of-flow.ts";
import { otherRoutes } from "./mutants-of-routes.ts";

export const MUTANT_CLASSES = ["gates", "routes", "contract", "words", "reach"] as const;
export type MutantClass = (typeof MUTANT_CLASSES)[number];

export type Mutant = {
  readonly id: string;
  readonly kind: MutantClass;
  readonly step: StepId | null;
  /** In the author's words. */
  readonly what: string;
  /** The part of the flow that was changed, as `origin` takes it. */
  readonly part: Path;
  /** Only a run that takes one of these labels at the step can notice; absent: any run that comes to it. */
  readonly labels?: readonly Label[];
  readonly flow: Flow;
};

/** Of the live steps. Unchanged steps and schemas are the same objects, so that what is kept about them holds. */
export function* mutantsOf(flow: Flow, live: ReadonlySet<StepId>): Generator<Mutant> {
  let count = 0;
  const named = (mutant: Omit<Mutant, "id">): Mutant => ({ id: `m${++count}`, ...mutant });
  for (const step of Object.values(flow.steps)) {
    if (!live.has(step.id)) continue;
    for (const { kind, what, part, labels, step: changed } of changesOf(flow, step))
      yield named({
        kind,
        step: step.id,
        what: `${step.id}: ${what}`,
        part: ["steps", step.id, ...part],
        ...(labels !== undefined && { labels }),
        flow: { ...flow, steps: { ...flow.steps, [step.id]: changed } },
      });
  }
  for (const change of changesOfFlow(flow)) yield named({ ...change, step: null });
}

export type StepMutation = Pick<Mutant, "kind" | "what" | "part" | "labels"> & { readonly step: Step };

function* changesOf(flow: Flow, step: Step): Generator<StepMutation> {
  yield* gates(step);
  yield* otherRoutes(flow, step);
  yield* contract(step);
  yield* words(step);
  yield* reach(step);
}

function* gates(step: Step): Generator<StepMutation> {
  const { guard, stage } = step;
  const change = (what: string, changed: Step, ...part: Path): StepMutation => ({
    kind: "gates",
    what,
    part,
    step: changed,
  });
  if (stage?.gate !== undefined) {
    const { gate: _gate, ...open } = stage;
    yield change("its gate is dropped", { ...step, stage: open }, "stage", "gate");
  }
  if (guard === undefined) return;
  const { guard: _guard, ...unguarded } = step;
  if (guard.checks.length > 1) {
    for (const [at, { check }] of guard.checks.entries())
      yield change(
        `check ${check} is dropped`,
        withGuard(step, { checks: guard.checks.toSpliced(at, 1) }),
        "guard",
        "checks",
        String(at),
      );
    yield change(
      "its checks are run in the opposite order",
      withGuard(step, { checks: guard.checks.toReversed() }),
      "guard",
    );
  }
  yield change("its checks are dropped", unguarded, "guard");
  for (const onFailure of ["skip", "abort", "retry"] as const)
    if (onFailure !== guard.onFailure && !(stage !== undefined && onFailure === "abort"))
      yield change(
        `a failed check means ${onFailure}, not ${guard.onFailure}`,
        withGuard(step, { onFailure }),
        "guard",
      );
  if (guard.onFailure === "retry" && stage === undefined) {
    yield change(
      "one failure more is allowed",
      withGuard(step, { maxFailures: guard.maxFailures + 1 }),
      "guard",
    );
    if (guard.maxFailures > 1)
      yield change(
        "one failure less is allowed",
        withGuard(step, { maxFailures: guard.maxFailures - 1 }),
        "guard",
      );
    if (guard.back.kind !== "goto" || guard.back.step !== step.id)
      yield change(
        "a failed check leads back to the step itself",
        withGuard(step, { back: { kind: "goto", step: step.id } }),
        "guard",
      );
  }
}

function withGuard(step: Step, change: Partial<Guard>): Step {
  return { ...step, guard: { ...step.guard!, ...change } };
}

function* contract(step: Step): Generator<StepMutation> {
  const { decide, answer } = step;
  const change = (what: string, changed: Step, ...part: Path): StepMutation => ({
    kind: "contract",
    what,
    part,
    step: changed,
  });
  if (decide.by === "field") {
    for (const label of decide.allow)
      if (decide.allow.length > 1)
        yield change(
          `${label} is not allowed`,
          { ...step, decide: { ...decide, allow: decide.allow.filter((one) => one !== label) } },
          "decide",
        );
    const { fallback, ...strict } = decide;
    if (fallback !== undefined) yield change("there is no fallback", { ...step, decide: strict }, "decide");
    else if (decide.allow.length > 0 && withoutLabel(step) !== null)
      yield change(
        `an unknown word falls back to ${decide.allow[0]}`,
        { ...step, decide: { ...decide, fallback: decide.allow[0]! } },
        "decide",
      );
    if (Object.keys(decide.alias).length > 0)
      yield change(
        "other words for its labels are not known",
        { ...step, decide: { ...decide, alias: {} } },
        "decide",
      );
  }
  if (answer.kind !== "object") return;
  if (answer.schema.kind === "schema") {
    const { schema } = answer.schema;
    yield change("any answer fits", { ...step, answer: { ...answer, schema: { kind: "any" } } }, "answer");
    const required = schema.required;
    if (Array.isArray(required))
      for (const name of required as readonly Json[]) {
        const fewer = {
          ...answer.schema,
          schema: { ...schema, required: required.filter((one: Json) => one !== name) },
        };
        yield change(
          `${JSON.stringify(name)} is not required`,
          { ...step, answer: { ...answer, schema: fewer } },
          "answer",
        );
      }
  }
  if (step.stage === undefined) {
    yield change(
      "one repair more is allowed",
      { ...step, answer: { ...answer, repairs: answer.repairs + 1 } },
      "answer",
    );
    if (answer.repairs > 0)
      yield change(
        "one repair less is allowed",
        { ...step, answer: { ...answer, repairs: answer.repairs - 1 } },
        "answer",
      );
  }
}

function* words(step: Step): Generator<StepMutation> {
  const change = (what: string, changed: Step, ...part: Path): StepMutation => ({
    kind: "words",
    what,
    part,
    step: changed,
  });
  if (step.prompt.text.trim() !== "")
    yield change(
      "its prompt is blank",
      { ...step, prompt: { ...step.prompt, text: " ", variables: [] } },
      "prompt",
    );
  for (const [at, guarded] of (step.guard?.checks ?? []).entries()) {
    if (guarded.edition.text.trim() === "") continue;
    const checks = step.guard!.checks.with(at, {
      ...guarded,
      edition: { ...guarded.edition, text: " ", variables: [] },
    });
    yield change(
      `its prompt about the failed check ${guarded.check} is blank`,
      withGuard(step, { checks }),
      "guard",
      "checks",
      String(at),
    );
  }
  for (const [at, { key }] of step.carry.entries())
    yield change(`${key} is not handed on`, { ...step, carry: step.carry.toSpliced(at, 1) }, "carry", key);
  if (step.stage === undefined && step.by.kind === "model")
    yield change(
      step.transcript === "shared"
        ? "it begins a conversation of its own"
        : "it goes on in the conversation of the run",
      { ...step, transcript: step.transcript === "shared" ? "fresh" : "shared" },
      "transcript",
    );
}

function* reach(step: Step): Generator<StepMutation> {
  if (step.by.kind !== "model") return;
  const { tools } = step;
  const change = (what: string, changed: Step, ...part: Path): StepMutation => ({
    kind: "reach",
    what,
    part,
    step: changed,
  });
  for (const [at, tool] of tools.allow.entries())
    yield change(
      `it may not use ${tool}`,
      { ...step, tools: { ...tools, allow: tools.allow.toSpliced(at, 1) } },
      "tools",
    );
  if (!tools.allow.includes("*") && !tools.allow.includes("Bash"))
    yield change(
      "it may use Bash",
      { ...step, tools: { ...tools, allow: [...tools.allow, "Bash"], mode: "acceptEdits" } },
      "tools",
    );
  if (step.stage !== undefined) {
    yield change(
      "one attempt more",
      { ...step, stage: { ...step.stage, attempts: step.stage.attempts + 1 } },
      "stage",
    );
    if (step.stage.attempts > 1)
      yield change(
        "one attempt less",
        { ...step, stage: { ...step.stage, attempts: step.stage.attempts - 1 } },
        "stage",
      );
  }
}
