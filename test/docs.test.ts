/** The pages: their links lead somewhere, their pictures are those of the flows, and what they show is in the files. */
import assert from "node:assert/strict";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { FOLLOWED, stepsOf, write } from "../scripts/pages.ts";
import { pictures } from "../scripts/pictures.ts";
import { manual } from "../src/flow/manual.ts";
import { check } from "../src/run/load.ts";
import { linksOf, wordsOf } from "./page-links.ts";
import { isRiddleOfPage } from "./plain-words.ts";

const ROOT = join(import.meta.dirname, "..");
const PAGES = globSync(["*.md", "docs/**/*.md", "examples/**/*.md"], {
  cwd: ROOT,
  exclude: ["**/.agent/**"],
});

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
  const { links, pictures } = linksOf(page);
  for (const { link, target, anchor } of [...links, ...pictures]) {
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

for (const [file, drawn] of Object.entries(await pictures())) {
  test(`${file} is up to date (npm run reference)`, () => {
    assert.equal(readFileSync(join(ROOT, file), "utf8"), drawn);
  });
}

test("every picture is on a page", () => {
  const text = PAGES.map((page) => readFileSync(join(ROOT, page), "utf8")).join("\n");
  const drawn = globSync("docs/pictures/*", { cwd: ROOT }).map((file) => file.split("/").at(-1)!);
  assert.deepEqual(
    drawn.filter((name) => !text.includes(`pictures/${name}`)),
    [],
  );
});

test("the step in the README is one of example 01", () => {
  const [, shown = ""] = /```json\n([^]*?)```/.exec(readFileSync(join(ROOT, "README.md"), "utf8")) ?? [];
  const registry = join(ROOT, "examples/01-fix-a-test/.agent/fixer/steps_registry.json");
  const { steps } = JSON.parse(readFileSync(registry, "utf8")) as { readonly steps: object };
  assert.partialDeepStrictEqual(steps, JSON.parse(`{${shown}}`));
});

test("what is typed can be pasted into any shell: zsh does not know comments there", () => {
  const typed = PAGES.filter((page) => FOLLOWED.includes(page) || page.startsWith("examples/")).flatMap(
    (page) =>
      stepsOf(readFileSync(join(ROOT, page), "utf8")).flatMap((step) =>
        step.kind === "typed" ? step.commands.map((command) => `${page}:${step.line}: ${command}`) : [],
      ),
  );
  assert.ok(typed.length > 20);
  assert.deepEqual(
    typed.filter((line) => / #/.test(line)),
    [],
  );
});

for (const [page, agent, least] of [
  ["docs/registry-flows.md", "tour", 10],
  ["docs/stage-machines.md", "change", 2],
] as const)
  test(`${page}: check has nothing to say about any of its flows`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "lockstep-tour-"));
    try {
      let flows = 0;
      for (const step of stepsOf(readFileSync(join(ROOT, page), "utf8"))) {
        if (step.kind !== "typed") {
          write(folder, step);
          continue;
        }
        const { problems } = await check(agent, { cwd: folder });
        assert.deepEqual(problems, [], step.heading);
        flows += 1;
      }
      assert.ok(flows >= least);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

test("docs/troubleshooting.md has a line for every code that ends a run or a command", () => {
  const codesIn = (text: string) => [
    ...text.matchAll(/["`]((?:[A-Z]+_)+[A-Z]+|[A-Z][a-z]+(?:[A-Z][a-z]+)+|PR-[\w-]+)["`]/g),
  ];
  const page = readFileSync(join(ROOT, "docs/troubleshooting.md"), "utf8");
  const there = new Set(codesIn(page).map(([, code]) => code!));
  const [, table = ""] = readFileSync(join(ROOT, "docs/how-a-run-ends.md"), "utf8").split("## Codes");
  const rows = table.split("\n").map((row) => row.split("|")[1] ?? "");
  const exits = readFileSync(join(ROOT, "src/flow/verdict.ts"), "utf8");
  const wanted = [...codesIn(rows.join("\n")), ...codesIn(exits)].map(([, code]) => code!);
  assert.ok(wanted.length > 60);
  assert.deepEqual(
    wanted.filter((code) => !there.has(code)),
    [],
  );
  const sources = globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).map((file) =>
    readFileSync(join(ROOT, file), "utf8"),
  );
  const known = sources.join("\n");
  assert.deepEqual(
    [...there].filter((code) => !known.includes(code)),
    [],
  );
});

/** Decisions and changes are records of their time; the reference quotes a default in which "nobody" is part of a flow. */
const NOT_PLAIN = /^docs\/(?:decisions\/|registry\.)|^CHANGELOG/;

for (const page of PAGES.filter((one) => !NOT_PLAIN.test(one))) {
  test(`${page} is written in plain words`, () => {
    const text = wordsOf(join(ROOT, page))
      .replaceAll(/`[^`\n]*`/g, "``")
      .replaceAll(/^ {4}.*$/gm, "");
    const found = text.split("\n").filter(isRiddleOfPage);
    assert.deepEqual(found, []);
  });
}

test("messages name pages by the path they have here, and the pages are there", () => {
  const wrong = globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).flatMap((file) => {
    const code = readFileSync(join(ROOT, file), "utf8").replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
    const bare = [...code.matchAll(/docs\/[a-z-]+\.md/g)].map(([path]) => `${file}: ${path}, use manual()`);
    const named = [...code.matchAll(/\bmanual\("([^"]+)"\)/g)].map(([, name]) => name!);
    const absent = named.filter((name) => !existsSync(manual(name)));
    return bare.concat(absent.map((name) => `${file}: there is no page ${name}`));
  });
  assert.deepEqual(wrong, []);
  assert.equal(manual("models"), join(ROOT, "docs/models.md"));
});
