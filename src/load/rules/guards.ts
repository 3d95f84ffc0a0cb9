/** Rules about the checks that stand before the end. */
import type { StepId } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, type Path } from "../../flow/json.ts";
import { notActedOn } from "./inert.ts";
import { unknownTarget } from "./routes.ts";
import { checkFailures } from "./failures.ts";
import { checkValues } from "./values.ts";
import { isWritten, type Document } from "../text/document.ts";
import { EXTRACTORS, parseSuccess, regexFault, patternOfSuccess } from "../registry/guards.ts";
import type { Code } from "../codes.ts";
import { atPart, partOf, type At, type LoadedFlow, type Registered } from "./loaded.ts";
import type { Machine } from "../stages/machine-parts.ts";
import { correctTo, error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { escapeSegment, pointerOf, unescapeSegment } from "../../flow/json-pointer.ts";
import { VALIDATOR_KEYS, type ValidatorSource } from "../registry/registry-shape.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";
import { VERDICTS } from "../agent/verdict-types.ts";

export const rules: Rules = {
  gated: [checkEntries, checkValidators, checkPatterns, checkFailures],
  stage: [checkChecks],
};

export const codes = {
  "CHECK-UNKNOWN": error("unknown validator", "A validator must exist to be run."),
  "CHECK-PATTERN": error(
    "unknown failure pattern",
    "The failure pattern selects the prompt that describes the failure to the model.",
  ),
  "CHECK-SUCCESS": error("unknown successWhen", "A validator needs a valid success rule to pass."),
  "CHECK-EXTRACTOR": error("unknown extractor", "The parameter would always be empty in the failure prompt."),
  "CHECK-CANNOT-FAIL": warning("check cannot fail", "A command that always succeeds proves nothing."),
  "CHECK-VALIDATOR-UNUSED": warning(
    "validator never used",
    "A validator that no closure uses gives a false sense of safety.",
  ),
  "CHECK-PATTERN-UNUSED": warning(
    "failure pattern never used",
    "Either the pattern is dead, or a validator misspells its name.",
  ),
  "CHECK-BORROWED": warning(
    "checks under another name",
    "Checks belong to the closure whose id is their key.",
  ),
  "CHECK-UNUSED": warning("checks never run", "Checks that no step uses give a false sense of safety."),
} satisfies Codes;

/** A check that is asked for, and where. */
type Asking = { readonly name: string; readonly by: string; readonly place: At };

function checkValidators(loaded: Registered, tell: Tell): void {
  const { registry, registryDocument: document } = loaded.sources;
  const judged = usersOfEntries(loaded);
  const asking = [...registry.validationSteps].flatMap(([key, entry]) =>
    entry.validationConditions.flatMap(({ validator }, index) => {
      const pointer = pointerOf(["validationSteps", key, "validationConditions", String(index), "validator"]);
      const place = { document, pointer, steps: judged.get(key) ?? [] };
      return validator === undefined ? [] : [{ name: validator, by: `The validation "${key}"`, place }];
    }),
  );
  checkDeclared(loaded, registry.validators, asking, registry.failurePatterns, tell);
}

function checkChecks(machine: Machine, tell: Tell): void {
  const asking: Asking[] = [];
  for (const [id, { source }] of machine.stages) {
    const ask = (name: string, ...key: Path) =>
      asking.push({ name, by: `The stage "${id}"`, place: atPart(machine, "steps", id, ...key) });
    for (const [index, name] of source.assert.entries()) ask(name, "assert", String(index));
    if (source.gate !== undefined) ask(source.gate, "gate");
  }
  checkDeclared(machine, machine.source.checks, asking, null, tell);
}

/** Checks that are asked for exist, and those that exist can fail and are asked for. */
function checkDeclared(
  loaded: LoadedFlow,
  declared: ReadonlyMap<string, ValidatorSource>,
  asking: readonly Asking[],
  patterns: ReadonlyMap<string, unknown> | null,
  tell: Tell,
): void {
  const isStage = loaded.words.step === "stage";
  const [what, group] = isStage ? ["check", "checks"] : ["validator", "validators"];
  const users = new Map<string, readonly StepId[]>();
  for (const { name, by, place } of asking) {
    users.set(name, [...new Set([...(users.get(name) ?? []), ...(place.steps ?? [])])]);
    if (declared.has(name)) continue;
    tell({
      code: "CHECK-UNKNOWN",
      ...place,
      message: `${by} uses the ${what} "${name}", which does not exist.${didYouMean(name, declared.keys())}`,
      fix: `Add "${name}" to ${group} in ${atPart(loaded, "checks").document.file}, or correct the name.`,
      ...correctTo(onlyNear(name, declared.keys()), place),
    });
  }
  for (const [name, check] of declared) {
    const place = atPart(loaded, "checks", name);
    if (FORBIDDEN_NAMES.has(name))
      tell({
        code: "FORBIDDEN-NAME",
        ...place,
        message: `"${name}" is not a valid ${what} name.`,
        fix: "Rename it.",
      });
    const code = isStage ? "StageDefinitionInvalid" : "SR-VALID-004";
    checkValidator({ ...place, steps: users.get(name) ?? [] }, name, check, patterns, code, tell);
    if (users.has(name)) continue;
    tell({
      code: "CHECK-VALIDATOR-UNUSED",
      ...place,
      message: `No ${isStage ? "assert or gate uses" : "validationConditions use"} the ${what} "${name}", so it never runs.${nearby(name, users.keys(), declared)}`,
      fix: `Use "${name}" in ${isStage ? "a stage" : "validationSteps"}, or remove it.`,
    });
  }
}

/** The steps that each entry of validationSteps is used for: what stands before an end by the verdict, for the first. */
function usersOfEntries({ graph }: Registered): ReadonlyMap<string, readonly StepId[]> {
  const last = graph.stop === null ? [] : [[graph.entry.step, graph.stop.judged] as const];
  const users = Map.groupBy([...graph.judged, ...last], ([, { key }]) => key);
  return new Map([...users].map(([key, judged]) => [key, judged.map(([id]) => id)]));
}

function checkEntries(loaded: Registered, tell: Tell): void {
  const judgedBy = usersOfEntries(loaded);
  const { registry, registryDocument: document } = loaded.sources;
  const { kinds } = loaded.graph.flow;
  const closures = [...kinds.keys()].filter((id) => kinds.get(id) === "close");
  for (const [key, entry] of registry.validationSteps) {
    const steps = judgedBy.get(key) ?? [];
    const place = { document, pointer: pointerOf(["validationSteps", key]), steps };
    if (steps.length === 0) {
      const why = closures.includes(key)
        ? `the step "${key}" never gives "closing"`
        : `no closure has this id`;
      tell({
        code: "CHECK-UNUSED",
        document,
        pointer: place.pointer,
        message: `The validation "${key}" never runs: ${why}.${didYouMean(key, closures)}`,
        fix: `Give it the id of the closure it is meant for${byVerdict(loaded)}.`,
      });
    }
    if (entry.stepId !== undefined && entry.stepId !== key) {
      const here = partOf(place, "stepId");
      tell({
        code: "SR-VALID-004",
        severity: "warning",
        ...here,
        message: `The validation "${key}" calls itself "${entry.stepId}".`,
        fix: `Set "stepId" to "${key}".`,
        ...correctTo(key, here),
      });
    }
    const { target } = entry.onFailure;
    if (target !== undefined && !kinds.has(target)) {
      const here = partOf(place, "onFailure", "target");
      tell({
        ...unknownTarget(here, `onFailure of the validation "${key}"`, target, [...kinds.keys()]),
        fix: "Name a step of the flow.",
        ...correctTo(onlyNear(target, kinds.keys()), here),
      });
    }
    for (const [index, { validator = "", params }] of entry.validationConditions.entries()) {
      const known = registry.validators.get(validator);
      const here = partOf(place, "validationConditions", String(index));
      if (known !== undefined) checkValues({ name: validator, validator: known, params, place: here }, tell);
    }
  }
  for (const [id, { key, by }] of loaded.graph.judged) {
    if (by === "only") tell({ ...borrowed(document, `The closure "${id}"`, key, id), steps: [id] });
  }
  const last = loaded.graph.stop?.judged;
  if (last?.by !== "only" || loaded.graph.judged.size > 0) return;
  const { type } = loaded.sources.verdict;
  tell(borrowed(document, `The end by the verdict ${type}`, last.key, VERDICTS[type].closure));
}

function borrowed(document: Document, what: string, key: string, right: string): Finding {
  return {
    code: "CHECK-BORROWED",
    document,
    pointer: pointerOf(["validationSteps", key]),
    message: `${what} has no validation of its own, so the only existing one, "${key}", is used for it.`,
    fix: `Rename "${key}" to "${right}".`,
  };
}

/** The name under which checks stand before an end by the verdict, where there is such an end. */
function byVerdict({ sources: { verdict } }: Registered): string {
  return verdict.stop.kind === "end"
    ? ""
    : `, or "${VERDICTS[verdict.type].closure}" to run it before an end by the verdict`;
}

/** `patterns`: null where a failure pattern is only a word that is shown. */
function checkValidator(
  place: At,
  name: string,
  validator: ValidatorSource,
  patterns: ReadonlyMap<string, unknown> | null,
  code: Code,
  tell: Tell,
): void {
  const { command, successWhen, failurePattern, extractParams } = validator;
  checkKeys(place, name, validator, code, tell);
  const success = successWhen === undefined ? undefined : parseSuccess(successWhen);
  if (success === null) {
    const regex = patternOfSuccess(successWhen!);
    const fault = regex === null ? null : regexFault(regex);
    tell({
      code: "CHECK-SUCCESS",
      ...partOf(place, "successWhen"),
      message:
        fault === null
          ? `successWhen "${successWhen}" of the validator "${name}" is not a valid success rule.`
          : `The regular expression ${regex} in successWhen of the validator "${name}" is not valid: ${fault}.`,
      fix:
        fault === null
          ? "Write empty, exitCode:N, contains:TEXT or matches:REGEX."
          : "Correct the regular expression (JavaScript, flag u); in JSON, write each backslash twice.",
    });
  }
  const isByExit = success?.kind === "exit" && success.code === 0;
  if (isByExit && command !== undefined && alwaysSucceeds(command)) {
    tell({
      code: "CHECK-CANNOT-FAIL",
      ...partOf(place, "command"),
      message: `The command of the validator "${name}" always exits with 0: ${command}`,
      fix: "Let the command's own exit code through.",
    });
  }
  if (success?.kind === "matches" && matchesAnything(success.pattern)) {
    tell({
      code: "CHECK-CANNOT-FAIL",
      ...partOf(place, "successWhen"),
      message: `successWhen "${successWhen}" of the validator "${name}" matches any output.`,
      fix: "Write a pattern that the output of a failure does not match.",
    });
  }
  if (failurePattern !== undefined && patterns?.has(failurePattern) === false) {
    const here = partOf(place, "failurePattern");
    tell({
      code: "CHECK-PATTERN",
      ...here,
      message: `The validator "${name}" names the failure pattern "${failurePattern}", which does not exist.${didYouMean(failurePattern, patterns.keys())}`,
      fix: `Add "${failurePattern}" to failurePatterns, or correct the name.`,
      ...correctTo(onlyNear(failurePattern, patterns.keys()), here),
    });
  }
  for (const [param, extractor] of extractParams) {
    if (EXTRACTORS.has(extractor)) continue;
    const here = partOf(place, "extractParams", param);
    tell({
      code: "CHECK-EXTRACTOR",
      ...here,
      message: `"${param}" of the validator "${name}" uses "${extractor}", which is not an extractor.${didYouMean(extractor, EXTRACTORS)}`,
      fix: `Use one of: ${[...EXTRACTORS].join(", ")}.`,
      ...correctTo(onlyNear(extractor, EXTRACTORS), here),
    });
  }
}

/** The type of a validator says what it needs, and what has no effect. */
function checkKeys(place: At, name: string, validator: ValidatorSource, code: Code, tell: Tell): void {
  const { type } = validator;
  if (type === undefined) return;
  for (const { key, types, isNeeded } of VALIDATOR_KEYS) {
    const here = partOf(place, key);
    const isThere = isWritten(here.document, here.pointer.slice(1).split("/").map(unescapeSegment));
    if (types.includes(type)) {
      if (!isNeeded || isThere || validator[key] !== undefined) continue;
      const message = `"${key}" of the validator "${name}" is missing: its type is "${type}".`;
      tell({ code, ...here, message, fix: `Add "${key}".` });
    } else if (isThere) {
      const message = `"${key}" of the validator "${name}" has no effect: its type is "${type}".`;
      tell(notActedOn(here, message, `Remove "${key}".`));
    }
  }
}

/** Commands that succeed whatever came before them, and those that only pass on what they are given. */
const SUCCEEDS = String.raw`(?:true|:|exit\s+0|(?:echo|printf)\b[^|;&]*)`;
const MASKED = new RegExp(String.raw`(?:^|\|\||;|\n)\s*${SUCCEEDS}\s*[;)}]*\s*$`);
const PIPED = /(?<!\|)\|&?\s*(?:tee|cat|head|tail|sort)\b[^|;&]*$/;

/** The exit code is that of the last command of the line, which succeeds whatever came before it. */
function alwaysSucceeds(command: string): boolean {
  const line = command.replace(/\s#[^'"\n]*$/, "").trim();
  return MASKED.test(line) || (PIPED.test(line) && !line.includes("pipefail"));
}

/** A pattern that matches nothing at all and something odd as well matches everything. Only simple ones are tried. */
function matchesAnything(pattern: string): boolean {
  if (pattern.length > 40 || pattern.includes("{")) return false;
  const regex = new RegExp(pattern, "u");
  return regex.test("") && regex.test("\u0001 ~\n\u0001");
}

/** Patterns that no validator names. */
function checkPatterns({ sources }: Registered, tell: Tell): void {
  const { registry, registryDocument: document } = sources;
  const named = new Set([...registry.validators.values()].map(({ failurePattern }) => failurePattern));
  for (const name of registry.failurePatterns.keys()) {
    if (named.has(name)) continue;
    tell({
      code: "CHECK-PATTERN-UNUSED",
      document,
      pointer: `/failurePatterns/${escapeSegment(name)}`,
      message: `No validator uses the failure pattern "${name}".${nearby(name, named, registry.failurePatterns)}`,
      fix: `Set it as the failurePattern of a validator, or remove it.`,
    });
  }
}

/** Of the names that are asked for, one that does not exist may be this one misspelled. */
function nearby(
  name: string,
  asked: Iterable<string | undefined>,
  there: ReadonlyMap<string, unknown>,
): string {
  const unknown = [...asked].filter((other) => other !== undefined && !there.has(other)) as string[];
  return didYouMean(name, unknown);
}
