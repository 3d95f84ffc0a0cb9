/** Places in prompt files: a prompt is the text of its file without front matter and blank lines around it. */
import type { Files } from "../flow/files.ts";
import type { Prompt } from "../flow/flow.ts";
import { readText, type Document } from "./document.ts";
import type { Finding } from "./finding.ts";
import { placeIn } from "./places.ts";

/** `at`: where in the prompt's text. */
export function inPrompt(
  files: Files,
  { file, text }: Prompt,
  at: number,
): Pick<Finding, "document" | "pointer"> {
  const read = readText(files, file ?? "");
  const whole = read.kind === "text" ? read.text : text;
  const offset = Math.max(0, whole.indexOf(text)) + Math.max(0, at);
  return { document: textDocument(file ?? "", whole, offset), pointer: "" };
}

/** A file that is not JSON: everything about it is at one place. */
export function textDocument(file: string, text: string, offset: number): Document {
  return { file, value: null, place: () => placeIn(text, offset) };
}
