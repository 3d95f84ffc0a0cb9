import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../../src/run/load.ts";
import { filesOf, tree, type Changes } from "./world.ts";
import { stageTree, type StageChanges } from "./stage-world.ts";

function textAt(text: string, line: number, column: number): string {
  return (text.split("\n")[line - 1] ?? "").slice(column - 1);
}

const SCHEMA = "schemas/issue.schema.json";
const A = "/initial.issue/properties/analysis/properties/approach";

/** What only a compiler finds, through the same door as `check`: one finding, where the schema is wrong. */
const REGISTRY: readonly (readonly [
  name: string,
  changes: Changes,
  at: string,
  step: string,
  says: RegExp,
])[] = [
  [
    "a keyword of the wrong type",
    { [`schema ${A}`]: { type: "string", minLength: "one" } },
    `${SCHEMA} ${A}/minLength`,
    "initial.issue",
    /"initial\.issue" is not a valid JSON Schema: minLength value must be/,
  ],
  [
    "an unknown type",
    { [`schema ${A}`]: { type: "strng" } },
    `${SCHEMA} ${A}/type`,
    "initial.issue",
    /type must be/,
  ],
  [
    "a broken pattern",
    { [`schema ${A}`]: { type: "string", pattern: "([" } },
    `${SCHEMA} ${A}/pattern`,
    "initial.issue",
    /pattern/,
  ],
  [
    "in a part that two steps share",
    {
      "schema /definitions/note": { type: "object", properties: { text: { maxLength: "9" } } },
      [`schema ${A}`]: { $ref: "#/definitions/note" },
      "schema /closure.issue/properties/note": { $ref: "#/definitions/note" },
    },
    `${SCHEMA} /definitions/note/properties/text/maxLength`,
    "initial.issue",
    /maxLength/,
  ],
  [
    "in another file",
    {
      [`schema ${A}`]: { $ref: "parts.json#/defs/a" },
      "schemas/parts.json": '{\n  "defs": { "a": {\n    "enum": "x" } }\n}',
    },
    "schemas/parts.json /defs/a/enum",
    "initial.issue",
    /enum/,
  ],
  [
    "a property that is called like a keyword",
    { [`schema ${A}`]: { type: "object", properties: { minLength: { type: "string", minLength: "x" } } } },
    `${SCHEMA} ${A}/properties/minLength/minLength`,
    "initial.issue",
    /minLength/,
  ],
];

for (const [name, changes, at, step, says] of REGISTRY) {
  test(`an invalid schema: ${name}`, async () => {
    const files = tree(changes);
    const { problems } = await load("iterator", { files: filesOf(files) });
    assert.deepEqual(
      problems.map((one) => `${one.code} ${one.file} ${one.pointer} ${one.step}`),
      [`FAILED_SCHEMA_RESOLUTION .agent/iterator/${at} ${step}`],
    );
    const [{ file, line, column, message, severity }] = problems as [(typeof problems)[0]];
    assert.equal(severity, "error");
    assert.match(message, says);
    const key = at.slice(at.lastIndexOf("/") + 1);
    assert.ok(textAt(files[file]!, line, column).startsWith(`"${key}"`));
  });
}

const STAGES: readonly (readonly [name: string, changes: StageChanges, found: string])[] = [
  [
    "completionSchema",
    { review: { completionSchema: { type: "object", properties: { a: { minLength: "one" } } } } },
    "StageCompletionSchemaInvalid .agent/release/stages/review.md /completionSchema/properties/a/minLength",
  ],
  [
    "beside a part that means nothing by itself",
    {
      review: {
        completionSchema: {
          type: "object",
          $defs: { t: { type: "string" } },
          properties: { a: { $ref: "#/$defs/t" }, b: { maxLength: "one" } },
        },
      },
    },
    "StageCompletionSchemaInvalid .agent/release/stages/review.md /completionSchema/properties/b/maxLength",
  ],
  [
    "inputsSchema",
    { build: { inputsSchema: { required: "x" } } },
    "StageInputsInvalid .agent/release/stages/build.md /inputsSchema/required",
  ],
];

for (const [name, changes, found] of STAGES) {
  test(`an invalid schema of a stage: ${name}`, async () => {
    const files = stageTree(changes);
    const { problems } = await load("release", { files: filesOf(files) });
    assert.deepEqual(
      problems.map((one) => `${one.code} ${one.file} ${one.pointer}`),
      [found],
    );
    const [{ file, line, column }] = problems as [(typeof problems)[0]];
    const key = found.slice(found.lastIndexOf("/") + 1);
    assert.ok(textAt(files[file]!, line, column).startsWith(key));
  });
}

test("a schema file that cannot be read is one finding, where it is broken", async () => {
  const files = tree({ "schemas/issue.schema.json": '{\n  "a": 1,\n}' });
  const { problems } = await load("iterator", { files: filesOf(files) });
  const errors = problems.filter(({ severity }) => severity === "error");
  assert.deepEqual(
    errors.map((one) => `${one.code} ${one.file}:${one.line}:${one.column}`),
    ["AC-SERVICE-002 .agent/iterator/schemas/issue.schema.json:3:1"],
  );
});

const MODELS: readonly (readonly [name: string, at: string, found: string | null])[] = [
  ["sonet", "agent.json /runner/flow/defaultModel", "sonnet"],
  ["Opus", "agent.json /runner/flow/defaultModel", "opus"],
  ["antropic/claude-x", "agent.json /runner/flow/defaultModel", "anthropic/claude-x"],
  ["hiaku", "steps_registry.json /steps/initial.issue/model", "haiku"],
  ["sonnet", "agent.json /runner/flow/defaultModel", null],
  ["anthropic/claude-x", "steps_registry.json /steps/initial.issue/model", null],
  // A coding agent, or settings elsewhere, may know it.
  ["our-own", "agent.json /runner/flow/defaultModel", null],
];

for (const [name, at, meant] of MODELS) {
  test(`the model "${name}" at ${at}`, async () => {
    const [file = "", pointer = ""] = at.split(" ");
    const document = file === "agent.json" ? "agent" : "registry";
    const { problems } = await load("iterator", {
      files: filesOf(tree({ [`${document} ${pointer}`]: name })),
    });
    assert.deepEqual(
      problems.map((one) => `${one.severity} ${one.code} ${one.file} ${one.pointer} ${one.message}`),
      meant === null
        ? []
        : [`warning MODEL-UNKNOWN .agent/iterator/${at} Unknown model "${name}". Did you mean "${meant}"?`],
    );
  });
}

test("the model of a machine is looked at too", async () => {
  const agent = '{\n  "runner": { "flow": {\n    "defaultModel": "sonet" } }\n}';
  const { problems } = await load("release", { files: filesOf(stageTree({ "agent.json": agent })) });
  assert.deepEqual(
    problems.map(({ code, file, line, column }) => `${code} ${file}:${line}:${column}`),
    ["MODEL-UNKNOWN .agent/release/agent.json:3:5"],
  );
});
