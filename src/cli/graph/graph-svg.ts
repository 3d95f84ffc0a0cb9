/** A flow as an SVG picture, whole in itself: no script, no font, nothing from outside. */
import type { OutlineNode, Outline, Target } from "../../tell/outline.ts";
import { layOutGraph, type LayoutNode, type Point } from "../../tell/graph-layout.ts";
import {
  drawnParts,
  coverageOfNode,
  coverageOfWay,
  nodeLines,
  targetText,
  wayLines,
  worstOf,
  type Way,
} from "../../tell/graph-words.ts";
import { shown, widthOf } from "../text/text.ts";

export function renderSvg({ agent, title, nodes, edges }: Outline): string {
  const { ways, around, between, others, keyOf, stepKey: step } = drawnParts({ nodes, edges });
  const boxes = [
    ...nodes.map((node) => stepBox(node, step(node.id), around.get(node.id) ?? [])),
    ...others.map((to) => {
      const sources = new Set(ways.filter((way) => keyOf(way.to) === keyOf(to)).map(({ from }) => from));
      const ranks = nodes.filter(({ id }) => sources.has(id)).map((node) => node.rank + 1);
      return targetBox(to, keyOf(to), Math.max(...ranks));
    }),
  ];
  const layout = layOutGraph(
    boxes,
    between.map((way) => {
      const lines = wayLines(way);
      return {
        from: step(way.from),
        to: keyOf(way.to),
        width: Math.max(0, ...lines.map(textWidth)) + 8,
        height: lines.length * LINE + 4,
      };
    }),
  );
  const [width, height] = [
    Math.ceil(layout.width + 2 * MARGIN),
    Math.ceil(layout.height + 2 * MARGIN + START),
  ];
  const at = ({ x, y }: Point): Point => ({ x: x + MARGIN, y: y + MARGIN + START });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace">`,
    `<title>${escapeXml(title === agent ? agent : `${agent}: ${title}`)}</title>`,
    STYLE,
    ...(nodes.some(({ hits }) => hits !== undefined) ? [COVERAGE_STYLE] : []),
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...between.map((way, place) => lineOf(way, layout.edges[place]!.points.map(at))),
    ...between.map((way, place) => labelOf(way, at(layout.edges[place]!.label))),
    ...boxes.map((box) => drawBox(box, at(layout.nodes.get(box.key)!))),
    "</svg>",
  ].join("\n");
}

type Box = LayoutNode & {
  readonly lines: readonly string[];
  readonly of:
    | { readonly kind: "node"; readonly node: OutlineNode; readonly loops: readonly Way[] }
    | { readonly kind: "target"; readonly to: Target };
};

function stepBox(node: OutlineNode, key: string, loops: readonly Way[]): Box {
  const lines = nodeLines(node);
  const labels = loops.flatMap(wayLines);
  return {
    ...sizeOf(lines, labels.length * LINE + 16),
    key,
    rank: node.rank,
    beside: labels.length === 0 ? 0 : LOOP + Math.max(...labels.map(textWidth)),
    lines,
    of: { kind: "node", node, loops },
  };
}

function targetBox(to: Target, key: string, rank: number): Box {
  const lines = [targetText(to)];
  return { ...sizeOf(lines, 0), key, rank, beside: 0, lines, of: { kind: "target", to } };
}

const FONT = 13;
const SMALL = 11;
const LINE = 15;
const MARGIN = 20;
/** Room above for the sign where a run begins. */
const START = 22;
/** How far a line from a step to itself swings out. */
const LOOP = 34;

/** A character of these fonts is three fifths of its height wide. */
function textWidth(text: string): number {
  return widthOf(text) * SMALL * 0.61;
}

function sizeOf(lines: readonly string[], least: number): { width: number; height: number } {
  const wide = Math.max(0, ...lines.map((line, at) => widthOf(line) * (at === 0 ? FONT : SMALL) * 0.61));
  return { width: Math.max(60, wide + 24), height: Math.max(least, lines.length * LINE + 14) };
}

const STYLE = `<style>
.box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.2 }
.verify { fill: #eef6ff } .close { fill: #eefaf0 }
.end { fill: #24292f; stroke: none } .failed { fill: #82071e; stroke: none } .any { fill: #fff; stroke-dasharray: 4 3 }
.warning { stroke: #b07000; stroke-width: 2.5 } .error { stroke: #c00000; stroke-width: 2.5 }
.apart { opacity: .5; stroke-dasharray: 4 3 }
.line { fill: none; stroke: #57606a; stroke-width: 1.3 } .back { stroke: #b07000; stroke-dasharray: 5 3 } .upward { stroke: #7a5cc0 }
.head { fill: #57606a } .head.back { fill: #b07000; stroke: none } .head.upward { fill: #7a5cc0 }
text { font-size: ${SMALL}px; fill: #24292f } .id { font-size: ${FONT}px; font-weight: 600 } .light { fill: #fff } .soft { fill: #57606a } .bad { fill: #c00000 } .odd { fill: #8a5700 }
</style>`;

const COVERAGE_STYLE = `<style>
.box.covered { fill: #dafbe1 } .box.uncovered { fill: #ffebe9 } .line.covered { stroke: #2da44e } .line.uncovered { stroke: #c00000 }
.head.covered { fill: #2da44e } .head.uncovered { fill: #c00000 }
</style>`;

