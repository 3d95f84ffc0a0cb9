/** How foreign texts of any length stand on a page: made harmless, and cut unless all is asked for. */
import type { Json } from "../../flow/json.ts";
import { facts, type Fact } from "./facts.ts";
import { count, shown, shownInLine, type Paint } from "./text.ts";

export type Page = {
  readonly paint: Paint;
  readonly full: boolean;
  readonly rows: (rows: readonly Fact[]) => readonly string[];
  /** A title and its rows; nothing where there are none. */
  readonly section: (title: string, rows: readonly Fact[]) => readonly string[];
  /** Several rows of which the first has the name. */
  readonly list: (name: string, texts: readonly string[]) => readonly Fact[];
  /** A text of several lines, at most so many. */
  readonly block: (name: string, text: string, most?: number) => readonly Fact[];
  /** A value on one line. */
  readonly line: (value: Json, longest?: number) => string;
};

export function createPage(paint: Paint, full: boolean): Page {
  const rows: Page["rows"] = (list) => facts(paint, list).map((line) => line.trimEnd());
  const list: Page["list"] = (name, texts) => texts.map((text, place) => [place === 0 ? name : "", text]);
  return {
    paint,
    full,
    rows,
    list,
    section: (title, body) => (body.length === 0 ? [] : ["", paint("bold", title), ...rows(body)]),
    block: (name, text, most = 12) => {
      const lines = shown(text).split("\n");
      if (full) return list(name, lines);
      const kept = lines.slice(0, most).map((line) => shownInLine(line, 160));
      const rest = lines.length - kept.length;
      return list(name, rest === 0 ? kept : [...kept, paint("dim", `… ${count(rest, "more line")}`)]);
    },
    line: (value, longest = 120) =>
      shownInLine(typeof value === "string" ? value : JSON.stringify(value), full ? Infinity : longest),
  };
}
