/**
 * Plays a scenario and compares the run with what is kept of it in test/fixtures/played.json: every entry, the state it
 * ended in, and what is reported of it later. A test asserts what it is about; here the rest counts as well.
 * `npm run kept` writes them anew; that is right only when a decision or a report was meant to change.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { whyAll } from "../../src/tell/why.ts";
import * as testing from "../../src/testing/scenario.ts";
import { ready } from "../ready.ts";
import { reportsOf } from "../run/reports.ts";

export type { Played, Scenario } from "../../src/testing/scenario.ts";

type Kept = { [scenario: string]: readonly string[] };

const FILE = fileURLToPath(new URL("../fixtures/played.json", import.meta.url));
const isRecording = process.env.LOCKSTEP_RECORD === "kept";
const made: Kept = {};
let kept: Kept | null = null;

if (isRecording)
  process.once("exit", () => {
    const all = Object.entries(made).toSorted(([a], [b]) => (a < b ? -1 : 1));
    writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(all), null, 1)}\n`);
  });

/** Texts for people may be worded in another way. */
const WORDS = new Set(["detail", "fix", "hint", "message", "note", "reason", "what", "why"]);

/** Longer runs are there for their length. */
const MOST_ENTRIES = 80;

export async function play(scenario: testing.Scenario): Promise<testing.Played> {
  const played = await testing.play(scenario);
  if (isData(scenario) && played.entries.length <= MOST_ENTRIES)
    await compared(digest(scenario), async () => await linesOf(scenario, played));
  return played;
}

/** What ports and signals do cannot be told from a scenario: only those of plain data can be known again. */
function isData({ model, ports, wishes, signal }: testing.Scenario): boolean {
  return !("spec" in model) && [ports, wishes, signal].every((each) => each === undefined);
}

/** Compares lines with those that are kept under a key; where nothing is kept, there is nothing to compare. */
async function compared(key: string, lines: () => Promise<readonly string[]>): Promise<void> {
  if (isRecording) made[key] = await lines();
  else if (keptRuns()[key] !== undefined)
    assert.deepEqual(await lines(), keptRuns()[key], "see test/engine/played.ts");
}

/** Whether anything is kept of a scenario: without that, nothing is compared. */
export function isKept(scenario: testing.Scenario): boolean {
  return keptRuns()[digest(scenario)] !== undefined;
}

function keptRuns(): Kept {
  return (kept ??= JSON.parse(readFileSync(FILE, "utf8")) as Kept);
}

async function linesOf(
  { flow }: testing.Scenario,
  { state, entries, asked, waits }: testing.Played,
): Promise<readonly string[]> {
  const { verdict } = state;
  const cuts = entries.map((_, at) => whyAll(ready(flow), entries.slice(0, at + 1)).at(-1));
  return [
    ...entries.map((entry, at) => {
      const { step = "", state: stands = "", pending = null } = cuts[at] ?? {};
      return `${entry.event.type} ${digest(entry)} ${step} ${stands} ${pending?.command.type} ${digest(pending)}`;
    }),
    `${verdict?.outcome} ${verdict?.code} ${verdict?.step} after ${state.iterations}`,
    `asked ${asked.join(" ")} waited ${waits.join(" ")}`,
    ...Object.entries(await reportsOf(flow, entries)).map(([name, report]) => `${name} ${digest(report)}`),
  ];
}

/** The order of keys says nothing. */
function digest(value: unknown): string {
  const text = JSON.stringify(value, (key, inner: unknown) =>
    WORDS.has(key) ? typeof inner : sorted(inner),
  );
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
