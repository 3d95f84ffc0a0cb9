/** Prompt templates: `{uv-name}` and `{input_text}`. One pass; what a value holds is never expanded again. */
import type { Flow } from "../flow.ts";
import { own } from "../json.ts";

/** Text and variable names in turn: even places are text. */
export type Template = readonly string[];

export const INPUT_TEXT = "input_text";

export function parseTemplate(text: string): Template {
  const parts: string[] = [];
  let from = 0;
  for (const match of text.matchAll(/\{(?:uv-([A-Za-z0-9_-]+)|input_text)\}/g)) {
    parts.push(text.slice(from, match.index), match[1] ?? INPUT_TEXT);
    from = match.index + match[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}

/** A template in which `{name}` and `{{name}}` count too. Names stand as they are written, braces included. */
export function parseLenient(text: string): Template {
  return text.split(/(\{\{[A-Za-z_]\w*\}\}|\{(?:uv-[A-Za-z0-9_-]+|[A-Za-z_]\w*)\})/);
}

/** `{uv-name}`, `{name}` or `{{name}}` → `name`. */
export function nameIn(written: string): string {
  return written.replaceAll(/[{}]/g, "").replace(/^uv-/, "");
}

/** The names a template reads, each once. */
export function templateNames(template: Template): readonly string[] {
  return [...new Set(template.filter((_, place) => place % 2 === 1))];
}

/** `lookup` gives null for a name without a value; the first such name ends the rendering. */
export function renderTemplate(
  template: Template,
  lookup: (name: string) => string | null,
): { readonly kind: "text"; readonly text: string } | { readonly kind: "missing"; readonly name: string } {
  if (template.length === 1) return { kind: "text", text: template[0]! };
  let text = template[0]!;
  for (let place = 1; place < template.length; place += 2) {
    const name = template[place]!;
    const value = lookup(name);
    if (value === null) return { kind: "missing", name };
    text += value + template[place + 1]!;
  }
  return { kind: "text", text };
}

/** The names in `{uv-name}`, each once. */
export function placeholders(text: string): readonly string[] {
  return [...placeholderPlaces(text).keys()];
}

/** The names in `{uv-name}`, and where each is read first. */
export function placeholderPlaces(text: string): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const { index, 1: name = "" } of text.matchAll(/\{uv-([A-Za-z0-9_-]+)\}/g))
    if (!places.has(name)) places.set(name, index);
  return places;
}

/** The names that a prompt reads, by itself and through the sections in it. */
export function namesRead({ sections }: Pick<Flow, "sections">, text: string): readonly string[] {
  const names = placeholders(text);
  if (sections === undefined) return names;
  const through = names.flatMap((name) => placeholders(own(sections, name)?.text ?? ""));
  return [...new Set([...names, ...through])];
}

/** Whether what was piped in is part of the prompt. */
export function readsInput({ sections }: Pick<Flow, "sections">, text: string): boolean {
  const isIn = (words: string) => words.includes(`{${INPUT_TEXT}}`) || words.includes(`{uv-${INPUT_TEXT}}`);
  if (!text.includes("{")) return false;
  return isIn(text) || placeholders(text).some((name) => isIn(own(sections ?? {}, name)?.text ?? ""));
}
