/** Replies of a script that a run did not use: one line, and only where the run will not come to need them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryJournal, run, type ScriptReply } from "../../src/run/index.ts";
import { agentFiles, projectWith, stepTo } from "./project.ts";

const says = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action } },
  ...more,
});
const FILES = agentFiles("a", {
  "initial.a": stepTo("work", { next: "closure.a" }, { more: { permissionMode: "default" } }),
  "closure.a": stepTo("closure", { closing: null }),
});
const begin = says("initial.a", "next");
const end = says("closure.a", "closing");
const write: ScriptReply = { calls: [{ name: "Write", input: { file_path: "a", content: "b" } }] };

for (const [name, script, ended, left] of [
  ["used to the last", [begin, end], null, []],
  ["with one left", [begin, end, end], null, ['script: reply 3 for "closure.a" was not used']],
  [
    "with many left",
    [begin, end, { text: "x" }, end, end, end, end],
    null,
    ['script: 5 replies were not used: 3, 4 for "closure.a", 5 for "closure.a" and 2 more'],
  ],
  ["that is too short", [begin], "SCRIPT_EXHAUSTED", []],
  ["with a reply that does not fit", [begin, { ...end, saw: ["never"] }, end], "SCRIPT_MISMATCH", []],
  ["of a run that waits", [write, begin, end], "PermissionRequired", []],
] as const) {
  test(`a script ${name}`, async () => {
    const journal = createMemoryJournal();
    const around = { cwd: projectWith(FILES), journal, onPermission: "halt" } as const;
    const result = await run({ agent: "a", script, ...around });
    assert.equal(result.code, ended, result.reason);
    assert.deepEqual(
      result.warnings.filter((text) => text.startsWith("script:")),
      left,
    );
  });
}
