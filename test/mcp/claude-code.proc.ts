/**
 * The real Claude Code as a client: it starts `lockstep mcp` as a user sets it up, or connects to it over HTTP, and a scripted
 * model on loopback calls an agent of the project.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startServer, type Asked, type Spoken } from "../backends/anthropic-server.ts";
import { suiteOffline } from "../backends/loopback.ts";
import { createWorld, MAIN, start, type World } from "../cli/world.ts";
import { needs } from "../needs.ts";
import {
  COLOUR,
  overHttp,
  serverEnv,
  skip as clientSkip,
  slow,
  stateOf,
  writeNotes,
  type Document,
} from "./client.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const program = `node_modules/@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}/claude`;
const claude = join(packages, program);
const { skip } = needs(existsSync(claude), "Claude Code (@anthropic-ai/claude-agent-sdk) not installed");

/** The last result of a tool that the model was given. */
function toolResult(message: string): Document {
  const { content } = JSON.parse(message) as { readonly content: readonly Document[] };
  const { content: said } = content.find(({ type }) => type === "tool_result");
  const text = (typeof said === "string" ? said : said[0].text) as string;
  assert.ok(text.startsWith("{"), text);
  return JSON.parse(text);
}

/** Claude Code without a terminal, with the server and a model that says these things. */
async function claudeCode(
  world: World,
  lockstep: object,
  replies: readonly Spoken[],
): Promise<readonly Asked[]> {
  const model = await startServer(replies);
  world.write("mcp.json", JSON.stringify({ mcpServers: { lockstep } }));
  const line = ["-p", "Write a note about tides.", "--output-format", "json", "--model", "claude-scripted"];
  const servers = ["--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__lockstep__*"];
  const ran = await start(claude, [...line, ...servers], world.root, {
    env: {
      ...serverEnv(world),
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: "sk-the-key",
      // Without it the model is also asked for a title.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  });
  await model.close();
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(JSON.parse(ran.stdout).result, replies.at(-1)!.text);
  return model.asked;
}

const NOTES = { name: "mcp__lockstep__notes", input: { topic: "tides" } };

function suite(): void {
  const stdio = (world: World) =>
    Promise.resolve({
      command: process.execPath,
      args: [MAIN, "mcp", "--script", "all.json"],
      env: serverEnv(world),
    });
  const http = async (world: World) => {
    const { url, token } = await overHttp(world);
    return { type: "http", url, headers: { Authorization: `Bearer ${token}` } };
  };

  for (const [way, set] of [
    ["stdio", stdio],
    ["http", http],
  ] as const)
    test(`Claude Code calls an agent over ${way}, and its model reads what the run made`, async () => {
      using world = createWorld();
      writeNotes(world, {}, slow(300));
      const why = { name: "mcp__lockstep__why", input: { run: "@last", step: "closure.note" } };
      const asked = await claudeCode(world, await set(world), [
        { calls: [NOTES] },
        { calls: [why] },
        { text: "It is written." },
      ]);
      // It names them to the model, and loads the schema of those that are asked for.
      for (const tool of ["notes", "run_wait", "findings"])
        assert.ok(asked[0]!.body.includes(`mcp__lockstep__${tool}`), tool);
      const made = toolResult(asked[1]!.last);
      assert.deepEqual([made.outcome, made.result], ["completed", { note: "n" }]);
      assert.equal(await stateOf(world, made.run), "completed");
      const { run, step } = toolResult(asked[2]!.last);
      assert.deepEqual([run, step], [made.run, "closure.note"]);
    });

  test("the line of the page sets it up", async () => {
    using world = createWorld();
    writeNotes(world);
    const page = readFileSync(new URL("../../docs/mcp-server.md", import.meta.url), "utf8");
    const [, words = ""] = /^ {4}claude (mcp add lockstep -- )npx lockstep (?=mcp)/m.exec(page) ?? [];
    const [, flags = ""] = /npx lockstep (mcp --reply-within 1h)$/m.exec(page) ?? [];
    const line = [...words.trim().split(" "), process.execPath, MAIN, ...flags.split(" ")];
    const added = await start(claude, line, world.root, { env: serverEnv(world) });
    assert.equal(added.code, 0, added.stderr);
    const { stdout } = await start(claude, ["mcp", "list"], world.root, { env: serverEnv(world) });
    assert.match(stdout, /^lockstep: .* mcp --reply-within 1h - . Connected$/m);
  });

  test("where Claude Code has nobody to ask, the question stays open and its model cannot answer it", async () => {
    using world = createWorld();
    writeNotes(world, {}, COLOUR);
    const asked = await claudeCode(world, await stdio(world), [{ calls: [NOTES] }, { text: "It waits." }]);
    assert.ok(!asked[0]!.body.includes("mcp__lockstep__answer"));
    const { run, outcome, hint, questions } = toolResult(asked[1]!.last);
    assert.deepEqual([outcome, questions[0].choices], ["waiting", ["red", "blue"]]);
    assert.match(hint, new RegExp(`answers in a terminal: lockstep answer ${run}$`));
    assert.equal(await stateOf(world, run), "waiting");
  });
}

suiteOffline("Claude Code as a client", import.meta.url, { skip: skip || clientSkip, curious: true }, suite);
