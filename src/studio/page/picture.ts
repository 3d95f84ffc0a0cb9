/** The picture of a flow: places and sizes of boxes, lines and labels, worked out once for a flow. */
import { widthOf } from "../../flow/text/figures.ts";
import { shownInLine } from "../../flow/text/harmless.ts";
import { layOutGraph, type LayoutNode, type Point } from "../../tell/graph-layout.ts";
import { drawnParts, KIND_WORDS, targetText, wayLines, type Way } from "../../tell/graph-words.ts";
import type { Outline, OutlineNode, Target } from "../../tell/outline.ts";
import { wayKey } from "./stand.ts";

export type Picture = {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly PictureBox[];
  readonly lines: readonly PictureLine[];
};

export type PictureBox = {
  readonly key: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly under: string;
  /** null: an end, or a name that does not belong to a step. */
  readonly node: OutlineNode | null;
  readonly target: Target | null;
};

export type PictureLine = {
  readonly path: string;
  readonly tip: string;
  readonly label: Point;
  readonly words: readonly string[];
  /** Where the words begin: in the middle, or on the left of a loop. */
  readonly anchor: "middle" | "start";
  readonly isBack: boolean;
  readonly isLoop: boolean;
  /** What `RunStand.ways` calls it; several where an answer names one of many steps. */
  readonly ways: readonly string[];
};

const TITLE = 13;
const SMALL = 11.5;
/** A character of these fonts is at most so wide, in parts of its height. */
const WIDTH = 0.61;
const ROW = 17;
const MARGIN = 16;
const START = 22;
const LOOP = 30;
/** Room for ` ×999` behind the last word of a label. */
const COUNT = 34;
/** Of a larger flow only a part is drawn. */
export const MOST_DRAWN = 250;
const MOST_AROUND = 60;

/** The steps that are nearest to one of them, and the edges between those. */
export function outlineAround(outline: Outline, near: string, most = MOST_AROUND): Outline {
  const beside = new Map<string, Set<string>>();
  const join = (a: string, b: string) => beside.set(a, (beside.get(a) ?? new Set()).add(b));
  for (const { from, to } of outline.edges)
    for (const step of to.kind === "step" ? [to.step] : to.kind === "any" ? to.among : []) {
      join(from, step);
      join(step, from);
    }
  const kept = new Set([near]);
  for (const step of kept) for (const other of beside.get(step) ?? []) if (kept.size < most) kept.add(other);
  const isKept = ({ to }: Outline["edges"][number]) =>
    to.kind === "step" ? kept.has(to.step) : to.kind !== "any" || to.among.every((step) => kept.has(step));
  return {
    ...outline,
    nodes: outline.nodes.filter(({ id }) => kept.has(id)),
    edges: outline.edges.filter((edge) => kept.has(edge.from) && isKept(edge)),
  };
}

/** @param rows lines below the title of a step: what it is, and what a run adds to it */
export function pictureOf(outline: Outline, rows: 1 | 2): Picture {
  const { nodes } = outline;
  const { ways, around, between, others, keyOf, stepKey } = drawnParts(outline);
  const sizes = new Map<string, LayoutNode & Omit<PictureBox, "x" | "y">>();
  for (const node of nodes) {
    const loops = (around.get(node.id) ?? []).flatMap(wayLines);
    const title = shownInLine(node.id, 40);
    const under = underOf(node);
    const width = Math.max(132, widthOf(title) * TITLE * WIDTH + 40, widthOf(under) * SMALL * WIDTH + 24);
    const height = 22 + ROW + rows * ROW;
    const beside = loops.length === 0 ? 0 : LOOP + Math.max(...loops.map(labelWidth));
    const key = stepKey(node.id);
    sizes.set(key, { key, rank: node.rank, width, height, beside, title, under, node, target: null });
  }
  for (const to of others) {
    const key = keyOf(to);
    const sources = new Set(ways.filter((way) => keyOf(way.to) === key).map(({ from }) => from));
    const rank = Math.max(0, ...nodes.filter(({ id }) => sources.has(id)).map((node) => node.rank + 1));
    const title = targetText(to);
    sizes.set(key, {
      key,
      rank,
      width: Math.max(56, widthOf(title) * SMALL * WIDTH + 28),
      height: 30,
      beside: 0,
      title,
      under: "",
      node: null,
      target: to,
    });
  }
  const layout = layOutGraph(
    [...sizes.values()],
    between.map((way) => {
      const words = wayLines(way);
      return {
        from: stepKey(way.from),
        to: keyOf(way.to),
        width: Math.max(0, ...words.map(labelWidth)) + 8,
        height: words.length * 15 + 4,
      };
    }),
  );
  const at = ({ x, y }: Point): Point => ({ x: x + MARGIN, y: y + MARGIN + START });
  const boxes = [...sizes.values()].map((box): PictureBox => {
    const { key, width, height, title, under, node, target } = box;
    const { x, y } = at(layout.nodes.get(key)!);
    return { key, x, y, width, height, title, under, node, target };
  });
  const boxOf = new Map(boxes.map((box) => [box.key, box]));
  return {
    width: Math.ceil(layout.width + 2 * MARGIN),
    height: Math.ceil(layout.height + 2 * MARGIN + START),
    boxes,
    lines: [
      ...between.map((way, place) =>
        lineOf(way, layout.edges[place]!.points.map(at), at(layout.edges[place]!.label)),
      ),
      ...[...around].map(([id, loops]) => loopOf(loops, boxOf.get(stepKey(id))!)),
    ],
  };
}

