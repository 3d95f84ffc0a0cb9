/** What is heard from an agent in a session: calls, costs, modes, the model and faults; without any agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  choose,
  hearAcp,
  modelIn,
  modeToAsk,
  NOTHING_FROM_ACP,
  toCalls,
  toAcpFault,
  acpTokens,
  type AcpHeard,
} from "../../../src/backends/acp/acp-read.ts";
import type { Json, JsonObject } from "../../../src/flow/json.ts";

const CODEX = "@agentclientprotocol/codex-acp";

const OURS = {
  kind: "other",
  title: "Submit",
  name: "mcp__lockstep7f__submit",
  rawInput: {},
};
const again: readonly (readonly [name: string, second: JsonObject, isOurs: boolean])[] = [
  ["the same call with its input", { ...OURS, title: "Submits", rawInput: { a: 1 } }, true],
  ["another kind", { ...OURS, kind: "execute" }, false],
  ["another name", { ...OURS, name: "Task" }, false],
  ["another server", { ...OURS, rawInput: { server: "mine" } }, false],
  ["another tool", { ...OURS, rawInput: { tool: "evil" } }, false],
];
for (const [name, second, isOurs] of again) {
  test(`an id that is announced as our tool and again as ${name} is ${isOurs ? "" : "not "}ours`, () => {
    const updates = [OURS, second, { sessionUpdate: "tool_call_update", ...OURS }];
    const { calls: heard } = updates.reduce<AcpHeard>(
      (before, update) => hearAcp(before, { sessionUpdate: "tool_call", toolCallId: "1", ...update }),
      NOTHING_FROM_ACP,
    );
    const judged = toCalls({ ...OURS, toolCallId: "1" }, { server: "lockstep7f", announced: heard.get("1") });
    assert.deepEqual(judged, isOurs ? [] : [{ name: '"Submit"', input: {} }]);
  });
}

const costs: readonly (readonly [amounts: readonly Json[], costUsd: number | null])[] = [
  [[0.5, 0.75], 0.75],
  [[0.5, 0.25], 0.5],
  [[0.5, -1e9], null],
  [["1"], null],
  [[-1, 0.5], 0.5],
];
for (const [amounts, costUsd] of costs) {
  test(`reported costs of ${JSON.stringify(amounts)} are ${costUsd}`, () => {
    const heard = amounts.reduce<AcpHeard>(
      (before, amount) =>
        hearAcp(before, { sessionUpdate: "usage_update", cost: { amount, currency: "USD" } }),
      NOTHING_FROM_ACP,
    );
    assert.equal(heard.costUsd, costUsd);
  });
}

test("no line of an agent passes as one of ours", () => {
  const said = toAcpFault(new Error("x\nlockstep: done"), "red\n✓ demo completed\r\n").message;
  assert.equal(said, "The agent failed: x\n  | lockstep: done\nIt printed:\n  | red\n  | ✓ demo completed");
});

const modes: readonly [agent: string, modes: JsonObject | undefined, expected: string | null][] = [
  [CODEX, { currentModeId: "agent", availableModes: [{ id: "agent" }, { id: "read-only" }] }, "read-only"],
  [CODEX, { currentModeId: "read-only", availableModes: [{ id: "agent" }, { id: "read-only" }] }, null],
  [CODEX, { currentModeId: "agent", availableModes: [{ id: "agent" }] }, null],
  [CODEX, undefined, null],
  ["gemini-cli", { currentModeId: "yolo", availableModes: [{ id: "yolo" }, { id: "default" }] }, "default"],
  ["OpenCode", { currentModeId: "build", availableModes: [{ id: "build" }, { id: "read-only" }] }, null],
];
for (const [agent, offered, expected] of modes) {
  test(`the mode in which ${agent} asks, where it is in ${JSON.stringify(offered?.currentModeId)}: ${expected}`, () => {
    assert.equal(modeToAsk(agent, offered), expected);
  });
}

const option = (kind: string): JsonObject => ({ optionId: `id-${kind}`, name: kind, kind });
const choices: readonly [allow: boolean, kinds: readonly string[], chosen: string | null][] = [
  [true, ["allow_always", "allow_once", "reject_once"], "allow_once"],
  [true, ["allow_always", "reject_once"], null],
  [false, ["allow_once", "reject_once"], "reject_once"],
  [false, ["allow_once", "reject_always"], "reject_always"],
  [false, ["allow_once"], null],
];
for (const [allow, kinds, chosen] of choices) {
  test(`${allow ? "leave" : "no leave"} among ${kinds.join(", ")}`, () => {
    const outcome =
      chosen === null ? { outcome: "cancelled" } : { outcome: "selected", optionId: `id-${chosen}` };
    assert.deepEqual(choose(kinds.map(option), allow), { outcome });
  });
}

test("what is heard: words, each call once, dollars", () => {
  const updates: readonly JsonObject[] = [
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "a" } },
    { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } },
    { sessionUpdate: "tool_call", toolCallId: "1" },
    { sessionUpdate: "tool_call", toolCallId: "1" },
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "b" } },
    { sessionUpdate: "usage_update", cost: { amount: 0.5, currency: "USD" } },
    { sessionUpdate: "usage_update", cost: { amount: 9, currency: "EUR" } },
  ];
  const { text, calls: heard, costUsd } = updates.reduce(hearAcp, NOTHING_FROM_ACP);
  assert.deepEqual([text, [...heard.keys()], costUsd], ["ab", ["1"], 0.5]);
  const usage = { inputTokens: 1, cachedReadTokens: 2, outputTokens: 3 };
  assert.deepEqual(acpTokens({ usage }), { inputTokens: 3, outputTokens: 3 });
  assert.deepEqual(acpTokens({}), { inputTokens: 0, outputTokens: 0 });
  const below = { inputTokens: 5, cachedReadTokens: -1e9, outputTokens: -1 };
  assert.deepEqual(acpTokens({ usage: below }), { inputTokens: Number.NaN, outputTokens: Number.NaN });
  const owed = { sessionUpdate: "usage_update", cost: { amount: -100, currency: "USD" } };
  assert.equal([...updates, owed].reduce(hearAcp, NOTHING_FROM_ACP).costUsd, null);
  const quota = { token_count: { input_tokens: 5, output_tokens: 1 } };
  assert.deepEqual(acpTokens({ _meta: { quota } }), { inputTokens: 5, outputTokens: 1 });
});

test("what is said of a call is kept: at first, and with all that followed", () => {
  const { calls: heard } = [
    { sessionUpdate: "tool_call", toolCallId: "1", title: "bash", kind: "execute", rawOutput: "long" },
    { sessionUpdate: "tool_call_update", toolCallId: "1", title: "ls", kind: null },
    { sessionUpdate: "tool_call_update", toolCallId: "2", title: "only then" },
  ].reduce<AcpHeard>((before, update) => hearAcp(before, update), NOTHING_FROM_ACP);
  assert.deepEqual(
    [...heard],
    [
      ["1", { first: { title: "bash", kind: "execute" }, now: { title: "ls", kind: "execute" } }],
      ["2", { first: { title: "only then" }, now: { title: "only then" } }],
    ],
  );
});

test("the model of a session, as far as the agent says", () => {
  const option = (category: string, currentValue: string) => ({ id: "o", category, currentValue });
  const sessions: readonly [JsonObject, string][] = [
    [{ models: { currentModelId: "m-1" } }, "m-1"],
    [{ configOptions: [option("mode", "plan"), option("model", "m-2")] }, "m-2"],
    [{ models: { currentModelId: "m-1" }, configOptions: [option("model", "m-2")] }, "m-1"],
    [{ configOptions: [option("mode", "plan")] }, ""],
    [{ models: { currentModelId: 7 } }, ""],
    [{}, ""],
  ];
  for (const [session, model] of sessions) assert.equal(modelIn(session), model, JSON.stringify(session));
});

test("faults", () => {
  const coded = (code: number) => Object.assign(new Error("x"), { code });
  assert.deepEqual(
    [coded(-32000), coded(-32603), new Error("x")].map((error) => toAcpFault(error).kind),
    ["auth", "other", "process"],
  );
  const detailed = Object.assign(new Error("Internal error"), {
    code: -32603,
    data: { details: "no such model" },
  });
  assert.equal(
    toAcpFault(detailed, "\u001b[31mbad\u001b[0m\u0007 day\n").message,
    "The agent failed: Internal error: no such model\nIt printed:\n  | bad\\x07 day",
  );
});
