/** Wildcards and path globs, matched without regular expressions: no pattern can make matching explode. */

export type GlobMatcher = (path: string) => boolean;

/** `*` stands for any characters; everything else for itself. */
export function matchesWildcard(pattern: string, text: string): boolean {
  if (pattern === "*" || !pattern.includes("*")) return pattern === "*" || pattern === text;
  return matchesTokens(
    Array.from(pattern, (char) => (char === "*" ? "*" : isChar(char))),
    text,
  );
}

/**
 * A matcher for paths with forward slashes: `*` and `?` within a segment, `**` across segments, `[a-z]`, `[!a]`,
 * `{a,b}`, and `\` before a character that stands for itself. null when the braces unfold into too many patterns.
 */
export function compileGlob(pattern: string): GlobMatcher | null {
  const plain = unfoldBraces(pattern);
  if (plain === null) return null;
  const globs = plain.map((one) => one.split("/").filter((part) => part !== "" && part !== "."));
  const compiled = globs.map((parts) => parts.map((part) => (part === "**" ? part : parseSegment(part))));
  return (path) => {
    const segments = path.split("/");
    return compiled.some((parts) => matchesSegments(parts, segments));
  };
}

const MAX_PATTERNS = 256;
const MAX_PATTERN_LENGTH = 1_000;

function unfoldBraces(pattern: string): readonly string[] | null {
  if (pattern.length > MAX_PATTERN_LENGTH) return null;
  const done: string[] = [];
  const todo = [pattern];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const brace = findBrace(next);
    if (brace === null) done.push(next);
    else todo.push(...brace.options.map((option) => brace.before + option + brace.after));
    if (done.length + todo.length > MAX_PATTERNS) return null;
  }
  return done;
}

type Brace = { readonly before: string; readonly options: readonly string[]; readonly after: string };

/** The first pair of braces with a comma of its own. */
function findBrace(pattern: string): Brace | null {
  for (let open = 0; open < pattern.length; open += 1) {
    if (pattern[open] === "\\") open += 1;
    else if (pattern[open] === "{") {
      const brace = readBrace(pattern, open);
      if (brace !== null) return brace;
    }
  }
  return null;
}

function readBrace(pattern: string, open: number): Brace | null {
  const options: string[] = [];
  let depth = 0;
  let start = open + 1;
  for (let index = open + 1; index < pattern.length; index += 1) {
    const char = pattern[index];
    if (char === "\\") index += 1;
    else if (char === "{") depth += 1;
    else if (depth > 0 && char === "}") depth -= 1;
    else if (depth === 0 && (char === "," || char === "}")) {
      options.push(pattern.slice(start, index));
      start = index + 1;
      if (char === "}") {
        return options.length > 1
          ? { before: pattern.slice(0, open), options, after: pattern.slice(start) }
          : null;
      }
    }
  }
  return null;
}

type Token = "*" | ((char: string) => boolean);
type Segment = "**" | readonly Token[];

function parseSegment(text: string): readonly Token[] {
  const chars = Array.from(text);
  const tokens: Token[] = [];
  for (let index = 0; index < chars.length; index += 1) {
    const char = chars[index] ?? "";
    const close = char === "[" ? chars.indexOf("]", index + 2) : -1;
    if (char === "*") tokens.push("*");
    else if (char === "?") tokens.push(() => true);
    else if (char === "\\" && index + 1 < chars.length) tokens.push(isChar(chars[(index += 1)] ?? ""));
    else if (close !== -1) {
      tokens.push(parseClass(chars.slice(index + 1, close)));
      index = close;
    } else tokens.push(isChar(char));
  }
  return tokens;
}

/** What stands between the brackets: characters and ranges, turned round by `!` or `^` at the start. */
function parseClass(chars: readonly string[]): (char: string) => boolean {
  const isNegated = chars[0] === "!" || chars[0] === "^";
  const ranges: (readonly [string, string])[] = [];
  for (let index = isNegated ? 1 : 0; index < chars.length; index += 1) {
    const from = chars[index] ?? "";
    const isRange = chars[index + 1] === "-" && index + 2 < chars.length;
    ranges.push([from, isRange ? (chars[index + 2] ?? from) : from]);
    if (isRange) index += 2;
  }
  return (char) => ranges.some(([from, to]) => from <= char && char <= to) !== isNegated;
}

function isChar(wanted: string): (char: string) => boolean {
  return (char) => char === wanted;
}

function matchesTokens(tokens: readonly Token[], text: string): boolean {
  return matchesRuns(tokens, Array.from(text), "*", (token, char) => token !== "*" && token(char));
}

function matchesSegments(parts: readonly Segment[], segments: readonly string[]): boolean {
  return matchesRuns(parts, segments, "**", (part, segment) => part !== "**" && matchesTokens(part, segment));
}

/**
 * Matches a list of items against a pattern in which `star` stands for any run of items. When a match fails, only the
 * latest star takes one more item: that finds every match, in at most pattern × items steps.
 */
function matchesRuns<P, T>(
  pattern: readonly P[],
  items: readonly T[],
  star: P,
  fits: (part: P, item: T) => boolean,
) {
  let at = 0;
  let item = 0;
  let retry: { readonly at: number; item: number } | null = null;
  while (item < items.length) {
    const part = pattern[at];
    if (part === star && at < pattern.length) {
      retry = { at: at + 1, item };
      at += 1;
    } else if (part !== undefined && fits(part, items[item] as T)) {
      at += 1;
      item += 1;
    } else if (retry !== null) {
      retry.item += 1;
      at = retry.at;
      item = retry.item;
    } else return false;
  }
  return pattern.slice(at).every((part) => part === star);
}
