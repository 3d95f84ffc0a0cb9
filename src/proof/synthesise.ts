/**
 * The smallest value that fits a JSON Schema, with given values at given places. The schema is read as a list of demands
 * on one value; what the demands leave open is tried, and the validator of the engine has the last word.
 */
import { validate } from "../engine/schema/schema.ts";
import { followRef } from "../flow/json-schema.ts";
import { isObject, own, type Json, type JsonObject, type JsonSchema, type Path } from "../flow/json.ts";
import { readPattern } from "../flow/text/pattern.ts";
import { FORMATS } from "./formats.ts";
import { textsFor } from "./pattern-text.ts";

/** What is asked of the value beside its schema. */
export type WantedValue = {
  readonly with?: readonly { readonly path: Path; readonly value: Json }[];
  readonly without?: readonly Path[];
  /** Places that hold something, whatever it is. */
  readonly having?: readonly Path[];
};

export type Synthesised =
  | { readonly kind: "value"; readonly value: Json }
  /** `why`: what the validator says about the best try. */
  | { readonly kind: "none"; readonly tried: number; readonly why: string };

export function synthesise(schema: JsonSchema, wanted: WantedValue = {}): Synthesised {
  let tried = 0;
  let why = "the schema leaves nothing to choose from";
  for (const value of values({ root: schema, depth: 0 }, [schema], treeOf(wanted))) {
    const errors = validate(schema, value);
    if (errors.length === 0) return { kind: "value", value };
    if (tried++ === 0) why = errors.join("; ");
    if (tried >= MOST_TRIES) break;
  }
  return { kind: "none", tried, why: tried === 0 ? whyNone(schema, wanted, why) : why };
}

/** Where a given value fits nowhere, the validator says so about a value that has it all the same. */
function whyNone(schema: JsonSchema, wanted: WantedValue, otherwise: string): string {
  const around: Around = { root: schema, depth: 0, isLenient: true };
  const [value] = some(values(around, [schema], treeOf(wanted)), 1);
  return value === undefined ? otherwise : validate(schema, value).join("; ");
}

const MOST_TRIES = 3000;
const DEEPEST = 12;

type Around = {
  readonly root: JsonSchema;
  readonly depth: number;
  readonly name?: string;
  /** Given values are taken where they cannot fit, too. */
  readonly isLenient?: true;
};

/** What is wanted at one place and below it. */
type Tree = {
  readonly value?: Json;
  readonly absent?: true;
  readonly below: { readonly [key: string]: Tree };
};

const NOTHING: Tree = { below: {} };

function treeOf({ with: given = [], without = [], having = [] }: WantedValue): Tree {
  let tree = NOTHING;
  for (const path of having) tree = planted(tree, path, NOTHING);
  for (const { path, value } of given) tree = planted(tree, path, { value, below: {} });
  for (const path of without) tree = planted(tree, path, { absent: true, below: {} });
  return tree;
}

function planted(tree: Tree, [key, ...rest]: Path, leaf: Tree): Tree {
  if (key === undefined) return leaf;
  return {
    ...tree,
    below: { ...tree.below, [key]: planted(own(tree.below, key) ?? NOTHING, rest, leaf) },
  };
}

/** Values for a list of demands: likely and small ones first. They may still be refused. */
function* values(around: Around, demands: readonly Json[], tree: Tree): Generator<Json> {
  if (tree.value !== undefined) {
    if (around.isLenient || isAdmitted(around.root, demands, tree.value)) yield tree.value;
    return;
  }
  if (around.depth > DEEPEST) return;
  for (const flat of alternatives(around.root, demands, 0)) {
    if (flat.includes(false)) continue;
    yield* ofOne(around, flat.filter(isObject), tree);
  }
}

/** false: whatever the rest of the value is, the demands on this place refuse what is given there. */
function isAdmitted(root: JsonSchema, demands: readonly Json[], value: Json): boolean {
  for (const flat of alternatives(root, demands, 0)) if (flat.every((one) => admits(one, value))) return true;
  return false;
}

