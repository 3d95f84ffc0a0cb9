/** The command line: how flags are declared, what was written, and the typed values that are read from it. Pure; loads nothing. */

import type { Claim } from "../flow/parameter-flag.ts";

/** `name` is without dashes. A flag that takes nothing is a switch. */
export type Flag = {
  readonly name: string;
  readonly short?: string;
  /** What stands for its value in the help. */
  readonly takes?: string;
  /** How its value is read; text where nothing is said. A switch that is `yes-no` differs when it is not given. */
  readonly is?: "yes-no" | "count" | "money" | "duration" | "choice" | "path";
  /** Of a count or a duration: the smallest one (1), and the largest. */
  readonly least?: number;
  readonly most?: number;
  /** It may be given more than once. */
  readonly repeats?: true;
  /** What its value can be, for shells to offer; of a choice, all there is. */
  readonly offers?: Offer;
  /** A parameter of an agent may take its name; without this it always means this flag. Not for safety, limits, places or output. */
  readonly yields?: true;
  readonly help: string;
};

/** Words that can be offered as they are, or where to look for them. `step`: of the agent or run that the line names. */
export type Offer =
  | readonly string[]
  | "agent"
  | "run"
  | "step"
  | "question"
  | "command"
  | "model"
  | "backend"
  | "file"
  | "folder"
  | "new";

/** By name, the values in the order they were written. A switch has the values "true" and "false". */
export type GivenFlags = ReadonlyMap<string, readonly string[]>;

/** The value of each of these flags, by name: `Values<typeof FLAGS>["max-turns"]` is `number | undefined`. */
export type Values<Flags extends readonly Flag[]> = {
  readonly [F in Flags[number] as F["name"]]: F extends { readonly repeats: true }
    ? readonly One<F>[]
    : F extends { readonly takes: string } | { readonly is: "yes-no" }
      ? One<F> | undefined
      : boolean;
};

type One<F> = F extends { readonly is: "count" | "money" | "duration" }
  ? number
  : F extends { readonly is: "choice"; readonly offers: readonly (infer Choice)[] }
    ? Choice
    : F extends { readonly takes: string }
      ? string
      : boolean;

/** The command line makes no sense. `near`: the word that was not understood, and those that would have been. */
export class UsageError extends Error {
  readonly near: {
    readonly word: string;
    readonly candidates: readonly string[];
    /** The word stands where a command does. */
    readonly isCommand?: true;
  } | null;
  /** What the line does not name, although the command needs it. */
  readonly lacks: "agent" | "run" | null;
  constructor(message: string, near: UsageError["near"] = null, lacks: UsageError["lacks"] = null) {
    super(message);
    this.name = "UsageError";
    this.near = near;
    this.lacks = lacks;
  }
}

// What was written.

export type Grammar = {
  readonly flags: readonly Flag[];
  /**
   * Flags that an agent declares. They win over a built-in of the same name that yields; that one stays there
   * as `--ls-<name>`.
   */
  readonly declared?: readonly Flag[];
  /** Unknown flags are passed over instead of refused: for a first look, before all flags are known. */
  readonly lenient?: true;
};

export type Line = {
  /** Everything that is neither a flag nor a flag's value. */
  readonly words: readonly string[];
  readonly flags: GivenFlags;
  readonly declared: GivenFlags;
  readonly isLenient: boolean;
};

export function parseLine(argv: readonly string[], grammar: Grammar): Line {
  const words: string[] = [];
  const flags = new Map<string, string[]>();
  const declared = new Map<string, string[]>();

  const keep = (found: Found, value: string) => {
    const into = found.from === "declared" ? declared : flags;
    const { name } = found.flag;
    into.set(name, [...(into.get(name) ?? []), value]);
  };

  for (let at = 0; at < argv.length; at++) {
    const token = argv[at]!;
    if (token === "--") {
      words.push(...argv.slice(at + 1));
      break;
    }
    if (token === "-" || !token.startsWith("-") || isNumber(token)) {
      words.push(token);
      continue;
    }
    for (const written of readToken(token, grammar)) {
      const { found, value } = written;
      if (found === null) {
        if (grammar.lenient === undefined) throw unknownFlag(written.text, token, grammar);
      } else if (found.flag.takes === undefined)
        keep(found, switchValue(found, value, written.text, grammar.lenient === true));
      else if (value !== null) keep(found, value);
      else {
        const next = argv[at + 1];
        const isThere = next !== undefined && (next === "-" || isNumber(next) || !next.startsWith("-"));
        if (isThere) {
          keep(found, next);
          at += 1;
        } else if (grammar.lenient === undefined) throw noValue(written.text, next);
      }
    }
  }
  if (grammar.lenient === undefined) refuseRepeated(grammar.flags, flags);
  return { words, flags, declared, isLenient: grammar.lenient === true };
}

