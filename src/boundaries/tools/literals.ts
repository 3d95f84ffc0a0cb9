/** Literals required by a regex: files that contain none of them are skipped. */

/**
 * For a JavaScript pattern that is valid without the `u` and `v` flags. null: nothing certain can be said. What is left
 * out makes the answer weaker, never wrong, so whatever is not plain text counts as a gap.
 */
export function literalsOf(pattern: string, ignoreCase: boolean): readonly string[] | null {
  const tokens = pattern.length > MAX_PATTERN ? null : tokensOf(pattern, ignoreCase);
  const need = tokens === null ? null : readGroup(tokens.values()).need;
  return need === null || need.some((text) => text.length < MIN_TEXT) ? null : need;
}

const MAX_PATTERN = 1_000;
/** A single character is nearly everywhere. */
const MIN_TEXT = 2;
const MAX_TEXTS = 20;

/** One of these texts; null: anything. */
type Need = readonly string[] | null;

type Token =
  | ({ readonly kind: "text"; readonly text: string } & Repeated)
  | { readonly kind: "gap" }
  | { readonly kind: "or" }
  /** `consumes`: what is inside stands in the line, unlike that of a look ahead or behind. */
  | { readonly kind: "open"; readonly consumes: boolean }
  | ({ readonly kind: "close" } & Repeated);

type Repeated = { readonly quantified: boolean; readonly optional: boolean };

const PART = /\\(?:\d+|[^])|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<[\w$]+>))?|[^]/y;
const QUANTIFIER = /(?:([*?])|\+|\{(\d+)(?:,\d*)?\})\??/y;

/** null: something in it is not known here. */
function tokensOf(pattern: string, ignoreCase: boolean): readonly Token[] | null {
  const tokens: Token[] = [];
  for (let at = 0; at < pattern.length;) {
    const part = matchAt(PART, pattern, at)?.[0] ?? "";
    at += part.length;
    const quantifier = matchAt(QUANTIFIER, pattern, at);
    // A group is repeated behind its end; behind its start a "?" says what kind of group it is.
    if (quantifier !== null && part.startsWith("(")) return null;
    at += quantifier?.[0].length ?? 0;
    const optional = quantifier !== null && (quantifier[1] !== undefined || Number(quantifier[2]) === 0);
    const token = tokenOf(part, { quantified: quantifier !== null, optional }, ignoreCase);
    if (token === null) return null;
    tokens.push(token);
  }
  return tokens;
}

function matchAt(regex: RegExp, text: string, at: number): RegExpExecArray | null {
  regex.lastIndex = at;
  return regex.exec(text);
}

function tokenOf(part: string, repeated: Repeated, ignoreCase: boolean): Token | null {
  if (part === "|") return { kind: "or" };
  if (part === ")") return { kind: "close", ...repeated };
  if (part.startsWith("(")) return { kind: "open", consumes: !/[=!]$/.test(part) };
  if (/^(?:[.^$]|\[.*\]|\\(?:[dDwWsSbBtnrfv]|\d+))$/s.test(part)) return { kind: "gap" };
  if (/^\\[a-z]/i.test(part)) return null;
  const text = part.startsWith("\\") ? part.slice(1) : part;
  return isPlain(text, ignoreCase) ? { kind: "text", text, ...repeated } : { kind: "gap" };
}

/**
 * Whether the character is in a line exactly where its bytes are in the file. Half of a pair is not, nor is what stands
 * for broken bytes. Which letters are the same but for their case is agreed on in ASCII only.
 */
function isPlain(text: string, ignoreCase: boolean): boolean {
  return ignoreCase ? /^[\0-\x7f]$/.test(text) && text !== "\n" : /^[^\n\ud800-\udfff\ufffd]$/.test(text);
}

/** Reads up to the end of the group it is in. */
function readGroup(tokens: Iterator<Token>): { readonly need: Need; readonly optional: boolean } {
  const branches: Need[] = [];
  let best: Need = null;
  let run = "";
  const settle = (need: Need = null) => {
    best = better(better(best, run === "" ? null : [run]), need);
    run = "";
  };
  for (;;) {
    const { value: token } = tokens.next() as { readonly value: Token | undefined };
    switch (token?.kind) {
      case "text":
        if (!token.optional) run += token.text;
        if (token.quantified) settle();
        break;
      case "gap":
        settle();
        break;
      case "open": {
        const { need, optional } = readGroup(tokens);
        settle(token.consumes && !optional ? need : null);
        break;
      }
      case "or":
        settle();
        branches.push(best);
        best = null;
        break;
      case "close":
      case undefined:
        settle();
        branches.push(best);
        return { need: anyOf(branches), optional: token?.optional === true };
    }
  }
}

function anyOf(branches: readonly Need[]): Need {
  const texts = new Set<string>();
  for (const need of branches) {
    if (need === null) return null;
    for (const text of need) texts.add(text);
  }
  return texts.size > MAX_TEXTS ? null : [...texts];
}

/** The one that fewer lines fulfil, as far as its lengths tell. */
function better(one: Need, other: Need): Need {
  if (one === null || other === null) return one ?? other;
  const [a, b] = [shortest(one), shortest(other)];
  if (a !== b) return a > b ? one : other;
  return other.length < one.length ? other : one;
}

function shortest(texts: readonly string[]): number {
  return Math.min(...texts.map((text) => text.length));
}
