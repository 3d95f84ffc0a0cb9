/** Rules about the checks that stand before the end. */
import type { StepId } from "../../flow/flow.ts";
import { checkFailures } from "./failures.ts";
import { checkValues } from "./values.ts";
import { isWritten } from "../text/document.ts";
import { correctTo, type Finding } from "./finding.ts";
import { EXTRACTORS, parseSuccess, regexFault, patternOfSuccess } from "../registry/guards.ts";
import type { Registered } from "./loaded.ts";
import { escapeSegment, unescapeSegment } from "../text/places.ts";
import { VALIDATOR_KEYS, type ValidatorSource } from "../registry/registry-shape.ts";
import { didYouMean, onlyNear } from "../text/suggest.ts";
import { customaryClosure } from "../agent/verdict-types.ts";

export function* checkGuards(loaded: Registered): Generator<Finding> {
  const judgedBy = usersOfEntries(loaded);
  yield* checkEntries(loaded, judgedBy);
  const users = usersOfValidators(loaded, judgedBy);
  for (const [name, validator] of loaded.sources.registry.validators) {
    const at = { document: loaded.sources.registryDocument, pointer: `/validators/${escapeSegment(name)}` };
    const { failurePatterns } = loaded.sources.registry;
    yield* checkValidator(at, name, validator, failurePatterns, users.get(name) ?? []);
  }
  yield* checkUse(loaded);
  yield* checkFailures(loaded);
}

/** The steps that each entry of validationSteps is used for: what stands before an end by the verdict, for the first. */
function usersOfEntries({ graph }: Registered): ReadonlyMap<string, StepId[]> {
  const users = new Map<string, StepId[]>();
  const last = graph.stop === null ? [] : [[graph.entry.step, graph.stop.judged] as const];
  for (const [id, { key }] of [...graph.judged, ...last]) {
    const others = users.get(key);
    if (others === undefined) users.set(key, [id]);
    else others.push(id);
  }
  return users;
}

function usersOfValidators(
  loaded: Registered,
  judgedBy: ReadonlyMap<string, StepId[]>,
): ReadonlyMap<string, StepId[]> {
  const users = new Map<string, StepId[]>();
  for (const [key, entry] of loaded.sources.registry.validationSteps) {
    for (const { validator } of entry.validationConditions) {
      const before = users.get(validator ?? "") ?? [];
      users.set(validator ?? "", [...new Set([...before, ...(judgedBy.get(key) ?? [])])]);
    }
  }
  return users;
}

