/** Each finding is raised by one file, so that searching for its code leads to the rule. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CODES } from "../../src/load/codes.ts";

const ROOM = join(import.meta.dirname, "../../src/load");

/** Codes that say no more than that a name, a value or a file cannot be used. The list only shrinks. */
const GENERAL: readonly string[] = `
  AC-SERVICE-003 AC-VALID-001 AC-VERDICT-001 DIALECT FAILED_SCHEMA_RESOLUTION FORBIDDEN-NAME OLD-NAME
  PR-RESOLVE-003 SR-LOAD-001 SR-VALID-004 StageCompletionSchemaInvalid StageDefinitionInvalid StageInputsInvalid
  TEST-FIXTURE TEST-KEY UNKNOWN-KEY UV-OPTIONAL
`
  .trim()
  .split(/\s+/);

/** A shape names the code with which its reader reports, and `migrate` only reads what the loader found. */
const isRaising = (file: string) => !/-shape\.ts$|^migrate\.ts$/.test(file);

/** The files in which a code is a value, and not the key of its declaration. */
function raisedIn(texts: ReadonlyMap<string, string>, code: string): readonly string[] {
  return [...texts]
    .filter(([, text]) => text.split(`"${code}"`).slice(1).some(isValue))
    .map(([file]) => file);
}

function isValue(after: string): boolean {
  return !/^: (?:error|warning)\(/.test(after);
}

function raisedTwice(): readonly string[] {
  const files = globSync("**/*.ts", { cwd: ROOM }).filter(isRaising);
  const texts = new Map(files.map((file) => [file, readFileSync(join(ROOM, file), "utf8")]));
  assert.ok(texts.size > 50);
  return Object.keys(CODES).filter((code) => raisedIn(texts, code).length > 1);
}

test("no code is raised by two files", () => {
  assert.deepEqual(
    raisedTwice().filter((code) => !GENERAL.includes(code)),
    [],
  );
});

test("the list of general codes holds no others", () => {
  const twice = new Set(raisedTwice());
  assert.deepEqual(
    GENERAL.filter((code) => !twice.has(code)),
    [],
  );
});

test("a code that is raised is distinguished from one that is declared", () => {
  const texts = new Map([
    ["a.ts", 'export const codes = { "A-B": error("x", "y") };\nyield { code: "A-B" };'],
    ["b.ts", 'yield { code: "A-B", ...place };'],
    ["c.ts", 'export const codes = { "A-B": warning("x", "y") };'],
  ]);
  assert.deepEqual(raisedIn(texts, "A-B"), ["a.ts", "b.ts"]);
});
