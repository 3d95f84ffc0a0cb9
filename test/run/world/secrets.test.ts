/** What a run knows to be secret, by the public door: from the environment, the user's settings, servers and git. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { RunnerError, type Backend, type Journal, type TurnRequest } from "../../../src/engine/ports.ts";
import { createMemoryJournal, exportRun, load, run, runLoaded, type Entry } from "../../../src/run/index.ts";
import { SHAPES } from "../../boundaries/secrets.ts";
import { agentFiles, projectWith, stepTo } from "../project.ts";

const USAGE = { inputTokens: 1, outputTokens: 1, turns: 1, costUsd: null };
/** Put together here, so that no file holds anything that looks like one. */
const [REMOTE, DATABASE, PAIR] = ["canary-of-remote", "canary-of-database", "dXNlcjpjYW5hcnkx"];

/** Says this in small parts, and answers with it. */
function saying(text: string, size: number): Backend {
  const turn = async ({ onText, asker }: TurnRequest) => {
    for (let at = 0; at < text.length; at += size) onText?.(text.slice(at, at + size));
    const output = {
      stepId: asker.step,
      next_action: { action: "closing", reason: text, details: { target: text } },
    };
    return { kind: "reply" as const, text, calls: [], output, usage: USAGE };
  };
  return { spec: { id: "mine", options: { note: text } }, turn };
}

type Case = {
  readonly secret: string;
  readonly shown?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly files?: { readonly [path: string]: string };
  readonly runner?: object;
};

const basic = (text: string) => Buffer.from(text).toString("base64");
const plainKey = "canary of letters only";
const withHeader = (at: "models" | "providers", name: string, value: string) => {
  const headers = { [name]: value };
  const entry =
    at === "models" ? { corp: { provider: "openai", model: "x", headers } } : { openai: { headers } };
  return { "config/lockstep/config.json": JSON.stringify({ [at]: entry }) };
};
const CASES: { readonly [name: string]: Case } = {
  "a variable called like a secret": { secret: plainKey, env: { DB_PASSWORD: plainKey } },
  "a key that models.*.apiKeyEnv names": {
    secret: "canaryoflettersonly",
    env: { CORP_GATEWAY: "canaryoflettersonly" },
    files: {
      "config/lockstep/config.json": JSON.stringify({
        models: { corp: { provider: "openai", model: "x", apiKeyEnv: "CORP_GATEWAY" } },
      }),
    },
  },
  "a key that providers.*.apiKeyEnv names": {
    secret: "canaryoflettersonly",
    env: { CORP_GATEWAY: "canaryoflettersonly" },
    files: {
      "config/lockstep/config.json": JSON.stringify({ providers: { openai: { apiKeyEnv: "CORP_GATEWAY" } } }),
    },
  },
  "a variable that a header of a model names": {
    secret: "canaryoflettersonly",
    env: { CORP_GATEWAY: "canaryoflettersonly" },
    files: {
      "config/lockstep/config.json": JSON.stringify({
        models: { corp: { provider: "openai", model: "x", headers: { "X-Door": "open ${CORP_GATEWAY}" } } },
      }),
    },
  },
  "a header of a model that is written out": {
    secret: "canary of letters only",
    files: withHeader("models", "X-Door", "canary of letters only"),
  },
  "a header of a provider that is written out, without its scheme": {
    secret: "canaryoflettersonly",
    files: withHeader("providers", "Authorization", "Bearer canaryoflettersonly"),
  },
  "the password in a header that is written out": {
    secret: "canary-of-header",
    files: withHeader("providers", "Authorization", `Basic ${basic("me:canary-of-header")}`),
  },
  "what is written beside a variable in a header": {
    secret: "-canary-beside-it",
    env: { TEAM: "a" },
    files: withHeader("models", "X-Door", "scope-${TEAM}-canary-beside-it${TEAM}"),
  },
  "a variable that acp.pass names": {
    secret: "canaryoflettersonly",
    env: { AGENT_LOGIN: "canaryoflettersonly" },
    files: {
      "config/lockstep/config.json": JSON.stringify({ acp: { command: "x", pass: ["AGENT_LOGIN"] } }),
    },
  },
  "the header that a checkout leaves": {
    secret: basic("x-access-token:canary-of-checkout"),
    files: {
      ".git/config": `[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic ${basic("x-access-token:canary-of-checkout")}\n`,
    },
  },
  "the token in that header": {
    secret: "canary-of-checkout",
    files: {
      ".git/config": `[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic ${basic("x-access-token:canary-of-checkout")}\n`,
    },
  },
  "the same in a file that it includes": {
    secret: "canary-of-checkout",
    files: {
      ".git/config": '[includeIf "gitdir:/x"]\n\tpath = ../temp/credentials.config\n',
      "temp/credentials.config": `[http]\n\textraHeader = Authorization: Basic ${basic("x:canary-of-checkout")}\n`,
    },
  },
  "the same above the folder, in a worktree": {
    secret: "canary-of-checkout",
    files: {
      ".git": "gitdir: repo/worktrees/a\n",
      "repo/worktrees/a/commondir": "../..\n",
      "repo/config": `[http]\n\textraheader = authorization: bearer canary-of-checkout\n`,
    },
  },
  "a password in the address of a remote": {
    secret: REMOTE,
    files: { ".git/config": '[remote "origin"]\n\turl = https://me:' + REMOTE + "@git.example.com/x\n" },
  },
  "a header in the variables of git": {
    secret: "canary-of-checkout",
    env: { GIT_CONFIG_VALUE_0: `AUTHORIZATION: basic ${basic("x:canary-of-checkout")}` },
  },
  "a password in an address": {
    secret: DATABASE,
    env: { DATABASE_URL: `postgres://app:${DATABASE}@db/app` },
  },
  "a header of any case, known to nobody": {
    secret: PAIR,
    shown: `AUTHORIZATION: basic ${PAIR}`,
  },
  ...Object.fromEntries(Object.entries(SHAPES).map(([name, secret]) => [name, { secret }])),
};

