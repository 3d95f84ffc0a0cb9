/** Rules about steps with check prompts. */
import type { StepId } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES } from "../../flow/json.ts";
import { notActedOn } from "./inert.ts";
import { neverTaken, unknownTarget } from "./routes.ts";
import { noPrompt } from "./prompt-files.ts";
import { checkLenient } from "./prompts.ts";
import { atStep, witness, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { onwardKey, questionOf } from "../questions/questions.ts";
import type {
  CheckedStep,
  CheckRegistry,
  Onward,
  PromptPlace,
  CheckPrompt,
} from "../questions/questions-shape.ts";

export const rules: Rules = { check: [checkQuestions] };

export const codes = {
  "STEP-ID-FORM": warning("unusual step id", "A hash as id stays the same when its step is moved."),
  "STEP-NO-WAY": error("no onward path", "Only the check of a step decides where the run continues."),
  "TRANS-EMPTY": error("empty transition", "An empty transition would silently end a run."),
} satisfies Codes;

function checkQuestions(loaded: Registered, tell: Tell): void {
  const { questions } = loaded.sources;
  if (questions === undefined) return;
  for (const [id, source] of questions.steps) {
    if (FORBIDDEN_NAMES.has(id)) continue;
    checkId(loaded, id, questions, tell);
    checkIterations(loaded, id, source, tell);
    checkPlace(loaded, id, ["prompt"], source.prompt, id, tell);
    if (source.check === undefined) tell(noCheck(loaded, id));
    else {
      checkPlace(loaded, id, ["check", "prompt"], source.check.prompt, questionOf(id), tell);
      checkOnward(loaded, id, source.check, tell);
    }
  }
}

const HASH_ID = /^s_[0-9a-f]{4,8}$/;

function checkId(loaded: Registered, id: StepId, { steps }: CheckRegistry, tell: Tell): void {
  const at = atStep(loaded, id);
  if ([...steps.keys()].some((other) => id === questionOf(other))) {
    tell({
      code: "SR-VALID-004",
      ...at,
      message: `"${id}" is reserved for the check of the step "${id.slice(0, -"#check".length)}".`,
      fix: "Rename the step.",
    });
  } else if (!HASH_ID.test(id)) {
    tell({
      code: "STEP-ID-FORM",
      ...at,
      message: `The id "${id}" is not s_ and 4 to 8 hexadecimal digits.`,
      fix: "Give the step an id such as s_a8f3, here and in every next and fallback.",
    });
  }
}

function checkIterations(
  loaded: Registered,
  id: StepId,
  { iterations, check }: CheckedStep,
  tell: Tell,
): void {
  const { min, max } = iterations;
  if (max === undefined) return;
  const at = atStep(loaded, id, "iterations", "max");
  if (max < min) {
    tell({
      code: "SR-VALID-004",
      ...at,
      message: `iterations.max of the step "${id}" is ${max}, less than its min, ${min}.`,
      fix: `Make max at least ${min}.`,
    });
  } else if (max > min && check?.onFail !== undefined) {
    const message = `iterations.max of the step "${id}" has no effect: its onFail decides what follows a failed check.`;
    const fix = 'Use "retry" with "maxRetries" in onFail, or remove "max".';
    tell(notActedOn(at, message, fix));
  }
}

/** Where a prompt is said to be, and whether it is there. */
function checkPlace(
  loaded: Registered,
  id: StepId,
  path: readonly string[],
  place: PromptPlace | undefined,
  asked: StepId,
  tell: Tell,
): void {
  if (place === undefined) return;
  const at = atStep(loaded, id, ...path);
  const isCoordinates = place.c1 !== undefined && place.c2 !== undefined && place.c3 !== undefined;
  if (place.path === undefined && !isCoordinates) {
    tell({
      code: "SR-VALID-004",
      ...at,
      message: `${path.join(".")} of the step "${id}" has neither a path nor c1, c2 and c3.`,
      fix: 'Add "path" with a file below basePath, or "c1", "c2" and "c3".',
    });
    return;
  }
  const { prompt } = loaded.graph.steps.get(asked)!;
  const what = path.length === 1 ? "prompt" : "check prompt";
  if (prompt.file === null) {
    tell(noPrompt(at, `There is no ${what} for the step "${id}".`, prompt));
  } else checkLenient(loaded, id, prompt, tell);
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

function checkOnward(loaded: Registered, id: StepId, check: CheckPrompt, tell: Tell): void {
  if (check.onPass === undefined) {
    tell({
      code: "STEP-NO-WAY",
      ...atStep(loaded, id, "check"),
      message: `The check of the step "${id}" has no onPass, so nothing decides where the run continues when it passes.`,
      fix: 'Add "onPass", such as { "next": "s_…" } or { "complete": true }.',
      witness: witness(loaded, id),
    });
  }
  for (const key of ["onPass", "onFail"] as const) {
    const onward = check[key];
    if (onward !== undefined) checkTransition(loaded, id, key, onward, tell);
  }
}

function checkTransition(
  loaded: Registered,
  id: StepId,
  owner: "onPass" | "onFail",
  onward: Onward,
  tell: Tell,
): void {
  const taken = onwardKey(onward);
  if (taken === null) {
    tell({
      code: "TRANS-EMPTY",
      ...atStep(loaded, id, "check", owner),
      message: `${owner} of the step "${id}" is empty.`,
      fix: 'Add "next" or "fallback" with the id of a step, "retry": true, or "complete": true.',
      witness: witness(loaded, id),
    });
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
    const message = `"${key}" in ${owner} of the step "${id}" is never taken: "${taken}" comes first.`;
    tell(neverTaken(atStep(loaded, id, "check", owner, key), message, `Remove "${key}" or "${taken}".`));
  }
  const target = taken === "next" || taken === "fallback" ? onward[taken]! : id;
  const { flow } = loaded.graph;
  if (flow.kinds.has(target)) return;
  const place = atStep(loaded, id, "check", owner, taken);
  const way = `"${taken}" in ${owner} of the step "${id}"`;
  tell({ ...unknownTarget(place, way, target, flow.ids), witness: witness(loaded, id, target) });
}
