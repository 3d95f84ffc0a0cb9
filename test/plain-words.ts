/** The words that text for people must not hold, and a small scanner that takes the text out of a source file. */

/** Each has a plain word: "is not a", "the process that", "fix". A sentence may begin with "there is no", and end something "no longer". */
const RIDDLES = /\b(?<!\bthere )is no (?!longer\b)|\bwhoever\b|\bmend(?:s|ed|ing)?\b/i;

/** On pages also these: "reports", "no one" or a named actor. */
const RIDDLES_OF_PAGES = /\b(?:told|tells|nobody)\b/i;

export const isRiddle = (text: string) => RIDDLES.test(text);
export const isRiddleOfPage = (text: string) => isRiddle(text) || RIDDLES_OF_PAGES.test(text);

type Piece = { readonly line: number; readonly text: string };

/** The strings, templates and comments of a TypeScript file. Values in templates and regular expressions are left out. */
export function* textsOf(source: string): Generator<Piece> {
  const token =
    /\/\*[^]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`|\$\{|[{}]|(?<=[(,=:[!&|?;+]|=>|\n|return)\s*\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/g;
  const open: ("template" | "brace")[] = [];
  for (let at = 0; at < source.length;) {
    token.lastIndex = at;
    const found = token.exec(source);
    if (found === null) return;
    const [text] = found;
    at = found.index + text.length;
    if (text === "{" || text === "${") open.push("brace");
    else if (text === "}" || text === "`") {
      if (text === "}") open.pop();
      if (text === "}" ? open.at(-1) !== "template" : false) continue;
      // A template goes on until its end, or until a value in it begins.
      const rest = /(?:[^`\\$]|\\[^]|\$(?!\{))*/y;
      rest.lastIndex = at;
      const [words] = rest.exec(source)!;
      yield { line: lineAt(source, at), text: words };
      at += words.length;
      if (text === "`") open.push("template");
      if (source[at] === "`") {
        open.pop();
        at += 1;
      }
    } else if (/^(?:["']|\/[*/])/.test(text)) yield { line: lineAt(source, found.index), text };
  }
}

function lineAt(source: string, at: number): number {
  let line = 1;
  for (let end = source.indexOf("\n"); end !== -1 && end < at; end = source.indexOf("\n", end + 1)) line += 1;
  return line;
}
