/** Models of many providers, asked through the real packages over loopback. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { createAiSdk } from "../../../src/backends/ai-sdk/ai-sdk.ts";
import type { Backend } from "../../../src/engine/ports.ts";
import { backendSuite, request } from "../../../src/testing/backend-suite.ts";
import { KEY, modelServer, WIRES, type Deed, type Wire } from "../model-server.ts";
import { until } from "../../until.ts";

for (const wire of WIRES) {
  backendSuite(`ai-sdk over ${wire}`, async (replies) => {
    const server = await modelServer(wire, replies);
    const backend = await createAiSdk({ "*": server.target });
    return { ...backend, close: () => server[Symbol.asyncDispose]() };
  });
}

/** One request to a model that does what it is told. */
async function ask(wire: Wire, deed: Deed, more: Parameters<typeof request>[0] = {}, target: object = {}) {
  await using server = await modelServer(wire, [deed]);
  const backend = await createAiSdk({ "*": { ...server.target, timeoutMs: 5000, ...target } });
  const result = await backend.turn!(request(more));
  return { result, server };
}

const CALL = { name: "Read", input: { file_path: "a" } };
const READ = { name: "Read", description: "Reads a file.", input: { type: "object" } };

for (const wire of WIRES) {
  describe(`ai-sdk over ${wire}`, () => {
    test("the key goes where the provider wants it, and nowhere else", async () => {
      const { result, server } = await ask(wire, {
        status: 401,
        body: `{"error":{"message":"no such key ${KEY}"}}`,
      });
      assert.equal(result.kind === "fault" && result.fault.kind, "auth");
      assert.ok(!JSON.stringify(result).includes(KEY));
      const { headers } = server.seen[0]!;
      const given =
        headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers.authorization?.replace("Bearer ", "");
      assert.equal(given, KEY);
      const backend = await createAiSdk({ "*": server.target });
      assert.ok(!JSON.stringify(backend.spec).includes(KEY));
      assert.ok(!JSON.stringify(backend.spec).includes("127.0.0.1"));
    });

    test("what is said is heard while it is said", async () => {
      const heard: string[] = [];
      await ask(wire, { text: "one two three" }, { onText: (delta) => heard.push(delta) });
      assert.equal(heard.join(""), "one two three");
      assert.ok(heard.length > 1);
    });

    test("tokens are counted with those from the cache, and priced where a price is known", async () => {
      const usage = { input: 1000, output: 200, cacheRead: 400 };
      const price = { input: 10, output: 100, cacheRead: 1 };
      const { result } = await ask(wire, { text: "x", usage }, {}, { price });
      assert.ok(result.kind === "reply");
      const { inputTokens, outputTokens, costUsd } = result.usage;
      assert.deepEqual([inputTokens, outputTokens], [1000, 200]);
      assert.equal(costUsd?.toFixed(6), (0.006 + 0.0004 + 0.02).toFixed(6));
    });

    test("stopping settles the request at once, and lets the connection go", async () => {
      await using server = await modelServer(wire, [{ hang: 1, text: "x" }]);
      const backend = await createAiSdk({ "*": server.target });
      const stop = new AbortController();
      const asked = backend.turn!(request({ signal: stop.signal }));
      await until(() => server.seen.length > 0, "a request");
      stop.abort();
      assert.equal((await asked).kind, "fault");
      await until(() => server.dropped() > 0, "the connection is closed");
    });

    test("one request is one response, and is not tried again", async () => {
      const { result, server } = await ask(wire, { status: 500 });
      assert.equal(result.kind === "fault" && result.fault.kind, "network");
      assert.equal(server.seen.length, 1);
    });

    // On this wire a tool's input is a value, so that it cannot be malformed.
    if (wire === "google") return;

    test("tool input that is no JSON comes back as a call that can be answered", async () => {
      const { result } = await ask(wire, { calls: [CALL], rawInput: '{"file_path": ' }, { tools: [READ] });
      assert.deepEqual(result.kind === "reply" && result.calls.map(({ name, input }) => ({ name, input })), [
        { name: "Read", input: { unreadable: '{"file_path": ' } },
      ]);
    });

    test("a completion that is no JSON is no completion", async () => {
      const output = { schema: null, channel: { kind: "tool", name: "submit" } } as const;
      const deed = { calls: [{ name: "submit", input: {} }], rawInput: '{"half' };
      const { result } = await ask(wire, deed, { output });
      assert.ok(result.kind === "reply");
      assert.deepEqual(result.calls, []);
      assert.match(result.text, /no JSON object: \{"half/);
    });
  });
}

test("a slow answer is waited for as long as it goes on, longer than silence would be", async () => {
  const { result } = await ask("anthropic", { text: "slowly", pauseMs: 120 }, {}, { timeoutMs: 600 });
  assert.equal(result.kind === "reply" && result.text, "slowly");
});

test("two calls with one id get two", async () => {
  const calls = [CALL, CALL].map((call) => Object.assign({ id: "same" }, call));
  const { result } = await ask("openai-compatible", { calls }, { tools: [READ] });
  assert.equal(result.kind === "reply" && new Set(result.calls.map(({ id }) => id)).size, 2);
});

test("a stream without an end is given up", async () => {
  const endless = (all: readonly string[]) => {
    const delta = all.find((event) => event.includes('"text_delta"'))!;
    return [
      ...all.slice(0, 3),
      ...Array.from({ length: 40 }, () => delta.replace("words", "x".repeat(1024 * 1024))),
    ];
  };
  const { result } = await ask("anthropic", { text: "words words", events: endless });
  assert.match(result.kind === "fault" ? result.fault.message : "", /longer than/);
});

test("a refusal without an end is given up, and its beginning is read", async () => {
  const server = createServer((_, response) => {
    response.writeHead(400, { "content-type": "text/plain" });
    const more = () => {
      while (!response.destroyed && response.write("not so. ".repeat(8192)));
      response.once("drain", more);
    };
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  try {
    const backend = await createAiSdk({ "*": { provider: "openai-compatible", model: "m", baseUrl } });
    const result = await backend.turn!(request());
    assert.match(
      result.kind === "fault" ? result.fault.message : "",
      /^openai-compatible\/m: 400 not so\. not so\. /,
    );
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

test("a server that repeats the headers it was sent does not give away what is in them", async () => {
  const headers = { Authorization: "Bearer secret-of-the-gateway", "X-Team": "blue" };
  const { result } = await ask(
    "openai-chat",
    { status: 400, body: "no secret-of-the-gateway for blue" },
    {},
    { headers },
  );
  assert.match(result.kind === "fault" ? result.fault.message : "", /400 no \*\*\* for blue\.$/);
});

test("a name that no model is configured for is a fault", async () => {
  const backend = await createAiSdk({});
  const result = await backend.turn!(request());
  assert.match(result.kind === "fault" ? result.fault.message : "", /No model is configured for "opus"/);
});

test("an unknown price gives no cost, never a cost of nothing", async () => {
  const { result } = await ask("openai-compatible", { text: "x" });
  assert.equal(result.kind === "reply" && result.usage.costUsd, null);
});

describe("what is sent", () => {
  const strict = {
    type: "object",
    additionalProperties: false,
    required: ["a"],
    properties: { a: { type: "string" } },
  } as const;
  const output = (schema: object) => ({ schema, channel: { kind: "output" } }) as never;

  test("Anthropic is told what to cache: the system prompt, and all that was said", async () => {
    const { server } = await ask("anthropic", { text: "x" }, { tools: [READ] });
    const { system, messages } = server.seen[0]!.body as never as {
      system: readonly object[];
      messages: readonly { content: readonly object[] }[];
    };
    const mark = { cache_control: { type: "ephemeral" } };
    assert.deepEqual(system, [{ type: "text", text: "You are a test.", ...mark }]);
    assert.deepEqual(messages.at(-1)!.content, [{ type: "text", text: "Do it.", ...mark }]);
  });

  test("a single question without tools is not written into the cache", async () => {
    const { server } = await ask("anthropic", { text: "x" });
    const { messages } = server.seen[0]!.body;
    assert.ok(!JSON.stringify(messages).includes("cache_control"));
  });

  test("OpenAI is told not to keep the conversation", async () => {
    const { server } = await ask("openai", { text: "x" });
    assert.equal(server.seen[0]!.body.store, false);
  });

  test("the completion tool comes last", async () => {
    const channel = { kind: "tool", name: "submit" } as const;
    const { server } = await ask(
      "anthropic",
      { text: "x" },
      { tools: [READ], output: { schema: null, channel } },
    );
    const tools = server.seen[0]!.body.tools as readonly { readonly name: string }[];
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["Read", "submit"],
    );
  });

  const native = { anthropic: "output_config", openai: "text", "openai-chat": "response_format" } as const;
  for (const [wire, key] of Object.entries(native)) {
    test(`${wire} is given a schema that every provider takes, where there is no tool`, async () => {
      const { server } = await ask(wire as Wire, { text: "{}" }, { output: output(strict) });
      assert.ok(key in server.seen[0]!.body, JSON.stringify(server.seen[0]!.body));
    });
    test(`${wire} is asked in words where a provider could refuse the schema, or tools are there`, async () => {
      const open = await ask(wire as Wire, { text: "{}" }, { output: output({ ...strict, required: [] }) });
      const tooled = await ask(wire as Wire, { text: "{}" }, { output: output(strict), tools: [READ] });
      for (const { server } of [open, tooled]) assert.ok(!(key in server.seen[0]!.body));
    });
  }

  test("a server that is only compatible is asked in words", async () => {
    const { server } = await ask("openai-compatible", { text: "{}" }, { output: output(strict) });
    assert.ok(!("response_format" in server.seen[0]!.body));
  });

  /** What a model thought before it called a tool is sent back with the call, also after a resume. */
  const thinking = {
    anthropic: '"signature":"signed:hm"',
    openai: '"encrypted_content":"signed:hm"',
    google: '"thoughtSignature":"signed:hm"',
    // The chat protocol has no signatures; OpenAI's own models think in secret there.
    "openai-compatible": '"reasoning_content":"hm"',
  };
  for (const [wire, sign] of Object.entries(thinking)) {
    test(`${wire} gets its thoughts back with its calls, and nobody else does`, async () => {
      await using server = await modelServer(wire as Wire, [
        { thought: "hm", calls: [CALL] },
        { text: "a" },
        { text: "b" },
        { text: "c" },
      ]);
      const model = { "*": server.target };
      const backend = await createAiSdk(model);
      const reply = await backend.turn!(request({ tools: [READ] }));
      assert.ok(reply.kind === "reply" && reply.mark !== undefined);
      const { calls, text } = reply;
      const results = calls.map(({ id, name }) => ({ id, name, ok: true, content: "c" }));
      const messages = [
        ...request().messages,
        { role: "assistant", text, calls },
        { role: "tool", results },
      ] as const;
      const goOn = async (other: Backend) => void (await other.turn!(request({ messages, tools: [READ] })));
      await goOn(backend);
      await goOn(await createAiSdk(model, { marks: [reply.mark] }));
      await goOn(await createAiSdk({ "*": { ...server.target, model: "another" } }, { marks: [reply.mark] }));
      assert.deepEqual(
        server.seen.map(({ body }) => JSON.stringify(body).includes(sign)),
        [false, true, true, false],
      );
    });
  }

  test("names of tools that providers refuse are replaced, and put back", async () => {
    const names = [
      "docs.search/all",
      "docs_search_all",
      "docs search all",
      "7up",
      "Read",
      `long_${"x".repeat(80)}`,
    ];
    const tools = names.map((name) => ({ name, description: name, input: { type: "object" } }));
    for (const wire of WIRES) {
      const sent: string[] = [];
      await using server = await modelServer(wire, ({ body }) => {
        const found = [...JSON.stringify(body).matchAll(/"name":"([^"]+)","description":"/g)].map(
          (match) => match[1]!,
        );
        sent.push(...found);
        return { calls: found.map((name) => ({ name, input: {} })) };
      });
      const backend = await createAiSdk({ "*": server.target });
      const calls = [{ id: "one", name: "docs.search/all", input: {} }];
      const results = [{ id: "one", name: "docs.search/all", ok: true, content: "c" }];
      const messages = [
        ...request().messages,
        { role: "assistant", text: "", calls },
        { role: "tool", results },
      ] as const;
      const reply = await backend.turn!(request({ tools, messages }));
      assert.equal(new Set(sent).size, names.length, wire);
      for (const name of sent) assert.match(name, /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
      assert.deepEqual(reply.kind === "reply" && reply.calls.map(({ name }) => name), names, wire);
      assert.ok(
        !JSON.stringify(server.seen[0]!.body.messages ?? server.seen[0]!.body).includes(
          '"docs.search/all","arg',
        ),
      );
    }
  });

  for (const [wire, most] of [
    ["openai", 128],
    ["openai-chat", 128],
    ["anthropic", null],
  ] as const) {
    test(`${wire} is ${most === null ? "asked with any number of tools" : `not asked with more than ${most} tools`}`, async () => {
      const tools = Array.from({ length: 129 }, (_, place) => ({ ...READ, name: `Tool${place}` }));
      const many = await ask(wire, { text: "x" }, { tools });
      const fewer = await ask(wire, { text: "x" }, { tools: tools.slice(1) });
      assert.equal(fewer.result.kind, "reply");
      assert.equal(many.server.seen.length, most === null ? 1 : 0);
      if (most === null) return;
      const { fault } = many.result as { fault: { kind: string; message: string } };
      assert.equal(fault.kind, "bad-request");
      assert.equal(
        fault.message.split(": ")[1],
        "the step offers 129 tools, and this provider takes at most 128. Allow fewer of them in the step's allowedTools.",
      );
    });
  }

  /** Where each provider looks for the effort of reasoning. */
  const effort: { readonly [wire in Wire]: RegExp } = {
    anthropic: /"thinking":\{|"effort":"high"/,
    openai: /"reasoning":\{"effort":"high"/,
    "openai-chat": /"reasoning_effort":"high"/,
    "openai-compatible": /"reasoning_effort":"high"/,
    google: /"thinkingConfig":\{/,
  };
  for (const wire of WIRES) {
    test(`${wire} gets the user's headers, body and effort, and nothing of its own is lost`, async () => {
      const target = {
        headers: { "X-Team": "blue" },
        extraBody: { user: "me", generationConfig: { seed: 7 } },
        reasoningEffort: "high",
        maxOutputTokens: 4000,
      };
      const { server, result } = await ask(wire, { text: "x" }, {}, target);
      const plain = await ask(wire, { text: "x" });
      assert.equal(result.kind, "reply");
      const { headers, body } = server.seen[0]!;
      assert.equal(headers["x-team"], "blue");
      assert.equal(plain.server.seen[0]!.headers["x-team"], undefined);
      assert.equal(body.user, "me");
      assert.equal((body.generationConfig as { seed?: number }).seed, 7);
      assert.match(JSON.stringify(body), effort[wire]);
      assert.ok(!effort[wire].test(JSON.stringify(plain.server.seen[0]!.body)));
      // What is merged into stays as it was.
      if (wire === "google")
        assert.equal((body.generationConfig as { maxOutputTokens?: number }).maxOutputTokens, 4000);
      const key = headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers.authorization;
      assert.ok(String(key).includes(KEY));
    });

    test(`${wire} gets the temperature`, async () => {
      // The packages leave it out for models that are known to refuse it.
      const older = { anthropic: "claude-haiku-4-5", openai: "gpt-4o", "openai-chat": "gpt-4o" };
      const model = Object.hasOwn(older, wire) ? { model: older[wire as keyof typeof older] } : {};
      const { server } = await ask(wire, { text: "x" }, {}, { temperature: 0.25, ...model });
      assert.match(JSON.stringify(server.seen[0]!.body), /"temperature":0\.25/);
    });
  }

  test("null takes a member out of the body", async () => {
    const extraBody = { stream_options: null, nested: { a: 1, b: null }, unknown: null };
    const { server, result } = await ask("openai-compatible", { text: "x" }, {}, { extraBody });
    const { body } = server.seen[0]!;
    assert.equal(result.kind, "reply");
    assert.deepEqual(
      [body.stream, "stream_options" in body, body.nested, "unknown" in body],
      [true, false, { a: 1 }, false],
    );
    const plain = await ask("openai-compatible", { text: "x" });
    assert.ok("stream_options" in plain.server.seen[0]!.body);
  });

  test("a token is sent as a bearer, and no key beside it", async () => {
    const { server } = await ask(
      "anthropic",
      { text: "x" },
      {},
      { apiKey: undefined, authToken: "token-of-mine" },
    );
    const { headers } = server.seen[0]!;
    assert.deepEqual([headers.authorization, headers["x-api-key"]], ["Bearer token-of-mine", undefined]);
  });

  test("every call is answered once, right after it, whatever the conversation looks like", async () => {
    const call = (id: string) => ({ id, name: "Read", input: {} });
    const result = (id: string, content: string) => ({ id, name: "Read", ok: true, content });
    const messages = [
      { role: "user", text: "go" },
      { role: "assistant", text: "", calls: [call("a"), call("b")] },
      { role: "user", text: "from beside" },
      { role: "tool", results: [result("b", "of b"), result("a", "of a"), result("z", "of nobody")] },
      { role: "assistant", text: "again", calls: [call("a")] },
      { role: "tool", results: [result("a", "of the second a")] },
      { role: "assistant", text: "", calls: [call("not/allowed")] },
      { role: "assistant", text: "", calls: [] },
    ] as const;
    const { server } = await ask("openai-chat", { text: "x" }, { messages, tools: [READ] });
    const sent = server.seen[0]!.body.messages as readonly {
      readonly role: string;
      readonly content?: string;
      readonly tool_call_id?: string;
      readonly tool_calls?: readonly { readonly id: string }[];
    }[];
    const told = sent
      .slice(1)
      .map(({ role, content, tool_call_id, tool_calls }) =>
        role === "tool"
          ? `${tool_call_id}: ${content}`
          : `${role}: ${tool_calls?.map(({ id }) => id).join(",") ?? content}`,
      );
    assert.deepEqual(told, [
      "user: go",
      "assistant: a,b",
      "a: of a",
      "b: of b",
      "user: from beside",
      "user: Read gave: of nobody",
      "assistant: lockstep_3",
      "lockstep_3: of the second a",
      "assistant: lockstep_4",
      "lockstep_4: Received; nothing was run.",
      "assistant: (nothing)",
    ]);
  });
});