function drawBox(box: Box, { x, y }: Point): string {
  const { width, height, lines, of } = box;
  const frame = (name: string, round: number) =>
    `<rect class="${name}" x="${n(x - width / 2)}" y="${n(y - height / 2)}" width="${n(width)}" height="${n(height)}" rx="${round}"/>`;
  const top = y - (lines.length * LINE) / 2 + 11;
  const words = (names: (line: string, at: number) => string) =>
    lines.map((line, at) => text(line, x, top + at * LINE, names(line, at)));
  if (of.kind === "target") {
    const { to } = of;
    const name =
      to.kind === "end"
        ? to.outcome === "completed"
          ? "end"
          : "failed"
        : to.kind === "any"
          ? "box any"
          : "box any error";
    return `<g>${frame(name, height / 2)}${words(() => (to.kind === "end" ? "light" : "")).join("")}</g>`;
  }
  const { node, loops } = of;
  const name = ["box", node.kind, worstOf(node), node.isReached ? null : "apart", coverageOfNode(node)];
  return [
    `<g><title>${escapeXml([node.id, node.name, ...node.findings.map(({ code, message }) => `${code}: ${message}`)].join("\n"))}</title>`,
    frame(name.filter((one) => one !== null).join(" "), node.kind === "close" ? 18 : 5),
    ...words((line, at) => {
      if (at === 0) return "id";
      if (line.startsWith("✗")) return "bad";
      return line.startsWith("!") ? "odd" : "soft";
    }),
    ...(node.isEntry ? [startSign(x, y - height / 2)] : []),
    ...loopLines(loops, x + width / 2, y, height),
    "</g>",
  ].join("");
}

function startSign(x: number, top: number): string {
  return `<circle cx="${n(x)}" cy="${n(top - 20)}" r="5" fill="#24292f"/><path class="line" d="M${n(x)} ${n(top - 15)}V${n(top - 7)}"/>${head({ x, y: top }, 1, "")}`;
}

/** All ways of a step to itself in one loop, with their labels beside it. */
function loopLines(loops: readonly Way[], right: number, y: number, height: number): readonly string[] {
  if (loops.length === 0) return [];
  const lines = loops.flatMap(wayLines);
  const reach = Math.min(18, height / 2 - 8);
  const isCovered = coverageOfWay({ ...loops[0]!, edges: loops.flatMap(({ edges }) => edges) });
  const kind = loops.every((way) => way.edges[0]!.kind === "back") ? " back" : " upward";
  const colour = isCovered === null ? kind : `${kind} ${isCovered}`;
  const curve = `M${n(right)} ${n(y - reach)}C${n(right + 32)} ${n(y - reach - 6)} ${n(right + 32)} ${n(y + reach + 6)} ${n(right + 7)} ${n(y + reach)}`;
  const tip = `<path class="head${colour}" d="M${n(right)} ${n(y + reach)}l8 -4v8z"/>`;
  const top = y - (lines.length * LINE) / 2 + 11;
  return [
    `<path class="line${colour}" d="${curve}"/>`,
    tip,
    ...lines.map((line, at) => text(line, right + 28, top + at * LINE, "soft", "start")),
  ];
}

function lineOf(way: Way, points: readonly Point[]): string {
  const [{ kind, isLoop }] = way.edges as [Way["edges"][0]];
  const isCovered = coverageOfWay(way);
  const kindName = kind === "back" ? " back" : isLoop ? " upward" : "";
  const name = isCovered === null ? kindName : `${kindName} ${isCovered}`;
  const end = points.at(-1)!;
  const direction = Math.sign(end.y - points.at(-2)!.y) || Math.sign(end.y - points.at(-3)!.y) || 1;
  const whole = [...points.slice(0, -1), { x: end.x, y: end.y - direction * 7 }];
  const path = whole.map((point, at) => {
    const before = whole[at - 1];
    if (before === undefined) return `M${n(point.x)} ${n(point.y)}`;
    if (Math.abs(before.x - point.x) < 0.5) return `L${n(point.x)} ${n(point.y)}`;
    const half = n((before.y + point.y) / 2);
    return `C${n(before.x)} ${half} ${n(point.x)} ${half} ${n(point.x)} ${n(point.y)}`;
  });
  return `<path class="line${name}" d="${path.join("")}"/>${head(end, direction, name)}`;
}

function head({ x, y }: Point, direction: number, name: string): string {
  return `<path class="head${name}" d="M${n(x)} ${n(y)}l-4 ${-8 * direction}h8z"/>`;
}

function labelOf(way: Way, { x, y }: Point): string {
  const lines = wayLines(way);
  const wide = Math.max(0, ...lines.map(textWidth)) + 6;
  const tall = lines.length * LINE;
  const top = y - tall / 2 + 11;
  return [
    `<rect x="${n(x - wide / 2)}" y="${n(y - tall / 2)}" width="${n(wide)}" height="${n(tall)}" fill="#fff"/>`,
    ...lines.map((line, at) => text(line, x, top + at * LINE, "")),
  ].join("");
}

function text(line: string, x: number, y: number, name: string, anchor = "middle"): string {
  return `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}"${name === "" ? "" : ` class="${name}"`}>${escapeXml(line)}</text>`;
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** XML has no control characters and no halves of characters, not even escaped. Marks that turn the writing are spelled out. */
export function escapeXml(text: string): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\ufffe\uffff]/gu, (char) => (char === "\n" || char === "\t" ? char : "\ufffd"));
  return shown(plain)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
