/** `lockstep mcp` with a script or a model that no run could begin with does not start. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { requireModel } from "../../src/cli/commands/mcp.ts";

for (const [flags, code] of [
  [{}, null],
  [{ script: "fine.json" }, null],
  [{ script: "nosuch.yaml" }, "SCRIPT_INVALID"],
  [{ script: "broken.json" }, "SCRIPT_INVALID"],
  [{ model: "anthropic/claude-x" }, null],
  [{ model: "nosuch/none" }, "NO_BACKEND"],
  [{ model: "nosuch/none", backend: "ai-sdk" }, "NO_BACKEND"],
  [{ model: "nosuch/none", backend: "claude-agent" }, null],
] as const)
  test(`${JSON.stringify(flags)}: ${code ?? "starts"}`, async () => {
    const cwd = mkdtempSync(join(tmpdir(), "lockstep-mcp-start-"));
    try {
      writeFileSync(join(cwd, "fine.json"), "[]");
      writeFileSync(join(cwd, "broken.json"), '{"a":');
      const started = requireModel({ flags, cwd, host: { env: { HOME: cwd } } } as never);
      if (code === null) await started;
      else await assert.rejects(started, { code });
    } finally {
      rmSync(cwd, { recursive: true });
    }
  });
