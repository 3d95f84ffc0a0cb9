/** Calls of tools by the official MCP client, over stdio and over HTTP, in both revisions of the protocol. */
import { Ajv } from "ajv";
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createWorld, replies, script, writeAgent, type World } from "../cli/world.ts";
import { until } from "../until.ts";
import {
  ALL,
  becomes,
  COLOUR,
  overHttp,
  overStdio,
  skip,
  slow,
  stateOf,
  WRITE,
  writeNotes,
  type Connected,
  type Document,
  type Era,
  type How,
} from "./client.ts";

const WAYS = [
  ["stdio", "2025"],
  ["stdio", "2026"],
  ["http", "2025"],
  ["http", "2026"],
] as const;

async function connect(world: World, way: "stdio" | "http", how: How): Promise<Connected> {
  if (way === "stdio") return await overStdio(world, how);
  return await (await overHttp(world, how)).connect(how);
}

async function newestRun(world: World): Promise<string | undefined> {
  const { stdout } = await world.lockstep(["runs", "--json"]);
  return (JSON.parse(stdout) as { readonly runs: readonly { readonly run: string }[] }).runs[0]?.run;
}

async function answersIn(world: World, run: string): Promise<readonly (readonly unknown[])[]> {
  const { stdout } = await world.lockstep(["show", run, "--events"]);
  const events = stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { event: Document }).event);
  return events.filter(({ type }) => type === "step.told").map(({ answer, by }) => [answer, by]);
}

const REFUSED: readonly (readonly [tool: string, args: object, why: RegExp])[] = [
  ["notes", {}, /^PARAMETERS_INVALID: The parameter "topic" is required/],
  ["notes", { topic: "tides", trust: "0".repeat(64) }, /^PARAMETERS_INVALID: There is no parameter "trust"/],
  ["notes", { topic: "tides", yes: true, "on-permission": "allow" }, /There is no parameter "on-permission"/],
  ["notes", { topic: "tides", wait: -1 }, /^USAGE: "wait" must be a number of seconds from 0 to 86400/],
  ["runs", { limit: "many" }, /^USAGE: "limit" must be a whole number/],
  ["runs", { all: true }, /^USAGE: This request takes agent, limit, and not "all"/],
  ["show", {}, /^USAGE: "run" is missing/],
  ["show", { run: "nothing" }, /^RUN_UNKNOWN: /],
  ["run_wait", { run: "@last" }, /^RUN_UNKNOWN: /],
  ["run_stop", { run: "../../x" }, /^RUN_UNKNOWN: /],
  ["graph", { agent: "../notes" }, /^AGENT_UNKNOWN: This project has no agent "\.\.\/notes"/],
  ["graph", { agent: "notes", format: "exe" }, /^USAGE: "format" must be one of mermaid, text/],
  ["findings", { agent: "--help" }, /^AGENT_UNKNOWN: /],
  ["answer", { run: "@last", answer: "" }, /^RUN_UNKNOWN: /],
];

