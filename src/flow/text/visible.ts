/** Text that a person is about to decide on: nothing in it is hidden, and long gaps are folded and counted. */

/**
 * Everything is spelled out that cannot be seen or could be mistaken for something else: control characters, marks that
 * turn the direction of writing, letters written from right to left, zero-width and odd spaces, letters of other scripts
 * that look Latin. Line ends stay.
 *
 *     visible(`npm test${" ".repeat(500)}; id`)  // → "npm test··· 500 spaces ···; id"
 */
export function visible(text: string): string {
  const { repeated, unseen } = patterns();
  return text
    .replaceAll(repeated, (run, char: string) => gap(run.length / char.length, char))
    .replaceAll(/[\p{L}\p{M}\p{N}_]+/gu, (word) =>
      isDisguised(word) ? word.replaceAll(strange(), spelled) : word,
    )
    .replaceAll(unseen, spelled)
    .replaceAll(EMPTY_LINES, (run) => `\n··· ${run.split("\n").length - 2} empty lines ···\n`);
}

/** The same on one line. */
export function visibleInLine(text: string): string {
  return visible(text).replaceAll("\n", "\\n");
}

/** Lines that cannot be taken for anything else: each begins with `begin`, also where a long one is broken. */
export function gutter(text: string, begin = "  | "): string {
  return text
    .split("\n")
    .map((line) => `${begin}${line}`)
    .join("\n");
}

/**
 * Long lines broken at `width` columns, between words where that leaves at least half of a line; what goes on a line begins
 * with `  : `, so that no text can pose as a new line. The space stays at the end, so that nothing is left out.
 */
export function broken(text: string, width = 76): string {
  return text
    .split("\n")
    .map((line) => breakLine(line, width))
    .join("\n");
}

const MORE = "\n  : ";

function breakLine(line: string, width: number): string {
  if (line.length * 2 <= width) return line;
  const lines: string[] = [];
  let last = "";
  let column = 0;
  /** Behind the last space of `last`: where in it, and in which column. */
  let word = { at: 0, column: 0 };
  for (const char of line) {
    const wide = WIDE.test(char) ? 2 : 1;
    if (column + wide > width) {
      const end = word.column * 2 > width ? word : { at: last.length, column };
      lines.push(last.slice(0, end.at));
      last = last.slice(end.at);
      column += MORE.length - 1 - end.column;
      word = { at: 0, column: 0 };
    }
    last += char;
    column += wide;
    if (char === " ") word = { at: last.length, column };
  }
  return [...lines, last].join(MORE);
}

/** More of them in a row are only there to push something away. */
const MOST_REPEATED = 8;

/** Spaces, and whatever cannot be seen. */
const REPEATED = `([ \\t\\r\\v\\f\\b\\p{Cf}\\p{Zs}\\p{Default_Ignorable_Code_Point}])\\1{${MOST_REPEATED},}`;

const EMPTY_LINES = /\n(?: {0,8}\n){3,}/g;

const RIGHT_TO_LEFT =
  "\\p{Script=Hebrew}\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Thaana}\\p{Script=Nko}\\p{Script=Samaritan}\\p{Script=Mandaic}\\p{Script=Adlam}";

/** Forms of Latin letters, dashes, slashes and bars that are other characters. */
const FORMS =
  "\\u01c0\\u02bc\\u037e\\u2010-\\u2015\\u2024\\u2044\\u2100-\\u214f\\u2212\\u2215\\u2223\\u2236\\u2758\\u29f8\\ua789\\uff01-\\uff5e\\u{1d400}-\\u{1d7ff}";

const UNSEEN = `(?![\\n ])[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800${RIGHT_TO_LEFT}${FORMS}]|\\p{M}(?=\\p{M}{2})`;

/** Made when they are first used, as all patterns here: those with classes of Unicode take long, and few commands use them. */
function patterns() {
  return (made ??= { repeated: new RegExp(REPEATED, "gu"), unseen: new RegExp(UNSEEN, "gu") });
}

let made: { readonly repeated: RegExp; readonly unseen: RegExp } | null = null;

const strange = () =>
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}]/gu;
const LATIN = /[A-Za-z0-9]/;

/** Cyrillic and Greek letters that look like Latin ones. */
const lookalikes = () => /^[аАВеЕЗіІјЈкКМНоОрРсСТуУхХѕЅԁԛԝһҺԌԍүҮӀӏԚԜαΑΒΕΖΗΙιΚκΜΝνΟοΡρΤτΥυΧχϲϳ\p{N}_]+$/u;

/** Letters of several scripts in one word, or only such as look Latin. */
function isDisguised(word: string): boolean {
  return (
    /[^\0-\x7f]/.test(word) && word.search(strange()) !== -1 && (LATIN.test(word) || lookalikes().test(word))
  );
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

function gap(count: number, char: string): string {
  return char === " " ? `··· ${count} spaces ···` : `··· ${count} × ${spelled(char)} ···`;
}

function spelled(char: string): string {
  const short = { "\r": "\\r", "\t": "\\t", "\b": "\\b" }[char];
  const code = char.codePointAt(0)!;
  return short ?? (code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`);
}
