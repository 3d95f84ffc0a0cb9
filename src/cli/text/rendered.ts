/** Markdown of a model as a person reads it on a terminal. What is not recognised stays as it is written. */
import type { Paint } from "./text.ts";

/** The text must be harmless already. Where there are no colours, nothing could stand for the marks: they stay. */
export function renderedMarkdown(text: string, paint: Paint): string {
  if (paint("bold", "x") === "x") return text;
  let isCode = false;
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode;
    else lines.push(isCode ? paint("dim", line) : renderedLine(line, paint));
  }
  // A block that was never closed is not a block: the text is shown as it came.
  return isCode ? text : lines.join("\n");
}

function renderedLine(line: string, paint: Paint): string {
  const [, heading] = /^ {0,3}#{1,6}\s+(.+?)(?:\s+#+)?\s*$/.exec(line) ?? [];
  if (heading !== undefined) return paint("bold", heading);
  const [, indent, point] = /^(\s*)[-*+]\s+(.*)$/.exec(line) ?? [];
  if (point !== undefined) return `${indent}• ${renderedWords(point, paint)}`;
  const [, quoted] = /^\s{0,3}>\s?(.*)$/.exec(line) ?? [];
  if (quoted !== undefined) return paint("dim", `│ ${quoted}`);
  return renderedWords(line, paint);
}

/** `code` and **important**, on one line. */
function renderedWords(line: string, paint: Paint): string {
  return line.replaceAll(/`([^`]+)`|\*\*([^*]+)\*\*/g, (_, code: string | undefined, strong: string) =>
    code === undefined ? paint("bold", strong) : paint("cyan", code),
  );
}
