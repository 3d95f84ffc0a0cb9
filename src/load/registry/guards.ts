/** validationSteps, validators and failurePatterns → the checks a closure must survive before the flow may end. */
import type { Check, Guard, GuardedCheck, StepGuard, StepId, SuccessRule } from "../../flow/flow.ts";
import type { Json } from "../../flow/json.ts";
import type { Prompts } from "./prompts.ts";
import type { RegistrySource, StepSource, ValidationStepSource, ValidatorSource } from "./registry-shape.ts";
import { VERDICTS, type VerdictType } from "../agent/verdict-types.ts";

/** Which entry of validationSteps a closure, or the verdict, is judged by, and by what right. */
export type JudgingEntry = {
  readonly key: string;
  readonly entry: ValidationStepSource;
  readonly by: "id" | "verdict" | "only";
};

/** Its own entry; else the one that goes with the verdict. */
export function judgedBy(id: StepId, registry: RegistrySource, type: VerdictType): JudgingEntry | null {
  const own = registry.validationSteps.get(id);
  return own === undefined ? judgedByVerdict(registry, type) : { key: id, entry: own, by: "id" };
}

/** The customary entry of the verdict type; else the only one there is, unless that is a step's own. */
export function judgedByVerdict(registry: RegistrySource, type: VerdictType): JudgingEntry | null {
  const { validationSteps } = registry;
  const customary = validationSteps.get(VERDICTS[type].closure);
  if (customary !== undefined) return { key: VERDICTS[type].closure, entry: customary, by: "verdict" };
  const [only, second] = validationSteps;
  if (only === undefined || second !== undefined || registry.steps.has(only[0])) return null;
  return { key: only[0], entry: only[1], by: "only" };
}

export type Built<G> = { readonly guard: G; readonly checks: readonly Check[] };

/** `label`: the one whose edge ends the flow. */
export function buildGuard(
  source: StepSource,
  label: string,
  entry: ValidationStepSource,
  registry: RegistrySource,
  workAt: StepSource | undefined,
  prompts: Prompts,
): Built<StepGuard> | null {
  const built = buildChecks(entry, [entry, source, workAt], backOf(source, entry), registry, prompts);
  return built === null ? null : { ...built, guard: { on: label, ...built.guard } };
}

/** What must pass before the stop rule ends a run; after a failure the run goes on where it would have gone. */
export function buildStopGuard(
  entry: ValidationStepSource,
  registry: RegistrySource,
  workAt: StepSource | undefined,
  prompts: Prompts,
): Built<Guard> | null {
  return buildChecks(entry, [entry, workAt], { kind: "onward" }, registry, prompts);
}

type Place = Pick<StepSource, "c2" | "c3"> | undefined;

/** `at`: where the failure prompts are looked for, in this order. */
function buildChecks(
  entry: ValidationStepSource,
  at: readonly Place[],
  back: Guard["back"],
  registry: RegistrySource,
  prompts: Prompts,
): Built<Guard> | null {
  const checks: Check[] = [];
  const guarded: GuardedCheck[] = [];
  const places = at.flatMap((one) =>
    one?.c2 === undefined || one.c3 === undefined ? [] : [{ c2: one.c2, c3: one.c3 }],
  );
  for (const condition of entry.validationConditions) {
    const validator = registry.validators.get(condition.validator ?? "");
    if (condition.validator === undefined || validator === undefined) continue;
    const check = buildCheck(condition.validator, condition.params, validator, registry);
    if (check === null) continue;
    const pattern = registry.failurePatterns.get(check.pattern);
    const edition = prompts.ofFailure(places, pattern?.edition ?? "failed", pattern?.adaptation ?? null);
    checks.push(check);
    guarded.push({ check: check.name, edition });
  }
  if (guarded.length === 0) return null;
  const { action: onFailure, maxAttempts: maxFailures } = entry.onFailure;
  return { checks, guard: { checks: guarded, onFailure, maxFailures, back } };
}

/** `empty`, `exitCode:N`, `contains:TEXT`, `matches:REGEX`; null for anything else. */
export function parseSuccess(text: string): SuccessRule | null {
  if (text === "empty") return { kind: "empty" };
  const colon = text.indexOf(":");
  const rest = text.slice(colon + 1);
  if (colon === -1 || rest === "") return null;
  switch (text.slice(0, colon)) {
    case "exitCode":
      return /^\d{1,3}$/.test(rest) ? { kind: "exit", code: Number(rest) } : null;
    case "contains":
      return { kind: "contains", text: rest };
    case "matches":
      return isPattern(rest) ? { kind: "matches", pattern: rest } : null;
    default:
      return null;
  }
}

