/** A migrated agent takes the same way as before, under the same script. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { migrateAgent } from "../../src/load/migrate.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { check, createMemoryJournal, load, run, whatIf, type ScriptReply } from "../../src/run/index.ts";
import { filesOf, tree } from "../load/world.ts";
import { projectWith } from "./project.ts";

const fixture = (name: string) =>
  readFileSync(new URL(`../fixtures/documents/${name}`, import.meta.url), "utf8");

const flat = {
  name: "old",
  displayName: "Old",
  description: "An agent of an earlier version",
  behavior: {
    systemPromptPath: "prompts/system.md",
    completionType: "stepMachine",
    completionConfig: { maxIterations: 30 },
    allowedTools: ["Read"],
    permissionMode: "acceptEdits",
  },
  prompts: { registry: "steps_registry.json", fallbackDir: "prompts/" },
  logging: { directory: "tmp/logs", format: "jsonl" },
};

/** Document 002's example with the step it forgets, its schemas and its prompts. */
function complete(): { readonly [path: string]: string } {
  const gate = (intents: readonly string[], more: object = {}) => ({
    structuredGate: {
      allowedIntents: intents,
      intentField: "next_action.action",
      fallbackIntent: "repeat",
      ...more,
    },
  });
  const step = (id: string, intents: readonly string[], transitions: object) => {
    const [c2, c3] = id.split(".");
    const outputSchemaRef = { file: "issue.schema.json", schema: `#/definitions/${id}` };
    return {
      stepId: id,
      name: id,
      c2,
      c3,
      edition: "default",
      outputSchemaRef,
      ...gate(intents),
      transitions,
    };
  };
  const schema = (id: string) => ({
    type: "object",
    required: ["stepId", "next_action"],
    properties: {
      stepId: { const: id },
      next_action: {
        type: "object",
        required: ["action"],
        properties: {
          action: { type: "string", enum: ["next", "repeat", "complete", "continue", "escalate"] },
        },
      },
    },
  });
  const ids = ["initial.issue", "continuation.issue", "complete.issue"];
  const registry = {
    agentId: "old",
    version: "1.0.0",
    c1: "steps",
    entryStepMapping: { stepMachine: "initial.issue" },
    steps: {
      "initial.issue": step("initial.issue", ["next", "repeat", "complete"], {
        next: { target: "continuation.issue" },
        repeat: { target: "initial.issue" },
        complete: { target: "complete.issue" },
      }),
      "continuation.issue": step("continuation.issue", ["next", "repeat", "complete"], {
        next: { target: "continuation.issue" },
        repeat: { target: "continuation.issue" },
        complete: { target: "complete.issue" },
      }),
      "complete.issue": step("complete.issue", ["complete", "repeat"], {
        complete: { target: null },
        repeat: { target: "continuation.issue" },
      }),
    },
  };
  const files: { [path: string]: string } = {
    ".agent/old/agent.json": JSON.stringify(flat),
    ".agent/old/steps_registry.json": JSON.stringify(registry),
    ".agent/old/schemas/issue.schema.json": JSON.stringify({
      definitions: Object.fromEntries(ids.map((id) => [id, schema(id)])),
    }),
    ".agent/old/prompts/system.md": "You are {uv-agent_name}.",
  };
  for (const id of ids) files[`.agent/old/prompts/steps/${id.replace(".", "/")}/f_default.md`] = `Do ${id}.`;
  return files;
}

const say = (step: string, action: string): ScriptReply => ({
  step,
  output: { stepId: step, next_action: { action } },
});
const ways: readonly (readonly ScriptReply[])[] = [
  [say("initial.issue", "next"), say("continuation.issue", "complete"), say("complete.issue", "complete")],
  [
    say("initial.issue", "complete"),
    say("complete.issue", "repeat"),
    say("continuation.issue", "continue"),
    say("continuation.issue", "complete"),
    say("complete.issue", "complete"),
  ],
  [say("initial.issue", "next"), say("continuation.issue", "escalate")],
  [say("initial.issue", "next"), say("continuation.issue", "abort")],
];

async function wayOf(cwd: string, agent: string, script: readonly ScriptReply[]) {
  const { outcome, exitCode, path, reason } = await run({
    agent,
    cwd,
    journal: createMemoryJournal(),
    script,
  });
  return { outcome, exitCode, steps: path.map(({ step, visit, to }) => `${step}@${visit} → ${to}`), reason };
}

function write(root: string, files: readonly { readonly path: string; readonly after: string }[]): void {
  for (const { path, after } of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), after);
  }
}

