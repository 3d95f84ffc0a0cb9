/**
 * Letters to runs as files of the state folder: `answers/RUN/QUESTION.json`, each `{ "answer": "…" }`, and
 * `control/RUN.json`, each `{ "wish": "…" }`. Any program may write them. No process is ever signalled.
 */
import { linkSync, lstatSync, rmSync, writeFileSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isObject, own, type Json } from "../../flow/json.ts";
import { isControlWish, type ControlWish, type FoundLetter, type Mail } from "../../flow/mail.ts";
import { fileInside, insideState } from "../../journal/sqlite/inside.ts";
import { ownFolder } from "../records/journal.ts";
import { readTextFile } from "../world/files.ts";
import { writeOwn } from "../world/write-whole.ts";
import { makeFolder } from "../../journal/make-folder.ts";

const ANSWER_LAG_MS = 200;
const WISH_LAG_MS = 150;
const LONGEST_ANSWER = 1024 * 1024;
const LONGEST_WISH = 4096;

export function createFileMail(stateDir: string): Mail {
  const control = (run: string) => fileInside(stateDir, "control", `${plain(run)}.json`);
  const answer = (run: string, question: string) => answerFile(stateDir, run, question);
  return {
    lagMs: ANSWER_LAG_MS,
    where: answer,
    async post(run, question, text) {
      const file = answer(run, question);
      ownFolder(stateDir, process.env);
      makeFolder(insideState(stateDir, "answers", plain(run)), { mode: 0o700 });
      return isLeft(file, `${text}\n`);
    },
    find: async (run, question) => await letterIn(answer(run, question)),
    async discard(run, question) {
      await rm(answer(run, question), { force: true }).catch(() => undefined);
    },
    async leaveWish(run, wish) {
      ownFolder(stateDir, process.env);
      writeOwn(control(run), `${JSON.stringify({ wish })}\n`);
    },
    wishFor: async (run) => wishIn(control(run)),
    async forgetWish(run, wish) {
      const file = control(run);
      if (wishIn(file) === wish) rmSync(file, { force: true });
    },
    hearWishes: (run, heed) => hear(control(run), heed),
  };
}

/** A journal may come from elsewhere: no name in it leads out of the folder, and no link does. */
export function answerFile(stateDir: string, run: string, question: string): string {
  return fileInside(stateDir, "answers", plain(run), `${plain(question)}.json`);
}

function plain(name: string): string {
  return name.replaceAll(/[^\w-]/g, "_");
}

/** Whole or not at all, and never over what somebody else has said: then false. */
function isLeft(file: string, text: string): boolean {
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600, flag: "wx" });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

async function letterIn(file: string): Promise<FoundLetter | null> {
  const found = await lstat(file).catch(() => null);
  if (found === null) return null;
  try {
    return { text: readTextFile(file, LONGEST_ANSWER), at: found.mtimeMs };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? null : { why: message };
  }
}

/** Who hears of which file, by folder: all runs of this process look together, and mostly there is nothing to read. */
const hearers = new Map<string, Map<string, (wish: ControlWish) => void>>();
let timer: NodeJS.Timeout | null = null;

function hear(file: string, heed: (wish: ControlWish) => void): () => void {
  const [folder, name] = [dirname(file), basename(file)];
  const ofFolder = hearers.get(folder) ?? new Map<string, typeof heed>();
  hearers.set(folder, ofFolder.set(name, heed));
  timer ??= setInterval(() => void lookAround(), WISH_LAG_MS).unref();
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

function wishIn(file: string): ControlWish | null {
  try {
    if (!lstatSync(file).isFile()) return null;
    const value = JSON.parse(readTextFile(file, LONGEST_WISH)) as Json;
    const wish = isObject(value) ? own(value, "wish") : undefined;
    return isControlWish(wish) ? wish : null;
  } catch {
    return null;
  }
}
