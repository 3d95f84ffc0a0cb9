/** JSON Schema validation. A plain schema is judged as it is, any other is compiled once; the compiled one says what is wrong. */
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import type { Flow } from "../../flow/flow.ts";
import { cached } from "../../flow/cached.ts";
import { isObject, own, type Json, type JsonSchema, type Path } from "../../flow/json.ts";
import { lifecycleOf } from "../../flow/lifecycle.ts";
import { MOST_STEPS, readPattern, TooManySteps, withinSteps } from "../../flow/text/pattern.ts";
import { isPlain, keywordsOf, misfitBy, type Keywords } from "../../flow/plain-schema.ts";
import { isAffordable, sizeOf, uncountable } from "./schema-cost.ts";
import { errorText } from "../../flow/text/harmless.ts";

/**
 * What is wrong with the value, one line a finding, readable to a model; empty when it fits. What would take too long to
 * tell does not fit: the work is counted and not timed, so that a replay comes to the same.
 */
export function validate(schema: JsonSchema, value: Json): readonly string[] {
  const known = knownOf(schema);
  if (!isCheap(known, value)) return TOO_MUCH;
  const plain = plainOf(known);
  if (plain !== null && misfitBy(plain, value) === null) return FITS;
  return judge(known.check ?? compile(known), value, Infinity);
}

/** What is known of a schema. Each part is worked out when it is first needed. */
type Known = {
  readonly schema: JsonSchema;
  /** Of a plain schema; Infinity: it has to be looked at with every value. */
  size: number | null;
  /** What it is judged by as it is; null: it has to be compiled; undefined: not known yet. */
  plain: Keywords | null | undefined;
  check: ValidateFunction | null;
  /** The one that finds all errors. */
  thorough: ValidateFunction | null;
  /** Why it cannot be used. */
  fault: string | null;
};

const knownOf = cached((schema: JsonSchema): Known => ({
  schema,
  size: null,
  plain: undefined,
  check: null,
  thorough: null,
  fault: null,
}));

const TOO_MUCH: readonly string[] = [
  "the object is too large for its schema: comparing them would take too long; give fewer and shorter values",
];

function judge(check: ValidateFunction, value: Json, most: number): readonly string[] {
  try {
    if (withinSteps(MOST_STEPS, () => check(value))) return FITS;
  } catch (error) {
    if (error instanceof TooManySteps || error instanceof RangeError) return TOO_MUCH;
    throw error;
  }
  return (check.errors ?? []).slice(0, most).map(describe);
}

/** Most schemas and answers are so small that their sizes say enough. */
function isCheap(known: Known, value: Json): boolean {
  const { schema } = known;
  const size = (known.size ??= isPlain(schema) ? sizeOf(schema) : Infinity);
  return (size < Infinity && size * sizeOf(value) < PLAINLY_CHEAP) || isAffordable(schema, value);
}

const PLAINLY_CHEAP = 1_000_000;

const FITS: readonly string[] = [];

/**
 * Compiling takes milliseconds, and loading the compiler ten more. Judging a value by a plain schema as it is takes at most
 * about a microsecond longer than by a compiled one, so that it does not pay before tens of thousands of answers.
 */
function plainOf(known: Known): Keywords | null {
  if (known.plain !== undefined) return known.plain;
  const { schema } = known;
  return (known.plain = isPlain(schema) && uncountable(schema) === null ? keywordsOf(schema) : null);
}

/** The same, with all errors and not only the first: for a model that has to fix them in one go. */
export function everyFault(schema: JsonSchema, value: Json): readonly string[] {
  const known = knownOf(schema);
  if (!isCheap(known, value)) return TOO_MUCH;
  return judge(known.thorough ?? compile(known, true), value, MOST_FAULTS);
}

/** Why the schema cannot be used, or null. Compiling is kept, so that asking first costs nothing later. */
export function schemaFault(schema: JsonSchema): string | null {
  const known = knownOf(schema);
  if (known.fault !== null || known.check !== null) return known.fault;
  try {
    if (plainOf(known) === null) compile(known);
  } catch (error) {
    known.fault = error instanceof RangeError ? "it is too large" : errorText(error);
  }
  return known.fault;
}

/** Parts of a schema that are compiled to find its fault. */
const MOST_TRIES = 1000;

