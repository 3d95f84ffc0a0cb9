/** Every example runs as its page says. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

test("npm start: the agent closes too early, is sent back, and ends with a green suite", () => {
  const home = mkdtempSync(join(tmpdir(), "lockstep-start-"));
  try {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["examples/demo.ts"], {
      cwd: root,
      encoding: "utf8",
      env: { ...env, TMPDIR: home },
    });
    assert.equal(status, 0, stderr);
    assert.equal(stdout.trim().split("\n").at(-1), '{"outcome":"success"}');
    assert.match(stderr, /Its tests: 0 pass, 2 fail/);
    assert.match(stderr, /tests-pass/);
    assert.match(stderr, /Its tests now: 2 pass, 0 fail/);
    assert.match(stderr, /Try next/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

test("the example agents pass check", () => {
  for (const example of readdirSync(join(root, "examples"), { withFileTypes: true })) {
    if (!example.isDirectory()) continue;
    const main = join(root, "src/cli/main.ts");
    const cwd = join(root, "examples", example.name);
    const { status, stdout } = spawnSync(process.execPath, [main, "check", "--strict", "--json"], {
      cwd,
      encoding: "utf8",
    });
    assert.equal(status, 0, `${example.name}: ${stdout}`);
  }
});
