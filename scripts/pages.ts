/**
 * What a page asks its reader to do, in order: what is typed, what the screen then shows, and which files are written.
 *
 * ```sh            typed, line by line
 * ```text          after ```sh: these lines are on the screen, in this order; `…` stands for anything. `[y/N] y` at
 *                  the end of a line, and a line `> y`, are a question with the answer that is typed
 * `PATH`:          right above a block: it is the whole file
 * In `PATH`, below the line `LINE`, add:
 * In `PATH`, replace the line `LINE` with:
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The pages that a test types into a terminal, in this order; those of the examples are typed too. */
export const FOLLOWED: readonly string[] = [
  "README.md",
  "docs/first-hour.md",
  "docs/first-agent.md",
  "examples/README.md",
  "docs/registry-flows.md",
  "docs/stage-machines.md",
  "docs/checks.md",
  "docs/people.md",
];

export type Typed = {
  readonly kind: "typed";
  readonly line: number;
  readonly heading: string;
  readonly commands: readonly string[];
  readonly shown: readonly string[];
};
export type Written = {
  readonly kind: "file" | "below" | "instead";
  readonly line: number;
  readonly heading: string;
  readonly path: string;
  /** The line of the file that is meant; empty for a whole file. */
  readonly at: string;
  readonly text: string;
};

type Fence = {
  readonly line: number;
  readonly heading: string;
  readonly info: string;
  readonly text: string;
  /** The paragraph before it; empty after another block. */
  readonly above: string;
};

export function stepsOf(page: string): readonly (Typed | Written)[] {
  const fences = fencesIn(page);
  return fences.flatMap((fence, index): readonly (Typed | Written)[] => {
    const written = writtenIn(fence);
    if (written !== null) return [written];
    if (fence.info !== "sh") return [];
    const next = fences[index + 1];
    const isShown = next?.info === "text" && next.above === "";
    const shown = isShown ? next.text.split("\n").filter((one) => one.trim() !== "") : [];
    const { line, heading } = fence;
    return [{ kind: "typed", line, heading, commands: commandsIn(fence.text), shown }];
  });
}

/** Does in `folder` what the page has the reader do with an editor. */
export function write(folder: string, { kind, path, at, text, line }: Written): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  if (kind === "file") return writeFileSync(file, `${text}\n`);
  const lines = readFileSync(file, "utf8").split("\n");
  const places = lines.flatMap((one, index) => (one.trim() === at ? [index] : []));
  assert.equal(places.length, 1, `line ${line} of the page: ${path} has ${places.length} lines \`${at}\``);
  const [place = 0] = places;
  const kept = kind === "below" ? lines.slice(0, place + 1) : lines.slice(0, place);
  writeFileSync(file, [...kept, text, ...lines.slice(place + 1)].join("\n"));
}

/** Commands as they are typed: without blank lines and comments, continued lines as one. */
function commandsIn(text: string): readonly string[] {
  return text
    .replaceAll("\\\n", " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

function writtenIn({ above, line, heading, text }: Fence): Written | null {
  const edit = /^In `([^`]+)`, (below|replace) the line `([^`]+)`(?:, add| with):$/.exec(above);
  if (edit !== null) {
    const [, path = "", how, at = ""] = edit;
    return { kind: how === "below" ? "below" : "instead", line, heading, path, at, text };
  }
  const [, path] = /^`([^`]+)`:$/.exec(above) ?? [];
  return path === undefined ? null : { kind: "file", line, heading, path, at: "", text };
}

function fencesIn(page: string): readonly Fence[] {
  const fences: Fence[] = [];
  let heading = "";
  let above = "";
  let before = "";
  let open: { line: number; info: string; mark: string; text: string[] } | null = null;
  for (const [index, line] of page.split("\n").entries()) {
    if (open !== null && line.trim() !== open.mark) open.text.push(line);
    else if (open !== null) {
      const { info, text } = open;
      fences.push({ line: open.line, heading, info, text: text.join("\n"), above });
      open = null;
      above = "";
    } else {
      const [, mark, info] = /^(`{3,})([a-z]*)/.exec(line) ?? [];
      if (mark !== undefined) open = { line: index + 1, mark, info: info!, text: [] };
      else if (line.startsWith("#")) [heading, above] = [line.replace(/^#+ /, ""), ""];
      else if (line.trim() !== "") above = before.trim() === "" ? line : `${above} ${line}`;
      before = line;
    }
  }
  return fences;
}
