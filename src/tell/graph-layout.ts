/**
 * Places for the boxes, labels and lines of a drawing: steps in layers from top to bottom, and between two layers of
 * boxes one of labels, so that nothing ever lies on anything else. Lines that lead upwards are laid out turned round.
 */
export type LayoutNode = {
  readonly key: string;
  readonly width: number;
  readonly height: number;
  readonly rank: number;
  /** Room that is kept free on its right, for lines from the node to itself. */
  readonly beside: number;
};
export type LayoutEdge = {
  readonly from: string;
  readonly to: string;
  /** The size of its label. */
  readonly width: number;
  readonly height: number;
};

export type Point = { readonly x: number; readonly y: number };
export type GraphLayout = {
  readonly width: number;
  readonly height: number;
  /** The middle of each node. */
  readonly nodes: ReadonlyMap<string, Point>;
  /** In the order of the edges that were given. `points` lead from the first box to the second; rows are crossed straight. */
  readonly edges: readonly { readonly points: readonly Point[]; readonly label: Point }[];
};

const GAP_X = 28;
const GAP_LINE = 14;
const GAP_Y = 26;
const SWEEPS = 24;
const PULLS = 80;
/** How much everything is drawn to the middle: without it, long chains bend away. */
const DRAG = 0.08;

/** Edges from a node to itself are not laid out: the drawing keeps room for them beside it. */
export function layOutGraph(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): GraphLayout {
  const rows = toRows(nodes, edges);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) reorder(rows, sweep % 2 === 0);
  place(rows);
  return measure(rows, nodes, edges);
}

/** Something that has its place in a row: a box, a label, or the spot where a line crosses the row. */
type Spot = {
  readonly width: number;
  readonly height: number;
  readonly up: Spot[];
  readonly down: Spot[];
  readonly isLine: boolean;
  readonly beside: number;
  x: number;
  order: number;
};
type Rows = {
  readonly rows: Spot[][];
  readonly boxes: ReadonlyMap<string, Spot>;
  readonly lines: readonly { readonly spots: readonly Spot[]; readonly label: Spot }[];
};

