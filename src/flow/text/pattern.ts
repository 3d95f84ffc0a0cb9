/**
 * Regular expressions of the language (flag `u`), matched in a counted number of steps: the same text takes the same
 * steps on every machine, so that "this takes too long" is a verdict that a replay reaches too.
 */

/** A pattern that is ready to be used. `test` throws `TooManySteps` when the steps that are left do not suffice. */
export type Matcher = { readonly test: (text: string) => boolean };

export type PatternRead =
  | { readonly kind: "matcher"; readonly matcher: Matcher }
  | { readonly kind: "refused"; readonly why: string };

export class TooManySteps extends Error {
  override readonly name = "TooManySteps";
  constructor() {
    super("the text takes too many steps to match");
  }
}

/** About a quarter of a second. */
export const MOST_STEPS = 20_000_000;
const LONGEST_PATTERN = 8_192;
/** Counted repetitions are written out, so that a short pattern can be a long program. */
const MOST_INSTRUCTIONS = 20_000;
const DEEPEST_GROUP = 100;

/** Why a pattern cannot be used, or null. */
export function patternFault(pattern: string): string | null {
  const read = readPattern(pattern);
  return read.kind === "refused" ? read.why : null;
}

/** The same text gives the same matcher. */
export function readPattern(pattern: string): PatternRead {
  const known = patterns.get(pattern);
  if (known !== undefined) return known;
  if (patterns.size >= MOST_KEPT) patterns.clear();
  const read = compilePattern(pattern);
  patterns.set(pattern, read);
  return read;
}

const patterns = new Map<string, PatternRead>();
const MOST_KEPT = 500;

/** What `run` matches takes no more than this many steps altogether; elsewhere, each match may take that many. */
export function withinSteps<T>(steps: number, run: () => T): T {
  const outerLeft = left;
  const wasShared = isShared;
  left = steps;
  isShared = true;
  try {
    return run();
  } finally {
    left = outerLeft;
    isShared = wasShared;
  }
}

let left = MOST_STEPS;
let isShared = false;

function spend(steps: number): void {
  left -= steps;
  if (left < 0) throw new TooManySteps();
}

