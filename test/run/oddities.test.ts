/**
 * Oddities of model servers, over the real packages and loopback: each is understood, or ends the run with a sentence
 * that says what happened and what to do. The sentences are those of docs/model-errors.md.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { createServer as createNetServer, type AddressInfo } from "node:net";
import { createMemoryJournal, resume, run, type RunOptions } from "../../src/run/index.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { KEY, modelServer } from "../backends/model-server.ts";
import { CLOSING, ODDITIES, type Oddity } from "./oddities.ts";
import { agentFiles, projectWith } from "./project.ts";

const FILES = agentFiles("t", {
  "initial.t": { kind: "work", intents: ["next"], transitions: { next: { target: "closure.t" } } },
  "closure.t": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
});

/** What a user with this model gets. */
async function meet({ wire, deed, entry = {} }: Pick<Oddity, "wire" | "deed" | "entry">) {
  let asked = 0;
  await using server = await modelServer(wire, ({ body }) => {
    if (JSON.stringify(body).includes("Do closure.t."))
      return wire === "google" || body.stream === true ? CLOSING.streamed : CLOSING.whole;
    asked += 1;
    return deed;
  });
  const { provider, model, baseUrl } = server.target;
  const opus = { provider, model, baseUrl, apiKeyEnv: "SOME_KEY", ...entry };
  const { result, waits } = await begin(opus, { SOME_KEY: KEY });
  return { result, asked, waits, who: `${opus.provider}/${opus.model}: ` };
}

async function begin(opus: object, env: NodeJS.ProcessEnv, more: Partial<RunOptions> = {}) {
  const config = projectWith({ "lockstep/config.json": JSON.stringify({ models: { opus } }) });
  const waits: number[] = [];
  const options = { cwd: projectWith(FILES), env: { XDG_CONFIG_HOME: config, ...env } };
  const journal = createMemoryJournal();
  const result = await run({ agent: "t", journal, clock: fakeClock(waits), ...options, ...more });
  return { result, waits, options };
}

/** The sentences on the page; `…` stands for anything. */
const PAGE = readFileSync(new URL("../../docs/model-errors.md", import.meta.url), "utf8");
const DOCUMENTED = [...PAGE.matchAll(/^\| `(.+?)` \|/gm)].map(([, row = ""]) => {
  const parts = row.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return { row, pattern: new RegExp(`^${parts.join(".*")}$`) };
});

describe("an oddity of a model server", { concurrency: 4 }, () => {
  for (const row of ODDITIES) {
    test(`${row.wire}: ${row.name}`, async () => {
      const { result, asked, waits, who } = await meet(row);
      if (row.says === null) assert.equal(result.success, true, result.reason);
      else assert.equal(result.reason, who + row.says);
      assert.deepEqual([result.exitCode, asked], [row.exit, row.asked]);
      if (row.waits !== undefined) assert.deepEqual(waits, row.waits);
      assert.ok(!JSON.stringify(result).includes(KEY));
    });
  }
});

test("a sentence without an end is cut, and what to do is not", async () => {
  const body = JSON.stringify({ error: { message: `prompt is too long: ${"x".repeat(50_000)}` } });
  const { result } = await meet({ wire: "anthropic", deed: { status: 400, body } });
  assert.ok(result.reason.length <= 600);
  assert.match(result.reason, /x… The conversation is too long for this model: .* read less\.$/);
});

test("a body that is nested without measure is a refusal like any other", async () => {
  for (const open of ['{"error":', "[", '{"details":[', '{"message":'])
    for (const status of [400, 200]) {
      const { result } = await meet({
        wire: "openai-compatible",
        deed: { status, body: open.repeat(20_000) },
      });
      assert.deepEqual([result.code, result.exitCode], ["AGENT_QUERY_ERROR", 1]);
      const close = open.endsWith("[") ? (open === "[" ? "]" : "]}") : "}";
      const whole = open.repeat(20_000) + (open.endsWith("[") ? "" : "1") + close.repeat(20_000);
      const { result: other } = await meet({ wire: "openai-compatible", deed: { status, body: whole } });
      assert.deepEqual([other.code, other.exitCode], ["AGENT_QUERY_ERROR", 1]);
      for (const { reason } of [result, other]) assert.doesNotMatch(reason, /call stack|backend threw/i);
    }
});

