/** Names of models: what each means, where it is, and what is said when it cannot be asked. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createMemoryJournal, resume, run } from "../../../src/run/index.ts";
import { readConfig } from "../../../src/run/world/config.ts";
import { surveyModels } from "../../../src/run/world/model-survey.ts";
import { findModel, keyIn, misspelledModel, whyNot, withVersion } from "../../../src/run/world/models.ts";
import { configFolder } from "../../../src/run/world/project.ts";
import { modelServer, type Seen } from "../../backends/model-server.ts";
import { agentFiles, projectWith } from "../project.ts";
import { machineFiles } from "../stage-project.ts";

const FILES = agentFiles("t", {
  "initial.t": { kind: "work", intents: ["next"], transitions: { next: { target: "closure.t" } } },
  "closure.t": {
    kind: "closure",
    intents: ["closing"],
    transitions: { closing: { target: null } },
    more: { model: "small" },
  },
});
const answers = (seen: Seen) => {
  const isClosing = JSON.stringify(seen.body).includes("Do closure.t.");
  const [stepId, action] = isClosing ? ["closure.t", "closing"] : ["initial.t", "next"];
  return { output: { stepId, next_action: { action } } };
};

/** A config folder with this file in it, and an environment that leads there. */
function home(config: unknown, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const text = typeof config === "string" ? config : JSON.stringify(config);
  return { XDG_CONFIG_HOME: projectWith({ "lockstep/config.json": text }), ...env };
}
const meaning = (name: string, config: unknown, env: NodeJS.ProcessEnv = {}) =>
  findModel(name, { config: readConfig(home(config)), env });

test("config.json may begin with a byte order mark", () => {
  const config = `\uFEFF${JSON.stringify({ models: { mine: "ollama/qwen" } })}`;
  assert.equal(meaning("mine", config).ref, "ollama/qwen");
});

test("a name means what the user says, else a word, a provider's model, or a family", () => {
  const ANTHROPIC = { ANTHROPIC_API_KEY: "k" };
  const OPENAI = { OPENAI_API_KEY: "k" };
  const config = {
    models: {
      opus: "openai/gpt-x",
      mine: "opus",
      near: { provider: "ollama", model: "qwen" },
      far: "near",
      sonnet: "sonnet",
      "ollama/x": "ollama/x",
    },
  };
  const rows: readonly (readonly [string, unknown, NodeJS.ProcessEnv, string])[] = [
    ["opus", {}, {}, "anthropic/claude-opus-5-5"],
    ["opus", {}, ANTHROPIC, "anthropic/claude-opus-5-5"],
    ["sonnet", {}, { ...ANTHROPIC, ...OPENAI }, "anthropic/claude-sonnet-5-5"],
    ["sonnet", {}, OPENAI, "openai/gpt-6.1-terra"],
    ["haiku", {}, { GEMINI_API_KEY: "k" }, "google/gemini-flash-lite-latest"],
    ["haiku", {}, { ...OPENAI, ANTHROPIC_API_KEY: "" }, "openai/gpt-6-luna"],
    ["opus", config, ANTHROPIC, "openai/gpt-x"],
    ["mine", config, {}, "openai/gpt-x"],
    ["near", config, {}, "near"],
    ["far", config, {}, "near"],
    ["sonnet", config, OPENAI, "openai/gpt-6.1-terra"],
    ["ollama/x", config, {}, "ollama/x"],
    ["haiku", {}, { ANTHROPIC_AUTH_TOKEN: "t", OPENAI_API_KEY: "k" }, "anthropic/claude-haiku-5-5"],
    ["haiku", {}, { ANTHROPIC_AUTH_TOKEN: " ", OPENAI_API_KEY: "k" }, "openai/gpt-6-luna"],
    ["claude-3-haiku-20240307", {}, {}, "anthropic/claude-3-haiku-20240307"],
    ["gpt-4o", {}, {}, "openai/gpt-4o"],
    ["o4-mini", {}, {}, "openai/o4-mini"],
    ["gemini-2.5-pro", {}, {}, "google/gemini-2.5-pro"],
    ["openai-chat/gpt-4o", {}, {}, "openai-chat/gpt-4o"],
    ["ollama/hf.co/some/model", {}, {}, "ollama/hf.co/some/model"],
  ];
  for (const [name, said, env, ref] of rows) assert.equal(meaning(name, said, env).ref, ref, name);
  // A provider alone is not a model.
  // A family is known by how its names begin.
  for (const name of ["openai", "ollama", "anthropic", "my-gpt-4", "no1", "xclaude-3", "a-gemini-2"])
    assert.throws(() => meaning(name, {}), { code: "NO_BACKEND" }, name);
});

