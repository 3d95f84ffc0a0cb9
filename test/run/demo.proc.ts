/** The demo agent on a model behind HTTP: found by a name of the user's, really editing files, really committing. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseScript } from "../../src/backends/scripted/script.ts";
import { modelServer } from "../backends/model-server.ts";
import { MAIN, onlyDocument, start } from "../cli/world.ts";

const example = fileURLToPath(new URL("../../examples/01-fix-a-test/", import.meta.url));

for (const wire of ["anthropic", "openai-compatible"] as const) {
  test(`the demo agent over ${wire}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "lockstep-model-demo-"));
    const home = mkdtempSync(join(tmpdir(), "lockstep-home-"));
    try {
      cpSync(join(example, "project"), folder, { recursive: true });
      cpSync(join(example, ".agent"), join(folder, ".agent"), { recursive: true });
      writeFileSync(join(folder, ".gitignore"), ".lockstep\n");
      for (const args of [
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Test"],
        ["config", "user.email", "test@example.invalid"],
        ["add", "-A"],
        ["commit", "-qm", "A cart with two bugs"],
      ]) {
        assert.equal(spawnSync("git", args, { cwd: folder }).status, 0);
      }
      const script = readFileSync(join(example, "script.yaml"), "utf8");
      await using server = await modelServer(wire, await parseScript(script, "script.yaml"));
      const { provider, model, baseUrl } = server.target;
      const opus = { provider, model, baseUrl, apiKeyEnv: "THE_KEY" };
      mkdirSync(join(home, ".config/lockstep"), { recursive: true });
      writeFileSync(join(home, ".config/lockstep/config.json"), JSON.stringify({ models: { opus } }));
      const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
      const env = {
        ...inherited,
        HOME: home,
        XDG_CONFIG_HOME: "",
        THE_KEY: "secret-key",
        LOCKSTEP_TRUST: "all",
      };

      const ran = await start(process.execPath, [MAIN, "run", "fixer", "--issue", "7", "--json"], folder, {
        env,
      });
      assert.equal(ran.code, 0, ran.stderr + ran.stdout);
      const result = onlyDocument(ran);
      assert.deepEqual([result.outcome, result.iterations], ["completed", 5]);
      const { inputTokens, turns } = result.usage as { inputTokens: number; turns: number };
      assert.deepEqual([turns, inputTokens], [8, 800]);
      if (wire === "anthropic") assert.equal((result.costUsd as number).toFixed(4), "0.0032");
      assert.match(readFileSync(join(folder, "cart.js"), "utf8"), /item\.price \* item\.quantity/);
      const { stdout } = spawnSync("git", ["log", "--format=%s"], { cwd: folder, encoding: "utf8" });
      assert.equal(
        stdout,
        "Take a discount as a share of the sum\nCount the quantity of each item\nA cart with two bugs\n",
      );
      assert.ok(!readFileSync(join(folder, ".lockstep/runs.db")).includes("secret-key"));
    } finally {
      for (const made of [folder, home]) rmSync(made, { recursive: true, force: true });
    }
  });
}
