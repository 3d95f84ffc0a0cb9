/**
 * Compares what a run did with what a test expects. Scalars are equal, objects are contained, lists are exact; `...` in a
 * list stands for any number of items, `re:` begins a pattern, `<= 8` and `>= 2` compare, `absent` is absent.
 */
import { isWithin, readComparison, readLeg } from "../flow/expectation.ts";
import type { ExpectKey, Expected } from "../flow/flow-test.ts";
import { isObject, own, sameJson, type Json, type JsonObject } from "../flow/json.ts";
import { readPattern, TooManySteps } from "../flow/text/pattern.ts";
import type { Heard, Observed } from "./observe.ts";

/** What does not hold. `at`: where below the key. */
export type Unmet = {
  readonly key: string;
  /** Where it is written; absent: in the file of the test. */
  readonly file?: string;
  readonly line: number;
  readonly at: string;
  readonly expected: Json;
  readonly got: Json | undefined;
  /** Where it is a list. */
  readonly first?: ListDifference;
  /** The lines that changed, where it is a text. */
  readonly diff?: readonly string[];
};

/** Where a list first differs: `at` counts the items that came before; undefined is the end of a list. */
export type ListDifference = {
  readonly at: number;
  readonly after: Json | undefined;
  readonly expected: Json | undefined;
  readonly got: Json | undefined;
  /** The item may stand anywhere from here on, and does not. */
  readonly anywhere: boolean;
};

/** `line`: where the test is written, for what is expected of every test. */
export function unmetIn(
  expect: Expected,
  observed: Observed,
  heard: readonly Heard[],
  line: number,
): readonly Unmet[] {
  return Object.entries(expect.values).flatMap(([key, expected]) => {
    // Snapshots are files: the ground that has them compares them.
    if (key === "snapshot") return [];
    const found = mismatchOf(key, expected, observed, heard);
    return found === null ? [] : [{ key, line: expect.lines[key] ?? line, ...found }];
  });
}

/** A pattern that takes too long shows nothing: neither that a text matches it nor that none does. */
function mismatchOf(
  key: string,
  expected: Json,
  observed: Observed,
  heard: readonly Heard[],
): Mismatch | null {
  const got = own(observed, key);
  try {
    if (key === "said") return unsaid(expected, heard);
    if (key === "files") return misfiled(expected, got);
    if (key === "visits") return mismatch(expected, counted(expected, got), null, "");
    return mismatch(expected, got, key as ExpectKey, "");
  } catch (error) {
    if (error instanceof TooManySteps)
      return { at: "", expected, got: "a text that takes too long to match with this pattern" };
    throw error;
  }
}

/** A step that was never visited was visited 0 times, unless it is expected to be absent. */
function counted(expected: Json, got: Json | undefined): Json {
  const steps = isObject(expected) ? Object.entries(expected) : [];
  const asked = steps.filter(([, wanted]) => wanted !== "absent").map(([step]) => [step, 0] as const);
  return { ...Object.fromEntries(asked), ...(isObject(got) && got) };
}

type Mismatch = Pick<Unmet, "at" | "expected" | "got" | "first">;

function mismatch(expected: Json, got: Json | undefined, key: ExpectKey | null, at: string): Mismatch | null {
  const wrong: Mismatch = { at, expected, got };
  if (expected === "absent") return got === undefined ? null : wrong;
  if (got === undefined) return wrong;
  if (Array.isArray(expected)) return Array.isArray(got) ? mismatchOfLists(expected, got, key, wrong) : wrong;
  if (isObject(expected)) {
    if (!isObject(got)) return wrong;
    for (const [name, value] of Object.entries(expected)) {
      const inner = mismatch(value, own(got, name), null, at === "" ? name : `${at}.${name}`);
      if (inner !== null) return inner;
    }
    return null;
  }
  if (typeof expected === "string") return isMet(expected, got, key) ? null : wrong;
  return sameJson(expected, got) ? null : wrong;
}

function isMet(expected: string, got: Json, key: ExpectKey | null): boolean {
  const compared = typeof got === "number" ? readComparison(expected) : null;
  if (compared !== null && typeof got === "number") return isWithin(got, compared);
  if (expected.startsWith("re:")) return typeof got === "string" && matchesPattern(expected.slice(3), got);
  if (key === "path" && typeof got === "string") return isOnPath(expected, got);
  if (key === "calls" && typeof got === "string") return got === expected || got.startsWith(`${expected} `);
  return expected === got;
}

function matchesPattern(pattern: string, text: string): boolean {
  const read = readPattern(pattern);
  return read.kind === "matcher" && read.matcher.test(text);
}

/** `STEP LABEL`, `STEP`, with `x PATTERN` for a label that checks overturned, and `-> TARGET` where that matters. */
export function isOnPath(expected: string, got: string): boolean {
  const [wanted, found] = [readLeg(expected), readLeg(got)];
  if (wanted === null || found === null) return false;
  return (
    wanted.step === found.step &&
    (wanted.label === undefined || wanted.label === found.label) &&
    (wanted.pattern === "*" || wanted.pattern === found.pattern) &&
    (wanted.to === undefined || wanted.to === found.to)
  );
}

