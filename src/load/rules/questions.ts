/** Rules about steps with check prompts. */
import type { Prompt, StepId } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES } from "../../flow/json.ts";
import type { Finding } from "./finding.ts";
import { atStep, witness, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Rules } from "./rule.ts";
import { inPrompt } from "../text/prompt-places.ts";
import { onwardKey, questionOf } from "../questions/questions.ts";
import type {
  CheckedStep,
  CheckRegistry,
  Onward,
  PromptPlace,
  CheckPrompt,
} from "../questions/questions-shape.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { namesFor, supplierOf } from "../../flow/reads.ts";
import { placeholders } from "../../flow/text/template.ts";

export const rules: Rules = { check: [checkQuestions] };

export const codes = {
  "STEP-ID-FORM": warning("unusual step id", "A hash as id stays the same when its step is moved."),
  "STEP-NO-WAY": error("no onward path", "Only the check of a step decides where the run continues."),
  "TRANS-EMPTY": error("empty transition", "An empty transition would silently end a run."),
} satisfies Codes;

function* checkQuestions(loaded: Registered): Generator<Finding> {
  const { questions } = loaded.sources;
  if (questions === undefined) return;
  for (const [id, source] of questions.steps) {
    if (FORBIDDEN_NAMES.has(id)) continue;
    yield* checkId(loaded, id, questions);
    yield* checkIterations(loaded, id, source);
    yield* checkPlace(loaded, id, ["prompt"], source.prompt, id);
    if (source.check === undefined) yield noCheck(loaded, id);
    else {
      yield* checkPlace(loaded, id, ["check", "prompt"], source.check.prompt, questionOf(id));
      yield* checkOnward(loaded, id, source.check);
    }
  }
}

const HASH_ID = /^s_[0-9a-f]{4,8}$/;

function* checkId(loaded: Registered, id: StepId, { steps }: CheckRegistry): Generator<Finding> {
  const at = atStep(loaded, id);
  if ([...steps.keys()].some((other) => id === questionOf(other))) {
    yield {
      code: "SR-VALID-004",
      ...at,
      message: `"${id}" is reserved for the check of the step "${id.slice(0, -"#check".length)}".`,
      fix: "Rename the step.",
    };
  } else if (!HASH_ID.test(id)) {
    yield {
      code: "STEP-ID-FORM",
      ...at,
      message: `The id "${id}" is not s_ and 4 to 8 hexadecimal digits.`,
      fix: "Give the step an id such as s_a8f3, here and in every next and fallback.",
    };
  }
}

function* checkIterations(
  loaded: Registered,
  id: StepId,
  { iterations, check }: CheckedStep,
): Generator<Finding> {
  const { min, max } = iterations;
  if (max === undefined) return;
  const at = atStep(loaded, id, "iterations", "max");
  if (max < min) {
    yield {
      code: "SR-VALID-004",
      ...at,
      message: `iterations.max of the step "${id}" is ${max}, less than its min, ${min}.`,
      fix: `Make max at least ${min}.`,
    };
  } else if (max > min && check?.onFail !== undefined) {
    yield {
      code: "CONFIG-NOT-ACTED-ON",
      ...at,
      message: `iterations.max of the step "${id}" has no effect: its onFail decides what follows a failed check.`,
      fix: 'Use "retry" with "maxRetries" in onFail, or remove "max".',
    };
  }
}

/** Where a prompt is said to be, and whether it is there. */
function* checkPlace(
  loaded: Registered,
  id: StepId,
  path: readonly string[],
  place: PromptPlace | undefined,
  asked: StepId,
): Generator<Finding> {
  if (place === undefined) return;
  const at = atStep(loaded, id, ...path);
  const isCoordinates = place.c1 !== undefined && place.c2 !== undefined && place.c3 !== undefined;
  if (place.path === undefined && !isCoordinates) {
    yield {
      code: "SR-VALID-004",
      ...at,
      message: `${path.join(".")} of the step "${id}" has neither a path nor c1, c2 and c3.`,
      fix: 'Add "path" with a file below basePath, or "c1", "c2" and "c3".',
    };
    return;
  }
  const { prompt } = loaded.graph.steps.get(asked)!;
  const what = path.length === 1 ? "prompt" : "check prompt";
  if (prompt.file === null) {
    yield {
      code: "PR-C3L-004",
      ...at,
      message: `There is no ${what} for the step "${id}". Tried: ${prompt.tried.join(", ")}.`,
      fix: `Create ${prompt.tried[0] ?? "the prompt file"}.`,
    };
  } else yield* checkVariables(loaded, id, prompt);
}

