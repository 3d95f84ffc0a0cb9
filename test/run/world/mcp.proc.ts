/**
 * Servers of tools in runs that go in by the public door: real processes, real HTTP on loopback. Needs
 * @modelcontextprotocol/client in the folder that LOCKSTEP_PACKAGES names.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  createMemoryJournal,
  resume,
  run,
  type DriveOptions,
  type Entry,
  type ScriptReply,
} from "../../../src/run/index.ts";
import { load } from "../../../src/run/load.ts";
import { openServers } from "../../../src/run/world/mcp.ts";
import { modelServer } from "../../backends/model-server.ts";
import { hasBwrap, NO_BWRAP } from "../../boundaries/confined.ts";
import { alive } from "../../alive.ts";
import { needs } from "../../needs.ts";
import { httpTools, type HttpKind } from "../mcp-http.ts";
import { agentFiles, projectWith, type StepFile } from "../project.ts";
import { machineFiles } from "../stage-project.ts";
import { until } from "../../until.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const { skip } = needs(
  existsSync(join(packages, "node_modules/@modelcontextprotocol/client/package.json")),
  "@modelcontextprotocol/client not installed",
);
const SERVER = readFileSync(new URL("../../fixtures/mcp/server.mjs", import.meta.url), "utf8");
/** Written apart, so that no tool takes it for a secret. */
const VALUE = ["a", "value", "of", "mine"].join("-");

const good = (how = "good", more: object = {}) => ({
  command: process.execPath,
  args: ["server.mjs", how],
  env: { MCP_LOG: "log.txt" },
  ...more,
});
const closing: ScriptReply = { output: { stepId: "closure.t", next_action: { action: "closing" } } };
const call = (tool: string, input: object = {}): ScriptReply => ({
  calls: [{ name: `mcp__t__${tool}`, input }] as NonNullable<ScriptReply["calls"]>,
});
const STEP: StepFile = { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } };

type Agent = {
  readonly servers: object;
  readonly tools?: readonly string[];
  readonly mode?: string;
  readonly sandbox?: object;
};

function projectOf({ servers, tools = ["mcp__t__*"], mode = "acceptEdits", sandbox }: Agent): string {
  const boundaries = { allowedTools: tools, permissionMode: mode, ...(sandbox && { sandbox }) };
  const runner = { boundaries, mcpServers: servers };
  return projectWith({ ...agentFiles("t", { "closure.t": STEP }, { runner }), "server.mjs": SERVER });
}

const ENV = { PATH: process.env.PATH, HOME: "/nowhere", LOCKSTEP_PACKAGES: packages };
const TRUSTING = { ...ENV, LOCKSTEP_TRUST: "all" };

/** The user's own settings, in a folder that the environment leads to. */
function settings(config: object): NodeJS.ProcessEnv {
  return { XDG_CONFIG_HOME: projectWith({ "lockstep/config.json": JSON.stringify(config) }) };
}

async function play(agent: Agent, script: readonly ScriptReply[], more: Partial<DriveOptions> = {}) {
  const cwd = projectOf(agent);
  const journal = createMemoryJournal();
  const result = await run({ agent: "t", cwd, journal, env: TRUSTING, script, ...more });
  const entries = result.run === null ? [] : await journal.read(result.run);
  return { cwd, journal, result, entries, told: resultsIn(entries), log: logOf(cwd) };
}

/** What was sent back for each tool call. */
function resultsIn(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(({ event }) =>
    event.type === "step.called" ? event.results.map(({ content }) => content) : [],
  );
}

