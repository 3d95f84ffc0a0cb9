/** What an agent is started with: its declaration in agent.json, and the values that are given for it. */
import type { Parameter } from "../flow/flow.ts";
import {
  defined,
  FORBIDDEN_NAMES,
  isObject,
  parseJsonObject,
  type Json,
  type JsonObject,
} from "../flow/json.ts";
import { MOST_STEPS, patternFault, readPattern, TooManySteps, withinSteps } from "../flow/text/pattern.ts";
import type { Problem } from "../flow/problem.ts";
import type { AgentSource, ParameterSource } from "./agent/agent-shape.ts";
import { toProblem, type Code } from "./codes.ts";
import { emptyDocument } from "./text/document.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import { clip, showValue, type Reader } from "./text/shape.ts";
import { didYouMean } from "../flow/text/suggest.ts";

export type Given = { readonly [name: string]: Json | undefined };

export function loadParameters(agent: AgentSource, reader: Reader): readonly Parameter[] {
  const flags = new Map<string, string>();
  const parameters: Parameter[] = [];
  for (const [name, source] of agent.parameters) {
    const pointer = `/parameters/${escapeSegment(name)}`;
    const report: Report = (code, key, message, fix) =>
      reader.findings.push({ code, document: reader.document, pointer: `${pointer}${key}`, message, fix });

    if (FORBIDDEN_NAMES.has(name)) {
      report("FORBIDDEN-NAME", "", `"${name}" is not a valid parameter name.`, "Rename the parameter.");
      continue;
    }
    if (source.description === undefined) {
      report("PARAM-DESCRIPTION", "", `The parameter "${name}" has no description.`, "Add a description.");
    }
    const flag = source.cli ?? `--${toKebab(name)}`;
    checkFlag(flags, name, flag, "parameter", (code, message) =>
      report(code, "/cli", message, `Give "${name}" a flag of its own.`),
    );
    if (source.type === undefined) continue;

    const parameter = toParameter(name, source.type, flag, source);
    parameters.push(parameter);
    checkDeclaration(parameter, source, report);
  }
  return parameters;
}

/**
 * The values a run starts with. Keys of `given` are parameter names, or flags with or without their dashes; `no-flag`
 * means false. Text, as it comes from a command line, becomes what the parameter was declared to be. `open`: names that
 * are not declared are taken as they come.
 *
 *     coerceParameters(flow.parameters, { issue: "12" })  // → { args: { issue: 12 }, problems: [] }
 */
export function coerceParameters(
  parameters: readonly Parameter[],
  given: Given,
  open = false,
): { readonly args: JsonObject; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const report = (code: Code, name: string, message: string, fix: string) => {
    const pointer = `/${escapeSegment(name)}`;
    problems.push(toProblem({ code, document: COMMAND_LINE, pointer, message, fix }, null));
  };
  const byName = namesOf(parameters);
  const values = new Map<string, Json>();

  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || (value === null && !open)) continue;
    const negated = key.replace(/^(?:--)?no-/, "");
    const parameter = byName.get(key) ?? (negated === key ? undefined : byName.get(negated));
    if (parameter === undefined && open && !FORBIDDEN_NAMES.has(key)) {
      values.set(key, value);
      continue;
    }
    if (value === null) continue;
    if (parameter === undefined) {
      const message = `There is no parameter "${clip(key)}".${didYouMean(key, byName.keys())}`;
      report("PARAM-UNKNOWN", key, message, `Use one of: ${listFlags(parameters)}.`);
      continue;
    }
    const { name, flag } = parameter;
    if (values.has(name)) {
      report("PARAM-TYPE", name, `${flag} is given more than once.`, `Give ${flag} once.`);
      continue;
    }
    const isNegation = byName.get(key) === undefined;
    const coerced = isNegation ? negate(parameter, value) : coerce(parameter, value);
    if (coerced.kind === "refused")
      report("PARAM-TYPE", name, `${flag} ${coerced.why}.`, `Give ${flag} ${WANTED[parameter.type]}.`);
    else {
      values.set(name, coerced.value);
      const why = emptyFault(parameter, coerced.value) ?? rangeFault(parameter, coerced.value);
      if (why !== null) report("PARAM-RANGE", name, `${flag} ${why}.`, `Give ${flag} a valid value.`);
    }
  }

  const refused = new Set(problems.map((problem) => problem.pointer));
  for (const { name, flag, required, description, ...parameter } of parameters) {
    if (values.has(name) || refused.has(`/${escapeSegment(name)}`)) continue;
    if (!required && parameter.default !== undefined) values.set(name, parameter.default);
    if (!required) continue;
    const about = description === "" ? "" : ` (${clip(description)})`;
    report("PARAM-MISSING", name, `The parameter "${name}" is required${about}.`, `Give it with ${flag}.`);
  }
  return { args: Object.fromEntries(values), problems };
}

