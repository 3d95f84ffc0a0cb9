/**
 * Cuts the operations that we use out of GitHub's own description of its interface, with the schemas they need:
 *
 *     npm install --no-save --prefix /tmp/octokit @octokit/openapi@23.0.2
 *     node scripts/github-description.ts /tmp/octokit > test/fixtures/github-openapi.json
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };
type Schema = { readonly [key: string]: Value };

export type Description = {
  readonly version: string;
  /** By method and path: what a request body must fit, and what each answer must fit. */
  readonly operations: { readonly [route: string]: Operation };
  readonly schemas: { readonly [name: string]: Schema };
};

export type Operation = {
  readonly body: Schema | null;
  /** The names of what may stand in the query. */
  readonly query: readonly string[];
  /** By status; null: an answer without a body. */
  readonly answers: { readonly [status: string]: Schema | null };
};

const ROUTES: readonly string[] = [
  "GET /repos/{owner}/{repo}",
  "GET /repos/{owner}/{repo}/issues",
  "POST /repos/{owner}/{repo}/issues",
  "GET /repos/{owner}/{repo}/issues/{issue_number}",
  "PATCH /repos/{owner}/{repo}/issues/{issue_number}",
  "GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
  "POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
  "POST /repos/{owner}/{repo}/issues/{issue_number}/labels",
  "PUT /repos/{owner}/{repo}/issues/{issue_number}/labels",
  "DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}",
  "GET /repos/{owner}/{repo}/pulls",
  "POST /repos/{owner}/{repo}/pulls",
  "GET /repos/{owner}/{repo}/pulls/{pull_number}",
  "GET /repos/{owner}/{repo}/commits/{ref}/check-runs",
  "GET /repos/{owner}/{repo}/commits/{ref}/status",
];

export function describe(folder: string): Description {
  const whole = JSON.parse(
    readFileSync(join(folder, "node_modules/@octokit/openapi/generated/api.github.com.json"), "utf8"),
  ) as Value;
  const needed = new Set<string>();
  const tidy = (value: Value): Value => plain(value, needed);
  const operations = Object.fromEntries(
    ROUTES.map((route) => {
      const [method = "", path = ""] = route.split(" ");
      const operation = at(whole, "paths", path, method.toLowerCase());
      const parameters = list(at(operation, "parameters")).map((entry) => resolve(whole, entry));
      const query = parameters
        .filter((entry) => at(entry, "in") === "query")
        .map((entry) => at(entry, "name"));
      const body = at(operation, "requestBody", "content", "application/json", "schema");
      const answers = Object.entries(record(at(operation, "responses"))).map(([status, answer]) => {
        const schema = at(resolve(whole, answer), "content", "application/json", "schema");
        return [status, schema === undefined ? null : tidy(schema)];
      });
      return [
        route,
        { body: body === undefined ? null : tidy(body), query, answers: Object.fromEntries(answers) },
      ];
    }),
  ) as Description["operations"];
  const schemas: { [name: string]: Schema } = {};
  for (const name of needed)
    schemas[name] = tidy(at(whole, "components", "schemas", name) as Schema) as Schema;
  const sorted = Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return { version: at(whole, "info", "version") as string, operations, schemas: sorted };
}

/** Nothing that only people read; references lead to our own list; what may be null says so as JSON Schema does. */
function plain(value: Value, needed: Set<string>): Value {
  if (Array.isArray(value)) return value.map((item: Value) => plain(item, needed));
  if (typeof value !== "object" || value === null) return value;
  const schema = value as Schema;
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const name = reference.replace("#/components/schemas/", "");
    needed.add(name);
    return { $ref: `github#/schemas/${name}` };
  }
  const { nullable, ...rest } = schema;
  const kept = Object.entries(rest).flatMap(([key, inner]): (readonly [string, Value])[] => {
    if (key === "properties") return [[key, mapped(inner, needed)]];
    return NOT_CHECKED.has(key) || key.startsWith("x-") ? [] : [[key, plain(inner, needed)]];
  });
  const bare: Schema = Object.fromEntries(kept);
  return nullable === true ? { anyOf: [bare, { type: "null" }] } : bare;
}

/** The keys of `properties` are names, whatever they are called. */
function mapped(properties: Value, needed: Set<string>): Value {
  return Object.fromEntries(
    Object.entries(record(properties)).map(([name, schema]) => [name, plain(schema, needed)]),
  );
}

const NOT_CHECKED: ReadonlySet<string> = new Set([
  "description",
  "title",
  "example",
  "examples",
  "default",
  "deprecated",
  "readOnly",
  "externalDocs",
]);

function resolve(whole: Value, entry: Value): Value {
  const reference = at(entry, "$ref");
  return typeof reference === "string" ? (at(whole, ...reference.slice(2).split("/")) as Value) : entry;
}

function at(value: Value | undefined, ...path: readonly string[]): Value | undefined {
  return path.reduce<Value | undefined>((here, key) => record(here)[key], value);
}

function record(value: Value | undefined): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

function list(value: Value | undefined): readonly Value[] {
  return Array.isArray(value) ? value : [];
}

if (import.meta.main) console.log(JSON.stringify(describe(process.argv[2] ?? ".")));