describe("no secret is recorded, told or streamed", () => {
  for (const [name, { secret, shown = secret, env = {}, files = {}, runner = {} }] of Object.entries(CASES)) {
    test(name, async () => {
      const agent = agentFiles("spy", { "closure.a": stepTo("closure", { closing: null }) }, { runner });
      const cwd = projectWith({ ...agent, ...files });
      const said = `I found ${shown} in a file, ${"and went on with it. ".repeat(30)}`;
      for (const size of [1, 40]) {
        const journal = createMemoryJournal();
        const entries: Entry[] = [];
        let streamed = "";
        const result = await run({
          agent: "spy",
          cwd,
          journal,
          backend: saying(said, size),
          input: said,
          env: { LOCKSTEP_TRUST: "all", XDG_CONFIG_HOME: join(cwd, "config"), ...env },
          onText: (_, delta) => (streamed += delta),
          observe: (entry) => entries.push(entry),
        });
        assert.equal(result.outcome, "completed", result.reason ?? "");
        const { bundle } = await exportRun(journal, "@last");
        assert.equal(streamed, said.replace(secret, streamed.match(/\[redacted(?::\w+)?\]/)?.[0] ?? "?"));
        const surfaces = { streamed, result, entries, bundle };
        for (const [surface, value] of Object.entries(surfaces))
          assert.ok(!JSON.stringify(value).includes(secret), `${surface} holds it`);
      }
    });
  }

  test("and harmless words of such places stay", async () => {
    const cwd = projectWith({
      ...agentFiles("spy", { "closure.a": stepTo("closure", { closing: null }) }),
      ".git/config": '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://github.com/octo/demo\n',
      "config/lockstep/config.json": JSON.stringify({
        models: {
          corp: {
            provider: "openai",
            model: "x",
            apiKeyEnv: "CORP_GATEWAY",
            headers: { Accept: "application/json", "X-Mode": "disabled", "X-Short": "demo" },
          },
        },
      }),
    });
    const said = "postgres is disabled on localhost, see github.com/octo/demo as application/json";
    let streamed = "";
    const result = await run({
      agent: "spy",
      cwd,
      journal: createMemoryJournal(),
      backend: saying(said, 3),
      env: {
        LOCKSTEP_TRUST: "all",
        XDG_CONFIG_HOME: join(cwd, "config"),
        CORP_GATEWAY: "disabled",
        DB_PASSWORD: "postgres",
      },
      onText: (_, delta) => (streamed += delta),
    });
    assert.equal(result.outcome, "completed");
    assert.equal(streamed, said);
  });

  test("a pipe in the place of git's configuration holds nothing up", async () => {
    const cwd = projectWith({ ".git/config/x": "a folder, where a file should be" });
    const files = agentFiles("spy", { "closure.a": stepTo("closure", { closing: null }) });
    const { writeFiles } = await import("../project.ts");
    writeFiles(cwd, files);
    const result = await run({
      agent: "spy",
      cwd,
      journal: createMemoryJournal(),
      backend: saying("x", 1),
      env: {},
    });
    assert.equal(result.outcome, "completed");
  });
});