const COMMAND_LINE = emptyDocument("(command line)");

const WANTED: { readonly [type in Parameter["type"]]: string } = {
  string: "a text",
  number: "a number",
  boolean: "true or false",
  array: "one or more values",
  object: "a JSON object",
};

function toParameter(
  name: string,
  type: Parameter["type"],
  flag: string,
  source: ParameterSource,
): Parameter {
  const { description = "", required, validation } = source;
  const { min, max, pattern, enum: values } = validation ?? {};
  const usable = pattern !== undefined && patternFault(pattern) === null ? pattern : undefined;
  const bounds = { min, max, pattern: usable, enum: values };
  return withBounds({ name, type, description, flag, required }, source.default, bounds);
}

type Bounds = { readonly [key in keyof NonNullable<Parameter["validation"]>]?: Json | undefined };

/** Without what was not written. */
export function withBounds(
  parameter: Omit<Parameter, "default" | "validation">,
  fallback: Json | undefined,
  bounds: Bounds,
): Parameter {
  const validation = defined(bounds) as Parameter["validation"] & object;
  return {
    ...parameter,
    ...(fallback !== undefined && { default: fallback }),
    ...(Object.keys(validation).length > 0 && { validation }),
  };
}

type Report = (code: Code, key: string, message: string, fix: string) => void;

/** `flags`: those of the parameters before it, with their names. */
export function checkFlag(
  flags: Map<string, string>,
  name: string,
  flag: string,
  what: "parameter" | "input",
  report: (code: Code, message: string) => void,
): void {
  const other = flags.get(flag);
  if (other !== undefined)
    report("PARAM-FLAG", `The ${what}s "${other}" and "${name}" have the same flag ${flag}.`);
  flags.set(flag, name);
}

function checkDeclaration(parameter: Parameter, source: ParameterSource, report: Report): void {
  const { name } = parameter;
  const pattern = source.validation?.pattern;
  const fault = pattern === undefined ? null : patternFault(pattern);
  if (fault !== null) {
    const message = `The pattern of the parameter "${name}" cannot be used: ${fault}: ${clip(pattern!)}`;
    report("AC-VALID-001", "/validation/pattern", message, "Write a valid regular expression.");
  }
  if (parameter.default !== undefined && parameter.required) {
    const message = `The parameter "${name}" is required, so its default is never used.`;
    report("PARAM-REQUIRED", "/default", message, 'Remove "default", or set "required" to false.');
  }
  checkDefault(parameter, "parameter", report);
}

export function checkDefault(parameter: Parameter, what: "parameter" | "input", report: Report): void {
  const why = parameter.default === undefined ? null : misfitOf(parameter, parameter.default);
  const message = `The default of the ${what} "${parameter.name}" ${why}.`;
  if (why !== null) report("PARAM-DEFAULT", "/default", message, "Set a valid default.");
}

/** Why a value cannot be that of the parameter, or null. */
function misfitOf(parameter: Parameter, value: Json): string | null {
  return isOfType(value, parameter.type)
    ? rangeFault(parameter, value)
    : `is ${showValue(value)}, but its type is ${parameter.type}`;
}

/** A parameter by its name, by its flag, and by its flag without dashes; its own name counts first. */
function namesOf(parameters: readonly Parameter[]): ReadonlyMap<string, Parameter> {
  const names = new Map<string, Parameter>();
  for (const parameter of parameters) names.set(parameter.name, parameter);
  for (const parameter of parameters) {
    for (const name of [parameter.flag, parameter.flag.replace(/^--/, "")]) {
      if (!names.has(name)) names.set(name, parameter);
    }
  }
  return names;
}

