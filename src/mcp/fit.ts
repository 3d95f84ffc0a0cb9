/** What a client is given: nothing in it is hidden, and there is no more of it than a model can read. Pure. */
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { shown } from "../flow/text/harmless.ts";

/** Characters of a document at most: a quarter of a small context window, and less than the limit of every known client. */
export const MOST_CHARACTERS = 60_000;
/** Of a document that is read as a resource. */
export const MOST_IN_RESOURCE = 1_000_000;

/** Zero-width spaces, tags and other letters that only a model can read. Joiners stay: emoji and scripts need them. */
const HIDDEN = /(?!\u200c|\u200d|\ufe0f)\p{Default_Ignorable_Code_Point}/gu;

/** Several lines of foreign text, with everything in it to be seen. */
export function plainText(text: string): string {
  return shown(text).replaceAll(HIDDEN, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`);
}

/** The same value with every text and every name in it made plain. */
export function plainJson(value: Json): Json {
  if (typeof value === "string") return plainText(value);
  if (Array.isArray(value)) return (value as readonly Json[]).map(plainJson);
  return isObject(value) ? plainDocument(value) : value;
}

export function plainDocument(document: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [plainText(name), plainJson(value)]),
  );
}

/** A text that ends with how much of it is left out. */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}\n… ${text.length - most} more characters`;
}

/**
 * The same document where it is short enough. Otherwise its longest members, one after the other, become
 * `{ "cut": true, "characters": N, "begins": "…" }` until it is.
 */
export function fitted(document: JsonObject, most = MOST_CHARACTERS): JsonObject {
  const members = new Map(Object.entries(document));
  let size = JSON.stringify(document).length;
  for (const [name, text] of longestFirst(document)) {
    if (size <= most) break;
    // In a text every quotation mark is written as two characters.
    const left = Math.max(0, Math.floor((text.length - (size - most) - CUT_WORDS) / 2));
    const cut = { cut: true, characters: text.length, begins: text.slice(0, left) };
    const saved = text.length - JSON.stringify(cut).length;
    if (saved <= 0) continue;
    members.set(name, cut);
    size -= saved;
  }
  return Object.fromEntries(members);
}

/** What a cut member needs besides its beginning. */
const CUT_WORDS = 80;

function longestFirst(document: JsonObject): readonly (readonly [name: string, text: string])[] {
  const texts = Object.entries(document).map(([name, value]) => [name, JSON.stringify(value)] as const);
  return texts.toSorted(([, a], [, b]) => b.length - a.length);
}
