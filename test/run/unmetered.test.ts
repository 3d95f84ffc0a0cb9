/** Limits on tokens and cost where the model has no price, or its answers come without figures. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Granted } from "../../src/flow/flow.ts";
import {
  createMemoryJournal,
  fork,
  load,
  resume,
  run,
  runBatch,
  show,
  type Backend,
} from "../../src/run/index.ts";
import { modelServer, type Deed, type Seen } from "../backends/model-server.ts";
import { agentFiles, projectWith, stepTo } from "./project.ts";
import { machineFiles } from "./stage-project.ts";

const PRICED = { prices: { "openai-compatible/m": { input: 1, output: 2 } } };
const FREE = { prices: { "openai-compatible/m": { input: 0, output: 0 } } };
const NO_USAGE: Deed = { usage: { input: 0, output: 0 } };
const BELOW: Deed = { usage: { input: -1e9, output: 20 } };

function registry(runner: object, limits?: object): string {
  const more = limits === undefined ? {} : { more: { limits } };
  const steps = {
    "initial.t": stepTo("work", { next: "closure.t" }, more),
    "closure.t": stepTo("closure", { closing: null }),
  };
  return projectWith(agentFiles("t", steps, { runner }));
}

function stages(machine: object): string {
  const next = { a: { nextStages: [{ id: "b" }] }, b: {} };
  return projectWith(machineFiles({ stages: next, machine }));
}

/** A model on loopback, the user's settings that lead to it, and what is needed to run with them. */
async function world(config: object, deed: Deed = {}) {
  const server = await modelServer("openai-compatible", (seen: Seen) => {
    const isLast = JSON.stringify(seen.body).includes("Do closure.t.");
    const [stepId, action] = isLast ? ["closure.t", "closing"] : ["initial.t", "next"];
    return { output: { stepId, next_action: { action } }, ...deed };
  });
  const entry = { provider: "openai-compatible", model: "m", baseUrl: server.target.baseUrl };
  const settings = JSON.stringify({ models: { opus: entry }, ...config });
  const home = projectWith({ "lockstep/config.json": settings });
  const said: string[] = [];
  const around = {
    env: { XDG_CONFIG_HOME: home, LOCKSTEP_TRUST: "all" },
    journal: createMemoryJournal(),
    notify: (text: string) => void said.push(`${server.seen.length}: ${text}`),
  };
  return { server, around, said, home };
}

type Row = {
  readonly name: string;
  readonly config?: object;
  readonly deed?: Deed;
  readonly project: () => string;
  readonly line?: Granted;
  /** Requests that the model got, and how it ended. */
  readonly asked: number;
  readonly code: string | null;
  readonly says?: RegExp;
  readonly warns?: RegExp;
};

const plain = () => registry({});
const refused = { asked: 0, code: "LIMIT_UNMETERED" } as const;
const stopped = { asked: 1, code: "LIMIT_UNMETERED" } as const;
const done = { asked: 2, code: null } as const;

