/** A flow as a graph for Graphviz. */
import type { OutlineNode, Outline, Target } from "../../tell/outline.ts";
import {
  coverageOfNode,
  coverageOfWay,
  keysOf,
  nodeLines,
  otherTargets,
  targetText,
  wayLines,
  waysOf,
  worstOf,
} from "../../tell/graph-words.ts";
import { shownInLine } from "../text/text.ts";

export function renderDot({ agent, nodes, edges }: Outline): string {
  const ways = waysOf(edges);
  const others = otherTargets(ways);
  const keyOf = keysOf(nodes, others);
  const step = (id: string) => keyOf({ kind: "step", step: id });
  return [
    `digraph ${quoted([shownInLine(agent, 60)])} {`,
    "  rankdir=TB;",
    '  node [shape=box, style=rounded, fontname="Helvetica"];',
    '  edge [fontname="Helvetica", fontsize=10];',
    ...nodes
      .filter((node) => node.isEntry)
      .map((node) => `  start [shape=point, label=""];\n  start -> ${step(node.id)};`),
    ...nodes.map((node) => `  ${step(node.id)} [label=${quoted(nodeLines(node))}${looksOf(node)}];`),
    ...others.map((to) => `  ${keyOf(to)} [label=${quoted([targetText(to)])}, ${shapeOf(to)}];`),
    ...ways.map((way) => {
      const [{ kind, isLoop }] = way.edges as [(typeof way.edges)[0]];
      const isCovered = coverageOfWay(way);
      const looks = [
        ...(kind === "back" || kind === "jump" ? ["style=dashed"] : []),
        ...(isCovered !== null
          ? [`color="${COLOURS[isCovered].line}"`]
          : kind === "back"
            ? ['color="#b07000"']
            : []),
        ...(isLoop ? ["constraint=false"] : []),
      ];
      const rest = looks.map((look) => `, ${look}`).join("");
      return `  ${step(way.from)} -> ${keyOf(way.to)} [label=${quoted(wayLines(way))}${rest}];`;
    }),
    "}",
  ].join("\n");
}

const COLOURS = {
  covered: { fill: "#dafbe1", line: "#2da44e" },
  uncovered: { fill: "#ffebe9", line: "#c00000" },
} as const;

function looksOf(node: OutlineNode): string {
  const { kind, isReached } = node;
  const worst = worstOf(node);
  const isCovered = coverageOfNode(node);
  return [
    ...(kind === "verify" ? ["shape=hexagon"] : kind === "close" ? ["shape=box, peripheries=2"] : []),
    ...(worst === null ? [] : [`color="${worst === "error" ? "#cc0000" : "#b07000"}", penwidth=2`]),
    ...(isReached ? [] : ["style=dotted"]),
    ...(isCovered === null ? [] : [`style="rounded,filled", fillcolor="${COLOURS[isCovered].fill}"`]),
  ]
    .map((look) => `, ${look}`)
    .join("");
}

function shapeOf(to: Target): string {
  if (to.kind === "end") return "shape=doublecircle";
  return to.kind === "missing" ? 'style=dashed, color="#cc0000"' : "shape=plaintext";
}

/** In quotes DOT knows two signs: the quote itself and the backslash. */
function quoted(lines: readonly string[]): string {
  const safe = lines.map((line) => line.replaceAll("\\", "\\\\").replaceAll('"', '\\"'));
  return `"${safe.join("\\n")}"`;
}
