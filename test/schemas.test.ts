/** The published JSON Schemas: valid draft-07, and true to the files that we ship. */
import { Ajv } from "ajv";
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { initFiles } from "../src/cli/commands/init-files.ts";
import { parseScript } from "../src/backends/scripted/script.ts";
import { readConfig } from "../src/run/world/config.ts";
import { projectWith } from "./run/project.ts";

const root = new URL("../", import.meta.url).pathname;
const read = (file: string) => readFileSync(root + file, "utf8");
const ajv = new Ajv({ strict: true, allowUnionTypes: true });
const schemas = Object.fromEntries(
  ["agent", "config", "steps_registry", "script", "stage", "machine", "tests"].map((name) => {
    const schema = JSON.parse(read(`schemas/${name}.schema.json`)) as object;
    return [name, ajv.compile(schema)];
  }),
);

function fits(name: string, value: unknown): void {
  const validate = schemas[name]!;
  assert.equal(validate(value), true, JSON.stringify(validate.errors));
}

test("the examples fit the schemas", () => {
  const examples = globSync("examples/*/.agent/*/agent.json", { cwd: root });
  assert.ok(examples.length > 0);
  for (const file of examples) fits("agent", JSON.parse(read(file)));
  for (const file of globSync("examples/*/script.yaml", { cwd: root })) fits("script", parse(read(file)));
});

test("what init writes fits the schemas, and points at them", () => {
  const files = initFiles("notes");
  for (const [file, name] of [
    ["agent.json", "agent"],
    ["steps_registry.json", "steps_registry"],
  ] as const) {
    const value = JSON.parse(files[file]!) as { $schema: string };
    assert.equal(value.$schema, `../../node_modules/lockstep/schemas/${name}.schema.json`);
    fits(name, value);
  }
  fits("script", parse(files["script.yaml"]!));
  fits("tests", parse(files["tests/first.yaml"]!));
  fits("tests", parse(initFiles("notes", undefined, "stages")["tests/first.yaml"]!));
});

test("a stage file and a machine fit the schemas", () => {
  const front = (text: string) => parse(text.split(/^---$/m)[1]!) as object;
  const plan = front(read("test/fixtures/documents/004-plan.md"));
  fits("stage", plan);
  for (const next of [
    "end",
    { parallel: ["a", "b"], join: "c", policy: "independent" },
    { switch: "parsed.ok", cases: { true: "a", default: "end" } },
    { execution: "parallel", nextStages: ["a", "b", "c"], join: "c" },
  ]) {
    fits("stage", {
      ...plan,
      next,
      assert: ["t"],
      gate: "t",
      onFail: "a",
      output: { x: "parsed.x" },
      owner: "me",
    });
  }
  assert.equal(schemas.stage!({ ...plan, turnCap: 0 }), false);
  assert.equal(schemas.stage!({ ...plan, next: { parallel: "a" } }), false);
  assert.equal(schemas.stage!({ ...plan, name: undefined }), false);
  const check = { type: "command", command: "npm test", successWhen: "exitCode:0" };
  fits("machine", {
    id: "x",
    entry: "plan",
    inputs: {},
    checks: { t: check },
    limits: { visits: 1 },
    joinRule: "declared",
  });
  assert.equal(schemas.machine!({ entri: "plan" }), false);
});

test("a misspelled key, a wrong word and a missing one are refused", () => {
  const { agent, steps_registry, script } = schemas;
  const good = JSON.parse(initFiles("notes")["agent.json"]!) as object;
  assert.equal(agent!({ ...good, nmae: 1 }), false);
  assert.equal(agent!({ ...good, name: "Not A Name" }), false);
  assert.equal(steps_registry!({ agentId: "a", version: "1.0.0", c1: "steps" }), false);
  assert.equal(script!({ replies: [{ error: { kind: "sulking" } }] }), false);
});

test("the script schema and the reader agree on what a reply may hold", async () => {
  const reply = {
    step: "a",
    saw: ["x", "re:y"],
    unseen: "z",
    text: "t",
    output: {},
    calls: [{ name: "Read", input: {}, id: "1" }],
    error: { kind: "rate-limit", message: "m", status: 429, retryAfterMs: 1 },
  };
  fits("script", { replies: [reply] });
  assert.deepEqual(
    Object.keys((await parseScript(JSON.stringify({ replies: [reply] }), "s"))[0]!),
    Object.keys(reply),
  );
  await assert.rejects(parseScript(JSON.stringify({ replies: [{ ...reply, mood: 1 }] }), "s"));
  assert.equal(schemas.script!({ replies: [{ ...reply, mood: 1 }] }), false);
});

test("the config.json of the docs fits its schema, is read, and says the same of mistakes", () => {
  const [, example = ""] = /```json\n([\s\S]+?)```/.exec(read("docs/models.md")) ?? [];
  const said = JSON.parse(example) as { models: { router: object } };
  const reads = (config: object) => {
    const folder = projectWith({ "lockstep/config.json": JSON.stringify(config) });
    return readConfig({ XDG_CONFIG_HOME: folder });
  };
  fits("config", said);
  assert.equal(Object.keys(reads(said).models).length, Object.keys(said.models).length);
  const router = (more: object) => ({ models: { router: { ...said.models.router, ...more } } });
  const wrong = [
    { model: {} },
    { providers: { open: {} } },
    { sandbox: "maybe" },
    { acp: {} },
    { acp: { command: "x", timeoutMs: 1 } },
    { command: { command: "x", timeoutMs: 0 } },
    { prices: { "a/b": { input: 1 } } },
    { limits: { turns: 0 } },
    router({ provider: "open" }),
    router({ model: "" }),
    router({ baseUrl: "localhost:1" }),
    router({ baseURL: "http://x" }),
    router({ apiKeyEnv: "sk-1" }),
    router({ timeoutMs: 0 }),
    router({ toolCalling: "no" }),
    router({ stream: 1 }),
    router({ temperature: -1 }),
    router({ reasoningEffort: "much" }),
    router({ headers: { a: 1 } }),
    router({ extraBody: [] }),
  ];
  for (const config of wrong) {
    assert.equal(schemas.config!(config), false, JSON.stringify(config));
    assert.throws(() => reads(config), { code: "CONFIG_INVALID" }, JSON.stringify(config));
  }
});
