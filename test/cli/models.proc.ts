/** Names of models on the command line: listed, examined, asked, and what is said when one cannot be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelServer } from "../backends/model-server.ts";
import { createWorld, onlyDocument, replies, writeAgent, type World } from "./world.ts";

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
    /^local +openai-compatible\/qwen +LOCAL_KEY is not set +installed +\$0\.1 in, \$0\.2 out$/m,
  );
  assert.match(
    plain.stdout,
    /^opus +anthropic\/claude-opus-5-5 +ANTHROPIC_API_KEY +installed +\$4 in, \$20 out$/m,
  );
  assert.match(plain.stderr, /local: .* set LOCAL_KEY/);
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
  const entry = (baseUrl: string) => ({ provider: "openai-compatible", model: "m", baseUrl });
  configured(world, { models: { here: entry(`${server.url}/v1`), gone: entry("http://127.0.0.1:9/v1") } });
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
  assert.match(offline.get("model opus")?.fix ?? "", /set ANTHROPIC_API_KEY/);
  assert.equal(server.seen.length, 0);
  const online = await checks("--online");
  assert.match(online.get("model here")?.detail ?? "", /answers \d+/);
  assert.match(online.get("model gone")?.fix ?? "", /cannot be reached/);
});

test("a run without a key says which variable to set, and names the script that the agent brings", async () => {
  using world = createWorld();
  await world.lockstep(["init", "notes"]);
  const ran = await world.lockstep(["run", "notes", "--topic", "tides"]);
  assert.equal(ran.code, 3);
  assert.match(ran.stderr, /needs a key: set ANTHROPIC_API_KEY/);
  assert.match(ran.stderr, /can be run with its own script: lockstep run notes --topic tides --script/);
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
    /At the very most [\d,]+ tokens of output, \$[\d.]+ \(prices as of \d{4}-\d\d-\d\d\); input is not bounded/,
  );
  assert.match(ran.stderr, /· ai-sdk$/m);
  assert.equal(server.seen[0]?.body.model, "claude-haiku-5-5");
  assert.equal(server.seen[0]?.path, "/v1/messages");
  const explained = await world.lockstep(["explain", "notes"], around);
  assert.match(explained.stdout, /At the very most/);
});

test("a script and a model exclude each other", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const ran = await world.lockstep(["run", "notes", "--topic", "t", "--script", "x.json", "--model", "opus"]);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /leave --model and --backend out/);
});