function* checkEntries(loaded: Registered, judgedBy: ReadonlyMap<string, StepId[]>): Generator<Finding> {
  const { registry, registryDocument: document } = loaded.sources;
  const { kinds } = loaded.graph.flow;
  const closures = [...kinds].filter(([, kind]) => kind === "close").map(([id]) => id);
  for (const [key, entry] of registry.validationSteps) {
    const pointer = `/validationSteps/${escapeSegment(key)}`;
    const steps = judgedBy.get(key) ?? [];
    if (steps.length === 0) {
      const why = closures.includes(key)
        ? `the step "${key}" never gives "closing"`
        : `no closure has this id`;
      yield {
        code: "CHECK-UNUSED",
        document,
        pointer,
        message: `The validation "${key}" never runs: ${why}.${didYouMean(key, closures)}`,
        fix: `Give it the id of the closure it is meant for${byVerdict(loaded)}.`,
      };
    }
    if (entry.stepId !== undefined && entry.stepId !== key) {
      yield {
        code: "SR-VALID-004",
        severity: "warning",
        document,
        pointer: `${pointer}/stepId`,
        steps,
        message: `The validation "${key}" calls itself "${entry.stepId}".`,
        fix: `Set "stepId" to "${key}".`,
        ...correctTo(key, document, `${pointer}/stepId`),
      };
    }
    const { target } = entry.onFailure;
    if (target !== undefined && !kinds.has(target)) {
      yield {
        code: "SR-TRANS-001",
        document,
        pointer: `${pointer}/onFailure/target`,
        steps,
        message: `After a failure, the validation "${key}" continues at the step "${target}", which does not exist.${didYouMean(target, kinds.keys())}`,
        fix: "Name a step of the flow.",
        ...correctTo(onlyNear(target, kinds.keys()), document, `${pointer}/onFailure/target`),
      };
    }
    for (const [index, { validator, params }] of entry.validationConditions.entries()) {
      if (validator === undefined) continue;
      const at = `${pointer}/validationConditions/${index}`;
      const known = registry.validators.get(validator);
      if (known !== undefined) {
        yield* checkValues({ name: validator, validator: known, params, document, pointer: at, steps });
        continue;
      }
      yield {
        code: "CHECK-UNKNOWN",
        document,
        pointer: `${at}/validator`,
        steps,
        message: `The validation "${key}" uses the validator "${validator}", which does not exist.${didYouMean(validator, registry.validators.keys())}`,
        fix: `Add "${validator}" to validators, or correct the name.`,
        ...correctTo(onlyNear(validator, registry.validators.keys()), document, `${at}/validator`),
      };
    }
  }
  for (const [id, { key, by }] of loaded.graph.judged) {
    if (by !== "only") continue;
    yield {
      code: "CHECK-BORROWED",
      document,
      pointer: `/validationSteps/${escapeSegment(key)}`,
      steps: [id],
      message: `The closure "${id}" has no validation of its own, so the only existing one, "${key}", is used for it.`,
      fix: `Rename "${key}" to "${id}".`,
    };
  }
  const last = loaded.graph.stop?.judged;
  if (last?.by !== "only" || loaded.graph.judged.size > 0) return;
  const { type } = loaded.sources.verdict;
  yield {
    code: "CHECK-BORROWED",
    document,
    pointer: `/validationSteps/${escapeSegment(last.key)}`,
    message: `The end by the verdict ${type} has no validation of its own, so the only existing one, "${last.key}", is used for it.`,
    fix: `Rename "${last.key}" to "${customaryClosure(type)}".`,
  };
}

/** The name under which checks stand before an end by the verdict, where there is such an end. */
function byVerdict({ sources: { verdict } }: Registered): string {
  return verdict.stop.kind === "end"
    ? ""
    : `, or "${customaryClosure(verdict.type)}" to run it before an end by the verdict`;
}

/** `patterns`: null where a failure pattern is but a word that is told. */
export function* checkValidator(
  { document, pointer }: Pick<Finding, "document" | "pointer">,
  name: string,
  validator: ValidatorSource,
  patterns: ReadonlyMap<string, unknown> | null,
  steps: readonly StepId[],
): Generator<Finding> {
  const { command, successWhen, failurePattern, extractParams } = validator;
  yield* checkKeys({ document, pointer }, name, validator, steps);
  const success = successWhen === undefined ? undefined : parseSuccess(successWhen);
  if (success === null) {
    const regex = patternOfSuccess(successWhen!);
    const fault = regex === null ? null : regexFault(regex);
    yield {
      code: "CHECK-SUCCESS",
      document,
      pointer: `${pointer}/successWhen`,
      steps,
      message:
        fault === null
          ? `successWhen "${successWhen}" of the validator "${name}" is not a valid success rule.`
          : `The regular expression ${regex} in successWhen of the validator "${name}" is not valid: ${fault}.`,
      fix:
        fault === null
          ? "Write empty, exitCode:N, contains:TEXT or matches:REGEX."
          : "Correct the regular expression (JavaScript, flag u); in JSON, write each backslash twice.",
    };
  }
  const isByExit = success?.kind === "exit" && success.code === 0;
  if (isByExit && command !== undefined && alwaysSucceeds(command)) {
    yield {
      code: "CHECK-CANNOT-FAIL",
      document,
      pointer: `${pointer}/command`,
      steps,
      message: `The command of the validator "${name}" always exits with 0: ${command}`,
      fix: "Let the command's own exit code through.",
    };
  }
  if (success?.kind === "matches" && matchesAnything(success.pattern)) {
    yield {
      code: "CHECK-CANNOT-FAIL",
      document,
      pointer: `${pointer}/successWhen`,
      steps,
      message: `successWhen "${successWhen}" of the validator "${name}" matches any output.`,
      fix: "Write a pattern that the output of a failure does not match.",
    };
  }
  if (failurePattern !== undefined && patterns?.has(failurePattern) === false) {
    yield {
      code: "CHECK-PATTERN",
      document,
      pointer: `${pointer}/failurePattern`,
      steps,
      message: `The validator "${name}" names the failure pattern "${failurePattern}", which does not exist.${didYouMean(failurePattern, patterns.keys())}`,
      fix: `Add "${failurePattern}" to failurePatterns, or correct the name.`,
      ...correctTo(onlyNear(failurePattern, patterns.keys()), document, `${pointer}/failurePattern`),
    };
  }
  for (const [param, extractor] of extractParams) {
    if (EXTRACTORS.has(extractor)) continue;
    yield {
      code: "CHECK-EXTRACTOR",
      document,
      pointer: `${pointer}/extractParams/${escapeSegment(param)}`,
      steps,
      message: `"${param}" of the validator "${name}" uses "${extractor}", which is not an extractor.${didYouMean(extractor, EXTRACTORS)}`,
      fix: `Use one of: ${[...EXTRACTORS].join(", ")}.`,
      ...correctTo(
        onlyNear(extractor, EXTRACTORS),
        document,
        `${pointer}/extractParams/${escapeSegment(param)}`,
      ),
    };
  }
}

