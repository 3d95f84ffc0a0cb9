/**
 * What a command printed, as the extractors read it: plain lines of bounded length, and findings of bounded size.
 *
 * Output may be hostile. No line is longer than `MAX_LINE` and no pattern sees more than one line, so that whatever a
 * pattern costs, reading an output stays linear in its length.
 */
import { stripVTControlCharacters } from "node:util";
import type { Json } from "../../flow/json.ts";
import { isObject } from "../../flow/json.ts";
import { clipCaptured } from "./capture.ts";

export type CommandOutput = {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | null;
};

/** One tool's way of printing its findings. */
export type OutputPath<T> = (lines: readonly string[]) => readonly T[];

/** Tools of one kind print each in their own way; the first way that finds something is the right one. */
export function firstFound<T>(ways: readonly OutputPath<T>[], lines: readonly string[]): readonly T[] {
  for (const way of ways) {
    const found = way(lines);
    if (found.length > 0) return found;
  }
  return [];
}

const MAX_LINE = 2_000;
const ESCAPES = ["\u001b", "\u009b"];

/** Lines without colours; of a longer line, its start. */
export function linesOf(...texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => text.split(/\r\n|\r|\n/).map(plainLine));
}

function plainLine(line: string): string {
  const start = line.slice(0, MAX_LINE);
  return ESCAPES.some((escape) => start.includes(escape)) ? stripVTControlCharacters(start) : start;
}

/** How many lines of an error are worth showing. */
export const ERROR_LINES = 20;

/** The lines from `start` to the first that looks like `end`, which is not among them. */
export function untilNext(
  lines: readonly string[],
  start: number,
  end: RegExp,
  limit = ERROR_LINES,
): readonly string[] {
  const window = lines.slice(start, start + limit);
  const found = window.findIndex((line) => end.test(line));
  return found === -1 ? window : window.slice(0, found);
}

/** The first match among these lines. */
export function firstMatch(lines: readonly string[], pattern: RegExp): RegExpExecArray | null {
  for (const line of lines) {
    const match = pattern.exec(line);
    if (match !== null) return match;
  }
  return null;
}

type LineParts = { readonly [part: string]: string | undefined };

/** The named groups of each line that matches. */
export function partsIn(lines: readonly string[], pattern: RegExp): readonly LineParts[] {
  return lines.map((line) => pattern.exec(line)?.groups).filter((groups) => groups !== undefined);
}

export function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

export function dedent(lines: readonly string[]): string {
  const indent = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf));
  return lines
    .map((line) => line.slice(Number.isFinite(indent) ? indent : 0))
    .join("\n")
    .trim();
}

export function withoutScheme(path: string): string {
  return path.startsWith("file://") ? path.slice("file://".length) : path;
}

/** How an output begins, in one line. */
export function firstLines(text: string): string {
  const lines = text.slice(0, 4_096).split("\n");
  return oneLine(
    lines
      .filter((line) => line.trim() !== "")
      .slice(0, 3)
      .map((line) => line.trim())
      .join(" | "),
  );
}

const MAX_SHOWN = 300;

/** Fit to be shown among other words: no control characters, not too long. */
export function oneLine(text: string): string {
  const whole = text.trim();
  // Node looks for the end of each escape sequence in the whole text.
  const plain = stripVTControlCharacters(whole.slice(0, MAX_LINE))
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const isCut = plain.length > MAX_SHOWN || whole.length > MAX_LINE;
  return isCut ? `${plain.slice(0, MAX_SHOWN)} …` : plain;
}

const MAX_FOUND = 50;
const MAX_TEXT = 1_000;

/** Findings as they go into a prompt: not too many, none too long. */
export function boundedOutput(value: Json): Json {
  if (typeof value === "string") return clipCaptured(value, MAX_TEXT);
  if (Array.isArray(value)) return value.slice(0, MAX_FOUND).map((member: Json) => boundedOutput(member));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, boundedOutput(member)]));
}
