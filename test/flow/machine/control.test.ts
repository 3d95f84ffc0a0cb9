/** Which paths of a tree are obeyed by Lockstep, git or npm. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isControlPath } from "../../../src/flow/machine/control.ts";

const OBEYED = [
  ".agent",
  ".agent/a/agent.json",
  "packages/b/.agent/a/agent.json",
  ".lockstep/runs.db",
  "x/.lockstep",
  ".AGENT/a",
  ".Lockstep/runs.db",
  ".git/config",
  "sub/.GIT/hooks/x",
  "git~1/config",
  ".ag\u200cent/a",
  ".agent./a",
  ".agent /a",
  ".agent::$INDEX_ALLOCATION/a",
  "\uFF0Eagent/a",
  "node_modules/.bin/git",
  "x/Node_Modules/.BIN/gh",
  ".lockstep\\runs.db",
];
const FREE = [
  "a.txt",
  ".agents/a",
  "agent/a",
  ".agent-notes.md",
  "docs/.agentrc",
  ".gitignore",
  ".gitattributes",
  ".github/workflows/ci.yml",
  "lockstep/x",
  ".bin/x",
  "node_modules/x/.bin",
  "src/node_modules.bin",
];

test("paths that are obeyed", () => {
  assert.deepEqual(
    OBEYED.filter((path) => !isControlPath(path)),
    [],
  );
});

test("paths that are not", () => {
  assert.deepEqual(FREE.filter(isControlPath), []);
});
