/** The lines of docs/mcp-server.md: what is pasted into other programs is JSON, and starts the command with flags that it has. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { lineOf } from "../../src/cli/call.ts";
import { commandNamed } from "../../src/cli/commands.ts";

const page = readFileSync(new URL("../../docs/mcp-server.md", import.meta.url), "utf8");

type Server = { readonly command: string; readonly args: readonly string[] };

test("every block of settings starts the server", () => {
  const blocks = [...page.matchAll(/```json\n([^]*?)```/g)].map(([, text = ""]) => text);
  assert.equal(blocks.length, 3);
  for (const text of blocks) {
    const [servers] = Object.values(
      JSON.parse(text) as { readonly [key: string]: { readonly lockstep: Server } },
    );
    const { command, args } = servers!.lockstep;
    assert.deepEqual([command, args[0], args[1]], ["npx", "lockstep", "mcp"]);
    assert.deepEqual(lineOf(commandNamed("mcp"), args.slice(1)).words, ["mcp"]);
  }
});

test("every flag that the page names is one", () => {
  const lines = [...page.matchAll(/^ {4}(?:claude mcp add .*? -- npx )?lockstep (mcp.*)$/gm)];
  assert.equal(lines.length, 2);
  for (const [, line = ""] of lines)
    assert.deepEqual(lineOf(commandNamed("mcp"), line.split(" ")).words, ["mcp"]);
  const known = new Set([...commandNamed("mcp").flags.map(({ name }) => name), "cwd", "json", "input"]);
  const clients = new Set(["save-dev", "scope", "transport", "header"]);
  for (const [, name = ""] of page.matchAll(/(?<![\w-])--([a-z][a-z-]+)/g))
    assert.ok(known.has(name) || clients.has(name), name);
});
