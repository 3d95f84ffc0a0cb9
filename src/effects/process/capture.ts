/** Keeps the head and the tail of an output of any length, in bounded memory. */
import { StringDecoder } from "node:string_decoder";

export type Capture = {
  readonly write: (chunk: Buffer) => void;
  /** What was kept; where something is missing, a line says how many bytes. */
  readonly text: () => string;
  readonly truncated: () => boolean;
};

/**
 * At most `limit` bytes are shown: the first half of them from the head of the output, the rest from its tail. `tidy` is
 * given the text before it is cut, with a margin behind the cuts: what it looks for is whole wherever the cuts fall.
 */
export function createCapture(
  limit: number,
  tidy?: (text: string) => string,
  encoding: BufferEncoding = "utf8",
): Capture {
  const margin = tidy === undefined ? 0 : MARGIN;
  const headLimit = Math.ceil(limit / 2);
  const tailLimit = limit - headLimit;
  const head = createPieces();
  const tail = createPieces();
  let seen = 0;

  const write = (chunk: Buffer) => {
    seen += chunk.length;
    const first = chunk.subarray(0, headLimit + margin - head.bytes());
    head.add(first);
    tail.add(chunk.subarray(first.length));
    if (tail.bytes() > 2 * (tailLimit + margin) + PIECE_SLACK) tail.keepLast(tailLimit + margin);
  };

  const truncated = () => seen > limit;
  const tidied = (bytes: Buffer) => (tidy === undefined ? bytes : Buffer.from(tidy(bytes.toString("utf8"))));

  const text = () => {
    const isWhole = seen <= limit + 2 * margin;
    if (!isWhole) tail.keepLast(tailLimit + margin);
    const whole = isWhole ? tidied(Buffer.concat([head.join(), tail.join()])) : null;
    if (whole !== null && whole.length <= limit) return whole.toString(encoding);
    // However much shorter it became: what lies at the very edge of a margin may be half of something.
    const edge = whole === null ? margin / 2 : 0;
    const first = whole ?? tidied(head.join());
    const last = whole ?? tidied(tail.join());
    const start = first.subarray(0, Math.min(headLimit, first.length - edge));
    const end = last.subarray(Math.max(edge, last.length - tailLimit));
    const cut = (whole?.length ?? seen) - limit;
    return `${wholeStart(start)}\n[… ${cut} bytes cut …]\n${wholeEnd(end)}`;
  };

  return { write, text, truncated };
}

/** The text itself when it is short enough, else its head and tail. */
export function clipCaptured(text: string, limit: number): string {
  // No character takes more than three bytes for each unit of the string.
  if (text.length * 3 <= limit && text.isWellFormed()) return text;
  const capture = createCapture(limit);
  capture.write(Buffer.from(text));
  return capture.text();
}

/** Longer than any key. */
const MARGIN = 8 * 1024;
const PIECE_SLACK = 64 * 1024;
const MAX_PIECES = 1024;

/** A growing buffer; a flood of tiny chunks is joined now and then, so that it costs bytes and not objects. */
function createPieces() {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const join = () => {
    const whole = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
    pieces = [whole];
    return whole;
  };
  return {
    join,
    bytes: () => bytes,
    add: (piece: Buffer) => {
      if (piece.length === 0) return;
      pieces.push(piece);
      bytes += piece.length;
      if (pieces.length > MAX_PIECES) join();
    },
    keepLast: (count: number) => {
      const whole = join();
      pieces = [Buffer.from(whole.subarray(Math.max(0, whole.length - count)))];
      bytes = Math.min(bytes, count);
    },
  };
}

/** The text without a character that was cut in two at its end. */
function wholeStart(bytes: Buffer): string {
  return new StringDecoder("utf8").write(bytes);
}

/** The text without the rest of a character that was cut in two at its start. */
function wholeEnd(bytes: Buffer): string {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0b1100_0000) === 0b1000_0000) start += 1;
  return bytes.toString("utf8", start);
}