function compilePattern(pattern: string): PatternRead {
  if (pattern.length > LONGEST_PATTERN)
    return { kind: "refused", why: `it is longer than ${LONGEST_PATTERN} characters` };
  let native: RegExp;
  try {
    native = new RegExp(pattern, "u");
  } catch {
    return { kind: "refused", why: "it is not a valid regular expression" };
  }
  let program: Program;
  try {
    program = assemble(parsePattern(pattern));
  } catch (error) {
    if (error instanceof Unsupported) return { kind: "refused", why: error.message };
    throw error;
  }
  const repeats = pattern.match(/[*+?{]/g)?.length ?? 0;
  const isFlat = !pattern.includes("(");
  const test = (text: string): boolean => {
    if (!isShared) left = MOST_STEPS;
    // Without groups a pattern is a row of characters: it can start anywhere, and each repetition can stop anywhere.
    const most = pattern.length * (text.length + 1) ** (repeats + 1);
    if (isFlat && most <= QUICK_STEPS) {
      spend(text.length + 1);
      return native.test(text);
    }
    const seen = new Seen(program.length, text.length);
    for (let from = 0; from <= text.length; from += widthAt(text, from)) {
      if (reaches(program, text, from, seen)) return true;
      if (program[0]!.op === "start") return false;
    }
    return false;
  };
  return { kind: "matcher", matcher: { test } };
}

const QUICK_STEPS = 100_000;

/* The tree */

export type PatternNode =
  | { readonly kind: "char"; readonly fits: Fits }
  | { readonly kind: "assert"; readonly op: "start" | "end" | "edge" | "inner" }
  | { readonly kind: "row"; readonly items: readonly PatternNode[] }
  | { readonly kind: "choice"; readonly options: readonly PatternNode[] }
  | { readonly kind: "repeat"; readonly item: PatternNode; readonly min: number; readonly max: number }
  | {
      readonly kind: "look";
      readonly item: PatternNode;
      readonly behind: boolean;
      readonly negative: boolean;
    };

/** Whether one character (a code point) fits. */
type Fits = (code: number) => boolean;

class Unsupported extends Error {}

/** Only for patterns that the language takes: what is malformed was refused before. */
export function parsePattern(pattern: string): PatternNode {
  let at = 0;
  let depth = 0;

  const choice = (): PatternNode => {
    if (++depth > DEEPEST_GROUP) throw new Unsupported(`its groups nest deeper than ${DEEPEST_GROUP}`);
    const options: PatternNode[] = [];
    let items: PatternNode[] = [];
    for (; at < pattern.length && pattern[at] !== ")";) {
      if (pattern[at] === "|") {
        at += 1;
        options.push({ kind: "row", items });
        items = [];
      } else items.push(repeated(atom()));
    }
    depth -= 1;
    const last: PatternNode = { kind: "row", items };
    return options.length === 0 ? last : { kind: "choice", options: [...options, last] };
  };

  const atom = (): PatternNode => {
    const char = pattern[at]!;
    if (char === "(") return group();
    if (char === "^" || char === "$") {
      at += 1;
      return { kind: "assert", op: char === "^" ? "start" : "end" };
    }
    const edge = pattern.slice(at, at + 2);
    if (edge === String.raw`\b` || edge === String.raw`\B`) {
      at += 2;
      return { kind: "assert", op: edge === String.raw`\b` ? "edge" : "inner" };
    }
    ONE.lastIndex = at;
    const source = ONE.exec(pattern)![0];
    at += source.length;
    if (/^\\[1-9k]/.test(source))
      throw new Unsupported("it refers back to a group (\\1), which is not supported");
    return { kind: "char", fits: fitsOf(source) };
  };

  const group = (): PatternNode => {
    OPENING.lastIndex = at;
    const opening = OPENING.exec(pattern)![0];
    at += opening.length;
    if (/^\(\?[a-z-]*[:)]/.test(opening) && opening !== "(?:")
      throw new Unsupported("it changes flags inside, which is not supported");
    const item = choice();
    at += 1;
    const look = /^\(\?(<?)([=!])$/.exec(opening);
    return look === null ? item : { kind: "look", item, behind: look[1] === "<", negative: look[2] === "!" };
  };

  const repeated = (item: PatternNode): PatternNode => {
    TIMES.lastIndex = at;
    const times = TIMES.exec(pattern);
    if (times === null) return item;
    at += times[0].length;
    const [, sign, least, comma, most] = times;
    const min = sign === undefined ? Number(least) : sign === "+" ? 1 : 0;
    const max =
      sign === undefined
        ? comma === undefined
          ? min
          : most === ""
            ? Infinity
            : Number(most)
        : sign === "?"
          ? 1
          : Infinity;
    return { kind: "repeat", item, min, max };
  };

  return choice();
}

/** A class, an escape (two halves of a pair are one character), or the character itself. */
const ONE =
  /\[(?:[^\]\\]|\\[^])*\]|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u\{[\da-fA-F]+\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\c[A-Za-z]|\\[pP]\{[^}]*\}|\\k<[^>]*>|\\[1-9]\d*|\\[^]|[^]/uy;
const OPENING = /\(\?<?[=!]|\(\?<[^>]*>|\(\?[a-z-]*:|\(/y;
const TIMES = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;

/** Asked of the language's own engine, one character at a time, and remembered. */
function fitsOf(source: string): Fits {
  if (source.length <= 2 && !/^[\\.]/.test(source) && Array.from(source).length === 1) {
    const code = source.codePointAt(0)!;
    return (other) => other === code;
  }
  const one = new RegExp(`^${source}$`, "u");
  const known = new Uint8Array(256);
  const ask = (code: number) => one.test(String.fromCodePoint(code));
  return (code) => {
    if (code >= known.length) return ask(code);
    known[code] ||= ask(code) ? 1 : 2;
    return known[code] === 1;
  };
}

/* The program */

type Instruction =
  | { readonly op: "char"; readonly fits: Fits; readonly back: boolean }
  | { readonly op: "start" | "end" | "edge" | "inner" | "found" }
  /** Goes on at both places. */
  | { readonly op: "fork"; readonly to: number; readonly or: number }
  | { readonly op: "look"; readonly program: Program; readonly negative: boolean };
type Program = readonly Instruction[];

function assemble(tree: PatternNode, back = false): Program {
  const program: Instruction[] = [];
  const put = (instruction: Instruction): number => {
    if (program.length >= MOST_INSTRUCTIONS) throw new Unsupported("its repetitions are too large");
    return program.push(instruction) - 1;
  };
  const fork = (): ((to: number, or: number) => void) => {
    const place = put({ op: "fork", to: 0, or: 0 });
    return (to, or) => void (program[place] = { op: "fork", to, or });
  };
  const add = (node: PatternNode): void => {
    switch (node.kind) {
      case "char":
        put({ op: "char", fits: node.fits, back });
        return;
      case "assert":
        put({ op: node.op });
        return;
      case "row":
        for (const item of back ? node.items.toReversed() : node.items) add(item);
        return;
      case "choice": {
        const ends: ((to: number, or: number) => void)[] = [];
        for (const option of node.options.slice(0, -1)) {
          const set = fork();
          const from = program.length;
          add(option);
          ends.push(fork());
          set(from, program.length);
        }
        add(node.options.at(-1)!);
        for (const set of ends) set(program.length, program.length);
        return;
      }
      case "repeat":
        repeat(node);
        return;
      case "look":
        put({ op: "look", program: assemble(node.item, node.behind), negative: node.negative });
    }
  };
  const repeat = ({ item, min, max }: PatternNode & { kind: "repeat" }): void => {
    // An item of nothing could be written out for ever without filling the program.
    for (let times = 0; times < Math.min(min, MOST_INSTRUCTIONS); times++) {
      const before = program.length;
      add(item);
      if (program.length === before) break;
    }
    if (max === Infinity) {
      const loop = program.length;
      const set = fork();
      add(item);
      fork()(loop, loop);
      set(loop + 1, program.length);
      return;
    }
    const exits: ((to: number, or: number) => void)[] = [];
    const starts: number[] = [];
    for (let times = min; times < max; times++) {
      exits.push(fork());
      starts.push(program.length);
      add(item);
    }
    for (const [place, set] of exits.entries()) set(starts[place]!, program.length);
  };
  add(tree);
  put({ op: "found" });
  return program;
}

/* Running it */

/** Which places of the program were reached at which places of the text: reached again, they lead nowhere new. */
class Seen {
  readonly #bits: Uint32Array;
  readonly #width: number;
  constructor(instructions: number, length: number) {
    this.#width = instructions;
    const words = Math.ceil((instructions * (length + 1)) / 32);
    if (words > MOST_WORDS) throw new TooManySteps();
    spend(words >> 6);
    this.#bits = new Uint32Array(words);
  }
  /** true: it is new. */
  add(place: number, at: number): boolean {
    const bit = at * this.#width + place;
    const [word, mask] = [bit >>> 5, 1 << (bit & 31)];
    if ((this.#bits[word]! & mask) !== 0) return false;
    this.#bits[word]! |= mask;
    return true;
  }
}

const MOST_WORDS = 4_000_000;

/** Whether the end of the program can be reached. No order of trying matters, because nothing is remembered of the way. */
function reaches(program: Program, text: string, from: number, seen: Seen): boolean {
  const places = [0];
  const texts = [from];
  while (places.length > 0) {
    let here = places.pop()!;
    let at = texts.pop()!;
    for (;;) {
      if (!seen.add(here, at)) break;
      spend(1);
      const step = program[here]!;
      if (step.op === "found") return true;
      if (step.op === "fork") {
        if (step.or !== step.to) {
          places.push(step.or);
          texts.push(at);
        }
        here = step.to;
        continue;
      }
      if (step.op === "char") {
        const next = step.back ? at - widthBefore(text, at) : at + widthAt(text, at);
        if (next < 0 || next > text.length || next === at) break;
        if (!step.fits(text.codePointAt(Math.min(at, next))!)) break;
        at = next;
      } else if (!holds(step, text, at)) break;
      here += 1;
    }
  }
  return false;
}

function holds(step: Exclude<Instruction, { op: "char" | "fork" }>, text: string, at: number): boolean {
  switch (step.op) {
    case "start":
      return at === 0;
    case "end":
      return at === text.length;
    case "edge":
      return isWord(text, at - 1) !== isWord(text, at);
    case "inner":
      return isWord(text, at - 1) === isWord(text, at);
    case "look":
      return reaches(step.program, text, at, new Seen(step.program.length, text.length)) !== step.negative;
    case "found":
      return true;
  }
}

function isWord(text: string, at: number): boolean {
  return /^\w$/.test(text.charAt(at));
}

/** How many places the character takes; one at the end, so that counting on goes past it. */
function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xff_ff ? 2 : 1;
}

function widthBefore(text: string, at: number): number {
  return at >= 2 && (text.codePointAt(at - 2) ?? 0) > 0xff_ff ? 2 : 1;
}