function underOf({ kind, by, checks, name, id }: OutlineNode): string {
  const words = [
    ...(name === id ? [] : [shownInLine(name, 32)]),
    ...(name === id || kind !== "work" ? [KIND_WORDS[kind]] : []),
    ...(by === "command" ? ["command"] : []),
    ...(checks.length === 0 ? [] : [`${checks.length} ${checks.length === 1 ? "check" : "checks"}`]),
  ];
  return words.join(" · ");
}

function labelWidth(text: string): number {
  return wordsWidth(text) + COUNT;
}

/** How wide the words at a line are. */
export function wordsWidth(text: string): number {
  return widthOf(text) * SMALL * WIDTH;
}

function lineOf(way: Way, points: readonly Point[], label: Point): PictureLine {
  const end = points.at(-1)!;
  const direction = Math.sign(end.y - points.at(-2)!.y) || Math.sign(end.y - (points.at(-3) ?? end).y) || 1;
  const whole = [...points.slice(0, -1), { x: end.x, y: end.y - direction * 6 }];
  const path = whole.map((point, place) => {
    const before = whole[place - 1];
    if (before === undefined) return `M${n(point.x)} ${n(point.y)}`;
    if (Math.abs(before.x - point.x) < 0.5) return `L${n(point.x)} ${n(point.y)}`;
    const half = n((before.y + point.y) / 2);
    return `C${n(before.x)} ${half} ${n(point.x)} ${half} ${n(point.x)} ${n(point.y)}`;
  });
  return {
    path: path.join(""),
    tip: `M${n(end.x)} ${n(end.y)}l-4.5 ${-8 * direction}h9z`,
    label,
    words: wayLines(way),
    anchor: "middle",
    ...kindsOf([way]),
  };
}

function loopOf(loops: readonly Way[], { x, y, width, height }: PictureBox): PictureLine {
  const right = x + width / 2;
  const reach = Math.min(16, height / 2 - 8);
  const path = `M${n(right)} ${n(y - reach)}C${n(right + 30)} ${n(y - reach - 5)} ${n(right + 30)} ${n(y + reach + 5)} ${n(right + 7)} ${n(y + reach)}`;
  const tip = `M${n(right)} ${n(y + reach)}l8 -4.5v9z`;
  return {
    path,
    tip,
    label: { x: right + 26, y },
    words: loops.flatMap(wayLines),
    anchor: "start",
    ...kindsOf(loops),
  };
}

function kindsOf(ways: readonly Way[]): Pick<PictureLine, "isBack" | "isLoop" | "ways"> {
  return {
    isBack: ways.every((way) => way.edges[0]!.kind === "back"),
    isLoop: ways.some((way) => way.edges[0]!.isLoop),
    ways: ways.flatMap((way) => keysOfWay(way)),
  };
}

/** What runs call the ways that are drawn as this one. */
export function keysOfWay({ from, to, edges }: Way): readonly string[] {
  const isBack = edges[0]!.kind === "back";
  if (to.kind === "end") {
    const labels = new Set(edges.flatMap(({ label, as }) => (as === null ? [label] : [label, as])));
    return [...labels].map((label) => wayKey(from, null, isBack, label));
  }
  return (to.kind === "any" ? to.among : [to.step]).map((step) => wayKey(from, step, isBack, null));
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}