describe("tools", { concurrency: 2, skip }, () => {
  for (const [way, era] of WAYS)
    test(`over ${way} in ${era}: tools, a run with progress, what it made, resources`, async () => {
      using world = createWorld();
      writeNotes(world, {}, slow(300));
      await using client = await connect(world, way, { era });
      assert.equal(client.getNegotiatedProtocolVersion()?.slice(0, 4), era);
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name as string).toSorted(),
        "answer findings graph logs notes questions result run_resume run_stop run_wait runs show why".split(
          " ",
        ),
      );
      const notes = tools.find(({ name }) => name === "notes");
      assert.deepEqual(notes.inputSchema.properties.topic, {
        type: "string",
        description: "What the note is about",
      });
      assert.deepEqual(notes.inputSchema.required, ["topic"]);
      assert.equal(notes.inputSchema.additionalProperties, false);
      assert.match(notes.description, /Writes a short note about a topic/);
      assert.deepEqual(
        [notes.annotations.readOnlyHint, tools.find(({ name }) => name === "why").annotations.readOnlyHint],
        [false, true],
      );

      const heard: { readonly progress: number; readonly message?: string }[] = [];
      const call = { name: "notes", arguments: { topic: "tides" } };
      const {
        structuredContent: made,
        content,
        isError,
      } = await client.callTool(call, { onprogress: (one) => heard.push(one) });
      assert.deepEqual(
        [made.outcome, made.success, made.result, isError ?? false],
        ["completed", true, { note: "n" }, false],
      );
      assert.deepEqual(Object.keys(made.handoff), ["initial.note", "continuation.note", "closure.note"]);
      assert.match(content[0]!.text, new RegExp(`^Run ${made.run} of notes: completed\\.\n`));
      assert.ok(heard.length > 0);
      assert.match(heard.at(0)!.message!, /^(?:\w+\.note #1|no step under way) · \d turns?/);
      assert.deepEqual(
        heard.map(({ progress }) => progress),
        heard.map(({ progress }) => progress).toSorted((a, b) => a - b),
      );
      assert.equal(await stateOf(world, made.run), "completed");

      const { contents } = await client.readResource({ uri: `lockstep://runs/${made.run}/result` });
      assert.deepEqual(JSON.parse(contents[0].text).result, { note: "n" });
      const graph = await client.readResource({ uri: "lockstep://agents/notes/graph" });
      assert.match(graph.contents[0].text, /^flowchart TD\n/);
      await assert.rejects(
        client.readResource({ uri: "lockstep://runs/nothing" }),
        /There is no run "nothing"|nothing/,
      );
      await assert.rejects(client.callTool({ name: "nobody" }), /There is no tool "nobody"/);
    });

  test("what a call asks for wrongly is refused in words, and starts nothing", async () => {
    using world = createWorld();
    writeNotes(world);
    await using client = await overStdio(world);
    const { tools } = await client.listTools();
    const ajv = new Ajv({ strict: false });
    for (const [name, args, pattern] of REFUSED) {
      const { isError, content, structuredContent } = await client.callTool({ name, arguments: args });
      assert.equal(isError, true, name);
      // Some clients hold a refusal against the schema of results too, and show their own complaint instead.
      const { outputSchema = {} } = tools.find((tool) => tool.name === name);
      assert.ok(ajv.validate(outputSchema, structuredContent), `${name}: ${ajv.errorsText()}`);
      assert.match(content[0]!.text, pattern);
    }
    assert.equal(await newestRun(world), undefined);
  });

  test("every look gives its document", async () => {
    using world = createWorld();
    writeNotes(world);
    await using client = await overStdio(world);
    const { structuredContent: made } = await client.callTool({
      name: "notes",
      arguments: { topic: "tides" },
    });
    const look = async (name: string, args: object): Promise<Document> => {
      const { structuredContent, isError } = await client.callTool({ name, arguments: args });
      assert.equal(isError ?? false, false, name);
      return structuredContent;
    };
    const { runs } = await look("runs", { agent: "notes" });
    assert.deepEqual([runs.length, runs[0].run, runs[0].args], [1, made.run, { topic: "tides" }]);
    const run = "@last";
    assert.equal((await look("show", { run })).path.length, 3);
    assert.deepEqual((await look("result", { run })).result, { note: "n" });
    assert.equal((await look("why", { run, step: "initial.note" })).step, "initial.note");
    assert.ok(
      (await look("logs", { run })).lines.some(({ message }: Document) => message === "Run started: notes"),
    );
    assert.equal((await look("logs", { run, transcript: true, from: 1 })).from, 1);
    assert.deepEqual(await look("questions", {}), { v: 1, questions: [] });
    assert.equal((await look("findings", {})).ok, true);
    assert.match((await look("graph", { agent: "notes", format: "text" })).graph, /initial\.note/);
    assert.equal((await look("run_wait", { run })).outcome, "completed");
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      [`lockstep://runs/${made.run}`, "lockstep://agents/notes/graph"],
    );
    assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 7);
  });

  test("a run that did not complete is an error with what to do next", async () => {
    using world = createWorld();
    writeNotes(world);
    world.write("all.json", JSON.stringify({ replies: [{ step: "initial.note", text: "no answer" }] }));
    await using client = await overStdio(world);
    const failed = await client.callTool({ name: "notes", arguments: { topic: "tides" } });
    const { run, outcome, hint } = failed.structuredContent;
    assert.deepEqual([failed.isError, outcome], [true, "failed"]);
    assert.equal(
      hint,
      `It can go on from where it stopped: run_resume {"run":"${run}"}, or lockstep resume ${run}`,
    );
    assert.ok(failed.content[0]!.text.includes(hint));
  });
});

