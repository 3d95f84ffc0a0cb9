/** `lockstep migrate`: a difference first, files only when they are asked for. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { builtCommand } from "../../built.ts";
import { agentFiles, projectWith } from "../../run/project.ts";

const MAIN = await builtCommand();

function migrate(cwd: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, "migrate", ...args], {
    cwd,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

test("shows the difference, writes with --write, and has nothing to do afterwards", () => {
  const files = agentFiles("old", {
    "initial.a": { kind: "work", intents: ["handoff"], transitions: { handoff: { target: "closure.a" } } },
    "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
  });
  const { runner, ...rest } = JSON.parse(files[".agent/old/agent.json"]!) as { runner: { verdict: object } };
  const { verdict, ...others } = runner;
  const value = { ...rest, runner: { ...others, completion: { ...verdict, type: "stepMachine" } } };
  // Written by a person: wide, and a list in one line.
  const v112 = JSON.stringify(value, null, 4).replace(/\[\s*"\*"\s*\]/, '[ "*" ]');
  const cwd = projectWith({ ...files, ".agent/old/agent.json": v112 });
  const file = join(cwd, ".agent/old/agent.json");

  const shown = migrate(cwd, "old");
  assert.equal(shown.status, 0, shown.stderr);
  assert.match(shown.stdout, /^--- \.agent\/old\/agent\.json$/m);
  const changed = shown.stdout.split("\n").filter((line) => /^[-+] /.test(line));
  assert.deepEqual(
    changed.map((line) => line.replaceAll(/ +/g, " ")),
    ['- "completion": {', '- "type": "stepMachine",', '+ "verdict": {', '+ "type": "detect:graph",'],
    "only what has to change does",
  );
  assert.match(shown.stderr, /--write/);
  assert.equal(readFileSync(file, "utf8"), v112, "nothing is written yet");

  const checked = spawnSync(process.execPath, [MAIN, "check", "old"], { cwd, encoding: "utf8" });
  assert.match(checked.stdout, /OLD-NAME\n {2}2 old names: [^]*fix {2}lockstep migrate old --write/);
  assert.equal(checked.stdout.match(/OLD-NAME/g)?.length, 1, checked.stdout);

  const written = migrate(cwd, "old", "--write", "--json");
  assert.equal(written.status, 0, written.stderr);
  assert.equal((JSON.parse(written.stdout) as { written: boolean }).written, true);
  const now = JSON.parse(readFileSync(file, "utf8")) as { runner: { verdict: { type: string } } };
  assert.equal(now.runner.verdict.type, "detect:graph");

  assert.match(migrate(cwd, "old").stdout, /old already has the current format/);
  assert.equal(migrate(cwd, "nobody").status, 2);
});
