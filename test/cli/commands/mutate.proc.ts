/** `mutate`, `honesty` and `export --test` as a user types them: exit codes, documents, and what is written. */
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, symlinkSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld } from "../world.ts";

const ROOT = join(import.meta.dirname, "../../..");

test("mutate: a score, exit code 7 below --min, and tests that --write adds", async () => {
  using world = createWorld();
  const agent = join(world.root, ".agent/writer");
  cpSync(join(ROOT, "examples/03-checks-and-retries/.agent/writer"), agent, { recursive: true });
  rmSync(join(agent, "tests"), { recursive: true });
  world.write(
    ".agent/writer/tests/one.yaml",
    "tests: [{ name: closes, script: [initial.guide handoff, closure.guide closing] }]\n",
  );
  const line = ["mutate", "writer", "--class", "gates", "--json"];
  const low = await world.lockstep([...line, "--min", "90", "--write"]);
  assert.equal(low.code, 7, low.stderr);
  const before = JSON.parse(low.stdout);
  assert.deepEqual([before.v, before.kind, before.ok, before.tests], [1, "lockstep-mutation", false, 1]);
  assert.ok(before.mutants.every((one: { file: string; line: number }) => one.file !== null && one.line > 0));
  assert.match(readFileSync(join(agent, "tests/generated.yaml"), "utf8"), /notices when closure\.guide/);
  const high = await world.lockstep([...line, "--min", "90"]);
  assert.equal(high.code, 0, high.stderr);
  assert.equal(JSON.parse(high.stdout).score, 1);

  world.write(
    ".agent/writer/tests/one.yaml",
    "tests: [{ name: wrong, script: [initial.guide handoff, closure.guide closing], expect: { outcome: failed } }]\n",
  );
  const failing = await world.lockstep(line);
  assert.equal(failing.code, 7);
  assert.match(failing.stdout, /TESTS_FAILED/);
});

test("mutate --write follows no link out of the project", async () => {
  using world = createWorld();
  const agent = join(world.root, ".agent/writer");
  cpSync(join(ROOT, "examples/03-checks-and-retries/.agent/writer"), agent, { recursive: true });
  rmSync(join(agent, "tests"), { recursive: true });
  mkdirSync(join(agent, "tests"));
  const outside = join(world.env.HOME!, "outside.yaml");
  symlinkSync(outside, join(agent, "tests/generated.yaml"));
  const { code } = await world.lockstep(["mutate", "writer", "--class", "gates", "--write"]);
  assert.notEqual(code, 0);
  assert.equal(existsSync(outside), false);
});

test("honesty and export --test over a run that was imported", async () => {
  using world = createWorld();
  cpSync(join(ROOT, "examples/03-checks-and-retries/.agent/writer"), join(world.root, ".agent/writer"), {
    recursive: true,
  });
  world.write("run.json", readFileSync(join(ROOT, "test/fixtures/journals/closure-retry.json"), "utf8"));
  assert.equal((await world.lockstep(["import", "run.json"])).code, 0);
  const { code, stdout } = await world.lockstep(["honesty", "writer", "--by", "check", "--json"]);
  assert.equal(code, 0);
  const document = JSON.parse(stdout);
  assert.deepEqual(
    [document.v, document.kind, document.runs, document.claims, document.falseDone.count],
    [1, "lockstep-honesty", 1, 3, 2],
  );
  assert.equal(document.rows.length, 2);
  const quiet = await world.lockstep(["honesty", "writer", "-q"]);
  assert.deepEqual([quiet.code, quiet.stderr], [0, ""]);
  assert.match(
    quiet.stdout,
    /^writer: 2 of 3 claims overturned by a check\n(?:writer: the check \S+: never \w+\n)*$/,
  );
  const file = ".agent/writer/tests/recorded.yaml";
  const exported = await world.lockstep(["export", "@last", "--test", "-o", file]);
  assert.equal(exported.code, 0, exported.stderr);
  const tested = await world.lockstep(["test", "writer", "-t", "goes the way of run"]);
  assert.equal(tested.code, 0, tested.stdout);
});
