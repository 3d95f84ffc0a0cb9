/** Batches through the library: one run for each item, side by side, none in the way of another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createMemoryJournal,
  runBatch,
  type Backend,
  type BatchOptions,
  type Loaded,
} from "../../src/run/index.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const flow = {
  ...sketchFlow({
    "initial.a": { edges: { handoff: "closure.a" } },
    "closure.a": { edges: { closing: null, repeat: "closure.a" } },
  }),
  openArguments: true as const,
};
const project = { root: "/nowhere", agentsDir: "/nowhere/.agent", stateDir: "/nowhere/.lockstep" };
const loaded = { agent: flow.agent, flow, problems: [], project } as unknown as Loaded;
const USAGE = { inputTokens: 2, outputTokens: 1, turns: 1, costUsd: null };

/** Answers at once, but for what the test wants of a run: its number is told by the order in which they begin. */
function createModel(act: (place: number, step: string) => "closing" | "abort" | "wait" = () => "closing") {
  const runs: string[] = [];
  let now = 0;
  const seen = { most: 0, begun: runs };
  const backend: Backend = {
    spec: { id: "test", options: {} },
    turn: async ({ asker, signal }) => {
      const [run = ""] = asker.key.split("/");
      if (!runs.includes(run)) runs.push(run);
      now += 1;
      seen.most = Math.max(seen.most, now);
      const word = act(runs.indexOf(run), asker.step);
      await new Promise((resolve) => setImmediate(resolve));
      if (word === "wait") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      now -= 1;
      const action = word === "abort" ? "abort" : asker.step === "initial.a" ? "handoff" : "closing";
      return { kind: "reply", text: "", calls: [], output: { next_action: { action } }, usage: USAGE };
    },
    close: () => Promise.reject(new Error("what was handed in is not closed")),
  };
  return { backend, seen };
}

const items = (count: number) =>
  Array.from({ length: count }, (_, place) => ({ name: `#${place + 1}`, args: { issue: place + 1 } }));
const batchOf = async (options: Partial<BatchOptions> & Pick<BatchOptions, "backend" | "items">) =>
  await runBatch(loaded, {
    env: { LOCKSTEP_TRUST: "all" },
    journal: createMemoryJournal(),
    cwd: "/",
    ...options,
  });

const BILLS: readonly [
  name: string,
  costs: readonly (number | null)[],
  costUsd: number | null,
  known?: number,
][] = [
  ["all known", [0.25, 0.5], 1.5],
  ["one unknown", [0.25, null], null, 0.5],
  ["all unknown", [null, null], null],
  ["free", [0, 0], 0],
];
for (const [name, costs, costUsd, knownCostUsd] of BILLS) {
  test(`a run without a known cost does not count as free beside others: ${name}`, async () => {
    const { backend, seen } = createModel();
    const priced: Backend = {
      ...backend,
      turn: async (request) => {
        const result = await backend.turn!(request);
        const [run = ""] = request.asker.key.split("/");
        const cost = costs[seen.begun.indexOf(run)]!;
        return result.kind === "fault" ? result : { ...result, usage: { ...result.usage, costUsd: cost } };
      },
    };
    const batch = await batchOf({ backend: priced, items: items(2) });
    assert.deepEqual([batch.costUsd, batch.knownCostUsd], [costUsd, knownCostUsd]);
  });
}

test("all are run, so many at a time", async () => {
  const { backend, seen } = createModel();
  const batch = await batchOf({ backend, items: items(12), concurrency: 3 });
  assert.equal(batch.exitCode, 0);
  assert.deepEqual(
    batch.items.map(({ name, result }) => [name, result?.success]),
    items(12).map(({ name }) => [name, true]),
  );
  assert.equal(seen.most, 3);
  assert.deepEqual(batch.usage, { inputTokens: 48, outputTokens: 24, turns: 24 });
});

test("a run that fails stops no other, and what all failures share is the exit code", async () => {
  const { backend } = createModel((place) => (place === 1 ? "abort" : "closing"));
  const batch = await batchOf({ backend, items: items(4), concurrency: 2 });
  assert.deepEqual(
    batch.items.map(({ result }) => result?.outcome),
    ["completed", "failed", "completed", "completed"],
  );
  assert.equal(batch.exitCode, 1);
  assert.equal(batch.success, false);
});

test("after the signal none is begun any more", async () => {
  const stop = new AbortController();
  const { backend } = createModel((place, step) => {
    if (place === 1 && step === "initial.a") setImmediate(() => setImmediate(() => stop.abort()));
    return place === 1 && step === "initial.a" ? "wait" : "closing";
  });
  const batch = await batchOf({ backend, items: items(4), signal: stop.signal });
  assert.deepEqual(
    batch.items.map(({ result }) => result?.outcome ?? null),
    ["completed", "interrupted", null, null],
  );
  assert.equal(batch.exitCode, 130);
});

test("an issue that a living run is at work on is left to it", async () => {
  const journal = createMemoryJournal();
  const started = {
    type: "run.started",
    run: "other",
    agent: flow.agent,
    flow: "d",
    args: { issue: 2 },
    input: "",
    cwd: "/",
    backend: { id: "test", options: {} },
  } as const;
  const row = { id: "other", agent: flow.agent, at: 0, digest: "d", flow };
  await journal.create(row, [{ seq: 1, at: 0, event: started }]);
  const { backend } = createModel();
  const batch = await batchOf({ backend, journal, items: items(3) });
  assert.deepEqual(
    batch.items.map(({ result }) => result?.code),
    [null, "RUN_OWNED_ELSEWHERE", null],
  );
  assert.match(batch.items[1]?.result?.reason ?? "", /Run other is already working on it/);
});
