/** What holds of what the files of an agent, the user's settings and the line say. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Backend } from "../../../src/engine/ports.ts";
import type { Flow, Granted, Limits } from "../../../src/flow/flow.ts";
import { createMemoryJournal } from "../../../src/run/index.ts";
import { readConfig } from "../../../src/run/world/config.ts";
import { runLoaded } from "../../../src/run/open.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";

function home(t: TestContext, config: unknown): NodeJS.ProcessEnv {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-limits-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "lockstep"));
  writeFileSync(join(folder, "lockstep", "config.json"), JSON.stringify(config));
  return { XDG_CONFIG_HOME: folder };
}

const round = (limits: Limits): Flow =>
  sketchFlow({ a: { edges: { next: "a" } } }, { limits: { visits: 20, ...limits } });

const rows: readonly [name: string, files: Limits, user: Limits, line: Granted | undefined, asked: number][] =
  [
    ["the file, where nothing else is said", { turns: 4 }, {}, undefined, 4],
    ["the user's settings, where the file says nothing", {}, { turns: 3 }, undefined, 3],
    ["the user's settings, where the file asks for more", { turns: 9 }, { turns: 3 }, undefined, 3],
    ["the file, where it asks for less", { turns: 2 }, { turns: 3 }, undefined, 2],
    ["the line above both", { turns: 2 }, { turns: 3 }, { turns: 5 }, 5],
    ["the line, only where it says something", { turns: 2 }, { tokens: 99 }, { tokens: 9000 }, 2],
    ["a step's, beside the run's", { turns: 9 }, {}, { steps: { a: { turns: 6 } } }, 6],
  ];
for (const [name, files, user, line, asked] of rows) {
  test(`what holds: ${name}`, async (t) => {
    let count = 0;
    const backend: Backend = {
      spec: { id: "test", options: null },
      turn: () => {
        count += 1;
        const usage = { turns: 1, inputTokens: 1, outputTokens: 1, costUsd: null };
        const output = { next_action: { action: "next" } };
        return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
      },
    };
    const project = { root: "/", agentsDir: "/.agent", stateDir: "/.lockstep" };
    const result = await runLoaded(
      { agent: "sketch", project, flow: round(files), problems: [] },
      {
        journal: createMemoryJournal(),
        backend,
        env: home(t, { limits: user }),
        ...(line !== undefined && { spending: line }),
      },
    );
    assert.deepEqual([result.code, count], ["BUDGET_EXHAUSTED", asked], result.reason);
    const { limit } = result;
    const of = line?.steps === undefined ? "run" : "step";
    assert.deepEqual([limit?.of, limit?.name, limit?.most, limit?.used], [of, "turns", asked, asked]);
  });
}

const wrong: readonly [name: string, limits: unknown, says: RegExp][] = [
  ["no object", 5, /limits must be an object/],
  ["no such limit", { visits: 5 }, /limits: unknown key "visits"/],
  [
    "a word for what may be unchecked",
    { costUsd: 5, unmetered: "yes" },
    /limits\.unmetered must be true, or left out/,
  ],
  ["nothing", { turns: 0 }, /limits\.turns must be a whole number above 0/],
  ["no whole number", { tokens: 1.5 }, /limits\.tokens/],
  ["a soft limit above its limit", { turns: 5, soft: { turns: 6 } }, /limits\.soft: turns is 6, above/],
];
for (const [name, limits, says] of wrong) {
  test(`limits in the user's settings: ${name}`, (t) => {
    assert.throws(() => readConfig(home(t, { limits })), says);
  });
}
