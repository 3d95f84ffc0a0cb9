/** Changing a JSON text at its places, so that whatever is not changed stays as its author wrote it. */
import type { Json } from "../../flow/json.ts";
import { isObject } from "../../flow/json.ts";
import type { Edit } from "../../flow/problem.ts";
import { escapeSegment, unescapeSegment } from "../../flow/json-pointer.ts";
import { layOut, type Layout } from "../../flow/text/places.ts";

export type Change<E extends Edit> = {
  readonly edit: E;
  /** In the text as it was. */
  readonly line: number;
  /** "" for what was not there. */
  readonly before: string;
  readonly after: string;
};

export type Edited<E extends Edit> = { readonly text: string; readonly changes: readonly Change<E>[] };

/**
 * The text with the edits made. An edit that has no place, or that meets another one at the same place, is left out:
 * it can be tried again on the new text.
 */
export function editJson<E extends Edit>(text: string, edits: readonly E[]): Edited<E> {
  const layout = layOut(text);
  if (layout === null) return { text, changes: [] };
  const style = styleOf(text, layout);
  const patches = edits
    .flatMap((edit) => {
      const patch = patchFor(text, layout, style, edit);
      return patch === null ? [] : [{ ...patch, edit }];
    })
    .toSorted((a, b) => a.from - b.from);

  let result = "";
  let at = 0;
  const made = new Set<string>();
  const changes: Change<E>[] = [];
  for (const { from, to, with: written, makes, edit, before, after } of patches) {
    if (from < at || made.has(makes)) continue;
    made.add(makes);
    result += text.slice(at, from) + written;
    at = to;
    changes.push({ edit, line: layout.place(edit.pointer).line, before, after });
  }
  return { text: result + text.slice(at), changes };
}

/** `makes`: the one thing that comes of it; two patches that make the same do not go together. */
type Patch = {
  readonly from: number;
  readonly to: number;
  readonly with: string;
  readonly makes: string;
  readonly before: string;
  readonly after: string;
};

type Style = {
  readonly eol: string;
  readonly colon: string;
  readonly comma: string;
  /** A value in one line. */
  readonly inline: (value: Json) => string;
  /** Where each value ends, to find the one before the end of its owner. */
  readonly ends: ReadonlyMap<number, string>;
};

function styleOf(text: string, { spans }: Layout): Style {
  const isCompact = text.includes('":') && !text.includes("\n") && !text.includes('": ');
  let ends: ReadonlyMap<number, string> | null = null;
  return {
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    colon: isCompact ? ":" : ": ",
    comma: isCompact ? "," : ", ",
    inline: isCompact ? (value) => JSON.stringify(value) : inline,
    get ends() {
      return (ends ??= new Map([...spans].map(([pointer, { to }]) => [to, pointer])));
    },
  };
}

function patchFor(text: string, layout: Layout, style: Style, edit: Edit): Patch | null {
  const { keys, spans } = layout;
  const { pointer } = edit;
  const span = spans.get(pointer);
  switch (edit.kind) {
    case "rename": {
      const from = keys.get(pointer);
      const sibling = `${ownerOf(pointer)}/${escapeSegment(edit.to)}`;
      if (from === undefined || span === undefined || text[from] !== '"' || spans.has(sibling)) return null;
      const before = JSON.stringify(nameOf(pointer));
      const to = endOfName(text, from);
      const after = JSON.stringify(edit.to);
      return { from, to, with: after, makes: sibling, before, after };
    }
    case "set": {
      if (span === undefined) return addMember(text, layout, style, pointer, edit.value);
      const before = text.slice(span.from, span.to);
      const written = like(before, edit.value, style);
      if (written === before) return null;
      const after = style.inline(edit.value);
      return { ...span, with: written, makes: pointer, before: oneLine(before), after };
    }
    case "append": {
      if (span === undefined) return addMember(text, layout, style, pointer, [edit.value]);
      if (text[span.from] !== "[") return null;
      const after = style.inline(edit.value);
      const makes = `${pointer}/${after}`;
      return addInside(text, span, style, () => after, { makes, before: "", after });
    }
  }
}