test("a name is taken for a misspelling only of what it is nearly", () => {
  const env = home({ models: { drafter: "opus" } });
  const rows: readonly (readonly [string, string | null])[] = [
    ["opus", null],
    ["drafter", null],
    ["draftr", "drafter"],
    ["sonet", "sonnet"],
    ["anthropik/x/y", "anthropic/x/y"],
    ["anthropic/x", null],
    ["somebody/x", null],
    ["nothing-like-it", null],
  ];
  for (const [name, meant] of rows) assert.equal(misspelledModel(name, env), meant, name);
  // Settings that cannot be read are not what is asked about.
  assert.equal(misspelledModel("sonet", home("{")), "sonnet");
});

test("a key is taken without the space around it", () => {
  assert.equal(keyIn(["A", "B"], { A: " ", B: " key\n" }), "key");
  assert.equal(keyIn(["A", "B"], { A: "first", B: "key" }), "first");
  assert.equal(keyIn(["A"], {}), undefined);
});

test("an address comes from the user's file, else from their environment, else it is the provider's", () => {
  const url = (name: string, config: unknown, env: NodeJS.ProcessEnv) => meaning(name, config, env).baseUrl;
  const entry = { provider: "anthropic", model: "m", baseUrl: "https://gate.example/anthropic" };
  assert.equal(url("opus", {}, {}), "https://api.anthropic.com/v1");
  assert.equal(url("opus", {}, { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" }), "http://127.0.0.1:1");
  assert.equal(
    url("x", { models: { x: entry } }, { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" }),
    entry.baseUrl,
  );
  assert.equal(url("openai-compatible/x", {}, {}), null);
  for (const empty of ["", " "]) {
    assert.equal(url("opus", {}, { ANTHROPIC_BASE_URL: empty }), "https://api.anthropic.com/v1");
    assert.equal(url("openai/x", {}, { OPENAI_BASE_URL: empty }), "https://api.openai.com/v1");
  }
  const providers = { ollama: { baseUrl: "http://far.example/v1" }, openai: { baseUrl: "http://o.example" } };
  assert.equal(url("ollama/x", { providers }, {}), "http://far.example/v1");
  assert.equal(url("openai/x", { providers }, { OPENAI_BASE_URL: "http://127.0.0.1:1" }), "http://o.example");
  const nearer = { provider: "ollama", model: "m", baseUrl: "http://near.example/v1" };
  assert.equal(url("x", { providers, models: { x: nearer } }, {}), "http://near.example/v1");
});

test("one address serves Lockstep and programs that add the version themselves", () => {
  const rows: readonly (readonly [Parameters<typeof withVersion>[0], string, string])[] = [
    ["anthropic", "https://a.example", "https://a.example/v1"],
    ["anthropic", "https://a.example/", "https://a.example/v1"],
    ["anthropic", "https://a.example/v1/", "https://a.example/v1"],
    ["anthropic", "https://a.example/api/anthropic", "https://a.example/api/anthropic/v1"],
    [
      "anthropic",
      "https://a.example/v1/account/gateway/anthropic",
      "https://a.example/v1/account/gateway/anthropic/v1",
    ],
    ["anthropic", "https://a.example/api/v2", "https://a.example/api/v2"],
    ["google", "https://g.example", "https://g.example/v1beta"],
    ["google", "https://g.example/v1beta", "https://g.example/v1beta"],
    ["google", "https://g.example/v1alpha", "https://g.example/v1alpha"],
    ["ollama", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"],
    ["ollama", "http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"],
    ["openai", "https://o.example", "https://o.example"],
    ["openai-compatible", "https://c.example/inference/", "https://c.example/inference"],
  ];
  for (const [provider, url, asked] of rows) assert.equal(withVersion(provider, url), asked, url);
});

const PASSWORD_ADDRESS = ["http://me", "word@x"].join(":");

describe("what is said when a model cannot be asked", () => {
  const rows: readonly (readonly [string, string, unknown, NodeJS.ProcessEnv, RegExp])[] = [
    [
      "no key",
      "opus",
      {},
      { ANTHROPIC_API_KEY: "" },
      /needs a key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN in your environment \(OPENAI_API_KEY or GEMINI_API_KEY will do as well, for a model of theirs\)/,
    ],
    [
      "no key for a name that only one provider has",
      "claude-x",
      {},
      {},
      /needs a key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN in your environment, or map/,
    ],
    [
      "no variable for a header",
      "x",
      { models: { x: { provider: "ollama", model: "m", headers: { "X-Team": "a ${TEAM_KEY}" } } } },
      { TEAM_KEY: "" },
      /The model x needs TEAM_KEY for its headers in your config\.json/,
    ],
    [
      "an address without a scheme",
      "openai/x",
      {},
      { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "localhost:4000" },
      /cannot be asked: OPENAI_BASE_URL is "localhost:4000", and must be an http or https address, such as http:\/\/localhost:4000\./,
    ],
    [
      "an address that is not one, and no key",
      "opus",
      {},
      { ANTHROPIC_BASE_URL: "ftp://x" },
      /ANTHROPIC_BASE_URL is "ftp:\/\/x", and must be an http or https address\. It also needs a key: set ANTHROPIC_API_KEY/,
    ],
    [
      "an address with a password",
      "opus",
      {},
      { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: PASSWORD_ADDRESS },
      /ANTHROPIC_BASE_URL must not hold a user name or a password/,
    ],
    [
      "an address without a scheme and with a key",
      "opus",
      {},
      { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: "h.example/v1?key=word" },
      /cannot be asked: ANTHROPIC_BASE_URL must be an http or https address, such as http:\/\/h\.example\/v1\.$/,
    ],
    [
      "an address with a key",
      "openai/x",
      {},
      { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "https://h.example/v1#word" },
      /cannot be asked: OPENAI_BASE_URL must end with its path: leave out what begins with \? or #\.$/,
    ],
    [
      "an address without a scheme and with a password",
      "opus",
      {},
      { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: PASSWORD_ADDRESS.slice("http://".length) },
      /cannot be asked: ANTHROPIC_BASE_URL must be an http or https address\.$/,
    ],
    [
      "a name that means itself",
      "local",
      { models: { local: "local" } },
      {},
      /"local" refers to itself .*\(local → local\)/,
    ],
    [
      "names that lead round",
      "a",
      { models: { a: "b", b: "c", c: "b" } },
      {},
      /"a" refers to itself .*\(a → b → c → b\)/,
    ],
    ["a slip in a provider", "antropic/claude-x", {}, {}, /Did you mean "anthropic\/claude-x"\?/],
    ["no key of Gemini", "google/x", {}, {}, /set GEMINI_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY/],
    [
      "no key of one's own",
      "x",
      { models: { x: { provider: "openai", model: "m", apiKeyEnv: "MY_KEY" } } },
      { OPENAI_API_KEY: "k" },
      /set MY_KEY/,
    ],
    ["no address", "openai-compatible/x", {}, {}, /has no URL: set its baseUrl/],
    ["a slip", "sonet", {}, {}, /Unknown model "sonet"\. Did you mean "sonnet"\?/],
    [
      "a slip in a name of one's own",
      "locl",
      { models: { local: "ollama/x" } },
      {},
      /Did you mean "local"\?/,
    ],
    [
      "a slip in the file",
      "x",
      { models: { x: "antropic/claude" } },
      {},
      /"x" means "antropic\/claude" in your config\.json, which is not the name of a model\. Did you mean "anthropic\/claude"\?/,
    ],
  ];
  for (const [name, model, config, env, says] of rows) {
    test(name, async () => {
      const cwd = projectWith(FILES);
      const result = await run({
        agent: "t",
        cwd,
        model,
        env: home(config, env),
        journal: createMemoryJournal(),
      });
      assert.deepEqual([result.code, result.exitCode], ["NO_BACKEND", 3], result.reason);
      assert.match(result.reason, says);
    });
  }

  test("a backend that is not there", async () => {
    const result = await run({ agent: "t", cwd: projectWith(FILES), use: "gpt", env: home({}) });
    assert.deepEqual([result.code, result.exitCode], ["NO_BACKEND", 3]);
    assert.match(result.reason, /Unknown backend "gpt"\. Use one of: scripted, ai-sdk/);
  });

  const files: readonly (readonly [string, RegExp])[] = [
    ["{", /config\.json: .*JSON/],
    ["[]", /must be an object/],
    ['{"model": {}}', /unknown key "model"\. Did you mean "models"\? Known keys: models/],
    ['{"$schema": "x", "providers": {"open": {}}}', /providers: unknown key "open"\./],
    ['{"providers": {"openai": {"model": "m"}}}', /providers\.openai: unknown key "model"/],
    ['{"providers": []}', /providers must be an object/],
    [
      '{"models": {"x": {"provider": "openai", "model": "m", "baseURL": "http://x"}}}',
      /Did you mean "baseUrl"\?/,
    ],
    ['{"providers": {"ollama": {"baseUrl": "localhost:1"}}}', /such as http:\/\/localhost:1/],
    ['{"providers": {"ollama": {"baseUrl": "http://x/v1?a=b"}}}', /leave out what begins with \? or #/],
    ['{"providers": {"ollama": {"temperature": "hot"}}}', /temperature must be a number of 0 or more/],
    ['{"providers": {"ollama": {"temperature": -1}}}', /temperature must be a number of 0 or more/],
    [
      '{"providers": {"ollama": {"reasoningEffort": "much"}}}',
      /reasoningEffort must be one of none, minimal, low/,
    ],
    ['{"providers": {"ollama": {"stream": 0}}}', /stream must be true or false/],
    ['{"providers": {"ollama": {"headers": "x"}}}', /headers must be an object/],
    ['{"providers": {"ollama": {"headers": {"a b": "x"}}}}', /"a b" is not a valid header name/],
    ['{"providers": {"ollama": {"headers": {"Host": "x"}}}}', /Lockstep itself sets Host/],
    ['{"providers": {"ollama": {"headers": {"x": "a\\nb"}}}}', /headers\.x must be a text of printable/],
    ['{"providers": {"ollama": {"extraBody": []}}}', /extraBody must be an object/],
    ['{"providers": {"ollama": {"extraBody": {"model": "y"}}}}', /extraBody: Lockstep itself sets "model"/],
    [
      '{"models": {"x": {"provider": "openai", "model": "m", "apiKey": "sk-1"}}}',
      /models\.x: unknown key "apiKey"/,
    ],
    ['{"models": {"x": {"provider": "open", "model": "m"}}}', /models\.x\.provider must be one of/],
    [
      '{"models": {"x": {"provider": "openai", "model": "m", "baseUrl": "file:///etc"}}}',
      /baseUrl must be an http/,
    ],
    ...["sk-abc", "-KEY", "KEY-", "A KEY", "", 1].map((name): readonly [string, RegExp] => [
      JSON.stringify({ models: { x: { provider: "openai", model: "m", apiKeyEnv: name } } }),
      /name of an environment variable/,
    ]),
    [
      '{"models": {"x": {"provider": "openai", "model": "m", "timeoutMs": 0}}}',
      /timeoutMs must be a whole number/,
    ],
    [
      '{"models": {"x": {"provider": "openai", "model": "m", "toolCalling": "no"}}}',
      /toolCalling must be true or false/,
    ],
    ['{"prices": {"openai/x": {"input": 1}}}', /prices\.openai\/x\.output must be a number/],
    ['{"defaultBackend": 1}', /defaultBackend must be a text/],
    ['{"models": {"x": 1}}', /models\.x must be "provider\/model" or an object/],
    ['{"models": {"x": {"provider": "openai"}}}', /models\.x\.model must be a text: The provider's name/],
    ['{"acp": {"command": "a", "args": [1]}}', /acp\.args must be a list of texts: Its arguments\. See/],
    ['{"network": 5}', /network: it is none, usual, all/],
    ['{"network": ["a.org", "*"]}', /network: "\*" cannot be allowed/],
    ['{"env": ["OPENAI_API_KEY"]}', /env must not contain OPENAI_API_KEY/],
    ['{"notify": []}', /config\.json: notify must be an object\. See .*notify\.md/],
    [
      '{"notify": {"me": {"command": ["x"], "on": ["ended"]}}}',
      /notify\.me\.on must be a list of: question, end, limit\. See .*notify\.md/,
    ],
    ['{"fleet": {"queues": 1}}', /fleet\.queues must be a list of texts: .*fleet\.md/],
    ['{"safeFolders": [1]}', /safeFolders must be a list of texts/],
    ['{"fleet": {"leaseSeconds": 5}}', /fleet\.leaseSeconds must be/],
    ['{"fleet": {"stretchHours": 21}}', /fleet\.stretchHours must be a number above 0, 20 at most/],
    ['{"fleet": {"trust": "all"}}', /fleet\.trust must be "submitted" or a list of digests/],
    ['{"limits": {"costUsd": 0}}', /limits\.costUsd must be a number above 0/],
  ];
  for (const [text, says] of files) {
    test(`a file that says ${text}`, async () => {
      const result = await run({ agent: "t", cwd: projectWith(FILES), env: home(text) });
      assert.deepEqual([result.code, result.exitCode], ["CONFIG_INVALID", 3]);
      assert.match(result.reason, says);
    });
  }
});

for (const text of [
  '{"providers": {"openai": {"headers": {"Authorization": Bearer abc-1}}}}',
  '{"providers": {"openai": {"headers": {"Authorization": "Bearer abc-1" "x": 1}}}}',
  '{"providers": {"openai": {"headers": {"Authorization": "Bearer abc-1}}}}',
  "abc-1 is not JSON",
])
  test(`a config.json that is not JSON is reported by its place, and without what it holds: ${text}`, () => {
    assert.throws(
      () => readConfig(home(text)),
      (error: Error) => {
        assert.match(error.message, /config\.json: it is not valid JSON at line 1, column \d+: /);
        assert.doesNotMatch(error.message, /Bearer|abc-1/);
        return true;
      },
    );
  });

test("a project cannot pass for the user's home", () => {
  assert.equal(configFolder({}), null);
  assert.equal(configFolder({ XDG_CONFIG_HOME: "config" }), null);
  assert.equal(configFolder({ HOME: "." }), null);
  assert.equal(configFolder({ HOME: "/home/me", XDG_CONFIG_HOME: "config" }), "/home/me/.config/lockstep");
});

test("each step asks the model it names, --model overrides them all, and a resume asks the same again", async () => {
  await using server = await modelServer("openai-compatible", answers);
  const { baseUrl } = server.target;
  const entry = (model: string) => ({ provider: "openai-compatible", model, baseUrl });
  const env = home({ models: { opus: entry("large"), small: entry("little"), other: entry("another") } });
  const cwd = projectWith(FILES);
  const models = () => server.seen.map(({ body }) => body.model);

  const plain = await run({ agent: "t", cwd, env, journal: createMemoryJournal() });
  assert.equal(plain.success, true, plain.reason);
  assert.deepEqual(models(), ["large", "little"]);

  const journal = createMemoryJournal();
  const stop = new AbortController();
  const observe = ({ event }: { readonly event: { readonly type: string } }) =>
    event.type === "step.answered" && stop.abort();
  const begun = await run({ agent: "t", cwd, env, journal, model: "other", signal: stop.signal, observe });
  assert.equal(begun.outcome, "interrupted");
  assert.deepEqual(models().slice(2), ["another"]);
  const [first] = await journal.read(begun.run!);
  assert.deepEqual(first?.event.type === "run.started" && first.event.backend, {
    id: "ai-sdk",
    options: { models: { opus: "other", small: "other" } },
    models: ["openai-compatible/another"],
  });
  const ended = await resume({ run: begun.run!, cwd, env, journal });
  assert.equal(ended.success, true, ended.reason);
  assert.deepEqual(models().slice(3), ["another"]);
});

test("a run goes on with another model when one is named, and keeps to it", async () => {
  await using server = await modelServer("openai-compatible", (seen) =>
    seen.body.model === "broken" ? { status: 400 } : answers(seen),
  );
  const { baseUrl } = server.target;
  const entry = (model: string) => ({ provider: "openai-compatible", model, baseUrl });
  const env = home({ models: { opus: entry("broken"), small: "opus", good: entry("good") } });
  const cwd = projectWith(FILES);
  const journal = createMemoryJournal();
  const begun = await run({ agent: "t", cwd, env, journal });
  assert.deepEqual([begun.code, begun.resumable], ["AGENT_QUERY_ERROR", true]);
  const ended = await resume({ run: begun.run!, cwd, env, journal, model: "good" });
  assert.equal(ended.success, true, ended.reason);
  const backends = (await journal.read(begun.run!)).flatMap(({ event }) =>
    event.type === "run.resumed" ? [event.backend?.options] : [],
  );
  assert.deepEqual(backends, [{ models: { opus: "good", small: "good" } }]);
});

test("settings of a provider hold for its models, and those of a model come first", async () => {
  await using server = await modelServer("openai-compatible", answers);
  const { baseUrl } = server.target;
  const shared = {
    baseUrl,
    apiKeyEnv: "SHARED",
    temperature: 0.5,
    reasoningEffort: "low",
    headers: { "X-Team": "${TEAM}-blue", "X-Room": "one" },
    extraBody: { seed: 1 },
  };
  const small = {
    provider: "openai-compatible",
    model: "little",
    apiKeyEnv: "OWN",
    temperature: 0,
    headers: { "X-Room": "two" },
    extraBody: { top_k: 2 },
  };
  const env = home(
    { models: { opus: "openai-compatible/large", small }, providers: { "openai-compatible": shared } },
    { SHARED: "shared-key", OWN: "own-key", TEAM: "light" },
  );
  const result = await run({ agent: "t", cwd: projectWith(FILES), env, journal: createMemoryJournal() });
  assert.equal(result.success, true, result.reason);
  assert.deepEqual(
    server.seen.map(({ headers, body }) => [
      body.model,
      headers.authorization,
      headers["x-team"],
      headers["x-room"],
      body.temperature,
      body.reasoning_effort,
      body.seed,
      body.top_k,
    ]),
    [
      ["large", "Bearer shared-key", "light-blue", "one", 0.5, "low", 1, undefined],
      ["little", "Bearer own-key", "light-blue", "two", 0, "low", undefined, 2],
    ],
  );
});

test("of two keys the first is sent, and what a model wants back with its calls is sent after a resume", async () => {
  await using server = await modelServer("google", (seen) =>
    server.seen.length > 1
      ? answers(seen)
      : { thought: "hm", calls: [{ name: "Glob", input: { pattern: "*" } }] },
  );
  const { provider, baseUrl } = server.target;
  const opus = { provider, model: "g", baseUrl };
  const keys = { GEMINI_API_KEY: "first-key", GOOGLE_GENERATIVE_AI_API_KEY: "second-key" };
  const env = home({ models: { opus, small: "opus" } }, keys);
  const cwd = projectWith(FILES);
  const journal = createMemoryJournal();
  const stop = new AbortController();
  const observe = () => server.seen.length > 0 && stop.abort();
  const begun = await run({ agent: "t", cwd, env, journal, signal: stop.signal, observe });
  assert.equal(begun.outcome, "interrupted", begun.reason);
  const ended = await resume({ run: begun.run!, cwd, env, journal });
  assert.equal(ended.success, true, ended.reason);
  assert.ok(server.seen.every(({ headers }) => headers["x-goog-api-key"] === "first-key"));
  assert.match(JSON.stringify(server.seen[1]!.body), /"thoughtSignature":"signed:hm"/);
});

test("a journal that names an address leads nowhere", async () => {
  const journal = createMemoryJournal();
  const cwd = projectWith(FILES);
  const env = home({}, { ANTHROPIC_API_KEY: "k" });
  const backend = { id: "ai-sdk", options: { models: { opus: "http://evil.example/v1", small: "opus" } } };
  const begun = await run({
    agent: "t",
    cwd,
    env,
    journal,
    backend: {
      spec: backend,
      turn: () => Promise.resolve({ kind: "fault", fault: { kind: "other", message: "x" } }),
    },
  });
  const result = await resume({ run: begun.run!, cwd, env, journal });
  assert.deepEqual([result.code, result.exitCode], ["NO_BACKEND", 3]);
  assert.match(result.reason, /Unknown model "http:\/\/evil/);
});

test("the list of names tells what is missing, and never a key", () => {
  const env = home({ models: { local: "ollama/qwen" } }, { OPENAI_API_KEY: "sk-secret" });
  const { rows } = surveyModels(env);
  assert.deepEqual(
    rows.map(({ name, ref, why }) => [name, ref, why]),
    [
      ["local", "ollama/qwen", null],
      ["opus", "openai/gpt-6.1-sol", null],
      ["sonnet", "openai/gpt-6.1-terra", null],
      ["haiku", "openai/gpt-6-luna", null],
    ],
  );
  assert.ok(!JSON.stringify(rows).includes("sk-secret"));
  assert.equal(whyNot(findModel("local", { config: readConfig(env), env }), env), null);
});

test("the list of models repeats no key and no password of an address", () => {
  const rows: readonly (readonly [given: string, listed: string | null])[] = [
    ["https://h.example/@team/v1", "https://h.example/@team/v1"],
    ["https://h.example/v1?key=word@x", "https://h.example/v1"],
    ["h.example/v1#word", "h.example/v1"],
    [PASSWORD_ADDRESS, null],
    [PASSWORD_ADDRESS.slice("http://".length), null],
    [PASSWORD_ADDRESS.replace("word", "wo?rd"), null],
  ];
  for (const [given, listed] of rows) {
    const found = surveyModels(home({}, { ANTHROPIC_BASE_URL: given, ANTHROPIC_API_KEY: "k" })).rows;
    assert.equal(found.find(({ name }) => name === "opus")?.baseUrl, listed, given);
    assert.ok(!/[:=#]wo/.test(JSON.stringify(found)), given);
  }
});

describe("a model that cannot call tools", () => {
  const weak = async (wire: "anthropic" | "openai-compatible") => {
    const server = await modelServer(wire, answers);
    const { provider, baseUrl } = server.target;
    const entry = (model: string, more: object = {}) => ({
      provider,
      model,
      baseUrl,
      apiKeyEnv: "K",
      ...more,
    });
    const models = { opus: entry("able"), small: entry("plain", { toolCalling: false }) };
    return { server, env: home({ models }, { K: "k" }) };
  };
  const toolsOf = (seen: Seen) =>
    ((seen.body.tools ?? []) as unknown as { readonly name?: string }[]).map((tool) => tool.name ?? "");

  for (const wire of ["anthropic", "openai-compatible"] as const) {
    test(`is not offered any over ${wire}, where another is`, async () => {
      const { server, env } = await weak(wire);
      await using _ = server;
      const result = await run({ agent: "t", cwd: projectWith(FILES), env, journal: createMemoryJournal() });
      assert.equal(result.success, true, result.reason);
      assert.deepEqual(
        server.seen.map((seen) => [seen.body.model, toolsOf(seen).length > 0]),
        [
          ["able", true],
          ["plain", false],
        ],
      );
    });
  }

  const stages = (defaultModel: string) =>
    projectWith(machineFiles({ stages: { a: {} }, agent: { runner: { flow: { defaultModel } } } }));
  test("is refused for a stage before anything is asked, whoever names it", async () => {
    const { server, env } = await weak("openai-compatible");
    await using _ = server;
    const journal = createMemoryJournal();
    const refused = await run({ agent: "m", cwd: stages("small"), env, journal });
    assert.deepEqual([refused.code, refused.exitCode, refused.run], ["MissingCapability", 3, null]);
    assert.match(refused.reason, /Stage "a" .* the model "small" behind "ai-sdk" cannot call tools/);
    const named = await run({ agent: "m", cwd: stages("opus"), env, journal, model: "small" });
    assert.equal(named.code, "MissingCapability");
    assert.equal(server.seen.length, 0);
  });
});