/** `...` takes as many items as it has to. */
function mismatchOfLists(
  expected: readonly Json[],
  got: readonly Json[],
  key: ExpectKey | null,
  wrong: Mismatch,
): Mismatch | null {
  const isLike = (item: Json, one: Json | undefined) => mismatch(item, one, key, "") === null;
  // Which lengths of `got` the items of `expected` so far can stand for.
  let reached: readonly number[] = [0];
  for (const [index, item] of expected.entries()) {
    const next =
      item === "..."
        ? got.map((_, at) => at).filter((at) => at >= reached[0]!)
        : reached.filter((at) => at < got.length && isLike(item, got[at])).map((at) => at + 1);
    if (item === "...") next.push(got.length);
    if (next.length === 0)
      return { ...wrong, first: difference(item, got, reached, expected[index - 1] === "...") };
    reached = next;
  }
  if (reached.includes(got.length)) return null;
  return { ...wrong, first: difference(undefined, got, reached, false) };
}

/** Of the places where the item may stand, one that begins with the same word is nearest to what was meant. */
function difference(
  item: Json | undefined,
  got: readonly Json[],
  reached: readonly number[],
  anywhere: boolean,
): ListDifference {
  const word = (value: Json | undefined) => (typeof value === "string" ? value.split(" ", 1)[0] : undefined);
  const near = item === undefined ? undefined : reached.findLast((at) => word(got[at]) === word(item));
  const at = near ?? (anywhere ? reached[0]! : reached.at(-1)!);
  return {
    at,
    after: got[at - 1],
    expected: item,
    got: got[at],
    anywhere: anywhere && near === undefined,
  };
}

/** Whether the path is somewhere in what was gone, written as in `expect.path`. */
export function holdsPath(path: readonly string[], gone: readonly string[]): boolean {
  const wrong: Mismatch = { at: "", expected: [...path], got: [...gone] };
  return mismatchOfLists(["...", ...path, "..."], gone, "path", wrong) === null;
}

/** `{ at: STEP[@VISIT], saw, unseen }`, or a list of them. */
function unsaid(expected: Json, heard: readonly Heard[]): Mismatch | null {
  for (const [index, one] of (Array.isArray(expected)
    ? (expected as readonly Json[])
    : [expected]
  ).entries()) {
    if (!isObject(one)) continue;
    const [step, visit] = typeof one.at === "string" ? one.at.split("@") : [];
    const texts = heard.filter(
      (request) =>
        (step === undefined || request.step === step) &&
        (visit === undefined || request.visit === Number(visit)),
    );
    const at = String(index + 1);
    // Where nothing was said, nothing could be seen: that shows nothing about the words.
    if (texts.length === 0)
      return {
        at,
        expected: `a request${typeof one.at === "string" ? ` of ${one.at}` : ""}`,
        got: "no request",
      };
    const missing = wordsIn(one.saw).find((word) => !texts.some(({ text }) => occurs(word, text)));
    const present = wordsIn(one.unseen).find((word) => texts.some(({ text }) => occurs(word, text)));
    if (missing !== undefined)
      return { at, expected: `a request that holds ${missing}`, got: describe(texts) };
    if (present !== undefined)
      return { at, expected: `no request that holds ${present}`, got: describe(texts) };
  }
  return null;
}

function wordsIn(value: Json | undefined): readonly string[] {
  const words = value === undefined ? [] : Array.isArray(value) ? (value as readonly Json[]) : [value];
  return words.filter((word) => typeof word === "string");
}

function occurs(word: string, text: string): boolean {
  return word.startsWith("re:") ? matchesPattern(word.slice(3), text) : text.includes(word);
}

function describe(heard: readonly Heard[]): string {
  return `${heard.length} ${heard.length === 1 ? "request" : "requests"}`;
}

/** `PATH: { has, lacks, json }`, a whole text, or `absent`. */
function misfiled(expected: Json, got: Json | undefined): Mismatch | null {
  if (!isObject(expected)) return { at: "", expected, got: "no files" };
  for (const [path, wanted] of Object.entries(expected)) {
    const text = isObject(got) ? own(got, path) : undefined;
    const found = isObject(wanted) && typeof text === "string" ? misread(wanted, text) : undefined;
    const wrong = found === undefined ? mismatch(wanted, text, null, "") : found;
    if (wrong !== null) return { ...wrong, at: wrong.at === "" ? path : `${path}.${wrong.at}` };
  }
  return null;
}

function misread({ has, lacks, json }: JsonObject, text: string): Mismatch | null {
  const missing = wordsIn(has).find((word) => !occurs(word, text));
  if (missing !== undefined) return { at: "has", expected: missing, got: text };
  const present = wordsIn(lacks).find((word) => occurs(word, text));
  if (present !== undefined) return { at: "lacks", expected: `no ${present}`, got: text };
  if (json === undefined) return null;
  try {
    return mismatch(json, JSON.parse(text) as Json, null, "json");
  } catch {
    return { at: "json", expected: "JSON", got: text };
  }
}
