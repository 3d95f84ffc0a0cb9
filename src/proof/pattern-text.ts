/** Texts that a regular expression matches: the shortest first, and a few others. */
import { parsePattern, readPattern, type PatternNode } from "../flow/text/pattern.ts";

/** Every text given here was tried against the pattern. Few patterns have none: those that look back and forth. */
export function* textsFor(pattern: string, least = 0, most = Infinity): Generator<string> {
  const read = readPattern(pattern);
  if (read.kind === "refused") return;
  const tree = parsePattern(pattern);
  const given = new Set<string>();
  for (let edition = 0; edition < EDITIONS; edition++)
    for (const text of fill(write(tree, edition), least, most)) {
      if (given.has(text) || text.length < least || text.length > most || !read.matcher.test(text)) continue;
      given.add(text);
      yield text;
    }
}

const EDITIONS = 48;

/** A pattern that is not anchored lets more text stand around what it asks for. */
function* fill(text: string, least: number, most: number): Generator<string> {
  yield text;
  if (text.length < least) {
    const more = "a".repeat(Math.min(least, most, LONGEST) - text.length);
    yield text + more;
    yield more + text;
  }
  yield `${text}a`;
  yield `a${text}`;
}

const LONGEST = 100_000;

/** `edition` varies what is chosen: 0 takes the first option, the fewest repetitions and the simplest characters. */
function write(tree: PatternNode, edition: number): string {
  let turn = 0;
  const next = (of: number) => (edition === 0 ? 0 : Math.floor(edition / (1 + (turn++ % 3))) % of);
  const make = (node: PatternNode): string => {
    switch (node.kind) {
      case "char":
        return character(node.fits, next(4));
      case "assert":
        return "";
      case "row":
        return node.items.map(make).join("");
      case "choice":
        return make(node.options[next(node.options.length)]!);
      case "repeat": {
        const span = Math.min(node.max - node.min, MOST_MORE);
        const times = Math.min(node.min + (span === 0 ? 0 : next(span + 1)), LONGEST);
        return Array.from({ length: times }, () => make(node.item)).join("");
      }
      // What is looked for ahead may have to be written as well.
      case "look":
        return node.negative || node.behind || edition % 2 === 0 ? "" : make(node.item);
    }
  };
  return make(tree);
}

const MOST_MORE = 12;

function character(fits: (code: number) => boolean, skip: number): string {
  let last = "";
  let skipped = 0;
  for (const code of CODES) {
    if (!fits(code)) continue;
    last = String.fromCodePoint(code);
    if (skipped++ === skip) break;
  }
  return last;
}

/** Letters first, then digits and signs, then a walk through the rest of Unicode. */
const CODES: readonly number[] = [
  ...Array.from("aA0b1 -_./:@xXzZ29", (char) => char.codePointAt(0)!),
  ...Array.from({ length: 0x1_80 }, (_, code) => code),
  0x3_91,
  0x3_b1,
  0x4_10,
  0x4_30,
  0x5_d0,
  0x6_27,
  0x9_05,
  0x9_66,
  0xe_01,
  0x20_28,
  0x20_ac,
  0x30_00,
  0x30_42,
  0x4e_00,
  0xac_00,
  0x1_04_00,
  0x1_f6_00,
  0x2_00_00,
];
