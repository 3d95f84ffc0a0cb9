import assert from "node:assert/strict";
import { test } from "node:test";
import { applyFixes } from "../../src/load/fix.ts";
import { filesOf, load, tree, type Changes, type Tree } from "./world.ts";

/** The files once everything that has one right answer was mended. */
async function mended(files: Tree): Promise<{ readonly files: Tree; readonly codes: readonly string[] }> {
  const { texts, changes } = await applyFixes(filesOf(files), (now) => {
    const seen: { [file: string]: string } = {};
    for (const file of Object.keys(files)) {
      const read = now.read(file);
      if (read.kind === "text") seen[file] = read.text;
    }
    return Promise.resolve(load(seen).problems);
  });
  return { files: { ...files, ...Object.fromEntries(texts) }, codes: changes.map(({ code }) => code) };
}

const S = "registry /steps/initial.issue";
const C = "registry /steps/continuation.issue";
const ENUM = "schema /initial.issue/properties/next_action/properties/action/enum";

/** What is wrong, and by what it is mended; the good agent is what comes out. */
const ROWS: readonly [string, Changes, readonly string[]][] = [
  ["stepId differs from its key", { [`${S}/stepId`]: "initial.other" }, ["SR-VALID-004"]],
  ["a misspelled target", { [`${C}/transitions/handoff/target`]: "closure.isue" }, ["SR-TRANS-006"]],
  ["a misspelled entry", { "registry /entryStepMapping/detect:graph": "inital.issue" }, ["SR-ENTRY-003"]],
  ["a misspelled intent", { [`${S}/structuredGate/allowedIntents/0`]: "nxet" }, ["SR-VALID-001"]],
  ["an enum that lacks an intent", { [ENUM]: ["next"] }, ["SR-VALID-003"]],
  ["an enum with one too many", { [ENUM]: ["next", "repeat", "handoff"] }, ["SR-VALID-003"]],
  [
    "allowedIntents that lag behind",
    { [`${C}/structuredGate/allowedIntents`]: ["next", "repeat"] },
    ["SR-VALID-003"],
  ],
  ["repeat without a rule", { [`${S}/transitions/repeat`]: undefined }, ["TRANS-REPEAT"]],
  ["an undeclared variable", { [`${C}/uvVariables`]: ["issue", "iteration"] }, ["UV-UNDECLARED"]],
  ["a misspelled key", { [`${S}/uvVariables`]: undefined, [`${S}/uvVariabels`]: ["issue"] }, ["UNKNOWN-KEY"]],
  ["a former name", { "agent /runner/verdict/type": "stepMachine" }, ["OLD-NAME"]],
  [
    "a misspelled validator",
    { "registry /validationSteps/closure.issue/validationConditions": [{ validator: "git-clan" }] },
    ["CHECK-UNKNOWN"],
  ],
  [
    "one mistake behind the other",
    { [`${S}/structuredGate/allowedIntents/0`]: "nxt", [ENUM]: ["repeat"] },
    ["SR-VALID-001", "SR-VALID-003"],
  ],
];

for (const [name, changes, codes] of ROWS) {
  test(`mended: ${name}`, async () => {
    const result = await mended(tree(changes));
    assert.deepEqual(result.codes, codes);
    assert.deepEqual(load(result.files).problems, []);
    assert.deepEqual((await mended(result.files)).codes, []);
    assert.deepEqual(parsed(result.files), parsed(tree()));
  });
}

function parsed(files: Tree): object {
  return Object.fromEntries(
    Object.entries(files).map(([file, text]) => [file, file.endsWith(".json") ? JSON.parse(text) : text]),
  );
}

/** More than one answer is right, so none is taken. */
const LEFT: readonly [string, Changes][] = [
  [
    "two names that are as near",
    {
      [`${S}/transitions/next/target`]: "continuation.issu",
      "registry /steps/continuation.issue2": {
        stepId: "continuation.issue2",
        c2: "continuation",
        c3: "issue",
      },
      "registry /steps/continuation.issu2": { stepId: "continuation.issu2", c2: "continuation", c3: "issue" },
    },
  ],
  [
    "enum, intents and rules all differ",
    {
      [ENUM]: ["repeat"],
      [`${S}/transitions/next`]: undefined,
      [`${S}/transitions/handoff`]: { target: "closure.issue" },
    },
  ],
  ["a name that is far", { [`${S}/transitions/next/target`]: "elsewhere" }],
];

for (const [name, changes] of LEFT) {
  test(`left alone: ${name}`, async () => {
    const files = tree(changes);
    const result = await mended(files);
    assert.notDeepEqual(load(files).problems, []);
    assert.deepEqual(
      result.codes.filter((code) => code.startsWith("SR-")),
      [],
    );
  });
}

test("an enum that another step shares is left alone when that step allows something else", async () => {
  const shared = {
    [`${C}/outputSchemaRef/schema`]: "initial.issue",
    "schema /initial.issue/properties/summary": { type: "string" },
  };
  const { codes } = await mended(tree(shared));
  assert.deepEqual(codes, []);
});

test("an enum behind $ref and allOf is mended where it is written", async () => {
  const files = tree({
    "schema /definitions/action": { enum: ["next"] },
    "schema /definitions/base/properties/next_action": {
      type: "object",
      required: ["action"],
      properties: { action: { $ref: "#/definitions/action" } },
    },
    "schema /initial.issue/properties/next_action": undefined,
  });
  const result = await mended(files);
  assert.deepEqual(result.codes, ["SR-VALID-003"]);
  assert.deepEqual(load(result.files).problems, []);
  const schema = result.files[".agent/iterator/schemas/issue.schema.json"]!;
  assert.match(schema, /"action": \{\s+"enum": \[\s+"next",\s+"repeat"\s+\]/);
});

test("a byte order mark stays", async () => {
  const good = tree({ [`${S}/stepId`]: "x" });
  const file = ".agent/iterator/steps_registry.json";
  const result = await mended({ ...good, [file]: `\uFEFF${good[file]}` });
  assert.ok(result.files[file]!.startsWith("\uFEFF{"));
  assert.deepEqual(result.codes, ["SR-VALID-004"]);
});