const rows: readonly Row[] = [
  // No price: known before the first call.
  {
    name: "a cost given on the line",
    project: plain,
    line: { costUsd: 5 },
    ...refused,
    says: /limit of \$5 /,
  },
  {
    name: "a cost in the agent's file",
    project: () => registry({ limits: { costUsd: 4 } }),
    ...refused,
    says: /\$4 /,
  },
  {
    name: "a cost in the user's settings",
    project: plain,
    config: { limits: { costUsd: 3 } },
    ...refused,
    says: /\$3 /,
  },
  {
    name: "a cost of one step",
    project: () => registry({}, { costUsd: 2 }),
    ...refused,
    says: /step "initial\.t"/,
  },
  { name: "a cost of one attempt", project: () => registry({}, { perAttempt: { costUsd: 1 } }), ...refused },
  {
    name: "a machine of stages",
    project: () => stages({ limits: { costUsd: 5 } }),
    ...refused,
    says: /step "a"/,
  },
  { name: "tokens, which are reported", project: plain, line: { tokens: 5000 }, ...done },
  { name: "turns and time", project: plain, line: { turns: 9, wallMs: 600_000 }, ...done },
  { name: "no limit", project: plain, ...done },
  { name: "a price of the user's own", project: plain, config: PRICED, line: { costUsd: 5 }, ...done },
  {
    name: "allowed on the line",
    project: plain,
    line: { costUsd: 5, unmetered: true },
    ...done,
    warns: /^The limit of \$5 was not enforced: answers came without their cost\.$/,
  },
  {
    name: "allowed in the user's settings",
    project: () => registry({}, { costUsd: 2 }),
    config: { limits: { unmetered: true } },
    ...done,
    warns: /^The limit of \$2 of step "initial\.t" was not enforced/,
  },
  // No usage: known from the first answer.
  {
    name: "no usage, tokens",
    project: plain,
    deed: NO_USAGE,
    line: { tokens: 10 },
    ...stopped,
    says: /10 tokens cannot/,
  },
  {
    name: "no usage, cost",
    project: plain,
    config: PRICED,
    deed: NO_USAGE,
    line: { costUsd: 5 },
    ...stopped,
  },
  { name: "no usage, one step", project: () => registry({}, { tokens: 9 }), deed: NO_USAGE, ...stopped },
  { name: "no usage, turns", project: plain, deed: NO_USAGE, line: { turns: 9 }, ...done },
  {
    name: "no usage, cost of a free model",
    project: plain,
    config: FREE,
    deed: NO_USAGE,
    line: { costUsd: 5 },
    ...done,
  },
  // Figures below 0 are not figures: they would lift every limit.
  { name: "negative input", project: plain, deed: BELOW, line: { tokens: 1000 }, ...stopped },
  {
    name: "negative output, cost",
    project: plain,
    config: PRICED,
    deed: { usage: { input: 100, output: -1e9 } },
    line: { costUsd: 5 },
    ...stopped,
  },
  {
    name: "negative cached input, cost",
    project: plain,
    config: PRICED,
    deed: { usage: { input: 100, output: 20, cacheRead: -1e9 } },
    line: { costUsd: 5 },
    ...stopped,
  },
  { name: "negative input, turns", project: plain, deed: BELOW, line: { turns: 9 }, ...done },
  {
    name: "no usage, allowed",
    project: plain,
    config: PRICED,
    deed: NO_USAGE,
    line: { tokens: 10, costUsd: 5, unmetered: true },
    ...done,
    warns: /^The limit of 10 tokens was not enforced: answers came without their number of tokens\.$/,
  },
];

for (const { name, config = {}, deed = {}, project, line, asked, code, says, warns } of rows) {
  test(`a limit that cannot be checked: ${name}`, async () => {
    const { server, around, said, home } = await world(config, deed);
    await using _ = server;
    const spending = line === undefined ? {} : { spending: line };
    const cwd = project();
    const agent = (await load("t", { cwd })).flow === null ? "m" : "t";
    const result = await run({ agent, cwd, ...around, ...spending });
    assert.deepEqual([result.code, server.seen.length], [code, asked], result.reason);
    assert.equal(result.exitCode, code === null ? 0 : 3);
    if (says !== undefined) assert.match(result.reason, says);
    const isRefused = asked === 0;
    assert.equal(result.run === null, isRefused);
    assert.equal((await around.journal.list()).length, isRefused ? 0 : 1);
    if (isRefused) {
      assert.match(result.reason, /the price of openai-compatible\/m is not known/);
      assert.ok(result.reason.includes(`${home}/lockstep/config.json`), result.reason);
      assert.match(result.reason, /--allow-unmetered/);
    }
    const about = result.warnings.filter((text) => text.includes("was not enforced"));
    if (code === null && warns === undefined) assert.deepEqual(about, []);
    if (warns !== undefined) assert.match(about[0] ?? "", warns);
    const isForeseen = warns !== undefined && config !== PRICED;
    assert.equal(said.length, isForeseen ? 1 : 0, said.join("\n"));
    if (isForeseen) assert.match(said[0]!, /^0: The limit of .* is not enforced: the price of /);
    if (result.run !== null) {
      const shown = await show(around.journal, result.run);
      assert.deepEqual(
        shown.warnings.filter((text) => text.includes("was not enforced")),
        about,
      );
    }
  });
}

