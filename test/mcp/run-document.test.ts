/** A run as a tool answers with it: every way in which it can stand fits the schema, and says what to do next. */
import { Ajv } from "ajv";
import assert from "node:assert/strict";
import { test } from "node:test";
import { RUN_SCHEMA, runAnswer } from "../../src/mcp/run-document.ts";
import { shownOf, type Shown } from "../../src/run/records/runs.ts";
import { toFailure } from "../../src/tell/result.ts";

const validate = new Ajv({ strict: false }).compile(RUN_SCHEMA);
const result = { ...toFailure("notes", "PROMPT_MISSING", "It failed."), run: "r1" };
const stands = { result, damage: null, isRunning: false, rests: null, held: null };
const completed = { ...result, outcome: "completed", success: true, code: null, exitCode: 0 } as const;
const words = { typed: (text: string) => text, next: () => [], hasAnswerTool: true };

for (const [outcome, shown, isError, hint] of [
  ["completed", shownOf({ ...stands, result: completed }), false, null],
  ["failed", shownOf(stands), true, /The tool why \{"run":"r1"\}/],
  [
    "running",
    shownOf({ ...stands, isRunning: true }),
    false,
    /Wait for its end with run_wait \{"run":"r1"\}/,
  ],
  [
    "queued",
    shownOf({ ...stands, rests: "It waits." }),
    false,
    /waits for a worker .* run_wait \{"run":"r1"\}/,
  ],
  ["poisoned", shownOf({ ...stands, held: "Three workers died" }), true, /lockstep fleet retry r1$/],
  [
    "waiting",
    shownOf({ ...stands, result: { ...result, outcome: "waiting" } }),
    false,
    /lockstep answer r1$/,
  ],
  [
    "interrupted",
    shownOf({ ...stands, result: { ...result, outcome: "interrupted", resumable: true } }),
    true,
    /run_resume \{"run":"r1"\}/,
  ],
] as const satisfies readonly (readonly [Shown["outcome"], Shown, boolean, RegExp | null])[])
  test(`a run that is ${outcome} is ${isError ? "" : "not "}an error, and fits the schema`, () => {
    const answer = runAnswer(shown, words);
    assert.ok(answer.kind === "document");
    assert.ok(validate(answer.document), JSON.stringify(validate.errors));
    assert.deepEqual([answer.document.outcome, answer.isError], [outcome, isError]);
    if (hint === null) assert.equal(answer.document.hint, null);
    else assert.match(answer.document.hint as string, hint);
  });

test("a refusal fits the schema, and half a run does not", () => {
  assert.ok(validate({ v: 1, code: "USAGE", reason: "No." }));
  assert.ok(!validate({ v: 1, reason: "No." }));
  assert.ok(!validate({ v: 1, run: "r1", agent: "a", outcome: "completed", code: null, reason: "" }));
  const { document } = runAnswer(shownOf(stands), words) as { readonly document: object };
  assert.ok(!validate({ ...document, outcome: "gone" }));
});
