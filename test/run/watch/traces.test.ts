/** Traces for OpenTelemetry: what a collector on the loopback is sent. */
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createExporter } from "../../../src/effects/otlp.ts";
import type { TraceSpan } from "../../../src/flow/span.ts";
import {
  createMemoryJournal,
  resume,
  run,
  type Backend,
  type DriveOptions,
  type ScriptReply,
} from "../../../src/run/index.ts";
import { nameForTraces, type ProviderId } from "../../../src/backends/ai-sdk/providers.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { modelServer, WIRES, type Wire } from "../../backends/model-server.ts";
import { agentFiles, projectWith, PROVEN } from "../project.ts";

/** Written apart, so that no tool takes the address for a secret. */
const WORD = "hunter2";

type Value = {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly boolValue?: boolean;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly Value[] };
};
type Pair = { readonly key: string; readonly value: Value };
type Sent = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Pair[];
  readonly status: { readonly code?: number };
};
type Request = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly resource: { readonly [key: string]: unknown };
  readonly spans: readonly Sent[];
};

type Body = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Pair[] };
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly Sent[];
    }[];
  }[];
};

/** `statuses`: what it answers, in order; the last one stays. null: it never answers. */
async function collector(
  ...answers: readonly (number | null | readonly [status: number, retryAfter: string])[]
) {
  const statuses = answers.map((one) => (Array.isArray(one) ? (one[0] as number) : (one as number | null)));
  const requests: Request[] = [];
  const server: Server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => {
      const [only] = (JSON.parse(text) as Body).resourceSpans;
      assert.equal(only?.scopeSpans[0]?.scope.name, "lockstep");
      const { spans } = only.scopeSpans[0];
      requests.push({
        path: request.url!,
        headers: request.headers,
        text,
        resource: plain(only.resource.attributes),
        spans,
      });
      const status =
        statuses[Math.min(requests.length, statuses.length) - 1] ?? (statuses.length === 0 ? 200 : null);
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      const wait = Array.isArray(answer) ? { "retry-after": String(answer[1]) } : {};
      if (status !== null) response.writeHead(status, { location: "http://127.0.0.1:9/", ...wait }).end("{}");
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return {
    requests,
    spans: () => requests.flatMap(({ spans }) => spans),
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: stop,
  };
}

function plain(pairs: readonly Pair[]): { readonly [key: string]: unknown } {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf(value: Value): unknown {
  if (value.intValue !== undefined) return Number(value.intValue);
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(valueOf);
  return value.stringValue ?? value.boolValue ?? value.doubleValue;
}

function project(): string {
  const files = agentFiles(
    "a",
    {
      "initial.a": { kind: "work", intents: ["next"], transitions: { next: { target: "closure.a" } } },
      "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    },
    { registry: PROVEN },
  );
  return projectWith({
    ...files,
    ".agent/a/prompts/steps/initial/a/f_default.md": "The PROMPT-WORDS.",
    ".agent/a/prompts/steps/retry/a/f_failed.md": "Mend it.",
  });
}

const say = (action: string): ScriptReply => ({
  output: { stepId: "x", next_action: { action, reason: "ANSWER-WORDS" } },
});
const write = (path: string): ScriptReply => ({
  text: "ANSWER-WORDS",
  calls: [{ name: "Write", input: { file_path: path, content: "CALL-WORDS" } }],
});
const SCRIPT = [write(".git/x"), write("proof"), say("next"), say("closing")];

async function go(cwd: string, env: NodeJS.ProcessEnv, more: DriveOptions = {}) {
  return await run({
    agent: "a",
    cwd,
    journal: createMemoryJournal(),
    clock: fakeClock(),
    env: { PATH: process.env.PATH, HOME: cwd, LOCKSTEP_TRUST: "all", ...env },
    script: SCRIPT,
    ...more,
  });
}

test("a run is a trace: run, visits, responses, tool calls and checks, without what was said", async () => {
  using there = await collector();
  const {
    success,
    run: id,
    warnings,
  } = await go(project(), {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${there.url}/base/`,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20abc,x-team = a",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test,service.name=other,broken",
    OTEL_SERVICE_NAME: "flows",
  });
  assert.ok(success);
  assert.ok(!warnings.some((text) => /spans/.test(text)), warnings.join("\n"));
  const [request] = there.requests;
  assert.equal(request?.path, "/base/v1/traces");
  assert.equal(request.headers["content-type"], "application/json");
  assert.deepEqual([request.headers.authorization, request.headers["x-team"]], ["Basic abc", "a"]);
  assert.deepEqual(request.resource, {
    "service.name": "flows",
    "deployment.environment": "test",
    "telemetry.sdk.name": "lockstep",
    "telemetry.sdk.language": "nodejs",
  });
  assert.doesNotMatch(request.text, /WORDS/);

  const spans = there.spans();
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  assert.equal(byId.size, spans.length);
  const tree = spans.map(({ name, parentSpanId }) => `${byId.get(parentSpanId ?? "")?.name ?? ""} > ${name}`);
  assert.deepEqual(tree, [
    "step initial.a > chat opus",
    "step initial.a > execute_tool Write",
    "step initial.a > chat opus",
    "step initial.a > execute_tool Write",
    "step initial.a > chat opus",
    "invoke_agent a > step initial.a",
    "step closure.a > chat opus",
    "step closure.a > check proof",
    "invoke_agent a > step closure.a",
    " > invoke_agent a",
  ]);
  for (const { traceId, spanId, startTimeUnixNano, endTimeUnixNano } of spans) {
    assert.match(traceId, /^[0-9a-f]{32}$/);
    assert.match(spanId, /^[0-9a-f]{16}$/);
    assert.equal(traceId, spans[0]!.traceId);
    assert.match(startTimeUnixNano, /^1700000000\d{9}$/);
    assert.ok(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano));
  }
  const [chat, denied] = spans;
  assert.equal(chat?.kind, 3);
  assert.deepEqual(plain(chat.attributes), {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "scripted",
    "gen_ai.request.model": "opus",
    "gen_ai.conversation.id": id,
    "gen_ai.output.type": "json",
    "gen_ai.usage.input_tokens": 0,
    "gen_ai.usage.output_tokens": 0,
    "gen_ai.response.finish_reasons": ["tool_calls"],
    "lockstep.turn": 1,
  });
  assert.deepEqual([denied?.status.code, plain(denied!.attributes)["error.type"]], [2, "denied"]);
  const step = plain(spans[5]!.attributes);
  assert.deepEqual(step, {
    "lockstep.step.id": "initial.a",
    "lockstep.visit": 1,
    "lockstep.label": "next",
    "lockstep.to": "closure.a",
  });
  const whole = plain(spans.at(-1)!.attributes);
  assert.deepEqual(
    [whole["gen_ai.operation.name"], whole["gen_ai.agent.name"], whole["lockstep.outcome"]],
    ["invoke_agent", "a", "completed"],
  );
});

test("what was said is sent only when it is asked for", async () => {
  using there = await collector();
  await go(project(), {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${there.url}/exactly/here`,
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
  });
  assert.equal(there.requests[0]?.path, "/exactly/here");
  const [chat, tool] = there.spans().map(({ attributes }) => plain(attributes));
  const read = (name: string) => JSON.parse(String(chat?.[name])) as unknown;
  assert.deepEqual(read("gen_ai.system_instructions"), [{ type: "text", content: "You are a." }]);
  const [user] = read("gen_ai.input.messages") as readonly {
    readonly role: string;
    readonly parts: readonly { readonly content: string }[];
  }[];
  assert.equal(user?.role, "user");
  assert.match(user.parts[0]!.content, /^The PROMPT-WORDS\./);
  const [assistant] = read("gen_ai.output.messages") as readonly {
    readonly parts: readonly object[];
    readonly finish_reason: string;
  }[];
  assert.deepEqual(assistant?.parts[0], { type: "text", content: "ANSWER-WORDS" });
  assert.equal(assistant.finish_reason, "tool_call");
  assert.match(String(tool?.["gen_ai.tool.call.arguments"]), /CALL-WORDS/);
});

const OFF: readonly [string, NodeJS.ProcessEnv][] = [
  ["OTEL_SDK_DISABLED", { OTEL_SDK_DISABLED: "true" }],
  ["OTEL_TRACES_EXPORTER=none", { OTEL_TRACES_EXPORTER: "none" }],
];
for (const [what, env] of OFF) {
  test(`${what} turns it off`, async () => {
    using there = await collector();
    await go(project(), { OTEL_EXPORTER_OTLP_ENDPOINT: there.url, ...env });
    assert.equal(there.requests.length, 0);
  });
}

const USELESS: readonly [string, NodeJS.ProcessEnv, RegExp][] = [
  [
    "no address",
    { OTEL_EXPORTER_OTLP_ENDPOINT: "collector" },
    /^Traces could not be written: the endpoint is not an http or https URL$/,
  ],
  [
    "a protocol that is not spoken",
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    /^Traces could not be written: grpc /,
  ],
  [
    "an address with a password",
    { OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:${WORD}@127.0.0.1:9` },
    /^10 spans could not be sent/,
  ],
];
test("an address where nobody is is one warning too", async () => {
  const gone = await collector();
  gone[Symbol.dispose]();
  const { success, warnings } = await go(project(), { OTEL_EXPORTER_OTLP_ENDPOINT: gone.url });
  assert.ok(success);
  const told = warnings.filter((text) => text.startsWith(`10 spans could not be sent to ${gone.url}: `));
  assert.equal(told.length, 1, warnings.join("\n"));
  assert.match(told[0]!, /ECONNREFUSED/);
});

for (const [what, env, warning] of USELESS) {
  test(`${what} is one warning, and the run is as it would have been`, async () => {
    const { success, warnings } = await go(project(), env);
    assert.ok(success);
    assert.equal(warnings.filter((text) => warning.test(text)).length, 1, warnings.join("\n"));
    assert.doesNotMatch(warnings.join("\n"), /hunter2/);
  });
}

test("a run that goes on is the same trace, with a span for each stretch", async () => {
  using there = await collector();
  const cwd = project();
  const journal = createMemoryJournal();
  const env = { PATH: process.env.PATH, LOCKSTEP_TRUST: "all", OTEL_EXPORTER_OTLP_ENDPOINT: there.url };
  const first = await run({ agent: "a", cwd, journal, env, script: SCRIPT.slice(0, 3) });
  assert.equal(first.code, "SCRIPT_EXHAUSTED");
  const sent = there.spans().length;
  const again = await resume({ run: "@last", cwd, journal, env, script: SCRIPT.slice(3) });
  assert.ok(again.success);
  const spans = there.spans();
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
  assert.deepEqual(
    spans.slice(sent).map(({ name }) => name),
    ["chat opus", "check proof", "step closure.a", "invoke_agent a"],
  );
  const failed = spans.slice(0, sent).find(({ name }) => name === "invoke_agent a");
  assert.deepEqual([failed?.status.code, plain(failed!.attributes)["error.type"]], [2, "SCRIPT_EXHAUSTED"]);
});

const span = (key: string): TraceSpan => ({
  key,
  parent: null,
  name: key,
  kind: "internal",
  start: 1,
  end: 2,
  attributes: { n: 1.5, yes: true },
  failed: false,
});
const many = Array.from({ length: 1200 }, (_, place) => span(String(place)));

type Closing = readonly [
  what: string,
  statuses: readonly (number | null)[],
  requests: number,
  warning: RegExp | null,
];
const CLOSINGS: readonly Closing[] = [
  ["many spans go in batches", [200], 3, null],
  [
    "a collector that stays busy is asked five times",
    [503],
    5,
    /^1200 spans could not be sent to \S+: it answered 503$/,
  ],
  ["a collector that is busy for a moment gets them all", [503, 429, 200], 5, null],
  ["each batch has its own retries", [200, 503, 200, 504, 200], 5, null],
  [
    "what it refuses for good is not sent again",
    [400, 200],
    3,
    /^500 spans could not be sent to \S+: it answered 400$/,
  ],
  ["what it sends elsewhere does not go there", [302], 1, /^1200 spans could not be sent/],
  [
    "a collector that never answers is waited for no longer than said",
    [null],
    1,
    /^1200 spans could not be sent to \S+: it did not answer in time$/,
  ],
];
for (const [what, statuses, requests, warning] of CLOSINGS) {
  test(what, async () => {
    using there = await collector(...statuses);
    const exporter = createExporter({ url: there.url, headers: {}, resource: {}, trace: "t" });
    exporter.add(many);
    // Long enough for the request to arrive on a loaded machine.
    const warnings = await exporter.close(statuses[0] === null ? 2_000 : 60_000);
    assert.equal(there.requests.length, requests);
    assert.deepEqual(
      [warnings.length, warning?.test(warnings[0] ?? "") ?? true],
      [warning === null ? 0 : 1, true],
      warnings.join(),
    );
    assert.deepEqual(plain(there.spans()[0]!.attributes), { n: 1.5, yes: true });
  });
}

const WAITS: readonly [name: string, retryAfter: string, withinMs: number, requests: number][] = [
  ["a wait in seconds is waited for", "1", 60_000, 2],
  ["one that is over is not", "0", 60_000, 2],
  ["a date that is past is not waited for", "Thu, 01 Jan 2026 00:00:00 GMT", 60_000, 2],
  ["one that is longer than the time that is left is not begun", "3600", 60_000, 1],
  ["nor one until a far date", "Fri, 01 Jan 2100 00:00:00 GMT", 60_000, 1],
  ["what is neither is passed over", "soon", 60_000, 2],
];
for (const [name, retryAfter, withinMs, requests] of WAITS) {
  test(`Retry-After of a collector: ${name}`, async () => {
    using there = await collector([429, retryAfter], 200);
    const exporter = createExporter({ url: there.url, headers: {}, resource: {}, trace: "t" });
    exporter.add([span("one")]);
    const warnings = await exporter.close(withinMs);
    assert.equal(there.requests.length, requests);
    assert.equal(warnings.length, requests === 1 ? 1 : 0, warnings.join());
  });
}

const TRACED: { readonly [wire in Wire]: string } = {
  anthropic: "anthropic",
  openai: "openai",
  "openai-chat": "openai",
  "openai-compatible": "openai-compatible",
  google: "gcp.gemini",
};
for (const wire of WIRES) {
  test(`a response is traced with the model that was asked for and the one that answered: ${wire}`, async () => {
    using there = await collector();
    const say = (stepId: string, action: string) => ({ output: { stepId, next_action: { action } } });
    await using server = await modelServer(wire, [say("initial.a", "next"), { status: 400 }]);
    const { model, baseUrl } = server.target;
    const config = { models: { mine: { provider: wire, model, baseUrl, apiKeyEnv: "A_KEY" } } };
    const XDG_CONFIG_HOME = projectWith({ "lockstep/config.json": JSON.stringify(config) });
    const result = await run({
      agent: "a",
      cwd: project(),
      journal: createMemoryJournal(),
      env: {
        PATH: process.env.PATH,
        LOCKSTEP_TRUST: "all",
        OTEL_EXPORTER_OTLP_ENDPOINT: there.url,
        XDG_CONFIG_HOME,
        A_KEY: "k",
      },
      model: "mine",
    });
    assert.equal(result.code, "AGENT_QUERY_ERROR", result.reason);
    const chats = there.spans().filter(({ kind }) => kind === 3);
    const seen = chats.map(({ name, attributes }) => {
      const about = plain(attributes);
      const named = (key: string) => about[`gen_ai.${key}`];
      return [name, named("provider.name"), named("request.model"), named("response.model")];
    });
    const answered = wire === "google" ? undefined : model;
    assert.deepEqual(seen[0]?.slice(0, 3), [`chat ${model}`, TRACED[wire], model]);
    if (answered !== undefined) assert.equal(typeof seen[0]?.[3], "string", JSON.stringify(seen));
    // One that failed too, where nothing answered.
    assert.deepEqual(seen[1], [`chat ${model}`, TRACED[wire], model, undefined]);
  });
}

test("an agent that says neither model nor tokens is traced without them", async () => {
  using there = await collector();
  const output = { stepId: "initial.a", next_action: { action: "next" } };
  const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
  const answers = [
    { kind: "reply", text: "", calls: [], output, usage, by: { provider: "gemini-cli" } },
    { kind: "fault", fault: { kind: "other", message: "x" }, by: { provider: "gemini-cli", model: "m" } },
  ] as const;
  let asked = 0;
  const backend: Backend = {
    spec: { id: "acp", options: null },
    turn: () => Promise.resolve(answers[asked++]!),
  };
  const env = { PATH: process.env.PATH, LOCKSTEP_TRUST: "all", OTEL_EXPORTER_OTLP_ENDPOINT: there.url };
  await run({ agent: "a", cwd: project(), journal: createMemoryJournal(), env, backend });
  const [first, second] = there.spans().filter(({ kind }) => kind === 3);
  assert.equal(first?.name, "chat");
  const about = plain(first.attributes);
  assert.equal(about["gen_ai.provider.name"], "gemini-cli");
  for (const name of ["request.model", "response.model", "usage.input_tokens", "usage.output_tokens"])
    assert.equal(Object.hasOwn(about, `gen_ai.${name}`), false, name);
  assert.deepEqual([second?.name, plain(second!.attributes)["gen_ai.request.model"]], ["chat m", "m"]);
});

test("a provider is known by its address, whatever protocol it speaks", () => {
  const rows: readonly [ProviderId, string | undefined, string][] = [
    ["openai-compatible", "https://api.deepseek.com/v1", "deepseek"],
    ["anthropic", "https://api.deepseek.com/anthropic", "deepseek"],
    ["openai-compatible", "https://api.x.ai/v1", "x_ai"],
    ["openai-chat", "https://mine.openai.azure.com/openai", "azure.ai.openai"],
    ["openai-compatible", "https://notx.ai/v1", "openai-compatible"],
    ["anthropic", "http://127.0.0.1:4000", "anthropic"],
    ["google", undefined, "gcp.gemini"],
    ["ollama", undefined, "ollama"],
  ];
  for (const [provider, baseUrl, name] of rows)
    assert.equal(nameForTraces({ provider, ...(baseUrl !== undefined && { baseUrl }) }), name);
});
