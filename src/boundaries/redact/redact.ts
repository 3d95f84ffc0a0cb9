/**
 * Takes secrets out of text before it is recorded, shown or sent on: the values we know, in any of the forms they travel
 * in, and whatever has the shape of a key. Most texts hold neither, and those cost one look.
 */
import { isEscaped, needlesFor, SHORTEST, unwritten, type Needles } from "./secret-forms.ts";
import { hintsAtShape, openBlockIn, shapesIn, type SecretSpan } from "./secret-shapes.ts";

export type Redactor = {
  readonly text: (text: string) => string;
  /** The same for every string and key in a value. What has nothing to hide is given back as it is. */
  readonly value: <T>(value: T) => T;
  /** The same for a text that comes in parts, wherever they are cut. */
  readonly stream: () => RedactedStream;
  /** From now on this value must not appear either. */
  readonly learn: (secret: string) => void;
};

/** Gives what can be shown so far; the rest is held back until it is certain that no secret has begun in it. */
export type RedactedStream = {
  readonly write: (part: string) => string;
  /** What was held back, when nothing more comes. */
  readonly end: () => string;
};

/** `known`: values that must not appear, whatever they look like. Asked for when the first text is looked at. */
export function createRedactor(known: () => readonly string[]): Redactor {
  let needles: Needles | null | undefined;
  const learned: string[] = [];
  /** Keys that hold nothing to hide: answers have the same ones again and again. */
  const clean = new Set<string>();
  const ofKnown = () => (needles === undefined ? (needles = found()) : needles);
  const found = () => needlesFor([...known(), ...learned]);

  const text = (whole: string): string => {
    if (whole.length < SHORTEST) return whole;
    const spans = spansIn(whole, ofKnown());
    return spans.length === 0 ? whole : replaced(whole, spans, 0, whole.length);
  };

  const value = (whole: unknown, depth: number): unknown => {
    if (typeof whole === "string") return text(whole);
    if (typeof whole !== "object" || whole === null || depth > DEEPEST) return whole;
    return Array.isArray(whole) ? list(whole, depth) : object(whole as Members, depth);
  };

  const list = (whole: readonly unknown[], depth: number): readonly unknown[] => {
    let copy: unknown[] | null = null;
    for (let place = 0; place < whole.length; place++) {
      const tidy = value(whole[place], depth + 1);
      if (tidy !== whole[place]) (copy ??= [...whole])[place] = tidy;
    }
    return copy ?? whole;
  };

  const object = (whole: Members, depth: number): Members => {
    let isClean = true;
    for (const key in whole) {
      if (value(whole[key], depth + 1) !== whole[key]) isClean = false;
      else if (key.length >= SHORTEST && !isCleanKey(key)) isClean = false;
    }
    if (isClean) return whole;
    return Object.fromEntries(
      Object.entries(whole).map(([key, member]) => [text(key), value(member, depth + 1)]),
    );
  };

  const isCleanKey = (key: string): boolean => {
    if (clean.has(key)) return true;
    if (text(key) !== key) return false;
    if (clean.size < MOST_CLEAN && key.length <= LONGEST_CLEAN) clean.add(key);
    return true;
  };

  const learn = (secret: string) => {
    learned.push(secret);
    clean.clear();
    needles = undefined;
  };

  return {
    text,
    value: (whole) => value(whole, 0) as typeof whole,
    stream: () => createStream(ofKnown),
    learn,
  };
}

type Members = { readonly [key: string]: unknown };

const MOST_CLEAN = 1000;
const LONGEST_CLEAN = 100;

/** Whatever is nested deeper is refused later on. */
const DEEPEST = 80;

