/**
 * The real Claude Code as a client: it starts `lockstep mcp` as a user sets it up, or connects to it over HTTP, and a scripted
 * model on loopback calls an agent of the project.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startServer } from "../backends/anthropic-server.ts";
import { suiteOffline } from "../backends/loopback.ts";
import { createWorld, MAIN, start } from "../cli/world.ts";
import { needs } from "../needs.ts";
import {
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

function suite(): void {
  for (const way of ["stdio", "http"] as const)
    test(`Claude Code calls an agent over ${way}, and its model reads what the run made`, async () => {
      using world = createWorld();
      writeNotes(world, {}, slow(300));
      const run = { name: "mcp__lockstep__notes", input: { topic: "tides" } };
      const why = { name: "mcp__lockstep__why", input: { run: "@last", step: "closure.note" } };
      const model = await startServer([{ calls: [run] }, { calls: [why] }, { text: "It is written." }]);
      const env = serverEnv(world);
      const stdio = () => ({ command: process.execPath, args: [MAIN, "mcp", "--script", "all.json"], env });
      const http = async () => {
        const { url, token } = await overHttp(world);
        return { type: "http", url, headers: { Authorization: `Bearer ${token}` } };
      };
      const lockstep = way === "stdio" ? stdio() : await http();
      world.write("mcp.json", JSON.stringify({ mcpServers: { lockstep } }));
      const line = [
        "-p",
        "Write a note about tides.",
        "--output-format",
        "json",
        "--model",
        "claude-scripted",
      ];
      const servers = [
        "--mcp-config",
        "mcp.json",
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__lockstep__*",
      ];
      const ran = await start(claude, [...line, ...servers], world.root, {
        env: {
          ...env,
          ANTHROPIC_BASE_URL: model.url,
          ANTHROPIC_API_KEY: "sk-the-key",
          // Without it the model is also asked for a title.
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        },
      });
      await model.close();
      assert.equal(ran.code, 0, ran.stderr);
      assert.equal(JSON.parse(ran.stdout).result, "It is written.");
      const asked = model.asked.filter(({ body }) => body.includes("mcp__lockstep__notes"));
      // It names them to the model, and loads the schema of those that are asked for.
      for (const tool of ["notes", "run_wait", "findings"])
        assert.ok(asked[0]!.body.includes(`mcp__lockstep__${tool}`), tool);
      const made = toolResult(asked[1]!.last);
      assert.deepEqual([made.outcome, made.result], ["completed", { note: "n" }]);
      assert.equal(await stateOf(world, made.run), "completed");
      assert.deepEqual(
        [toolResult(asked[2]!.last).run, toolResult(asked[2]!.last).step],
        [made.run, "closure.note"],
      );
    });
}

suiteOffline("Claude Code as a client", import.meta.url, { skip: skip || clientSkip, curious: true }, suite);
