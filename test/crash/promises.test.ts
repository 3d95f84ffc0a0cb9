/** docs/reliability.md and docs/promises.md name a suite for every promise, and the suites are there. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const page = readFileSync(new URL("docs/reliability.md", root), "utf8");

test("every promise names the suite that holds it, and it is there", () => {
  const rows = page.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| promise"));
  assert.ok(rows.length > 10);
  for (const row of rows) {
    const held = row.split("|")[2] ?? "";
    const files = [...held.matchAll(/`((?:test|src)\/[^`]+)`/g)].map((match) => match[1]!);
    assert.ok(files.length > 0 || held.trim() === "the same", row);
    for (const file of files) assert.ok(existsSync(new URL(file, root)), file);
  }
});

test("so does every promise of docs/promises.md", () => {
  const text = readFileSync(new URL("docs/promises.md", root), "utf8");
  const [section = ""] = text.split("## What it costs");
  const promises = section.split(/^\d+\. /m).slice(1);
  assert.ok(promises.length > 4);
  for (const promise of promises) {
    const files = [...promise.matchAll(/`(test\/[^`]+)`/g)].map((match) => match[1]!);
    assert.ok(files.length > 0, promise);
    for (const file of files) assert.ok(existsSync(new URL(file, root)), file);
  }
});
