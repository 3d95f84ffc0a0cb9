/**
 * The smallest value that fits a JSON Schema, with given values at given places. The schema is read as a list of demands
 * on one value; what the demands leave open is tried, and the validator of the engine has the last word.
 */
import { validate } from "../engine/schema/schema.ts";
import { isObject, own, type Json, type JsonObject, type JsonSchema, type Path } from "../flow/json.ts";
import { textsFor } from "./pattern-text.ts";
import {
  alternatives,
  demandedLimit,
  demandsAt,
  demandsOn,
  isAdmitted,
  suggested,
  typesOf,
} from "./schema-demands.ts";
import { numbersWithin, textsWithin } from "./schema-scalars.ts";

/** What is asked of the value beside its schema. */
export type WantedValue = {
  readonly with?: readonly { readonly path: Path; readonly value: Json }[];
  readonly without?: readonly Path[];
  /** Places that hold something, whatever it is. */
  readonly having?: readonly Path[];
};

export type Synthesised =
  | { readonly kind: "value"; readonly value: Json }
  /** `why`: what the validator says about the best try. `isProved`: no value can fit; else none was found. */
  | { readonly kind: "none"; readonly tried: number; readonly why: string; readonly isProved: boolean };

export function synthesise(schema: JsonSchema, wanted: WantedValue = {}): Synthesised {
  let tried = 0;
  let why = "the schema leaves nothing to choose from";
  const around: Around = { root: schema, depth: 0, cut: { isCut: false } };
  for (const value of values(around, [schema], treeOf(wanted))) {
    const errors = validate(schema, value);
    if (errors.length === 0) return { kind: "value", value };
    if (tried++ === 0) why = errors.join("; ");
    if (tried >= MOST_TRIES) break;
  }
  if (tried > 0) return { kind: "none", tried, why, isProved: false };
  return { kind: "none", tried, why: whyNone(schema, wanted, why), isProved: !around.cut.isCut };
}

/** Where a given value fits nowhere, the validator says so about a value that has it all the same. */
function whyNone(schema: JsonSchema, wanted: WantedValue, otherwise: string): string {
  const around: Around = { root: schema, depth: 0, isLenient: true, cut: { isCut: false } };
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
  /** Something was left untried because there would be no end to it. */
  readonly cut: { isCut: boolean };
};

function cutOff({ cut }: Around): void {
  cut.isCut = true;
}

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
  if (around.depth > DEEPEST) return cutOff(around);
  for (const flat of alternatives(around.root, demands, 0)) {
    if (flat.includes(false)) continue;
    yield* ofOne(around, flat.filter(isObject), tree);
  }
}

/** Values for demands that hold no combinators. */
function* ofOne(around: Around, demands: readonly JsonObject[], tree: Tree): Generator<Json> {
  const hasInner = Object.keys(tree.below).length > 0;
  const listed = hasInner ? [] : [...suggested(demands)];
  for (const value of listed) yield value;
  if (demands.some((demand) => demand.enum !== undefined || demand.const !== undefined))
    return hasInner ? cutOff(around) : undefined;
  const types = hasInner
    ? ["object", "array"].filter((type) => around.isLenient || typesOf(demands).includes(type))
    : typesOf(demands);
  for (const type of types) {
    if (type === "object") yield* objects(around, demands, tree);
    else if (type === "array") yield* arrays(around, demands, tree);
    else if (type === "string") yield* textsWithin(around, demands);
    else if (type === "number" || type === "integer") yield* numbersWithin(demands, type === "integer");
    else if (type === "boolean") yield* [true, false];
    else yield null;
  }
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
  for (const name of fillers(around, demands, names)) names.add(name);
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
function fillers(
  around: Around,
  demands: readonly JsonObject[],
  names: ReadonlySet<string>,
): readonly string[] {
  const missing = demandedLimit(demands, "minProperties", Math.max, 0) - names.size;
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
            values(
              { ...around, root: propertyNames, depth: 0 },
              [{ type: "string" }, propertyNames],
              NOTHING,
            ),
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
  const lists = names.map((name) =>
    listed(
      values(
        { ...around, depth: around.depth + 1, name },
        demandsOn(demands, name),
        own(tree.below, name) ?? NOTHING,
      ),
      MOST_EACH,
    ),
  );
  for (const row of variations(lists)) yield Object.fromEntries(names.map((name, at) => [name, row[at]!]));
}

const MOST_EACH = 24;

/** A list that is made as far as it is looked at. */
type Listed = (at: number) => Json | undefined;

function listed(from: Generator<Json>, most: number): Listed {
  const known: Json[] = [];
  let left = most;
  return (at) => {
    for (; known.length <= at && left > 0; left--) {
      const next = from.next();
      if (next.done === true) left = 1;
      else known.push(next.value);
    }
    return known[at];
  };
}

/** All but the first. */
function* others(list: Listed): Generator<Json> {
  for (let at = 1, value = list(at); value !== undefined; value = list(++at)) yield value;
}

/** One row takes a value of each list: all first ones, then one other at a time, then two others. No row if one is empty. */
function* variations(lists: readonly Listed[]): Generator<readonly Json[]> {
  const first: Json[] = [];
  for (const list of lists) {
    const value = list(0);
    if (value === undefined) return;
    first.push(value);
  }
  yield first;
  for (const [at, list] of lists.entries()) for (const value of others(list)) yield first.with(at, value);
  for (const [at, list] of lists.entries())
    for (const [other, more] of lists.entries())
      if (other > at)
        for (const value of others(list))
          for (const also of others(more)) yield first.with(at, value).with(other, also);
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
    demandedLimit(demands, "minItems", Math.max, 0),
    ...contained.map(({ times }) => times),
    ...wanted.filter(Number.isInteger),
  );
  const isUnique = demands.some(({ uniqueItems }) => uniqueItems === true);
  for (const length of [least, least + 1, 0, 1]) {
    if (length > MOST_ITEMS) return cutOff(around);
    const items = itemsOf(around, demands, tree, length, contained);
    if (isUnique) yield* distinct(items);
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
): readonly Listed[] {
  return Array.from({ length }, (_, at) => {
    const also = contained.flatMap(({ contains, times }) => (at < times ? [contains] : []));
    const { name: _name, ...rest } = around;
    const inner: Around = { ...rest, depth: around.depth + 1 };
    const most = Math.max(MOST_EACH, Math.min(length, 200));
    const wanted = own(tree.below, String(at)) ?? NOTHING;
    return listed(values(inner, [...demandsAt(demands, at), ...also], wanted), most);
  });
}

/** None if an item has no value. */
function* distinct(lists: readonly Listed[]): Generator<readonly Json[]> {
  const seen = new Set<string>();
  const row: Json[] = [];
  for (const list of lists) {
    const first = list(0);
    if (first === undefined) return;
    let value: Json = first;
    if (seen.has(JSON.stringify(first)))
      for (const other of others(list))
        if (!seen.has(JSON.stringify(other))) {
          value = other;
          break;
        }
    seen.add(JSON.stringify(value));
    row.push(value);
  }
  yield row;
}
