/**
 * Plays a scenario and compares the run with what is kept of it in test/fixtures/played.json: every entry, the state it
 * ended in, and what is reported of it later. A test asserts what it is about; here the rest counts as well.
 * `npm run kept` writes them anew; that is right only when a decision or a report was meant to change.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { audit } from "../../src/tell/audit.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import type { LogLine } from "../../src/tell/log-line.ts";
import { story } from "../../src/story/story.ts";
import { logLines } from "../../src/tell/log.ts";
import { whyAll } from "../../src/run/records/why.ts";
import * as testing from "../../src/testing/scenario.ts";
import { ready } from "../ready.ts";

export type { Played, Scenario } from "../../src/testing/scenario.ts";

/** null: the same scenario went in two ways, by what its ports do. */
type Kept = { [scenario: string]: readonly string[] | null };

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
  if ("spec" in scenario.model || played.entries.length > MOST_ENTRIES) return played;
  // Written as JSON, what ports do does not tell two scenarios apart.
  const key = digest({ ...scenario, ports: Object.keys(scenario.ports ?? {}) });
  kept ??= isRecording ? {} : (JSON.parse(readFileSync(FILE, "utf8")) as Kept);
  if (isRecording) {
    const before = made[key];
    const lines = linesOf(scenario, played);
    made[key] = before === undefined || String(before) === String(lines) ? lines : null;
  } else if ((kept[key] ?? null) !== null)
    assert.deepEqual(linesOf(scenario, played), kept[key], "see test/engine/played.ts");
  return played;
}

function linesOf(
  { flow }: testing.Scenario,
  { state, entries, asked, waits }: testing.Played,
): readonly string[] {
  const { verdict } = state;
  const steps = whyAll(ready(flow), entries);
  const cuts = entries.map((_, at) => whyAll(ready(flow), entries.slice(0, at + 1)).at(-1));
  return [
    ...entries.map((entry, at) => {
      const { step = "", state: stands = "", pending = null } = cuts[at] ?? {};
      return `${entry.event.type} ${digest(entry)} ${step} ${stands} ${pending?.command.type} ${digest(pending)}`;
    }),
    `${verdict?.outcome} ${verdict?.code} ${verdict?.step} after ${state.iterations}`,
    `asked ${asked.join(" ")} waited ${waits.join(" ")}`,
    `audit ${digest(audit(ready(flow), entries))}`,
    ...steps.map((one) => `${one.step}@${one.visit} ${one.state} ${digest(one)}`),
    `logs ${digest(logged(flow, entries))}`,
  ];
}

function logged(flow: Flow, entries: readonly Entry[]): readonly LogLine[] {
  return [...story(ready(flow), entries)].flatMap(logLines);
}

function digest(value: unknown): string {
  const text = JSON.stringify(value, (key, inner: unknown) => (WORDS.has(key) ? typeof inner : inner));
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
