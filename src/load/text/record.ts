/** What was read by a shape, as plain JSON: what a flow keeps, and what `explain` shows. */
import { readPath, sameJson, type Json, type JsonObject } from "../../flow/json.ts";
import type { Form, RecordedShape, Shape } from "../../flow/shape.ts";
import type { SettingValue } from "../index.ts";

/** Without what was not written, and without what was added later and has its default. */
export function recordOf<T>(shape: Shape<T>, value: T | Partial<T>): RecordedShape<T> {
  return record(shape, value, true) as RecordedShape<T>;
}

/** Every setting of a shape in the order of its declaration, with its value or its default. A map is one setting. */
export function leavesIn<T>(shape: Shape<T>, value: T): readonly SettingValue[] {
  const whole = record(shape, value, false) as JsonObject;
  return [...leavesOf(shape)].map(({ path, form }) => ({
    path,
    value: readPath(whole, path) ?? form.usual ?? null,
  }));
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

type Leaf = { readonly path: readonly string[]; readonly form: Form };

export function* leavesOf(form: Form, path: readonly string[] = []): Generator<Leaf> {
  if (form.kind !== "object" || !form.group) yield { path, form };
  else for (const [key, field] of Object.entries(form.fields)) yield* leavesOf(field, [...path, key]);
}