test("a run that stopped for want of figures goes on once that is allowed, and is not stopped again", async () => {
  const { server, around } = await world(PRICED, NO_USAGE);
  await using _ = server;
  const cwd = plain();
  const begun = await run({ agent: "t", cwd, ...around, spending: { tokens: 10 } });
  assert.deepEqual([begun.code, begun.resumable], ["LIMIT_UNMETERED", true]);
  assert.deepEqual(begun.usage, {
    turns: 1,
    inputTokens: 0,
    outputTokens: 0,
    unknown: ["tokens", "costUsd"],
  });
  const id = begun.run!;
  const ended = await resume({ run: id, cwd, ...around, spending: { unmetered: true } });
  assert.ok(ended.success, ended.reason);
  assert.equal(server.seen.length, 2);
  assert.ok(ended.warnings.some((text) => text.startsWith("The limit of 10 tokens was not enforced")));
});

test("a run that stopped for want of figures goes on by itself where they come now, and else for one call", async () => {
  for (const [usage, code, asked] of [
    [{ input: 2, output: 1 }, null, 3],
    [{ input: 0, output: 0 }, "LIMIT_UNMETERED", 2],
  ] as const) {
    let count = 0;
    const first = { usage: { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: 0 } };
    const later = { usage: { turns: 1, inputTokens: usage.input, outputTokens: usage.output, costUsd: 0 } };
    const backend: Backend = {
      spec: { id: "mine", options: null },
      turn: ({ asker }) => {
        count += 1;
        const action = asker.step === "closure.t" ? "closing" : "next";
        const output = { stepId: asker.step, next_action: { action } };
        return Promise.resolve({
          kind: "reply",
          text: "",
          calls: [],
          output,
          ...(count === 1 ? first : later),
        });
      },
    };
    const steps = {
      "initial.t": stepTo("work", { next: "continuation.t" }),
      "continuation.t": stepTo("work", { next: "closure.t" }),
      "closure.t": stepTo("closure", { closing: null }),
    };
    const cwd = projectWith(agentFiles("t", steps));
    const around = { cwd, backend, journal: createMemoryJournal(), env: { LOCKSTEP_TRUST: "all" } };
    const begun = await run({ agent: "t", ...around, spending: { tokens: 100 } });
    assert.deepEqual([begun.code, count], ["LIMIT_UNMETERED", 1], begun.reason);
    const again = await resume({ run: begun.run!, ...around });
    assert.deepEqual([again.code, count], [code, asked], again.reason);
    const warned = again.warnings.filter((text) => text.includes("was not enforced"));
    assert.equal(warned.length, code === null ? 1 : 0);
  }
});

test("no backend can lower what was spent", async () => {
  const good = { turns: 1, inputTokens: 60, outputTokens: 0, costUsd: 0.6 };
  const odd = [-1e9, Number.NaN, Number.POSITIVE_INFINITY];
  for (const [name, limit] of [
    ["inputTokens", { tokens: 100 }],
    ["outputTokens", { tokens: 150 }],
    ["costUsd", { costUsd: 1 }],
  ] as const) {
    for (const value of odd) {
      for (const isFault of [false, true]) {
        let count = 0;
        const backend: Backend = {
          spec: { id: "mine", options: null },
          turn: ({ asker }) => {
            count += 1;
            const usage = count === 1 ? { ...good, [name]: value } : good;
            if (isFault && count === 1)
              return Promise.resolve({
                kind: "fault",
                fault: { kind: "network", message: "x", retryAfterMs: 1, usage },
              });
            const action = asker.step === "closure.t" ? "closing" : "next";
            const output = { stepId: asker.step, next_action: { action } };
            return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
          },
        };
        const steps = {
          "initial.t": stepTo("work", { next: "continuation.t" }),
          "continuation.t": stepTo("work", { next: "closure.t" }),
          "closure.t": stepTo("closure", { closing: null }),
        };
        const cwd = projectWith(agentFiles("t", steps));
        const around = { cwd, backend, journal: createMemoryJournal(), env: { LOCKSTEP_TRUST: "all" } };
        const result = await run({ agent: "t", ...around, spending: limit });
        const what = `${name} ${value} ${isFault ? "of a fault" : "of a reply"}: ${result.reason}`;
        const expected = isFault ? ["BUDGET_EXHAUSTED", 2] : ["LIMIT_UNMETERED", 1];
        assert.deepEqual([result.code, count], expected, what);
        assert.ok(result.usage.inputTokens >= 0 && result.usage.outputTokens >= 0, what);
      }
    }
  }
});