describe("a server that cannot be reached", () => {
  /** A port that nothing listens at, and one that answers in another language. */
  async function port(answer: string | null): Promise<{ readonly port: number } & AsyncDisposable> {
    const server = createNetServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => socket.end(answer ?? ""));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port: at } = server.address() as AddressInfo;
    const close = () => new Promise((resolve) => server.close(resolve));
    if (answer === null) await close();
    return { port: at, [Symbol.asyncDispose]: async () => void (answer === null || (await close())) };
  }
  /** Not a valid name, so that no name server is asked for it. */
  const FAR = "http://server..invalid/v1";
  const refused = (at: string) =>
    `the connection failed: connect ECONNREFUSED 127.0.0.1:${at}. Nothing accepts connections at 127.0.0.1:${at}: start the server, or correct the base address.`;
  const LONG = [5000, 10_000, 20_000, 40_000];
  const rows: readonly {
    readonly name: string;
    readonly answer: string | null;
    readonly url: (at: number) => string;
    readonly env?: NodeJS.ProcessEnv;
    readonly says: (at: number) => RegExp | string;
    readonly waits: readonly number[];
  }[] = [
    {
      name: "a local server that was not started is not waited for",
      answer: null,
      url: (at) => `http://127.0.0.1:${at}/v1`,
      env: { HTTPS_PROXY: "http://127.0.0.1:9" },
      says: (at) => refused(String(at)),
      waits: [1000, 1000, 1000, 1000],
    },
    {
      name: "nor one that is named",
      answer: null,
      url: (at) => `http://localhost:${at}/v1`,
      says: (at) => new RegExp(`ECONNREFUSED .*Nothing accepts connections at localhost:${at}: start`),
      waits: [1000, 1000, 1000, 1000],
    },
    {
      name: "https before a server that does not speak it",
      answer: "HTTP/1.1 400 Bad Request\r\n\r\n",
      url: (at) => `https://127.0.0.1:${at}/v1`,
      says: (at) =>
        new RegExp(
          `^the connection failed: .* 127\\.0\\.0\\.1:${at} does not speak https: begin the base address with http:// if that is intended\\.$`,
        ),
      waits: [],
    },
    {
      name: "a server that does not speak HTTP",
      answer: "SSH-2.0-OpenSSH_9.9\r\n",
      url: (at) => `http://127.0.0.1:${at}/v1`,
      says: (at) =>
        new RegExp(
          `^the connection failed: .* 127\\.0\\.0\\.1:${at} does not speak HTTP at this port: correct the base address\\.$`,
        ),
      waits: [],
    },
    {
      name: "a port that fetch does not use",
      answer: null,
      url: () => "http://127.0.0.1:9/v1",
      says: () =>
        "the connection failed: bad port. 127.0.0.1:9 has a port that is reserved for another service: let the server listen at another one.",
      waits: [],
    },
    {
      name: "a name that leads nowhere",
      answer: null,
      url: () => FAR,
      says: () =>
        /^the connection failed: getaddrinfo ENOTFOUND server\.\.invalid\. The name server\.\.invalid cannot be resolved: check the base address and your network\.$/,
      waits: LONG,
    },
    {
      name: "a name that only a proxy knows, and no proxy is used",
      answer: null,
      url: () => FAR,
      env: { HTTPS_PROXY: "http://127.0.0.1:9", no_proxy: "" },
      says: () =>
        /check the base address and your network\. HTTPS_PROXY is set, but this process does not use proxies: set NODE_USE_ENV_PROXY=1\.$/,
      waits: LONG,
    },
  ];
  for (const { name, answer, url, env = {}, says, waits: expected } of rows) {
    test(name, async () => {
      await using at = await port(answer);
      const opus = { provider: "openai-compatible", model: "m", baseUrl: url(at.port) };
      const { result, waits } = await begin(opus, env);
      const sentence = result.reason.replace("openai-compatible/m: ", "");
      const wanted = says(at.port);
      if (typeof wanted === "string") assert.equal(sentence, wanted);
      else assert.match(sentence, wanted);
      const [own = ""] = sentence.split(" HTTPS_PROXY is set");
      assert.ok(
        DOCUMENTED.some(({ row, pattern }) => /connection failed/.test(row) && pattern.test(own)),
        own,
      );
      assert.deepEqual(waits, expected);
      assert.deepEqual([result.code, result.resumable], ["AGENT_QUERY_ERROR", true]);
    });
  }
});

test("a model that thinks gets its thoughts back with its calls, also after a resume", async () => {
  const journal = createMemoryJournal();
  const stop = new AbortController();
  // The rule of DeepSeek and Kimi.
  await using server = await modelServer("openai-compatible", ({ body }) => {
    const messages = body.messages as readonly {
      readonly tool_calls?: unknown;
      readonly reasoning_content?: string;
    }[];
    const calls = messages.filter((message) => message.tool_calls !== undefined);
    if (calls.some((message) => message.reasoning_content !== "I should look."))
      return {
        status: 400,
        body: '{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API."}}',
      };
    if (JSON.stringify(body).includes("Do closure.t.")) return CLOSING.streamed;
    return calls.length < 2
      ? { thought: "I should look.", calls: [{ name: "Read", input: { file_path: "a" } }] }
      : { output: { stepId: "initial.t", next_action: { action: "next" } } };
  });
  const { model, baseUrl } = server.target;
  const opus = { provider: "openai-compatible", model, baseUrl };
  let answers = 0;
  const begun = await begin(
    opus,
    {},
    {
      journal,
      signal: stop.signal,
      observe: ({ event }) => void (event.type === "step.answered" && ++answers === 2 && stop.abort()),
    },
  );
  assert.equal(begun.result.outcome, "interrupted", begun.result.reason);
  assert.equal(server.seen.length, 2);
  const { cwd, env } = begun.options;
  const ended = await resume({ run: begun.result.run!, cwd, env, journal });
  assert.equal(ended.success, true, ended.reason);
});

describe("docs/model-errors.md", () => {
  const said = ODDITIES.flatMap(({ says }) => says ?? []);

  test("lists every sentence", () => {
    assert.ok(DOCUMENTED.length > 10);
    for (const sentence of said)
      assert.ok(
        DOCUMENTED.some(({ pattern }) => pattern.test(sentence)),
        `not on the page: ${sentence}`,
      );
  });

  test("lists no other ones", () => {
    const others = DOCUMENTED.filter(
      ({ row, pattern }) => !said.some((one) => pattern.test(one)) && !ELSEWHERE.test(row),
    );
    assert.deepEqual(
      others.map(({ row }) => row),
      [],
    );
  });
});

/** Sentences about connections and requests, which are tested below and in ai-sdk.test.ts. */
const ELSEWHERE = /^the connection failed|^nothing was received|^the step offers/;
