/**
 * Claude Code, the real program, against a scripted model on loopback: what it does to files is really done.
 *
 * Needs the Claude Agent SDK in the folder that LOCKSTEP_PACKAGES names. Where the system allows it, everything runs in
 * a network that has nothing but loopback.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createClaudeAgent } from "../../../src/backends/claude/claude-agent.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import { createAgentProcesses } from "../../../src/effects/process/agent-processes.ts";
import { childEnv, runProcess } from "../../../src/effects/process/process.ts";
import type { Backend, Gate, RunRequest, TurnResult } from "../../../src/engine/ports.ts";
import type { Json, JsonSchema } from "../../../src/flow/json.ts";
import { judgedIn } from "../../../src/flow/event.ts";
import { createMemoryJournal } from "../../../src/journal/memory.ts";
import { run } from "../../../src/run/open.ts";
import { request } from "../../../src/testing/backend-suite.ts";
import { stepWith } from "../../boundaries/step.ts";
import { needs } from "../../needs.ts";
import { agentFiles, writeFiles } from "../../run/project.ts";
import { startServer, type Served } from "../anthropic-server.ts";
import { suiteOffline } from "../loopback.ts";
import { until } from "../../until.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const installed = existsSync(join(packages, "node_modules/@anthropic-ai/claude-agent-sdk/package.json"));

const { skip } = needs(installed, "the Claude Agent SDK not installed");

const ANSWER: JsonSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: { a: { $ref: "#/$defs/word" } },
  required: ["a"],
  additionalProperties: false,
  $defs: { word: { type: "string", "x-note": "not a word of JSON Schema" } },
};

const processesIn = (folder: string) => createAgentProcesses("lockstep-claude-", folder);

function suite(): void {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-claude-test-")));
  after(() => rmSync(base, { recursive: true, force: true }));

  /** A folder to work in, a model that says these things, and the backend between them. */
  async function world(replies: readonly Served[]) {
    const root = mkdtempSync(join(base, "w-"));
    const cwd = join(root, "work");
    const home = join(root, "home");
    const temp = join(root, "tmp");
    for (const folder of [cwd, home, temp]) mkdirSync(folder);
    const server = await startServer(replies);
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      LOCKSTEP_PACKAGES: packages,
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: "sk-the-key",
      SOME_TOKEN: "a-secret-of-the-user",
    };
    const open = (marks: readonly Json[] = []) =>
      createClaudeAgent({ env, stateDir: join(root, ".lockstep"), marks, processes: processesIn(root) });
    const backend = await open().catch(async (error: unknown) => {
      await server.close();
      throw error;
    });
    return {
      root,
      cwd,
      home,
      server,
      open,
      env,
      ask: (more: Partial<RunRequest> = {}, by: Backend = backend) => by.run!(runRequest(cwd, more)),
      wrote: (path: string) => existsSync(join(cwd, path)),
      [Symbol.asyncDispose]: async () => {
        await backend.close!();
        await server.close();
      },
    };
  }

  function runRequest(cwd: string, more: Partial<RunRequest>): RunRequest {
    const { output: _, ...plain } = request();
    const gate = more.gate ?? gateOf(cwd, ["*"]);
    const toolbox = toolboxIn(cwd);
    const call: RunRequest["call"] = async (one, signal) =>
      (await toolbox.call(stepWith({ allow: ["*"] }), [{ id: "1", ...one }], signal))[0]!;
    return { ...plain, cwd, maxTurns: 8, tools: toolsOf(["*"]), gate, call, ...more };
  }

  function toolboxIn(cwd: string, hasGitHub = false) {
    const env = () => childEnv(process.env);
    const github = hasGitHub && { github: () => Promise.resolve({ ok: true, text: "" } as const) };
    return createToolbox({ cwd, protect: [], env, autoResponse: "Choose.", exec: runProcess, ...github });
  }

  function gateOf(cwd: string, allow: readonly string[], completion?: string): Gate {
    const toolbox = toolboxIn(cwd);
    const step = stepWith(completion === undefined ? { allow } : { allow, completion });
    return (call, batch) => {
      const reason = toolbox.judge(step, call, batch);
      return Promise.resolve(reason === null ? { allow: true } : { allow: false, reason });
    };
  }

  function toolsOf(allow: readonly string[]): RunRequest["tools"] {
    return toolboxIn(base, !allow.includes("*")).offer(stepWith({ allow }));
  }

  const structured = { output: { schema: ANSWER, channel: { kind: "output" } } } as const;
  const completed = { output: { schema: ANSWER, channel: { kind: "tool", name: "submit_it" } } } as const;
  const answer = (input: object): Served => ({ calls: [{ name: "StructuredOutput", input }] });
  const call = (name: string, input: object) => ({ name, input });

  // What is said.

  test("a plain answer, with what it used", async () => {
    await using w = await world([{ text: "hello", tokens: { input: 100, output: 20 } }]);
    const reply = said(await w.ask());
    assert.equal(reply.text, "hello");
    assert.equal(reply.output, undefined);
    const { costUsd, ...figures } = reply.usage;
    assert.deepEqual(figures, { turns: 1, inputTokens: 100, outputTokens: 20 });
    assert.ok(costUsd !== null && costUsd > 0);
    assert.equal(reply.by?.provider, "anthropic");
    assert.match(reply.by.answered ?? "", /^claude-/);
  });

  test("the model gets our words, exactly the tools of the step, and nothing of the prompt is interpreted", async () => {
    await using w = await world([{ text: "ok" }]);
    writeFileSync(join(w.cwd, "note.txt"), "do not read me");
    const tools = toolsOf(["Read", "Bash"]);
    await w.ask({ tools, messages: [{ role: "user", text: "/compact and look at @note.txt" }] });
    const [first] = w.server.asked;
    assert.equal(w.server.asked.length, 1);
    const body = JSON.parse(first!.body) as { model: string; system: unknown; tools: { name: string }[] };
    assert.match(body.model, /opus/);
    assert.match(JSON.stringify(body.system), /You are a test\./);
    assert.deepEqual(body.tools.map(({ name }) => name).toSorted(), ["Read", "mcp__lockstep__Bash"]);
    assert.match(first!.body, /\/compact and look at @note\.txt/);
    assert.doesNotMatch(first!.body, /do not read me/);
  });

  test("a structured answer comes as a value, whatever draft its schema is written in", async () => {
    await using w = await world([answer({ a: "x" })]);
    const reply = said(await w.ask(structured));
    assert.deepEqual(reply.output, { a: "x" });
    assert.equal(reply.text, "");
    assert.equal(w.server.asked.length, 1);
  });

  for (const name of ["submit_it", "StructuredOutput"]) {
    test(`a completion tool may be called as ${name}`, async () => {
      await using w = await world([{ calls: [call(name, { a: "x" })] }]);
      const seen: string[] = [];
      const gate: Gate = (one, batch) => {
        seen.push(one.name, ...(batch ?? []));
        return Promise.resolve({ allow: true });
      };
      assert.deepEqual(said(await w.ask({ ...completed, gate })).output, { a: "x" });
      assert.deepEqual(seen, ["submit_it", "submit_it"]);
    });
  }

  test("a payload that does not fit is sent back, and a better one counts", async () => {
    await using w = await world([answer({ b: 1 }), answer({ a: "x" })]);
    const reply = said(await w.ask(structured));
    assert.deepEqual(reply.output, { a: "x" });
    assert.equal(reply.usage.turns, 2);
    assert.match(w.server.asked[1]!.last, /must have required property 'a'/);
  });

  test("payloads that never fit end with the last of them, for the engine to judge", async () => {
    await using w = await world(Array.from({ length: 5 }, (_, nth) => answer({ b: nth })));
    const reply = said(await w.ask({ ...structured, maxTurns: 20 }));
    assert.deepEqual(reply.output, { b: 4 });
    assert.equal(reply.capped, undefined);
  });

  test("prose is no answer, and its words are kept: a payload may stand in them", async () => {
    await using w = await world([{ text: '{"a":"in prose"}' }, { text: "I have answered." }]);
    const reply = said(await w.ask(structured));
    assert.equal(reply.output, undefined);
    assert.equal(reply.text, '{"a":"in prose"}\n\nI have answered.');
  });

  // What is done.

  test("a tool that only we have is run by us, behind the same gate", async () => {
    const read = call("mcp__github__github_read", { operation: "issue_view", number: 12 });
    await using w = await world([{ calls: [read] }, { calls: [read] }, { text: "ok" }]);
    const asked: unknown[] = [];
    const [allow, deny] = [{ allow: true }, { allow: false, reason: "not twice" }] as const;
    const reply = said(
      await w.ask({
        tools: toolsOf(["Read", "mcp__github__github_read"]),
        gate: (one) => Promise.resolve(asked.push(one) === 1 ? allow : deny),
        call: (one) =>
          Promise.resolve({ id: "1", name: one.name, ok: true, content: `got ${JSON.stringify(one)}` }),
      }),
    );
    assert.equal(reply.text, "ok");
    assert.deepEqual(asked, [read, read]);
    const body = JSON.parse(w.server.asked[0]!.body) as { tools: { name: string }[] };
    assert.deepEqual(body.tools.map(({ name }) => name).toSorted(), [
      "Read",
      "mcp__lockstep__mcp__github__github_read",
    ]);
    assert.match(w.server.asked[1]!.last, /got .*issue_view/);
    assert.match(w.server.asked[2]!.last, /not twice/);
  });

  test("tools work on real files, and see neither our keys nor the rest of our environment", async () => {
    await using w = await world([
      { calls: [call("Write", { file_path: "sub/a.txt", content: "one" })] },
      { calls: [call("Bash", { command: "env > env.txt; cat sub/a.txt; cd sub" })] },
      { calls: [call("Bash", { command: "ls" }), call("Read", { file_path: "sub/a.txt" })] },
      answer({ a: "x" }),
    ]);
    const reply = said(await w.ask(structured));
    assert.deepEqual(reply.output, { a: "x" });
    assert.equal(reply.usage.turns, 4);
    assert.equal(readFileSync(join(w.cwd, "sub/a.txt"), "utf8"), "one");
    const env = readFileSync(join(w.cwd, "env.txt"), "utf8");
    assert.doesNotMatch(env, /sk-the-key|a-secret-of-the-user/);
    assert.match(w.server.asked[2]!.last, /one/);
    assert.match(w.server.asked[3]!.last, /env\.txt/, "each command starts in the working directory");
  });

  const outside = join(tmpdir(), `lockstep-claude-outside-${process.pid}.txt`);
  const refused: readonly [name: string, calls: ReturnType<typeof call>, allow: string[], reason: RegExp][] =
    [
      [
        "a file outside",
        call("Write", { file_path: outside, content: "x" }),
        ["*"],
        /outside the working dir/,
      ],
      [
        "git's own files",
        call("Write", { file_path: ".git/config", content: "x" }),
        ["*"],
        /\.git is not for/,
      ],
      ["reading outside", call("Read", { file_path: "/etc/hostname" }), ["*"], /outside the working dir/],
      [
        "a listed tool beyond its commands",
        call("Bash", { command: "touch a" }),
        ["Bash(ls:*)"],
        /not covered by/,
      ],
      ["writing to GitHub", call("Bash", { command: "gh pr merge 1" }), ["*"], /not for a command to do/],
    ];
  for (const [name, one, allow, reason] of refused) {
    test(`the gate refuses ${name}, and the model is told why`, async () => {
      await using w = await world([{ calls: [one] }, { text: "I see." }]);
      assert.equal(said(await w.ask({ gate: gateOf(w.cwd, allow) })).text, "I see.");
      assert.match(w.server.asked[1]!.last, reason);
      assert.deepEqual(readdirSync(w.cwd), []);
      assert.equal(existsSync(outside), false);
    });
  }

  test("a tool that is not offered does not exist, and a gate that throws is a no", async () => {
    await using w = await world([
      { calls: [call("Write", { file_path: "a.txt", content: "x" })] },
      { calls: [call("Bash", { command: "touch b.txt" })] },
      { text: "done" },
    ]);
    const gate: Gate = () => {
      throw new Error("the gate broke");
    };
    said(await w.ask({ gate, tools: toolsOf(["Bash"]) }));
    assert.match(w.server.asked[1]!.last, /No such tool/);
    assert.match(w.server.asked[2]!.last, /The gate failed: the gate broke/);
    assert.deepEqual(readdirSync(w.cwd), []);
  });

  test("tools of servers are run on our side, behind the gate, and only those of the step are there", async () => {
    const spec = (name: string) => ({
      name,
      description: "Looks it up.",
      input: { type: "object", properties: { q: { type: "string" } } },
    });
    await using w = await world([
      { calls: [call("mcp__docs__search", { q: "x" })] },
      { calls: [call("mcp__docs__remove", {})] },
      { calls: [call("mcp__notes__add", {})] },
      answer({ a: "x" }),
    ]);
    const called: unknown[] = [];
    const judged: string[] = [];
    const all = ["mcp__docs__search", "mcp__docs__remove", "mcp__notes__add"].map(spec);
    const callOurs: RunRequest["call"] = ({ name, input }) => {
      called.push([name, input]);
      return Promise.resolve({ id: "1", name, ok: true, content: "found it" });
    };
    const gate: Gate = ({ name }, batch) => {
      judged.push(name);
      assert.deepEqual(batch, [name]);
      return Promise.resolve(
        name === "mcp__docs__remove" ? { allow: false, reason: "not this one" } : { allow: true },
      );
    };
    const reply = said(
      await w.ask({ ...structured, gate, call: callOurs, served: all, tools: all.slice(0, 2) }),
    );
    assert.deepEqual(reply.output, { a: "x" });
    const offered = JSON.parse(w.server.asked[0]!.body) as { tools: { name: string }[] };
    assert.deepEqual(offered.tools.map(({ name }) => name).toSorted(), [
      "StructuredOutput",
      "mcp__lockstep__mcp__docs__remove",
      "mcp__lockstep__mcp__docs__search",
    ]);
    assert.deepEqual(called, [["mcp__docs__search", { q: "x" }]]);
    assert.deepEqual(judged, ["mcp__docs__search", "mcp__docs__remove"]);
    assert.match(w.server.asked[1]!.last, /found it/);
    assert.match(w.server.asked[2]!.last, /not this one/);
    assert.match(w.server.asked[3]!.last, /No such tool/);
  });

  const write = call("Write", { file_path: "a.txt", content: "x" });
  for (const [channel, more] of [
    ["an answer", structured],
    ["a completion tool", completed],
  ] as const) {
    for (const [order, calls] of [
      ["before", [write, call("StructuredOutput", { a: "early" })]],
      ["behind", [call("StructuredOutput", { a: "early" }), write]],
    ] as const) {
      test(`${channel} beside another call, which stands ${order} it: nothing of the response is done`, async () => {
        await using w = await world([{ calls, pauseMs: 150 }, answer({ a: "late" })]);
        const gate = gateOf(w.cwd, ["*"], more === completed ? "submit_it" : undefined);
        assert.deepEqual(said(await w.ask({ ...more, gate })).output, { a: "late" });
        assert.equal(w.wrote("a.txt"), false);
        assert.equal(w.server.asked[1]!.last.match(/must be the only tool call/g)?.length, 2);
      });
    }
  }

  test("several calls of one response are each judged with all of their names", async () => {
    const batches: (readonly string[] | null)[] = [];
    await using w = await world([
      { calls: [call("Bash", { command: "echo 1" }), call("Bash", { command: "echo 2" })], pauseMs: 100 },
      { text: "done" },
    ]);
    const gate: Gate = (_one, batch) => {
      batches.push(batch);
      return Promise.resolve({ allow: true });
    };
    said(await w.ask({ gate }));
    assert.deepEqual(batches, [
      ["Bash", "Bash"],
      ["Bash", "Bash"],
    ]);
  });

  // Where it ends.

  test("the turn cap is told, with the responses that were used", async () => {
    const again = { calls: [call("Bash", { command: "true" }), call("Bash", { command: "true" })] };
    await using w = await world([again, again, again]);
    const reply = said(await w.ask({ ...structured, maxTurns: 2 }));
    assert.equal(reply.capped, true);
    assert.equal(reply.output, undefined);
    assert.equal(reply.usage.turns, 2);
    assert.ok(reply.session);
  });

  test("an abort ends a query whose model does not answer", { timeout: 20_000 }, async () => {
    await using w = await world([{ hang: true }]);
    const stop = new AbortController();
    const asking = w.ask({ signal: stop.signal });
    await until(() => w.server.asked.length > 0, "a request");
    stop.abort();
    assert.equal(faultOf(await asking).message, "The query was interrupted.");
    assert.equal(
      (await w.ask({ signal: stop.signal })).kind,
      "fault",
      "one that comes too late is not begun",
    );
    assert.equal(w.server.asked.length, 1);
  });

  test("an abort ends a running command, and what would follow it", { timeout: 20_000 }, async () => {
    const command = "touch began; node -e 'setTimeout(() => {}, 30000)'; touch after";
    await using w = await world([{ calls: [call("Bash", { command })] }]);
    const stop = new AbortController();
    const asking = w.ask({ signal: stop.signal });
    await until(() => w.wrote("began"), "the command has begun");
    stop.abort();
    const { usage } = faultOf(await asking);
    assert.equal(w.wrote("after"), false);
    assert.deepEqual([usage?.turns, usage?.inputTokens], [1, 10], "what it had cost counts");
  });

  const error = (type: string) => ({ error: { type, message: "scripted" } });
  const faults: readonly [name: string, reply: Served, fault: object][] = [
    ["401", { status: 401, ...error("authentication_error") }, { kind: "auth", status: 401 }],
    ["403", { status: 403, ...error("permission_error") }, { kind: "auth", status: 403 }],
    [
      "429 with a wish to wait",
      { status: 429, headers: { "retry-after": "7" }, ...error("rate_limit_error") },
      { kind: "rate-limit", status: 429, retryAfterMs: 7000 },
    ],
    ["429", { status: 429, ...error("rate_limit_error") }, { kind: "rate-limit", status: 429 }],
    [
      "429 with a wish to wait for an hour",
      { status: 429, headers: { "retry-after": "3600" }, ...error("rate_limit_error") },
      { kind: "other", code: "AGENT_RATE_LIMIT", status: 429 },
    ],
    ["529", { status: 529, ...error("overloaded_error") }, { kind: "overloaded", status: 529 }],
    ["500", { status: 500, ...error("api_error") }, { kind: "overloaded", status: 500 }],
    ["400", { status: 400, ...error("invalid_request_error") }, { kind: "bad-request", status: 400 }],
    ["404", { status: 404, ...error("not_found_error") }, { kind: "bad-request", status: 404 }],
    ["a line that is cut", { cut: "before" }, { kind: "network" }],
    // It was tried twice, and both were paid for.
    [
      "a response that is cut",
      { cut: "inside" },
      { kind: "network", usage: { turns: 2, inputTokens: 20, outputTokens: 2, costUsd: 0.00012 } },
    ],
  ];
  for (const [name, reply, expected] of faults) {
    test(`${name} is a fault`, async () => {
      await using w = await world([reply, reply, reply, reply]);
      const { message, ...fault } = faultOf(await w.ask());
      assert.deepEqual(fault, expected, message);
      assert.notEqual(message, "");
    });
  }

  test("without a key it says so, and asks nobody", async () => {
    await using w = await world([]);
    const { ANTHROPIC_API_KEY: _, ...env } = w.env;
    const backend = await createClaudeAgent({ env, processes: processesIn(w.root) });
    try {
      assert.equal(faultOf(await w.ask({}, backend)).kind, "auth");
      assert.equal(w.server.asked.length, 0);
    } finally {
      await backend.close!();
    }
  });

  // How it goes on.

  test("a session goes on, also from an earlier point of it and after a crash; figures are of the step alone", async () => {
    const replies = ["one", "two", "other two", "three"];
    await using w = await world(replies.map((text) => ({ text, tokens: { input: 100, output: 10 } })));
    const ask = (text: string, session?: string, by?: Backend) =>
      w.ask({ messages: [{ role: "user", text }], ...(session === undefined ? {} : { session }) }, by);
    const first = said(await ask("first question"));
    const second = said(await ask("second question", first.session));
    assert.notEqual(second.session, first.session);
    assert.match(w.server.asked[1]!.body, /first question.*one.*second question/s);
    assert.deepEqual(second.usage, { ...first.usage, costUsd: second.usage.costUsd });

    said(await ask("another second question", first.session));
    assert.doesNotMatch(w.server.asked[2]!.body, /[^r] second question/);

    const revived = await w.open([first.mark!, second.mark!]);
    const third = said(await ask("third question", second.session, revived));
    assert.match(w.server.asked[3]!.body, /first question.*second question.*third question/s);
    const { costUsd, ...figures } = third.usage;
    assert.deepEqual(figures, { turns: 1, inputTokens: 100, outputTokens: 10 });
    assert.ok(Math.abs(costUsd! - first.usage.costUsd!) < 1e-9);
    await revived.close!();
    assert.deepEqual(readdirSync(join(w.root, ".lockstep/runs/run/claude")), ["projects"]);

    const again = await w.open([third.mark!]);
    assert.equal((await ask("fourth question", third.session, again)).kind, "fault");
    assert.match(
      w.server.asked[4]!.body,
      /third question.*fourth question/s,
      "what was kept is enough to go on",
    );
    await again.close!();
  });

  test("a session that is not there is a fault, and nothing is asked", async () => {
    await using w = await world([]);
    const session = "9440a559-33ee-42ae-943d-78060c16fe0e";
    const fault = faultOf(await w.ask({ session }));
    assert.equal(fault.kind, "process");
    assert.match(fault.message, /No conversation found/);
    assert.equal(w.server.asked.length, 0);
  });

  test("two queries at once do not disturb each other, and nothing is left behind", async () => {
    await using w = await world([{ text: "same" }, { text: "same" }]);
    // Others may be at work beside this one: what is looked at is its own.
    const before = process.env.TMPDIR;
    const temp = mkdtempSync(join(base, "temp-"));
    process.env.TMPDIR = temp;
    const backend = await createClaudeAgent({ env: w.env, processes: processesIn(w.root) });
    assert.deepEqual(readdirSync(temp), [], "nothing is made before it is needed");
    const asked = Promise.all([w.ask({}, backend), w.ask({}, backend)]);
    await until(() => readdirSync(temp).length > 0, "a temporary folder");
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    const [one, two] = await asked;
    assert.equal(said(one).text, "same");
    assert.notEqual(said(one).session, said(two).session);
    await backend.close!();
    assert.deepEqual(readdirSync(temp), []);
    assert.deepEqual(readdirSync(w.cwd), []);
    assert.deepEqual(readdirSync(w.home), []);
  });

  // A whole run.

  test(
    "example 01 runs to its end on it, with real edits, commits and checks",
    { timeout: 60_000 },
    async () => {
      const bash = (command: string) => call("Bash", { command });
      const edit = (old_string: string, new_string: string) =>
        call("Edit", { file_path: "cart.js", old_string, new_string });
      const next = (stepId: string, action: string, more: object = {}) =>
        answer({ stepId, ...more, next_action: { action, reason: "scripted" } });
      const mended = (summary: string) => next("continuation.issue", "handoff", { summary });
      await using w = await world([
        { calls: [bash("node --test"), call("Read", { file_path: "cart.js" })] },
        next("initial.issue", "next", { analysis: { understanding: "no quantity", approach: "multiply" } }),
        {
          calls: [
            edit("sum + item.price,", "sum + item.price * item.quantity,"),
            bash("git commit -qam One"),
          ],
        },
        mended("one bug less"),
        next("closure.issue", "closing"),
        { calls: [edit("sum - percent", "sum * (1 - percent / 100)"), bash("git commit -qam Two")] },
        mended("both are mended"),
        next("closure.issue", "closing"),
      ]);
      const example = fileURLToPath(new URL("../../../examples/01-fix-a-test/", import.meta.url));
      cpSync(join(example, "project"), w.cwd, { recursive: true });
      cpSync(join(example, ".agent"), join(w.cwd, ".agent"), { recursive: true });
      const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
      const git = (...args: string[]) =>
        spawnSync("git", [...identity, ...args], { cwd: w.cwd, encoding: "utf8" });
      git("init", "-q", "-b", "main");
      git("config", "user.name", "T");
      git("config", "user.email", "t@example.invalid");
      git("add", "-A");
      git("commit", "-qm", "Begin");

      const { NODE_TEST_CONTEXT: _, ...outer } = process.env;
      const env = { ...outer, ...w.env, LOCKSTEP_TRUST: "all" };
      const done = await run({
        agent: "fixer",
        args: { issue: 7 },
        cwd: w.cwd,
        env,
        backend: await w.open(),
      });
      assert.equal(done.success, true, done.reason);
      assert.deepEqual(
        done.path.map(({ step, label }) => `${step} ${label}`),
        [
          "initial.issue next",
          "continuation.issue handoff",
          "closure.issue closing",
          "continuation.issue handoff",
          "closure.issue closing",
        ],
      );
      assert.equal(git("log", "--format=%s").stdout, "Two\nOne\nBegin\n");
      assert.equal(git("status", "--porcelain").stdout.replace("?? .lockstep/\n", ""), "");
      assert.match(w.server.asked[5]!.body, /the tests do not pass/, "the failed check reached the model");
      assert.equal(done.usage.turns, 8);
      assert.equal(done.usage.inputTokens, 80);
      assert.ok(done.costUsd !== null && done.costUsd > 0);
    },
  );

  test(
    "a run on it uses the tools of a server, and what was denied is recorded",
    { timeout: 60_000 },
    async () => {
      await using w = await world([
        { calls: [call("mcp__docs__echo", { text: "hi" })] },
        { calls: [call("mcp__docs__env", {})] },
        { calls: [call("Bash", { command: "touch no" })] },
        answer({ stepId: "closure.t", next_action: { action: "closing" } }),
      ]);
      const docs = {
        command: process.execPath,
        args: ["server.mjs"],
      };
      const boundaries = {
        allowedTools: ["mcp__docs__echo", "mcp__docs__env", "Bash(ls)"],
        permissionMode: "acceptEdits",
      };
      const step = {
        kind: "closure",
        intents: ["closing"],
        transitions: { closing: { target: null } },
      } as const;
      const runner = { boundaries, mcpServers: { docs } };
      const server = readFileSync(new URL("../../fixtures/mcp/server.mjs", import.meta.url), "utf8");
      writeFiles(w.cwd, { ...agentFiles("t", { "closure.t": step }, { runner }), "server.mjs": server });
      const journal = createMemoryJournal();
      const env = { ...w.env, LOCKSTEP_TRUST: "all" };
      const done = await run({ agent: "t", cwd: w.cwd, env, journal, backend: await w.open() });
      assert.equal(done.exitCode, 0, done.reason);
      assert.match(w.server.asked[1]!.last, /heard: hi/);
      assert.doesNotMatch(w.server.asked[2]!.last, /sk-the-key|a-secret-of-the-user|ANTHROPIC/);
      const judged = (await journal.read(done.run!)).flatMap(({ event }) =>
        event.type === "step.answered" ? judgedIn(event.reply) : [],
      );
      assert.deepEqual(
        judged.map(({ name, denied }) => [name, denied !== undefined]),
        [
          ["mcp__docs__echo", false],
          ["mcp__docs__env", false],
          ["Bash", true],
        ],
      );
      assert.match(judged[2]!.denied!, /is not covered by Bash\(ls\)/);
      assert.equal(w.wrote("no"), false);
    },
  );

  function said(result: TurnResult): TurnResult & { kind: "reply" } {
    if (result.kind !== "reply") assert.fail(JSON.stringify(result));
    return result;
  }

  function faultOf(result: TurnResult) {
    if (result.kind !== "fault") assert.fail(JSON.stringify(result));
    return result.fault;
  }
}

suiteOffline("backend claude-agent", import.meta.url, { skip }, suite);