describe("long runs", { concurrency: 2, skip }, () => {
  test("a call may end before its run: run_wait picks it up, and many may wait", async () => {
    using world = createWorld();
    writeNotes(world, {}, slow(60_000));
    const flags = ["--script", "all.json", "--reply-within", "10ms"];
    await using client = await overStdio(world, { flags });
    const begun = await client.callTool({ name: "notes", arguments: { topic: "tides" } });
    const { run, outcome, hint } = begun.structuredContent;
    assert.deepEqual([outcome, begun.isError ?? false], ["running", false]);
    assert.match(hint, /^The run goes on, whatever becomes of this call\. Wait for its end with run_wait/);
    await client.callTool({ name: "run_stop", arguments: { run } });
    await client.callTool({ name: "run_resume", arguments: { run, wait: 0 } });
    const wait = { name: "run_wait", arguments: { run, wait: 120 } };
    const both = await Promise.all([client.callTool(wait), client.callTool(wait)]);
    assert.deepEqual(
      both.map(({ structuredContent }) => structuredContent.outcome),
      ["completed", "completed"],
    );
  });

  test("a client that only looks on stops nothing by looking away", async () => {
    using world = createWorld();
    writeNotes(world, {}, slow(3000));
    await using client = await overStdio(world);
    const { structuredContent: begun } = await client.callTool({
      name: "notes",
      arguments: { topic: "tides", wait: 0 },
    });
    const wait = { name: "run_wait", arguments: { run: begun.run, wait: 120 } };
    const cancel = new AbortController();
    const given = client.callTool(wait, { signal: cancel.signal, onprogress: () => cancel.abort("enough") });
    await given.catch(() => null);
    assert.equal((await client.callTool(wait)).structuredContent.outcome, "completed");
  });

  for (const [way, era] of WAYS)
    test(`over ${way} in ${era} a cancelled call stops its run, and run_resume goes on with it`, async () => {
      using world = createWorld();
      writeNotes(world, {}, slow(60_000));
      await using client = await connect(world, way, { era });
      const cancel = new AbortController();
      const call = client.callTool(
        { name: "notes", arguments: { topic: "tides" } },
        { signal: cancel.signal, onprogress: () => cancel.abort("enough") },
      );
      await assert.rejects(call);
      let run: string | undefined;
      await until(async () => (run = await newestRun(world)), "there is a run");
      await becomes(world, run!, "interrupted");
      const resumed = await client.callTool({ name: "run_resume", arguments: { run, wait: 120 } });
      assert.equal(resumed.structuredContent.outcome, "completed", resumed.content[0]!.text);
    });

  for (const [way, era, end] of [
    ["stdio", "2025", "the client goes away"],
    ["stdio", "2026", "the client goes away"],
    ["stdio", "2025", "the server is killed"],
    ["http", "2025", "the client goes away"],
  ] as const)
    test(`over ${way} in ${era} a run goes on when ${end}, and another client finds it`, async () => {
      using world = createWorld();
      writeNotes(world, {}, slow(2000));
      const client = await connect(world, way, { era });
      const { promise, resolve } = Promise.withResolvers<void>();
      const call = client
        .callTool({ name: "notes", arguments: { topic: "tides" } }, { onprogress: () => resolve() })
        .catch(() => null);
      await promise;
      if (end === "the server is killed") process.kill(client.pid, "SIGKILL");
      else await client.close();
      await call;
      const run = await newestRun(world);
      await becomes(world, run!, "completed");
      await using other = await overStdio(world, { era });
      const found = await other.callTool({ name: "run_wait", arguments: { run: "@last" } });
      assert.deepEqual([found.structuredContent.run, found.structuredContent.outcome], [run, "completed"]);
    });

  test("run_stop stops what another client started", async () => {
    using world = createWorld();
    writeNotes(world, {}, slow(60_000));
    const server = await overHttp(world);
    await using one = await server.connect();
    await using other = await server.connect({ era: "2026" });
    const { structuredContent: begun } = await one.callTool({
      name: "notes",
      arguments: { topic: "tides", wait: 0 },
    });
    const stopped = await other.callTool({ name: "run_stop", arguments: { run: begun.run } });
    assert.equal(stopped.structuredContent.state, "stopped");
    assert.equal(await stateOf(world, begun.run), "interrupted");
  });
});

