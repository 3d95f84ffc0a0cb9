/** Names of models on the command line: listed, examined, asked, and what is said when one cannot be. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { modelServer } from "../../backends/model-server.ts";
import { createWorld, onlyDocument, replies, writeAgent, type World } from "../world.ts";

function configured(world: World, config: object): void {
  world.writeHome(".config/lockstep/config.json", JSON.stringify(config));
}

test("models lists what each name means, its key, its package and its price", async () => {
  using world = createWorld();
  configured(world, {
    models: {
      local: {
        provider: "openai-compatible",
        model: "qwen",
        baseUrl: "http://127.0.0.1:9/v1",
        apiKeyEnv: "LOCAL_KEY",
      },
    },
    prices: { "openai-compatible/qwen": { input: 0.1, output: 0.2 } },
  });
  const env = { ANTHROPIC_API_KEY: "sk-ant-secret" };
  const [plain, json] = await Promise.all([
    world.lockstep(["models"], { env }),
    world.lockstep(["models", "--json"], { env }),
  ]);
  assert.equal(plain.code, 0, plain.stderr);
  assert.match(plain.stdout, /^NAME +MODEL +KEY +PACKAGE +PER MILLION TOKENS$/m);
  assert.match(
    plain.stdout,
    /^local +openai-compatible\/qwen +LOCAL_KEY is not set +installed +\$0\.1 in, \$0\.1 cached, \$0\.2 out$/m,
  );
  assert.match(
    plain.stdout,
    /^opus +anthropic\/claude-opus-5-5 +ANTHROPIC_API_KEY +installed +\$4 in, \$0\.2 cached, \$20 out$/m,
  );
  assert.match(plain.stderr, /local: .* set LOCAL_KEY/);
  assert.match(
    plain.stderr,
    /^Prices of \d{4}-\d\d-\d\d \(.*\)\. No price is known for .*anthropic\/claude-fable-5-2/m,
  );
  assert.ok(!(plain.stdout + plain.stderr + json.stdout).includes("sk-ant-secret"));
  const models = onlyDocument(json).models as readonly {
    readonly name: string;
    readonly why: string | null;
  }[];
  assert.deepEqual(
    models.map(({ name, why }) => [name, why === null]),
    [
      ["local", false],
      ["opus", true],
      ["sonnet", true],
      ["haiku", true],
    ],
  );
});

test("doctor says why a model cannot be asked, and with --online whether it answers", async () => {
  using world = createWorld();
  await using server = await modelServer("openai-compatible", []);
  const other = await modelServer("openai-compatible", []);
  await other[Symbol.asyncDispose]();
  const closed = new URL(other.url).port;
  const entry = (baseUrl: string) => ({ provider: "openai-compatible", model: "m", baseUrl });
  const models = { here: entry(`${server.url}/v1`), gone: entry(`http://127.0.0.1:${closed}/v1`) };
  configured(world, { models });
  const checks = async (...flags: readonly string[]) => {
    const ran = await world.lockstep(["doctor", "--json", ...flags]);
    assert.equal(ran.code, 0, ran.stderr);
    const list = onlyDocument(ran).checks as readonly {
      name: string;
      status: string;
      detail: string;
      fix: string | null;
    }[];
    return new Map(list.map((check) => [check.name, check]));
  };
  const offline = await checks();
  assert.equal(offline.get("model here")?.status, "ok");
  assert.match(offline.get("model here")?.detail ?? "", /, no known price/);
  assert.match(
    offline.get("prices")?.detail ?? "",
    /^of \d{4}-.*none is known for .*google\/gemini-4-carbon/,
  );
  assert.match(offline.get("model opus")?.fix ?? "", /set ANTHROPIC_API_KEY/);
  assert.equal(server.seen.length, 0);
  configured(world, { models, limits: { costUsd: 5 } });
  const limited = (await checks()).get("model here");
  assert.equal(limited?.status, "warn");
  assert.match(limited.fix ?? "", /add "openai-compatible\/m" to "prices" in \/.*config\.json$/);
  configured(world, { models });
  const online = await checks("--online");
  assert.match(online.get("model here")?.detail ?? "", /answers \d+/);
  const gone = online.get("model gone");
  const at = `127.0.0.1:${closed}`;
  assert.equal(
    gone?.detail,
    `gone, no known price, http://${at}/v1/models cannot be reached: connect ECONNREFUSED ${at}`,
  );
  assert.equal(
    gone?.fix,
    `Nothing accepts connections at ${at}: start the server, or correct the base address.`,
  );
});

test("doctor names models of agents that mean nothing, proxies, and what is wrong with config.json", async () => {
  using world = createWorld();
  writeAgent(world, "notes", {
    agent: ({ runner }) => Object.assign((runner as { flow: object }).flow, { defaultModel: "sonet" }),
  });
  const env = { HTTPS_PROXY: "http://127.0.0.1:9", OPENAI_BASE_URL: "localhost:1", OPENAI_API_KEY: "k" };
  const ran = await world.lockstep(["doctor"], { env });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(
    ran.stdout,
    /agent notes +its model "sonet" is not known here +fix: Unknown model "sonet"\. Did you mean "sonnet"\?/,
  );
  assert.match(
    ran.stdout,
    /^warn +model opus, sonnet, haiku +openai\/gpt\S+, openai\/gpt\S+, openai\/gpt\S+ +fix: It cannot/m,
  );
  assert.match(ran.stdout, /^ok +proxy +HTTPS_PROXY used; this machine is asked directly/m);
  assert.match(
    ran.stdout,
    /model opus, .*OPENAI_BASE_URL is "localhost:1", and must be an http or https address/,
  );
});

/** A proxy that tells names apart: everything that it is asked for is at one port of this machine. */
async function proxyTo(target: number): Promise<{ url: string; asked: string[] } & AsyncDisposable> {
  const asked: string[] = [];
  const server = createServer((_, response) => response.writeHead(500).end());
  server.on("connect", (request, socket: Socket) => {
    asked.push(request.url ?? "");
    const behind = connect(target, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      behind.pipe(socket).pipe(behind);
    });
    for (const end of [behind, socket]) end.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("models are asked through the proxy of the environment, but not those on this machine or in NO_PROXY", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const three = () => [replies.initial(), replies.continuation(), replies.closure()];
  await using server = await modelServer("openai-compatible", [...three(), ...three()]);
  const port = Number(new URL(server.url).port);
  await using proxy = await proxyTo(port);
  const entry = (baseUrl: string) => ({ provider: "openai-compatible", model: "m", baseUrl });
  configured(world, {
    models: {
      far: entry("http://model.invalid/v1"),
      near: entry(`${server.url}/v1`),
      spared: entry("http://spared..invalid/v1"),
    },
  });
  const env = { HTTP_PROXY: proxy.url, NO_PROXY: "spared..invalid" };
  const ask = (model: string) =>
    world.lockstep(["run", "notes", "--topic", "tides", "--model", model], {
      env,
      // Once is enough: it is not there.
      watch: (said, child) => void (/trying again/.test(said) && child.kill("SIGINT")),
    });
  const far = await ask("far");
  assert.equal(far.code, 0, far.stderr);
  assert.ok(proxy.asked.length > 0 && proxy.asked.every((name) => name === "model.invalid:80"));
  proxy.asked.length = 0;
  const near = await ask("near");
  assert.equal(near.code, 0, near.stderr);
  const spared = await ask("spared");
  assert.match(spared.stderr, /The name spared\.\.invalid cannot be resolved/);
  assert.deepEqual(proxy.asked, []);
});

test("a proxy that cannot be used is named with its variable, and nothing is retried", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const asked: string[] = [];
  const guarded = createServer();
  guarded.on("connect", ({ url = "" }, socket: Socket) => {
    asked.push(url);
    socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
  });
  await new Promise<void>((resolve) => guarded.listen(0, "127.0.0.1", resolve));
  const closed = await proxyTo(1);
  await closed[Symbol.asyncDispose]();
  const gone = new URL(closed.url).host;
  const port = (guarded.address() as AddressInfo).port;
  configured(world, {
    models: { far: { provider: "openai-compatible", model: "m", baseUrl: "http://model.invalid/v1" } },
  });
  const rows: readonly (readonly [value: string, code: number, says: RegExp])[] = [
    [
      `http://${gone}`,
      1,
      new RegExp(`The proxy in HTTP_PROXY is ${gone}\\. Nothing accepts connections there`),
    ],
    [
      `http://127.0.0.1:${port}`,
      1,
      /answers 407\. It requires a login: set HTTP_PROXY to http:\/\/ and USER:PASSWORD@127/,
    ],
    [
      `127.0.0.1:${port}`,
      3,
      /far cannot be asked through the proxy of your environment: HTTP_PROXY cannot be used: write it as http:\/\/HOST:PORT\./,
    ],
    [`socks5://127.0.0.1:${port}`, 3, /HTTP_PROXY is a SOCKS proxy, which is not supported: set it to/],
  ];
  try {
    for (const [value, code, says] of rows) {
      const ran = await world.lockstep(["run", "notes", "--topic", "tides", "--model", "far"], {
        env: { HTTP_PROXY: value },
      });
      assert.match(ran.stderr.replaceAll(/\s+/g, " "), says);
      assert.doesNotMatch(ran.stderr, /trying again|ExperimentalWarning/);
      assert.equal(ran.code, code, ran.stderr);
    }
    assert.deepEqual(asked, ["model.invalid:80"]);
  } finally {
    guarded.closeAllConnections();
    await new Promise((resolve) => guarded.close(resolve));
  }
});