function admits(demand: Json, value: Json): boolean {
  if (!isObject(demand)) return demand !== false;
  const { const: only, enum: words, type, nullable } = demand;
  if (only !== undefined && !isSame(only, value)) return false;
  if (Array.isArray(words) && !words.some((word) => isSame(word as Json, value))) return false;
  if (type === undefined || (nullable === true && value === null)) return true;
  return [type].flat().some((one) => isOfType(one, value));
}

/** Members may come in another order: then it is for the validator to say. */
function isSame(a: Json, b: Json): boolean {
  return a === b || (typeof a === "object" && typeof b === "object");
}

function isOfType(type: Json, value: Json): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return type === "null" ? value === null : typeof value === type;
}

/**
 * The same demands without references and combinators: one list for each way to meet them. `not` and what an `if` rules
 * out are left to the validator.
 */
function* alternatives(
  root: JsonSchema,
  demands: readonly Json[],
  depth: number,
): Generator<readonly Json[]> {
  const open = demands.findIndex(
    (demand) => isObject(demand) && COMBINED.some((key) => Object.hasOwn(demand, key)),
  );
  if (open === -1 || depth > MOST_COMBINED) {
    yield demands;
    return;
  }
  const rest = demands.toSpliced(open, 1);
  for (const instead of opened(root, demands[open] as JsonObject))
    yield* alternatives(root, [...rest, ...instead], depth + 1);
}

const COMBINED = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if"] as const;
const MOST_COMBINED = 24;

/** What may stand in the place of a demand: one of its combinators is resolved. */
function opened(root: JsonSchema, demand: JsonObject): readonly (readonly Json[])[] {
  const key = COMBINED.find((name) => Object.hasOwn(demand, name))!;
  const { [key]: value, ...rest } = demand;
  if (key === "$ref" || key === "$dynamicRef") {
    const target =
      typeof value === "string" ? (followRef(root, value)?.value ?? anchored(root, value)) : undefined;
    return [[rest, ...(target === undefined ? [] : [target])]];
  }
  if (key === "if") {
    const { then: met = true, else: unmet = true, ...plain } = rest;
    return [
      [plain, value!, met],
      [plain, unmet],
    ];
  }
  const list: readonly Json[] = Array.isArray(value) ? value : [];
  if (key === "allOf") return [[rest, ...list]];
  // `oneOf` is tried like `anyOf`: that only one of them fits is for the validator to say.
  const options = list.map((option) => [rest, option]);
  return key === "anyOf" ? [...options, [rest, ...list]] : options;
}

