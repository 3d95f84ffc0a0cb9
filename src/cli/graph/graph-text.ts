/** A flow drawn in the terminal: a box for each step, and beside the boxes a line for each step that others lead to. */
import type { Edge, OutlineNode, Outline } from "../../tell/outline.ts";
import {
  conditionText,
  hitsText,
  kindText,
  labelText,
  leadsToItself,
  markText,
  targetText,
  worstOf,
} from "../../tell/graph-words.ts";
import { count, fit, shownInLine, widthOf, type Paint } from "../text/text.ts";

export function renderText(outline: Outline, width: number, paint: Paint): string {
  const rows = layOut(outline, Math.max(40, width));
  const gutter = drawLanes(rows, Math.max(40, width));
  const lines = rows.map(({ text, style }, at) => {
    const painted = style === null ? text : paint(style, text);
    const side = gutter[at]!;
    return side === "" ? painted.trimEnd() : painted + paint("dim", side);
  });
  return [heading(outline, paint), "", ...lines, ...legend(outline, paint)].join("\n");
}

/** One line of the drawing. `leaves`: an edge to that step begins here; `enters`: edges to that step end here. */
type Row = {
  readonly text: string;
  readonly style: "red" | "yellow" | "green" | "dim" | null;
  readonly leaves?: string;
  readonly enters?: string;
};

function heading({ agent, title, nodes }: Outline, paint: Paint): string {
  const name = title === agent ? "" : ` · ${shownInLine(title, 60)}`;
  return `${paint("bold", shownInLine(agent, 60))}${name} · ${count(nodes.length, "step")}`;
}

function layOut(outline: Outline, width: number): readonly Row[] {
  const leaving = Map.groupBy(outline.edges, ({ from }) => from);
  const contents = outline.nodes.map((node) => boxLines(node, leaving.get(node.id) ?? []));
  const widest = contents.flat().reduce((most, { text }) => Math.max(most, widthOf(text)), 24);
  const inner = Math.min(widest, Math.floor(width * 0.8) - 4);
  return outline.nodes.flatMap((node, at) => {
    const [title, ...lines] = contents[at]!;
    const dashes = inner - widthOf(title!.text);
    const head = dashes <= 0 ? `${fit(title!.text, inner)} ` : `${title!.text} ${"─".repeat(dashes)}`;
    const rows: Row[] = [
      { ...title!, text: `╭ ${head}╮`, enters: node.id },
      ...lines.map((line) => framed(line, inner)),
      { text: `╰${"─".repeat(inner + 2)}╯`, style: node.isReached ? null : "dim" },
    ];
    return at === 0 ? rows : [{ text: " ".repeat(inner + 4), style: null }, ...rows];
  });
}

function framed(line: Row, inner: number): Row {
  return { ...line, text: `│ ${fit(line.text, inner)} │` };
}

function boxLines(node: OutlineNode, edges: readonly Edge[]): readonly Row[] {
  const style: Row["style"] = !node.isReached ? "dim" : node.hits === 0 ? "red" : null;
  const markStyle: Row["style"] = worstOf(node) === "error" ? "red" : "yellow";
  const own = edges.filter((edge) => !edge.isTacit);
  const wide = Math.max(0, ...own.map((edge) => widthOf(labelText(edge))));
  const marks = markText(node);
  const plain = [
    titleOf(node),
    ...(node.name === node.id ? [] : [shownInLine(node.name, 76)]),
    ...(node.isReached ? [] : ["no way leads here"]),
    ...(node.checks.length === 0
      ? []
      : [`checks before the end: ${node.checks.map((name) => shownInLine(name, 40)).join(", ")}`]),
  ];
  return [
    ...plain.map((text) => ({ text, style })),
    ...(marks === "" ? [] : [{ text: marks, style: markStyle }]),
    ...own.map((edge) => edgeRow(edge, wide, style)),
  ];
}

function titleOf(node: OutlineNode): string {
  const hits = node.hits === undefined ? "" : ` ${hitsText(node.hits)}`;
  return `${node.isEntry ? "▶ " : ""}${shownInLine(node.id, 60)} (${kindText(node)})${hits}`;
}

function edgeRow(edge: Edge, wide: number, style: Row["style"]): Row {
  const { to, kind } = edge;
  const label = labelText(edge);
  const isOwn = leadsToItself(edge);
  const arrow = kind === "back" ? "↩" : isOwn ? "↻" : edge.isLoop ? "↑" : to.kind === "end" ? "■" : "→";
  const target = isOwn ? "itself" : targetText(to);
  const condition = conditionText(edge);
  const text = `  ${label}${" ".repeat(wide - widthOf(label))} ${arrow} ${target}${condition === "" ? "" : `  [${condition}]`}`;
  const { hits } = edge;
  return {
    text: hits === undefined ? text : `${text}  ${hitsText(hits)}`,
    style:
      hits !== undefined
        ? hits === 0
          ? "red"
          : "green"
        : kind === "back"
          ? "yellow"
          : to.kind === "missing"
            ? "red"
            : style,
    ...(to.kind === "step" && !isOwn ? { leaves: to.step } : {}),
  };
}

