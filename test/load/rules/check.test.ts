/** What the rules find: every row of `rows/` brings its finding, and no row that only resembles a mistake does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CODES } from "../../../src/load/codes.ts";
import { loadRegistry } from "../../../src/load/registry/registry-agent.ts";
import { findPrompt } from "../../../src/prompts/find.ts";
import { answerOf, filesOf, load, sha256, tree } from "../world.ts";
import * as agent from "./rows/agent.ts";
import * as answers from "./rows/answers.ts";
import * as checks from "./rows/checks.ts";
import * as prompts from "./rows/prompts.ts";
import * as routes from "./rows/routes.ts";
import * as tools from "./rows/tools.ts";
import * as verdicts from "./rows/verdicts.ts";
import { S, gate } from "./rows/row.ts";

const SUBJECTS = [agent, answers, checks, prompts, routes, tools, verdicts];
const FOUND = SUBJECTS.flatMap((rows) => rows.FOUND);
const NOT_FOUND = SUBJECTS.flatMap((rows) => rows.NOT_FOUND);

test("the good agent has no problems", () => {
  const { flow, problems } = load(tree());
  assert.deepEqual(problems, []);
  assert.notEqual(flow, null);
});

for (const row of FOUND) {
  test(`${row.code}: ${row.name}`, () => {
    const { problems } = load(tree(row.changes));
    const [file, pointer] = row.at.split(" ");
    const found = problems.find(
      (problem) => problem.code === row.code && problem.file.endsWith(file!) && problem.pointer === pointer,
    );
    assert.ok(
      found,
      `not found among:\n${problems.map((one) => `${one.code} ${one.file} ${one.pointer}: ${one.message}`).join("\n")}`,
    );
    assert.equal(found.severity, row.severity ?? CODES[row.code].severity);
    if (row.step !== undefined) assert.equal(found.step, row.step);
    if (row.says !== undefined) assert.match(found.message, row.says);
    if (row.witness !== undefined) assert.deepEqual(found.witness, row.witness);
    if (row.place !== undefined) assert.deepEqual([found.line, found.column], row.place);
    assert.ok(found.line >= 1 && found.column >= 1 && found.why !== "" && found.fix !== "");
  });
}

for (const { code, name, changes } of NOT_FOUND) {
  test(`no ${code}: ${name}`, () => {
    const found = load(tree(changes)).problems.filter((problem) => problem.code === code);
    assert.deepEqual(found, []);
  });
}

test("every code has a row, or is about values given at the start", () => {
  const covered = new Set<string>(FOUND.map((row) => row.code));
  const elsewhere = new Set([
    // Of other dialects: dialects.test.ts.
    "STEP-ID-FORM",
    "STEP-NO-WAY",
    "TRANS-EMPTY",
    "COMPLETE-TARGET",
    "COMPLETE-SCHEMA",
    "PARAM-UNKNOWN",
    "PARAM-MISSING",
    "PARAM-TYPE",
    "PARAM-RANGE",
    "PARAM-BUILT-IN",
    "PARAM-RESERVED",
    "BUDGET-TURNS",
    "AC-SERVICE-003",
    // Of the text of a file: keys.test.ts.
    "DUPLICATE-KEY",
    // What only a parser finds: modules.test.ts.
    "MODULE-SYNTAX",
    "MODULE-UNPARSED",
    "MODULE-IMPORT",
    "HOOK-UNKNOWN",
    // Of what the user's own settings say: compiled.test.ts.
    "MODEL-UNKNOWN",
  ]);
  // Of the files of flow tests: tests.test.ts, test-settings.test.ts, evals.test.ts.
  const isOfTests = (code: string) => /^(?:TEST|EVAL)-/.test(code);
  // Of stages: stages.test.ts.
  const isOfStages = (code: string) => /^(?:Stage[A-Z]|STAGE-|CompletionTool|InvalidParallel)/.test(code);
  const missing = Object.keys(CODES).filter(
    (code) => !covered.has(code) && !elsewhere.has(code) && !isOfStages(code) && !isOfTests(code),
  );
  assert.deepEqual(missing, []);
});

test("an agent.json that may not be read is AC-SERVICE-003", () => {
  assert.deepEqual(
    load({}, "../../etc").problems.map(({ code, file }) => [code, file]),
    [["AC-SERVICE-003", "../etc/agent.json"]],
  );
});

test("an error off the live path is a warning", () => {
  const changes = {
    "registry /steps/initial.other": {
      stepId: "initial.other",
      c2: "initial",
      c3: "other",
      structuredGate: gate(),
    },
  };
  const { problems } = load(tree(changes));
  assert.ok(problems.length > 0);
  assert.deepEqual(
    problems.filter((problem) => problem.severity === "error"),
    [],
  );
  assert.ok(
    problems.some((problem) => problem.code === "SR-GATE-SCHEMA" && problem.step === "initial.other"),
  );
  assert.ok(problems.some((problem) => problem.code === "SR-TRANS-003" && problem.step === "initial.other"));
});

test("without an entry every step counts as live", () => {
  const { problems } = load(
    tree({
      "registry /entryStepMapping": {},
      "prompts/steps/closure/issue/f_default.md": undefined,
      "agent /runner/flow/prompts/strict": true,
    }),
  );
  assert.equal(problems.find((problem) => problem.code === "PR-C3L-004")?.severity, "error");
});

test("steps that share a schema without a required intent are one finding", () => {
  const { problems } = load(
    tree({
      "schema /initial.issue": { $ref: "#/definitions/work" },
      "schema /continuation.issue": { $ref: "#/definitions/work" },
      "schema /definitions/work": { ...answerOf("next", "repeat", "handoff"), required: [] },
      [`registry ${S}/structuredGate`]: gate({ allowedIntents: ["next", "repeat", "handoff"] }),
      [`registry ${S}/transitions/handoff`]: { target: "closure.issue" },
    }),
  );
  assert.deepEqual(
    problems.map(({ code, file, pointer, step }) => [code, file.split("/").at(-1), pointer, step]),
    [["GATE-OPTIONAL", "issue.schema.json", "/definitions/work/properties/next_action", "initial.issue"]],
  );
});

test("a system prompt that is there and cannot be read is an error, named or not", () => {
  for (const path of ["prompts/system.md", undefined]) {
    const files = filesOf(tree({ "agent /runner/flow/systemPromptPath": path }));
    const why = "it has 30000000 bytes";
    const read: typeof files.read = (file) =>
      file.endsWith("prompts/system.md") ? { kind: "unreadable", why } : files.read(file);
    const world = {
      tools: { offered: [], known: new Set<string>(["Read", "Write", "Bash"]) },
      digest: sha256,
    };
    const { problems } = loadRegistry("iterator", { read }, (ref) => findPrompt({ read }, ref), world);
    assert.deepEqual(
      problems.map(({ code, severity, message }) => [code, severity, message.includes(why)]),
      [["PR-SYSTEM", "error", true]],
    );
  }
});

test("a misspelled tool is not put right by --fix: that would widen what a model may use", () => {
  const { problems } = load(tree({ "agent /runner/boundaries/allowedTools": ["Read", "bash"] }));
  assert.deepEqual(
    problems.map(({ code, mend }) => [code, mend]),
    [["TOOL-UNKNOWN", undefined]],
  );
});
