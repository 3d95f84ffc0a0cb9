/** Places in prompt files: a prompt is the text of its file without front matter and blank lines around it. */
import type { Files } from "../../flow/files.ts";
import type { Prompt } from "../../flow/flow.ts";
import { readText, type Document } from "./document.ts";
import type { Finding } from "../rules/rule.ts";
import { placer, type Place } from "../../flow/text/places.ts";

/** `at`: where in the prompt's text. */
export function inPrompt(files: Files, prompt: Prompt, at: number): Pick<Finding, "document" | "pointer"> {
  const file = prompt.file ?? "";
  let known = PLACED.get(prompt);
  if (known === undefined) {
    const read = readText(files, file);
    const whole = read.kind === "text" ? read.text : prompt.text;
    // The front matter may hold the same words.
    known = { base: Math.max(0, whole.lastIndexOf(prompt.text)), placeOf: placer(whole) };
    PLACED.set(prompt, known);
  }
  return { document: textDocument(file, known.placeOf, known.base + Math.max(0, at)), pointer: "" };
}

/** A prompt may have many findings; its file is looked through once. */
const PLACED = new WeakMap<Prompt, { readonly base: number; readonly placeOf: (offset: number) => Place }>();

/** A file that is not JSON: everything about it is at one place. */
export function textDocument(file: string, placeOf: (offset: number) => Place, offset: number): Document {
  return { file, value: null, place: () => placeOf(offset) };
}
