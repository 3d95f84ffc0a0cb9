/** The tests of a generated file that a person has taken over, as they are written there. */
import type { FlowTest } from "../flow/flow-test.ts";

/** The text of each kept test, with the comments above it; null: the file is not a plain list, so it cannot be cut. */
export function keepOwn(
  text: string,
  tests: readonly FlowTest[],
  isKept: (test: FlowTest) => boolean,
): readonly string[] | null {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  // The rows of a table are tests of one place.
  const places = Map.groupBy(tests, ({ line }) => line);
  const starts = [...places.keys()].toSorted((a, b) => a - b).map((line) => withComments(lines, line - 1));
  const kept: string[] = [];
  for (const [at, line] of [...places.keys()].toSorted((a, b) => a - b).entries()) {
    if (!places.get(line)!.some(isKept)) continue;
    if (!lines[line - 1]!.startsWith("  - ")) return null;
    kept.push(`${lines.slice(starts[at], starts[at + 1] ?? lines.length).join("\n")}\n`);
  }
  return kept;
}

/** Comments right above a test belong to it. */
function withComments(lines: readonly string[], start: number): number {
  let first = start;
  while (first > 0 && lines[first - 1]!.startsWith("  #")) first--;
  return first;
}