export function isPattern(text: string): boolean {
  return regexFault(text) === null;
}

/** Why a text is not a valid regular expression; null: it is one. */
export function regexFault(text: string): string | null {
  try {
    void new RegExp(text, "u");
    return null;
  } catch (error) {
    // "Invalid regular expression: /([/u: Unterminated character class"
    return (
      (error as Error).message.slice(`Invalid regular expression: /${text}/u: `.length) || "it cannot be read"
    );
  }
}

/** The regular expression of a success rule, right or wrong; null: the rule has none. */
export function patternOfSuccess(successWhen: string): string | null {
  return successWhen.startsWith("matches:") ? successWhen.slice("matches:".length) : null;
}

/** Names that `extractParams` may use. */
export const EXTRACTORS: ReadonlySet<string> = new Set([
  "parseChangedFiles",
  "parseUntrackedFiles",
  "parseStagedFiles",
  "parseUnstagedFiles",
  "parseTestOutput",
  "failedTests",
  "errorOutput",
  "parseTypeErrors",
  "errors",
  "extractFiles",
  "files",
  "parseLintErrors",
  "lintErrors",
  "lintFiles",
  "parseFormatOutput",
  "formatFiles",
  "generateDiff",
  "diff",
  "stderr",
  "stdout",
  "exitCode",
  "missingPaths",
  "expectedPath",
  "parseBranchName",
  "parseRemoteStatus",
  "parseMergeStatus",
]);

/** Without success rule a check never passes; the rules refuse such a flow before it runs. */
const NEVER: SuccessRule = { kind: "matches", pattern: "(?!)" };

/** null for one that the rules refuse: it is never run. */
export function buildCheck(
  name: string,
  params: Params,
  source: ValidatorSource,
  registry: Pick<RegistrySource, "failurePatterns">,
): Check | null {
  const { failurePattern, timeoutMs, maxOutputBytes } = source;
  if (failurePattern === undefined) return null;
  const env = Object.fromEntries([...params].map(([key, value]) => [key, plain(value)]));
  const given = Object.entries(env).map(([key, value]) => `${key}=${value}`);
  const common = {
    name: given.length === 0 ? name : `${name}(${given.join(", ")})`,
    pattern: failurePattern,
    description: registry.failurePatterns.get(failurePattern)?.description ?? source.description ?? "",
  };
  switch (source.type) {
    case "command": {
      const { command, successWhen } = source;
      if (command === undefined || successWhen === undefined) return null;
      const success = parseSuccess(successWhen) ?? NEVER;
      const extract = Object.fromEntries(source.extractParams);
      return { kind: "command", ...common, command, env, success, extract, timeoutMs, maxOutputBytes };
    }
    case "file":
      if (source.path === undefined) return null;
      return { kind: "file", ...common, path: fillPath(source.path, params) };
    case "semantic":
      if (source.semanticConfig?.checkType === undefined) return null;
      return { kind: source.semanticConfig.checkType, ...common, timeoutMs };
    case undefined:
      return null;
  }
}

/** Every validator as a check without values. */
export function declaredChecks(registry: Pick<RegistrySource, "validators" | "failurePatterns">): {
  readonly [name: string]: Check;
} {
  const checks = [...registry.validators].flatMap(([name, source]) => {
    const check = buildCheck(name, NO_PARAMS, source, registry);
    return check === null ? [] : [[name, check] as const];
  });
  return Object.fromEntries(checks);
}

const NO_PARAMS: Params = new Map();

/** What a condition gives to its validator. */
export type Params = ReadonlyMap<string, Json>;

/** A path with its values in place; a name without one stays as it is written. */
export function fillPath(path: string, params: Params): string {
  return path.replaceAll(SHELL_REFERENCE, (written, key: string) => {
    const value = params.get(key);
    return value === undefined ? written : plain(value);
  });
}

/** `${key}`, in a command or a path. */
export const SHELL_REFERENCE = /\$\{(\w+)\}/g;

export function plain(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Where the author says, where the closure's own `repeat` leads, or back to the step that handed over. */
function backOf(source: StepSource, entry: ValidationStepSource): Guard["back"] {
  if (entry.onFailure.target !== undefined) return { kind: "goto", step: entry.onFailure.target };
  const repeat = source.transitions.get("repeat")?.target;
  return typeof repeat === "string" && repeat !== source.stepId
    ? { kind: "goto", step: repeat }
    : { kind: "caller" };
}
