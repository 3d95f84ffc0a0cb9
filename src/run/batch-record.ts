/** What a batch is to do, in a file of the state folder: `batches/BATCH.json`. With it a killed batch can be resumed. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { isAbsolute } from "node:path";
import { lockNow } from "../effects/process/turn.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Granted } from "../flow/flow.ts";
import { shellWord } from "../flow/text/harmless.ts";
import { isObject, own, parseJsonObject, type Json, type JsonObject } from "../flow/json.ts";
import { isRunId } from "../flow/recorded.ts";
import { fileInside, insideState } from "../journal/sqlite/inside.ts";
import { readTextFile } from "./world/files.ts";
import { writeOwn } from "./world/write-whole.ts";
import type { WorktreeOptions } from "./world/worktree.ts";

export type PlannedItem = {
  readonly name: string;
  readonly args: JsonObject;
  /** The id that its run has, or will have. */
  readonly run: string;
};

/** What runs that are still to begin are started with. What confines them, and what is allowed, is for each line to say. */
export type BatchWays = WorktreeOptions & {
  readonly args: JsonObject;
  readonly input?: string;
  readonly model?: string;
  readonly use?: string;
  readonly script?: { readonly text: string; readonly file: string };
  readonly spending?: Granted;
};

export type BatchRecord = {
  readonly v: 1;
  readonly batch: string;
  readonly agent: string;
  readonly items: readonly PlannedItem[];
  readonly concurrency: number;
  /** How many were left out when it began. */
  readonly left: number;
  /** Where its runs work, from the root of the project. */
  readonly folder: string;
  readonly ways: BatchWays;
};

const PREFIX = "batch-";
const FOLDER = "batches";
const NAME = /^batch-[0-9a-z]{10}$/;
const MOST_BYTES = 32 * 1024 * 1024;

export function batchNamed(run: string): string {
  return PREFIX + run;
}

/** Whether this names a batch: no id that Lockstep makes for a run has a dash. */
export function isBatch(ref: string): boolean {
  return ref.startsWith(PREFIX);
}

export function writeBatch(stateDir: string, record: BatchRecord): void {
  writeOwn(fileOf(stateDir, record.batch), `${JSON.stringify(record)}\n`);
}

export function forgetBatch(stateDir: string, batch: string): void {
  rmSync(fileOf(stateDir, batch), { force: true });
  rmSync(lockOf(stateDir, batch), { force: true });
}

export function isBatchRecorded(stateDir: string, batch: string): boolean {
  return existsSync(fileOf(stateDir, batch));
}

/**
 * Holds a batch for as long as this process drives it: RUN_OWNED_ELSEWHERE while another does. The file is removed with the
 * record only, so the record is read only after the lock is taken.
 */
export function holdBatch(stateDir: string, batch: string): Disposable {
  const file = lockOf(stateDir, batch);
  const lock = lockNow(file);
  if (lock === null)
    throw new RunnerError(
      "RUN_OWNED_ELSEWHERE",
      `Batch ${batch} is being driven by another process. Wait until that is done, or stop it, and try again. If it hangs: lockstep resume ${batch} --take-over`,
    );
  if ("why" in lock) throw new RunnerError("JOURNAL_UNAVAILABLE", `The batch cannot be driven: ${lock.why}.`);
  return { [Symbol.dispose]: lock.release };
}

function lockOf(stateDir: string, batch: string): string {
  return fileInside(stateDir, FOLDER, `${batch}.lock`);
}

/** Takes runs that are about to be removed out of their batches, so that none is done again; an empty batch is forgotten. */
export function leaveOut(stateDir: string, runs: ReadonlySet<string>): void {
  for (const batch of namesIn(stateDir)) {
    const record = recordIn(fileOf(stateDir, batch), batch);
    const items = record?.items.filter(({ run }) => !runs.has(run)) ?? [];
    if (record === null || items.length === record.items.length) continue;
    if (items.length === 0) forgetBatch(stateDir, batch);
    else writeBatch(stateDir, { ...record, items });
  }
}

/** The files that have the name of a batch and are not valid records of it. */
export function invalidBatches(stateDir: string): readonly string[] {
  return namesIn(stateDir)
    .filter((batch) => recordIn(fileOf(stateDir, batch), batch) === null)
    .map((batch) => fileOf(stateDir, batch));
}

/** `ref`: its name or a unique beginning of that. RUN_UNKNOWN, RUN_AMBIGUOUS or JOURNAL_UNAVAILABLE. */
export function readBatch(stateDir: string, ref: string): BatchRecord {
  const matches = namesIn(stateDir).filter((name) => name.startsWith(ref));
  const [batch] = matches;
  if (matches.length > 1)
    throw new RunnerError("RUN_AMBIGUOUS", `"${ref}" could be any of ${matches.slice(0, 8).join(", ")}.`);
  if (batch === undefined)
    throw new RunnerError(
      "RUN_UNKNOWN",
      `There is no unfinished batch "${ref}" in ${stateDir}. Finished batches are not kept; \`lockstep runs\` lists their runs.`,
    );
  const file = fileOf(stateDir, batch);
  const record = recordIn(file, batch);
  if (record === null)
    throw new RunnerError(
      "JOURNAL_UNAVAILABLE",
      `${file} is not a valid record of a batch. Its runs can be resumed one by one; "lockstep runs" lists them. Then remove it with: rm ${shellWord(file)}`,
    );
  return record;
}

/** null: it is not valid. */
function recordIn(file: string, batch: string): BatchRecord | null {
  const record = parsed(readTextFile(file, MOST_BYTES));
  return record?.batch === batch ? record : null;
}

function namesIn(stateDir: string): readonly string[] {
  try {
    const names = readdirSync(insideState(stateDir, FOLDER)).map((name) => name.replace(/\.json$/, ""));
    return names.filter((name) => NAME.test(name));
  } catch (error) {
    if (error instanceof RunnerError) throw error;
    return [];
  }
}

function fileOf(stateDir: string, batch: string): string {
  return fileInside(stateDir, FOLDER, `${batch}.json`);
}

function parsed(text: string): BatchRecord | null {
  const value = parseJsonObject(text);
  return value !== null && isRecord(value) ? (value as unknown as BatchRecord) : null;
}

function isRecord(value: JsonObject): boolean {
  const { v, batch, agent, items, concurrency, left, folder, ways } = value;
  return (
    v === 1 &&
    typeof batch === "string" &&
    typeof agent === "string" &&
    Array.isArray(items) &&
    items.every(isItem) &&
    isCount(concurrency) &&
    isCount(left) &&
    typeof folder === "string" &&
    !isAbsolute(folder) &&
    !folder.split(/[\\/]/).includes("..") &&
    isObject(ways) &&
    areWays(ways)
  );
}

function areWays(ways: JsonObject): boolean {
  const { args, finalize, spending, script } = ways;
  const isOf = (type: string) => (name: string) => ["undefined", type].includes(typeof own(ways, name));
  return (
    isObject(args) &&
    ["input", "model", "use", "baseBranch", "branch"].every(isOf("string")) &&
    ["worktree", "dryRun"].every(isOf("boolean")) &&
    [finalize, spending].every((part) => part === undefined || isObject(part)) &&
    (script === undefined ||
      (isObject(script) && typeof script.text === "string" && typeof script.file === "string"))
  );
}

function isItem(item: Json): boolean {
  if (!isObject(item)) return false;
  const { name, args, run } = item;
  return typeof name === "string" && isObject(args) && typeof run === "string" && isRunId(run);
}

function isCount(value: Json | undefined): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
