/** Words and figures for people. Pure. What comes from a model or a file is made harmless before it is shown. */
import util, { stripVTControlCharacters } from "node:util";
import { shownInLine } from "../../flow/text/harmless.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Colours a text, or gives it back as it is where there are no colours. */
export type Paint = (style: Style, text: string) => string;

export function createPaint(colours: boolean): Paint {
  return colours
    ? (style, text) => util.styleText(style, text, { validateStream: false })
    : (_, text) => text;
}

export { jsonLine, shellWord, shown, shownInLine } from "../../flow/text/harmless.ts";

/** What is being done about a command. */
export const DOING = {
  ask: "asking",
  call: "using tools",
  check: "checking",
  look: "looking",
  hook: "running a hook",
  question: "waiting for an answer",
  wait: "waiting",
} as const;

/** `a ∥ b`: steps that run at the same time. */
export function besideEachOther(steps: readonly string[]): string {
  return steps.map((step) => shownInLine(step, 60)).join(" ∥ ");
}

/** Columns as wide as their widest cell; the last one is not padded. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? ""))),
  );
  return rows.map((row) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : fit(cell, widths[column]!))).join("  "),
  );
}

/** A table whose first row is a dimmed head. */
export function headed(paint: Paint, rows: readonly (readonly string[])[]): readonly string[] {
  const [head = "", ...lines] = table(rows);
  return [paint("dim", head), ...lines];
}

/** Characters that a terminal draws over two cells: those of East Asia, and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const NARROW = /^(?:\p{Mn}|\p{Me}|\p{Cf})$/u;

/** Cells that a text takes in a terminal. */
export function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += char < "\u0300" ? 1 : NARROW.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}

/** Exactly so many cells: filled with spaces, or cut. */
export function fit(text: string, width: number): string {
  const missing = width - widthOf(text);
  if (missing >= 0) return text + " ".repeat(missing);
  let kept = "";
  let used = 0;
  for (const char of text) {
    const wide = widthOf(char);
    if (used + wide > width - 1) break;
    kept += char;
    used += wide;
  }
  return `${kept}…${" ".repeat(width - used - 1)}`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** `340 ms`, `2.4 s`, `3 min 20 s`, `5 h 12 min`, `4 d`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
}

/** `340 B`, `12 kB`, `3.4 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** How long ago, in one unit. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** From a command of ours to the end of the line: it can be copied whole. */
const COMMAND = /(?<=\s)(?:npx |npm run -s )?lockstep (?:-- )?[a-z]+\b/;

/** One line of text over several: broken at spaces, never within a word or a command of ours. `hang`: the indent of what follows. */
export function wrapped(line: string, width: number, hang?: number): string {
  const plain = stripVTControlCharacters(line);
  if (widthOf(plain) <= width) return line;
  const [indent = ""] = /^ */.exec(plain) ?? [];
  // Colours may begin before the indent does.
  const begin = line.slice(0, line.indexOf(indent) + indent.length);
  const text = line.slice(begin.length);
  const more = hang === undefined ? `${indent}  ` : " ".repeat(hang);
  const lines = [begin];
  const command = text.search(COMMAND);
  const words =
    command === -1 ? text.split(" ") : [...text.slice(0, command).trimEnd().split(" "), text.slice(command)];
  for (const word of words) {
    const last = lines.at(-1)!;
    const isEmpty = last === begin;
    const joined = isEmpty ? `${last}${word}` : `${last} ${word}`;
    if (isEmpty || widthOf(stripVTControlCharacters(joined)) <= width) lines[lines.length - 1] = joined;
    else lines.push(`${more}${word}`);
  }
  return lines.join("\n");
}
