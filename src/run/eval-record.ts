/** An eval in a file of the state folder, `evals/EVAL.json`: its plan and what became of each run, so that it can be resumed. */
import { readdirSync } from "node:fs";
import { RunnerError } from "../engine/ports.ts";
import { isObject, parseJsonObject, type Json } from "../flow/json.ts";
import { isRunId } from "../flow/recorded.ts";
import { shellWord } from "../flow/text/harmless.ts";
import { fileInside, insideState } from "../journal/sqlite/inside.ts";
import { createOwners } from "../journal/sqlite/owners.ts";
import type { EvalRun } from "../proof/eval.ts";
import { readTextFile } from "./world/files.ts";
import { writeOwn } from "./world/write-whole.ts";
import { makeFolder } from "../journal/make-folder.ts";

export type EvalRecord = {
  readonly v: 1;
  readonly eval: string;
  readonly agent: string;
  /** Of the flow and its tasks: an eval goes on only with the same ones. */
  readonly digest: string;
  readonly budgetUsd: number | null;
  /** Scripts that take the place of models, in turn. */
  readonly scripts: readonly { readonly text: string; readonly file: string }[];
  readonly runs: readonly PlacedRun[];
};

/**
 * `folder`: its copy, until it is judged. `unmet`: while its hidden checks are run, what was expected of it and does not
 * hold; null: all of it holds.
 */
export type PlacedRun = EvalRun & { readonly folder: string | null; readonly unmet?: string | null };

const FOLDER = "evals";
const NAME = /^eval-[0-9a-z]{10}$/;
const MOST_BYTES = 32 * 1024 * 1024;

export function writeEval(stateDir: string, record: EvalRecord): void {
  writeOwn(fileInside(stateDir, FOLDER, `${record.eval}.json`), `${JSON.stringify(record)}\n`);
}

/** One process at a time works on an eval; RUN_OWNED_ELSEWHERE while another one does. */
export function holdEval(stateDir: string, name: string): Disposable {
  makeFolder(insideState(stateDir, FOLDER), { mode: 0o700 });
  const owners = createOwners(insideState(stateDir, FOLDER), name);
  if (owners.isAlive(name))
    throw new RunnerError("RUN_OWNED_ELSEWHERE", `Another process is working on ${name}.`);
  owners.enter();
  return { [Symbol.dispose]: () => void owners.leave() };
}

/** `ref`: its name, a unique beginning of that, or the ending without `eval-`. */
export function readEval(stateDir: string, ref: string): EvalRecord {
  const wanted = ref.startsWith("eval-") ? ref : `eval-${ref}`;
  const matches = namesIn(stateDir).filter((name) => name.startsWith(wanted));
  const [name] = matches;
  if (matches.length > 1)
    throw new RunnerError("RUN_AMBIGUOUS", `"${ref}" could be any of ${matches.slice(0, 8).join(", ")}.`);
  if (name === undefined) throw new RunnerError("RUN_UNKNOWN", `There is no eval "${ref}" in ${stateDir}.`);
  const file = fileInside(stateDir, FOLDER, `${name}.json`);
  const record = parseJsonObject(readTextFile(file, MOST_BYTES));
  if (record?.eval === name && isRecord(record)) return record as unknown as EvalRecord;
  throw new RunnerError(
    "JOURNAL_UNAVAILABLE",
    `${file} is not a valid record of an eval. Remove it with: rm ${shellWord(file)}`,
  );
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

function isRecord(value: { readonly [key: string]: Json }): boolean {
  const { v, agent, digest, budgetUsd, scripts, runs } = value;
  const isText = (one: Json | undefined) => typeof one === "string";
  return (
    v === 1 &&
    isText(agent) &&
    isText(digest) &&
    isAmount(budgetUsd) &&
    Array.isArray(scripts) &&
    scripts.every((one: Json) => isObject(one) && isText(one.text) && isText(one.file)) &&
    Array.isArray(runs) &&
    runs.every(isRun)
  );
}

const STATES = new Set(["open", "running", "passed", "failed", "error", "cut"]);

function isRun(one: Json): boolean {
  if (!isObject(one)) return false;
  const { task, model, at, state, run, folder, unmet, costUsd, setAside, errors } = one;
  return (
    [task, model, state].every((text) => typeof text === "string") &&
    STATES.has(state as string) &&
    Number.isSafeInteger(at) &&
    (run === null || (typeof run === "string" && isRunId(run))) &&
    (folder === null || typeof folder === "string") &&
    (unmet == null || typeof unmet === "string") &&
    isAmount(costUsd) &&
    isAmount(setAside) &&
    Array.isArray(errors)
  );
}

function isAmount(value: Json | undefined): boolean {
  return value === null || (typeof value === "number" && value >= 0);
}