test("variables that are set to nothing are not set", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  await using server = await modelServer("anthropic", [
    replies.initial(),
    replies.continuation(),
    replies.closure(),
  ]);
  configured(world, { providers: { anthropic: { baseUrl: server.url } } });
  const empty = Object.fromEntries(VARIABLES.map((name) => [name, ""]));
  const key = { ANTHROPIC_AUTH_TOKEN: "token-of-mine" };
  const run = ["run", "notes", "--topic", "tides", "--model", "sonnet"];
  const ran = await world.lockstep(run, { env: { ...empty, ...key } });
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(server.seen[0]?.headers.authorization, "Bearer token-of-mine");
  const [with_, without] = await Promise.all([
    world.lockstep(["models", "--json"], { env: empty }),
    world.lockstep(["models", "--json"]),
  ]);
  assert.equal(with_.stdout, without.stdout);
});

/** All that Lockstep or the packages it loads read. */
const VARIABLES = [
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_BASE_URL",
  "OPENAI_API_KEY",
  "OPENAI_BASE_URL",
  "GEMINI_API_KEY",
  "GOOGLE_GENERATIVE_AI_API_KEY",
  "LOCKSTEP_PACKAGES",
  "LOCKSTEP_TRUST",
  "XDG_CONFIG_HOME",
  "HTTPS_PROXY",
  "HTTP_PROXY",
  "https_proxy",
  "http_proxy",
  "NO_PROXY",
  "NODE_USE_ENV_PROXY",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "GITHUB_API_URL",
  "GITHUB_TOKEN",
  "GH_TOKEN",
  "GH_REPO",
  "GH_HOST",
  "GITHUB_REPOSITORY",
  "GITHUB_SERVER_URL",
];