/** What a validator needs and what it has no use for is told by its type. */
function* checkKeys(
  { document, pointer }: Pick<Finding, "document" | "pointer">,
  name: string,
  validator: ValidatorSource,
  steps: readonly StepId[],
): Generator<Finding> {
  const { type } = validator;
  if (type === undefined) return;
  const has = (key: string) =>
    isWritten(document, `${pointer}/${key}`.slice(1).split("/").map(unescapeSegment));
  for (const { key, types, isNeeded } of VALIDATOR_KEYS) {
    const at = { document, pointer: `${pointer}/${key}`, steps };
    if (types.includes(type)) {
      if (!isNeeded || has(key) || validator[key] !== undefined) continue;
      const message = `"${key}" of the validator "${name}" is missing: its type is "${type}".`;
      yield { code: "SR-VALID-004", ...at, message, fix: `Add "${key}".` };
    } else if (has(key)) {
      const message = `"${key}" of the validator "${name}" has no effect: its type is "${type}".`;
      yield { code: "CONFIG-NOT-ACTED-ON", ...at, message, fix: `Remove "${key}".` };
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

/** What is declared and asked for by nobody. */
function* checkUse({ sources }: Registered): Generator<Finding> {
  const { registry, registryDocument: document } = sources;
  const conditions = [...registry.validationSteps.values()].flatMap((entry) => entry.validationConditions);
  const asked = new Set(conditions.map(({ validator }) => validator));
  for (const name of registry.validators.keys()) {
    if (asked.has(name)) continue;
    yield {
      code: "CHECK-VALIDATOR-UNUSED",
      document,
      pointer: `/validators/${escapeSegment(name)}`,
      message: `No validationConditions use the validator "${name}", so it never runs.${nearby(name, asked, registry.validators)}`,
      fix: `Use "${name}" in validationSteps, or remove it.`,
    };
  }
  const named = new Set([...registry.validators.values()].map(({ failurePattern }) => failurePattern));
  for (const name of registry.failurePatterns.keys()) {
    if (named.has(name)) continue;
    yield {
      code: "CHECK-PATTERN-UNUSED",
      document,
      pointer: `/failurePatterns/${escapeSegment(name)}`,
      message: `No validator uses the failure pattern "${name}".${nearby(name, named, registry.failurePatterns)}`,
      fix: `Set it as the failurePattern of a validator, or remove it.`,
    };
  }
}

/** Of the names that are asked for, one that does not exist may be this one misspelled. */
function nearby(
  name: string,
  asked: ReadonlySet<string | undefined>,
  there: ReadonlyMap<string, unknown>,
): string {
  const unknown = [...asked].filter((other) => other !== undefined && !there.has(other)) as string[];
  return didYouMean(name, unknown);
}
