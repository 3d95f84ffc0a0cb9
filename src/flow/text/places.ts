/** Where things stand in a JSON text. Built only when a problem needs a place, since `JSON.parse` keeps none. */
import type { Json, JsonObject } from "../json.ts";
import { escapeSegment } from "../json-pointer.ts";

/** Levels of nesting in one JSON file. */
export const JSON_DEPTH = 200;

export type Place = { readonly line: number; readonly column: number };

export type Scan = {
  /** A member's place is that of its key, an element's that of its value. Unknown pointers take the nearest owner's. */
  readonly place: (pointer: string) => Place;
  /** The first thing that is not JSON, or null. */
  readonly fault: { readonly place: Place; readonly what: string } | null;
};

/** A part of a text: where it begins, and where it is over. */
export type Stretch = { readonly from: number; readonly to: number };

/** Everything an editor of the text must know. `null` for a text that is not JSON, or that names a member twice. */
export type Layout = {
  readonly keys: ReadonlyMap<string, number>;
  readonly spans: ReadonlyMap<string, Stretch>;
  readonly place: (pointer: string) => Place;
};

export function layOut(text: string): Layout | null {
  const spans = new Map<string, Stretch>();
  const { offsets, place, fault, repeated } = scan(text, spans);
  return fault !== null || repeated.length > 0 ? null : { keys: offsets, spans, place };
}

/** How many members a JSON text has; null where it nests deeper than is read: what walks over its value would overflow. */
export function membersWritten(text: string): number | null {
  let depth = 0;
  let members = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      do at = text.indexOf('"', at + 1);
      while (at !== -1 && text.charCodeAt(at - 1) === BACKSLASH && isEscaped(text, at));
      if (at === -1) break;
    } else if (char === COLON) members += 1;
    else if (char === BRACE || char === BRACKET) {
      depth += 1;
      if (depth > JSON_DEPTH) return null;
    } else if (char === BRACE_END || char === BRACKET_END) depth -= 1;
  }
  return members;
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

const [QUOTE, BACKSLASH, BRACE, BRACE_END, BRACKET, BRACKET_END, COLON] = [
  0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d, 0x3a,
];

/** Fewer than were written: a parser keeps only the last one of those with the same name. */
export function membersKept(value: Json): number {
  if (typeof value !== "object" || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) if (typeof item === "object") members += membersKept(item);
    return members;
  }
  const record = value as JsonObject;
  // All are its own: it is the value of a JSON text.
  for (const key in record) {
    const member = record[key]!;
    members += typeof member === "object" ? 1 + membersKept(member) : 1;
  }
  return members;
}

/** Members whose name stood in their object before, of a text that is valid JSON. */
export function repeatedMembers(text: string): readonly Repeated[] {
  const { repeated } = scan(text, null);
  const place = placer(text);
  return repeated.map(({ pointer, offset }) => ({ pointer, place: place(offset) }));
}

const MOST_REPEATED = 100;

export type Repeated = { readonly pointer: string; readonly place: Place };

export function scanJson(text: string): Scan {
  return scan(text, null);
}

type FullScan = Scan & {
  readonly offsets: ReadonlyMap<string, number>;
  readonly repeated: readonly { readonly pointer: string; readonly offset: number }[];
};

