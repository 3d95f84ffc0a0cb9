/** Where a prompt file is: C3L coordinates put into path templates, tried in order, every attempt remembered. */
import type { Prompt } from "../flow/flow.ts";
import type { Files, PromptRef } from "../flow/files.ts";

/** The first file that exists. With an adaptation, all folders are tried with it before any is tried without. */
export function findPrompt(files: Files, ref: PromptRef): Prompt {
  const { variables } = ref;
  const refused = badSegment(ref);
  const seen: string[] = [];
  const tried: string[] = [];
  const templates =
    ref.adaptation === null ? [ref.templateNoAdaptation] : [ref.template, ref.templateNoAdaptation];
  for (const template of templates) {
    const name = fill(template, ref);
    for (const base of ref.bases) {
      const path = joinPath(base, name);
      if (refused !== null)
        return { file: null, text: "", tried: [`${path} (refused: ${refused})`], variables };
      if (seen.includes(path)) continue;
      seen.push(path);
      const read = files.read(path);
      tried.push(
        read.kind === "text" || read.kind === "missing" ? path : `${path} (${read.kind}: ${read.why})`,
      );
      if (read.kind === "text") return { file: path, text: stripFrontMatter(read.text), tried, variables };
    }
  }
  return { file: null, text: "", tried, variables };
}

function fill(template: string, ref: PromptRef): string {
  if (known.template !== template) known = { template, parts: partsOf(template) };
  let path = "";
  for (const { name, text } of known.parts) path += name === null ? text : `${ref[name] ?? ""}${text}`;
  return path;
}

type Coordinate = (typeof COORDINATES)[number];
type Part = { readonly name: Coordinate | null; readonly text: string };

function partsOf(template: string): readonly Part[] {
  const [first = "", ...others] = template.split("{");
  const parts = others.map((part) => {
    const end = part.indexOf("}");
    const name = COORDINATES.find((one) => one.length === end && part.startsWith(one));
    return name === undefined ? { name: null, text: `{${part}` } : { name, text: part.slice(end + 1) };
  });
  return [{ name: null, text: first }, ...parts];
}

/** The steps of an agent have one template in common. */
let known: { readonly template: string; readonly parts: readonly Part[] } = { template: "", parts: [] };

const COORDINATES = ["c1", "c2", "c3", "edition", "adaptation"] as const;

/** Without patterns: they would take longer than the rest of finding a prompt. */
function joinPath(base: string, path: string): string {
  let folder = base.startsWith("./") ? base.slice(2) : base;
  while (folder.endsWith("/")) folder = folder.slice(0, -1);
  const joined = `${folder}/${path}`;
  return joined.startsWith("/") ? joined.slice(1) : joined;
}

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

function badSegment(ref: PromptRef): string | null {
  for (const name of COORDINATES) {
    const value = ref[name];
    if (value === null || SEGMENT.test(value)) continue;
    // c1 may name nested folders, such as steps/v2; each part must be a plain name.
    if (name !== "c1" || !value.split("/").every((part) => SEGMENT.test(part)))
      return `${name} ${JSON.stringify(value)} is not a plain name`;
  }
  return null;
}

/** Removes a leading `---` block; one that is never closed is part of the text. */
export function stripFrontMatter(text: string): string {
  const body = text.startsWith("\uFEFF") ? text.slice(1) : text;
  if (!body.startsWith("---")) return body.trim();
  const match = /^---\r?\n(?:[\s\S]*?\r?\n)?---[ \t]*(?:\r?\n|$)/.exec(body);
  return (match === null ? body : body.slice(match[0].length)).trim();
}
