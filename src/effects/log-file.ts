/** One log file for each run, in a folder that others may use too: only files with names of ours are ever touched. */
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Pins } from "../flow/machine/ground.ts";
import { reasonOf } from "./grounded.ts";

export type LogFile = {
  readonly path: string;
  /** Whole lines. */
  readonly write: (text: string) => void;
  /** What went wrong on the way, without being in the way. */
  readonly trouble: string | null;
  readonly close: () => void;
};

export type LogOptions = {
  readonly folder: string;
  /** The path of the same folder as it is held. */
  readonly held: string;
  readonly agent: string;
  readonly run: string;
  /** Of the run, not of this stretch of it: its file is found again by that. */
  readonly startedAt: number;
  /** Whether an earlier stretch of the run may have left a file. */
  readonly isResumed: boolean;
  readonly ending: "jsonl" | "log";
  /** How many files of this agent are kept, the new one included; null: all. */
  readonly maxFiles: number | null;
};

/** The path of the folder with these parts, which is made where it is not there: good until `pins` are asked again. */
export function openLogFolder(pins: Pins, parts: readonly string[]): string {
  const isThere = lstatSync(pins.at(parts, "make"), { throwIfNoEntry: false }) !== undefined;
  const held = pins.at([...parts, "."], "make");
  if (!isThere) keepOutOfGit(held);
  return held;
}

/** Opens the file of a run, empty: one that is there from an earlier stretch is written anew. Throws when it cannot. */
export function openLogFile(options: LogOptions): LogFile {
  const { folder, held, agent, maxFiles } = options;
  const { name, file } = claim(options);
  return {
    path: join(folder, name),
    write: (text) => writeFileSync(file, text),
    trouble: maxFiles === null ? null : rotate(held, agent, name, maxFiles),
    close: () => closeSync(file),
  };
}

/** What is logged must not make a clean working tree look changed. */
function keepOutOfGit(folder: string): void {
  writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
}

type Claimed = { readonly name: string; readonly file: number };

/** The run is part of the name: runs that begin in the same moment do not meet. */
function claim(options: LogOptions): Claimed {
  const { held, agent, run, startedAt, isResumed, ending } = options;
  const old = isResumed ? claimOld(options) : null;
  if (old !== null) return old;
  const name = `${prefixOf(agent)}${timeOf(startedAt)}-${inName(run)}.${ending}`;
  const path = join(held, name);
  try {
    return { name, file: openSync(path, "wx", 0o600) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const about = lstatSync(path);
  if (!about.isFile() || (about.size > 0 && !isOf(path, run)))
    throw new Error(`${name} exists and is not a log of this run; remove it`);
  return { name, file: openSync(path, WRITE_ANEW) };
}

/** Earlier versions named files by the time alone; runs that began together took the next free millisecond. */
function claimOld(options: LogOptions): Claimed | null {
  const { held, agent, run, startedAt, ending } = options;
  for (let at = startedAt; at <= startedAt + MOST_AT_ONCE; at++) {
    const name = `${prefixOf(agent)}${timeOf(at)}.${ending}`;
    const path = join(held, name);
    const about = lstatSync(path, { throwIfNoEntry: false });
    if (about === undefined) return null;
    if (about.isFile() && isOf(path, run)) return { name, file: openSync(path, WRITE_ANEW) };
  }
  return null;
}

const MOST_AT_ONCE = 1000;
const WRITE_ANEW = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW;

/** The first line of a log names its run. */
function isOf(path: string, run: string): boolean {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const head = Buffer.alloc(4096);
    const length = readSync(file, head);
    return head
      .toString("utf8", 0, length)
      .split("\n", 1)[0]!
      .includes(`"run":${JSON.stringify(run)}`);
  } finally {
    closeSync(file);
  }
}

/** Removes the oldest. The name of a file says when its run began, and that it is a log of ours. */
function rotate(folder: string, agent: string, current: string, maxFiles: number): string | null {
  const names = namesIn(folder, prefixOf(agent));
  if (!names.includes(current)) names.push(current);
  const others = names.filter((name) => name !== current);
  const surplus = others.slice(0, Math.max(0, others.length - (maxFiles - 1)));
  try {
    for (const name of surplus) {
      rmSync(join(folder, name), { force: true });
      names.splice(names.indexOf(name), 1);
    }
    return null;
  } catch (error) {
    return `an old log file could not be removed: ${reasonOf(error)}`;
  }
}

/** In order. A thousand runs that begin in one turn of the event loop look once; each adds its own file. */
function namesIn(folder: string, prefix: string): string[] {
  const { dev, ino } = statSync(folder);
  const key = `${dev} ${ino} ${prefix}`;
  const known = listed.get(key);
  if (known !== undefined) return known;
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((file) => file.isFile() && file.name.startsWith(prefix))
    .map(({ name }) => name)
    .filter((name) => BEGUN.test(name.slice(prefix.length)))
    .toSorted();
  if (listed.size === 0) setImmediate(() => listed.clear());
  listed.set(key, names);
  return names;
}

const listed = new Map<string, string[]>();

/** With the run as this version makes its names, or without any. */
const BEGUN = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z(?:-[0-9a-z]{10})?\.(?:jsonl|log)$/;

function timeOf(at: number): string {
  return new Date(at).toISOString().replaceAll(/[:.]/g, "-");
}

function prefixOf(agent: string): string {
  return `${inName(agent)}-`;
}

function inName(text: string): string {
  return text.replaceAll(/[^\w.-]/g, "_");
}