describe("questions", { concurrency: 2, skip }, () => {
  for (const [way, era] of WAYS)
    test(`over ${way} in ${era} a person is asked by a form, and the same call goes on`, async () => {
      using world = createWorld();
      writeNotes(world, { asks: true }, COLOUR, WRITE);
      const forms: Document[] = [];
      const person = (asked: Document) => {
        forms.push(asked);
        return { action: "accept", content: { answer: forms.length === 1 ? "blue" : "allow" } };
      };
      await using client = await connect(world, way, { era, person });
      const { tools } = await client.listTools();
      assert.ok(!tools.some(({ name }) => name === "answer"), "the person is asked, so no model has to");
      const { structuredContent: made, content } = await client.callTool({
        name: "notes",
        arguments: { topic: "tides" },
      });
      assert.equal(made.outcome, "completed", content[0]!.text);
      assert.match(
        forms[0].message,
        /^The Lockstep agent notes asks in step initial\.note:\n\n[^]*Which colour\?/,
      );
      assert.match(forms[1].message, /wants to call Write:/);
      assert.deepEqual(forms[1].requestedSchema.properties.answer.enum, [
        "allow",
        "allow-run",
        "deny",
        "stop",
      ]);
      assert.deepEqual(await answersIn(world, made.run), [
        ["blue", "mcp"],
        ["allow", "mcp"],
      ]);
      assert.equal(readFileSync(join(world.root, "made.txt"), "utf8"), "hi");
    });

  for (const [action, era] of [
    ["decline", "2025"],
    ["cancel", "2026"],
  ] as const satisfies readonly (readonly [string, Era])[])
    test(`${action} in ${era} leaves the question open, and run_wait asks again`, async () => {
      using world = createWorld();
      writeNotes(world, { asks: true }, WRITE);
      let answers: readonly object[] = [{ action }, { action: "accept", content: { answer: "deny" } }];
      const person = () => {
        const [first, ...rest] = answers;
        answers = rest;
        return first!;
      };
      await using client = await overStdio(world, { era, person });
      const left = await client.callTool({ name: "notes", arguments: { topic: "tides" } });
      const { run, outcome, questions, hint } = left.structuredContent;
      assert.deepEqual([outcome, left.isError ?? false, questions.length], ["waiting", false, 1]);
      assert.equal(
        hint,
        `The user is asked again by run_wait {"run":"${run}"}, or answers in a terminal: lockstep answer ${run}`,
      );
      const asked = await client.callTool({ name: "run_wait", arguments: { run } });
      assert.equal(asked.structuredContent.outcome, "completed", asked.content[0]!.text);
      assert.deepEqual(await answersIn(world, run), [["deny", "mcp"]]);
      assert.ok(!existsSync(join(world.root, "made.txt")));
    });

  test("without forms the model passes on words, and never a permission", async () => {
    using world = createWorld();
    writeNotes(world, { asks: true }, COLOUR, WRITE);
    await using client = await overStdio(world);
    const asked = await client.callTool({ name: "notes", arguments: { topic: "tides" } });
    const { run, questions, hint } = asked.structuredContent;
    assert.equal(
      hint,
      `Ask the user, then pass on what they said: answer {"run":"${run}","question":"${questions[0].id}","answer":"…"}`,
    );
    const { structuredContent: open } = await client.callTool({ name: "questions" });
    assert.deepEqual(
      open.questions.map(({ about, choices }: Document) => [about, choices]),
      [["user", ["red", "blue"]]],
    );
    const strange = await client.callTool({
      name: "answer",
      arguments: { run, question: "qnone", answer: "red" },
    });
    assert.match(strange.content[0]!.text, /^USAGE: Run \w+ has no open question "qnone"/);
    const told = await client.callTool({ name: "answer", arguments: { run, answer: "red" } });
    assert.equal(told.structuredContent.outcome, "waiting");
    assert.match(
      told.structuredContent.hint,
      /^Only a person may decide this\. In a terminal: lockstep answer/,
    );
    const [permission] = told.structuredContent.questions;
    for (const answer of ["allow", "deny", "stop"]) {
      const refused = await client.callTool({
        name: "answer",
        arguments: { run, question: permission.id, answer },
      });
      assert.equal(refused.isError, true);
      assert.match(
        refused.content[0]!.text,
        /^PERSON_NEEDED: Only a person may answer this\. In a terminal: lockstep answer/,
      );
    }
    assert.ok(!existsSync(join(world.root, "made.txt")));
    const { code } = await world.lockstep(["answer", run, "allow"], { env: { LOCKSTEP_TRUST: "all" } });
    assert.equal(code, 0);
    assert.ok(existsSync(join(world.root, "made.txt")));
    assert.deepEqual(await answersIn(world, run), [
      ["red", "mcp"],
      ["allow", "answer"],
    ]);
  });
});