/** Where in the schema its fault is: the smallest part that has the same fault by itself. */
export function faultPath(schema: JsonSchema): Path {
  const why = schemaFault(schema);
  const draft = own(schema, "$schema");
  let tries = MOST_TRIES;
  const isAt = (part: Json): part is JsonSchema =>
    isObject(part) &&
    tries-- > 0 &&
    schemaFault(draft === undefined ? part : { $schema: draft, ...part }) === why;
  const search = (part: JsonSchema, path: Path): Path => {
    for (const [keyword, value] of Object.entries(part)) {
      if (typeof value !== "object" || value === null) continue;
      if (isAt(value)) return search(value, [...path, keyword]);
      for (const [name, inner] of Object.entries(value))
        if (isAt(inner)) return search(inner, [...path, keyword, name]);
    }
    const keyword = Object.keys(part).find((name) => isAt({ [name]: part[name]! }));
    return keyword === undefined ? path : [...path, keyword];
  };
  return why === null ? [] : search(schema, []);
}

/** Every schema that answers of the flow are held against. */
export function schemasOf(flow: Flow): readonly JsonSchema[] {
  return Object.values(flow.steps).flatMap((step) =>
    [step.answer.kind === "object" ? step.answer.schema : undefined, lifecycleOf(step)?.inputs].flatMap(
      (source) => (source?.kind === "schema" ? [source.schema] : []),
    ),
  );
}

/** Loads what only some schemas need: the 2020-12 draft, the formats. To be awaited before they are compiled. */
export async function prepareSchemas(schemas: readonly JsonSchema[]): Promise<void> {
  const fresh = schemas.filter((schema) => !prepared.has(schema));
  if (fresh.length === 0) return;
  if (fresh.some(isDraft2020)) ({ Ajv2020 } = await import("ajv/dist/2020.js"));
  if (fresh.some((schema) => JSON.stringify(schema).includes('"format":'))) {
    const { default: formats } = await import("ajv-formats");
    addFormats = formats.default;
  }
  for (const schema of fresh) prepared.add(schema);
}

/** The author's schemas may hold keywords of their own; only own members count; the schema itself is checked when compiled. */
const OPTIONS: Options = {
  strict: false,
  ownProperties: true,
  validateSchema: false,
  meta: false,
  // One that is used in many places would be written out in each of them, and those again.
  inlineRefs: false,
  logger: false,
  code: { optimize: false, regExp: Object.assign(toMatcher, { code: "new RegExp" }) },
};

/** The name tells patterns apart within a compiled schema. */
function toMatcher(pattern: string): { test: (text: string) => boolean; toString: () => string } {
  const read = readPattern(pattern);
  if (read.kind === "refused")
    throw new Error(`the pattern ${JSON.stringify(pattern.slice(0, 200))} cannot be used: ${read.why}`);
  return { test: read.matcher.test, toString: () => pattern };
}

const MOST_FAULTS = 20;
/** Those for which everything is loaded. */
const prepared = new WeakSet<JsonSchema>();
let Ajv2020: (new (options: Options) => Ajv) | undefined;
let addFormats: ((ajv: Ajv) => unknown) | undefined;
const instances = new Map<string, Ajv>();
const formatted = new WeakSet<Ajv>();

function compile(known: Known, allErrors = false): ValidateFunction {
  const { schema } = known;
  const why = uncountable(schema);
  if (why !== null) throw new Error(why);
  // Schemas of different steps may repeat an $id; each stands alone here.
  const { $id: _id, $schema: _draft, ...rest } = schema;
  const check = instanceFor(isDraft2020(schema), allErrors).compile(rest);
  known[allErrors ? "thorough" : "check"] = check;
  return check;
}

function instanceFor(is2020: boolean, allErrors: boolean): Ajv {
  const Draft = is2020 ? Ajv2020 : Ajv;
  if (Draft === undefined) throw new Error("prepareSchemas was not awaited for a 2020-12 schema");
  const name = `${is2020} ${allErrors}`;
  const instance = instances.get(name) ?? new Draft({ ...OPTIONS, allErrors });
  instances.set(name, instance);
  if (addFormats !== undefined && !formatted.has(instance)) addFormats(instance);
  if (addFormats !== undefined) formatted.add(instance);
  return instance;
}

function isDraft2020(schema: JsonSchema): boolean {
  return typeof schema.$schema === "string" && schema.$schema.includes("2020-12");
}

function describe(error: ErrorObject): string {
  const where = error.instancePath === "" ? "the object" : error.instancePath;
  const allowed: unknown = error.params.allowedValues ?? error.params.allowedValue;
  const detail = allowed === undefined ? "" : `: ${JSON.stringify(allowed)}`;
  const extra: unknown = error.params.additionalProperty;
  return `${where} ${error.message ?? "does not fit"}${detail}${typeof extra === "string" ? `: "${extra}"` : ""}`;
}