test("what is left in the stream when the model breaks off is told, without the secret", async () => {
  const cwd = projectWith(agentFiles("spy", { "closure.a": stepTo("closure", { closing: null }) }));
  const key = SHAPES["GitHub, personal"]!;
  const backend: Backend = {
    spec: { id: "mine", options: null },
    turn: async ({ onText }) => {
      onText?.(`the key is ${key}`);
      throw new Error(`broke off after ${key}`);
    },
  };
  let streamed = "";
  const common = { cwd, backend, env: {}, onText: (_: string, delta: string) => void (streamed += delta) };
  const result = await run({ agent: "spy", journal: createMemoryJournal(), ...common }).catch(
    (error: unknown) => String(error),
  );
  assert.match(streamed, /^(?:the key is \[redacted:github\])+$/);
  assert.ok(typeof result === "string" || !JSON.stringify(result).includes(key));
});

test("traces hold none either", async () => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    request.setEncoding("utf8").on("data", (part: string) => bodies.push(part));
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const keys = Object.values(SHAPES);
    const cwd = projectWith(agentFiles("spy", { "closure.a": stepTo("closure", { closing: null }) }));
    const result = await run({
      agent: "spy",
      cwd,
      journal: createMemoryJournal(),
      backend: saying(keys.join("\n"), 11),
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
      },
    });
    assert.equal(result.outcome, "completed");
    const sent = bodies.join("");
    // A machine under load may not get all of it out in time, and then says so.
    assert.ok(sent.includes("redacted:github") || result.warnings.length > 0, sent);
    for (const key of keys) assert.ok(!sent.includes(key), key);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("messages about what broke hold no secret that the flow names", async () => {
  const secret = "canaryoftheserver";
  const mcpServers = { docs: { command: "docs-server", env: { LOGIN: "${CORP_LOGIN}" } } };
  const boundaries = { allowedTools: ["Read"], permissionMode: "acceptEdits" };
  const steps = { "closure.a": stepTo("closure", { closing: null }) };
  const cwd = projectWith(agentFiles("spy", steps, { runner: { mcpServers, boundaries } }));
  const journal: Journal = {
    ...createMemoryJournal(),
    create: () => Promise.reject(new RunnerError("STATE_UNREADABLE", `the disk says ${secret}`)),
  };
  const env = { CORP_LOGIN: secret, LOCKSTEP_TRUST: "all" };
  const result = await run({ agent: "spy", cwd, journal, backend: saying("x", 1), env });
  assert.equal(result.outcome, "failed");
  assert.match(result.reason, /the disk says \[redacted\]/);
});

test("a variable that is set between two runs of one turn is a secret of the second", async () => {
  const cwd = projectWith(agentFiles("spy", { "closure.a": stepTo("closure", { closing: null }) }));
  const env: NodeJS.ProcessEnv = { LOCKSTEP_TRUST: "all", XDG_CONFIG_HOME: join(cwd, "config") };
  const loaded = await load("spy", { cwd });
  const recorded = async (said: string) => {
    const entries: Entry[] = [];
    const how = { journal: createMemoryJournal(), backend: saying(said, 8), env };
    await runLoaded(loaded, { cwd, ...how, observe: (entry) => entries.push(entry) });
    return JSON.stringify(entries);
  };
  // What is loaded by the first run of all takes turns of its own.
  await recorded("nothing");
  let isSameTurn = true;
  setImmediate(() => (isSameTurn = false));
  for (const secret of ["canary of the first run", "canary of the second run"]) {
    env["DB_PASSWORD"] = secret;
    assert.doesNotMatch(await recorded(`it is ${secret}`), /canary/);
  }
  assert.ok(isSameTurn, "there was a turn between the runs: this shows nothing");
});
