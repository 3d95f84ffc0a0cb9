/** Rules about the schemas of answers: they can be resolved, they are for their step, and they are quick to check. */
import { pointerOf } from "../../flow/json-pointer.ts";
import { fieldSchema, fieldWords } from "../../flow/json-schema.ts";
import { isObject, own, type Json, type JsonSchema, type Path } from "../../flow/json.ts";
import type { Code } from "../codes.ts";
import { brokenJson, repeatedKeys } from "../text/document.ts";
import { listValues } from "../text/shape.ts";
import { answerSchema, atName, atSchema, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { gated: [checkSchemas, checkAnswers] };

export const codes = {
  "SCHEMA-STEP-ID": error(
    "stepId of another step",
    "Lockstep adds the step's id to the answer before validating it, so the schema must accept it.",
  ),
  "SCHEMA-STEP-ID-OPEN": warning(
    "stepId not fixed",
    "A const makes the model name the step it answers for; the other schemas of this flow have one.",
  ),
  "SCHEMA-UNIQUE": warning(
    "uniqueItems without maxItems",
    "uniqueItems compares every pair of objects, so a long list would take minutes to validate.",
  ),
} satisfies Codes;

/** One finding for each cause, with all the steps it stops. */
function checkSchemas(loaded: Registered, tell: Tell): void {
  const unresolved = [...loaded.graph.steps.values()].flatMap(({ id, answer }) =>
    answer.kind === "object" && answer.schema.kind === "unresolved" ? [{ id, ...answer.schema }] : [],
  );
  const causes = [...Map.groupBy(unresolved, ({ why }) => why)].map(([why, all]) => ({
    code: all[0]!.code as Code,
    why,
    steps: all.map(({ id }) => id),
  }));
  const broken = [...loaded.schemaFiles.values()].filter((read) => read.kind === "broken");
  for (const { code, why, steps } of causes) {
    // The file that cannot be read is reported once, where it is broken.
    if (broken.some(({ document: { file } }) => why.startsWith(`${file} is not valid JSON at`))) continue;
    const live = steps.find((id) => loaded.reach?.steps.has(id)) ?? steps[0]!;
    const others = steps.length === 1 ? "" : ` (and of ${steps.length - 1} more)`;
    tell({
      code,
      ...atSchema(loaded, live),
      steps,
      message: `The schema of the step "${live}"${others} cannot be resolved: ${why}.`,
      fix: SCHEMA_FIX[code] ?? "Name a schema that exists.",
    });
  }
  for (const [file, read] of loaded.schemaFiles) {
    if (read.kind === "read") for (const finding of repeatedKeys(read.document)) tell(finding);
    if (read.kind !== "broken") continue;
    const steps = causes.filter(({ why }) => why.includes(file)).flatMap((cause) => cause.steps);
    tell({ ...brokenJson(read.document, read.what), steps });
  }
}

/** What stands in the schemas themselves, each schema once. */
function checkAnswers(loaded: Registered, tell: Tell): void {
  const answers = [...loaded.graph.steps.values()].flatMap(({ id, answer }) => {
    const schema = answerSchema({ answer });
    if (schema === true) return [];
    const correct = answer.kind === "object" ? answer.correct : undefined;
    return [{ id, schema, correct, words: correct && fieldWords(schema, [correct.field]) }];
  });
  const example = answers.find(({ words }) => words)?.id;
  const seen = new Set<JsonSchema>();
  for (const { id, schema, correct, words } of answers) {
    if (correct !== undefined && words && !words.includes(correct.value)) {
      tell({
        code: "SCHEMA-STEP-ID",
        ...atName(loaded, id, correct.field, words),
        message: `The schema of the step "${id}" accepts only ${listValues(words)} as ${correct.field}, so it rejects every answer of this step.`,
        fix: `Set the const of ${correct.field} to "${id}", or give the step a schema of its own.`,
      });
    } else if (correct !== undefined && words === null && example !== undefined) {
      const what = fieldSchema(schema, [correct.field]) === undefined ? "has no" : "does not fix its";
      tell({
        code: "SCHEMA-STEP-ID-OPEN",
        ...atSchema(loaded, id),
        message: `The schema of the step "${id}" ${what} ${correct.field}, as that of "${example}" does.`,
        fix: `Add "${correct.field}": { "const": "${id}" } to the properties of the schema.`,
      });
    }
    if (seen.has(schema)) continue;
    seen.add(schema);
    const path = quadratic(schema);
    if (path === null) continue;
    tell({
      code: "SCHEMA-UNIQUE",
      ...atSchema(loaded, id, ...path),
      message: `The schema of the step "${id}" has uniqueItems without maxItems at ${pointerOf(path) || "its top"}.`,
      fix: "Add maxItems beside it.",
    });
  }
}

const SCALARS: ReadonlySet<Json> = new Set(["string", "number", "integer", "boolean", "null"]);

/** Where a list of any length has to be compared each with each; scalars are not. */
function quadratic(schema: Json): Path | null {
  if (typeof schema !== "object" || schema === null) return null;
  if (isObject(schema) && own(schema, "uniqueItems") === true && !Object.hasOwn(schema, "maxItems")) {
    const items = own(schema, "items");
    const type = isObject(items) ? own(items, "type") : undefined;
    const types: readonly Json[] = Array.isArray(type) ? type : [type ?? "any"];
    if (!types.every((one) => SCALARS.has(one))) return [];
  }
  // Not `for in`: schemas have many shapes, and V8 would throw compiled code away at every other one.
  const members = Object.values(schema as JsonSchema);
  for (let index = 0; index < members.length; index += 1) {
    const member = members[index]!;
    const found = typeof member === "object" ? quadratic(member) : null;
    if (found !== null) return [Object.keys(schema)[index]!, ...found];
  }
  return null;
}

const SCHEMA_FIX: { readonly [code: string]: string } = {
  FAILED_SCHEMA_RESOLUTION: "Create the schema file, or correct outputSchemaRef.file.",
  SCHEMA_POINTER_ERROR: "Add the schema to the file, or correct the name or pointer.",
  SCHEMA_CIRCULAR_REFERENCE: "Remove the circular $ref.",
  MALFORMED_SCHEMA_IDENTIFIER: 'Write a bare name, or a pointer such as "#/definitions/name".',
};
