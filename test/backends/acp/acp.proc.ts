/** An agent in a process of its own, over the Agent Client Protocol. Needs its SDK in the folder LOCKSTEP_PACKAGES names. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createAcp, type AcpOptions } from "../../../src/backends/acp/acp.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import { createAgentProcesses } from "../../../src/effects/process/agent-processes.ts";
import type { Gate, RunRequest, TurnResult } from "../../../src/engine/ports.ts";
import { createMemoryJournal } from "../../../src/journal/memory.ts";
import { run } from "../../../src/run/open.ts";
import { request } from "../../../src/testing/backend-suite.ts";
import { stepWith } from "../../boundaries/step.ts";
import { needs } from "../../needs.ts";
import { agentFiles, stepTo, writeFiles } from "../../run/project.ts";
import type { Act } from "../acp-agent.ts";
import { suiteOffline } from "../loopback.ts";
import { until } from "../../until.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const installed = ["@agentclientprotocol/sdk", "@modelcontextprotocol/client"].every((name) =>
  existsSync(join(packages, "node_modules", name, "package.json")),
);
const agent = fileURLToPath(new URL("../acp-agent.ts", import.meta.url));
const { skip } = needs(installed, "@agentclientprotocol/sdk and @modelcontextprotocol/client not installed");

/** It has tools of its own. */
const never: RunRequest["call"] = () => Promise.reject(new Error("nobody asks us"));

