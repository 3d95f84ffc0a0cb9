/** What a file may hold, as data: each key with its type, default and meaning. Readers, schemas and types follow from it. */
import type { Json, JsonSchema } from "./json.ts";

/** A shape, and as a type the value that reading it gives. */
export type Shape<T> = Form & { readonly [READS]?: T };
export type Reads<S> = S extends Shape<infer T> ? T : never;

export type Form = Options & {
  readonly doc: string;
  readonly default?: Json;
} & (
    | ({ readonly kind: "text" } & TextRules)
    | { readonly kind: "number"; readonly min?: number; readonly integer?: true }
    | { readonly kind: "flag" }
    | { readonly kind: "list"; readonly of: Form; readonly filled?: true }
    | { readonly kind: "map"; readonly of: Form }
    | {
        readonly kind: "object";
        readonly fields: { readonly [key: string]: Form };
        /** What other keys hold; absent: there are none. */
        readonly rest?: Form;
        /** Other keys are the author's own: only one that is nearly a known key is told. */
        readonly open?: true;
        /** Of such keys those that mean something in another file, and what to write instead. */
        readonly elsewhere?: { readonly [key: string]: string };
        /** A group is there even when it was not written: its fields then have their defaults. */
        readonly group: boolean;
      }
    | {
        readonly kind: "any";
        readonly types?: readonly ("object" | "array" | "string")[];
        /** Its schema for editors; the code that reads it checks the rest. */
        readonly schema?: JsonSchema;
      }
  );

type TextRules = {
  readonly enum?: readonly string[];
  /** Former words for the same, read as the present one. */
  readonly old?: { readonly [word: string]: string };
  readonly pattern?: string;
  readonly filled?: true;
  readonly nullable?: true;
};

declare const READS: unique symbol;

type Options = {
  readonly required?: true;
  /** Its absence only warns. */
  readonly mild?: true;
  /** Much depends on it: under a misspelled name it is read as it was meant, and its name is the only error. */
  readonly vital?: true;
  /** What holds when it is not written, where the flow records nothing then. */
  readonly usual?: Json;
  /** Added later: a flow records it only where it is not the default, so that the digests of earlier flows stay. */
  readonly later?: true;
  /** The finding's code when this value is missing or wrong; otherwise the reader's. */
  readonly code?: string;
  /** The code when it is missing, where that is another one. */
  readonly missing?: string;
};
type Absent<O> = O extends { readonly default: Json } ? never : undefined;
type Empty<O> = O extends { readonly default: null } ? null : never;
type Word<O> = O extends { readonly enum: readonly (infer W)[] } ? W : string;
type Null<O> = O extends { readonly nullable: true } ? null : never;
type Fields = { readonly [key: string]: Form };
type ReadsAll<F extends Fields> = { readonly [K in keyof F]: Reads<F[K]> };

export function text<const O extends Options & TextRules & { readonly default?: string | null }>(
  doc: string,
  options?: O,
): Shape<Word<O> | Null<O> | Empty<O> | Absent<O>> {
  return { kind: "text", doc, ...options };
}

export function number<
  const O extends Options & {
    readonly default?: number | null;
    readonly min?: number;
    readonly integer?: true;
  },
>(doc: string, options?: O): Shape<number | Empty<O> | Absent<O>> {
  return { kind: "number", doc, ...options };
}

export function flag<const O extends Options & { readonly default?: boolean }>(
  doc: string,
  options?: O,
): Shape<boolean | Absent<O>> {
  return { kind: "flag", doc, ...options };
}

export function list<
  T,
  const O extends Options & { readonly default?: readonly Json[]; readonly filled?: true },
>(doc: string, of: Shape<T>, options?: O): Shape<readonly NonNullable<T>[] | Absent<O>> {
  return { kind: "list", doc, of, ...options };
}

/** An object whose keys are names that the author chose. Reads as empty when absent. */
export function map<T>(
  doc: string,
  of: Shape<T>,
  options?: Options,
): Shape<ReadonlyMap<string, Exclude<T, undefined>>> {
  return { kind: "map", doc, of, ...options };
}

