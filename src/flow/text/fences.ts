/**
 * Fenced blocks in a text, as CommonMark has them. A fence inside of another fence, or of HTML that quotes or folds its
 * content away, is not a block of its own.
 */
export type Fence = {
  readonly info: string;
  readonly body: string;
  readonly isClosed: boolean;
  /** Its first line, and the one after its last. */
  readonly from: number;
  readonly to: number;
};
type Opening = { readonly char: string; readonly size: number; readonly info: string };

/** `indented`: also those that stand deeper than three spaces, as in the item of a list. In one pass over the text. */
export function* fencesIn(text: string, indented = false): Generator<Fence> {
  let open: Opening | null = null;
  let from = 0;
  let body: string[] = [];
  /** What ends the HTML that the text is in. */
  let html: string | null = null;
  const lines = text.split("\n");
  for (const [at, line] of lines.entries()) {
    if (open !== null) {
      if (!closes(line, open, indented)) body.push(line);
      else {
        yield { info: open.info, body: body.join("\n"), isClosed: true, from, to: at + 1 };
        [open, body] = [null, []];
      }
      continue;
    }
    html ??= htmlIn(line);
    if (html === null) [open, from] = [opening(line, indented), at];
    else if (line.toLowerCase().includes(html)) html = null;
  }
  if (open !== null) yield { info: open.info, body: "", isClosed: false, from, to: lines.length };
}

function opening(line: string, indented: boolean): Opening | null {
  const run = runIn(line, indented);
  if (run === null) return null;
  const info = run.rest.trim();
  return run.char === "`" && info.includes("`") ? null : { char: run.char, size: run.size, info };
}

function closes(line: string, open: Opening, indented: boolean): boolean {
  const run = runIn(line, indented);
  return run !== null && run.char === open.char && run.size >= open.size && run.rest.trim() === "";
}

type Run = { readonly char: string; readonly size: number; readonly rest: string };

/** At least three of the same mark, at most three spaces from the margin unless `indented`. */
function runIn(line: string, indented: boolean): Run | null {
  let from = 0;
  const space = indented ? " \t" : " ";
  while (from < line.length && space.includes(line[from]!)) from += 1;
  const char = line[from];
  if ((from > 3 && !indented) || (char !== "`" && char !== "~")) return null;
  let end = from;
  while (line[end] === char) end += 1;
  return end - from < 3 ? null : { char, size: end - from, rest: line.slice(end) };
}

const HTML = ["pre", "script", "style", "textarea", "blockquote", "details"];

/** Whatever is in a comment or in an element that quotes or folds away is not said to us. */
function htmlIn(line: string): string | null {
  const start = line.trimStart();
  if (!start.startsWith("<")) return null;
  if (start.startsWith("<!--")) return "-->";
  const word = start.slice(1, 12).toLowerCase();
  const name = HTML.find((tag) => word.startsWith(tag) && !isLetter(word[tag.length] ?? ""));
  return name === undefined ? null : `</${name}`;
}

function isLetter(char: string): boolean {
  return char >= "a" && char <= "z";
}
