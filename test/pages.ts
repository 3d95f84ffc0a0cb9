/**
 * What a page asks its reader to do, in order: what is typed, what the screen then shows, and which files are written.
 *
 * ```sh            typed, line by line
 * ```text          after ```sh: these lines are on the screen, in this order; `…` stands for anything, and `[y/N] y`
 *                  at the end of a line is a question with the answer that is typed
 * `PATH`:          right above a block: it is the whole file
 * In `PATH`, below the line `LINE`, add:
 * In `PATH`, replace the line `LINE` with:
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export type Typed = {
  readonly kind: "typed";
  readonly line: number;
  readonly commands: readonly string[];
  readonly shown: readonly string[];
};
export type Written = {
  readonly kind: "file" | "below" | "instead";
  readonly line: number;
  readonly path: string;
  /** The line of the file that is meant; empty for a whole file. */
  readonly at: string;
  readonly text: string;
};

type Fence = { readonly line: number; readonly info: string; readonly text: string; readonly above: string };

/** Everything on the page, or only what is below one of its headings. */
export function stepsOf(page: string, heading?: string): readonly (Typed | Written)[] {
  const steps: (Typed | Written)[] = [];
  const fences = fencesIn(page, heading);
  for (const [index, { line, info, text, above }] of fences.entries()) {
    const written = writtenIn(above, line, text);
    if (written !== null) steps.push(written);
    else if (info === "sh") {
      const next = fences[index + 1];
      const isShown = next?.info === "text" && next.above === "";
      const shown = isShown ? next.text.split("\n").filter((one) => one.trim() !== "") : [];
      steps.push({ kind: "typed", line, commands: commandsIn(text), shown });
    }
  }
  assert.ok(steps.length > 0, `there is nothing to do on this page${heading ? ` below "${heading}"` : ""}`);
  return steps;
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

function writtenIn(above: string, line: number, text: string): Written | null {
  const edit = /^In `([^`]+)`, (below|replace) the line `([^`]+)`(?:, add|, with| with):$/.exec(above);
  if (edit !== null) {
    const [, path = "", how, at = ""] = edit;
    return { kind: how === "below" ? "below" : "instead", line, path, at, text };
  }
  const whole = /^`([^`]+)`:$/.exec(above);
  return whole === null ? null : { kind: "file", line, path: whole[1]!, at: "", text };
}

/** The fenced blocks; `above` is the paragraph before one, on one line, and empty after another block. */
function fencesIn(page: string, heading: string | undefined): readonly Fence[] {
  const fences: Fence[] = [];
  let inSection = heading === undefined;
  let above = "";
  let open: { line: number; info: string; mark: string; text: string[] } | null = null;
  for (const [index, line] of page.split("\n").entries()) {
    if (open !== null) {
      if (line.trim() !== open.mark) {
        open.text.push(line);
        continue;
      }
      if (inSection) fences.push({ line: open.line, info: open.info, text: open.text.join("\n"), above });
      open = null;
      above = "";
      continue;
    }
    const fence = /^(`{3,})\s*([^\s`]*)/.exec(line);
    if (fence !== null) open = { line: index + 1, mark: fence[1]!, info: fence[2]!, text: [] };
    else if (line.startsWith("#")) {
      if (heading !== undefined) inSection = line.replace(/^#+ /, "") === heading;
      above = "";
    } else if (line.trim() !== "") above = isNewParagraph(page, index) ? line : `${above} ${line}`;
  }
  return fences;
}

function isNewParagraph(page: string, index: number): boolean {
  return (page.split("\n")[index - 1] ?? "").trim() === "";
}
