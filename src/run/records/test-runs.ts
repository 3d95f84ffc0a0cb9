/** Runs of failed tests, kept in the state folder as files that `why`, `show`, `logs` and `replay` read, and which tests failed last. */
import { createHash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { fileInside, insideState } from "../../journal/sqlite/inside.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { isObject } from "../../flow/json.ts";
import { jsonLine } from "../../flow/text/harmless.ts";
import { flowDigest } from "../load.ts";
import { readWritten } from "../world/files.ts";
import { writeOwn } from "../world/write-whole.ts";
import type { Bundle } from "./bundle.ts";
import { makeStateFolder } from "./journal.ts";

/** A test of an agent. Names may occur twice in an agent, not in a file. */
export type TestKey = { readonly agent: string; readonly file: string; readonly name: string };

const FOLDER = "tests";
const FAILED = "failed.json";

/** The file that the run of a test is kept in. */
function nameOf({ file, name }: TestKey): string {
  const words = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 60);
  const digest = createHash("sha256").update(`${file}\n${name}`).digest("hex").slice(0, 6);
  return `${words || "test"}-${digest}.json`;
}

/** Gives the path of the file. It replaces the one that was kept before. */
export function keepTestRun(stateDir: string, key: TestKey, flow: Flow, entries: readonly Entry[]): string {
  const digest = flowDigest(flow);
  const bundle: Bundle = {
    v: 1,
    kind: "lockstep-run",
    meta: { test: key.name, file: key.file },
    run: { id: "test", agent: key.agent, createdAt: entries[0]?.at ?? 0, flow: digest },
    redacted: false,
    flows: { [digest]: flow },
    entries: entries.map((entry) =>
      entry.event.type === "run.started" ? { ...entry, event: { ...entry.event, flow: digest } } : entry,
    ),
  };
  const path = fileInside(stateDir, FOLDER, key.agent, nameOf(key));
  makeStateFolder(stateDir);
  writeOwn(path, jsonLine(bundle, 1));
  return path;
}

/** Removes what was kept of tests that pass now. */
export function forgetTestRuns(stateDir: string, passed: readonly TestKey[]): void {
  const kept = new Map<string, ReadonlySet<string>>();
  for (const key of passed) {
    const folder = insideState(stateDir, FOLDER, key.agent);
    const names = kept.get(folder) ?? namesIn(folder);
    kept.set(folder, names);
    if (names.has(nameOf(key))) rmSync(fileInside(stateDir, FOLDER, key.agent, nameOf(key)), { force: true });
  }
}

function namesIn(folder: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(folder));
  } catch {
    return new Set();
  }
}

/** The tests that failed when they were last run. */
export function failedBefore(stateDir: string): readonly TestKey[] {
  try {
    const value: unknown = JSON.parse(readWritten(fileInside(stateDir, FOLDER, FAILED)));
    const tests: readonly unknown[] = isObject(value) && Array.isArray(value.tests) ? value.tests : [];
    return tests.filter(isKey);
  } catch {
    return [];
  }
}

function isKey(value: unknown): value is TestKey {
  return (
    isObject(value) && [value.agent, value.file, value.name].every((member) => typeof member === "string")
  );
}

/** Tests that were not run now stay as they were. */
export function recordFailed(stateDir: string, run: readonly TestKey[], failed: readonly TestKey[]): void {
  const before = failedBefore(stateDir);
  const now = [...before.filter((one) => !run.some((other) => isSameTest(one, other))), ...failed];
  if (before.length === 0 && now.length === 0) return;
  makeStateFolder(stateDir);
  writeOwn(fileInside(stateDir, FOLDER, FAILED), jsonLine({ v: 1, tests: now }, 1));
}

export function isSameTest(one: TestKey, other: TestKey): boolean {
  return one.agent === other.agent && one.file === other.file && one.name === other.name;
}
