/** Answers that come as letters: what one has to look like, and which question it fits. */
import type { Question, Teller } from "../../flow/event.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import type { Mail } from "../../flow/mail.ts";

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

/** `bad`: what is there is no answer to the question, and stays where it is. */
export async function lookFor(
  mail: Mail,
  run: string,
  question: Question,
): Promise<Letter | { readonly kind: "bad"; readonly why: string } | null> {
  const found = await mail.find(run, question.id);
  if (found === null) return null;
  const letter = "why" in found ? found.why : readLetter(found.text, question);
  if (typeof letter === "string")
    return { kind: "bad", why: `${mail.where(run, question.id)} is not a valid answer: ${letter}` };
  return { kind: "letter", ...letter, at: "at" in found ? found.at : 0 };
}

export function letterText(answer: string, by: Answering): string {
  return JSON.stringify({ answer, by });
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
