/** A JSON text that is to hold another value, with as little of it changed as can be. */
import { canonicalJson, isObject, type Json, type JsonObject } from "../../flow/json.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { layOut, type Layout, type Stretch } from "../../flow/text/places.ts";

/** Whatever stays, or only moves, stays as its author wrote it. A text that cannot be edited is written anew. */
export function rewriteJson(text: string, value: Json): string {
  const layout = layOut(text);
  const anew = `${JSON.stringify(value, null, 2)}\n`;
  if (layout === null) return anew;
  const old = JSON.parse(text) as Json;
  const sheet: Sheet = { text, layout, style: styleOf(text), known: knownIn(old, layout), patches: [] };
  change(sheet, old, value, "");
  const result = patched(sheet);
  // Better a text that is formatted anew than one that says something else.
  return isSame(JSON.parse(result) as Json, value) ? result : anew;
}

type Patch = { readonly from: number; readonly to: number; readonly with: string };
type Style = { readonly eol: string; readonly unit: string; readonly isCompact: boolean };
type Sheet = {
  readonly text: string;
  readonly layout: Layout;
  readonly style: Style;
  /** Where each object and list of the old value stands. */
  readonly known: ReadonlyMap<string, Stretch>;
  readonly patches: Patch[];
};

function styleOf(text: string): Style {
  return {
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    unit: /\n([ \t]+)/.exec(text)?.[1] ?? "  ",
    isCompact: !/\{\s*\n/.test(text),
  };
}

function knownIn(value: Json, { spans }: Layout): ReadonlyMap<string, Stretch> {
  const known = new Map<string, Stretch>();
  const look = (part: Json, pointer: string) => {
    if (typeof part !== "object" || part === null) return;
    const span = spans.get(pointer);
    const key = canonicalJson(part);
    if (span !== undefined && !known.has(key)) known.set(key, span);
    for (const [name, member] of Object.entries(part)) look(member, under(pointer, name));
  };
  look(value, "");
  return known;
}

function change(sheet: Sheet, old: Json, now: Json, pointer: string): void {
  if (isSame(old, now)) return;
  if (isObject(old) && isObject(now) && Object.keys(old).length > 0)
    return changeMembers(sheet, old, now, pointer);
  if (Array.isArray(old) && Array.isArray(now) && old.length === now.length && old.some(isObject)) {
    for (const [place, member] of (now as readonly Json[]).entries())
      change(sheet, (old as readonly Json[])[place]!, member, under(pointer, String(place)));
    return;
  }
  const span = sheet.layout.spans.get(pointer)!;
  sheet.patches.push({ ...span, with: written(sheet, now, indentAt(sheet.text, span.from)) });
}

function changeMembers(sheet: Sheet, old: JsonObject, now: JsonObject, pointer: string): void {
  const { text, layout, patches, style } = sheet;
  const renamed = renames(old, now);
  const members = Object.keys(old).map((name) => {
    const here = under(pointer, name);
    const [start, { to }] = [layout.keys.get(here)!, layout.spans.get(here)!];
    return { name, here, start, to, becomes: renamed.get(name) ?? (Object.hasOwn(now, name) ? name : null) };
  });
  let isFirst = true;
  for (const [place, { name, here, start, to, becomes }] of members.entries()) {
    if (becomes === null) {
      const before = members[place - 1];
      const after = members[place + 1];
      if (!isFirst && before !== undefined) patches.push({ from: before.to, to, with: "" });
      else patches.push({ from: start, to: after?.start ?? to, with: "" });
      continue;
    }
    isFirst = false;
    if (becomes !== name) {
      const length = /^"(?:[^"\\]|\\.)*"/.exec(text.slice(start))![0].length;
      patches.push({ from: start, to: start + length, with: JSON.stringify(becomes) });
    }
    change(sheet, old[name]!, now[becomes]!, here);
  }
  const taken = new Set(members.map(({ becomes }) => becomes));
  const added = Object.keys(now).filter((name) => !taken.has(name));
  if (added.length === 0) return;
  const owner = layout.spans.get(pointer)!;
  const isSpread = /^\{\s*\n/.test(text.slice(owner.from, owner.to));
  const indent = isSpread ? indentAt(text, members[0]!.start) : indentAt(text, owner.from);
  const colon = style.isCompact ? ":" : ": ";
  const texts = added.map((name) => `${JSON.stringify(name)}${colon}${written(sheet, now[name]!, indent)}`);
  const gap = isSpread ? `,${style.eol}${indent}` : style.isCompact ? "," : ", ";
  const last = members.findLast(({ becomes }) => becomes !== null);
  if (last !== undefined) patches.push({ from: last.to, to: last.to, with: gap + texts.join(gap) });
  // Nothing of the old members stays: the new ones stand in their place.
  else patches.push({ from: members.at(-1)!.to, to: members.at(-1)!.to, with: texts.join(gap) });
}

/** A member that is gone and one that is new are the same one under another name where they hold the same, or much of it. */
function renames(old: JsonObject, now: JsonObject): ReadonlyMap<string, string> {
  const gone = Object.keys(old).filter((name) => !Object.hasOwn(now, name));
  const fresh = new Set(Object.keys(now).filter((name) => !Object.hasOwn(old, name)));
  const found = new Map<string, string>();
  for (const isLike of [isSame, isAlike])
    for (const name of gone) {
      const match = found.has(name) ? undefined : [...fresh].find((other) => isLike(old[name]!, now[other]!));
      if (match === undefined) continue;
      found.set(name, match);
      fresh.delete(match);
    }
  return found;
}

function isAlike(old: Json, now: Json): boolean {
  if (!isObject(old) || !isObject(now)) return false;
  const names = Object.keys(old);
  return names.filter((name) => Object.hasOwn(now, name)).length * 2 > names.length;
}

/** As the author wrote it elsewhere; otherwise like the rest of the file. */
function written(sheet: Sheet, value: Json, indent: string): string {
  const { text, known, style } = sheet;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const span = known.get(canonicalJson(value));
  if (span !== undefined) {
    const before = indentAt(text, span.from);
    return text.slice(span.from, span.to).replaceAll(`\n${before}`, `\n${indent}`);
  }
  if (style.isCompact) return JSON.stringify(value);
  const deeper = indent + style.unit;
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item) => written(sheet, item, deeper));
    if (!items.some((item) => item.includes("\n"))) return `[${items.join(", ")}]`;
    return ["[", items.map((item) => deeper + item).join(`,${style.eol}`), `${indent}]`].join(style.eol);
  }
  const members = Object.entries(value).map(
    ([name, member]) => `${deeper}${JSON.stringify(name)}: ${written(sheet, member, deeper)}`,
  );
  return members.length === 0 ? "{}" : ["{", members.join(`,${style.eol}`), `${indent}}`].join(style.eol);
}

function indentAt(text: string, offset: number): string {
  const line = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(line, offset))![0];
}

/** At one place what is added comes before what is taken away. */
function patched({ text, patches }: Sheet): string {
  let result = "";
  let at = 0;
  for (const { from, to, with: put } of patches.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    if (from < at) continue;
    result += text.slice(at, from) + put;
    at = to;
  }
  return result + text.slice(at);
}

function under(pointer: string, name: string): string {
  return `${pointer}/${escapeSegment(name)}`;
}

function isSame(one: Json, other: Json): boolean {
  return canonicalJson(one) === canonicalJson(other);
}