test("a flow with complete intents and a flat agent file becomes one of gates, and goes the same ways", async () => {
  const before = projectWith(complete());
  const after = projectWith(complete());
  const { changes, notes } = migrateAgent("old", createFiles(after));
  assert.deepEqual(
    changes.map(({ path }) => path),
    [".agent/old/agent.json", ".agent/old/steps_registry.json", ".agent/old/schemas/issue.schema.json"],
  );
  assert.equal(notes.length, 1);
  write(after, changes);
  const { problems } = await check("old", { cwd: after });
  assert.deepEqual(
    problems.filter(({ severity }) => severity === "error"),
    [],
  );
  assert.ok(
    problems.every(({ code }) => code !== "OLD-NAME"),
    "nothing old is left",
  );
  for (const script of ways) {
    const [old, now] = [await wayOf(before, "old", script), await wayOf(after, "old", script)];
    assert.deepEqual(now, { ...old, reason: now.reason }, `${old.reason}\n${now.reason}`);
  }
});

test("what was recorded before goes the same way afterwards: a label with a new name is no other way", async () => {
  const root = projectWith(complete());
  const journal = createMemoryJournal();
  for (const script of ways) await run({ agent: "old", cwd: root, journal, script });
  write(root, migrateAgent("old", createFiles(root)).changes);
  const migrated = await whatIf(journal, await load("old", { cwd: root }));
  assert.deepEqual(
    migrated.runs.map(({ kind }) => kind),
    ways.map(() => "same"),
    JSON.stringify(migrated.runs),
  );
  // Another word for another way is still one.
  const file = join(root, ".agent/old/steps_registry.json");
  writeFileSync(file, readFileSync(file, "utf8").replaceAll('"complete":"handoff"', '"complete":"next"'));
  assert.equal((await whatIf(journal, await load("old", { cwd: root }))).runs.at(-1)!.kind, "path");
});

test("what is migrated is in the current form: migrating again changes nothing", () => {
  const root = projectWith(complete());
  write(root, migrateAgent("old", createFiles(root)).changes);
  assert.deepEqual(migrateAgent("old", createFiles(root)).changes, []);
});

test("a current agent is left alone, whatever its formatting", () => {
  const root = projectWith(tree());
  assert.deepEqual(migrateAgent("iterator", createFiles(root)), { changes: [], notes: [] });
});

test("document 001's agent keeps its check prompts, gets a current agent file, and goes the same way", async () => {
  const prompts = [
    "steps/phase/analyze",
    "steps/phase/implement",
    "steps/phase/review",
    "checks/step/analyze",
    "checks/step/implement",
    "checks/completion/final",
  ];
  const files = {
    ".agent/code-improver/agent.json": fixture("001-agent.json"),
    ".agent/code-improver/steps_registry.json": fixture("001-steps-registry.json"),
    ".agent/code-improver/prompts/system.md": "You improve code.",
    ...Object.fromEntries(
      prompts.map((path) => [`.agent/code-improver/prompts/${path}/f_default.md`, `Do ${path} for {topic}.`]),
    ),
  };
  const before = projectWith(files);
  const after = projectWith(files);
  const { changes, notes } = migrateAgent("code-improver", createFiles(after));
  assert.deepEqual(
    changes.map(({ path }) => path),
    [".agent/code-improver/agent.json", ".agent/code-improver/steps_registry.json"],
  );
  assert.match(notes.join("\n"), /[Cc]heck prompts/);
  write(after, changes);
  const worked: ScriptReply = { text: "done" };
  const found = (result: string): ScriptReply => ({
    text: `\`\`\`json\n{ "result": "${result}", "message": "m" }\n\`\`\``,
  });
  const script = [
    worked,
    found("ng"),
    worked,
    found("ok"),
    worked,
    found("ng"),
    worked,
    found("ok"),
    worked,
    found("ok"),
    worked,
    found("ok"),
  ];
  const [old, now] = [
    await wayOf(before, "code-improver", script),
    await wayOf(after, "code-improver", script),
  ];
  assert.deepEqual(now, old);
  assert.equal(now.outcome, "completed", now.reason);
});

test("what stops a run is not among the intents that are written, as every step has it", () => {
  const steps = { "initial.x": { structuredGate: { allowedIntents: ["continue", "complete", "escalate"] } } };
  const registry = { agentId: "old", version: "1.0.0", dialect: "complete", steps };
  const files = filesOf({
    ".agent/old/agent.json": JSON.stringify(flat),
    ".agent/old/steps_registry.json": JSON.stringify(registry),
  });
  const written = migrateAgent("old", files).changes.find(({ path }) => path.endsWith("steps_registry.json"));
  const after = JSON.parse(written!.after) as { steps: typeof steps };
  const { allowedIntents } = after.steps["initial.x"].structuredGate;
  assert.ok(!allowedIntents.includes("abort") && allowedIntents.includes("handoff"), allowedIntents.join());
});
