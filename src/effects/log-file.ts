/** One log file for each run, in a folder that others may use too: only files with names of ours are ever touched. */
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { reasonOf, type Pins } from "./grounded.ts";

export type LogFile = {
  readonly path: string;
  readonly write: (lines: readonly string[]) => void;
  /** What went wrong on the way, without being in the way. */
  readonly trouble: string | null;
  readonly close: () => void;
};

export type LogOptions = {
  readonly folder: string;
  /** The same folder, held: below what `pins` hold, with these parts. */
  readonly pins: Pins;
  readonly parts: readonly string[];
  readonly agent: string;
  /** Of the run, not of this stretch of it: its file is found again by that. */
  readonly startedAt: number;
  readonly ending: "jsonl" | "log";
  /** How many files of this agent are kept, the new one included; null: all. */
  readonly maxFiles: number | null;
  /** What stands in the first line of the run's file and of no other. */
  readonly mark: string;
};

/** Opens the file of a run, empty: one that is there from an earlier stretch is written anew. Throws when it cannot. */
export function openLogFile(options: LogOptions): LogFile {
  const { folder, pins, parts, agent, maxFiles } = options;
  const isThere = lstatSync(pins.at(parts, "make"), { throwIfNoEntry: false }) !== undefined;
  const held = pins.at([...parts, "."], "make");
  if (!isThere) keepOutOfGit(held);
  const { name, file } = claim(options, held);
  return {
    path: join(folder, name),
    write: (lines) => writeFileSync(file, lines.map((line) => `${line}\n`).join("")),
    trouble: maxFiles === null ? null : rotate(held, agent, name, maxFiles),
    close: () => closeSync(file),
  };
}

/** What is logged must not make a clean working tree look changed. */
function keepOutOfGit(folder: string): void {
  writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
}

/** Runs that began in the same moment take the next free millisecond. */
function claim(options: LogOptions, folder: string): { readonly name: string; readonly file: number } {
  const { agent, startedAt, ending } = options;
  for (let at = startedAt; ; at++) {
    const name = `${prefixOf(agent)}${new Date(at).toISOString().replaceAll(/[:.]/g, "-")}.${ending}`;
    const path = join(folder, name);
    try {
      return { name, file: openSync(path, "wx", 0o600) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || at > startedAt + MOST_AT_ONCE) throw error;
    }
    if (isOurs(path, options.mark)) return { name, file: openSync(path, WRITE_ANEW) };
  }
}

const MOST_AT_ONCE = 1000;
const WRITE_ANEW = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW;

function isOurs(path: string, mark: string): boolean {
  if (!lstatSync(path).isFile()) return false;
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const head = Buffer.alloc(4096);
    const length = readSync(file, head);
    return head.toString("utf8", 0, length).split("\n", 1)[0]!.includes(mark);
  } finally {
    closeSync(file);
  }
}

/** The oldest are removed. Their names tell when they were begun, and that they are ours. */
function rotate(folder: string, agent: string, current: string, maxFiles: number): string | null {
  const prefix = prefixOf(agent);
  const others = readdirSync(folder, { withFileTypes: true })
    .filter((file) => file.isFile() && file.name !== current && file.name.startsWith(prefix))
    .map(({ name }) => name)
    .filter((name) => BEGUN.test(name.slice(prefix.length)))
    .toSorted();
  const surplus = others.slice(0, Math.max(0, others.length - (maxFiles - 1)));
  try {
    for (const name of surplus) rmSync(join(folder, name), { force: true });
    return null;
  } catch (error) {
    return `an old log file could not be removed: ${reasonOf(error)}`;
  }
}

const BEGUN = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\.(?:jsonl|log)$/;

function prefixOf(agent: string): string {
  return `${agent.replaceAll(/[^\w.-]/g, "_")}-`;
}