describe("trust and limits", { concurrency: 2, skip }, () => {
  test("an agent that is not trusted is not a tool; once it is, the client hears of it", async () => {
    using world = createWorld();
    writeAgent(world, "quiet");
    world.write("all.json", script(...ALL));
    // Makes Lockstep run a command.
    writeAgent(world, "loud", {
      registry: (registry) => {
        registry.validators = {
          proof: { type: "command", command: "touch ran", successWhen: "exitCode:0", failurePattern: "p" },
        };
        registry.failurePatterns = { p: { description: "No proof", edition: "failed", params: [] } };
        registry.validationSteps = {
          "closure.note": {
            stepId: "closure.note",
            name: "Proof",
            c2: "retry",
            c3: "note",
            validationConditions: [{ validator: "proof" }],
            onFailure: { action: "retry", maxAttempts: 2 },
          },
        };
      },
    });
    world.write(".agent/loud/prompts/steps/retry/note/f_failed.md", "The proof is missing: {{summary}}\n");
    await using client = await overStdio(world, { env: { LOCKSTEP_TRUST: "" } });
    let changes = 0;
    client.setNotificationHandler("notifications/tools/list_changed", () => (changes += 1));
    const names = async () => (await client.listTools()).tools.map(({ name }) => name as string);
    assert.deepEqual(
      (await names()).filter((name) => /quiet|loud|trust/.test(name)),
      ["quiet", "trust_needed"],
    );
    const { structuredContent: needed, content } = await client.callTool({ name: "trust_needed" });
    const loud = needed.agents.find(({ agent }: Document) => agent === "loud");
    assert.match(loud.does.join("\n"), /touch ran/);
    assert.match(loud.next, /Trust is given in a terminal only: lockstep trust add loud$/);
    assert.doesNotMatch(
      content[0]!.text,
      /[0-9a-f]{64}/,
      "the digest would let a model with a shell trust it",
    );
    await assert.rejects(
      client.callTool({ name: "loud", arguments: { topic: "x" } }),
      /There is no tool "loud"/,
    );
    const shown = JSON.parse((await world.lockstep(["trust", "show", "loud", "--json"])).stdout) as {
      digest: string;
    };
    await world.lockstep(["run", "loud", "--topic", "x", "--script", "all.json", "--trust", shown.digest]);
    await until(() => changes > 0, "the client hears that the list changed");
    assert.ok((await names()).includes("loud"));
    // Trust is for what the files did then.
    const file = ".agent/loud/steps_registry.json";
    world.write(file, readFileSync(join(world.root, file), "utf8").replace("touch ran", "touch other"));
    assert.ok(!(await names()).includes("loud"));
    assert.ok(!existsSync(join(world.root, "other")));
  });

  test("flags of the server hold for every run", async () => {
    using world = createWorld();
    writeNotes(world, { asks: true }, WRITE);
    await using client = await overStdio(world, {
      flags: ["--script", "all.json", "--max-turns", "1", "--on-permission", "deny"],
    });
    const { structuredContent: made } = await client.callTool({
      name: "notes",
      arguments: { topic: "tides" },
    });
    assert.deepEqual([made.outcome, made.exitCode, made.usage.turns], ["failed", 4, 1]);
    assert.equal(
      made.hint,
      `Only the user can raise the limit. In a terminal: lockstep resume ${made.run} --max-turns 3`,
    );
    const again = await client.callTool({ name: "run_resume", arguments: { run: made.run } });
    assert.deepEqual([again.isError, again.structuredContent.usage.turns], [true, 1]);
    assert.ok(!existsSync(join(world.root, "made.txt")));
  });

  test("names that clients cannot write are changed, and agents with errors are not offered", async () => {
    using world = createWorld();
    for (const name of ["show", "x".repeat(60)]) writeAgent(world, name);
    writeAgent(world, "broken", { registry: (registry) => void (registry.steps = {}) });
    writeAgent(world, "sly", {
      agent: (agent) => {
        const { topic } = agent.parameters as { topic: { required: boolean; default?: string } };
        Object.assign(topic, { required: false, default: "tides\u200b\u{e0041}" });
      },
    });
    await using client = await overStdio(world, { flags: [] });
    const { tools } = await client.listTools();
    const ours = tools.map(({ name }) => name as string).filter((name) => /^(?:show-|x|broken)/.test(name));
    assert.deepEqual(ours.map((name) => name.replace(/-[0-9a-f]{6}$/, "-#")).toSorted(), [
      "show-#",
      `${"x".repeat(37)}-#`,
    ]);
    assert.ok(tools.every(({ name }) => /^[\w-]{1,44}$/.test(name as string)));
    const { structuredContent: findings } = await client.callTool({
      name: "findings",
      arguments: { agent: "broken" },
    });
    assert.equal(findings.ok, false);
    const sly = tools.find(({ name }) => name === "sly");
    assert.match(sly.description, /cannot be started from here: the default of its parameter "topic"/);
    assert.ok(!/[\u200b\u{e0041}]/u.test(JSON.stringify(tools)));
    const refused = await client.callTool({ name: "sly" });
    assert.match(
      refused.content[0]!.text,
      /^HIDDEN_TEXT: The Lockstep agent "sly" cannot be started from here/,
    );
  });

  test("a secret that stands in files of an agent is in nothing that is sent", async () => {
    using world = createWorld();
    const key = "key-of-the-user-123456";
    writeAgent(world, "notes", {
      agent: (agent) => {
        const { topic } = agent.parameters as { readonly topic: object };
        Object.assign(topic, { description: `Not ${key}`, default: key, required: false });
        Object.assign(agent, {
          displayName: `${"y".repeat(70)}${key}`,
          description: `${"y".repeat(790)}${key}`,
        });
      },
    });
    const stage = `${"x".repeat(45)}${key}`;
    world.write(".agent/staged/machine.yaml", `id: staged\nentry: ${stage}\n`);
    world.write(
      ".agent/staged/stages/1.md",
      `---
id: ${stage}
name: A
description: ${key}
allowedTools: []
completionTool: submit
completionSchema: { type: object }
retryPolicy: { maxAttempts: 1, backoff: none }
turnCap: 2
resolutionPolicy: fail
next: end
---

Say ${key}.
`,
    );
    writeAgent(world, key, { agent: (agent) => (agent.name = "other") });
    world.write("all.json", script(slow(200), { text: key }, { text: key }));
    await using client = await overStdio(world, { env: { MY_API_KEY: key } });
    const sent: unknown[] = [];
    const onprogress = (said: object) => void sent.push(said);
    sent.push(await client.listTools(), await client.listResources());
    sent.push(await client.callTool({ name: "staged", arguments: {} }, { onprogress }));
    for (const name of ["findings", "runs"]) sent.push(await client.callTool({ name }));
    for (const format of ["text", "mermaid"])
      sent.push(await client.callTool({ name: "graph", arguments: { agent: "staged", format } }));
    for (const uri of [`lockstep://agents/no-${key}/graph`, `lockstep://runs/${key}`, `lockstep://${key}`])
      sent.push(await client.readResource({ uri }).catch((error: unknown) => String(error)));
    sent.push(await client.callTool({ name: key }).catch((error: unknown) => String(error)));
    const [{ tools }] = sent as [{ readonly tools: readonly Document[] }];
    assert.ok(["notes", "staged"].every((name) => tools.some((tool) => tool.name === name)));
    assert.ok(
      sent.some((one) => /"message":"x+\[redacted/.test(JSON.stringify(one))),
      "progress",
    );
    for (const one of sent) {
      const text = JSON.stringify(one);
      if (!text.includes("no step under way")) assert.match(text, /redacted/);
      // Also not its beginning, where a text was cut.
      assert.doesNotMatch(text, /key-of|of-the-user/);
    }
  });

  test("what models wrote is spelled out, secrets are removed, and long results are cut", async () => {
    using world = createWorld();
    writeNotes(world);
    const note = `\u001b]0;x\u0007 \u202etxt \u{e0041}\u200b key-of-the-user-123456 ${'"'.repeat(200_000)}`;
    const closing = { stepId: "closure.note", note, next_action: { action: "closing", reason: "done" } };
    const last = { step: "closure.note", output: closing };
    world.write("all.json", script(replies.initial(), replies.continuation(), last));
    // Recorded by somebody who did not have the secret in their environment.
    const env = { LOCKSTEP_TRUST: "all" };
    await world.lockstep(["run", "notes", "--topic", "tides", "--script", "all.json"], { env });
    await using client = await overStdio(world, { env: { MY_API_KEY: "key-of-the-user-123456" } });
    const looked = { name: "run_wait", arguments: { run: "@last" } };
    const { structuredContent: made, content } = await client.callTool(looked);
    const { contents } = await client.readResource({ uri: "lockstep://runs/@last" });
    const text = JSON.stringify(made);
    assert.ok(text.length < 61_000, String(text.length));
    assert.ok(content[0]!.text.length < 121_000);
    assert.equal(made.result.cut, true);
    assert.ok(made.result.characters > 200_000);
    assert.ok(
      made.result.begins.includes(String.raw`\\x1b]0;x\\x07 \\u202etxt \\u{e0041}\\u{200b}`),
      made.result.begins.slice(0, 200),
    );
    for (const all of [text, content[0]!.text, contents[0].text]) {
      assert.ok(!all.includes("key-of-the-user-123456"));
      for (const char of ["\u001b", "\u202e", "\u200b", "\u{e0041}"]) assert.ok(!all.includes(char));
    }
  });
});

test("a script or a model that is not there is refused before a client is served", async () => {
  using world = createWorld();
  for (const [flags, exit, why] of [
    [["--script", "nosuch.yaml"], 2, /nosuch\.yaml cannot be read/],
    [["--http", "--model", "nosuch/none"], 3, /Unknown model "nosuch\/none"/],
  ] as const) {
    const { code, stdout, stderr } = await world.lockstep(["mcp", ...flags]);
    assert.deepEqual([code, stdout], [exit, ""]);
    assert.match(stderr, why);
  }
});

test("without the SDK the command says in one message how to install it; stdout stays empty", async () => {
  using world = createWorld();
  writeNotes(world);
  const none = join(world.root, "none");
  const { code, stdout, stderr } = await world.lockstep(["mcp"], { env: { LOCKSTEP_PACKAGES: none } });
  assert.deepEqual([code, stdout], [3, ""]);
  assert.match(
    stderr,
    /^lockstep: `lockstep mcp` needs @modelcontextprotocol\/server, [^\n]* Install it: npm install @modelcontextprotocol\/server@2 [^\n]*docs\/mcp-server\.md\)\n$/,
  );
});
