/** JSON Schema validation. A schema is compiled once, when the first answer meets it. */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import type { Flow } from "../flow/flow.ts";
import type { Json, JsonSchema } from "../flow/json.ts";

/** What is wrong with the value, one line a finding, readable to a model; empty when it fits. */
export function validate(schema: JsonSchema, value: Json): readonly string[] {
  const check = compiled.get(schema) ?? compile(schema);
  return check(value) ? [] : (check.errors ?? []).map(describe);
}

/** Why the schema cannot be used, or null. Compiling is kept, so that asking first costs nothing later. */
export function schemaFault(schema: JsonSchema): string | null {
  try {
    if (!compiled.has(schema)) compile(schema);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Every schema that answers of the flow are held against. */
export function schemasOf(flow: Flow): readonly JsonSchema[] {
  return Object.values(flow.steps).flatMap(({ answer, stage }) =>
    [answer.kind === "object" ? answer.schema : undefined, stage?.inputs].flatMap((source) =>
      source?.kind === "schema" ? [source.schema] : [],
    ),
  );
}

/** Loads what only some schemas need: the 2020-12 draft, the formats. To be awaited before they are compiled. */
export async function prepareSchemas(schemas: readonly JsonSchema[]): Promise<void> {
  if (ajv2020 === undefined && schemas.some(isDraft2020)) {
    ajv2020 = new (await import("ajv/dist/2020.js")).Ajv2020(OPTIONS);
  }
  if (!schemas.some((schema) => JSON.stringify(schema).includes('"format":'))) return;
  const { default: addFormats } = await import("ajv-formats");
  for (const instance of [ajv, ajv2020]) {
    if (instance === undefined || formatted.has(instance)) continue;
    addFormats.default(instance);
    formatted.add(instance);
  }
}

/** The author's schemas may hold keywords of their own; only own members count; the schema itself is checked when compiled. */
const OPTIONS = {
  strict: false,
  ownProperties: true,
  validateSchema: false,
  meta: false,
  logger: false,
  code: { optimize: false },
} as const;
const compiled = new WeakMap<JsonSchema, ValidateFunction>();
const ajv = new Ajv(OPTIONS);
let ajv2020: Ajv | undefined;
const formatted = new WeakSet<Ajv>();

function compile(schema: JsonSchema): ValidateFunction {
  const instance = isDraft2020(schema) ? ajv2020 : ajv;
  if (instance === undefined) throw new Error("prepareSchemas was not awaited for a 2020-12 schema");
  // Schemas of different steps may repeat an $id; each stands alone here.
  const { $id: _id, $schema: _draft, ...rest } = schema;
  const check = instance.compile(rest);
  compiled.set(schema, check);
  return check;
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