/** Of a value given twice one would be lost. How often a parameter may be given is judged where parameters are. */
function refuseRepeated(flags: readonly Flag[], given: GivenFlags): void {
  const twice = flags.find(
    ({ name, takes, repeats }) =>
      takes !== undefined && repeats === undefined && (given.get(name)?.length ?? 0) > 1,
  );
  if (twice !== undefined) throw new UsageError(`--${twice.name} is given more than once.`);
}

type Found = { readonly from: "built-in" | "declared"; readonly flag: Flag; readonly negated: boolean };
type Written = { readonly text: string; readonly found: Found | null; readonly value: string | null };

/** One token holds one flag, or several one-letter switches of which the last may take the rest as its value. */
function readToken(token: string, grammar: Grammar): readonly Written[] {
  if (token.startsWith("--")) {
    const equals = token.indexOf("=");
    const text = equals === -1 ? token : token.slice(0, equals);
    const value = equals === -1 ? null : token.slice(equals + 1);
    return [{ text, found: findLong(text.slice(2), grammar), value }];
  }
  const written: Written[] = [];
  for (let at = 1; at < token.length; at++) {
    const flag = grammar.flags.find((other) => other.short === token[at]);
    const found = flag === undefined ? null : ({ from: "built-in", flag, negated: false } as const);
    const takesRest = flag?.takes !== undefined && at + 1 < token.length;
    written.push({ text: `-${token[at]}`, found, value: takesRest ? token.slice(at + 1) : null });
    if (takesRest || found === null) break;
  }
  return written;
}

function findLong(name: string, { flags, declared = [] }: Grammar): Found | null {
  const reserved = flags.filter((flag) => flag.yields === undefined);
  return (
    findIn(name, reserved, "built-in") ??
    (name.startsWith("ls-") ? findIn(name.slice(3), flags, "built-in") : null) ??
    findIn(name, declared, "declared") ??
    findIn(name, flags, "built-in")
  );
}

/** Judges a flag by all ways to write it: in other letters, negated, or with the prefix of the built-in ones. */
export function claimOf(flag: string, flags: readonly Flag[]): Claim {
  const name = flag.replace(/^-+/, "").toLowerCase().replaceAll("_", "-");
  if (name.startsWith("ls-")) return { kind: "reserved", clash: "--ls-…" };
  const plain = name.replace(/^(?:no-)+/, "");
  const clashes = flags.filter((other) => [name, plain].includes(other.name));
  const kept = clashes.find((other) => other.yields === undefined);
  if (kept !== undefined) return { kind: "reserved", clash: `--${kept.name}` };
  const [first] = clashes;
  return first === undefined ? { kind: "free" } : { kind: "shadows", clash: `--${first.name}` };
}

function findIn(name: string, flags: readonly Flag[], from: Found["from"]): Found | null {
  const flag = flags.find((other) => other.name === name);
  if (flag !== undefined) return { from, flag, negated: false };
  if (!name.startsWith("no-")) return null;
  const denied = flags.find((other) => other.name === name.slice(3) && other.takes === undefined);
  return denied === undefined ? null : { from, flag: denied, negated: true };
}

/** What a declared switch is set to is judged where parameters are; a built-in one is on or off. */
function switchValue(
  { from, negated }: Found,
  value: string | null,
  text: string,
  isLenient: boolean,
): string {
  if (value === null) return negated ? "false" : "true";
  // What looks like a switch of ours may be a parameter of an agent that is not known yet.
  if (isLenient) return value;
  if (negated || (from === "built-in" && value !== "true" && value !== "false")) {
    throw new UsageError(`${text} takes no value, but "${value}" was given.`);
  }
  return value;
}