function logOf(cwd: string): readonly string[] {
  const file = join(cwd, "log.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

function survivors(log: readonly string[]): readonly string[] {
  return alive(log.filter((line) => line.startsWith("started")));
}

describe("servers of tools", { skip }, () => {
  test("a step calls the tools of a server; the server is started once and is gone afterwards", async () => {
    const { result, told, log } = await play({ servers: { t: good("loud") } }, [
      call("echo", { text: "hi" }),
      call("fail"),
      call("picture"),
      call("none"),
      closing,
    ]);
    assert.equal(result.exitCode, 0, result.reason);
    assert.deepEqual(told.slice(0, 3), [
      "heard: hi",
      "it went wrong",
      [
        "[image, image/png, 3 bytes; not shown]",
        "[resource, repo://o/r/README.md, text/markdown; as the server gives it]",
        "# Read me\nall of it",
        "[end of the resource]",
        "[resource, repo://o/r/x.bin, a/\\x1b[2Jb, 6 bytes; not shown]",
        "[resource_link, file:///b.txt; not shown]",
      ].join("\n"),
    ]);
    assert.match(told[3]!, /ToolNotRegistered.*mcp__t__echo/);
    assert.equal(log.filter((line) => line.startsWith("started")).length, 1);
    assert.deepEqual(survivors(log), []);
    assert.deepEqual(result.warnings, []);
  });

  const refused: readonly [name: string, agent: Agent, env: NodeJS.ProcessEnv, reason: RegExp][] = [
    [
      "ends at once",
      { servers: { t: good("crash") } },
      {},
      /"t" \(.*server\.mjs crash\).*it printed: no key, no server/,
    ],
    [
      "is not there",
      { servers: { t: { command: "no-such-server" } } },
      {},
      /"t" \(no-such-server\).*(?:ENOENT|not found)/,
    ],
    ["has two tools of one name", { servers: { t: good("twice") } }, {}, /two tools called "echo"/],
    [
      "cannot be reached",
      { servers: { t: { url: "http://127.0.0.1:1/mcp" } } },
      {},
      /127\.0\.0\.1:1.*fetch failed/,
    ],
    [
      "wants a variable that nobody allowed",
      { servers: { t: good("good", { env: { A: "${MY_WORD}" } }) } },
      { MY_WORD: VALUE },
      /MY_WORD.*"env" in your own config\.json/,
    ],
    [
      "wants a variable that is not set",
      { servers: { t: good("good", { env: { A: "${MY_WORD}" } }) } },
      settings({ env: ["MY_WORD"] }),
      /MY_WORD is not set/,
    ],
    [
      "wants the key of a model",
      { servers: { t: good("good", { env: { A: "${ANTHROPIC_API_KEY}" } }) } },
      { ANTHROPIC_API_KEY: VALUE },
      /ANTHROPIC_API_KEY is a model or GitHub key/,
    ],
    [
      "wants the token of GitHub",
      {
        servers: {
          t: { url: "http://127.0.0.1:1/mcp", headers: { Authorization: "Bearer ${GITHUB_TOKEN}" } },
        },
      },
      { GITHUB_TOKEN: VALUE },
      /GITHUB_TOKEN is a model or GitHub key/,
    ],
    [
      "needs a package that is not there",
      { servers: { t: good() } },
      { LOCKSTEP_PACKAGES: "/nowhere" },
      /npm install @modelcontextprotocol\/client.*docs\/mcp\.md/,
    ],
  ];
  for (const [name, agent, env, reason] of refused) {
    test(`a server that ${name}: the run is refused before anything is asked or recorded`, async () => {
      const { result, journal, log } = await play(agent, [closing], { env: { ...TRUSTING, ...env } });
      assert.deepEqual(
        [result.exitCode, result.code, result.run],
        [3, "MCP_UNAVAILABLE", null],
        result.reason,
      );
      assert.match(result.reason, reason);
      assert.doesNotMatch(result.reason, new RegExp(VALUE));
      assert.deepEqual(await journal.list(), []);
      assert.deepEqual(survivors(log), []);
    });
  }

  test("one server that fails takes the others with it", async () => {
    const servers = { t: good(), u: good("crash") };
    const { result, log } = await play({ servers, tools: ["mcp__t__*", "mcp__u__*"] }, [closing]);
    assert.equal(result.code, "MCP_UNAVAILABLE");
    assert.match(result.reason, /"u"/);
    assert.deepEqual(survivors(log), []);
  });

  test("nothing is started before trust, and what is trusted is the line", async () => {
    const agent = { servers: { t: good("good", { env: { MCP_LOG: "log.txt", A: "b c" } }) } };
    const { cwd, result } = await play(agent, [closing], { env: ENV });
    assert.equal(result.code, "NOT_TRUSTED");
    assert.match(result.reason, /mcp t: MCP_LOG="log\.txt" A="b c" \S+ server\.mjs good/);
    assert.equal(existsSync(join(cwd, "log.txt")), false);
    const digest = /--trust (\w+)/.exec(result.reason)![1]!;
    const script = [closing];
    const again = await run({
      agent: "t",
      cwd,
      env: ENV,
      script,
      trust: { digest },
      journal: createMemoryJournal(),
    });
    assert.equal(again.exitCode, 0, again.reason);
    const other = await play({ servers: { t: good("loud", agent.servers.t) } }, [closing], {
      env: ENV,
      trust: { digest },
    });
    assert.equal(other.result.exitCode, 0, "the same line is the same trust");
    const changed = await play({ servers: { t: good("loud") } }, [closing], { env: ENV, trust: { digest } });
    assert.equal(changed.result.code, "NOT_TRUSTED");
  });

  for (const [name, agent] of [
    ["nobody lists", { servers: { t: good() }, tools: ["Read", "*"] }],
    ["only readers could use, by a glob", { servers: { t: good() }, mode: "plan" }],
  ] as const) {
    test(`a server that ${name} is not started`, async () => {
      const { result, log } = await play(agent, [call("echo", { text: "hi" }), closing]);
      assert.equal(result.exitCode, 0, result.reason);
      assert.deepEqual(log, []);
    });
  }

  test("a step that only reads may use what says that it reads and is listed by its name", async () => {
    const tools = ["mcp__t__look", "mcp__t__echo"];
    const { result, told } = await play({ servers: { t: good() }, tools, mode: "plan" }, [
      call("look", { text: "hi" }),
      call("echo", { text: "hi" }),
      closing,
    ]);
    assert.equal(result.exitCode, 0, result.reason);
    assert.equal(told[0], "heard: hi");
    assert.match(told[1]!, /denied.*plan allows read-only tools only/);
  });

  test("a server sees what commands see, and the variables that it is given; neither is recorded", async () => {
    const env = {
      ...TRUSTING,
      ...settings({ env: ["MY_WORD", "MY_PLACE"] }),
      MY_WORD: VALUE,
      MY_PLACE: "here",
      ANTHROPIC_API_KEY: "k".repeat(20),
      GITHUB_TOKEN: "g".repeat(20),
      SOME_TOKEN: "s".repeat(20),
    };
    const servers = { t: good("good", { env: { MCP_LOG: "log.txt", WORD: "my ${MY_WORD}!" } }) };
    const script = [call("env"), call("echo", { text: VALUE }), closing];
    const { told, result, entries } = await play({ servers }, script, { env });
    assert.equal(result.exitCode, 0, result.reason);
    const seen = JSON.parse(told[0]!) as { [name: string]: string };
    assert.equal(seen.WORD, "my [redacted]!");
    assert.equal(seen.MY_PLACE, "here");
    for (const name of ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "SOME_TOKEN", "LOCKSTEP_PACKAGES"])
      assert.equal(seen[name], undefined);
    assert.equal(told[1], "heard: [redacted]");
    const recorded = JSON.stringify(entries.filter(({ event }) => event.type === "step.called"));
    assert.doesNotMatch(recorded, new RegExp(VALUE));
  });

  test("a server that dies is an error, is started again once, and then no more", async () => {
    const { result, told, log } = await play({ servers: { t: good() } }, [
      call("die"),
      call("echo", { text: "again" }),
      call("die"),
      call("echo", { text: "third" }),
      closing,
    ]);
    assert.equal(result.exitCode, 0, result.reason);
    assert.match(told[0]!, /The server "t" did not do it: Connection closed/);
    assert.equal(told[1], "heard: again");
    assert.match(told[3]!, /not started a third time/);
    assert.equal(log.filter((line) => line.startsWith("started")).length, 2);
    assert.deepEqual(survivors(log), []);
  });

  const hostile: readonly [how: string, script: ScriptReply, told: RegExp, warning: RegExp | null][] = [
    ["garbage", call("echo", { text: "hi" }), /^heard: hi$/, null],
    ["changing", call("echo", { text: "hi" }), /^heard: hi$/, null],
    ["good", call("huge"), /^y{30000,}\n\[… \d+ bytes cut …\]\ny{30000,}$/, null],
    ["good", call("endless"), /did not do it/, null],
    ["good", call("resources"), /^\[resource, r:0; as the server gives it\]\nr{10000}\n[^]*bytes cut/, null],
    [
      "many",
      call("echo", { text: "hi" }),
      /^heard: hi$/,
      /1000 tools or more[^]*step "closure\.t" offers 10\d\d tools, but OpenAI and others accept at most 128[^]*allowedTools/,
    ],
  ];
  for (const [how, script, expected, warning] of hostile) {
    const tool = script.calls![0]!.name;
    test(`a server that is ${how}, asked for ${tool}`, { timeout: 60_000 }, async () => {
      const { result, told, log } = await play({ servers: { t: good(how) } }, [script, closing]);
      assert.equal(result.exitCode, 0, result.reason);
      assert.match(told[0]!, expected);
      if (warning === null) assert.deepEqual(result.warnings, []);
      else assert.match(result.warnings.join("\n"), warning);
      assert.deepEqual(survivors(log), []);
    });
  }

  test("a name that we know is nobody else's, whatever a server calls its tools", async () => {
    const tools = ["mcp__github__*"];
    const { result, told } = await play({ servers: { github: good("posing") }, tools, mode: "acceptEdits" }, [
      { calls: [{ name: "mcp__github__github_read", input: {} }] },
      { calls: [{ name: "mcp__github__echo", input: { text: "hi" } }] },
      closing,
    ]);
    assert.equal(result.exitCode, 0, result.reason);
    assert.match(told[0]!, /InvalidInput: mcp__github__github_read/);
    assert.equal(told[1], "heard: hi");
  });

  test("names that models do not take are mapped and mapped back, and what is not offered is named", async () => {
    const rows = [
      ["a_b", /^called a\.b$/],
      ["a_b_2", /^called a\/b$/],
      ["e_cho", /^called e_cho$/],
      ["e_cho_2", /^called e\.cho$/],
      ["rm_-rf__", /^called rm -rf \/$/],
      ["either", /^called either$/],
      ["slow", /ToolNotRegistered/],
      ["a.b", /ToolNotRegistered/],
    ] as const;
    const { result, told } = await play(
      { servers: { t: good("odd") }, tools: ["mcp__t__*", "mcp__t__a.b"] },
      [...rows.map(([tool]) => call(tool)), closing],
    );
    assert.equal(result.exitCode, 0, result.reason);
    for (const [place, [tool, expected]] of rows.entries()) assert.match(told[place]!, expected, tool);
    assert.deepEqual(result.warnings, [
      'the server "t" has tools without a name, which are not offered (1)',
      `the server "t" has tools whose names are longer than models take, which are not offered: ${"l".repeat(80)}`,
      'the server "t" has tools that only run as tasks, which Lockstep does not support: slow',
      'the tool "a.b" of the server "t" is called mcp__t__a_b here: write that in allowedTools',
    ]);
  });

  test("a tool that a step names and that is not there is told", async () => {
    const { result } = await play({ servers: { t: good() }, tools: ["mcp__t__echo", "mcp__t__ehco"] }, [
      closing,
    ]);
    assert.equal(result.exitCode, 0, result.reason);
    assert.deepEqual(result.warnings, ['the server "t" has no tool "ehco", which a step allows']);
  });

  test("a run that goes on starts its servers again", async () => {
    const { cwd, journal, result } = await play({ servers: { t: good() } }, [call("echo", { text: "one" })]);
    assert.equal(result.code, "SCRIPT_EXHAUSTED");
    const script = [call("echo", { text: "two" }), closing];
    const again = await resume({ run: "@last", cwd, journal, env: TRUSTING, script });
    assert.equal(again.exitCode, 0, again.reason);
    assert.deepEqual(resultsIn(await journal.read(again.run!)), ["heard: one", "heard: two"]);
    assert.equal(logOf(cwd).filter((line) => line.startsWith("started")).length, 2);
    assert.deepEqual(survivors(logOf(cwd)), []);
  });

  test("stages list the tools of servers that machine.yaml declares; a tool that is not there is caught at Init", async () => {
    const done: ScriptReply = { calls: [{ name: "submit", input: {} }] };
    const stages = {
      a: { allowedTools: ["mcp__t__echo"], next: "b" },
      b: { allowedTools: ["mcp__t__none"] },
    };
    const machine = { mcpServers: { t: good() } };
    const cwd = projectWith({ ...machineFiles({ stages, machine }), "server.mjs": SERVER });
    const journal = createMemoryJournal();
    const script = [call("echo", { text: "hi" }), done];
    const result = await run({ agent: "m", cwd, journal, env: TRUSTING, script });
    assert.equal(result.code, "StageToolUnknown", result.reason);
    assert.match(result.reason, /mcp__t__none/);
    assert.deepEqual(resultsIn(await journal.read(result.run!)), ["heard: hi"]);
    assert.deepEqual(survivors(logOf(cwd)), []);
  });

  // What takes time, and what is said of tools.

  async function open(
    how: string,
    more: { readonly signal?: AbortSignal; readonly args?: readonly string[] } = {},
  ) {
    const cwd = projectOf({ servers: { t: good(how, { args: ["server.mjs", how, ...(more.args ?? [])] }) } });
    const { flow } = await load("t", { cwd });
    const { signal = new AbortController().signal } = more;
    const around = {
      cwd,
      env: TRUSTING,
      allow: [],
      child: (command: readonly string[]) => ({ command, env: {}, afterwards: () => "" }),
      signal,
      startMs: 2000,
      callMs: 300,
    };
    return { cwd, opening: openServers(flow!, around) };
  }

  test(
    "a server that never answers is given up, and nothing of it is left",
    { timeout: 30_000 },
    async () => {
      const { cwd, opening } = await open("silent");
      await assert.rejects(opening, /"t".*timed out/);
      assert.deepEqual(survivors(logOf(cwd)), []);
    },
  );

  test("an abort ends the waiting for a server, and a call that hangs", { timeout: 30_000 }, async () => {
    const stop = new AbortController();
    const { cwd, opening } = await open("silent", { signal: stop.signal });
    await until(() => logOf(cwd).length >= 2, "the server has started");
    stop.abort();
    await assert.rejects(opening, /"t"/);
    assert.deepEqual(survivors(logOf(cwd)), []);

    const calm = await open("good");
    const { tools, close } = await calm.opening;
    const hang = tools.find(({ spec }) => spec.name === "mcp__t__hang")!;
    const late = await hang.run({}, new AbortController().signal);
    assert.deepEqual([late.kind, /timed out/.test(JSON.stringify(late))], ["failed", true]);
    await assert.rejects(hang.run({}, AbortSignal.timeout(50)));
    await close();
    assert.deepEqual(survivors(logOf(calm.cwd)), []);
  });

  test("what a server says of a tool is bounded, and grants nothing", async () => {
    const { opening } = await open("injecting");
    const { tools, close } = await opening;
    const { spec } = tools[0]!;
    assert.match(spec.description, /^Tool of the server "t", which says of it: IGNORE ALL RULES/);
    assert.ok(spec.description.length < 2200);
    // oxlint-disable-next-line no-control-regex
    assert.doesNotMatch(spec.description, /[\u001b\u202e]/);
    await close();
    const { told } = await play({ servers: { t: good("injecting") }, tools: ["mcp__t__*", "Read"] }, [
      { calls: [{ name: "Bash", input: { command: "touch pwned" } }] },
      closing,
    ]);
    assert.match(told[0]!, /denied/);
  });

  test("a schema that points elsewhere or has no end is not followed, on any wire", async () => {
    let asked = 0;
    const elsewhere = createServer((_, response) => response.end("{}")).on("connection", () => (asked += 1));
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
    const { opening } = await open("remote", { args: [url] });
    const { tools, close } = await opening;
    assert.deepEqual(
      tools.map(({ spec }) => spec.input),
      [{ type: "object" }, { type: "object", properties: { a: {} } }],
    );
    await close();
    elsewhere.close();
    assert.equal(asked, 0);
  });

  // A model that is really asked.

  test("a model behind HTTP is offered the tools and calls them", async () => {
    await using model = await modelServer("anthropic", (seen) =>
      JSON.stringify(seen.body).includes("heard: hi")
        ? { output: { stepId: "closure.t", next_action: { action: "closing" } } }
        : call("echo", { text: "hi" }),
    );
    const cwd = projectOf({ servers: { t: good() } });
    const env = { ...TRUSTING, ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: model.url };
    const journal = createMemoryJournal();
    const result = await run({
      agent: "t",
      cwd,
      journal,
      env: { ...env, LOCKSTEP_PACKAGES: packages },
      use: "ai-sdk",
    });
    assert.equal(result.exitCode, 0, result.reason);
    const offered = model.seen[0]!.body.tools as unknown as { name: string; input_schema: object }[];
    const echo = offered.find(({ name }) => name === "mcp__t__echo");
    assert.deepEqual(echo?.input_schema, {
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
    });
    assert.deepEqual(resultsIn(await journal.read(result.run!)), ["heard: hi"]);
  });

  // Behind HTTP.

  const http = (url: string, headers: object = {}) => ({ servers: { t: { type: "http", url, headers } } });

  for (const kind of ["json", "events"] as const) {
    test(`a server behind HTTP that answers with ${kind}`, async () => {
      await using server = await httpTools(kind);
      const env = { ...TRUSTING, ...settings({ env: ["MY_WORD"] }), MY_WORD: VALUE };
      const agent = http(server.url, { Authorization: "Bearer ${MY_WORD}" });
      const { result, told } = await play(agent, [call("echo"), call("echo"), closing], { env });
      assert.equal(result.exitCode, 0, result.reason);
      assert.deepEqual(told, ["call 1 of echo", "call 2 of echo"]);
      assert.ok(server.seen.every(({ headers }) => headers.authorization === `Bearer ${VALUE}`));
    });
  }

  const failing: readonly [kind: HttpKind, reason: RegExp][] = [
    ["moved", /redirect|307/i],
    ["closed", /401|who are you|unauthori[sz]ed/i],
  ];
  for (const [kind, reason] of failing) {
    test(`a server behind HTTP that is ${kind} is refused`, async () => {
      await using server = await httpTools(kind);
      const { result } = await play(http(server.url), [closing]);
      assert.deepEqual([result.code, result.run], ["MCP_UNAVAILABLE", null]);
      assert.match(result.reason, reason);
      assert.ok(server.seen.length > 0);
    });
  }

  test("a session that is lost is an error, and then there is another", async () => {
    await using server = await httpTools("forgetful");
    const { told } = await play(http(server.url), [call("echo"), call("echo"), call("echo"), closing]);
    assert.equal(told[0], "call 1 of echo");
    assert.match(told[1]!, /did not do it/);
    assert.equal(told[2], "call 2 of echo");
  });

  test("an answer without end is cut off", { timeout: 60_000 }, async () => {
    await using server = await httpTools("endless");
    const { result, told } = await play(http(server.url), [call("echo"), closing]);
    assert.equal(result.exitCode, 0, result.reason);
    assert.match(told[0]!, /did not do it/);
  });

  test("no address is asked before trust", async () => {
    await using server = await httpTools("json");
    const { result } = await play(http(server.url, { "X-Page": "1" }), [closing], { env: ENV });
    assert.equal(result.code, "NOT_TRUSTED");
    assert.match(result.reason, /mcp t: POST http:\/\/127\.0\.0\.1:\d+\/mcp X-Page="1"/);
    assert.equal(server.connections(), 0);
  });

  // In the sandbox.

  test(
    "in a confined run a server is confined",
    { ...needs(hasBwrap, NO_BWRAP), timeout: 60_000 },
    async () => {
      const outside = join(projectWith({ keep: "" }), "reached.txt");
      const sandbox = { network: { mode: "none" } };
      // Not the Node of the tests: it may lie where commands see nothing.
      const servers = { t: good("good", { command: "node" }) };
      const { cwd, result, told, log } = await play({ servers, sandbox }, [
        call("write", { path: "inside.txt" }),
        call("write", { path: outside }),
        call("write", { path: ".agent/t/agent.json" }),
        call("die"),
        call("echo", { text: "again" }),
        closing,
      ]);
      assert.equal(result.exitCode, 0, result.reason);
      assert.equal(told[0], "written");
      assert.equal(readFileSync(join(cwd, "inside.txt"), "utf8"), "written by the server");
      assert.equal(existsSync(outside), false);
      assert.match(told[2]!, /EROFS|EACCES/);
      assert.equal(told[4], "heard: again");
      assert.equal(log.filter((line) => line.startsWith("started")).length, 2);
    },
  );
});
