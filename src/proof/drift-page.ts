/** The page beside a recorded test, `NAME.heard.md`: what each response was given to, so that a difference can be shown. */
import type { HeardReply } from "./drift.ts";
import { changedLines, fenced } from "./snapshot.ts";

export function heardPath(test: string): string {
  return `${test.replace(/\.(?:ya?ml|json)$/i, "")}.heard.md`;
}

/** The system prompt is written where it differs from the one before. */
export function heardPage(name: string, heard: readonly HeardReply[]): string {
  let system = "";
  const sections = heard.flatMap(({ reply, step, visit, texts }) => {
    const isNew = texts.system !== system;
    ({ system } = texts);
    return [
      `## Response ${reply + 1}: ${step} #${visit}`,
      "",
      ...(isNew ? ["System:", "", fenced(texts.system), ""] : []),
      fenced(texts.words),
      "",
    ];
  });
  const about =
    "What the recorded responses were given to. `lockstep test --stale` shows what has changed since.";
  return `${[`# ${name}`, "", about, "", ...sections].join("\n").trimEnd()}\n`;
}

export type HeardTexts = { readonly system: string; readonly words: string };

/** By the number of the response; what is not written as `heardPage` writes it is passed over. */
export function readHeardPage(page: string): ReadonlyMap<number, HeardTexts> {
  const found = new Map<number, HeardTexts>();
  let system = "";
  let at = 0;
  const lines = page.split("\n");
  for (let line = 0; line < lines.length; line += 1) {
    const [, number] = /^## Response (\d{1,9}): /.exec(lines[line]!) ?? [];
    if (number !== undefined) at = Number(number);
    const [fence] = /^`{3,}(?=text$)/.exec(lines[line]!) ?? [];
    if (fence === undefined || at === 0) continue;
    const end = lines.indexOf(fence, line + 1);
    if (end === -1) break;
    const text = lines.slice(line + 1, end).join("\n");
    if (lines[line - 2] === "System:") system = text;
    else found.set(at, { system, words: text });
    line = end;
  }
  return found;
}

/** The first lines that differ in the system prompt and in the words; none: they do not, or what was said is not known. */
export function firstChanges(
  before: HeardTexts | undefined,
  now: HeardTexts,
): readonly (readonly string[])[] {
  if (before === undefined) return [];
  const changed = [
    changedLines(ended(before.system), ended(now.system)),
    changedLines(ended(before.words), ended(now.words)),
  ];
  return changed.filter((lines) => lines.length > 0).map(firstOf);
}

/** A page does not show whether a text ends with a new line. */
function ended(text: string): string {
  return text.replace(/\n$/, "");
}

function firstOf(lines: readonly string[]): readonly string[] {
  const end = lines.indexOf("  ...");
  return lines.slice(0, end === -1 ? MOST_LINES : Math.min(end, MOST_LINES));
}

const MOST_LINES = 12;
