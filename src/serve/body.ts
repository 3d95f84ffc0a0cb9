/** Reads the members of a request's body: each has its type, or the request is refused by the member's name. Pure. */
import { FORBIDDEN_NAMES, isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { RequestRefusal } from "./refusal.ts";

/** Members that a request does not take are refused: a misspelled one would have no effect. */
export function onlyMembers(body: JsonObject, names: readonly string[]): void {
  const stranger = Object.keys(body).find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw refused(stranger, `This request takes ${names.join(", ")}, and not "${stranger.slice(0, 80)}".`);
}

export function textMember(body: JsonObject, name: string): string | undefined {
  return member(body, name, (value) => typeof value === "string", "a text");
}

export function flagMember(body: JsonObject, name: string): boolean | undefined {
  return member(body, name, (value) => typeof value === "boolean", "true or false");
}

export function objectMember(body: JsonObject, name: string): JsonObject | undefined {
  return member(body, name, isPlainObject, "an object");
}

export function wordMember<Word extends string>(
  body: JsonObject,
  name: string,
  words: readonly Word[],
): Word | undefined {
  return member(
    body,
    name,
    (value): value is Word => (words as readonly Json[]).includes(value),
    `one of ${words.join(", ")}`,
  );
}

/** An object of which every member has the same type. */
export function membersOf<T extends Json>(
  body: JsonObject,
  name: string,
  is: (value: Json) => value is T,
  what: string,
): { readonly [name: string]: T } | undefined {
  return member(
    body,
    name,
    (value): value is { readonly [name: string]: T } & JsonObject =>
      isPlainObject(value) && Object.values(value).every(is),
    what,
  );
}

export function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw refused(name, `"${name}" is missing.`);
  return value;
}

export function isPlainObject(value: Json): value is JsonObject {
  return isObject(value) && !Object.keys(value).some((name) => FORBIDDEN_NAMES.has(name));
}

function member<T extends Json>(
  body: JsonObject,
  name: string,
  is: (value: Json) => value is T,
  what: string,
): T | undefined {
  const value = own(body, name);
  if (value === undefined) return undefined;
  if (!is(value)) throw refused(name, `"${name}" must be ${what}.`);
  return value;
}

function refused(field: string, reason: string): RequestRefusal {
  return new RequestRefusal(400, "USAGE", reason, { field });
}
