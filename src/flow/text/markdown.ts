/** Text that others wrote, inside of Markdown: it is shown as it is, and nothing in it is obeyed. */
import { escapedInLine } from "./harmless.ts";

/** A line that Markdown and HTML leave as it is, also in a table. `@`, `#` and `://` would notify people and make links. */
export function markdownText(text: string, longest = 2000): string {
  return escapedInLine(text, longest).replaceAll(
    /[\\`*_{}[\]<>()#!|&~@$]|:(?=\/\/)/g,
    (char) => `&#${char.charCodeAt(0)};`,
  );
}

/** Lines as code; of many lines the first ones. */
export function markdownCode(text: string, mostLines = Infinity): string {
  const lines = text.split("\n");
  const left = lines.length - mostLines;
  const shown = left > 0 ? [...lines.slice(0, mostLines), `… ${left} more lines`] : lines;
  return shown.map((line) => `    ${escapedInLine(line, 2000)}`).join("\n");
}

/** A table; its cells are Markdown already. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [[line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")];
}
