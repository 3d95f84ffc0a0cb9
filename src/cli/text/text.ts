/** Words and figures for people. Pure. What comes from a model or a file is made harmless before it is shown. */
import util, { stripVTControlCharacters } from "node:util";
import { widthOf } from "../../flow/text/figures.ts";
import { shownInLine } from "../../flow/text/harmless.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Colours a text, or gives it back as it is where there are no colours. */
export type Paint = (style: Style, text: string) => string;

/** `mark` goes into each code, so that somebody can tell our codes from those in foreign text, and takes it out again. */
export function createPaint(colours: boolean, mark = ""): Paint {
  if (!colours) return (_, text) => text;
  return (style, text) => {
    const [begin, end] = util.inspect.colors[style]!.map((code) => `\u001b[${code}${mark}m`) as [
      string,
      string,
    ];
    // Where a colour within this one ends, this one goes on.
    return `${begin}${text.replaceAll(end, `${end}${begin}`)}${end}`;
  };
}

export { jsonLine, shellWord, shown, shownInLine } from "../../flow/text/harmless.ts";
export { age, count, DOING, duration, size, widthOf } from "../../flow/text/figures.ts";

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
