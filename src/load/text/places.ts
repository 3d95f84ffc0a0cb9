/** Where things stand in a JSON text. Built only when a problem needs a place, since `JSON.parse` keeps none. */
import type { Path } from "../../flow/json.ts";
import { DEFAULTS } from "../agent/defaults.ts";

export type Place = { readonly line: number; readonly column: number };

export type Scan = {
  /** A member's place is that of its key, an element's that of its value. Unknown pointers take the nearest owner's. */
  readonly place: (pointer: string) => Place;
  /** The first thing that is not JSON, or null. */
  readonly fault: { readonly place: Place; readonly what: string } | null;
};

/** Where a value begins and where it is over. */
export type Span = { readonly from: number; readonly to: number };

/** Everything an editor of the text must know. `null` for a text that is no JSON, or that names a member twice. */
export type Layout = {
  readonly keys: ReadonlyMap<string, number>;
  readonly spans: ReadonlyMap<string, Span>;
  readonly place: (pointer: string) => Place;
};

export function layOut(text: string): Layout | null {
  const spans = new Map<string, Span>();
  const { offsets, place, fault, isTwofold } = scan(text, spans);
  return fault !== null || isTwofold ? null : { keys: offsets, spans, place };
}

/** Whether a JSON text nests deeper than is read: what walks over its value would run out of room. */
export function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      for (at += 1; at < text.length && text.charCodeAt(at) !== QUOTE; at += 1)
        if (text.charCodeAt(at) === BACKSLASH) at += 1;
    } else if (char === BRACE || char === BRACKET) {
      depth += 1;
      if (depth > DEFAULTS.jsonDepth) return true;
    } else if (char === BRACE_END || char === BRACKET_END) depth -= 1;
  }
  return false;
}

const [QUOTE, BACKSLASH, BRACE, BRACE_END, BRACKET, BRACKET_END, COMMA] = [
  0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d, 0x2c,
];

/** Members whose name stood in their object before, of a text that is valid JSON. A parser keeps only the last one. */
export function repeatedMembers(text: string): readonly Repeated[] {
  const found: { pointer: string; offset: number }[] = [];
  const open: { pointer: string; names: Set<string> | null; name: string; index: number }[] = [];
  let isKey = false;
  for (let at = 0; at < text.length; at += 1) {
    const top = open.at(-1);
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at);
        if (isKey && top?.names) {
          const raw = text.slice(at + 1, end - 1);
          top.name = raw.includes("\\") ? (JSON.parse(text.slice(at, end)) as string) : raw;
          if (top.names.has(top.name) && found.length < MOST_REPEATED)
            found.push({ pointer: `${top.pointer}/${escapeSegment(top.name)}`, offset: at });
          top.names.add(top.name);
          isKey = false;
        }
        at = end - 1;
        break;
      }
      case BRACE:
      case BRACKET: {
        const isObject = text[at] === "{";
        const segment =
          top === undefined ? "" : `/${top.names === null ? top.index : escapeSegment(top.name)}`;
        open.push({
          pointer: `${top?.pointer ?? ""}${segment}`,
          names: isObject ? new Set() : null,
          name: "",
          index: 0,
        });
        isKey = isObject;
        break;
      }
      case BRACE_END:
      case BRACKET_END:
        open.pop();
        break;
      case COMMA:
        if (top !== undefined) top.index += 1;
        isKey = top?.names != null;
    }
  }
  if (found.length === 0) return [];
  const lines = lineStarts(text);
  return found.map(({ pointer, offset }) => ({ pointer, place: placeAt(lines, offset) }));
}

const MOST_REPEATED = 100;

export type Repeated = { readonly pointer: string; readonly place: Place };

export function scanJson(text: string): Scan {
  return scan(text, null);
}

type FullScan = Scan & { readonly offsets: ReadonlyMap<string, number>; readonly isTwofold: boolean };

/** One pass over the text, with a stack of its own: no depth of nesting can overflow it. */
function scan(text: string, spans: Map<string, Span> | null): FullScan {
  const offsets = new Map<string, number>([["", 0]]);
  let isTwofold = false;
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
      if (char !== undefined) fail("there is more text after the end of the value");
      break;
    }
    if (char === undefined) {
      fail(top === undefined ? "the file holds no value" : `the file ends inside ${nameOf(top)}`);
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
        fail("this string is not closed, or holds a character that must be escaped");
        break;
      }
      const from = at;
      const name = text.slice(at + 1, end - 1);
      top!.key = escapeSegment(name.includes("\\") ? (JSON.parse(text.slice(at, end)) as string) : name);
      const pointer = pointerHere();
      if (spans !== null && offsets.has(pointer)) isTwofold = true;
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

    if ((char === "{" || char === "[") && open.length >= DEFAULTS.jsonDepth) {
      fail(`it nests deeper than ${DEFAULTS.jsonDepth} levels`);
      break;
    }
    if (char === "{" || char === "[") {
      open.push({ pointer: pointerHere(), from: at, key: char === "{" ? "" : null, index: 0 });
      at += 1;
      expect = char === "{" ? "key-or-end" : "value-or-end";
      continue;
    }
    const end = char === '"' ? endOfString(text, at) : endOfWord(text, at);
    if (end === -1) {
      fail(
        char === '"'
          ? "this string is not closed, or holds a character that must be escaped"
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
    isTwofold,
    place: (pointer) => placeAt(lines, nearest(offsets, pointer)),
    fault: found === null ? null : { place: placeAt(lines, found.offset), what: found.what },
  };
}

/** Places by pointer in any text, where it is known at which offset things begin. */
export function placesAt(text: string, offsets: ReadonlyMap<string, number>): (pointer: string) => Place {
  let lines: readonly number[] | null = null;
  return (pointer) => placeAt((lines ??= lineStarts(text)), nearest(offsets, pointer));
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

/** `["a/b", "c"]` → `/a~1b/c`. */
export function pointerOf(path: Path): string {
  return path.map((segment) => `/${escapeSegment(segment)}`).join("");
}

export function escapeSegment(segment: string): string {
  return segment.includes("~") || segment.includes("/")
    ? segment.replaceAll("~", "~0").replaceAll("/", "~1")
    : segment;
}

export function unescapeSegment(segment: string): string {
  return segment.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** `key` is null in an array and the escaped name of the current member in an object. */
type Container = { readonly pointer: string; readonly from: number; key: string | null; index: number };

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
