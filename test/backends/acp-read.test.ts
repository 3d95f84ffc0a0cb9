/** What agents ask leave for, as calls that the gate knows; without any agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  choose,
  hear,
  NOTHING,
  toCalls,
  toFault,
  tokensOf,
  type Judged,
} from "../../src/backends/acp-read.ts";
import type { Json, JsonObject } from "../../src/flow/json.ts";

const edit = (...paths: readonly string[]): readonly Judged[] =>
  paths.map((file_path) => ({ name: "Edit", input: { file_path } }));
const bash = (command: Json): readonly Judged[] => [{ name: "Bash", input: { command } }];

const calls: readonly [name: string, toolCall: JsonObject, expected: readonly Judged[]][] = [
  ["a line for a shell", { kind: "execute", rawInput: { command: "ls -l" } }, bash("ls -l")],
  [
    "a shell with its line",
    { kind: "execute", rawInput: { command: ["/bin/bash", "-lc", "a && b"] } },
    bash("a && b"),
  ],
  ["words", { kind: "execute", rawInput: { command: ["git", "status"] } }, bash("git status")],
  ["no command", { kind: "execute" }, bash(null)],
  [
    "every place of an edit",
    { kind: "edit", rawInput: { file_path: "a" }, locations: [{ path: "b" }] },
    edit("a", "b"),
  ],
  ["an edit nowhere", { kind: "edit", rawInput: { patch: "x" } }, edit("")],
  ["a deletion", { kind: "delete", locations: [{ path: "a" }] }, edit("a")],
  ["a move", { kind: "move", rawInput: { path: "a" } }, edit("a")],
  ["reading", { kind: "read", rawInput: { path: "a" } }, [{ name: "Read", input: { file_path: "a" } }]],
  ["reading nothing in particular", { kind: "read" }, [{ name: "Read", input: {} }]],
  ["searching", { kind: "search", rawInput: { path: "a" } }, [{ name: "Grep", input: { file_path: "a" } }]],
  ["fetching", { kind: "fetch", rawInput: { url: "u" } }, [{ name: "WebFetch", input: { url: "u" } }]],
  [
    "a tool by its name",
    { kind: "other", name: "deploy", title: "Deploy it" },
    [{ name: "deploy", input: {} }],
  ],
  ["a tool by its title", { title: "Deploy it" }, [{ name: "Deploy it", input: {} }]],
  ["our own tool", { kind: "other", title: "mcp__lockstep__submit" }, []],
  ["our own tool, written otherwise", { name: "lockstep: submit" }, []],
  [
    "a command under our name",
    { kind: "execute", title: "lockstep submit", rawInput: { command: "rm a" } },
    bash("rm a"),
  ],
  [
    "one that only sounds like ours",
    { title: "run mcp__lockstep__submit" },
    [{ name: "run mcp__lockstep__submit", input: {} }],
  ],
];
for (const [name, toolCall, expected] of calls) {
  test(`an agent asks for ${name}`, () => assert.deepEqual(toCalls(toolCall), expected));
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
  assert.deepEqual(updates.reduce(hear, NOTHING), { text: "ab", calls: new Set(["1"]), costUsd: 0.5 });
  const usage = { inputTokens: 1, cachedReadTokens: 2, outputTokens: 3 };
  assert.deepEqual(tokensOf({ usage }), { inputTokens: 3, outputTokens: 3 });
  assert.deepEqual(tokensOf({}), { inputTokens: 0, outputTokens: 0 });
});

test("faults", () => {
  const coded = (code: number) => Object.assign(new Error("x"), { code });
  assert.deepEqual(
    [coded(-32000), coded(-32603), new Error("x")].map((error) => toFault(error).kind),
    ["auth", "other", "process"],
  );
});
