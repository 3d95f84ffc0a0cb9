/** The same conversations against a fake of the services that somebody else wrote: ours could be wrong as we are. */
import { LLMock } from "@copilotkit/aimock";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createAiSdk } from "../../src/backends/ai-sdk/ai-sdk.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import { request } from "../../src/testing/backend-suite.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play } from "../../src/testing/scenario.ts";
import { MODEL, WIRES } from "./model-server.ts";

const mock = new LLMock({ port: 0, logLevel: "silent" });
let replies: ScriptReply[] = [];
mock.on({}, () => {
  const { text = "", calls, error } = replies.shift() ?? { error: { kind: "other", status: 400 } };
  if (error !== undefined)
    return { error: { message: "it broke", type: "some_error" }, status: error.status ?? 500 };
  const toolCalls = calls?.map(({ name, input }) => ({ name, arguments: JSON.stringify(input) }));
  return toolCalls === undefined ? { content: text } : { content: text, toolCalls };
});
before(() => mock.start());
after(() => mock.stop());

for (const provider of WIRES) {
  const make = () => {
    const baseUrl = `${mock.url}${provider === "google" ? "/v1beta" : "/v1"}`;
    return createAiSdk({ "*": { provider, model: MODEL[provider], baseUrl, apiKey: "any" } });
  };

  describe(`aimock over ${provider}`, () => {
    test("tools, a batch that is refused, and a completion", async () => {
      const good = { name: "submit", input: { next_action: { action: "next" } } };
      const read = { name: "Read", input: { file_path: "a" } };
      replies = [
        { text: "I look.", calls: [read, read] },
        { calls: [read, good] },
        { text: "done?" },
        { calls: [good] },
      ];
      const flow = sketchFlow({ s: { edges: { next: null }, tool: "submit" } });
      const { state, asked, entries } = await play({ flow, model: await make() });
      assert.equal(state.verdict?.outcome, "completed", state.verdict?.reason);
      assert.equal(asked.length, 4);
      assert.equal(entries.filter(({ event }) => event.type === "step.called").length, 1);
      assert.deepEqual(replies, []);
    });

    for (const [status, kind] of Object.entries({
      400: "bad-request",
      401: "auth",
      429: "rate-limit",
      503: "overloaded",
    })) {
      test(`${status} is ${kind}`, async () => {
        replies = [{ error: { kind: "other", status: Number(status) } }];
        const result = await (await make()).turn!(request());
        assert.equal(result.kind === "fault" && result.fault.kind, kind, JSON.stringify(result));
      });
    }
  });
}
