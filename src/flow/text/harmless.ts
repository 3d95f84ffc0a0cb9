/** Foreign text made harmless: what a terminal would obey, or what would break a line, is spelled out. */

/** They have no width. Between other letters and in emoji they have a purpose; beside ASCII they only disguise a name. */
const NO_WIDTH = "[\\u00ad\\u180e\\u200b-\\u200d\\u2060-\\u2064\\ufeff]";

/** Control characters, and those that turn the direction of writing: a terminal acts on them, a reader cannot see them. */
const UNSEEN = new RegExp(
  `[\\p{Cc}\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]|(?<=[!-~])${NO_WIDTH}|${NO_WIDTH}(?=[!-~])`,
  "gu",
);

/** Most text is plain: then it need not be searched for each of those. */
const PLAIN = /^[ -~]*$/;

/** Several lines of foreign text: line ends and tabs stay, everything else that a terminal would obey is spelled out. */
export function shown(text: string): string {
  return text.replaceAll(UNSEEN, (char) => (char === "\n" || char === "\t" ? char : spelled(char)));
}

/** Foreign text on one line, cut where it gets too long. */
export function shownInLine(text: string, longest = 200): string {
  return cut(folded(text).replaceAll(UNSEEN, spelled), longest);
}

/** The same with line ends and tabs spelled out, for lines that somebody takes apart again. */
export function escapedInLine(text: string, longest: number): string {
  const part = text.slice(0, longest + 1);
  return cut(PLAIN.test(part) ? part : part.replaceAll(UNSEEN, spelled), longest);
}

/** A text as a sentence that another one can follow. */
export function ended(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?…]["')\]]?$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** What an error says, whatever was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** JSON on one line; what JSON leaves raw and a terminal would obey is written as an escape. */
export function jsonLine(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  if (PLAIN.test(text)) return text;
  return text.replaceAll(UNSEEN, (char) => (char === "\n" ? char : unicode(char)));
}

/** A word as a shell reads it back. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Every run of spaces that holds a line end or a tab becomes one space. */
function folded(text: string): string {
  return text.replaceAll(/\s+/g, (spaces) => (/[\n\t]/.test(spaces) ? " " : spaces));
}

function cut(line: string, longest: number): string {
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

function spelled(char: string): string {
  const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[char];
  const code = char.charCodeAt(0);
  return short ?? (code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : unicode(char));
}

function unicode(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