/** What must not be seen of a text: in order, and apart from each other. */
function spansIn(text: string, needles: Needles | null): readonly SecretSpan[] {
  const mayHold = needles?.mayBeIn(text) ?? false;
  const isHinting = hintsAtShape(text);
  const isWrittenOddly = isEscaped(text);
  if (!mayHold && !isHinting && !isWrittenOddly) return NOTHING;
  const spans: SecretSpan[] = [];
  if (needles !== null && (mayHold || isWrittenOddly)) spans.push(...needles.in(text, isWrittenOddly));
  if (isHinting) spans.push(...shapesIn(text));
  if (isWrittenOddly) {
    const { plain, spanOf } = unwritten(text, false);
    if (plain !== text && hintsAtShape(plain)) spans.push(...shapesIn(plain).map(spanOf));
  }
  return spans.length < 2 ? spans : joined(spans);
}

const NOTHING: readonly SecretSpan[] = [];

/** What overlaps is one, under the mark of what was found first. */
function joined(spans: readonly SecretSpan[]): readonly SecretSpan[] {
  const all: { span: SecretSpan; rank: number }[] = [];
  const inOrder = spans.map((span, rank) => ({ span, rank })).toSorted((a, b) => a.span.from - b.span.from);
  for (const { span, rank } of inOrder) {
    const last = all.at(-1);
    if (last === undefined || span.from >= last.span.to) {
      all.push({ span, rank });
      continue;
    }
    const { mark } = rank < last.rank ? span : last.span;
    last.span = { from: last.span.from, to: Math.max(span.to, last.span.to), mark };
    last.rank = Math.min(rank, last.rank);
  }
  return all.map(({ span }) => span);
}

function replaced(text: string, spans: readonly SecretSpan[], from: number, to: number): string {
  let tidy = "";
  let at = from;
  for (const span of spans) {
    if (span.to <= at || span.from >= to) continue;
    tidy += text.slice(at, Math.max(at, span.from)) + span.mark;
    at = span.to;
  }
  return tidy + text.slice(at, Math.max(at, to));
}

// Texts that come in parts.

function createStream(ofKnown: () => Needles | null): RedactedStream {
  /** What came and is still looked at; up to `given`, it was given already. */
  let seen = "";
  let given = 0;

  const give = (to: number, spans: readonly SecretSpan[]): string => {
    const part = replaced(seen, spans, given, to);
    const drop = Math.max(0, to - CONTEXT);
    seen = seen.slice(drop);
    given = to - drop;
    return part;
  };

  return {
    write: (part) => {
      seen += part;
      const needles = ofKnown();
      const spans = spansIn(seen, needles);
      const to = certainEnd(seen, spans, needles);
      return to <= given ? "" : give(to, spans);
    },
    end: () => give(seen.length, spansIn(seen, ofKnown())),
  };
}

/** What was given already may still tell what the rest is: `Authorization: Basic` before a key. */
const CONTEXT = 1024;
/** Held back of any text: in it, a value may have begun that cannot be recognised yet. */
const HELD = 160;
/** A key stands in a run of characters without a space, so such a run is given whole, unless it becomes too long. */
const RUN = 8 * 1024;
const RUN_HELD = 4 * 1024;
const IN_RUN = /[\u0021-\u007e\u00ad\u200b-\u200f\u2060\ufeff]|[\p{Cc}--[\t\n\r]]/v;

/** Up to where nothing that is still to come can change what must not be seen. */
function certainEnd(text: string, spans: readonly SecretSpan[], needles: Needles | null): number {
  let end = Math.max(0, text.length - HELD);
  while (end > 0 && text.length - end < RUN && IN_RUN.test(text[end - 1]!)) end -= 1;
  if (text.length - end >= RUN) end = text.length - RUN_HELD;
  end = Math.min(end, needles?.beginsIn(text) ?? end, openBlockIn(text) ?? end);
  for (const span of spans.toReversed()) if (span.to > end && span.from < end) end = span.from;
  const isHalf = end > 0 && /[\udc00-\udfff]/.test(text[end] ?? "");
  return isHalf ? end - 1 : end;
}
