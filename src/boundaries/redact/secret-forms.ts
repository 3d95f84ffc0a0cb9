/**
 * Known values in a text, in any of the forms they travel in: as they are, in base64 or hexadecimal, and in whatever
 * writes characters in another way (escapes, entities, percent signs) or stands between them (line ends, colour codes).
 */
import { REDACTED } from "../../flow/text/redacted.ts";
import type { SecretSpan } from "./secret-shapes.ts";

export type Needles = {
  /** A look that costs little. false: nothing is there. */
  readonly mayBeIn: (text: string) => boolean;
  /** `escaped`: whether the text `isEscaped`. */
  readonly in: (text: string, escaped: boolean) => readonly SecretSpan[];
  /** Where the text may end with the beginning of a value; its length if it does not. */
  readonly beginsIn: (text: string) => number;
};

/** Shorter values would be found in ordinary words. */
export const SHORTEST = 8;

export function needlesFor(known: readonly string[]): Needles | null {
  const values = known.filter((value) => value.trim().length >= SHORTEST);
  // The longest first: one form may be the beginning of another.
  const forms = [...new Set(values.flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
  if (forms.length === 0) return null;
  const whole = new RegExp(forms.map(literally).join("|"), "g");
  const pieces = new RegExp([...new Set(forms.flatMap(piecesOf))].map(literally).join("|"));
  const heads = new RegExp(
    [...new Set(forms.map((form) => form.slice(0, PIECE)))].map(literally).join("|"),
    "g",
  );
  const longest = forms[0]!.length;

  const spansIn = (text: string): readonly SecretSpan[] =>
    [...text.matchAll(whole)].map(({ index, 0: found }) => ({
      from: index,
      to: index + found.length,
      mark: REDACTED,
    }));

  return {
    mayBeIn: (text) => pieces.test(text),
    in: (text, escaped) => {
      const direct = spansIn(text);
      if (!escaped && !between(text, direct).some((part) => pieces.test(part))) return direct;
      const { plain, spanOf } = unwritten(text, true);
      return plain === text ? direct : [...direct, ...spansIn(plain).map(spanOf)];
    },
    beginsIn: (text) => {
      const from = Math.max(0, text.length - longest * LONGEST_ESCAPE);
      const { plain, spanOf } = unwritten(text.slice(from).replace(UNFINISHED, ""), true);
      heads.lastIndex = 0;
      for (let found = heads.exec(plain); found !== null; found = heads.exec(plain)) {
        const rest = plain.slice(found.index);
        if (forms.some((form) => form.startsWith(rest))) {
          return from + spanOf({ from: found.index, to: plain.length, mark: REDACTED }).from;
        }
        heads.lastIndex = found.index + 1;
      }
      return text.length;
    },
  };
}

function between(text: string, spans: readonly SecretSpan[]): readonly string[] {
  const ends = [0, ...spans.map(({ to }) => to)];
  return ends.map((from, place) => text.slice(from, spans[place]?.from));
}

/** How much of a form is looked for first. */
const PIECE = 8;

/** A form whose beginning is broken by a line end is whole behind it, unless lines are very short: `ESCAPED` has those. */
function piecesOf(form: string): readonly string[] {
  const [first, second] = [form.slice(0, PIECE), form.slice(PIECE, 2 * PIECE)];
  return form.length >= 2 * PIECE && /^[\w+/=-]+$/.test(form) ? [first, second] : [first];
}

function literally(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}-]/g, "\\$&");
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const url = encodeURIComponent(value.toWellFormed());
  const hex = bytes.toString("hex");
  return [
    value,
    value.trim(),
    url,
    url.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()),
    JSON.stringify(value).slice(1, -1),
    hex,
    hex.toUpperCase(),
    ...inBase64(bytes),
  ].filter((form) => form.length >= SHORTEST);
}

