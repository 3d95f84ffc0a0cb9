/** What the shape of a test file leaves open: objects that may be written in several ways, and keys that need the other ground. */
import type { ExpectKey } from "../../flow/flow-test.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { readShape, type Reader } from "./shape.ts";
import { TEST_PARTS } from "./tests-shape.ts";

/** Reports what is wrong in the objects below a test, or below a file of tests. */
export function checkParts(written: JsonObject, pointer: string, reader: Reader): void {
  for (const [place, shape] of TEST_PARTS)
    for (const [value, at] of valuesAt(written, place.split("/"), pointer))
      if (isObject(value)) readShape(shape, value, at, reader);
}

/** Only tables stand for these in memory, and only a copy has the others. */
const IN_MEMORY = ["checks", "tools", "hooks", "sights", "order"];
const ON_A_COPY = ["git", "github"];
/** What only a copy can be expected to show. */
export const OF_A_COPY: readonly ExpectKey[] = ["files", "changed", "git", "github"];

/** A key that the ground of the test does not look at would silently test nothing. */
export function checkGround(
  written: JsonObject,
  pointer: string,
  ground: "memory" | "project",
  reader: Reader,
): void {
  const refuse = (key: string, at: string, message: string, fix: string) =>
    reader.findings.push({
      code: reader.code,
      document: reader.document,
      pointer: `${pointer}${at}/${escapeSegment(key)}`,
      message: `${at === "" ? key : `expect.${key}`} ${message}`,
      fix,
    });
  if (ground === "project") {
    for (const key of IN_MEMORY)
      if (own(written, key) !== undefined)
        refuse(
          key,
          "",
          "is for tests in memory; this test runs on a copy of a project (project), where the real ones are used.",
          `Remove ${key}, or remove project.`,
        );
    return;
  }
  const needs = (key: string, at: string) =>
    refuse(
      key,
      at,
      "needs a copy of a project; this test runs in memory.",
      "Add project: FOLDER, a folder that is copied for the test.",
    );
  for (const key of ON_A_COPY) if (own(written, key) !== undefined) needs(key, "");
  const { expect } = written;
  for (const key of OF_A_COPY) if (isObject(expect) && own(expect, key) !== undefined) needs(key, "/expect");
}

function valuesAt(
  value: Json | undefined,
  [segment, ...rest]: readonly string[],
  pointer: string,
): readonly (readonly [value: Json, pointer: string])[] {
  if (value === undefined) return [];
  if (segment === undefined) return [[value, pointer]];
  if (segment === "[]")
    return Array.isArray(value)
      ? (value as readonly Json[]).flatMap((item, at) => valuesAt(item, rest, `${pointer}/${at}`))
      : valuesAt(value, rest, pointer);
  if (!isObject(value)) return [];
  const keys = segment === "*" ? Object.keys(value) : [segment];
  return keys.flatMap((key) => valuesAt(own(value, key), rest, `${pointer}/${escapeSegment(key)}`));
}
