/** Requests that act, and are refused: bodies that are not what a route takes, records from elsewhere, and a studio that only looks. */
import assert from "node:assert/strict";
import { cpSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Refusal } from "../../src/studio/wire.ts";
import type { StartedDocument } from "../../src/studio/wire-acts.ts";
import type { AgentDocument, CoverageDocument } from "../../src/studio/wire-agents.ts";
import { createWorld, replies, script, writeAgent, type World } from "../cli/world.ts";
import { openIn } from "./studio-client.ts";

function writeNotes(world: World): void {
  writeAgent(world, "notes");
  world.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
}

async function ran(world: World): Promise<string> {
  const done = await world.lockstep(["run", "notes", "--topic=t", "--script=all.json", "--json"]);
  return (JSON.parse(done.stdout) as { readonly run: string }).run;
}

/** A run that waits for a permission, exported and imported as `asking`. Gives the id of its question. */
async function importAsking(world: World): Promise<string> {
  writeAgent(world, "asking", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      steps["initial.note"]!.permissionMode = "default";
    },
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
  });
  const calls = [{ name: "Write", input: { file_path: "made.txt", content: "x" } }];
  world.write("asking.json", script({ calls }));
  const line = ["run", "asking", "--topic=t", "--script=asking.json", "--on-permission=halt", "--json"];
  const { stdout } = await world.lockstep(line);
  const { run, questions } = JSON.parse(stdout) as {
    readonly run: string;
    readonly questions: readonly { readonly id: string }[];
  };
  await world.lockstep(["export", run, "--out=asking-run.json"]);
  const imported = await world.lockstep(["import", "asking-run.json", "--as=asking"]);
  assert.equal(imported.code, 0, imported.stderr);
  return questions[0]!.id;
}

/** Each is refused with 400, by the name of its member. */
const BODIES: readonly [path: string, body: object, field: string][] = [
  ["runs", {}, "agent"],
  ["runs", { agent: 3 }, "agent"],
  ["runs", { agent: ["notes"] }, "agent"],
  ["runs", { agent: "notes", args: "topic" }, "args"],
  ["runs", { agent: "notes", args: [] }, "args"],
  ["runs", { agent: "notes", args: null }, "args"],
  ["runs", JSON.parse('{"agent":"notes","args":{"__proto__":{"topic":"t"}}}') as object, "args"],
  ["runs", { agent: "notes", args: { constructor: "t" } }, "args"],
  ["runs", { agent: "notes", args: { topic: "t" }, cwd: "/" }, "cwd"],
  ["runs", { agent: "notes", args: { topic: "t" }, sandbox: "off" }, "sandbox"],
  ["runs", { agent: "notes", args: { topic: "t" }, trustJournal: true }, "trustJournal"],
  ["runs", { agent: "notes", args: { topic: "t" }, script: "/etc/passwd" }, "script"],
  ["runs", { agent: "notes", args: { topic: "t" }, script: "../secret" }, "script"],
  ["runs", { agent: "notes", args: { topic: "t" }, script: ".agent/../../x" }, "script"],
  ["runs", { agent: "notes", args: { topic: "t" }, script: "a\u0000b" }, "script"],
  ["runs", { agent: "notes", args: { topic: "t" }, script: "all.json", model: "x" }, "model"],
  ["runs", { agent: "notes", args: { topic: "t" }, model: 3 }, "model"],
  ["runs", { agent: "notes", args: { topic: "t" }, limits: { turns: "3" } }, "limits"],
  ["runs", { agent: "notes", args: { topic: "t" }, limits: { turns: -1 } }, "limits"],
  ["runs", { agent: "notes", args: { topic: "t" }, limits: { "a b": 1 } }, "limits"],
  ["runs", { agent: "notes", args: { topic: "t" }, worktree: "yes" }, "worktree"],
  ["runs", { agent: "notes", args: { topic: "t" }, onPermission: "ask" }, "onPermission"],
  ["runs", { agent: "notes", args: { topic: "t" }, trust: "all" }, "trust"],
  ["runs", { agent: "notes", args: { topic: "[redacted]" } }, "topic"],
  ["runs", { agent: "notes", args: { topic: "t" }, input: "with [redacted:anthropic]" }, "input"],
  ["runs/RUN/fork", { at: "closure.note@1", output: { a: ["[redacted]"] } }, "output"],
  ["runs/RUN/part", { at: "closure.note@1", handoff: { a: { b: "[redacted]" } } }, "handoff"],
  ["runs/RUN/judge", { at: "closure.note@1", prompts: { "closure.note": "[redacted]" } }, "prompts"],
  ["runs/RUN/pause", { force: true }, "force"],
  ["runs/RUN/stop", { force: true }, "force"],
  ["runs/RUN/resume", { adopt: "yes" }, "adopt"],
  ["runs/RUN/resume", { takeOver: true }, "takeOver"],
  ["runs/RUN/resume", { trust: "x" }, "trust"],
  ["runs/RUN/fork", {}, "at"],
  ["runs/RUN/fork", { at: "closure.note@1", output: 3 }, "output"],
  ["runs/RUN/fork", { at: "closure.note@1", handoff: { a: 1 } }, "handoff"],
  ["runs/RUN/fork", { at: "closure.note@1", prompts: { a: {} } }, "prompts"],
  ["runs/RUN/fork", { at: "closure.note@1", models: [] }, "models"],
  ["runs/RUN/judge", { at: 1 }, "at"],
  ["runs/RUN/part", { at: null }, "at"],
  ["runs/RUN/questions/q1", {}, "answer"],
  ["runs/RUN/questions/q1", { answer: true }, "answer"],
  ["runs/RUN/questions/q1", { answer: "allow", resume: 1 }, "resume"],
  ["agents/notes/arguments", { args: 3 }, "args"],
  ["agents/notes/arguments", { agent: "other", args: {} }, "agent"],
];

