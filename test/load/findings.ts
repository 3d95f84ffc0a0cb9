/**
 * What the loader makes of the agents of the tests, kept in test/fixtures/findings.json: all findings of each, and the
 * digest of its flow. A row of a table asserts the one finding it is about; here those beside it count as well.
 * `npm run kept` writes them anew; that is right only when a finding was meant to change.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { canonicalJson } from "../../src/flow/json.ts";
import type { Problem } from "../../src/flow/problem.ts";
import type { LoadResult } from "../../src/load/index.ts";

type Kept = { readonly [agent: string]: readonly string[] };

const FILE = fileURLToPath(new URL("../fixtures/findings.json", import.meta.url));
const isRecording = process.env.LOCKSTEP_RECORD === "kept";
const made: { [agent: string]: readonly string[] } = {};
/** How much of a finding is kept as it is. */
const MOST = 300;
let kept: Kept | null = null;

if (isRecording)
  process.once("exit", () => writeFileSync(FILE, `${JSON.stringify(sorted(made), null, 1)}\n`));

/** Compares what was loaded with what is kept of the same agent; one that nothing is kept of passes. */
export function compared(name: string, tree: object, result: LoadResult): LoadResult {
  const agent = `${name} ${digest(JSON.stringify(tree))}`;
  if (isRecording) made[agent] = lines(result);
  kept ??= isRecording ? {} : (JSON.parse(readFileSync(FILE, "utf8")) as Kept);
  const before = kept[agent];
  if (before !== undefined) assert.deepEqual(lines(result), before, "see test/load/findings.ts");
  return result;
}

function lines({ flow, problems, schemas, models }: LoadResult): readonly string[] {
  const more = `${schemas.length} schemas, ${models.length} models`;
  return [`flow ${flow === null ? "none" : digest(canonicalJson(flow))}, ${more}`, ...problems.map(line)];
}

/** Of the words only what is quoted in them and the figures: the rest may be worded in another way. */
function line({
  severity,
  code,
  file,
  pointer,
  line: at,
  column,
  step,
  witness,
  message,
  fix,
}: Problem): string {
  const named = `${message} ${fix}`.match(/"[^"]*"|`[^`]*`|\d+/g) ?? [];
  const where = `${file.replace(".agent/", "")} ${pointer} ${at}:${column}`;
  const whole = [severity, code, where, step ?? "-", ...witness, "|", ...named].join(" ");
  return whole.length > MOST ? `${whole.slice(0, MOST)}… ${digest(whole)}` : whole;
}

function sorted<T>(all: { readonly [key: string]: T }): { readonly [key: string]: T } {
  return Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