type Coerced =
  | { readonly kind: "value"; readonly value: Json }
  | { readonly kind: "refused"; readonly why: string };

function coerce({ type }: Parameter, value: Json): Coerced {
  if (type === "array") return accept(Array.isArray(value) ? value : [value]);
  if (Array.isArray(value)) return refuse("is given more than once");
  if (isOfType(value, type)) return accept(value);
  switch (type) {
    case "string":
      if (typeof value === "number") return accept(String(value));
      return refuse(value === true ? "needs a value" : `is ${showValue(value)}, not a text`);
    case "number": {
      const number = typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
      if (Number.isFinite(number)) return accept(number);
      return refuse(value === true ? "needs a value" : `is ${showValue(value)}, not a number`);
    }
    case "boolean": {
      const word = typeof value === "object" ? "" : String(value).toLowerCase();
      if (["true", "yes", "1"].includes(word)) return accept(true);
      if (["false", "no", "0"].includes(word)) return accept(false);
      return refuse(`is ${showValue(value)}, neither true nor false`);
    }
    case "object": {
      const parsed = typeof value === "string" ? parseJsonObject(value) : null;
      return parsed === null ? refuse(`is ${showValue(value)}, not a JSON object`) : accept(parsed);
    }
  }
}

function negate({ type }: Parameter, value: Json): Coerced {
  if (type !== "boolean") return refuse("is not a boolean flag and cannot be negated");
  return value === true || value === "true" ? accept(false) : refuse("is negated, so it takes no value");
}

function accept(value: Json): Coerced {
  return { kind: "value", value };
}

function refuse(why: string): Coerced {
  return { kind: "refused", why };
}

/** A text that is required is not empty, unless a rule of its own lets it be. */
function emptyFault({ type, required, validation }: Parameter, value: Json): string | null {
  const { min, pattern, enum: values } = validation ?? {};
  const isRuled = min !== undefined || pattern !== undefined || values !== undefined;
  const isEmpty = typeof value === "string" && value.trim() === "";
  return required && type === "string" && !isRuled && isEmpty ? "is empty" : null;
}

/** Why the value is not among those that make sense, or null. Lengths count for texts and lists. */
function rangeFault({ validation }: Parameter, value: Json): string | null {
  if (validation === undefined) return null;
  const { min, max } = validation;
  const size =
    typeof value === "number"
      ? value
      : typeof value === "string" || Array.isArray(value)
        ? value.length
        : null;
  const measured = typeof value === "number" ? showValue(value) : `of length ${size}`;
  if (min !== undefined && size !== null && size < min) return `is ${measured}, less than ${min}`;
  if (max !== undefined && size !== null && size > max) return `is ${measured}, more than ${max}`;
  return withinSteps(MOST_STEPS, () => memberFault(validation, value));
}

function memberFault(
  { pattern, enum: values }: NonNullable<Parameter["validation"]>,
  value: Json,
): string | null {
  for (const member of Array.isArray(value) ? (value as readonly Json[]) : [value]) {
    const why = pattern === undefined ? null : patternMisfit(pattern, member);
    if (why !== null) return why;
    if (values !== undefined && !values.includes(member))
      return `is ${showValue(member)}, not one of: ${values.map((one) => showValue(one)).join(", ")}`;
  }
  return null;
}

function patternMisfit(pattern: string, member: Json): string | null {
  const read = readPattern(pattern);
  if (read.kind === "refused") return `cannot be matched with ${clip(pattern)}: ${read.why}`;
  try {
    if (typeof member === "string" && read.matcher.test(member)) return null;
  } catch (error) {
    if (error instanceof TooManySteps)
      return `is ${showValue(member)}, which would take too long to match with ${clip(pattern)}`;
    throw error;
  }
  return `is ${showValue(member)}, which does not match ${pattern}`;
}

function isOfType(value: Json, type: Parameter["type"]): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return typeof value === type && (typeof value !== "number" || Number.isFinite(value));
}

function listFlags(parameters: readonly Parameter[]): string {
  return parameters.map((parameter) => parameter.flag).join(", ") || "none; this agent takes no parameters";
}

/** `iterateMax` → `iterate-max`. */
export function toKebab(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replaceAll("_", "-")
    .toLowerCase();
}