/** A new member at the end of its owner; an owner that is not there either is made around it. */
function addMember(text: string, layout: Layout, style: Style, pointer: string, value: Json): Patch | null {
  const owner = layout.spans.get(ownerOf(pointer));
  if (owner === undefined) {
    return ownerOf(pointer) === "" || !layout.spans.has(ownerOf(ownerOf(pointer)))
      ? null
      : addMember(text, layout, style, ownerOf(pointer), { [nameOf(pointer)]: value });
  }
  if (text[owner.from] !== "{") return null;
  const name = `${JSON.stringify(nameOf(pointer))}${style.colon}`;
  const after = name + style.inline(value);
  const write = (indent: string | null, neighbour: string) =>
    name + (indent === null ? style.inline(value) : spread(value, indent, neighbour, style));
  return addInside(text, owner, style, write, { makes: pointer, before: "", after }, layout);
}

/** Behind what stands last in a list or an object, on a line of its own where the others have one. */
function addInside(
  text: string,
  { from, to }: { readonly from: number; readonly to: number },
  style: Style,
  write: (indent: string | null, neighbour: string) => string,
  told: Pick<Patch, "makes" | "before" | "after">,
  layout?: Layout,
): Patch {
  let end = to - 1;
  while (/\s/.test(text[end - 1]!)) end -= 1;
  if (end === from + 1) {
    const pad = text[from] === "{" && style.colon === ": " ? " " : "";
    const makes = `the first of ${from}`;
    return { from: end, to: to - 1, with: pad + write(null, "") + pad, ...told, makes };
  }
  const indent = /^[[{][ \t]*\r?\n([ \t]*)/.exec(text.slice(from, end))?.[1] ?? null;
  const last = layout?.spans.get(style.ends.get(end) ?? "");
  const neighbour = last === undefined ? "" : text.slice(last.from, last.to);
  const gap = indent === null ? style.comma : `,${style.eol}${indent}`;
  return { from: end, to: end, with: gap + write(indent, neighbour), ...told };
}

/** An object over several lines where its neighbour is one, else in one line. */
function spread(value: Json, indent: string, neighbour: string, style: Style): string {
  const inner = /^\{[ \t]*\r?\n([ \t]*)/.exec(neighbour)?.[1];
  if (inner === undefined || !isObject(value)) return style.inline(value);
  const members = Object.entries(value).map(
    ([key, member]) => `${inner}${JSON.stringify(key)}${style.colon}${style.inline(member)}`,
  );
  return ["{", members.join(`,${style.eol}`), `${indent}}`].join(style.eol);
}

/** A list over several lines stays one. */
function like(before: string, value: Json, style: Style): string {
  const inner = /^\[[ \t]*\r?\n([ \t]*)/.exec(before)?.[1];
  const outer = /\r?\n([ \t]*)\]$/.exec(before)?.[1];
  if (inner === undefined || outer === undefined || !Array.isArray(value) || value.length === 0) {
    return style.inline(value);
  }
  const members = (value as readonly Json[]).map((member) => inner + style.inline(member));
  return ["[", members.join(`,${style.eol}`), `${outer}]`].join(style.eol);
}

function inline(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(inline).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${inline(member)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, (spaces) => (spaces.includes("\n") ? " " : spaces));
}

const NAME = /"(?:[^"\\]|\\.)*"/y;

function endOfName(text: string, from: number): number {
  NAME.lastIndex = from;
  return NAME.test(text) ? NAME.lastIndex : from;
}

function ownerOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf("/"));
}

function nameOf(pointer: string): string {
  return unescapeSegment(pointer.slice(pointer.lastIndexOf("/") + 1));
}
