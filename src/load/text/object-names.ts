/**
 * The names in the default export of a module, as far as its text says them: `export default { a: { b() {} } }`, or the
 * name of a constant that is such an object. Reads text that is known to be a valid module; runs nothing.
 */

export type Named = { readonly name: string; readonly at: number; readonly members: Names | null };
/** `isOpen`: there may be more, such as what is spread into the object. */
export type Names = { readonly names: readonly Named[]; readonly isOpen: boolean };

/** null: the text does not say it in a form that is read here. */
export function defaultNames(text: string): Names | null {
  const tokens = tokensOf(text);
  if (tokens === null) return null;
  const place = tokens.findIndex(
    (token, index) =>
      token.text === "export" && tokens[index + 1]?.text === "default" && isPlain(tokens, index),
  );
  if (place === -1) return null;
  const value = tokens[place + 2];
  if (value?.text === "{") return objectAt(tokens, place + 2).names;
  if (value?.kind !== "word" || ![undefined, ";"].includes(tokens[place + 3]?.text)) return null;
  const constant = tokens.findIndex(
    ({ text: word }, index) =>
      word === "const" && tokens[index + 1]?.text === value.text && tokens[index + 2]?.text === "=",
  );
  return constant !== -1 && tokens[constant + 3]?.text === "{" ? objectAt(tokens, constant + 3).names : null;
}

type Token = {
  readonly kind: "word" | "string" | "mark" | "other";
  readonly text: string;
  readonly at: number;
};

/** Not a member of something. */
function isPlain(tokens: readonly Token[], index: number): boolean {
  return tokens[index - 1]?.text !== ".";
}

const SPACE = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const WORD = /[\p{L}\p{N}_$#]+/uy;
const STRING = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y;
const REGEX = /\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** What a regular expression may follow; after anything else a slash divides. */
const BEFORE_REGEX = /^(?:[([{,;:=!&|?+\-*%<>~^}]|=>|return|typeof|case|in|of|await|yield|void|delete)$/;

/** null: there is something that is not understood. */
function tokensOf(text: string): readonly Token[] | null {
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? null;
  };
  while (at < text.length) {
    const space = take(SPACE);
    if (space !== null) {
      at += space.length;
      continue;
    }
    const before = tokens.at(-1);
    const [kind, found] = next(before);
    if (found === null) return null;
    tokens.push({ kind, text: found, at });
    at += found.length;
  }
  return tokens;

  function next(before: Token | undefined): readonly [Token["kind"], string | null] {
    const char = text[at]!;
    if (char === "`") return ["other", templateAt(text, at)];
    if (char === '"' || char === "'") return ["string", take(STRING)];
    if (char === "/" && (before === undefined || BEFORE_REGEX.test(before.text)))
      return ["other", take(REGEX)];
    const word = take(WORD);
    if (word !== null) return ["word", word];
    return ["mark", text.startsWith("=>", at) ? "=>" : text.startsWith("...", at) ? "..." : char];
  }
}

/** A template literal whole, with what stands in `${}`; null: it is not closed, or nests too deeply. */
function templateAt(text: string, from: number, depth = 0): string | null {
  if (depth > DEEPEST) return null;
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "`") return text.slice(from, at + 1);
    else if (text.startsWith("${", at)) {
      const end = endOfHole(text, at + 2, depth);
      if (end === null) return null;
      at = end;
    }
  }
  return null;
}

const DEEPEST = 100;

/** The brace that ends `${`. */
function endOfHole(text: string, from: number, level: number): number | null {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at]!;
    STRING.lastIndex = at;
    const string = STRING.exec(text)?.[0];
    if (string !== undefined) at += string.length - 1;
    else if (char === "`") {
      const inner = templateAt(text, at, level + 1);
      if (inner === null) return null;
      at += inner.length - 1;
    } else if (char === "{") depth += 1;
    else if (char === "}" && depth === 0) return at;
    else if (char === "}") depth -= 1;
  }
  return null;
}

/** `index` is that of the opening brace; `next` is behind the closing one. Objects in objects in it are not looked at. */
function objectAt(
  tokens: readonly Token[],
  index: number,
  isInner = false,
): { readonly names: Names; readonly next: number } {
  const names: Named[] = [];
  let isOpen = false;
  let at = index + 1;
  while (at < tokens.length && tokens[at]!.text !== "}") {
    while (isModifier(tokens, at)) at += 1;
    const key = tokens[at]!;
    const isNamed = key.kind === "word" || key.kind === "string";
    let members: Names | null = null;
    at += 1;
    if (isNamed && !isInner && tokens[at]?.text === ":" && tokens[at + 1]?.text === "{") {
      const inner = objectAt(tokens, at + 1, true);
      if ([",", "}"].includes(tokens[inner.next]?.text ?? "")) members = inner.names;
    }
    if (isNamed) names.push({ name: nameOf(key), at: key.at, members });
    else isOpen = true;
    at = endOfMember(tokens, isNamed ? at : at - 1);
    if (tokens[at]?.text === ",") at += 1;
  }
  return { names: { names, isOpen }, next: at + 1 };
}

/** `async`, `get`, `set` and `*` before a name. */
function isModifier(tokens: readonly Token[], at: number): boolean {
  const { text } = tokens[at]!;
  if (text === "*") return true;
  return /^(?:async|get|set)$/.test(text) && !["(", ":", ",", "}"].includes(tokens[at + 1]?.text ?? "}");
}

/** The comma behind a member, or the brace behind the last one. */
function endOfMember(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at]!;
    if (kind !== "mark") continue;
    if (depth === 0 && (text === "," || text === "}")) return at;
    if ("([{".includes(text)) depth += 1;
    else if (")]}".includes(text)) depth -= 1;
  }
  return tokens.length;
}

function nameOf({ kind, text }: Token): string {
  return kind === "string" ? text.slice(1, -1) : text;
}
