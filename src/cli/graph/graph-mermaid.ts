/** A flow as a Mermaid flowchart. */
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

export function renderMermaid({ nodes, edges }: Outline): string {
  const ways = waysOf(edges);
  const others = otherTargets(ways);
  const keyOf = keysOf(nodes, others);
  const step = (id: string) => keyOf({ kind: "step", step: id });
  const marked = nodes.flatMap((node) => classesOf(node).map((name) => `  class ${step(node.id)} ${name}`));
  const entries = nodes.filter((node) => node.isEntry).length;
  // Links are counted in the order in which they are written.
  const links = ways.flatMap((way, at) => {
    const isCovered = coverageOfWay(way);
    return isCovered === null ? [] : [`  linkStyle ${entries + at} stroke:${LINES[isCovered]}`];
  });
  return [
    "flowchart TD",
    ...nodes.filter((node) => node.isEntry).map((node) => `  start(( )) --> ${step(node.id)}`),
    ...nodes.map((node) => `  ${step(node.id)}${boxOf(node)}`),
    ...others.map((to) => `  ${keyOf(to)}${shapeOf(to)}`),
    ...ways.map((way) => {
      const isDashed = way.edges.some((edge) => edge.kind === "back" || edge.kind === "jump");
      return `  ${step(way.from)} ${isDashed ? "-.->" : "-->"}|${quoted(wayLines(way))}| ${keyOf(way.to)}`;
    }),
    ...marked,
    ...others.filter((to) => to.kind === "missing").map((to) => `  class ${keyOf(to)} error`),
    "  classDef error stroke:#c00,stroke-width:3px",
    "  classDef warning stroke:#b80,stroke-width:3px",
    "  classDef apart opacity:0.5",
    ...(nodes.some(({ hits }) => hits !== undefined)
      ? ["  classDef covered fill:#dafbe1", "  classDef uncovered fill:#ffebe9"]
      : []),
    ...links,
  ].join("\n");
}

const LINES = { covered: "#2da44e", uncovered: "#c00000" } as const;

function boxOf(node: OutlineNode): string {
  const text = quoted(nodeLines(node));
  switch (node.kind) {
    case "work":
      return `[${text}]`;
    case "verify":
      return `{{${text}}}`;
    case "close":
      return `([${text}])`;
  }
}

function shapeOf(to: Target): string {
  const text = quoted([targetText(to)]);
  return to.kind === "end" ? `((${text}))` : `[${text}]`;
}

function classesOf(node: OutlineNode): readonly string[] {
  return [worstOf(node), node.isReached ? null : "apart", coverageOfNode(node)].filter(
    (name) => name !== null,
  );
}

/** Whatever could mean something to Mermaid or to HTML is written as its number. */
function quoted(lines: readonly string[]): string {
  const safe = lines.map((line) =>
    line.replaceAll(/[^\p{L}\p{N}\p{M} .,:=_/()!✗·…-]/gu, (char) => `#${char.codePointAt(0)};`),
  );
  return `"${safe.join("<br/>")}"`;
}
