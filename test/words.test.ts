/** Text for people is plain: messages, help and comments of the sources hold none of the words that have to be decoded. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isRiddle, isRiddleOfPage, textsOf } from "./plain-words.ts";

/** Said to models in recorded runs: a transcript of these is worked out again, and must not change. */
const RECORDED = /Mend the cause, then (?:close|complete the stage) again|mend what is missing, and complete/;

const ROOT = join(import.meta.dirname, "..");

test("messages and comments of the sources are plain", () => {
  const files = globSync("src/**/*.{ts,tsx}", { cwd: ROOT });
  assert.ok(files.length > 300);
  const found = files.flatMap((file) =>
    [...textsOf(readFileSync(join(ROOT, file), "utf8"))]
      .filter(({ text }) => text.includes(" ") && isRiddle(text) && !RECORDED.test(text))
      .map(({ line, text }) => `${file}:${line}: ${text.slice(0, 200)}`),
  );
  assert.deepEqual(found, []);
});

const texts: readonly [source: string, texts: readonly string[]][] = [
  ['const a = "x";', ['"x"']],
  ["const a = 'it\\'s';", ["'it\\'s'"]],
  ["const a = `one ${b} two`;", ["one ", " two"]],
  ['const a = `one ${c ? `in ${d}` : "s"} two`;', ["one ", "in ", "", '"s"', " two"]],
  ["const a = { b: `x` };", ["x"]],
  ["f(() => { g(`a ${{ b: 1 }.b} z`); });", ["a ", " z"]],
  ["// a comment\n/** another */", ["// a comment", "/** another */"]],
  ['const a = /"[^/]\\/"/; const b = "x";', ['"x"']],
  ["const a = b / c; // d", ["// d"]],
  ["const a = `\\` \\${x}`;", ["\\` \\${x}"]],
];
for (const [source, expected] of texts)
  test(`the texts of ${JSON.stringify(source)}`, () =>
    assert.deepEqual(
      [...textsOf(source)].map(({ text }) => text),
      expected,
    ));

const lines: readonly [text: string, isOdd: boolean, isOddOnPage: boolean][] = [
  ["it is no JSON", true, true],
  ["It is no longer there", false, false],
  ["There is no run", false, false],
  ["whoever reads it", true, true],
  ["Mend the file", true, true],
  ["mended", true, true],
  ["a recommendation, an amendment", false, false],
  ["nobody is there", false, true],
  ["the model is told", false, true],
  ["it reports the file", false, false],
];
for (const [text, isOdd, isOddOnPage] of lines)
  test(`${text}: ${isOdd} in the sources, ${isOddOnPage} on a page`, () =>
    assert.deepEqual([isRiddle(text), isRiddleOfPage(text)], [isOdd, isOddOnPage]));