/** One pass over the text, with a stack of its own: no depth of nesting can overflow it. */
function scan(text: string, spans: Map<string, Stretch> | null): FullScan {
  const offsets = new Map<string, number>([["", 0]]);
  const repeated: { pointer: string; offset: number }[] = [];
  const open: Container[] = [];
  let at = 0;
  let fault: { offset: number; what: string } | null = null;
  let expect: "value" | "value-or-end" | "key" | "key-or-end" | "comma-or-end" | "nothing" = "value";

  const fail = (what: string) => {
    fault = { offset: at, what };
  };
  const pointerHere = () => {
    const top = open.at(-1);
    return top === undefined ? "" : `${top.pointer}/${top.key ?? top.index}`;
  };
  const close = () => {
    at += 1;
    const { pointer, from } = open.pop()!;
    spans?.set(pointer, { from, to: at });
    expect = open.length === 0 ? "nothing" : "comma-or-end";
  };

  for (;;) {
    while (isSpace(text.charCodeAt(at))) at += 1;
    const char = text[at];
    const top = open.at(-1);

    if (char === "/" && /[/*]/.test(text[at + 1] ?? "")) {
      fail("JSON has no comments");
      break;
    }
    if (expect === "nothing") {
      if (char !== undefined) fail("there is text after the end of the value");
      break;
    }
    if (char === undefined) {
      fail(top === undefined ? "the file is empty" : `the file ends inside ${nameOf(top)}`);
      break;
    }

    if (expect === "comma-or-end") {
      const end = top!.key === null ? "]" : "}";
      if (char === end) close();
      else if (char === ",") {
        at += 1;
        top!.index += 1;
        expect = top!.key === null ? "value" : "key";
      } else {
        fail(`"," or "${end}" is missing`);
        break;
      }
      continue;
    }

    if (expect === "key" || expect === "key-or-end") {
      if (char === "}" && expect === "key-or-end") {
        close();
        continue;
      }
      if (char !== '"') {
        fail(char === "}" ? 'there is a comma before "}"' : "a name in double quotes is missing");
        break;
      }
      const end = endOfString(text, at);
      if (end === -1) {
        fail("this string is not closed, or contains a character that must be escaped");
        break;
      }
      const from = at;
      const name = text.slice(at + 1, end - 1);
      top!.key = escapeSegment(name.includes("\\") ? (JSON.parse(text.slice(at, end)) as string) : name);
      const pointer = pointerHere();
      if (top!.names.has(top!.key) && repeated.length < MOST_REPEATED)
        repeated.push({ pointer, offset: from });
      top!.names.add(top!.key);
      offsets.set(pointer, from);
      at = end;
      while (isSpace(text.charCodeAt(at))) at += 1;
      if (text[at] !== ":") {
        fail('":" is missing');
        break;
      }
      at += 1;
      expect = "value";
      continue;
    }

    if (char === "]" && expect === "value-or-end") {
      close();
      continue;
    }
    if (top?.key === null) offsets.set(pointerHere(), at);
    else if (top === undefined) offsets.set("", at);

    if ((char === "{" || char === "[") && open.length >= JSON_DEPTH) {
      fail(`it is nested deeper than ${JSON_DEPTH} levels`);
      break;
    }
    if (char === "{" || char === "[") {
      open.push({
        pointer: pointerHere(),
        from: at,
        key: char === "{" ? "" : null,
        index: 0,
        names: new Set(),
      });
      at += 1;
      expect = char === "{" ? "key-or-end" : "value-or-end";
      continue;
    }
    const end = char === '"' ? endOfString(text, at) : endOfWord(text, at);
    if (end === -1) {
      fail(
        char === '"'
          ? "this string is not closed, or contains a character that must be escaped"
          : char === "]" || char === "}"
            ? `there is a comma before "${char}", or a value is missing`
            : "this is not a valid JSON value",
      );
      break;
    }
    spans?.set(pointerHere(), { from: at, to: end });
    at = end;
    expect = open.length === 0 ? "nothing" : "comma-or-end";
  }

  const found = fault as { offset: number; what: string } | null;
  const lines = lineStarts(text);
  return {
    offsets,
    repeated,
    place: (pointer) => placeAt(lines, nearest(offsets, pointer)),
    fault: found === null ? null : { place: placeAt(lines, found.offset), what: found.what },
  };
}

/** Places by pointer in any text, where it is known at which offset things begin. */
export function placesAt(text: string, offsets: ReadonlyMap<string, number>): (pointer: string) => Place {
  const place = placer(text);
  return (pointer) => place(nearest(offsets, pointer));
}

/** The places of offsets in a text: its lines are counted once, when the first place is wanted. */
export function placer(text: string): (offset: number) => Place {
  let lines: readonly number[] | null = null;
  return (offset) => placeAt((lines ??= lineStarts(text)), offset);
}

/** The place of an offset in any text. */
export function placeIn(text: string, offset: number): Place {
  return placeAt(lineStarts(text), offset);
}

/** `key` is null in an array and the escaped name of the current member in an object. */
type Container = {
  readonly pointer: string;
  readonly from: number;
  key: string | null;
  index: number;
  readonly names: Set<string>;
};

/** The end of the text is none. */
function isSpace(char: number): boolean {
  return char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09;
}

const WORD = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;

function endOfWord(text: string, from: number): number {
  WORD.lastIndex = from;
  return WORD.test(text) ? WORD.lastIndex : -1;
}

function endOfString(text: string, from: number): number {
  for (let i = from + 1; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x22) return i + 1;
    if (char < 0x20) return -1;
    if (char !== 0x5c) continue;
    i += 1;
    const escape = text[i];
    if (escape === "u") {
      if (!/^[0-9a-fA-F]{4}$/.test(text.slice(i + 1, i + 5))) return -1;
      i += 4;
    } else if (escape === undefined || !'"\\/bfnrt'.includes(escape)) return -1;
  }
  return -1;
}

function nameOf(container: Container): string {
  return container.key === null ? "a list that was not closed" : "an object that was not closed";
}

function nearest(offsets: ReadonlyMap<string, number>, pointer: string): number {
  for (let here = pointer; ; here = here.slice(0, here.lastIndexOf("/"))) {
    const offset = offsets.get(here);
    if (offset !== undefined) return offset;
    if (here === "") return 0;
  }
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function placeAt(starts: readonly number[], offset: number): Place {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - starts[low]! + 1 };
}
