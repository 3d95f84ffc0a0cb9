/** What callers of the kit give, checked: a misspelled option would silently test something else. */
import { didYouMean } from "../flow/text/suggest.ts";

type Kind =
  | "text"
  /** A text that may be empty. */
  | "words"
  | "flag"
  | "function"
  | "object"
  | "list"
  | "object or list"
  | "whole number"
  | "count"
  | "milliseconds"
  | readonly string[];

/** What a function takes: each name once, so that a new one is not forgotten here. */
export type OptionKinds<Options> = { readonly [Name in keyof Required<Options>]: Kind };

/** Throws a TypeError that names the function, the option and what it takes. */
export function requireOptions(
  of: string,
  given: unknown,
  kinds: { readonly [option: string]: Kind },
  required: readonly string[] = [],
): void {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new TypeError(`${of} takes an object of options, not ${shown(given)}.`);
  const names = Object.keys(kinds);
  for (const [name, value] of Object.entries(given)) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name]! : null;
    if (kind === null)
      throw new TypeError(
        `${of} has no option "${name}".${didYouMean(name, names)} It has: ${names.join(", ")}.`,
      );
    if (value !== undefined && !isOf(kind, value))
      throw new TypeError(`The option "${name}" of ${of} is ${shown(value)}, but must be ${wordsFor(kind)}.`);
  }
  for (const name of required)
    if ((given as { readonly [option: string]: unknown })[name] === undefined)
      throw new TypeError(`${of} needs the option "${name}", ${wordsFor(kinds[name]!)}.`);
}

/** A list each of whose items is an object; a wrong item is named by its place. */
export function requireObjects(of: string, what: string, given: unknown, keys?: readonly string[]): void {
  if (!Array.isArray(given)) throw new TypeError(`${what} of ${of} is ${shown(given)}, but must be a list.`);
  for (const [at, item] of given.entries()) {
    if (!isOf("object", item))
      throw new TypeError(`${what}[${at}] of ${of} is ${shown(item)}, but must be an object.`);
    const other =
      keys === undefined ? undefined : Object.keys(item as object).find((key) => !keys.includes(key));
    if (other !== undefined)
      throw new TypeError(
        `${what}[${at}] of ${of} has no member "${other}".${didYouMean(other, keys!)} It has: ${keys!.join(", ")}.`,
      );
  }
}

export function requireFunction(of: string, what: string, given: unknown): void {
  if (typeof given !== "function") throw new TypeError(`${of} takes ${what}, not ${shown(given)}.`);
}

export function requireText(of: string, what: string, given: unknown): void {
  if (typeof given !== "string" || given === "")
    throw new TypeError(`${of} takes ${what}, not ${shown(given)}.`);
}

function isOf(kind: Kind, value: unknown): boolean {
  switch (kind) {
    case "text":
      return typeof value === "string" && value !== "";
    case "words":
      return typeof value === "string";
    case "flag":
      return typeof value === "boolean";
    case "function":
      return typeof value === "function";
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "list":
      return Array.isArray(value);
    case "object or list":
      return typeof value === "object" && value !== null;
    case "milliseconds":
      return typeof value === "number" && value >= 0;
    case "whole number":
      return Number.isSafeInteger(value);
    case "count":
      return value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 1);
    default:
      return Array.isArray(value) && value.length > 0 && value.every((one) => kind.includes(one as string));
  }
}

function wordsFor(kind: Kind): string {
  if (typeof kind !== "string") return `a list with one or more of: ${kind.join(", ")}`;
  if (kind === "text") return "a text that is not empty";
  if (kind === "words") return "a text";
  if (kind === "flag") return "true or false";
  if (kind === "milliseconds") return "a number of milliseconds";
  if (kind === "object or list") return "an object or a list";
  return kind === "count" ? "a whole number of at least 1" : kind === "object" ? "an object" : `a ${kind}`;
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return String(value);
}
