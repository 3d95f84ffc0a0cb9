/** Exported names of the sources: each means one thing, so that searching for a name leads somewhere. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "..");

/** The library's function of this name loads the backend when it is called. */
const DOORS: readonly string[] = ["createAiSdk"];

/** Each file of rules exports its tables under these names. */
const TABLES: readonly string[] = ["codes", "rules"];

const KNOWN: readonly string[] = [...DOORS, ...TABLES];

const DECLARED = /^export (?:async )?(?:abstract )?(?:type|interface|class|function\*?|const|enum) (\w+)/gm;

function repeatedNames(): readonly string[] {
  const files = new Map<string, Set<string>>();
  for (const file of globSync("src/**/*.{ts,tsx}", { cwd: ROOT }))
    for (const [, name = ""] of readFileSync(join(ROOT, file), "utf8").matchAll(DECLARED))
      files.set(name, (files.get(name) ?? new Set()).add(file));
  assert.ok(files.size > 1500);
  return [...files].filter(([, where]) => where.size > 1).map(([name]) => name);
}

test("no exported name is declared in two files", () => {
  assert.deepEqual(
    repeatedNames().filter((name) => !KNOWN.includes(name)),
    [],
  );
});

test("the list of names that occur twice holds no others", () => {
  const repeated = new Set(repeatedNames());
  assert.deepEqual(
    KNOWN.filter((name) => !repeated.has(name)),
    [],
  );
});
