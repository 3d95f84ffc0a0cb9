/** Keeps the head and the tail of an output of any length, in bounded memory. */
import { StringDecoder } from "node:string_decoder";

export type Capture = {
  readonly write: (chunk: Buffer) => void;
  /** What was kept; where something is missing, a line says how many bytes. */
  readonly text: () => string;
  readonly truncated: () => boolean;
};

/** At most `limit` bytes are kept: the first half of them from the head of the output, the rest from its tail. */
export function createCapture(limit: number): Capture {
  const headLimit = Math.ceil(limit / 2);
  const tailLimit = limit - headLimit;
  const head = createPieces();
  const tail = createPieces();
  let seen = 0;

  const write = (chunk: Buffer) => {
    seen += chunk.length;
    const first = chunk.subarray(0, headLimit - head.bytes());
    head.add(first);
    tail.add(chunk.subarray(first.length));
    if (tail.bytes() > 2 * tailLimit + PIECE_SLACK) tail.keepLast(tailLimit);
  };

  const truncated = () => seen > limit;

  const text = () => {
    if (!truncated()) return Buffer.concat([head.join(), tail.join()]).toString("utf8");
    tail.keepLast(tailLimit);
    return `${wholeStart(head.join())}\n[… ${seen - limit} bytes cut …]\n${wholeEnd(tail.join())}`;
  };

  return { write, text, truncated };
}

/** The text itself when it is short enough, else its head and tail. */
export function clip(text: string, limit: number): string {
  const capture = createCapture(limit);
  capture.write(Buffer.from(text));
  return capture.text();
}

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
