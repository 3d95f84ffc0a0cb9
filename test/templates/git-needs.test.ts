/** The manual says which templates need a commit and a clean working tree, as their files have it. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { TEMPLATES } from "../../src/cli/commands.ts";

const page = readFileSync(new URL("../../docs/templates.md", import.meta.url), "utf8");
const [, section = ""] = page.split("## What git has to hold first");
const rows = section.split("\n").filter((line) => line.startsWith("| `"));

function filesOf(template: string): string {
  const folder = new URL(`../../templates/${template}/`, import.meta.url);
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(`${parentPath}/${name}`, "utf8"))
    .join("\n");
}

test("everything-committed is the same command in every template that has it", () => {
  const commands = TEMPLATES.map((template) => /git status --porcelain[^"]*/.exec(filesOf(template))?.[0]);
  const had = commands.filter((command) => command !== undefined);
  assert.deepEqual([had.length, new Set(had).size], [3, 1], had.join("\n"));
});

for (const template of TEMPLATES)
  test(`what ${template} needs of git is in the manual`, () => {
    const files = filesOf(template);
    const isClean = /^gate: everything-committed$/m.test(files);
    const isCommitted = isClean || /"worktree": \{ "enabled": true/.test(files);
    const row = rows.find((line) => line.split("|")[1]!.includes(`\`${template}\``)) ?? "";
    assert.deepEqual([/a commit/.test(row), /clean working tree/.test(row)], [isCommitted, isClean], row);
  });