test("a run without a key says which variable to set, and names the script that the agent brings", async () => {
  using world = createWorld();
  await world.lockstep(["init", "notes"]);
  const words = ["run", "notes", "--model", "sonnet", "--topic", "high tides", "--backend=ai-sdk"];
  const ran = await world.lockstep(words);
  assert.equal(ran.code, 3);
  assert.match(
    ran.stderr,
    /needs a key: set ANTHROPIC_API_KEY .*OPENAI_API_KEY or GEMINI_API_KEY will do as well/,
  );
  const [, command = ""] = /can be run with its own script: lockstep (run .+)$/m.exec(ran.stderr) ?? [];
  assert.match(command, /^run notes --topic 'high tides' --script /);
  const pasted = [...command.matchAll(/'([^']*)'|(\S+)/g)].map((word) => word[1] ?? word[2]!);
  const again = await world.lockstep(pasted);
  assert.equal(again.code, 0, again.stderr);
});

test("a run says before it begins what it may cost, and a model's words are asked for by name", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const deeds = [replies.initial(), replies.continuation(), replies.closure()];
  await using server = await modelServer("anthropic", deeds);
  const around = { env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: server.url } };
  const ran = await world.lockstep(
    ["run", "notes", "--topic", "tides", "--model", "haiku", "--verbose"],
    around,
  );
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(
    ran.stderr,
    /^Upper bound of the output: [\d,]+ tokens, \$[\d.,]+ \(prices of \d{4}-\d\d-\d\d\), if /m,
  );
  assert.match(ran.stderr, /· ai-sdk anthropic\/claude-haiku-5-5$/m);
  assert.equal(server.seen[0]?.body.model, "claude-haiku-5-5");
  assert.equal(server.seen[0]?.path, "/v1/messages");
  const explained = await world.lockstep(["explain", "notes"], around);
  assert.match(explained.stdout, /Upper bound of the output: /);
});

