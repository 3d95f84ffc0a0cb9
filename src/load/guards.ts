/** validationSteps, validators and failurePatterns → the checks a closure must survive before the flow may end. */
import type { Check, Guard, GuardedCheck, StepGuard, StepId, SuccessRule } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import type { Prompts } from "./prompts.ts";
import type { RegistrySource, StepSource, ValidationStepSource, ValidatorSource } from "./registry-shape.ts";
import { customaryClosure, type VerdictType } from "./verdict-types.ts";

/** Which entry of validationSteps a closure is judged by, and by what right. */
export type Judged = {
  readonly key: string;
  readonly entry: ValidationStepSource;
  readonly by: "id" | "verdict" | "only";
};

/** Its own entry; else the customary one of the verdict type; else the only one there is, unless that is another step's. */
export function judgedBy(id: StepId, registry: RegistrySource, type: VerdictType): Judged | null {
  const { validationSteps } = registry;
  const own = validationSteps.get(id);
  if (own !== undefined) return { key: id, entry: own, by: "id" };
  const customary = validationSteps.get(customaryClosure(type));
  if (customary !== undefined) return { key: customaryClosure(type), entry: customary, by: "verdict" };
  const [only, second] = validationSteps;
  if (only === undefined || second !== undefined || registry.steps.has(only[0])) return null;
  return { key: only[0], entry: only[1], by: "only" };
}

/** `label`: the one whose edge ends the flow. */
export function buildGuard(
  source: StepSource,
  label: string,
  entry: ValidationStepSource,
  registry: RegistrySource,
  workAt: StepSource | undefined,
  prompts: Prompts,
): { readonly guard: StepGuard; readonly checks: readonly Check[] } | null {
  const checks: Check[] = [];
  const guarded: GuardedCheck[] = [];
  const places = [entry, source, workAt].flatMap((at) =>
    at?.c2 === undefined || at.c3 === undefined ? [] : [{ c2: at.c2, c3: at.c3 }],
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
  return {
    checks,
    guard: {
      on: label,
      checks: guarded,
      onFailure: entry.onFailure.action,
      maxFailures: entry.onFailure.maxAttempts,
      back: backOf(source, entry),
    },
  };
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
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
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

export function buildCheck(
  name: string,
  params: ReadonlyMap<string, Json>,
  source: ValidatorSource,
  registry: Pick<RegistrySource, "failurePatterns">,
): Check | null {
  const { command, successWhen, failurePattern } = source;
  if (command === undefined || successWhen === undefined || failurePattern === undefined) return null;
  const given = [...params].map(([key, value]) => `${key}=${plain(value)}`).join(", ");
  return {
    kind: "command",
    name: given === "" ? name : `${name}(${given})`,
    command: command.replaceAll(/\$\{(\w+)\}/g, (written, key: string) =>
      params.has(key) ? plain(params.get(key)!) : written,
    ),
    success: parseSuccess(successWhen) ?? NEVER,
    pattern: failurePattern,
    description: registry.failurePatterns.get(failurePattern)?.description ?? source.description ?? "",
    extract: Object.fromEntries(source.extractParams),
    timeoutMs: source.timeoutMs,
    maxOutputBytes: source.maxOutputBytes,
  };
}

function plain(value: Json): string {
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
