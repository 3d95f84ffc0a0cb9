/** What every backend with the verb `turn` must do. `make` builds one whose model will say the given replies, in order. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ScriptReply } from "../backends/scripted/script.ts";
import type { Backend, Message, Toolbox, ToolSpec, TurnRequest, TurnResult } from "../engine/ports.ts";
import type { FaultKind } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { sketchFlow } from "./flows.ts";
import { requireFunction, requireOptions, requireText, type OptionKinds } from "./kit-options.ts";
import { play } from "./scenario.ts";

export function backendSuite(
  name: string,
  make: (replies: readonly ScriptReply[]) => Promise<Backend>,
): void {
  requireText("backendSuite", "the name of the backend", name);
  requireFunction("backendSuite", "a function that makes a backend for given replies", make);
  describe(`backend ${name}`, () => {
    test("gives a payload as a value, or as the text it came in", async () => {
      const reply = said(await one(make, { output: { a: [1, { b: null }] } }));
      assert.deepEqual(reply.output ?? JSON.parse(reply.text), { a: [1, { b: null }] });
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
      await backend.close?.();
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

    test("counts one turn a response, and tokens that make sense", async () => {
      const { usage } = said(await one(make, { text: "x" }));
      assert.equal(usage.turns, 1);
      for (const count of [usage.inputTokens, usage.outputTokens, usage.costUsd ?? 0]) assert.ok(count >= 0);
    });

    test("takes a conversation that another model began, with calls that were never answered", async () => {
      const call = (id: string) => ({ id, name: "Read", input: { file_path: "a" } });
      const result = (id: string) => ({ id, name: "Read", ok: true, content: "the content of a" });
      const messages: readonly Message[] = [
        { role: "user", text: "Do it." },
        { role: "assistant", text: "", calls: [call("run/s@1/1#1"), call("run/s@1/1#2")] },
        { role: "tool", results: [result("run/s@1/1#1")] },
        { role: "assistant", text: "", calls: [], output: { half: "way" } },
        { role: "assistant", text: "", calls: [call("x")] },
        { role: "user", text: "" },
      ];
      const backend = await make([{ saw: ["the content of a", "half"], text: "ok" }]);
      assert.equal(said(await backend.turn!(request({ messages, tools: TOOLS }))).text, "ok");
      await backend.close?.();
    });

    test("settles when it is aborted before it began", async () => {
      const backend = await make([{ text: "x" }]);
      const { kind } = await backend.turn!(request({ signal: AbortSignal.abort() }));
      assert.match(kind, /^(?:reply|fault)$/);
      await backend.close?.();
    });

    describe("within the loop", () => {
      const flow = sketchFlow({ s: { edges: { next: null } } });
      const staged = sketchFlow({ s: { edges: { next: null }, tool: "submit", turns: 4 } });
      const good = { next_action: { action: "next" } };
      const look = { name: "Read", input: { file_path: "a.txt" } };
      const played = async (of: Flow, replies: readonly ScriptReply[]) => {
        const backend = await make(replies);
        const { state, entries } = await play({ flow: of, model: backend, ports: { toolbox: TOOLBOX } });
        await backend.close?.();
        return { verdict: state.verdict, entries };
      };

      test("tool results reach the model", async () => {
        const { verdict } = await played(flow, [
          { calls: [look, { ...look, input: { file_path: "b.txt" } }] },
          { saw: ['"a.txt" holds 1', '"b.txt" holds 1'], output: good },
        ]);
        assert.equal(verdict?.outcome, "completed", verdict?.reason);
      });

      test("a payload that does not fit goes back with the reason", async () => {
        const { verdict } = await played(flow, [
          { output: { next_action: { action: "sideways" } } },
          { saw: ["cannot be used"], output: good },
        ]);
        assert.equal(verdict?.outcome, "completed", verdict?.reason);
      });

      test("prose in the place of a payload goes back too", async () => {
        const { verdict } = await played(flow, [{ text: "I am done." }, { saw: ["JSON"], output: good }]);
        assert.equal(verdict?.outcome, "completed", verdict?.reason);
      });

      test("prose in the place of a completion is steered", async () => {
        const { verdict } = await played(staged, [
          { text: "I am done." },
          { saw: ["Call `submit`"], output: good },
        ]);
        assert.equal(verdict?.outcome, "completed", verdict?.reason);
      });

      test("a completion beside other calls is refused, and nothing of the batch is run", async () => {
        const { verdict, entries } = await played(staged, [
          { calls: [look, { name: "submit", input: good }] },
          { saw: ["must be the only tool call"], output: good },
        ]);
        assert.equal(verdict?.outcome, "completed", verdict?.reason);
        assert.equal(entries.filter(({ event }) => event.type === "step.called").length, 0);
      });

      test("a visit that never comes to its end is stopped at its turns", async () => {
        const { verdict } = await played(
          staged,
          [1, 2, 3, 4].map(() => ({ calls: [look] })),
        );
        assert.equal(verdict?.code, "AGENT_TURN_LIMIT");
      });
    });
  });
}

const TOOLS: readonly ToolSpec[] = [
  {
    name: "Read",
    description: "Reads a file.",
    input: { type: "object", required: ["file_path"], properties: { file_path: { type: "string" } } },
  },
];

const TOOLBOX: Toolbox = {
  offer: () => TOOLS,
  judge: () => null,
  call: (_step, calls) =>
    Promise.resolve(
      calls.map(({ id, name, input }) => ({
        id,
        name,
        ok: true,
        content: `${JSON.stringify(input.file_path)} holds 1`,
      })),
    ),
  callGranted: () => Promise.reject(new Error("there is no stage here")),
};

const REQUEST: OptionKinds<TurnRequest> = {
  asker: "object",
  model: "text",
  system: "words",
  messages: "list",
  tools: "list",
  output: "object",
  signal: "object",
  onText: "function",
};

/** A request as the engine makes it, for a step `s`. */
export function request(more: Partial<TurnRequest> = {}): TurnRequest {
  requireOptions("request", more, REQUEST);
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
