/** What is read from a page: a block that is overlooked would be a command that no test types. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { stepsOf, write, type Written } from "../scripts/pages.ts";

const fence = (info: string, text: string) => `\`\`\`${info}\n${text}\n\`\`\`\n`;

/** Page, and what is done on it: each step in one line. */
const PAGES: readonly [name: string, page: string, steps: readonly string[]][] = [
  ["no block", "# A\n\nWords, and `code`.\n", []],
  ["a command", `# A\n\n${fence("sh", "one")}`, ["A: type one"]],
  ["two commands, one over two lines", fence("sh", "one \\\n  two\n\nthree"), [": type one    two; three"]],
  ["a comment of its own", fence("sh", "# first\none"), [": type one"]],
  ["a screen", `${fence("sh", "one")}\n${fence("text", "a\n\nb")}`, [": type one, see a|b"]],
  [
    "a screen after words is not compared",
    `${fence("sh", "one")}\nOr:\n\n${fence("text", "a")}`,
    [": type one"],
  ],
  ["a screen without a command", fence("text", "a"), []],
  ["another language", fence("json", "{}"), []],
  ["indented", "    one\n", []],
  ["a file", `\`a/b.json\`:\n\n${fence("json", "{}")}`, [": file a/b.json {}"]],
  ["a file of commands", `\`a.sh\`:\n\n${fence("sh", "one")}`, [": file a.sh one"]],
  ["a path in a sentence", `See \`a.json\`:\n\n${fence("json", "{}")}`, []],
  [
    "an addition",
    `In \`a\`, below the line \`x: 1\`, add:\n\n${fence("yaml", "y: 2")}`,
    [": below a@x: 1 y: 2"],
  ],
  ["a replacement", `In \`a\`, replace the line \`x\` with:\n\n${fence("", "y")}`, [": instead a@x y"]],
  ["over two lines", `In \`a\`, replace the\nline \`x\` with:\n\n${fence("", "y")}`, [": instead a@x y"]],
  [
    "a fence in a fence",
    `\`a.md\`:\n\n\`\`\`\`md\n${fence("sh", "one")}\`\`\`\`\n`,
    [": file a.md ```sh\none\n```"],
  ],
  [
    "headings",
    `## 1. A\n\n${fence("sh", "one")}\n## B\n\n${fence("sh", "two")}`,
    ["1. A: type one", "B: type two"],
  ],
];

for (const [name, page, steps] of PAGES) {
  test(`a page with ${name}`, () => {
    const found = stepsOf(page).map((step) => {
      if (step.kind !== "typed")
        return `${step.heading}: ${step.kind} ${step.path}${step.at === "" ? "" : `@${step.at}`} ${step.text}`;
      const seen = step.shown.length === 0 ? "" : `, see ${step.shown.join("|")}`;
      return `${step.heading}: type ${step.commands.join("; ")}${seen}`;
    });
    assert.deepEqual(found, steps);
  });
}

const EDITS: readonly [kind: Written["kind"], at: string, before: string, after: string | RegExp][] = [
  ["file", "", "x\n", "new\n"],
  ["below", "b", "a\n  b\nc\n", "a\n  b\nnew\nc\n"],
  ["instead", "b", "a\n  b\nc\n", "a\nnew\nc\n"],
  ["instead", "b", "a\nc\n", /has 0 lines `b`/],
  ["below", "b", "b\nb\n", /has 2 lines `b`/],
];

for (const [kind, at, before, after] of EDITS) {
  test(`${kind} in ${JSON.stringify(before)}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "lockstep-pages-"));
    try {
      const edit = { kind, at, line: 1, heading: "", path: "deep/a", text: "new" };
      write(folder, { ...edit, kind: "file", text: before.slice(0, -1) });
      if (after instanceof RegExp) assert.throws(() => write(folder, edit), after);
      else {
        write(folder, edit);
        assert.equal(readFileSync(join(folder, "deep/a"), "utf8"), after);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
