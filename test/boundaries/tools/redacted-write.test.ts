/** A text with marks in the place of secrets is not written over the secrets themselves. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createRedactor } from "../../../src/boundaries/redact/redact.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import { fileAct } from "../../../src/effects/actions/action-file.ts";
import { createGround } from "../../../src/boundaries/gate/paths.ts";
import { projectWith } from "../../run/project.ts";
import { effectsOf, closing, fenced, NOTE, withActing } from "../../run/acting.ts";
import { stepWith } from "../step.ts";

const SECRET = "abcd1234efgh5678";
const LOST = /was not written: it holds a secret, which \[redacted\] would replace/;
const AS_TEXT = /It holds \[redacted\] as text/;

/** `before`: null, where there is no file. `says`: null, where nothing is said of marks. */
const ROWS: readonly (readonly [
  name: string,
  before: string | null,
  content: string,
  isWritten: boolean,
  says: RegExp | null,
])[] = [
  ["the mark of a known value", `T=${SECRET}\n`, "T=[redacted]\nport=2\n", false, LOST],
  ["the mark of a kind", `T=${SECRET}\n`, "T=[redacted:github-token]\n", false, LOST],
  ["one mark of two", `[redacted] ${SECRET}\n`, "[redacted] [redacted]\n", false, LOST],
  ["a mark that the file has itself", `[redacted] ${SECRET}\n`, "[redacted] gone\n", true, AS_TEXT],
  ["a file without secrets", "words\n", "[redacted]\n", true, AS_TEXT],
  ["a new file", null, "T=[redacted]\n", true, AS_TEXT],
  ["a secret that is given up", `T=${SECRET}\n`, "port=2\n", true, null],
];

for (const [name, before, content, isWritten, says] of ROWS)
  test(`a file is written with marks: ${name}`, async () => {
    const cwd = projectWith({});
    const file = join(cwd, ".env");
    const text = () => readFileSync(file, "utf8");
    if (before !== null) writeFileSync(file, before);
    const { text: tidy } = createRedactor(() => [SECRET]);
    const exec = () => Promise.reject(new Error("nothing is started"));
    const toolbox = createToolbox({ cwd, protect: [], env: () => ({}), autoResponse: "", exec, tidy });
    const call = { id: "one", name: "Write", input: { file_path: ".env", content } };
    const step = stepWith({ mode: "bypassPermissions" });
    const [result] = await toolbox.call(step, [call], new AbortController().signal);
    assert.equal(result?.ok, isWritten);
    if (says === null) assert.doesNotMatch(result?.content ?? "", /redacted/);
    else assert.match(result?.content ?? "", says);
    assert.equal(text(), isWritten ? content : before);

    if (before !== null) writeFileSync(file, before);
    const { pin } = createGround(cwd, []);
    const about = { key: "k", parts: [".env"], shown: ".env", mode: "write", past: null } as const;
    const done = await (await fileAct({ ...about, pin, content, tidy })).perform();
    assert.equal(done.state, isWritten ? "applied" : "failed");
    if (!isWritten) assert.match(done.detail, LOST);
    assert.equal(text(), isWritten ? content : before);
  });

test("a run keeps a secret that the model was shown as a mark", async () => {
  await withActing({}, async ({ cwd, start, read }) => {
    writeFileSync(join(cwd, ".env"), `T=${SECRET}\n`);
    const answer = { stepId: "initial.work", next_action: { action: "handoff" } };
    const block = { ...NOTE, filename: ".env", mode: "write", content: "T=[redacted]" };
    const write = { name: "Write", input: { file_path: ".env", content: "T=[redacted]" } };
    const result = await start(
      [
        { step: "initial.work", calls: [write] },
        { step: "initial.work", text: [fenced(block), fenced(answer)].join("\n\n") },
        closing(),
      ],
      { secrets: [SECRET] },
    );
    assert.deepEqual([result.outcome, effectsOf(result)], ["completed", ["action:file:failed"]]);
    assert.equal(read(".env"), `T=${SECRET}\n`);
  });
});