/** `text`: the flag in the token, which may be one of several letters behind one dash. */
function unknownFlag(text: string, token: string, { flags, declared = [] }: Grammar): UsageError {
  const candidates = [...declared, ...flags].map((flag) => `--${flag.name}`);
  const [single = ""] = token.split("=");
  if (candidates.includes(`-${single}`))
    return new UsageError(`Unknown flag ${single}. With two dashes it is known: -${single}`);
  return new UsageError(`Unknown flag ${text}.`, { word: text, candidates });
}

function noValue(text: string, next: string | undefined): UsageError {
  const hint = next === undefined ? "" : ` To pass "${next}" as its value, write ${text}=${next}.`;
  return new UsageError(`${text} needs a value.${hint}`);
}

function isNumber(token: string): boolean {
  return /^-\d/.test(token);
}

// What it means.

/** Reads every flag that is declared. `isLenient`: for a first look, a value that cannot be read counts as not given. */
export function valuesOf(flags: readonly Flag[], given: GivenFlags, isLenient: boolean): object {
  const entries = flags.map((flag) => {
    const texts = given.get(flag.name) ?? [];
    const { takes, is, repeats } = flag;
    if (takes === undefined) {
      const text = texts.at(-1);
      return [flag.name, text === undefined && is === "yes-no" ? undefined : text === "true"];
    }
    const values = texts.map((text) => valueOf(flag, text, isLenient));
    return [flag.name, repeats === undefined ? values.at(-1) : values.filter((value) => value !== undefined)];
  });
  return Object.fromEntries(entries) as object;
}

function valueOf(flag: Flag, text: string, isLenient: boolean): string | number | undefined {
  const { name, is, least = 1, most, offers } = flag;
  const refuse = (needs: string) => {
    if (isLenient) return undefined;
    const isWord = is === "choice" && Array.isArray(offers);
    const near = isWord ? { word: text, candidates: offers as readonly string[] } : null;
    throw new UsageError(`--${name} needs ${needs}, not "${text}".`, near);
  };
  switch (is) {
    case "count":
      return readCount(text, least, most) ?? refuse(needsCount(least, most));
    case "money":
      return readMoney(text) ?? refuse(NEEDS_MONEY);
    case "duration":
      return readDuration(text, least) ?? refuse(needsDuration(text));
    case "choice":
      return Array.isArray(offers) && offers.includes(text)
        ? text
        : refuse(oneOf(offers as readonly string[]));
    case "path":
      return text === "" ? refuse(offers === "folder" ? "a folder" : "a file") : text;
    default:
      return text;
  }
}

/** `list, prune or repair` */
export function oneOf(words: readonly string[]): string {
  return words.length === 1 ? words[0]! : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

export function readCount(text: string, least = 1, most = Number.MAX_SAFE_INTEGER): number | null {
  const value = /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : -1;
  return value >= least && value <= most ? value : null;
}

export function needsCount(least = 1, most?: number): string {
  return most === undefined
    ? `a whole number of at least ${least}`
    : `a whole number from ${least} to ${most}`;
}

export function readMoney(text: string): number | null {
  return /^\$?\d{1,9}(\.\d{1,6})?(?:usd)?$/i.test(text) ? Number(text.replace(/\$|usd/gi, "")) : null;
}

export const NEEDS_MONEY = "an amount in US dollars, such as 0.50";

/** The units of a time, the largest first. */
export const TIME_UNITS = [
  ["w", 604_800_000],
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** In milliseconds. */
export function readDuration(text: string, least = 1): number | null {
  const [, amount, unit] = /^(\d{1,10})(ms|s|m|h|d|w)$/.exec(text) ?? [];
  const [, size] = TIME_UNITS.find(([name]) => name === unit) ?? [];
  const isPlain = amount !== undefined && (amount === "0" || !amount.startsWith("0"));
  return size === undefined || !isPlain || Number(amount) < least ? null : Number(amount) * size;
}

export function needsDuration(text: string): string {
  return /^[1-9]\d{0,9}$/.test(text)
    ? `a unit, such as ${text}s, ${text}m or ${text}h`
    : "a time with a unit (ms, s, m, h, d, w), such as 90s or 5m";
}
