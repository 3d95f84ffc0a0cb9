/** The pages: every link between them leads to a file that is there, and to a heading that is in it. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "..");
const PAGES = globSync(["*.md", "docs/**/*.md", "examples/**/*.md"], {
  cwd: ROOT,
  exclude: ["**/.agent/**"],
});

/** What a reader sees as text: without blocks of code, and without what stands in backticks. */
function wordsOf(page: string): string {
  const lines = readFileSync(page, "utf8").split("\n");
  let fence: string | null = null;
  const words = lines.filter((line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence !== null && mark?.startsWith(fence) === true && line.trim() === mark) {
      fence = null;
      return false;
    }
    return fence === null;
  });
  return words.join("\n");
}

/** As GitHub names headings; one that comes again gets a number. */
function anchorsOf(page: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, title = ""] of wordsOf(page).matchAll(/^#{1,6} +(.+)$/gm)) {
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const name = plain.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "").replaceAll(" ", "-");
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

function* brokenLinks(page: string): Generator<string> {
  const text = wordsOf(page).replaceAll(/`[^`\n]*`/g, "``");
  for (const [, link = ""] of text.matchAll(/\]\(([^()\s]+)\)/g)) {
    if (/^[a-z]+:/i.test(link) || link === "") continue;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : resolve(dirname(page), path);
    if (!existsSync(target)) yield `${link}: there is no such file`;
    else if (relative(ROOT, target).startsWith("..")) yield `${link}: it leads out of the project`;
    else if (anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).has(anchor))
      yield `${link}: there is no such heading`;
  }
}

/** A page that names a suite or a source means one that is there. */
function* missingFiles(page: string): Generator<string> {
  const text = readFileSync(page, "utf8");
  for (const [, path = ""] of text.matchAll(/`((?:test|src|examples)\/[\w./-]+)`/g))
    if (!existsSync(join(ROOT, path))) yield path;
}

test("there are pages to look at", () => assert.ok(PAGES.length > 30));

for (const page of PAGES) {
  test(`${page}: every link leads somewhere, and every file it names is there`, () => {
    assert.deepEqual([...brokenLinks(join(ROOT, page)), ...missingFiles(join(ROOT, page))], []);
  });
}
