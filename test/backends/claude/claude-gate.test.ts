/** The hook before each tool call of Claude Code, without Claude Code. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatches, createHook } from "../../../src/backends/claude/claude-gate.ts";
import type { Gate } from "../../../src/engine/ports.ts";
import type { JsonObject } from "../../../src/flow/json.ts";

const event = (type: string, more: JsonObject = {}): JsonObject => ({
  type: "stream_event",
  event: { type, ...more },
});
const start = event("message_start");
const stop = event("message_stop");
const block = (id: string, name: string) =>
  event("content_block_start", { content_block: { type: "tool_use", id, name, input: {} } });
const call = (id: string, name: string, input: unknown = {}) => ({
  tool_use_id: id,
  tool_name: name,
  tool_input: input,
});
const yes: Gate = () => Promise.resolve({ allow: true });

/** What became of a promise so far. */
async function soFar<T>(promise: Promise<T>): Promise<T | "waiting"> {
  return await Promise.race([
    promise,
    new Promise<"waiting">((resolve) => setImmediate(() => resolve("waiting"))),
  ]);
}

test("a call is answered when its response has ended, whether it was asked about before or after", async () => {
  const batches = createBatches();
  const early = batches.whole("1");
  for (const one of [start, block("1", "A")]) batches.hear(one);
  const later = batches.whole("1");
  batches.hear(block("2", "B"));
  assert.equal(await soFar(early), "waiting");
  batches.hear(stop);
  assert.deepEqual(await early, ["A", "B"]);
  assert.deepEqual(await later, ["A", "B"]);
  assert.deepEqual(await batches.whole("2"), ["A", "B"]);
});

test("a response that breaks off, and an end, leave nobody waiting", async () => {
  const batches = createBatches();
  for (const one of [start, block("1", "A")]) batches.hear(one);
  const broken = batches.whole("1");
  const unheard = batches.whole("9");
  for (const one of [start, block("2", "B"), stop]) batches.hear(one);
  assert.equal(await broken, null);
  assert.deepEqual(await batches.whole("2"), ["B"]);
  assert.equal(await soFar(unheard), "waiting");
  batches.end();
  assert.equal(await unheard, null);
  assert.equal(await batches.whole("10"), null);
});

type Case = readonly [
  name: string,
  calls: readonly string[],
  judged: {
    readonly gate?: Gate;
    readonly completion?: string;
    readonly input?: unknown;
    readonly agent?: string;
  },
  decision: "allow" | RegExp,
];
const cases: readonly Case[] = [
  ["what the gate allows", ["Read"], {}, "allow"],
  [
    "what it refuses",
    ["Read"],
    { gate: () => Promise.resolve({ allow: false, reason: "not here" }) },
    /^not here$/,
  ],
  [
    "a gate that rejects",
    ["Read"],
    { gate: () => Promise.reject(new Error("boom")) },
    /The gate failed: boom/,
  ],
  [
    "a gate that throws",
    ["Read"],
    {
      gate: () => {
        throw new Error("bang");
      },
    },
    /The gate failed: bang/,
  ],
  ["an input that is no object", ["Read"], { input: "x" }, /not an object/],
  ["a sub-agent", ["Read"], { agent: "a-1" }, /Sub-agents/],
  [
    "an answer alone",
    ["StructuredOutput"],
    { gate: () => Promise.resolve({ allow: false, reason: "unlisted" }) },
    "allow",
  ],
  [
    "an answer beside another",
    ["StructuredOutput", "Read"],
    {},
    /StructuredOutput must be the only tool call/,
  ],
  [
    "another beside an answer",
    ["Read", "StructuredOutput"],
    {},
    /StructuredOutput must be the only tool call/,
  ],
  [
    "a completion beside another",
    ["submit", "Read"],
    { completion: "submit" },
    /submit must be the only tool call/,
  ],
  [
    "another beside a completion",
    ["Read", "submit"],
    { completion: "submit" },
    /submit must be the only tool call/,
  ],
  ["two answers", ["StructuredOutput", "StructuredOutput"], {}, /must be the only tool call/],
];
for (const [name, calls, { gate = yes, completion, input = {}, agent }, decision] of cases) {
  test(`the hook and ${name}`, async () => {
    const batches = createBatches();
    batches.hear(start);
    for (const [place, one] of calls.entries()) batches.hear(block(String(place), one));
    batches.hear(stop);
    const hook = createHook(gate, batches, completion ?? null);
    const first = calls[0] === completion ? "StructuredOutput" : calls[0]!;
    const asked = { ...call("0", first, input), ...(agent === undefined ? {} : { agent_id: agent }) };
    const { hookSpecificOutput: answer } = await hook(asked);
    assert.equal(answer.permissionDecision, decision === "allow" ? "allow" : "deny");
    if (decision !== "allow") assert.match(answer.permissionDecisionReason!, decision);
  });
}

test("the gate hears of a completion by its own name", async () => {
  const batches = createBatches();
  for (const one of [start, block("1", "StructuredOutput"), stop]) batches.hear(one);
  const seen: unknown[] = [];
  const gate: Gate = (one, batch) => {
    seen.push(one.name, batch);
    return Promise.resolve({ allow: true });
  };
  await createHook(gate, batches, "submit")(call("1", "StructuredOutput", { a: 1 }));
  assert.deepEqual(seen, ["submit", ["submit"]]);
});
