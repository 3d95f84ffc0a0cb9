/** Reads a value by its shape: what is missing takes its default, and what is wrong is reported at its place. */
import { cached } from "../../flow/cached.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import type { Form, Shape } from "../../flow/shape.ts";
import type { Code } from "../codes.ts";
import type { Document } from "./document.ts";
import { correctTo, type Finding } from "../rules/rule.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";

export type Reader = {
  readonly document: Document;
  readonly code: Code;
  /** The code of a key that the shape does not have; absent: it only warns. */
  readonly unknown?: Code;
  readonly findings: Finding[];
};

/** The value as its shape says. What is missing or wrong is reported and read as its default, or as undefined. */
export function readShape<T>(shape: Shape<T>, value: Json | undefined, pointer: string, reader: Reader): T {
  return read(shape, value, pointer, { ...reader, whole: shape }, false) as T;
}

/** `whole`: the shape in which a key may have another place. */
type Reading = Reader & { readonly whole: Form };

/** Keys that any object may carry for other tools. */
const FOREIGN_KEYS: ReadonlySet<string> = new Set(["$schema", "$comment"]);

/** `implied`: the surrounding object was not written, so nothing in it can be missing. */
function read(
  form: Form,
  value: Json | undefined,
  pointer: string,
  reader: Reading,
  implied: boolean,
): unknown {
  if (value === undefined || (value === null && !(form.kind === "text" && form.nullable))) {
    if (form.required && !implied) reportMissing(form, pointer, reader);
    return absent(form, pointer, reader);
  }
  switch (form.kind) {
    case "text":
      if (value === null) return null;
      if (typeof value !== "string") return wrong(form, value, "a string", pointer, reader);
      return readText(form, value, pointer, reader);
    case "number":
      return readNumber(form, value, pointer, reader);
    case "flag":
      if (typeof value === "boolean") return value;
      return wrong(form, value, "true or false", pointer, reader);
    case "list": {
      if (!Array.isArray(value)) return wrong(form, value, "a list", pointer, reader);
      const members = value as readonly Json[];
      if (form.filled && members.length === 0)
        return wrong(form, value, "a list with at least one entry", pointer, reader);
      if (members.every((member) => isReadAsWritten(form.of, member))) return members;
      return members
        .map((member, index) => read(form.of, member, `${pointer}/${index}`, reader, false))
        .filter((member) => member !== undefined);
    }
    case "map":
      if (!isObject(value)) return wrong(form, value, "an object", pointer, reader);
      return readMembers(form.of, value, Object.keys(value), pointer, reader);
    case "object":
      if (!isObject(value)) return wrong(form, value, "an object", pointer, reader);
      return readObject(form, value, pointer, reader, false);
    case "any":
      if (form.types && !form.types.some((type) => type === typeOf(value)))
        return wrong(form, value, form.types.map((type) => WORD_FOR[type]).join(" or "), pointer, reader);
      return value;
  }
}

function absent(form: Form, pointer: string, reader: Reading): unknown {
  if (form.kind === "object" && form.group) return readObject(form, {}, pointer, reader, true);
  if (form.kind === "map") return new Map();
  return form.default;
}

function readObject(
  form: Form & { kind: "object" },
  value: JsonObject,
  pointer: string,
  reader: Reading,
  implied: boolean,
): unknown {
  const { fields } = form;
  const { keys, members, vital, blank } = outlineOf(fields);
  const result: { [key: string]: unknown } = { ...blank };
  const misspelled = form.rest === undefined ? misspelledIn(fields, vital, value) : NONE;
  let known = 0;
  for (let at = 0; at < members.length; at += 1) {
    const { key, field, isSimple } = members[at]!;
    const written = misspelled === NONE ? key : (misspelled.get(key) ?? key);
    const member = own(value, written);
    if (member !== undefined && written === key) known += 1;
    // Of a large registry most keys of most steps are not written: their defaults are there already.
    if (member === undefined && isSimple) continue;
    if (isReadAsWritten(field, member)) result[key] = member;
    else result[key] = read(field, member, `${pointer}/${escapeSegment(written)}`, reader, implied);
  }
  if (form.rest === undefined && known === Object.keys(value).length) return result;
  const others = Object.keys(value).filter((key) => !Object.hasOwn(fields, key));
  if (form.rest !== undefined) result.rest = readMembers(form.rest, value, others, pointer, reader);
  else {
    for (const key of others) {
      const instead = form.elsewhere === undefined ? undefined : own(form.elsewhere, key);
      if (instead !== undefined) reportElsewhere(key, instead, pointer, reader);
      else if (form.open === undefined ? !FOREIGN_KEYS.has(key) : onlyNear(key, keys) !== null)
        reportUnknown(key, value, keys, pointer, reader, [...misspelled.values()].includes(key));
    }
  }
  return result;
}