function anchored(part: Json, ref: string): Json | undefined {
  if (Array.isArray(part)) {
    for (const item of part) {
      const found = anchored(item as Json, ref);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isObject(part)) return undefined;
  const names = [part.$anchor, part.$dynamicAnchor];
  if ((ref.startsWith("#") && names.includes(ref.slice(1))) || part.$id === ref) return part;
  for (const member of Object.values(part)) {
    const found = anchored(member, ref);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Values for demands that hold no combinators. */
function* ofOne(around: Around, demands: readonly JsonObject[], tree: Tree): Generator<Json> {
  const hasInner = Object.keys(tree.below).length > 0;
  const listed = hasInner ? [] : [...suggested(demands)];
  for (const value of listed) yield value;
  if (demands.some((demand) => demand.enum !== undefined || demand.const !== undefined)) return;
  const types = hasInner
    ? ["object", "array"].filter((type) => around.isLenient || typesOf(demands).includes(type))
    : typesOf(demands);
  for (const type of types) {
    if (type === "object") yield* objects(around, demands, tree);
    else if (type === "array") yield* arrays(around, demands, tree);
    else if (type === "string") yield* strings(around, demands);
    else if (type === "number" || type === "integer") yield* numbers(demands, type === "integer");
    else if (type === "boolean") yield* [true, false];
    else yield null;
  }
}

/** What the author wrote down as a value: those that all demands list come first. */
function* suggested(demands: readonly JsonObject[]): Generator<Json> {
  for (const { const: only } of demands) if (only !== undefined) yield only;
  for (const { enum: words } of demands) if (Array.isArray(words)) yield* words as readonly Json[];
  for (const { examples } of demands) if (Array.isArray(examples)) yield* examples as readonly Json[];
  for (const { default: usual } of demands) if (usual !== undefined) yield usual;
}

/** In the order in which they are tried: what the demands are about, then anything. */
function typesOf(demands: readonly JsonObject[]): readonly string[] {
  const named = demands.flatMap(({ type }) => (type === undefined ? [] : [[type].flat() as readonly Json[]]));
  const allowed = TYPES.filter((type) =>
    named.every((list) => list.includes(type) || (type === "integer" && list.includes("number"))),
  ).filter((type) => type !== "integer" || named.some((list) => list.includes("integer")));
  const isAbout = (type: string) =>
    demands.some((demand) => Object.keys(demand).some((key) => KEYS_OF[type]?.test(key)));
  if (named.length > 0) return allowed;
  return [...allowed.filter(isAbout), ...allowed.filter((type) => !isAbout(type))];
}

const TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"];
const KEYS_OF: { readonly [type: string]: RegExp } = {
  object: /ropert|required|depende/i,
  array: /tems$|ontains$/,
  string: /^(?:pattern|format|minLength|maxLength)$/,
  number: /imum$|^multipleOf$/,
};

function limit(
  demands: readonly JsonObject[],
  key: string,
  pick: (...of: number[]) => number,
  none: number,
): number {
  const found = demands.flatMap((demand) => (typeof demand[key] === "number" ? [demand[key]] : []));
  return found.length === 0 ? none : pick(...found);
}

// Objects.

function* objects(around: Around, demands: readonly JsonObject[], tree: Tree): Generator<JsonObject> {
  const names = new Set(
    demands.flatMap(({ required }) => (Array.isArray(required) ? (required as string[]) : [])),
  );
  const absent = Object.keys(tree.below).filter((name) => tree.below[name]!.absent);
  if (!around.isLenient && absent.some((name) => names.has(name))) return;
  for (const [name, part] of Object.entries(tree.below)) if (isWanted(part)) names.add(name);
  spreadDependencies(demands, names);
  for (const name of fillers(demands, names)) names.add(name);
  for (const name of absent) names.delete(name);
  yield* members(around, demands, tree, [...names]);
  // A schema may want a member without saying so: each optional one is tried.
  const optional = demands
    .flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : []))
    .filter((name) => !names.has(name) && !absent.includes(name));
  for (const name of optional) yield* members(around, demands, tree, [...names, name]);
  if (optional.length > 1) yield* members(around, demands, tree, [...names, ...optional]);
}

/** A member of which only something is to be absent may as well be left out itself. */
function isWanted({ absent, below }: Tree): boolean {
  const parts = Object.values(below);
  return absent === undefined && (parts.length === 0 || parts.some(isWanted));
}

function spreadDependencies(demands: readonly JsonObject[], names: Set<string>): void {
  for (const demand of demands)
    for (const map of [demand.dependentRequired, demand.dependencies])
      if (isObject(map))
        for (const [name, also] of Object.entries(map))
          if (names.has(name) && Array.isArray(also)) for (const other of also) names.add(String(other));
}

/** Names for as many members as the object must have. */
function fillers(demands: readonly JsonObject[], names: ReadonlySet<string>): readonly string[] {
  const missing = limit(demands, "minProperties", Math.max, 0) - names.size;
  if (missing <= 0) return [];
  const known = demands.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : []));
  const patterned = demands.flatMap(({ patternProperties }) =>
    isObject(patternProperties)
      ? Object.keys(patternProperties).flatMap((pattern) => Array.from(textsFor(pattern)))
      : [],
  );
  const plain = demands.flatMap(({ propertyNames }) =>
    isObject(propertyNames)
      ? [
          ...some(
            values({ root: propertyNames, depth: 0 }, [{ type: "string" }, propertyNames], NOTHING),
            missing,
          ),
        ]
      : [],
  );
  const made = Array.from({ length: missing }, (_, at) => `member${at + 1}`);
  const candidates = [...known, ...plain.filter((name) => typeof name === "string"), ...patterned, ...made];
  return [...new Set(candidates)].filter((name) => !names.has(name)).slice(0, missing);
}

