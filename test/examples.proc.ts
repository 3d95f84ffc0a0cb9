/** Every example runs as its page says. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
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

const ENDS: readonly [agent: string, iterations: number, reason: RegExp, flags?: readonly string[]][] = [
  ["counted", 3, /Completed 3\/3 iterations/],
  ["checked", 2, /Completed 2\/2 status checks/],
  ["polled", 2, /launch\.md holds/, ["--topic", "launch"]],
  ["spoken", 2, /The keyword NOTE_WRITTEN was given/],
  ["signalled", 2, /The signal wrap-up was given/],
  ["combined", 3, /note\.md is there; The keyword NOTE_WRITTEN/],
  ["custom", 2, /the note has 5 of 5 words/],
];

for (const [agent, iterations, reason, flags = []] of ENDS) {
  test(`example 04: ${agent} ends as its page says`, () => {
    const home = mkdtempSync(join(tmpdir(), "lockstep-verdicts-"));
    try {
      cpSync(join(root, "examples/04-verdict-types"), home, { recursive: true });
      const script = join(home, "scripts", `${agent}.yaml`);
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [join(root, "src/cli/main.ts"), "run", agent, ...flags, "--script", script, "--json"],
        { cwd: home, encoding: "utf8", env: { ...process.env, LOCKSTEP_TRUST: "all" } },
      );
      assert.equal(status, 0, stdout + stderr);
      const result = JSON.parse(stdout) as { iterations: number; reason: string; warnings: string[] };
      assert.equal(result.iterations, iterations);
      assert.match(result.reason, reason);
      assert.deepEqual(result.warnings, []);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
}

test("example 04 has a script and a row for every agent", () => {
  const agents = readdirSync(join(root, "examples/04-verdict-types/.agent"));
  assert.deepEqual(agents.toSorted(), ENDS.map(([agent]) => agent).toSorted());
});
