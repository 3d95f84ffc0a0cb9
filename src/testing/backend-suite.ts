/** What every backend with the verb `turn` must do. `make` builds one whose model will say the given replies, in order. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ScriptReply } from "../backends/script.ts";
import type { Backend, TurnRequest, TurnResult } from "../engine/ports.ts";
import type { FaultKind } from "../flow/event.ts";

export function backendSuite(
  name: string,
  make: (replies: readonly ScriptReply[]) => Promise<Backend>,
): void {
  describe(`backend ${name}`, () => {
    test("gives a payload as a value", async () => {
      const reply = said(await one(make, { output: { a: [1, { b: null }] } }));
      assert.deepEqual(reply.output, { a: [1, { b: null }] });
      assert.deepEqual(reply.calls, []);
    });

    test("gives prose as text", async () => {
      const reply = said(await one(make, { text: "plain prose" }));
      assert.equal(reply.text, "plain prose");
      assert.equal(reply.output, undefined);
    });

    test("gives tool calls in order, each with an id of its own", async () => {
      const calls = [
        { name: "Read", input: { file_path: "a" } },
        { name: "Read", input: { file_path: "b" } },
      ];
      const reply = said(await one(make, { text: "reading", calls }));
      assert.deepEqual(
        reply.calls.map(({ name, input }) => ({ name, input })),
        calls,
      );
      assert.equal(new Set(reply.calls.map((call) => call.id)).size, 2);
    });

    test("delivers the payload of a completion channel as a call of its tool", async () => {
      const backend = await make([{ output: { summary: "s" } }]);
      const output = { schema: null, channel: { kind: "tool", name: "submit" } } as const;
      const reply = said(await backend.turn!({ ...request(), output }));
      assert.deepEqual(
        reply.calls.map(({ name, input }) => ({ name, input })),
        [{ name: "submit", input: { summary: "s" } }],
      );
    });

    for (const kind of [
      "auth",
      "rate-limit",
      "overloaded",
      "network",
      "bad-request",
      "other",
    ] satisfies FaultKind[]) {
      test(`reports ${kind} as a value`, async () => {
        const result = await one(make, { error: { kind, message: "it broke", retryAfterMs: 12 } });
        assert.equal(result.kind, "fault");
        if (result.kind !== "fault") return;
        assert.equal(result.fault.kind, kind);
        assert.notEqual(result.fault.message, "");
        if (kind === "rate-limit") assert.equal(result.fault.retryAfterMs, 12);
      });
    }

    test("answers request after request", async () => {
      const backend = await make([{ text: "one" }, { error: { kind: "network" } }, { text: "two" }]);
      assert.equal(said(await backend.turn!(request())).text, "one");
      assert.equal((await backend.turn!(request())).kind, "fault");
      assert.equal(said(await backend.turn!(request())).text, "two");
      await backend.close?.();
    });

    test("counts one turn a response", async () => {
      const reply = said(await one(make, { text: "x" }));
      assert.equal(reply.usage.turns, 1);
    });
  });
}

/** A request as the engine makes it, for a step `s`. */
export function request(more: Partial<TurnRequest> = {}): TurnRequest {
  return {
    asker: { key: "run/s@1/1", step: "s", visit: 1, turn: 1, attempt: 1, beside: [] },
    model: "opus",
    system: "You are a test.",
    messages: [{ role: "user", text: "Do it." }],
    tools: [],
    output: { schema: null, channel: { kind: "output" } },
    signal: new AbortController().signal,
    ...more,
  };
}

async function one(
  make: (replies: readonly ScriptReply[]) => Promise<Backend>,
  reply: ScriptReply,
): Promise<TurnResult> {
  const backend = await make([reply]);
  try {
    return await backend.turn!(request());
  } finally {
    await backend.close?.();
  }
}

function said(result: TurnResult): TurnResult & { kind: "reply" } {
  if (result.kind !== "reply") assert.fail(JSON.stringify(result));
  return result;
}
