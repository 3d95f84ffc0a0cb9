/** What was read by a shape, as plain JSON: what a flow keeps, and what `explain` shows. */
import { sameJson, type Json, type JsonObject } from "../../flow/json.ts";
import type { Form, RecordedShape, Shape } from "../../flow/shape.ts";

/** Without what was not written, and without what was added later and has its default. */
export function recordOf<T>(shape: Shape<T>, value: T | Partial<T>): RecordedShape<T> {
  return record(shape, value, true) as RecordedShape<T>;
}

/** With every default. */
export function wholeOf<T>(shape: Shape<T>, value: T): JsonObject {
  return record(shape, value, false) as JsonObject;
}

function record(form: Form, value: unknown, isBrief: boolean): unknown {
  if (form.kind === "map") {
    const members = [...(value as ReadonlyMap<string, unknown>)];
    return Object.fromEntries(members.map(([key, member]) => [key, record(form.of, member, isBrief)]));
  }
  if (form.kind !== "object" || value === undefined) return value;
  const members = value as { readonly [key: string]: unknown };
  return Object.fromEntries(
    Object.entries(form.fields).flatMap(([key, field]) => {
      const member = record(field, members[key], isBrief);
      const isLeftOut =
        member === undefined || (isBrief && field.later === true && isDefault(field, member as Json));
      return isLeftOut ? [] : [[key, member]];
    }),
  );
}

function isDefault({ default: usual }: Form, value: Json): boolean {
  return usual !== undefined && sameJson(usual, value);
}

/** A setting: the keys that lead to it, and its form. */
export type Leaf = { readonly path: readonly string[]; readonly form: Form };

/** Every setting of a shape, in the order of its declaration. A map is one. */
export function* leavesOf(form: Form, path: readonly string[] = []): Generator<Leaf> {
  if (form.kind !== "object" || !form.group) yield { path, form };
  else for (const [key, field] of Object.entries(form.fields)) yield* leavesOf(field, [...path, key]);
}
