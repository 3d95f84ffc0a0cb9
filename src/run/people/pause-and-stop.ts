/**
 * What other processes want of a run that is being driven: to pause or to stop. They leave a file in the state folder,
 * `control/RUN.json`, and the process that drives the run looks for it a few times a second. No process is ever signalled.
 */
import { lstatSync, rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isObject, own, type Json } from "../../flow/json.ts";
import { fileInside } from "../../journal/sqlite/inside.ts";
import { readTextFile } from "../world/files.ts";
import { writeOwn } from "../world/write-whole.ts";
import { ownFolder } from "../records/journal.ts";

export type ControlWish = "pause" | "stop";

export type Wishes = {
  readonly pause: AbortSignal;
  readonly stop: AbortSignal;
  /** Looks no more, and takes away what was heeded. */
  readonly close: () => void;
};

/** How long a wish stays unseen at most. */
const LAG_MS = 150;

export function hearWishes(stateDir: string, run: string): Wishes {
  const pause = new AbortController();
  const stop = new AbortController();
  const unhear = hear(fileOf(stateDir, run), (wish) => (wish === "pause" ? pause : stop).abort());
  return {
    pause: pause.signal,
    stop: stop.signal,
    close: () => {
      unhear();
      if (pause.signal.aborted || stop.signal.aborted) forgetWish(stateDir, run);
    },
  };
}

/** Who hears of which file, by folder: all runs of this process look together, and mostly there is nothing to read. */
const hearers = new Map<string, Map<string, (wish: ControlWish) => void>>();
let timer: NodeJS.Timeout | null = null;

function hear(file: string, heed: (wish: ControlWish) => void): () => void {
  const [folder, name] = [dirname(file), basename(file)];
  const ofFolder = hearers.get(folder) ?? new Map<string, typeof heed>();
  hearers.set(folder, ofFolder.set(name, heed));
  timer ??= setInterval(() => void lookAround(), LAG_MS).unref();
  return () => {
    ofFolder.delete(name);
    if (ofFolder.size === 0) hearers.delete(folder);
    if (hearers.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
}

async function lookAround(): Promise<void> {
  for (const [folder, ofFolder] of hearers) {
    for (const name of await readdir(folder).catch(() => [])) {
      if (!ofFolder.has(name)) continue;
      const wish = wishIn(join(folder, name));
      if (wish !== null) ofFolder.get(name)?.(wish);
    }
  }
}

export function leaveWish(stateDir: string, run: string, wish: ControlWish): void {
  ownFolder(stateDir, process.env);
  writeOwn(fileOf(stateDir, run), `${JSON.stringify({ wish })}\n`);
}

/** A request that was not handled: the process that drove the run died before. */
export function wishFor(stateDir: string, run: string): ControlWish | null {
  return wishIn(fileOf(stateDir, run));
}

function wishIn(file: string): ControlWish | null {
  try {
    if (!lstatSync(file).isFile()) return null;
    return readWish(readTextFile(file, LONGEST));
  } catch {
    return null;
  }
}

const LONGEST = 4096;

export function forgetWish(stateDir: string, run: string): void {
  rmSync(fileOf(stateDir, run), { force: true });
}

function fileOf(stateDir: string, run: string): string {
  // A journal may come from elsewhere: no name in it leads out of the folder, and no link does.
  return fileInside(stateDir, "control", `${run.replaceAll(/[^\w-]/g, "_")}.json`);
}

function readWish(text: string): ControlWish | null {
  try {
    const value = JSON.parse(text) as Json;
    const wish = isObject(value) ? own(value, "wish") : undefined;
    return wish === "pause" || wish === "stop" ? wish : null;
  } catch {
    return null;
  }
}
