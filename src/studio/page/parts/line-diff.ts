/** What became of the lines of a text: kept, removed or added, in the order in which a person reads a difference. */

export type DiffLine = { readonly kind: "same" | "removed" | "added"; readonly text: string };

/** Beyond this many comparisons all old lines are shown as removed and all new ones as added. */
const MOST_CELLS = 1_000_000;

export function lineDiff(before: string, after: string): readonly DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail))
    tail += 1;
  return [
    ...as("same", old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...as("same", old.slice(old.length - tail)),
  ];
}

/** Stretches of kept lines further than `around` from a change are folded to their count. */
export type DiffPart =
  | { readonly kind: "lines"; readonly lines: readonly DiffLine[] }
  | { readonly kind: "folded"; readonly count: number };

export function foldedDiff(lines: readonly DiffLine[], around = 3): readonly DiffPart[] {
  const changed = lines.flatMap((line, at) => (line.kind === "same" ? [] : [at]));
  const isNear = new Set<number>();
  for (const at of changed) for (let near = at - around; near <= at + around; near += 1) isNear.add(near);
  const parts: DiffPart[] = [];
  let start = 0;
  while (start < lines.length) {
    const near = isNear.has(start);
    let end = start + 1;
    while (end < lines.length && isNear.has(end) === near) end += 1;
    // A single line takes as much room as the words that would stand for it.
    if (near || end - start === 1) parts.push({ kind: "lines", lines: lines.slice(start, end) });
    else parts.push({ kind: "folded", count: end - start });
    start = end;
  }
  return parts;
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function as(kind: DiffLine["kind"], lines: readonly string[]): readonly DiffLine[] {
  return lines.map((text) => ({ kind, text }));
}

/** The longest common lines are kept. */
function middle(old: readonly string[], now: readonly string[]): readonly DiffLine[] {
  const [rows, columns] = [old.length, now.length];
  if (rows * columns > MOST_CELLS) return [...as("removed", old), ...as("added", now)];
  const wide = columns + 1;
  const kept = new Uint32Array((rows + 1) * wide);
  for (let i = rows - 1; i >= 0; i -= 1)
    for (let j = columns - 1; j >= 0; j -= 1)
      kept[i * wide + j] =
        old[i] === now[j]
          ? kept[(i + 1) * wide + j + 1]! + 1
          : Math.max(kept[(i + 1) * wide + j]!, kept[i * wide + j + 1]!);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < rows && j < columns) {
    if (old[i] === now[j]) {
      lines.push({ kind: "same", text: old[i]! });
      [i, j] = [i + 1, j + 1];
    } else if (kept[(i + 1) * wide + j]! >= kept[i * wide + j + 1]!) {
      lines.push({ kind: "removed", text: old[i]! });
      i += 1;
    } else {
      lines.push({ kind: "added", text: now[j]! });
      j += 1;
    }
  }
  return [...lines, ...as("removed", old.slice(i)), ...as("added", now.slice(j))];
}
