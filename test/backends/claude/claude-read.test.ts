/** What the messages of Claude Code mean, without Claude Code. The messages have the shapes that it was seen to send. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toEnv, toModel } from "../../../src/backends/claude/claude-agent.ts";
import {
  asksToWait,
  hearClaude,
  NO_TOTALS,
  NOTHING,
  readMarks,
  toClaudeResult,
  usageSoFar,
  type ClaudeReading,
} from "../../../src/backends/claude/claude-read.ts";
import type { JsonObject } from "../../../src/flow/json.ts";

const start: JsonObject = { type: "stream_event", event: { type: "message_start" } };
const text = (said: string): JsonObject => ({
  type: "assistant",
  message: { content: [{ type: "text", text: said }] },
});
const offer = (input: JsonObject): JsonObject => ({
  type: "assistant",
  message: { content: [{ type: "tool_use", id: "t", name: "StructuredOutput", input }] },
});
const result = (more: JsonObject = {}): JsonObject => ({
  type: "result",
  subtype: "success",
  is_error: false,
  result: "said",
  session_id: "s-1",
  total_cost_usd: 0.5,
  modelUsage: {
    opus: {
      inputTokens: 10,
      cacheReadInputTokens: 20,
      cacheCreationInputTokens: 30,
      outputTokens: 4,
      costBasis: "list",
    },
    haiku: { inputTokens: 1, outputTokens: 1 },
  },
  ...more,
});
const failed = (more: JsonObject): JsonObject => result({ is_error: true, ...more });
const api = (status: number | null, more: JsonObject = {}): JsonObject =>
  failed({ terminal_reason: "api_error", api_error_status: status, result: "why", ...more });

const reading: ClaudeReading = { structured: false, before: NO_TOTALS, thrown: null };
const read = (messages: readonly JsonObject[], more: Partial<ClaudeReading> = {}) =>
  toClaudeResult(messages.reduce(hearClaude, NOTHING), { ...reading, ...more });

test("the model that answered is the one that the newest response names; what Claude Code says itself is no model's", () => {
  const by = (model: JsonObject[string]): JsonObject => ({
    type: "assistant",
    message: { model, content: [] },
  });
  const rows: readonly [readonly JsonObject[], string | undefined][] = [
    [[by("claude-a")], "claude-a"],
    [[by("claude-a"), by("claude-b")], "claude-b"],
    [[by("claude-a"), by("<synthetic>")], "claude-a"],
    [[by("")], undefined],
    [[by(5)], undefined],
  ];
  for (const [messages, model] of rows) assert.equal(messages.reduce(hearClaude, NOTHING).model, model);
});

test("figures are the sum over all models, less what the session had used before", () => {
  const first = read([start, start, text("x"), result()]);
  assert.ok(first.kind === "reply");
  assert.deepEqual(first.usage, { turns: 2, inputTokens: 61, outputTokens: 5, costUsd: 0.5 });
  const [totals] = readMarks([first.mark!]).values();
  const more = { total_cost_usd: 0.75, modelUsage: { opus: { inputTokens: 100, outputTokens: 10 } } };
  const second = read([start, result(more)], { before: totals! });
  assert.ok(second.kind === "reply");
  assert.deepEqual(second.usage, { turns: 1, inputTokens: 39, outputTokens: 5, costUsd: 0.25 });
});

test("what cannot be a figure is unknown, and is not kept as what the session had used", () => {
  const before = { inputTokens: 10, outputTokens: 10, costUsd: 0.1 };
  const usageOf = (more: JsonObject) => {
    const found = read([start, result(more)], { before });
    assert.ok(found.kind === "reply");
    return [found.usage.unknown, found.usage.costUsd, [...readMarks([found.mark!]).values()][0]];
  };
  const models = (more: JsonObject) => ({ opus: { inputTokens: 20, outputTokens: 20, ...more } });
  const kept = { inputTokens: 20, outputTokens: 20, costUsd: 0.5 };
  const rows: readonly [JsonObject, readonly unknown[]][] = [
    [{ modelUsage: models({}) }, [undefined, 0.4, kept]],
    [{ modelUsage: models({ outputTokens: -1e9 }) }, [["tokens"], 0.4, { ...kept, outputTokens: 10 }]],
    [{ modelUsage: models({ cacheReadInputTokens: -1 }) }, [["tokens"], 0.4, { ...kept, inputTokens: 10 }]],
    [{ modelUsage: models({}), total_cost_usd: -5 }, [undefined, null, { ...kept, costUsd: null }]],
  ];
  for (const [more, expected] of rows) assert.deepEqual(usageOf(more), expected);
});

test("a model without a known price has no cost", () => {
  const guess = result({ modelUsage: { own: { inputTokens: 1, outputTokens: 1, costBasis: "unknown" } } });
  const reply = read([start, guess]);
  assert.ok(reply.kind === "reply");
  assert.equal(reply.usage.costUsd, null);
});

const replies: readonly [name: string, messages: readonly JsonObject[], expected: object][] = [
  [
    "an answer as a value",
    [start, offer({ a: 1 }), result({ structured_output: { a: 1 } })],
    { text: "", output: { a: 1 } },
  ],
  [
    "words before an answer",
    [start, text("so: "), text("x"), result({ structured_output: { a: 1 } })],
    { text: "so: x", output: { a: 1 } },
  ],
  [
    "prose, twice",
    [start, text("one"), start, text("two"), start, text("three"), result()],
    { text: "two\n\nthree" },
  ],
  [
    "payloads that never fit",
    [
      start,
      offer({ a: 1 }),
      start,
      offer({ a: 2 }),
      failed({ subtype: "error_max_structured_output_retries" }),
    ],
    { text: "", output: { a: 2 } },
  ],
  [
    "the turn cap",
    [start, text("working"), failed({ subtype: "error_max_turns" })],
    { text: "working", capped: true },
  ],
];
for (const [name, messages, expected] of replies) {
  test(`a reply: ${name}`, () => {
    const found = read(messages, { structured: true, thrown: "as every error is" });
    assert.ok(found.kind === "reply", JSON.stringify(found));
    const { usage: _usage, mark: _mark, kind: _kind, ...rest } = found;
    assert.deepEqual(rest, { calls: [], session: "s-1", ...expected });
  });
}

const refused = (error: string): JsonObject => ({ type: "assistant", error, message: { content: [] } });
const retry = (ms: number, status: number | null, error: string): JsonObject => ({
  type: "system",
  subtype: "api_retry",
  retry_delay_ms: ms,
  error_status: status,
  error,
});

const faults: readonly [name: string, messages: readonly JsonObject[], expected: object][] = [
  ["no key", [refused("authentication_failed"), api(null)], { kind: "auth" }],
  ["401", [refused("authentication_failed"), api(401)], { kind: "auth", status: 401 }],
  ["402", [refused("billing_error"), api(402)], { kind: "auth", status: 402 }],
  ["403", [api(403)], { kind: "auth", status: 403 }],
  ["408", [api(408)], { kind: "network", status: 408 }],
  [
    "429",
    [retry(570, 429, "rate_limit"), refused("rate_limit"), api(429)],
    { kind: "rate-limit", status: 429 },
  ],
  [
    "429 that it does not try again",
    [refused("rate_limit"), api(429)],
    { kind: "other", code: "AGENT_RATE_LIMIT", status: 429 },
  ],
  ["500", [api(500)], { kind: "overloaded", status: 500 }],
  ["529", [refused("overloaded"), api(529)], { kind: "overloaded", status: 529 }],
  ["400", [refused("invalid_request"), api(400)], { kind: "bad-request", status: 400 }],
  ["404", [refused("model_not_found"), api(404)], { kind: "bad-request", status: 404 }],
  [
    "a prompt too long",
    [failed({ terminal_reason: "prompt_too_long", api_error_status: 400 })],
    { kind: "bad-request", status: 400 },
  ],
  ["a broken line", [refused("server_error"), api(null)], { kind: "network" }],
  [
    "a wish to wait",
    [retry(7000, 429, "rate_limit")],
    { kind: "rate-limit", status: 429, retryAfterMs: 7000 },
  ],
  [
    "a wish to wait without a status",
    [retry(3000, null, "overloaded")],
    { kind: "overloaded", retryAfterMs: 3000 },
  ],
  [
    "a short pause of its own",
    [retry(570, 529, "overloaded"), api(529)],
    { kind: "overloaded", status: 529 },
  ],
  ["an end in a short pause", [retry(570, 529, "overloaded")], { kind: "process" }],
  ["an end without a result", [start, text("x")], { kind: "process" }],
  [
    "a lost session",
    [failed({ subtype: "error_during_execution", result: null, errors: ["No conversation found"] })],
    { kind: "process" },
  ],
];
test("a query that is stopped counts with what its responses used so far", () => {
  const begun = (model: string, input_tokens: number, cache_read_input_tokens: number) => ({
    type: "stream_event",
    event: {
      type: "message_start",
      message: { model, usage: { input_tokens, cache_read_input_tokens, output_tokens: 1 } },
    },
  });
  const went = (output_tokens: number) => ({
    type: "stream_event",
    event: { type: "message_delta", usage: { output_tokens } },
  });
  const soFar = (...messages: readonly JsonObject[]) => usageSoFar(messages.reduce(hearClaude, NOTHING));
  assert.equal(soFar(retry(570, 429, "rate_limit")), null);
  const priced = soFar(
    begun("claude-haiku-5-5", 100, 0),
    went(20),
    begun("claude-haiku-5-5-20261001", 50, 0),
  );
  assert.deepEqual({ ...priced, costUsd: 0 }, { turns: 2, inputTokens: 150, outputTokens: 21, costUsd: 0 });
  assert.ok(priced!.costUsd! > 0);
  const unpriced = soFar(begun("no-such-model", 100, 7), went(20));
  assert.deepEqual(unpriced, { turns: 1, inputTokens: 107, outputTokens: 20, costUsd: null });
});

for (const [name, messages, expected] of faults) {
  test(`a fault: ${name}`, () => {
    const found = read(messages, { thrown: "it threw" });
    assert.ok(found.kind === "fault", JSON.stringify(found));
    const { message, usage: _usage, ...rest } = found.fault;
    assert.deepEqual(rest, expected);
    assert.notEqual(message, "");
  });
}

test("what a failed query has cost is told, and nothing where it cost nothing", () => {
  const spent = read([start, api(529)], { thrown: "it threw" });
  assert.deepEqual(spent.kind === "fault" && spent.fault.usage, {
    turns: 1,
    inputTokens: 61,
    outputTokens: 5,
    costUsd: 0.5,
  });
  const free = read([api(401, { modelUsage: {}, total_cost_usd: 0 })], { thrown: "it threw" });
  assert.equal(free.kind === "fault" && free.fault.usage, undefined);
});

test("a schema that is refused is a fault of the request", () => {
  const found = read([], {
    thrown: "exited with code 1. stderr: Error: --json-schema is not a valid JSON Schema: x",
  });
  assert.ok(found.kind === "fault");
  assert.equal(found.fault.kind, "bad-request");
});

test("a wait that is over does not count any more", () => {
  assert.equal(asksToWait([retry(7000, 429, "rate_limit")].reduce(hearClaude, NOTHING)), true);
  assert.equal(asksToWait([retry(7000, 429, "rate_limit"), start].reduce(hearClaude, NOTHING)), false);
});

test("marks of other backends are passed over", () => {
  assert.deepEqual([...readMarks([3, null, { session: 1 }, { session: "s", totals: null }]).keys()], []);
});

test("names of models", () => {
  assert.deepEqual(
    ["opus", "anthropic/claude-x", "anthropic:claude-x", "claude-agent:haiku", ""].map(toModel),
    ["opus", "claude-x", "claude-x", "haiku", ""],
  );
});

test("of the environment only what it needs is passed on", () => {
  const env = toEnv(
    {
      PATH: "/bin",
      HOME: "/home/u",
      LC_ALL: "C",
      HTTPS_PROXY: "p",
      ANTHROPIC_API_KEY: "k",
      ANTHROPIC_BASE_URL: "u",
      GITHUB_TOKEN: "t",
      NODE_OPTIONS: "--require x",
      CLAUDE_CODE_SUBPROCESS_ENV_SCRUB: "1",
      CLAUDE_CODE_MAX_RETRIES: "10",
      IS_SANDBOX: "1",
    },
    "/home",
    "/temp",
  );
  assert.equal(env.CLAUDE_CODE_MAX_RETRIES, "1");
  assert.equal(env.CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC, "1");
  assert.deepEqual(
    Object.keys(env)
      .filter((name) => !/^(?:CLAUDE|ENABLE|GIT_CONFIG)/.test(name))
      .toSorted(),
    ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "HOME", "HTTPS_PROXY", "LC_ALL", "PATH", "TMPDIR"],
  );
  assert.deepEqual([env.GIT_CONFIG_KEY_0, env.GIT_CONFIG_VALUE_0], ["safe.bareRepository", "explicit"]);
  assert.equal("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB" in env, false);
});