/** Whether there is nothing to say of a value. So it is with most, and then no pointer to it is made. */
function isReadAsWritten(form: Form, value: Json | undefined): boolean {
  if (form.kind === "flag") return typeof value === "boolean";
  if (form.kind !== "text" || typeof value !== "string") return false;
  if (form.enum !== undefined && !form.enum.includes(value)) return false;
  return !(form.filled && value === "") && (form.pattern === undefined || patternOf(form).test(value));
}

const patternOf = cached(({ pattern }: Form & { kind: "text" }) => new RegExp(pattern!, "u"));

type Fields = { readonly [key: string]: Form };
type Outline = {
  readonly keys: readonly string[];
  /** `isSimple`: nothing is said of its absence, and its default holds. */
  readonly members: readonly { readonly key: string; readonly field: Form; readonly isSimple: boolean }[];
  /** Keys that cannot be missing. */
  readonly vital: readonly string[];
  /** An object with all keys and defaults: copies of it take less time and memory than objects that grow. */
  readonly blank: { readonly [key: string]: Json | undefined };
};

/** What is the same for every object of a shape, worked out once. */
function outlineOf(fields: Fields): Outline {
  const before = outlines.get(fields);
  if (before !== undefined) return before;
  const members = Object.entries(fields).map(([key, field]) => {
    const isSimple = !field.required && field.kind !== "object" && field.kind !== "map";
    return { key, field, isSimple };
  });
  const outline = {
    keys: Object.keys(fields),
    members,
    vital: members
      .filter(({ field: { required, mild, vital } }) => (required && !mild) || vital)
      .map(({ key }) => key),
    blank: Object.fromEntries(
      members.map(({ key, field, isSimple }) => [key, isSimple ? field.default : undefined]),
    ),
  };
  outlines.set(fields, outline);
  return outline;
}

const outlines = new WeakMap<Fields, Outline>();

/** Fields that cannot be missing → the names under which they seem to be written. */
function misspelledIn(
  fields: Fields,
  vital: readonly string[],
  value: JsonObject,
): ReadonlyMap<string, string> {
  if (vital.every((key) => Object.hasOwn(value, key))) return NONE;
  const lacking = new Set(vital.filter((key) => !Object.hasOwn(value, key)));
  const found = new Map<string, string>();
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(fields, key)) continue;
    const near = onlyNear(key, Object.keys(fields));
    if (near !== null && lacking.has(near) && !found.has(near)) found.set(near, key);
  }
  return found;
}

const NONE: ReadonlyMap<string, string> = new Map();

function readMembers(
  of: Form,
  owner: JsonObject,
  keys: readonly string[],
  pointer: string,
  reader: Reading,
): ReadonlyMap<string, unknown> {
  const result = new Map<string, unknown>();
  for (const key of keys) {
    const value = read(of, owner[key], `${pointer}/${escapeSegment(key)}`, reader, false);
    if (value !== undefined) result.set(key, value);
  }
  return result;
}

function readText(form: Form & { kind: "text" }, value: string, pointer: string, reader: Reading): unknown {
  if (form.enum && !form.enum.includes(value)) {
    const present = form.old && own(form.old, value);
    if (present === undefined) {
      const words = form.enum.map((word) => `"${word}"`).join(", ");
      const more = correctTo(onlyNear(value, form.enum), { document: reader.document, pointer });
      return wrong(form, value, `one of ${words}`, pointer, reader, didYouMean(value, form.enum), more);
    }
    reader.findings.push({
      code: "OLD-NAME",
      document: reader.document,
      pointer,
      message: `${named(pointer, reader)} is "${clip(value)}", the old name of "${present}".`,
      fix: `Write "${present}".`,
      ...correctTo(present, { document: reader.document, pointer }),
    });
    return present;
  }
  if (form.filled && value === "") return wrong(form, value, "a string that is not empty", pointer, reader);
  if (form.pattern && !patternOf(form).test(value)) {
    wrong(form, value, `text that matches ${form.pattern}`, pointer, reader);
  }
  return value;
}

function readNumber(form: Form & { kind: "number" }, value: Json, pointer: string, reader: Reading): unknown {
  const kind = form.integer ? "a whole number" : "a number";
  const expected = form.min === undefined ? kind : `${kind} of at least ${form.min}`;
  const fits =
    typeof value === "number" &&
    Number.isFinite(value) &&
    (form.min === undefined || value >= form.min) &&
    (!form.integer || Number.isSafeInteger(value));
  return fits ? value : wrong(form, value, expected, pointer, reader);
}