/** Objects with just these members: the first value of each, then one other value at a time, then two. */
function* members(
  around: Around,
  demands: readonly JsonObject[],
  tree: Tree,
  names: readonly string[],
): Generator<JsonObject> {
  const present = demands.flatMap(({ dependentSchemas, dependencies }) =>
    [dependentSchemas, dependencies].flatMap((map) =>
      isObject(map)
        ? names.flatMap((name) => {
            const also = own(map, name);
            return isObject(also) || also === false ? [also] : [];
          })
        : [],
    ),
  );
  if (present.length > 0) {
    const without = demands.map(({ dependentSchemas: _all, dependencies: _each, ...rest }) => rest);
    const wanted = names.reduce(
      (grown, name) => planted(grown, [name], own(grown.below, name) ?? NOTHING),
      tree,
    );
    yield* values(
      { ...around, depth: around.depth + 1 },
      [...without, ...present],
      wanted,
    ) as Generator<JsonObject>;
    return;
  }
  const lists = names.map((name) => [
    ...some(
      values(
        { ...around, depth: around.depth + 1, name },
        demandsOn(demands, name),
        own(tree.below, name) ?? NOTHING,
      ),
      MOST_EACH,
    ),
  ]);
  if (lists.some((list) => list.length === 0)) return;
  for (const row of variations(lists)) yield Object.fromEntries(names.map((name, at) => [name, row[at]!]));
}

const MOST_EACH = 24;

function demandsOn(demands: readonly JsonObject[], name: string): readonly Json[] {
  return demands.flatMap(({ properties, patternProperties, additionalProperties, unevaluatedProperties }) => {
    const declared = isObject(properties) ? own(properties, name) : undefined;
    const patterned = isObject(patternProperties)
      ? Object.entries(patternProperties).flatMap(([pattern, schema]) =>
          matches(pattern, name) ? [schema] : [],
        )
      : [];
    const found = declared === undefined ? patterned : [declared, ...patterned];
    if (found.length > 0) return found;
    return additionalProperties ?? (demands.length === 1 ? unevaluatedProperties : undefined) ?? [];
  });
}

function matches(pattern: string, text: string): boolean {
  const read = readPattern(pattern);
  return read.kind === "matcher" && read.matcher.test(text);
}

/** One row takes a value of each list: all first ones, then one other at a time, then two others. */
function* variations(lists: readonly (readonly Json[])[]): Generator<readonly Json[]> {
  const first: readonly Json[] = lists.map((list) => list[0]!);
  yield first;
  for (const [at, list] of lists.entries()) for (const value of list.slice(1)) yield first.with(at, value);
  for (const [at, list] of lists.entries())
    for (const [other, others] of lists.entries())
      if (other > at)
        for (const value of list.slice(1))
          for (const also of others.slice(1)) yield first.with(at, value).with(other, also);
}

function* some<T>(from: Iterable<T>, most: number): Generator<T> {
  let given = 0;
  for (const value of from) {
    if (given++ >= most) return;
    yield value;
  }
}

// Lists.

function* arrays(around: Around, demands: readonly JsonObject[], tree: Tree): Generator<readonly Json[]> {
  const contained = demands.flatMap(({ contains, minContains = 1 }) =>
    contains === undefined ? [] : [{ contains, times: Number(minContains) }],
  );
  const wanted = Object.keys(tree.below).map((key) => Number(key) + 1);
  const least = Math.max(
    limit(demands, "minItems", Math.max, 0),
    ...contained.map(({ times }) => times),
    ...wanted.filter(Number.isInteger),
  );
  const isUnique = demands.some(({ uniqueItems }) => uniqueItems === true);
  for (const length of [least, least + 1, 0, 1]) {
    if (length > MOST_ITEMS) return;
    const items = itemsOf(around, demands, tree, length, contained);
    if (items === null) continue;
    if (isUnique) yield distinct(items);
    else yield* variations(items);
  }
}

