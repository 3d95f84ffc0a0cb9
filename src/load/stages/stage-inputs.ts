/** `inputs` of machine.yaml → what a run of the machine is started with. */
import type { Parameter } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { isFieldName, RESERVED_FIELDS } from "../../flow/text/placeholder.ts";
import type { Code } from "../codes.ts";
import { isPattern } from "../registry/guards.ts";
import { checkDefault, checkFlag, toKebab, withBounds } from "../parameters.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { showValue, type Reader } from "../text/shape.ts";
import { draftFault } from "./stage-file.ts";

export type Inputs = {
  readonly parameters: readonly Parameter[];
  /** Whether fields beyond the declared ones are taken as they come. */
  readonly isOpen: boolean;
};

export function loadInputs(inputs: Json | undefined, reader: Reader): Inputs {
  if (!isObject(inputs)) return { parameters: [], isOpen: true };
  const report = (code: Code, pointer: string, message: string, fix: string) =>
    reader.findings.push({ code, document: reader.document, pointer: `/inputs${pointer}`, message, fix });
  const reportInvalid = (pointer: string, message: string, fix: string) =>
    report("StageDefinitionInvalid", pointer, message, fix);

  const type = own(inputs, "type");
  const fault =
    type === undefined || type === "object"
      ? draftFault(inputs)
      : `its type is ${showValue(type)}, but must be "object"`;
  if (fault !== null)
    reportInvalid("", `inputs cannot be used: ${fault}.`, "Declare the fields of ctx as an object.");
  const properties = own(inputs, "properties");
  if (properties !== undefined && !isObject(properties)) {
    const message = `inputs.properties is ${showValue(properties)}, but must be an object.`;
    reportInvalid("/properties", message, "Write each field with its schema.");
  }
  const required = own(inputs, "required");
  const parameters: Parameter[] = [];
  const flags = new Map<string, string>();
  let isOpen = own(inputs, "additionalProperties") === true;
  for (const [name, schema] of Object.entries(isObject(properties) ? properties : {})) {
    const pointer = `/properties/${escapeSegment(name)}`;
    const refused = refusal(name);
    if (refused !== null) {
      reportInvalid(pointer, `"${name}" is not a valid input name: ${refused}.`, "Rename it.");
      continue;
    }
    const isRequired = Array.isArray(required) && required.includes(name);
    const parameter = toParameter(name, isObject(schema) ? schema : {}, isRequired);
    if (parameter === null) {
      isOpen = true;
      continue;
    }
    checkFlag(flags, name, parameter.flag, "input", (code, message) =>
      report(code, pointer, message, "Rename one of them."),
    );
    checkDefault(parameter, "input", (code, key, message, fix) => report(code, pointer + key, message, fix));
    parameters.push(parameter);
  }
  return { parameters, isOpen };
}

function refusal(name: string): string | null {
  if (FORBIDDEN_NAMES.has(name)) return "the name has a special meaning in JavaScript objects";
  if (RESERVED_FIELDS.has(name)) return "the runtime sets that field of ctx";
  return isFieldName(name) ? null : "a placeholder cannot read it";
}

/** null: of no single type, so that only a run can tell whether a value fits. */
function toParameter(name: string, schema: JsonObject, required: boolean): Parameter | null {
  const type = typeOf(schema);
  if (type === null) return null;
  const number = (...keys: readonly string[]) =>
    keys.map((key) => own(schema, key)).find((value) => typeof value === "number");
  const [description, pattern, values, fallback] = ["description", "pattern", "enum", "default"].map((key) =>
    own(schema, key),
  );
  const bounds = {
    min: number("minimum", "minLength", "minItems"),
    max: number("maximum", "maxLength", "maxItems"),
    pattern: typeof pattern === "string" && isPattern(pattern) ? pattern : undefined,
    enum: Array.isArray(values) ? values : undefined,
  };
  const declared = {
    name,
    type,
    description: typeof description === "string" ? description : "",
    flag: `--${toKebab(name)}`,
    required: required && fallback === undefined,
  };
  return withBounds(declared, fallback, bounds);
}

const TYPES: { readonly [type: string]: Parameter["type"] } = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  array: "array",
  object: "object",
};

function typeOf(schema: JsonObject): Parameter["type"] | null {
  const written = own(schema, "type");
  const types = Array.isArray(written) ? (written as readonly Json[]) : [written];
  const [type, ...others] = types.filter((word) => word !== "null");
  return others.length === 0 && typeof type === "string" ? (own(TYPES, type) ?? null) : null;
}
