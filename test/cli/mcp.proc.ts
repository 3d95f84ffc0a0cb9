/** Servers of tools as a user meets them: a run, what is told of it before, and what is left when it is stopped. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { alive } from "../alive.ts";
import { needs } from "../needs.ts";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "./world.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const { skip } = needs(
  existsSync(join(packages, "node_modules/@modelcontextprotocol/client/package.json")),
  "@modelcontextprotocol/client not installed",
);
const SERVER = readFileSync(new URL("../fixtures/mcp/server.mjs", import.meta.url), "utf8");
const env = { LOCKSTEP_PACKAGES: packages, LOCKSTEP_TRUST: "all" };

function project(...calls: readonly object[]): World {
  const world = createWorld();
  world.write("server.mjs", SERVER);
  world.write(
    "script.json",
    script(
      ...calls.map((call) => ({ step: "initial.note", calls: [call] })),
      replies.initial(),
      replies.continuation(),
      replies.closure(),
    ),
  );
  writeAgent(world, "notes", {
    agent: (agent) => {
      const runner = agent.runner as { [key: string]: unknown };
      runner.boundaries = { allowedTools: ["Read", "mcp__docs__*"], permissionMode: "acceptEdits" };
      runner.mcpServers = {
        docs: { command: process.execPath, args: ["server.mjs"], env: { MCP_LOG: "log.txt", A: "${TERM}" } },
      };
    },
  });
  return world;
}

const started = (world: World) =>
  readFileSync(join(world.root, "log.txt"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("started"));

const RUN = ["run", "notes", "--topic", "x", "--script", "script.json"];

describe("servers of tools", { skip }, () => {
  test("a run with them, and what was done is told afterwards", async () => {
    using world = project({ name: "mcp__docs__echo", input: { text: "hi" } });
    const around = { env: { ...env, TERM: "dumb" } };
    const refused = await world.lockstep(RUN, { env: { ...around.env, LOCKSTEP_TRUST: "" } });
    assert.equal(refused.code, 3);
    assert.match(refused.stdout + refused.stderr, /mcp docs: .*server\.mjs/);
    assert.equal(existsSync(join(world.root, "log.txt")), false);
    const ran = await world.lockstep(RUN, around);
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    assert.doesNotMatch(ran.stderr, /words that belong to nobody/);
    assert.match((await world.lockstep(["why", "@last", "initial.note"], around)).stdout, /heard: hi/);
    assert.deepEqual(alive(started(world)), []);
  });

  test("an interrupt leaves nothing of them", { timeout: 60_000 }, async () => {
    using world = project({ name: "mcp__docs__hang", input: {} });
    let isTold = false;
    const timer = setInterval(() => undefined, 1000);
    const ran = await world.lockstep([...RUN, "--verbose"], {
      env: { ...env, TERM: "dumb" },
      watch: (output, child) => {
        if (isTold || !/calls mcp__docs__hang/.test(output)) return;
        isTold = true;
        child.kill("SIGINT");
      },
    });
    clearInterval(timer);
    assert.equal(ran.code, 130, ran.stdout + ran.stderr);
    assert.equal(started(world).length, 1);
    assert.deepEqual(alive(started(world)), []);
  });
});

test("one that outlives kill -9 is ended before the run goes on", { skip }, async () => {
  using world = project({ name: "mcp__docs__hang", input: {} });
  world.write("server.mjs", `process.exit = () => undefined;\nsetInterval(() => {}, 1000);\n${SERVER}`);
  const flags = ["--sandbox", "off"];
  let isKilled = false;
  const killed = await world.lockstep([...RUN, "--verbose", ...flags], {
    env: { ...env, TERM: "dumb" },
    watch: (output, child) => {
      if (isKilled || !/calls mcp__docs__hang/.test(output)) return;
      isKilled = true;
      child.kill("SIGKILL");
    },
  });
  assert.equal(killed.code, null, killed.stderr);
  assert.equal(alive(started(world)).length, 1, "it goes on");
  world.write("server.mjs", SERVER.replace('case "fail":', 'case "fail": case "hang":'));
  const ran = await world.lockstep(["resume", "@last", ...flags, "--json"], {
    env: { ...env, TERM: "dumb" },
  });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /They were ended: \S+/);
  assert.deepEqual(alive(started(world).slice(0, 1)), []);
});

test("explain --boundary shows them, and doctor says when the package is missing", async () => {
  using world = project();
  const around = { env: { ...env, LOCKSTEP_PACKAGES: "/nowhere" } };
  const { stdout } = await world.lockstep(["explain", "notes", "--boundary"], around);
  assert.match(
    stdout,
    /servers +mcp__docs__\*: \S+ server\.mjs, is given TERM; for initial\.note, continuation\.note, closure\.note/,
  );
  const { servers } = onlyDocument(
    await world.lockstep(["explain", "notes", "initial.note", "--boundary", "--json"], around),
  ) as { servers: { name: string; steps: string[] }[] };
  assert.deepEqual(
    servers.map(({ name, steps }) => [name, steps]),
    [["docs", ["initial.note"]]],
  );
  const doctor = await world.lockstep(["doctor"], around);
  assert.equal(doctor.code, 0);
  assert.match(doctor.stdout, /warn +servers of notes .*@modelcontextprotocol\/client.* not installed/);
  assert.equal(existsSync(join(world.root, "log.txt")), false);
});