function toRows(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Rows {
  const rows: Spot[][] = [];
  const boxes = new Map<string, Spot>();
  const add = (row: number, width: number, height: number, isLine = false, beside = 0): Spot => {
    const spot: Spot = { width, height, up: [], down: [], isLine, beside, x: 0, order: 0 };
    while (rows.length <= row) rows.push([]);
    rows[row]!.push(spot);
    return spot;
  };
  const rowOf = new Map(nodes.map(({ key, rank }) => [key, rank * 2]));
  for (const { key, width, height, beside } of nodes) {
    boxes.set(key, add(rowOf.get(key)!, width, height, false, beside));
  }
  const lines = edges.map(({ from, to, width, height }) => {
    const [start, end] = [rowOf.get(from)!, rowOf.get(to)!];
    const isUp = end < start;
    // The label stands beside the box that the line leaves.
    const labelRow = end > start ? start + 1 : isUp ? start - 1 : start + 1;
    const spots: Spot[] = [boxes.get(from)!];
    const between = isUp ? range(start - 1, end + 1) : end > start ? range(start + 1, end - 1) : [labelRow];
    let label = spots[0]!;
    for (const row of between) {
      const spot = row === labelRow ? add(row, width, height) : add(row, 0, 0, true);
      if (row === labelRow) label = spot;
      spots.push(spot);
    }
    spots.push(boxes.get(to)!);
    const downwards = isUp ? spots.toReversed() : spots;
    for (const [at, spot] of downwards.entries()) {
      const next = downwards[at + 1];
      // Two boxes of one row are joined by a line that dips into the row below and comes up again.
      if (next === undefined || (start === end && at === 1)) continue;
      spot.down.push(next);
      next.up.push(spot);
    }
    if (start === end) {
      boxes.get(to)!.down.push(spots[1]!);
      spots[1]!.up.push(boxes.get(to)!);
    }
    return { spots, label };
  });
  for (const row of rows) for (const [order, spot] of row.entries()) spot.order = order;
  return { rows, boxes, lines };
}

function range(from: number, to: number): readonly number[] {
  const step = from <= to ? 1 : -1;
  return Array.from({ length: Math.abs(to - from) + 1 }, (_, at) => from + at * step);
}

/** Each spot moves to the middle of what it is joined with, one row after the other. */
function reorder({ rows }: Rows, isDown: boolean): void {
  for (const row of isDown ? rows : rows.toReversed()) {
    const wish = new Map(
      row.map((spot) => {
        const near = isDown ? spot.up : spot.down;
        return [spot, near.length === 0 ? spot.order : mean(near.map(({ order }) => order))];
      }),
    );
    row.sort((a, b) => wish.get(a)! - wish.get(b)!);
    for (const [order, spot] of row.entries()) spot.order = order;
  }
}

/** Each spot as near as can be to what it is joined with, in the order of its row. */
function place({ rows }: Rows): void {
  for (const row of rows) {
    settle(
      row,
      row.map(() => 0),
      row.map(() => 1),
    );
  }
  for (let sweep = 0; sweep < PULLS; sweep += 1) {
    const middle = mean(rows.flat().map(({ x }) => x));
    for (const row of sweep % 2 === 0 ? rows : rows.toReversed()) {
      const wishes = row.map(({ up, down, x }) => {
        const near = [...up, ...down];
        return near.length === 0 ? x : (1 - DRAG) * mean(near.map((other) => other.x)) + DRAG * middle;
      });
      settle(
        row,
        wishes,
        row.map((spot) => (spot.isLine ? 2 : 1)),
      );
    }
  }
}

/** The least squares of all wishes under "not nearer than so": neighbours that would collide move as one block. */
function settle(row: readonly Spot[], wishes: readonly number[], weights: readonly number[]): void {
  const offsets: number[] = [];
  for (const [at, spot] of row.entries()) {
    const before = row[at - 1];
    const gap = before === undefined ? 0 : before.isLine && spot.isLine ? GAP_LINE : GAP_X;
    offsets.push(
      before === undefined ? 0 : offsets[at - 1]! + (before.width + spot.width) / 2 + before.beside + gap,
    );
  }
  const blocks: { sum: number; weight: number; size: number }[] = [];
  for (const [at] of row.entries()) {
    let block = { sum: (wishes[at]! - offsets[at]!) * weights[at]!, weight: weights[at]!, size: 1 };
    for (
      let last = blocks.at(-1);
      last !== undefined && last.sum / last.weight >= block.sum / block.weight;
      last = blocks.at(-1)
    ) {
      block = { sum: last.sum + block.sum, weight: last.weight + block.weight, size: last.size + block.size };
      blocks.pop();
    }
    blocks.push(block);
  }
  let at = 0;
  for (const { sum, weight, size } of blocks) {
    for (const end = at + size; at < end; at += 1) row[at]!.x = sum / weight + offsets[at]!;
  }
}

function measure(
  { rows, boxes, lines }: Rows,
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
): GraphLayout {
  const spots = rows.flat();
  if (spots.length === 0) return { width: 0, height: 0, nodes: new Map(), edges: [] };
  const left = Math.min(...spots.map(({ x, width }) => x - width / 2));
  const right = Math.max(...spots.map(({ x, width, beside }) => x + width / 2 + beside));
  const tops: number[] = [];
  let y = 0;
  const heights = rows.map((row) => Math.max(0, ...row.map(({ height }) => height)));
  for (const height of heights) {
    tops.push(y);
    y += height + GAP_Y;
  }
  const rowOf = new Map(rows.flatMap((row, at) => row.map((spot) => [spot, at] as const)));
  const middle = (spot: Spot): Point => {
    const row = rowOf.get(spot)!;
    return { x: spot.x - left, y: tops[row]! + heights[row]! / 2 };
  };
  const ports = toPorts(lines);
  return {
    width: right - left,
    height: Math.max(0, y - GAP_Y),
    nodes: new Map(nodes.map(({ key }) => [key, middle(boxes.get(key)!)])),
    edges: lines.map(({ spots: way, label }, line) => {
      const points = way.flatMap((spot, at): readonly Point[] => {
        const { x, y: centre } = middle(spot);
        const half = heights[rowOf.get(spot)!]! / 2;
        if (at === 0 || at === way.length - 1) {
          const other = way[at === 0 ? 1 : at - 1]!;
          const isBelow = rowOf.get(other)! > rowOf.get(spot)!;
          const shift = ports.get(spot)?.get(`${line}:${at === 0 ? "out" : "in"}`) ?? 0;
          const side = isBelow ? 1 : -1;
          const rim = { x: x + shift, y: centre + (side * spot.height) / 2 };
          const edge = { x: x + shift, y: centre + side * half };
          return at === 0 ? [rim, edge] : [edge, rim];
        }
        const isDown = rowOf.get(way[at - 1]!)! < rowOf.get(spot)!;
        const isTurning = rowOf.get(way[at - 1]!) === rowOf.get(way[at + 1]!);
        if (isTurning) return [{ x, y: centre }];
        const [first, second] = [
          { x, y: centre - half },
          { x, y: centre + half },
        ];
        return isDown ? [first, second] : [second, first];
      });
      return { points, label: edges[line]!.width === 0 ? points[0]! : middle(label) };
    }),
  };
}

/** Lines that meet at the same side of a box are spread over it, in the order in which they go on. */
function toPorts(lines: Rows["lines"]): ReadonlyMap<Spot, ReadonlyMap<string, number>> {
  const ends = new Map<Spot, { readonly key: string; readonly towards: Spot }[]>();
  for (const [line, { spots }] of lines.entries()) {
    const [first, second] = spots;
    const [last, before] = [spots.at(-1)!, spots.at(-2)!];
    ends.set(first!, [...(ends.get(first!) ?? []), { key: `${line}:out`, towards: second! }]);
    ends.set(last, [...(ends.get(last) ?? []), { key: `${line}:in`, towards: before }]);
  }
  return new Map(
    [...ends].map(([box, all]) => {
      const sides = [
        all.filter(({ towards }) => box.down.includes(towards)),
        all.filter(({ towards }) => !box.down.includes(towards)),
      ];
      const shifts = sides.flatMap((side) => {
        const ordered = side.toSorted((a, b) => a.towards.x - b.towards.x);
        const step = Math.min(40, (box.width * 0.8) / ordered.length);
        return ordered.map(({ key }, at) => [key, (at - (ordered.length - 1) / 2) * step] as const);
      });
      return [box, new Map(shifts)];
    }),
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
