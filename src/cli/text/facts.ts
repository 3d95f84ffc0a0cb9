/** Rows of facts about an agent or a step, each with where it was said. */
import type { ValueOrigin } from "../../load/index.ts";
import type { AgentExplained } from "../../tell/explain.ts";
import { originText } from "../../tell/origin-words.ts";
import { shownInLine, table, type Paint } from "./text.ts";

export type Fact = readonly [name: string, text: string];

/** Rows that are null are left out. */
export function facts(paint: Paint, rows: readonly (Fact | null)[]): readonly string[] {
  return rows
    .filter((row) => row !== null)
    .map(([name, text]) => `  ${paint("dim", name.padEnd(10))}  ${text}`);
}

export function factSection(
  paint: Paint,
  title: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  if (rows.length === 0) return [];
  const [first = "", ...lines] = table([head, ...rows]);
  return [
    "",
    paint("bold", title),
    paint("dim", `  ${first.trimEnd()}`),
    ...lines.map((line) => `  ${line.trimEnd()}`),
  ];
}

/** A file is named; words that stand in no file are shown. */
export function promptFacts(
  title: string,
  { file, builtIn }: AgentExplained["system"],
  otherwise: string,
): readonly Fact[] {
  if (builtIn === null) return [[title, file ?? otherwise]];
  return [
    [title, `${shownInLine(file ?? "")}, because there is no file:`],
    ...builtIn.split("\n").map((line): Fact => ["", line === "" ? "" : `│ ${shownInLine(line, 160)}`]),
  ];
}

export function dimmed(paint: Paint, origin: ValueOrigin): string {
  return paint("dim", `  ${originText(origin)}`);
}