const MOST_ITEMS = 10_000;

function itemsOf(
  around: Around,
  demands: readonly JsonObject[],
  tree: Tree,
  length: number,
  contained: readonly { readonly contains: Json; readonly times: number }[],
): readonly (readonly Json[])[] | null {
  const lists = Array.from({ length }, (_, at) => {
    const also = contained.flatMap(({ contains, times }) => (at < times ? [contains] : []));
    const { name: _name, ...rest } = around;
    const inner: Around = { ...rest, depth: around.depth + 1 };
    const most = Math.max(MOST_EACH, Math.min(length, 200));
    return [
      ...some(
        values(inner, [...demandsAt(demands, at), ...also], own(tree.below, String(at)) ?? NOTHING),
        most,
      ),
    ];
  });
  return lists.some((list) => list.length === 0) ? null : lists;
}

function demandsAt(demands: readonly JsonObject[], at: number): readonly Json[] {
  return demands.flatMap(({ items, prefixItems, additionalItems }) => {
    const prefix: readonly Json[] = Array.isArray(prefixItems)
      ? prefixItems
      : Array.isArray(items)
        ? items
        : [];
    const rest = Array.isArray(items) ? additionalItems : items;
    return prefix[at] ?? rest ?? [];
  });
}

function distinct(lists: readonly (readonly Json[])[]): readonly Json[] {
  const seen = new Set<string>();
  return lists.map((list) => {
    const value = list.find((each) => !seen.has(JSON.stringify(each))) ?? list[0]!;
    seen.add(JSON.stringify(value));
    return value;
  });
}

// Scalars.

function* strings({ name }: Around, demands: readonly JsonObject[]): Generator<string> {
  const least = limit(demands, "minLength", Math.max, 0);
  const most = limit(demands, "maxLength", Math.min, Infinity);
  for (const { format } of demands)
    if (typeof format === "string") yield* (own(FORMATS, format) ?? []).filter((text) => text.length <= most);
  for (const { pattern } of demands) if (typeof pattern === "string") yield* textsFor(pattern, least, most);
  const words = [
    name ?? "text",
    "text",
    "other",
    ...Array.from({ length: 40 }, (_, at) => `text ${at + 1}`),
    "",
  ];
  // A length counts characters, of which some take two places.
  for (const word of words) {
    const text = word.length < least ? word.padEnd(Math.min(least, LONGEST_TEXT), word || "a") : word;
    yield text.length > most ? text.slice(0, most) : text;
  }
  yield "\u{1f600}".repeat(Math.min(least, LONGEST_TEXT));
}

const LONGEST_TEXT = 1_000_000;

function* numbers(demands: readonly JsonObject[], isInteger: boolean): Generator<number> {
  const steps = demands.flatMap(({ multipleOf }) => (typeof multipleOf === "number" ? [multipleOf] : []));
  const step = isInteger && !steps.every(Number.isInteger) ? 1 : (steps[0] ?? (isInteger ? 1 : 0));
  const least = Math.max(
    limit(demands, "minimum", Math.max, -Infinity),
    limit(demands, "exclusiveMinimum", Math.max, -Infinity),
  );
  const most = Math.min(
    limit(demands, "maximum", Math.min, Infinity),
    limit(demands, "exclusiveMaximum", Math.min, Infinity),
  );
  const candidates = [0, 1, least, most, least + 1, most - 1, (least + most) / 2, least + 1e-6, most - 1e-6];
  for (const near of candidates.filter(Number.isFinite)) {
    if (step === 0) yield near;
    else for (const times of [0, 1, -1, 2]) yield (Math.round(near / step) + times) * step;
  }
  const product = steps.reduce((all, one) => all * one, 1);
  yield product;
  for (let at = 2; at < 12; at++) yield at;
  if (!isInteger) yield 0.5;
}
