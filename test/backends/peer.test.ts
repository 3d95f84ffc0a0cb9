/** Optional packages: found where the user says, and missed with words that help. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createAcp } from "../../src/backends/acp/acp.ts";
import { createClaudeAgent } from "../../src/backends/claude/claude-agent.ts";
import { loadPeer } from "../../src/backends/peer.ts";
import { createAgentProcesses } from "../../src/effects/process/agent-processes.ts";
import { exitCode } from "../../src/flow/verdict.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-peer-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function install(name: string, code: string): void {
  const home = join(folder, "node_modules", name);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ name, type: "module", exports: "./index.js" }));
  writeFileSync(join(home, "index.js"), code);
}

test("a package is taken from the folder that the user names", async () => {
  install("found-here", "export const word = 'hello';");
  const found = await loadPeer({ name: "found-here", whose: "A test" }, { LOCKSTEP_PACKAGES: folder });
  assert.equal((found as { word: string }).word, "hello");
});

test("one that is there and broken is told apart from one that is not there", async () => {
  install("broken-here", "throw new Error('bad day');");
  await assert.rejects(loadPeer({ name: "broken-here", whose: "A test" }, { LOCKSTEP_PACKAGES: folder }), {
    code: "BACKEND_UNAVAILABLE",
    message: /is there but cannot be loaded: bad day/,
  });
});

const processes = createAgentProcesses("lockstep-peer-", folder);
const absent: readonly [name: string, create: () => Promise<unknown>, message: RegExp][] = [
  [
    "claude-agent",
    () => createClaudeAgent({ env: { LOCKSTEP_PACKAGES: folder }, processes }),
    /npm install @anthropic-ai\/claude-agent-sdk@0\.3 --prefix \S+\/lockstep-peer-\w+ \(see \S+docs\/agents\.md\)/,
  ],
  [
    "acp",
    () => createAcp({ env: { LOCKSTEP_PACKAGES: folder }, command: "true", processes }),
    /npm install @agentclientprotocol\/sdk@2 --prefix \S+\/lockstep-peer-\w+ \(see \S+docs\/agents\.md\)/,
  ],
];
for (const [name, create, message] of absent) {
  test(`without its package ${name} says what to install, and the run ends with exit 3`, async () => {
    await assert.rejects(create(), (error: Error & { code: string }) => {
      assert.match(error.message, message);
      assert.equal(exitCode({ outcome: "failed", code: error.code }), 3);
      return true;
    });
  });
}
