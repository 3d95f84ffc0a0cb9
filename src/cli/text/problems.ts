/** Findings about a flow, as a person reads them: the place, the lines around it, why it matters, how to fix it. */
import type { Files } from "../../flow/files.ts";
import type { Problem } from "../../flow/problem.ts";
import { count, shown, shownInLine, type Paint } from "./text.ts";

/** Every problem in full, with a blank line between them. */
export function renderProblems(
  problems: readonly Problem[],
  files: Files,
  paint: Paint,
  typed: (text: string) => string = (text) => text,
): string {
  const known = new Map<string, readonly string[]>();
  const linesOf: LinesOf = (file) => {
    const before = known.get(file);
    if (before !== undefined) return before;
    const read = files.read(file);
    const lines = read.kind === "text" && read.text.trim() !== "" ? read.text.split(/\r?\n/) : [];
    known.set(file, lines);
    return lines;
  };
  return folded(problems)
    .map((problem) =>
      renderProblem({ ...problem, message: typed(problem.message), fix: typed(problem.fix) }, linesOf, paint),
    )
    .join("\n\n");
}

/** Old names of one agent are one thing to do: they are reported once, with the command that does it. */
function folded(problems: readonly Problem[]): readonly Problem[] {
  const old = Map.groupBy(
    problems.filter(({ code, severity }) => code === "OLD-NAME" && severity === "warning"),
    ({ file }) => agentIn(file),
  );
  return problems.flatMap((problem) => {
    const agent = agentIn(problem.file);
    const group = problem.code === "OLD-NAME" && agent !== null ? (old.get(agent) ?? []) : [];
    if (group.length < 2) return [problem];
    if (group[0] !== problem) return [];
    const names = group.slice(0, MOST_NAMES).map(({ pointer }) => pointer.slice(1).replaceAll("/", "."));
    const more = group.length > MOST_NAMES ? ` and ${group.length - MOST_NAMES} more` : "";
    const message = `${group.length} old names: ${names.join(", ")}${more}.`;
    return [{ ...problem, message, fix: `lockstep migrate ${agent} --write` }];
  });
}

const MOST_NAMES = 5;

/** null: a name that a shell would not take as it is. */
function agentIn(file: string): string | null {
  return /^\.agent\/([\w.-]+)\//.exec(file)?.[1] ?? null;
}

/** Each file is read once, however many problems it has. */
type LinesOf = (file: string) => readonly string[];

function renderProblem(problem: Problem, linesOf: LinesOf, paint: Paint): string {
  const { code, severity, file, line, column, message, why, fix, witness } = problem;
  const colour = severity === "error" ? "red" : "yellow";
  return [
    `${paint("bold", `${shownInLine(file)}:${line}:${column}`)}  ${paint(colour, severity)}  ${code}`,
    ...indent(shown(message)),
    ...codeFrame(problem, linesOf, paint),
    ...indent(`${paint("dim", "why")}  ${shown(why)}`),
    ...indent(`${paint("cyan", "fix")}  ${shown(fix)}`),
    ...(witness.length === 0
      ? []
      : indent(`${paint("dim", "way")}  ${witness.map((id) => shownInLine(id)).join(" → ")}`)),
  ].join("\n");
}

/** `2 errors, 1 warning`, or `no problems`. */
export function countProblems(problems: readonly Problem[]): string {
  const errors = problems.filter((problem) => problem.severity === "error").length;
  const warnings = problems.length - errors;
  const parts = [
    ...(errors > 0 ? [count(errors, "error")] : []),
    ...(warnings > 0 ? [count(warnings, "warning")] : []),
  ];
  return parts.length === 0 ? "no problems" : parts.join(", ");
}

const FRAME_WIDTH = 100;

/** The line, one before and one after, and a mark below the column. Nothing when the file cannot be read. */
function codeFrame({ file, line, column }: Problem, linesOf: LinesOf, paint: Paint): readonly string[] {
  const lines = linesOf(file);
  const target = lines[line - 1];
  if (target === undefined) return [];
  const from = Math.max(0, column - 1 - FRAME_WIDTH + 20);
  const gutter = String(line + 1).length;
  const numbers = [line - 1, line, line + 1].filter((number) => lines[number - 1] !== undefined);
  return numbers.flatMap((number) => {
    const text = visibleLine(lines[number - 1]!, from);
    const mark = number === line ? ">" : " ";
    const row = `  ${mark} ${String(number).padStart(gutter)} | ${text}`.trimEnd();
    if (number !== line) return [paint("dim", row)];
    const before = visibleLine(target.slice(0, column - 1), from).length;
    return [row, `    ${" ".repeat(gutter)} | ${" ".repeat(before)}${paint("red", "^")}`];
  });
}

/** A window on a long line. A tab is shown as one, in two columns, so that the mark is at the right place. */
function visibleLine(line: string, from: number): string {
  return shown(line.slice(from, from + FRAME_WIDTH).replaceAll("\t", "→ "));
}

function indent(text: string): readonly string[] {
  return text.split("\n").map((line, place) => (place === 0 ? `  ${line}` : `       ${line}`));
}
