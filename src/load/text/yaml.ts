/**
 * YAML as a document like any other: its value, and the place of anything in it. Only what JSON has too: no tags, string
 * keys, no key twice, aliases in bounds. Imported only where there are stages, so that other runs never load a parser.
 */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  visit,
  type Document as YamlDocument,
  type Node,
} from "yaml";
import type { Json, JsonObject } from "../../flow/json.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import type { Document } from "./document.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { placeIn, placesAt, type Stretch } from "../../flow/text/places.ts";
import { errorText } from "../../flow/text/harmless.ts";

export type YamlRead =
  | { readonly kind: "read"; readonly document: Document }
  | { readonly kind: "broken"; readonly faults: readonly YamlFault[] };

/** `document` has no value; it is there so that a finding can name the place. */
export type YamlFault = { readonly document: Document; readonly what: string };

/** The most that a text may hold. */
export type YamlSize = { readonly [key in "yamlLength" | "yamlNodes" | "yamlDepth"]: number };

/**
 * `text` is the whole file, of which `part` is YAML. `marks`: further places in the file, by pointer.
 *
 *     readYaml("a.yaml", "x: 1").document.value  // { x: 1 }
 */
export function readYaml(
  file: string,
  text: string,
  part: Stretch = { from: 0, to: text.length },
  marks: ReadonlyMap<string, number> = new Map(),
  most: YamlSize = DEFAULTS,
): YamlRead {
  const broken = (faults: readonly Fault[]): YamlRead => ({
    kind: "broken",
    faults: [...Map.groupBy(faults, ({ what }) => what)].slice(0, MOST_FAULTS).map(([what, [first]]) => ({
      document: { file, value: null, isYaml: true, place: () => placeIn(text, part.from + first!.offset) },
      what,
    })),
  });
  const parsed = parse(text.slice(part.from, part.to), most);
  if (parsed.kind === "faults") return broken(parsed.faults);
  const offsets = new Map([["", part.from], ...marks]);
  for (const [pointer, offset] of parsed.offsets) offsets.set(pointer, part.from + offset);
  return {
    kind: "read",
    document: { file, value: parsed.value, isYaml: true, place: placesAt(text, offsets) },
  };
}

/** One mistake can look like many. */
const MOST_FAULTS = 5;

type Fault = { readonly offset: number; readonly what: string };
type Parsed =
  | { readonly kind: "value"; readonly value: Json; readonly offsets: ReadonlyMap<string, number> }
  | { readonly kind: "faults"; readonly faults: readonly Fault[] };

function parse(text: string, most: YamlSize): Parsed {
  if (text.length > most.yamlLength)
    return faults({ offset: 0, what: `it is longer than ${most.yamlLength} characters` });
  try {
    const document = parseDocument(text, OPTIONS);
    const inPlace = (found: readonly { pos: readonly [number, number]; message: string }[]) =>
      found
        .map(({ pos, message }) => ({ offset: pos[0], what: inWords(message) }))
        .toSorted((a, b) => a.offset - b.offset);
    // What follows the first one is most often found only because of it.
    const [first] = inPlace(document.errors);
    if (first !== undefined) return faults(first);
    const wrong = [...inPlace(document.warnings), ...repeatedKeys(document)];
    if (wrong.length > 0) return faults(...wrong.toSorted((a, b) => a.offset - b.offset));
    // JSON has no such numbers, so they are the words they are written with.
    visit(document, {
      Scalar: (_, node) => {
        if (typeof node.value === "number" && !Number.isFinite(node.value)) node.value = node.source ?? "";
      },
    });
    const value = document.toJS({ maxAliasCount: DEFAULTS.yamlAliases }) as Json;
    const what = excess(value, most);
    if (what !== null) return faults({ offset: 0, what });
    const offsets = new Map<string, number>();
    collect(document.contents, "", offsets);
    return { kind: "value", value, offsets };
  } catch (error) {
    return faults({ offset: 0, what: inWords(errorText(error)) });
  }
}

const OPTIONS = {
  version: "1.2",
  schema: "core",
  strict: true,
  stringKeys: true,
  // Looked for below: the parser compares every key with every other one.
  uniqueKeys: false,
  resolveKnownTags: false,
  prettyErrors: false,
  logLevel: "error",
} as const;

function repeatedKeys(document: YamlDocument): readonly Fault[] {
  const found: Fault[] = [];
  visit(document, {
    Map: (_, { items }) => {
      const names = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = isNumericKey(key.value) ? String(key.value) : key.value;
        if (names.has(name))
          found.push({ offset: key.range?.[0] ?? 0, what: `the key "${String(name)}" occurs twice` });
        names.add(name);
      }
    },
  });
  return found;
}

function isNumericKey(value: unknown): boolean {
  return typeof value === "number" || typeof value === "boolean";
}

function faults(...list: readonly Fault[]): Parsed {
  return { kind: "faults", faults: list };
}

function inWords(message: string): string {
  if (message.startsWith("Excessive alias count")) return "its aliases expand to too many values";
  // The parser meets the end of the stack in a call or in one of its regular expressions.
  if (/^Maximum call stack|: Stack overflow$/.test(message)) return "it is nested too deeply";
  if (message.startsWith("Tabs are not allowed"))
    return "a tab is used for indentation; YAML allows only spaces";
  if (message === "With stringKeys, all keys must be strings") return "a key must be a plain word";
  return message.replace(/; please use YAML\.parseAllDocuments\(\)$/, "").replace(/\.$/, "");
}

/** Aliases can make a short text large, or lead round in a circle. */
function excess(value: Json, most: YamlSize): string | null {
  let nodes = 0;
  const tooMuch = (here: Json, depth: number): string | null => {
    nodes += 1;
    if (depth > most.yamlDepth) return `it is nested deeper than ${most.yamlDepth} levels`;
    if (nodes > most.yamlNodes) return `it has more than ${most.yamlNodes} values`;
    if (typeof here !== "object" || here === null) return null;
    for (const member of Object.values(here as JsonObject)) {
      const what = tooMuch(member, depth + 1);
      if (what !== null) return what;
    }
    return null;
  };
  return tooMuch(value, 0);
}

/** A member stands where its key does, an element where its value does. What an alias stands for is written elsewhere. */
function collect(node: Node | null, pointer: string, offsets: Map<string, number>): void {
  if (node === null || isAlias(node)) return;
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      const place = `${pointer}/${index}`;
      const start = (item as Node | null)?.range?.[0];
      if (start !== undefined) offsets.set(place, start);
      collect(item as Node | null, place, offsets);
    }
  }
  if (!isMap(node)) return;
  for (const { key, value } of node.items) {
    if (!isScalar(key)) continue;
    const place = `${pointer}/${escapeSegment(String(key.value))}`;
    if (key.range) offsets.set(place, key.range[0]);
    collect(value as Node | null, place, offsets);
  }
}
