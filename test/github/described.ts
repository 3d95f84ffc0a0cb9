/** GitHub's own description of its interface, as far as we use it: what fits it, and the least that does. */
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { readFileSync } from "node:fs";
import type { Description, Operation } from "../../scripts/github-description.ts";
import { isObject, type Json, type JsonObject } from "../../src/flow/json.ts";

const text = readFileSync(new URL("../fixtures/github-openapi.json", import.meta.url), "utf8");
export const description = JSON.parse(text) as Description;
const ajv = new Ajv({ strict: false, logger: false });
addFormats.default(ajv);
ajv.addSchema({ $id: "github", schemas: description.schemas });

/** The operation that a request is, and its route. */
export function operationOf(method: string, path: string): { route: string; operation: Operation } | null {
  for (const [route, operation] of Object.entries(description.operations)) {
    const [verb, template = ""] = route.split(" ");
    const pattern = `^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`;
    if (verb === method && new RegExp(pattern).test(path)) return { route, operation };
  }
  return null;
}

/** What is wrong with a value; null: it fits. */
export function misfit(value: unknown, schema: object): string | null {
  const validate = ajv.compile(schema);
  return validate(value) ? null : ajv.errorsText(validate.errors);
}

/** What is known, and the least that GitHub says is always there besides. */
export function complete(schema: Json, given?: Json): Json {
  const { $ref, anyOf, oneOf, allOf, ...plain } = schema as JsonObject;
  if (typeof $ref === "string") return complete(description.schemas[$ref.split("/").at(-1)!]!, given);
  const ways = (anyOf ?? oneOf) as readonly Json[] | undefined;
  if (ways !== undefined) return completeOne(ways, plain, given);
  if (Array.isArray(allOf))
    return allOf.reduce<Json>((value, part) => complete(part as Json, value), given ?? {});
  const { type, properties, required, items, enum: words, format } = plain;
  if (type === "object" || properties !== undefined) return completeObject(properties, required, given);
  if (Array.isArray(given))
    return given.map((item) => (items === undefined ? item : complete(items, item as Json)));
  if (given !== undefined) return given;
  if (type === "array") return [];
  if (Array.isArray(words)) return words[0] as Json;
  if (type === "boolean") return false;
  if (type === "integer" || type === "number") return 1;
  return SAMPLES[format as string] ?? "x";
}

const SAMPLES: { readonly [format: string]: string } = {
  uri: "https://github.test/",
  "date-time": "2026-01-01T00:00:00Z",
  email: "a@github.test",
};

function completeOne(ways: readonly Json[], plain: JsonObject, given: Json | undefined): Json {
  const isNull = (way: Json) => isObject(way) && way["type"] === "null";
  if (given === null || (given === undefined && ways.some(isNull))) return null;
  const wanted = ways.filter((way) => !isNull(way));
  if (!isObject(given)) return complete({ ...(wanted[0] as JsonObject), ...plain }, given);
  const fitting = wanted.find(
    (way) => isObject(way) && way["type"] !== "string" && way["type"] !== "integer",
  );
  return complete(fitting ?? wanted[0]!, given);
}

function completeObject(
  properties: Json | undefined,
  required: Json | undefined,
  given: Json | undefined,
): Json {
  const known = isObject(given) ? given : {};
  const must = Array.isArray(required) ? required.map(String) : [];
  const entries = Object.entries(isObject(properties) ? properties : {})
    .filter(([name]) => Object.hasOwn(known, name) || must.includes(name))
    .map(([name, schema]) => [name, complete(schema, known[name])]);
  return { ...known, ...(Object.fromEntries(entries) as JsonObject) };
}
