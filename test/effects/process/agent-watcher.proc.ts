/** What the watcher over coding agents remembers of what it is told, until the process that tells it is gone. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { AGENT_WATCHER } from "../../../src/effects/process/agent-watcher.ts";
import { SHELL } from "../../../src/flow/machine/programs.ts";

/** In the place of what it does: it prints what it was told. */
const PRINT = "process.stdout.write(JSON.stringify(process.argv.slice(-3)))";

const cases: readonly [name: string, words: readonly string[], left: readonly string[] | null][] = [
  ["nothing", [], []],
  ["what was started", ["+1", "+2"], ["+1", "+2"]],
  ["what has ended is forgotten", ["+1", "+12", "+2", "-1"], ["+12", "+2"]],
  ["a number that is used again", ["+1", "-1", "+1"], ["+1"]],
  ["the end of what it does not know", ["+12", "-1", "-2"], ["+12"]],
  ["folders", ["+1", "projects:%2Fa%20b", "-1"], ["projects:%2Fa%20b"]],
  ["all of it, one after the other", ["+1", "+2", "-2", "-1"], []],
  ["that there is nothing left to do", ["+1", "done"], null],
];
for (const [name, words, left] of cases) {
  test(`it is told ${name}`, () => {
    const args = ["-c", AGENT_WATCHER, process.execPath, PRINT, "the-mark", "/a folder"];
    const input = words.map((word) => `${word}\n`).join("");
    const { stdout, status } = spawnSync(SHELL, args, { input, encoding: "utf8" });
    assert.equal(status, 0);
    if (left === null) return assert.equal(stdout, "");
    const [mark, folder, told = ""] = JSON.parse(stdout) as string[];
    assert.deepEqual([mark, folder], ["the-mark", "/a folder"]);
    assert.deepEqual(told.split(" ").filter(Boolean), left);
  });
}
