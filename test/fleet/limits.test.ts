/** What a limit of a fleet can be, and what the engine makes of a call that is held back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend, TurnResult } from "../../src/engine/ports.ts";
import { readLimit } from "../../src/fleet/limits.ts";
import { exitCode } from "../../src/flow/verdict.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play } from "../../src/testing/scenario.ts";

test("a limit is an amount for a period, and a rate may come as much at once as its kind allows", () => {
  const rows: readonly [name: string, rate: string, amount: number, periodMs: number, burst: number][] = [
    ["openai/gpt-x.requests", "120/min", 120, 60_000, 2],
    ["openai/gpt-x.requests", "10/hour", 10, 3_600_000, 1],
    ["openai/gpt-x.requests", "200/s", 200, 1000, 200],
    ["openai/gpt-x.tokens", "600000/min", 600_000, 60_000, 100_000],
    ["openai/gpt-x.tokens", "100/s", 100, 1000, 100],
    ["costUsd", "0.5/day", 0.5, 86_400_000, 0.5],
  ];
  for (const [name, rate, amount, periodMs, burst] of rows)
    assert.deepEqual(
      readLimit(name, rate),
      { name, group: null, amount, periodMs, burst },
      `${name} ${rate}`,
    );
  assert.equal(readLimit("a/b.requests", "10/s", { burst: 3 }).burst, 3);
  assert.equal(readLimit("costUsd", "1/day", { group: "nightly" }).group, "nightly");
});

test("what is not a limit is refused, with what would be one", () => {
  const rows: readonly [name: string, rate: string, how: object, says: RegExp][] = [
    ["gpt-x.tokens", "1/s", {}, /Use PROVIDER\/MODEL\.requests/],
    ["openai/gpt-x", "1/s", {}, /cannot be limited/],
    ["openai/gpt-x.words", "1/s", {}, /cannot be limited/],
    ["openai/\u001b[31m.tokens", "1/s", {}, /cannot be limited/],
    ["costUsd@x", "1/day", {}, /cannot be limited/],
    ["a/b.tokens", "fast", {}, /is not a limit/],
    ["a/b.tokens", "10/fortnight", {}, /is not a limit/],
    ["a/b.tokens", "10/constructor", {}, /is not a limit/],
    ["a/b.tokens", "0/s", {}, /is not a limit/],
    ["a/b.tokens", "-1/s", {}, /is not a limit/],
    ["a/b.tokens", "10/s", { group: "g" }, /--group is for costUsd/],
    ["costUsd", "10/day", { burst: 1 }, /--burst is for requests/],
    ["costUsd", "10/day", { group: "a\nb" }, /cannot be limited/],
  ];
  for (const [name, rate, how, says] of rows)
    assert.throws(() => readLimit(name, rate, how), { code: "USAGE", message: says }, `${name} ${rate}`);
});

const usage = { turns: 1, inputTokens: 1, outputTokens: 1, costUsd: 0 };
const done: TurnResult = {
  kind: "reply",
  text: "",
  calls: [],
  output: { next_action: { action: "closing" } },
  usage,
};
const faults = (count: number, fault: object): Backend => {
  let left = count;
  return {
    spec: { id: "faulty", options: null },
    turn: async () => {
      left -= 1;
      return left < 0 ? done : ({ kind: "fault", fault: { message: "later", ...fault } } as TurnResult);
    },
  };
};
const flow = sketchFlow({ a: { edges: { closing: null } } });

test("a call that the fleet holds back is waited for, however often and long, and uses up no retries", async () => {
  const held = { kind: "rate-limit", code: "FLEET_RATE", retryAfterMs: 3_600_000 };
  const late = await play({ flow, model: faults(20, held) });
  assert.equal(late.state.verdict?.outcome, "completed", late.state.verdict?.reason);
  assert.deepEqual(
    late.waits,
    Array.from({ length: 20 }, () => 3_600_000),
  );
  const others: readonly [count: number, fault: object, code: string][] = [
    [5, { kind: "rate-limit", retryAfterMs: 1 }, "AGENT_RATE_LIMIT"],
    [1, { kind: "rate-limit", retryAfterMs: 3_600_000 }, "AGENT_RATE_LIMIT"],
    [1, { kind: "other", code: "FLEET_RATE" }, "FLEET_RATE"],
    [1, { kind: "other", code: "FLEET_BUDGET" }, "FLEET_BUDGET"],
  ];
  for (const [count, fault, code] of others)
    assert.equal((await play({ flow, model: faults(count, fault) })).state.verdict?.code, code);
  assert.equal(exitCode({ outcome: "failed", code: "FLEET_BUDGET" }), 4);
});