suiteOffline("backend acp", import.meta.url, { skip }, () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-acp-test-")));
  after(() => rmSync(base, { recursive: true, force: true }));

  const world = (...script: readonly (readonly Act[])[]) => worldWith({}, ...script);

  async function worldWith(options: Partial<AcpOptions>, ...script: readonly (readonly Act[])[]) {
    const cwd = mkdtempSync(join(base, "w-"));
    const env = { PATH: process.env.PATH, LOCKSTEP_PACKAGES: packages, SOME_TOKEN: "a-secret" };
    const args = [agent, "act", JSON.stringify(script)];
    const processes = createAgentProcesses("lockstep-acp-", cwd);
    const pass = ["LOCKSTEP_PACKAGES"];
    const backend = await createAcp({ command: process.execPath, args, env, pass, processes, ...options });
    const toolbox = createToolbox({
      cwd,
      protect: [],
      env: () => ({}),
      autoResponse: "",
      exec: () => Promise.reject(new Error("not this way")),
    });
    const gate: Gate = (call, batch) => {
      assert.equal(batch, null);
      const reason = toolbox.judge(stepWith({ allow: ["Read", "Edit", "Bash(touch:*)"] }), call, batch);
      return Promise.resolve(reason === null ? { allow: true } : { allow: false, reason });
    };
    return {
      cwd,
      backend,
      ask: (more: Partial<RunRequest> = {}) =>
        backend.run!({ ...request(), cwd, maxTurns: 8, gate, call: never, ...more }),
      [Symbol.asyncDispose]: () => backend.close!(),
    };
  }

  test("words, figures, and a session that goes on in the same process", async () => {
    await using w = await world(
      [{ tell: "prompt" }, { cost: 0.25 }],
      [{ say: "two" }, { cost: 0.75 }],
      [{ say: "three" }],
      [{ say: "four" }, { cost: 1 }],
      [{ cost: 0.5 }],
      [{ cost: -1e9 }],
    );
    const first = said(await w.ask());
    assert.match(first.text, /^You are a test\.\n\nDo it\.\n\nWhen you are done, call the tool submit/);
    assert.deepEqual(first.usage, { turns: 1, inputTokens: 30, outputTokens: 6, costUsd: 0.25 });
    const second = said(await w.ask({ session: first.session! }));
    assert.equal(second.text, "two");
    assert.equal(second.session, first.session);
    assert.equal(second.usage.costUsd, 0.5);
    assert.deepEqual(first.by, { provider: "stand-in", model: "a-model" });
    const session = first.session!;
    assert.equal(said(await w.ask({ session })).usage.costUsd, null, "no figure is not a cost of nothing");
    assert.equal(said(await w.ask({ session })).usage.costUsd, 0.25);
    assert.equal(said(await w.ask({ session })).usage.costUsd, 0, "a cost that falls gives nothing back");
    assert.equal(said(await w.ask({ session })).usage.costUsd, null, "a cost below 0 is not known");
  });

  test("the answer comes through our tool, and belongs to the prompt it was given for", async () => {
    await using w = await world([{ submit: { a: [1, { b: null }] } }], [{ say: "none" }]);
    const first = said(await w.ask());
    assert.deepEqual(first.output, { a: [1, { b: null }] });
    assert.equal(said(await w.ask({ session: first.session! })).output, undefined);
  });

  const asked: readonly [name: string, act: Act & { ask: object }, chosen: string][] = [
    [
      "a listed command",
      { ask: { kind: "execute", rawInput: { command: "touch a" } }, run: "touch a" },
      "yes",
    ],
    [
      "words for a shell",
      { ask: { kind: "execute", rawInput: { command: ["bash", "-lc", "touch a"] } }, run: "touch a" },
      "yes",
    ],
    ["another command", { ask: { kind: "execute", rawInput: { command: "rm a" } }, run: "touch a" }, "no"],
    ["no command", { ask: { kind: "execute", rawInput: {} }, run: "touch a" }, "no"],
    ["an edit inside", { ask: { kind: "edit", locations: [{ path: "a" }] }, run: "touch a" }, "yes"],
    [
      "an edit outside",
      { ask: { kind: "edit", locations: [{ path: "a" }, { path: "/etc/passwd" }] }, run: "touch a" },
      "no",
    ],
    ["an edit somewhere", { ask: { kind: "edit" }, run: "touch a" }, "no"],
    ["an unknown tool", { ask: { kind: "other", title: "Deploy" }, run: "touch a" }, "no"],
    ["our own tool", { ask: { kind: "other", name: "mcp__SERVER__submit" }, run: "touch a" }, "yes"],
    [
      "a tool with our words as its title",
      { ask: { kind: "other", title: "mcp__SERVER__submit" }, run: "touch a" },
      "no",
    ],
    [
      "a tool of a server with the name that ours begins with",
      { ask: { kind: "other", name: "mcp__lockstep__submit" }, run: "touch a" },
      "no",
    ],
    ["reading without a place", { ask: { kind: "read", title: "/etc/passwd" }, run: "touch a" }, "no"],
    [
      "reading with a command",
      { ask: { kind: "read", rawInput: { path: "a", command: "rm a" } }, run: "touch a" },
      "no",
    ],
    [
      "a listed command of a shell of the project",
      { ask: { kind: "execute", rawInput: { command: ["./sh", "-c", "touch a"] } }, run: "touch a" },
      "no",
    ],
    [
      "a listed command with another environment",
      { ask: { kind: "execute", rawInput: { command: "touch a", env: { PATH: "." } } }, run: "touch a" },
      "no",
    ],
    [
      "leave for ever",
      {
        ask: { kind: "execute", rawInput: { command: "touch a" } },
        options: [{ optionId: "always", name: "Always", kind: "allow_always" }],
        run: "touch a",
      },
      "cancelled",
    ],
  ];
  for (const [name, act, chosen] of asked) {
    test(`an agent that asks leave for ${name} gets ${chosen}`, async () => {
      await using w = await world([act]);
      assert.equal(said(await w.ask()).text, `[${chosen}]`);
      assert.deepEqual(readdirSync(w.cwd), chosen === "yes" ? ["a"] : []);
    });
  }

  const spec = (name: string) => ({ name, description: "", input: { type: "object" } });
  const tools = [spec("mcp__docs__search"), spec("mcp__notes__add")];

  test("tools of servers are run on our side, behind the gate, for an agent that asks nobody", async () => {
    await using w = await world(
      [{ use: "search", of: "docs", input: { q: "x" } }],
      [{ use: "add", of: "notes", input: {} }],
    );
    const called: unknown[] = [];
    const servedBy = (content: string): Pick<RunRequest, "served" | "call"> => ({
      served: tools,
      call: ({ name, input }) => {
        called.push([name, input]);
        return Promise.resolve({ id: "1", name, ok: true, content });
      },
    });
    const first = said(await w.ask(servedBy("found")));
    assert.equal(first.text, "found");
    // A conversation goes on with the servers that it began with, and with what the next step may do with them.
    const second = said(await w.ask({ session: first.session!, ...servedBy("not in this step") }));
    assert.equal(second.text, "not in this step");
    assert.deepEqual(called, [
      ["mcp__docs__search", { q: "x" }],
      ["mcp__notes__add", {}],
    ]);
  });

  for (const name of ["mcp__docs__search", "docs: search", "docs.search"]) {
    test(`an agent that asks leave for ${name} is judged by the tool's own name`, async () => {
      await using w = await world([{ ask: { kind: "other", name } }]);
      const judged: string[] = [];
      const gate: Gate = (call) => {
        judged.push(call.name);
        return Promise.resolve({ allow: true });
      };
      const call = () => Promise.reject(new Error("not called"));
      assert.equal(said(await w.ask({ gate, served: tools, call })).text, "[yes]");
      assert.deepEqual(judged, ["mcp__docs__search"]);
    });
  }

  test("a run has its agent and its servers to the end, and nothing of them afterwards", async () => {
    const cwd = mkdtempSync(join(base, "r-"));
    const home = mkdtempSync(join(base, "h-"));
    const runner = {
      boundaries: { allowedTools: ["mcp__docs__echo"], permissionMode: "acceptEdits" },
      mcpServers: { docs: { command: process.execPath, args: ["server.mjs"] } },
    };
    const server = readFileSync(new URL("../../fixtures/mcp/server.mjs", import.meta.url), "utf8");
    const step = stepTo("closure", { closing: null });
    writeFiles(cwd, { ...agentFiles("t", { "closure.t": step }, { runner }), "server.mjs": server });
    const answer = { stepId: "closure.t", next_action: { action: "closing" } };
    const acts: readonly Act[] = [{ use: "echo", of: "docs", input: { text: "hi" } }, { submit: answer }];
    const args = [agent, "act", JSON.stringify([acts])];
    const acp = { command: process.execPath, args, pass: ["LOCKSTEP_PACKAGES"] };
    writeFiles(home, { "lockstep/config.json": JSON.stringify({ acp }) });
    const journal = createMemoryJournal();
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      XDG_CONFIG_HOME: home,
      LOCKSTEP_PACKAGES: packages,
      LOCKSTEP_TRUST: "all",
    };
    const done = await run({ agent: "t", cwd, env, journal, use: "acp" });
    assert.equal(done.exitCode, 0, done.reason);
    const said = (await journal.read(done.run!)).flatMap(({ event }) =>
      event.type === "step.answered" && event.reply.kind === "said" ? [event.reply.text] : [],
    );
    assert.deepEqual(said, ["heard: hi"]);
    assert.deepEqual(startedBy(cwd), []);
  });

  test("a gate that throws is a no", async () => {
    await using w = await world([{ ask: { kind: "execute", rawInput: { command: "touch a" } } }]);
    const gate: Gate = () => {
      throw new Error("broke");
    };
    assert.equal(said(await w.ask({ gate })).text, "[no]");
  });

  test("the cap on responses ends the prompt", { timeout: 20_000 }, async () => {
    const act: Act = { ask: { kind: "execute", rawInput: { command: "touch a" } } };
    await using w = await world([act, act, { hang: true }]);
    const reply = said(await w.ask({ maxTurns: 2 }));
    assert.equal(reply.capped, true);
    assert.equal(reply.usage.turns, 2);
  });

  const aborts: readonly [when: string, script: readonly Act[], isWaitedFor: boolean][] = [
    ["while it works", [{ say: "working" }, { touch: "ready" }, { hang: true }], true],
    ["while it starts", [{ say: "working" }, { hang: true }], false],
    ["while it does not even answer", [{ deaf: true }], true],
  ];
  for (const [when, script, isWaitedFor] of aborts) {
    test(`an abort ends the query ${when}`, async () => {
      await using w = await world(script);
      const stop = new AbortController();
      const asking = w.ask({ signal: stop.signal });
      if (isWaitedFor) await until(() => existsSync(join(w.cwd, "ready")), "the agent is ready");
      stop.abort();
      assert.equal(faultOf(await asking).message, "The query was interrupted.");
    });
  }

  const faults: readonly [name: string, script: readonly Act[], kind: string, message: RegExp][] = [
    ["wants a login", [{ fail: -32000 }], "auth", /sign in/],
    ["fails", [{ fail: -32603 }], "other", /scripted/],
    ["dies", [{ exit: true }], "process", /ended \(3\)/],
  ];
  for (const [name, script, kind, message] of faults) {
    test(`an agent that ${name} is a fault`, async () => {
      await using w = await world(script);
      const fault = faultOf(await w.ask());
      assert.equal(fault.kind, kind);
      assert.match(fault.message, message);
    });
  }

  test("what an agent printed is shown when it fails, and nothing of it reaches a terminal", async () => {
    await using w = await world([{ print: "\u001b[31mno key\u001b[0m\u0007 here\n" }, { exit: true }]);
    assert.match(faultOf(await w.ask()).message, /ended \(3\)\nIt printed:\n  \| no key\\x07 here$/);
  });

  test("an agent that says nothing after its start is given up, with what it printed", async () => {
    const args = ["-c", "echo where is my key >&2; exec sleep 600"];
    await using w = await worldWith({ command: "/bin/sh", args, startMs: 3000 });
    const fault = faultOf(await w.ask());
    assert.equal(fault.kind, "process");
    assert.match(
      fault.message,
      /sh was started and has not answered for 3 s\nIt printed:\n  \| where is my key$/,
    );
  });

  const endings: readonly [how: string, last: readonly Act[]][] = [
    ["has answered", []],
    ["has failed", [{ fail: -32603 }]],
    ["has ended by itself", [{ exit: true }]],
    ["does not end with its input", [{ stay: true }]],
  ];
  for (const [how, last] of endings) {
    test(`nothing that an agent started is left when it ${how}`, async () => {
      const w = await world([{ leave: "marked" }, ...last]);
      await w.ask();
      const left = startedBy(w.cwd);
      assert.equal(left.filter((line) => line.includes("sleep 600")).length, 1);
      await w.backend.close!();
      assert.deepEqual(startedBy(w.cwd), []);
    });
  }

  test("nor what has left its group and wiped its environment", async () => {
    const w = await world([{ leave: "bare" }]);
    const pid = Number(said(await w.ask()).text);
    assert.equal(isAlive(pid), true);
    await w.backend.close!();
    assert.equal(isAlive(pid), false);
  });

  test("a query that is interrupted counts with what it cost so far", { timeout: 60_000 }, async () => {
    const act: Act = { ask: { kind: "execute", rawInput: { command: "touch a" } }, run: "touch a" };
    await using w = await world([{ cost: 0.25 }, act, { hang: true }]);
    const stop = new AbortController();
    const asking = w.ask({ signal: stop.signal });
    await until(() => existsSync(join(w.cwd, "a")), "the command has run");
    stop.abort();
    const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: 0.25 };
    assert.deepEqual(faultOf(await asking).usage, usage);
  });

  test("a conversation that went with its process cannot be gone on with, and one says so", async () => {
    await using w = await world([{ exit: true }]);
    await w.ask();
    assert.match(faultOf(await w.ask({ session: "s-1" })).message, /cannot load/);
  });

  test("an agent that does not exist is a fault, and its environment is what it was given", async () => {
    const env = { PATH: process.env.PATH, LOCKSTEP_PACKAGES: packages };
    const backend = await createAcp({
      command: "no-such-agent",
      env,
      processes: createAgentProcesses("x-", base),
    });
    const gate: Gate = () => Promise.resolve({ allow: true });
    const result = await backend.run!({ ...request(), cwd: base, maxTurns: 1, gate, call: never });
    assert.match(faultOf(result).message, /no-such-agent could not be started/);
    await backend.close!();
    await using w = await world([{ tell: "environment" }]);
    const seen = Object.keys(JSON.parse(said(await w.ask()).text) as object);
    const git = ["GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"];
    assert.deepEqual(seen.toSorted(), [...git, "LOCKSTEP_PACKAGES", "LOCKSTEP_TREE", "PATH"]);
  });

  /** By the folder that they work in. */
  function startedBy(cwd: string): readonly string[] {
    return readdirSync("/proc").flatMap((pid) => {
      try {
        if (!/^\d+$/.test(pid) || readlinkSync(`/proc/${pid}/cwd`) !== cwd) return [];
        return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")}`];
      } catch {
        return [];
      }
    });
  }

  function isAlive(pid: number): boolean {
    try {
      return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
      return false;
    }
  }

  function said(result: TurnResult): TurnResult & { kind: "reply" } {
    if (result.kind !== "reply") assert.fail(JSON.stringify(result));
    return result;
  }

  function faultOf(result: TurnResult) {
    if (result.kind !== "fault") assert.fail(JSON.stringify(result));
    return result.fault;
  }
});