/** Where no parameters are declared any argument may be given; a placeholder without a value stays as it is written. */
function* checkVariables({ flow, steps, files }: Registered, id: StepId, prompt: Prompt): Generator<Finding> {
  const { text, file } = prompt;
  const step = steps.get(id)!;
  const unknown = placeholders(text).filter((name) => supplierOf(flow, step, name) === null);
  if (unknown.length === 0) return;
  yield {
    code: "PR-RESOLVE-005",
    severity: "warning",
    ...inPrompt(files, prompt, text.indexOf(`{uv-${unknown[0]}}`)),
    steps: [id],
    message: `${file} of the step "${id}" reads {uv-${unknown[0]}}, which nothing supplies; it is sent to the model unchanged.${didYouMean(unknown[0]!, namesFor(flow, step))}`,
    fix: `Declare the parameter "${unknown[0]}" in agent.json, or correct the placeholder.`,
  };
}

function noCheck(loaded: Registered, id: StepId): Finding {
  return {
    code: "STEP-NO-WAY",
    ...atStep(loaded, id),
    message: `The step "${id}" has no check, so nothing decides where the run continues.`,
    fix: 'Add "check" with a prompt and onPass, such as { "next": "s_…" } or { "complete": true }.',
    witness: witness(loaded, id),
  };
}

function* checkOnward(loaded: Registered, id: StepId, check: CheckPrompt): Generator<Finding> {
  if (check.onPass === undefined) {
    yield {
      code: "STEP-NO-WAY",
      ...atStep(loaded, id, "check"),
      message: `The check of the step "${id}" has no onPass, so nothing decides where the run continues when it passes.`,
      fix: 'Add "onPass", such as { "next": "s_…" } or { "complete": true }.',
      witness: witness(loaded, id),
    };
  }
  for (const key of ["onPass", "onFail"] as const) {
    const onward = check[key];
    if (onward !== undefined) yield* checkTransition(loaded, id, key, onward);
  }
}

function* checkTransition(
  loaded: Registered,
  id: StepId,
  owner: "onPass" | "onFail",
  onward: Onward,
): Generator<Finding> {
  const taken = onwardKey(onward);
  if (taken === null) {
    yield {
      code: "TRANS-EMPTY",
      ...atStep(loaded, id, "check", owner),
      message: `${owner} of the step "${id}" is empty.`,
      fix: 'Add "next" or "fallback" with the id of a step, "retry": true, or "complete": true.',
      witness: witness(loaded, id),
    };
    return;
  }
  const written = [
    ["next", onward.next],
    ["fallback", onward.fallback],
    ["retry", onward.retry || undefined],
    ["maxRetries", onward.maxRetries || undefined],
  ] as const;
  for (const [key, value] of written) {
    const isPart = key === taken || (key === "maxRetries" && taken === "retry");
    if (value === undefined || isPart) continue;
    yield {
      code: "TRANS-UNUSED",
      ...atStep(loaded, id, "check", owner, key),
      message: `"${key}" in ${owner} of the step "${id}" is never taken: "${taken}" comes first.`,
      fix: `Remove "${key}" or "${taken}".`,
    };
  }
  const target = taken === "next" || taken === "fallback" ? onward[taken]! : id;
  const { flow } = loaded.graph;
  if (flow.kinds.has(target)) return;
  yield {
    code: "SR-TRANS-001",
    ...atStep(loaded, id, "check", owner, taken),
    message: `"${taken}" in ${owner} of the step "${id}" leads to "${target}", but there is no such step.${didYouMean(target, flow.ids)}`,
    fix: `Name a step of the flow, or add "${target}".`,
    witness: witness(loaded, id, target),
  };
}