function wrong(
  form: Form,
  value: Json,
  expected: string,
  pointer: string,
  reader: Reading,
  hint = "",
  more: Pick<Finding, "mend"> = {},
): unknown {
  reader.findings.push({
    code: (form.code as Code | undefined) ?? reader.code,
    document: reader.document,
    pointer,
    message: `${named(pointer, reader)} is ${showValue(value)}, but must be ${expected}.${hint}`,
    fix: `Make ${named(pointer, reader)} ${expected}.`,
    ...more,
  });
  return absent(form, pointer, reader);
}

function reportMissing(form: Form, pointer: string, reader: Reading): void {
  const otherwise = form.default === undefined ? "" : ` ${JSON.stringify(form.default)} is used.`;
  reader.findings.push({
    code: ((form.missing ?? form.code) as Code | undefined) ?? reader.code,
    document: reader.document,
    pointer,
    ...(form.mild && { severity: "warning" as const }),
    message: `${named(pointer, reader)} is missing.${otherwise}`,
    fix: `Add ${named(pointer, reader)}: ${form.doc}`,
  });
}

function reportUnknown(
  key: string,
  value: JsonObject,
  known: readonly string[],
  pointer: string,
  reader: Reading,
  isVital: boolean,
): void {
  const near = onlyNear(key, known);
  const place = `${pointer}/${escapeSegment(key)}`;
  const mend = near !== null &&
    !Object.hasOwn(value, near) && [
      { file: reader.document.file, pointer: place, kind: "rename" as const, to: near },
    ];
  const owner = pointer === "" ? reader.document.file : named(pointer, reader);
  const others = near === null ? placesOf(key, reader) : [];
  const belongs = others.length > 0 && others.length <= MOST_PLACES;
  reader.findings.push({
    code: reader.unknown ?? "UNKNOWN-KEY",
    ...(isVital && { severity: "error" as const }),
    document: reader.document,
    pointer: place,
    ...(mend && { mend }),
    message: `"${clip(key)}" is not a key of ${owner}.${belongs ? ` It belongs in ${others.join(" or ")}.` : didYouMean(key, known)}`,
    fix: belongs
      ? `Move "${key}" to ${others.join(" or ")}, or remove it.`
      : `Remove "${clip(key)}", or write one of: ${known.join(", ")}.`,
  });
}

/** A key of more places, such as a name or a type, may be meant for any of them. */
const MOST_PLACES = 2;

/** Where in the file such a key is read, as its author knows the place. */
function placesOf(key: string, { whole, document }: Reading): readonly string[] {
  const find = (form: Form, way: string): readonly string[] => {
    if (form.kind === "list") return find(form.of, way);
    if (form.kind === "map") return find(form.of, `${way}.NAME`);
    if (form.kind !== "object") return [];
    const here = Object.hasOwn(form.fields, key) ? [way === "" ? document.file : way.slice(1)] : [];
    return [
      ...here,
      ...Object.entries(form.fields).flatMap(([name, field]) => find(field, `${way}.${name}`)),
    ];
  };
  return find(whole, "");
}

/** A key that restricts something in another file, and nothing here. */
function reportElsewhere(key: string, instead: string, pointer: string, reader: Reading): void {
  reader.findings.push({
    code: reader.unknown ?? "UNKNOWN-KEY",
    document: reader.document,
    pointer: `${pointer}/${escapeSegment(key)}`,
    message: `"${key}" has no effect in ${reader.document.file}.`,
    fix: instead,
  });
}

const WORD_FOR = { object: "an object", array: "a list", string: "a string" } as const;

function typeOf(value: Json): string {
  return Array.isArray(value) ? "array" : typeof value;
}

/** A place as its author knows it. */
function named(pointer: string, { document }: Reader): string {
  return nameOf(document.written?.(pointer) ?? pointer);
}

/** `/runner/flow/defaultModel` → `runner.flow.defaultModel`; segments with a dot in them keep the pointer's form. */
function nameOf(pointer: string): string {
  if (pointer === "") return "the file";
  return pointer.includes(".") || pointer.includes("~") ? pointer : pointer.slice(1).replaceAll("/", ".");
}

/** A value in a message: scalars as they are, the rest by kind. */
export function showValue(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return `"${clip(value)}"`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return isObject(value) ? "an object" : JSON.stringify(value);
}

export function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

export function listValues(words: readonly Json[]): string {
  return words.map((word) => showValue(word)).join(", ");
}