/** In the middle of something else, a value can begin at any of three places; the characters it shares are left out. */
function inBase64(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    const from = [0, 2, 3][before]!;
    const to = Math.floor((whole.length * 8) / 6);
    const plain = whole.toString("base64").slice(from, to);
    return [plain, plain.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

// Characters that are written in another way.

export type Unwritten = {
  readonly plain: string;
  /** A span of `plain`, as it stands in the text. */
  readonly spanOf: (span: SecretSpan) => SecretSpan;
};

/** Whether anything in the text could be written in another way, or broken into very short lines. */
export function isEscaped(text: string): boolean {
  return ESCAPED.test(text);
}

const [ESC, BELL] = ["\\u001b", "\\u0007"];
const ESCAPED = new RegExp(
  String.raw`%[0-9A-Fa-f]{2}|\\[ux][0-9A-Fa-f{]|\\e\[|\\[0-3][0-7]{2}|&#|&(?:amp|lt|gt|quot|apos);|${ESC}[[\]]|[\u00ad\u200b-\u200f\u2060\ufeff]|\n[ \t]{0,16}[\w+/=-]{1,15}\r?\n|\\n[\w+/=-]{1,15}(?:\\r)?\\n`,
);

/** Text in text in text: its backslashes are doubled again. */
const BACKSLASH = "\\\\{1,4}";
const ESCAPE = `(?:\\u001b|${BACKSLASH}(?:u001[bB]|x1[bB]|e|033))`;

/** Each alternative is one character, or nothing at all. Bounded repeats, so that no text can make matching slow. */
const WRITTEN = [
  "(?<percent>(?:%[0-9A-Fa-f]{2}){1,4096})",
  `(?<colour>${ESCAPE}\\[[0-9;:?]{0,64}[ -/]{0,4}[@-~]|${ESCAPE}\\][^\\u0007\\u001b\\\\]{0,512}(?:\\u0007|${BACKSLASH}u0007|${ESCAPE}\\\\{1,4})|[\\u00ad\\u200b-\\u200f\\u2060\\ufeff])`,
  `${BACKSLASH}u\\{0{0,4}(?<long>[0-9A-Fa-f]{1,6})\\}`,
  `${BACKSLASH}u(?<four>[0-9A-Fa-f]{4})`,
  `${BACKSLASH}x(?<two>[0-9A-Fa-f]{2})`,
  `${BACKSLASH}(?<octal>[0-3][0-7]{2})`,
  "\\\\(?<sign>[\"'\\\\/])",
  "&#[xX]0{0,6}(?<hex>[0-9A-Fa-f]{1,6});?",
  "&#0{0,6}(?<decimal>\\d{1,7});?",
  "&(?<name>amp|lt|gt|quot|apos);",
].join("|");
/** A line end, the indent of the next line, and what a tool puts before it: its number, the name of the file. */
const FOLD = `(?<fold>(?:\\r?\\n|\\r|(?:${BACKSLASH}r)?${BACKSLASH}n)[ \\t]{0,64}(?:(?:[^\\s:]{1,200}:)?\\d{1,7}(?:[:\\t]|${BACKSLASH}t)[ \\t]{0,8})?)`;
const ESCAPES = new RegExp(WRITTEN, "g");
const ESCAPES_AND_FOLDS = new RegExp(`${FOLD}|${WRITTEN}`, "g");

/** An escape that goes on in what has not come yet. */
const UNFINISHED = new RegExp(
  String.raw`(?:\\(?:u\{?[0-9A-Fa-f]{0,6}|x[0-9A-Fa-f]?|[0-3][0-7]?|r)?|%[0-9A-Fa-f]?|&[#\w]{0,9}|${ESC}(?:\[[0-9;:?]{0,64}|\][^${BELL}${ESC}]{0,512})?|\r?\n[ \t]{0,64}\d{0,7}|\r)$`,
);
/** `&#x00000041;` and a colour before it: the most that one character takes. */
const LONGEST_ESCAPE = 8;

/** The text with its plain characters; with `folds`, also without its line ends. */
export function unwritten(text: string, folds: boolean): Unwritten {
  const pieces: string[] = [];
  const places: Place[] = [];
  let length = 0;
  let at = 0;
  const add = (piece: string, took: number, isCopy: boolean) => {
    if (piece !== "") places.push({ plain: length, text: at, took, isCopy });
    pieces.push(piece);
    length += piece.length;
    at += took;
  };
  for (const { index, 0: found, groups = {} } of text.matchAll(folds ? ESCAPES_AND_FOLDS : ESCAPES)) {
    if (index > at) add(text.slice(at, index), index - at, true);
    if (groups["percent"] !== undefined) for (const part of bytesIn(found)) add(...part, false);
    else add(characterOf(groups), found.length, false);
  }
  if (at === 0) return { plain: text, spanOf: (span) => span };
  add(text.slice(at), text.length - at, true);
  return {
    plain: pieces.join(""),
    spanOf: ({ from, to, mark }) => {
      const [first, last] = [placeOf(places, from), placeOf(places, to - 1)];
      return {
        from: first.text + (first.isCopy ? from - first.plain : 0),
        to: last.text + (last.isCopy ? to - last.plain : last.took),
        mark,
      };
    },
  };
}

/** A piece of the plain text, where it stands in the text, and how much it takes there. */
type Place = {
  readonly plain: number;
  readonly text: number;
  readonly took: number;
  readonly isCopy: boolean;
};

/** The last one that begins at or before this place of the plain text. */
function placeOf(places: readonly Place[], plain: number): Place {
  let low = 0;
  let high = places.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (places[middle]!.plain <= plain) low = middle;
    else high = middle - 1;
  }
  return places[low]!;
}

const NAMED: { readonly [name: string]: string } = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function characterOf(groups: { readonly [name: string]: string | undefined }): string {
  const { long, four, two, octal, sign, hex, decimal, name } = groups;
  if (sign !== undefined) return sign;
  if (name !== undefined) return NAMED[name] ?? "";
  const digits = long ?? four ?? two ?? hex;
  if (digits !== undefined) return character(Number.parseInt(digits, 16));
  if (octal !== undefined) return character(Number.parseInt(octal, 8));
  return decimal === undefined ? "" : character(Number(decimal));
}

function character(code: number): string {
  return code <= 0x10_ffff ? String.fromCodePoint(code) : "";
}

/** `%C3%A4` and the like: each character with how much of the text it takes. */
function bytesIn(text: string): readonly (readonly [character: string, took: number])[] {
  const bytes = Buffer.from(text.replaceAll("%", ""), "hex");
  const parts: (readonly [string, number])[] = [];
  for (let at = 0; at < bytes.length;) {
    const lead = bytes[at]!;
    const size = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const part = bytes.subarray(at, at + size);
    parts.push([part.toString("utf8"), 3 * part.length]);
    at += size;
  }
  return parts;
}