export function object<F extends Fields>(
  doc: string,
  fields: F,
  options?: Options,
): Shape<ReadsAll<F> | undefined> {
  return { kind: "object", doc, fields, group: false, ...options };
}

export function group<F extends Fields>(
  doc: string,
  fields: F,
  options?: Options & {
    readonly open?: true;
    readonly elsewhere?: { readonly [key: string]: string };
  },
): Shape<ReadsAll<F>> {
  return { kind: "object", doc, fields, group: true, ...options };
}

/** A group with further keys of the author's own, which read as the map `rest`. */
export function openGroup<F extends Fields, T>(
  doc: string,
  fields: F,
  rest: Shape<T>,
): Shape<ReadsAll<F> & { readonly rest: ReadonlyMap<string, Exclude<T, undefined>> }> {
  return { kind: "object", doc, fields, rest, group: true };
}

/** The same object, none of whose members is required. */
export function optional<T>(shape: Shape<T>): Shape<T> {
  if (shape.kind !== "object") return shape;
  const fields = Object.entries(shape.fields).map(([key, field]) => {
    const { required: _required, ...rest } = field;
    return [key, rest] as const;
  });
  return { ...shape, fields: Object.fromEntries(fields) };
}

export function anything(
  doc: string,
  options?: Options & {
    readonly types?: readonly ("object" | "array" | "string")[];
    readonly schema?: JsonSchema;
  },
): Shape<Json | undefined> {
  return { kind: "any", doc, ...options };
}

/** What a flow keeps of a value that was read: plain JSON, without what was not written. */
export type RecordedShape<T> =
  T extends ReadonlyMap<string, infer V>
    ? { readonly [key: string]: V }
    : T extends readonly unknown[]
      ? T
      : T extends object
        ? { readonly [K in Given<T>]: RecordedShape<T[K]> } & {
            readonly [K in Exclude<keyof T, Given<T>>]?: RecordedShape<Exclude<T[K], undefined>>;
          }
        : T;
type Given<T> = { [K in keyof T]: undefined extends T[K] ? never : K }[keyof T];

/** The table as JSON Schema. Unknown keys are refused there, so that an editor underlines a misspelled one. */
export function toJsonSchema(form: Form): JsonSchema {
  const { doc: description } = form;
  const usual = form.usual ?? form.default ?? null;
  const common = { description, ...(usual === null ? {} : { default: usual }) };
  switch (form.kind) {
    case "text":
      return {
        ...common,
        type: form.nullable ? ["string", "null"] : "string",
        ...(form.enum && { enum: [...form.enum] }),
        ...(form.pattern && { pattern: form.pattern }),
        ...(form.filled && { minLength: 1 }),
      };
    case "number":
      return {
        ...common,
        type: form.integer ? "integer" : "number",
        ...(form.min !== undefined && { minimum: form.min }),
      };
    case "flag":
      return { ...common, type: "boolean" };
    case "list":
      return { ...common, type: "array", items: toJsonSchema(form.of), ...(form.filled && { minItems: 1 }) };
    case "map":
      return { ...common, type: "object", additionalProperties: toJsonSchema(form.of) };
    case "object": {
      const required = Object.keys(form.fields).filter((key) => form.fields[key]!.required);
      return {
        ...common,
        type: "object",
        properties: Object.fromEntries(
          Object.entries(form.fields).map(([key, of]) => [key, toJsonSchema(of)]),
        ),
        ...(required.length > 0 && { required }),
        ...(form.open === undefined && {
          ...(form.rest === undefined && { patternProperties: { [FOREIGN_KEY]: {} } }),
          additionalProperties: form.rest === undefined ? false : toJsonSchema(form.rest),
        }),
      };
    }
    case "any":
      return { ...common, ...(form.schema ?? (form.types && { type: [...form.types] })) };
  }
}

const FOREIGN_KEY = "^\\$(schema|comment)$";