test("what was allowed when a run began stays allowed when it is resumed", async () => {
  const { server, around } = await world({});
  await using _ = server;
  const cwd = plain();
  const stop = new AbortController();
  const begun = await run({
    agent: "t",
    cwd,
    ...around,
    spending: { costUsd: 5, unmetered: true },
    signal: stop.signal,
    observe: ({ event }) => event.type === "step.answered" && stop.abort(),
  });
  assert.equal(begun.outcome, "interrupted");
  const ended = await resume({ run: begun.run!, cwd, ...around });
  assert.ok(ended.success, ended.reason);
});

test("a resumed or forked run is refused as one that begins", async () => {
  const { server, around } = await world({});
  await using _ = server;
  const cwd = plain();
  const backend: Backend = {
    spec: { id: "mine", options: null },
    turn: ({ asker }) => {
      const action = asker.step === "closure.t" ? "closing" : "next";
      const output = { stepId: asker.step, next_action: { action } };
      const usage = { turns: 1, inputTokens: 5, outputTokens: 5, costUsd: 0.1 };
      return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
    },
  };
  const begun = await run({ agent: "t", cwd, ...around, backend, spending: { costUsd: 5 } });
  assert.ok(begun.success, begun.reason);
  const at = { run: begun.run!, at: "closure.t@1", cwd, ...around, model: "opus" };
  const parted = await fork(at);
  assert.deepEqual([parted.code, parted.exitCode, server.seen.length], ["LIMIT_UNMETERED", 3, 0]);
  const allowed = await fork({ ...at, spending: { unmetered: true } });
  assert.ok(allowed.success, allowed.reason);
  assert.equal(server.seen.length, 1);
  const spent = await run({ agent: "t", cwd, ...around, backend, spending: { costUsd: 5, turns: 1 } });
  assert.equal(spent.code, "BUDGET_EXHAUSTED");
  const raised = { turns: 9 };
  const again = await resume({ run: spent.run!, cwd, ...around, model: "opus", spending: raised });
  assert.deepEqual([again.code, server.seen.length], ["LIMIT_UNMETERED", 1]);
});

test("a batch is refused once, before any of its runs begins, and warned of once", async () => {
  const { server, around, said } = await world({});
  await using _ = server;
  const loaded = await load("t", { cwd: plain() });
  const items = [1, 2].map((place) => ({ name: `#${place}`, args: {} }));
  const options = { items, cwd: loaded.project.root, ...around };
  await assert.rejects(runBatch(loaded, { ...options, spending: { costUsd: 5 } }), {
    code: "LIMIT_UNMETERED",
  });
  assert.deepEqual([server.seen.length, (await around.journal.list()).length], [0, 0]);
  const batch = await runBatch(loaded, { ...options, spending: { costUsd: 5, unmetered: true } });
  assert.deepEqual([batch.success, server.seen.length, batch.costUsd], [true, 4, null]);
  assert.equal(said.length, 1, said.join("\n"));
});

test("a coding agent that reports neither tokens nor cost is stopped after its first query", async () => {
  const { server, around } = await world({});
  await using _ = server;
  for (const [limit, code] of [
    [{ tokens: 10 }, "LIMIT_UNMETERED"],
    [{ costUsd: 1 }, "LIMIT_UNMETERED"],
    [{ turns: 9 }, null],
    [{ tokens: 10, unmetered: true }, null],
  ] as const) {
    let asked = 0;
    const backend: Backend = {
      spec: { id: "agent", options: null },
      run: ({ asker }) => {
        asked += 1;
        const action = asker.step === "closure.t" ? "closing" : "next";
        const output = { stepId: asker.step, next_action: { action } };
        const usage = { turns: 3, inputTokens: 0, outputTokens: 0, costUsd: null };
        return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
      },
    };
    const result = await run({ agent: "t", cwd: plain(), ...around, backend, spending: limit });
    assert.deepEqual([result.code, asked], [code, code === null ? 2 : 1], JSON.stringify(limit));
  }
});

test("a script costs nothing, and no limit stops it", async () => {
  const { server, around } = await world({ limits: { costUsd: 1, tokens: 1 } });
  await using _ = server;
  const script = ["initial.t", "closure.t"].map((stepId, place) => ({
    output: { stepId, next_action: { action: ["next", "closing"][place]! } },
  }));
  const result = await run({ agent: "t", cwd: plain(), ...around, script });
  assert.ok(result.success, result.reason);
  assert.deepEqual(
    [result.usage.unknown, result.warnings.filter((text) => /enforced/.test(text))],
    [undefined, []],
  );
});