/** A line beside the boxes for every step that some other step leads to; null: there is no room left for it. */
type Lane = { readonly target: number; readonly sources: readonly number[]; column: number | null };

const UP = 1;
const DOWN = 2;
const LEFT = 4;
const RIGHT = 8;
const JOINTS = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼";

/** Short lines stand close to the boxes. What finds no room is left to its words in the box. */
function drawLanes(rows: readonly Row[], width: number): readonly string[] {
  const room = Math.floor((width - Math.max(0, ...rows.map(({ text }) => widthOf(text))) - 2) / 2);
  const lanes = toLanes(rows).toSorted((a, b) => spanOf(a) - spanOf(b));
  const taken: (readonly [number, number])[][] = [];
  for (const lane of lanes) {
    const [from, to] = edgesOf(lane);
    const free = taken.findIndex((spans) => spans.every(([first, last]) => last < from || first > to));
    const column = free === -1 ? taken.length : free;
    if (column >= room) continue;
    (taken[column] ??= []).push([from, to]);
    lane.column = column;
  }
  const drawn = lanes.filter((lane) => lane.column !== null);
  const cells = rows.map(() => new Map<number, number>());
  const mark = (row: number, at: number, joint: number) => {
    cells[row]!.set(at, (cells[row]!.get(at) ?? 0) | joint);
  };
  const arrows = new Set<number>();
  for (const lane of drawn) {
    const [from, to] = edgesOf(lane);
    const at = 2 + lane.column! * 2;
    for (let row = from; row <= to; row += 1) mark(row, at, (row > from ? UP : 0) | (row < to ? DOWN : 0));
    for (const row of [...lane.sources, lane.target]) {
      for (let cell = 0; cell < at; cell += 1) mark(row, cell, LEFT | RIGHT);
      mark(row, at, LEFT);
    }
    arrows.add(lane.target);
  }
  return cells.map((row, place) => {
    const last = Math.max(-1, ...row.keys());
    const text = Array.from({ length: last + 1 }, (_, at) => JOINTS[row.get(at) ?? 0]).join("");
    return arrows.has(place) ? `◀${text.slice(1)}` : text;
  });
}

function toLanes(rows: readonly Row[]): readonly Lane[] {
  const leaving = Map.groupBy(rows.keys(), (row) => rows[row]!.leaves);
  return rows.flatMap(({ enters }, target) => {
    if (enters === undefined) return [];
    const sources = leaving.get(enters) ?? [];
    return sources.length === 0 ? [] : [{ target, sources, column: null }];
  });
}

function edgesOf({ target, sources }: Lane): readonly [number, number] {
  return [
    sources.reduce((least, row) => Math.min(least, row), target),
    sources.reduce((most, row) => Math.max(most, row), target),
  ];
}

function spanOf(lane: Lane): number {
  const [from, to] = edgesOf(lane);
  return to - from;
}

function legend({ edges, nodes }: Outline, paint: Paint): readonly string[] {
  const tacit = Map.groupBy(
    edges.filter((edge) => edge.isTacit && edge.kind === "end"),
    (edge) => edge.label,
  );
  const steps = new Set(edges.map((edge) => edge.from)).size;
  const findings = nodes.flatMap((node) => node.findings);
  const signs = [
    "▶ the run begins here",
    ...(edges.some((edge) => edge.to.kind === "end" && !edge.isTacit) ? ["■ the run ends"] : []),
    ...(edges.some((edge) => edge.kind === "back") ? ["↩ after a failed check"] : []),
    ...(edges.some((edge) => edge.isLoop && edge.kind !== "back" && !leadsToItself(edge))
      ? ["↑ back to an earlier step"]
      : []),
    ...[...tacit].map(([label, { length }]) => {
      const where = length === steps ? "from any step" : "where no line is drawn for it";
      return `${shownInLine(label, 30)} ends the run ${where}`;
    }),
  ];
  return [
    "",
    paint("dim", signs.join(" · ")),
    ...findings.map(({ code, severity, step, message }) => {
      const sign = severity === "error" ? paint("red", "✗") : paint("yellow", "!");
      return `${sign} ${code} ${shownInLine(step ?? "", 60)}: ${shownInLine(message, 120)}`;
    }),
  ];
}
