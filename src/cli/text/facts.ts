/** Rows of facts about an agent or a step, each with where it was said. */
import type { Json } from "../../flow/json.ts";
import type { ValueOrigin } from "../../load/index.ts";
import type { AgentExplained } from "../../tell/explain.ts";
import type { StepExplained } from "../../tell/explain-step.ts";
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

export function supplierText(supplier: NonNullable<StepExplained["variables"][0]["supplier"]>): string {
  switch (supplier.kind) {
    case "parameter":
      return `the parameter ${supplier.flag}${supplier.isSure ? "" : ", if it is given"}`;
    case "input":
      return `${supplier.key} of ${shownInLine(supplier.step, 60)}${supplier.isSure ? "" : ", if there is any"}`;
    case "runtime":
      return "the run itself";
    case "section":
      return `the section ${shownInLine(supplier.file ?? "")}`;
    case "constant":
      return `the constant ${plainValue(supplier.value)}`;
    case "handoff":
      return `${supplier.key}, handed on by ${shownInLine(supplier.step, 60)}`;
    case "argument":
      return "an argument, if it is given";
  }
}

/** `.agent/fixer/agent.json:21`, or `default`. */
export function originText(origin: ValueOrigin): string {
  switch (origin.kind) {
    case "default":
      return "default";
    case "written":
      return `${shownInLine(origin.file)}:${origin.line}`;
    case "overruled":
      return `fixed; ${shownInLine(origin.file)}:${origin.line} has no effect`;
  }
}

export function dimmed(paint: Paint, origin: ValueOrigin): string {
  return paint("dim", `  ${originText(origin)}`);
}

export function plainValue(value: Json): string {
  return shownInLine(typeof value === "string" ? value : JSON.stringify(value), 80);
}