describe("refused actions", { concurrency: 2 }, () => {
  test("a body that is not what its route takes is refused by the member's name, and changes nothing", async () => {
    using world = createWorld();
    writeNotes(world);
    const run = await ran(world);
    const studio = await openIn(world);
    for (const [path, body, field] of BODIES) {
      const refused = await studio.post<Refusal>(path.replace("RUN", run), body);
      assert.deepEqual(
        [refused.status, refused.document.field],
        [400, field],
        `${path} ${JSON.stringify(body)} ${refused.text}`,
      );
    }
    const { total } = (await studio.get<{ readonly total: number }>("runs")).document;
    assert.equal(total, 1);
    await studio.close();
  });

  test("records that this user did not make are looked at, and not acted on", async () => {
    using world = createWorld();
    writeNotes(world);
    const run = await ran(world);
    using clone = createWorld();
    for (const folder of [".agent", ".lockstep", "all.json"])
      cpSync(join(world.root, folder), join(clone.root, folder), { recursive: true });
    const studio = await openIn(clone);
    assert.equal((await studio.get(`runs/${run}`)).status, 200);
    const before = readdirSync(join(clone.root, ".lockstep")).toSorted();
    for (const [path, body] of [
      [`runs/${run}/pause`, {}],
      [`runs/${run}/stop`, {}],
      [`runs/${run}/part`, { at: "closure.note@1" }],
      [`runs/${run}/fork`, { at: "closure.note@1" }],
      ["runs", { agent: "notes", args: { topic: "t" }, script: "all.json" }],
    ] as const) {
      const refused = await studio.post<Refusal>(path, body);
      assert.deepEqual(
        [refused.status, refused.document.code],
        [409, "STATE_FOREIGN"],
        `${path} ${refused.text}`,
      );
    }
    const after = readdirSync(join(clone.root, ".lockstep"));
    assert.deepEqual(
      after.filter((name) => !/-(?:wal|shm)$/.test(name)).toSorted(),
      before.filter((name) => !/-(?:wal|shm)$/.test(name)),
    );
    await studio.close();
  });

  test("a run that came as a file is forked only to rest: going on with it is refused", async () => {
    using world = createWorld();
    writeNotes(world);
    const run = await ran(world);
    await world.lockstep(["export", run, "--out=run.json"]);
    await world.lockstep(["import", "run.json", "--as=foreign"]);
    const question = await importAsking(world);
    const studio = await openIn(world);
    const forked = await studio.post<StartedDocument>("runs/foreign/fork", { at: "closure.note@1" });
    assert.deepEqual([forked.status, forked.document.refusal?.code], [202, "STATE_FOREIGN"], forked.text);
    const resumed = await studio.post<Refusal>(`runs/${forked.document.run}/resume`);
    assert.deepEqual([resumed.status, resumed.document.code], [409, "STATE_FOREIGN"], resumed.text);
    const answered = await studio.post<Refusal>(`runs/asking/questions/${question}`, { answer: "allow" });
    assert.deepEqual([answered.status, answered.document.code], [409, "STATE_FOREIGN"], answered.text);
    assert.ok(!existsSync(join(world.root, ".lockstep/answers/asking")));
    await studio.close();
  });

  test("a studio that only looks has no route that acts, asks for no trust, and starts nothing", async () => {
    using world = createWorld();
    writeNotes(world);
    const studio = await openIn(world, ["--read-only"]);
    for (const [path] of BODIES) {
      const refused = await studio.post<Refusal>(path.replace("RUN", "r1"), {});
      assert.ok([403, 404, 405].includes(refused.status), `${path} ${refused.text}`);
    }
    assert.equal((await studio.get<AgentDocument>("agents/notes")).document.trust, null);
    const measured = await studio.get<Refusal>("agents/notes/coverage");
    assert.deepEqual([measured.status, measured.document.code], [409, "READ_ONLY"]);
    assert.ok(!existsSync(join(world.root, ".lockstep")));
    await studio.close();
  });

  test("what an agent's tests cover, by the edges of its outline", async () => {
    using world = createWorld();
    assert.equal((await world.lockstep(["init", "hello"])).code, 0);
    const studio = await openIn(world);
    const { document } = await studio.get<CoverageDocument>("agents/hello/coverage");
    const { outline } = (await studio.get<AgentDocument>("agents/hello")).document;
    const covered = outline!.edges.flatMap(({ from, label }, place) =>
      (document.edges[place] ?? 0) > 0 ? [`${from} ${label}`] : [],
    );
    assert.ok(covered.includes("initial.note next"), covered.join());
    assert.ok(document.steps["closure.note"]! > 0 && document.totals.steps.covered === 3);
    world.write(".agent/hello/tests/broken.yaml", "tests: 3\n");
    const broken = await studio.get<Refusal>("agents/hello/coverage");
    assert.deepEqual([broken.status, broken.document.code], [409, "TESTS_INVALID"], broken.text);
    await studio.close();
  });
});
