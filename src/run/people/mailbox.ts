/**
 * Answers that come as files: `<state>/answers/RUN/QUESTION.json`, each `{ "answer": "…" }`. `lockstep answer` writes
 * them, and so may any program; the process that owns the run reads them and removes them once they are in the journal.
 */
import { linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { lstat, rm } from "node:fs/promises";
import type { Question, Teller } from "../../flow/event.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { fileInside, insideState } from "../../journal/sqlite/inside.ts";
import { readTextFile } from "../world/files.ts";
import { ownFolder } from "../records/journal.ts";

export type Mailbox = {
  /** `bad`: what is there is no answer to the question, and stays where it is. */
  readonly look: (
    question: Question,
  ) => Promise<Letter | { readonly kind: "bad"; readonly why: string } | null>;
  readonly discard: (id: string) => Promise<void>;
};

/** What writes an answer for a person: the command, the page of the studio, or a client of the MCP server. */
const ANSWERING = ["answer", "studio", "mcp"] as const satisfies readonly Teller[];
export type Answering = (typeof ANSWERING)[number];

export type Letter = {
  readonly kind: "letter";
  readonly answer: string;
  readonly by: Answering | "file";
  /** Epoch milliseconds. */
  readonly at: number;
};

export function createMailbox(stateDir: string, run: string): Mailbox {
  return {
    look: async (question) => {
      const file = fileOf(stateDir, run, question.id);
      const found = await lstat(file).catch(() => null);
      if (found === null) return null;
      const text = letterText(file);
      if (text === null) return null;
      const letter = typeof text === "string" ? readLetter(text, question) : text.why;
      if (typeof letter === "string") return { kind: "bad", why: `${file} is not a valid answer: ${letter}` };
      return { kind: "letter", ...letter, at: found.mtimeMs };
    },
    discard: async (id) => {
      await rm(fileOf(stateDir, run, id), { force: true }).catch(() => undefined);
    },
  };
}

function letterText(file: string): string | { readonly why: string } | null {
  try {
    return readTextFile(file, LONGEST);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? null : { why: message };
  }
}

const LONGEST = 1024 * 1024;

/** false: it was answered before. */
export function postAnswer(
  stateDir: string,
  run: string,
  id: string,
  answer: string,
  by: Answering = "answer",
): boolean {
  const file = fileOf(stateDir, run, id);
  const draft = `${file}.${process.pid}`;
  ownFolder(stateDir, process.env);
  mkdirSync(insideState(stateDir, "answers", plain(run)), { recursive: true, mode: 0o700 });
  rmSync(draft, { force: true });
  writeFileSync(draft, `${JSON.stringify({ answer, by })}\n`, { mode: 0o600, flag: "wx" });
  try {
    // Whole or not at all, and never over what somebody else has said.
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A journal may come from elsewhere: no name in it leads out of the folder, and no link does. */
export function fileOf(stateDir: string, run: string, id: string): string {
  return fileInside(stateDir, "answers", plain(run), `${plain(id)}.json`);
}

function plain(name: string): string {
  return name.replaceAll(/[^\w-]/g, "_");
}

const MOST_LETTERS = 64 * 1024;

/** A text: what is wrong with it. */
function readLetter(text: string, question: Question): Pick<Letter, "answer" | "by"> | string {
  if (text.length > MOST_LETTERS) return "it is too long";
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return "it is not JSON";
  }
  if (!isObject(value)) return "it is not an object";
  const stranger = Object.keys(value).find((key) => key !== "answer" && key !== "by");
  if (stranger !== undefined)
    return `it has a key ${JSON.stringify(stranger.slice(0, 40))}, but only "answer" is allowed`;
  const answer = own(value, "answer");
  if (typeof answer !== "string" || answer.trim() === "") return '"answer" must be a text';
  if (!fits(question, answer)) return `"answer" must be one of ${question.choices.join(", ")}`;
  const by = own(value, "by");
  return { answer, by: ANSWERING.find((one) => one === by) ?? "file" };
}

export function fits(
  { choices, free }: { readonly choices: readonly string[]; readonly free?: boolean },
  answer: string,
): boolean {
  return free === true || choices.includes(answer);
}