test("a limit that cannot be enforced is refused before the first call, unless the line allows that", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const usage = { input: 0, output: 0 };
  const deeds = [
    { ...replies.initial(), usage },
    { ...replies.continuation(), usage },
    { ...replies.closure(), usage },
  ];
  await using server = await modelServer("openai-compatible", deeds);
  const entry = { provider: "openai-compatible", model: "m", baseUrl: `${server.url}/v1` };
  configured(world, { models: { here: entry } });
  const line = ["run", "notes", "--topic", "tides", "--model", "here"];
  const refused = await world.lockstep([...line, "--max-cost", "0.01"]);
  assert.deepEqual([refused.code, server.seen.length], [3, 0], refused.stderr);
  assert.match(refused.stderr, /LIMIT_UNMETERED/);
  assert.match(
    refused.stderr,
    /limit of \$0\.01 cannot be enforced: the price of openai-compatible\/m is not known/,
  );
  assert.match(refused.stderr, /--allow-unmetered/);
  assert.doesNotMatch(refused.stderr, /Upper bound/);
  const stopped = await world.lockstep([...line, "--max-tokens", "10"]);
  assert.deepEqual([stopped.code, server.seen.length], [3, 1], stopped.stderr);
  const [, next = ""] = /next +lockstep (resume \w+ --allow-unmetered)$/m.exec(stopped.stderr) ?? [];
  const ended = await world.lockstep(next.split(" "));
  assert.deepEqual([ended.code, server.seen.length], [0, 3], ended.stderr);
  assert.match(ended.stderr, /usage +3 turns · tokens unknown · cost unknown$/m);
  assert.match(ended.stderr, /The limit of 10 tokens was not enforced/);
});

test("a limit that is reached names the flag that raises it, and that line goes on with the run", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const deeds = [replies.initial(), replies.continuation(), replies.closure()];
  await using server = await modelServer("anthropic", deeds);
  const around = { env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: server.url } };
  const ran = await world.lockstep(["run", "notes", "--topic", "tides", "--max-turns", "2"], around);
  assert.equal(ran.code, 4, ran.stderr);
  const [, next = ""] = /next +lockstep (resume \w+ --max-turns 4)$/m.exec(ran.stderr) ?? [];
  const ended = await world.lockstep(next.split(" "), around);
  assert.equal(ended.code, 0, ended.stderr);
});

test("a script and a model exclude each other", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const ran = await world.lockstep(["run", "notes", "--topic", "t", "--script", "x.json", "--model", "opus"]);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /leave out --model and --backend/);
});
