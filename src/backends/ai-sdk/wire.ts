/** The wire below the providers' packages: what is added to a request, and what the server really sent. */
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import type { ModelPatience } from "./patience.ts";

/** One request and its response. */
export type Exchange = {
  readonly signal: AbortSignal;
  /** A whole document that came where a stream was asked for. */
  readonly document: () => string | null;
  /** Answers the next request with that document, so that it can be read as what it is. */
  readonly readAgain: () => void;
  /** The last part of the response, as far as it was read. */
  readonly tail: () => string;
};

export type ModelWire = {
  readonly open: (patience: ModelPatience, streams: boolean) => Exchange;
  /** Adds `extra` to the body of each request. */
  readonly fetch: (extra: JsonObject) => typeof globalThis.fetch;
};

type Line = {
  readonly patience: ModelPatience;
  readonly streams: boolean;
  document: string | null;
  isReadAgain: boolean;
  tail: Uint8Array[];
};

export function createModelWire(fetch: typeof globalThis.fetch): ModelWire {
  const lines = new WeakMap<AbortSignal, Line>();
  return {
    open: (patience, streams) => {
      const { signal } = patience;
      const line: Line = { patience, streams, document: null, isReadAgain: false, tail: [] };
      lines.set(signal, line);
      return {
        signal,
        document: () => line.document,
        readAgain: () => void (line.isReadAgain = true),
        tail: () => new TextDecoder().decode(Buffer.concat(line.tail)),
      };
    },
    fetch: (extra) => async (input, init) => {
      const line = init?.signal ? lines.get(init.signal) : undefined;
      if (line?.isReadAgain === true && line.document !== null)
        return new Response(line.document, { headers: { "content-type": "application/json" } });
      // A key goes to the address it was meant for, and not to where that one points.
      const response = await fetch(input, { ...withBody(init, extra), redirect: "manual" });
      line?.patience.heard();
      if (line === undefined || response.body === null) return response;
      const reader = response.body.getReader();
      const first = line.streams && response.ok ? await firstBytes(reader, line) : [];
      if (isDocument(first)) {
        line.document = await readWhole(reader, first, line);
        throw new Error("The server did not answer with a stream.");
      }
      return new Response(received(reader, first, line, response.ok ? Infinity : LONGEST_ERROR), response);
    },
  };
}

function withBody(init: RequestInit | undefined, extra: JsonObject): RequestInit {
  if (typeof init?.body !== "string" || Object.keys(extra).length === 0) return init ?? {};
  return { ...init, body: JSON.stringify(merged(JSON.parse(init.body) as Json, extra)) };
}

/** As in RFC 7396: objects are merged member by member, null takes a member out, everything else is replaced. */
function merged(value: Json, extra: Json): Json {
  if (!isObject(extra)) return extra;
  const before = isObject(value) ? value : {};
  const members = Object.entries(extra).map(
    ([key, more]) => [key, merged(own(before, key) ?? null, more)] as const,
  );
  const all = Object.entries({ ...before, ...Object.fromEntries(members) });
  return Object.fromEntries(all.filter(([key]) => own(extra, key) !== null));
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Up to the first that is not a space: every line of an event stream begins with the name of a field or with a colon. */
async function firstBytes(reader: Reader, line: Line): Promise<readonly Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let size = 0; size < MOST_SPACE;) {
    const { done, value } = await reader.read();
    line.patience.heard();
    if (done) break;
    chunks.push(value);
    size += value.length;
    if (textOf(chunks).trimStart() !== "") break;
  }
  return chunks;
}

const MOST_SPACE = 64 * 1024;

function isDocument(first: readonly Uint8Array[]): boolean {
  return first.length > 0 && /^\uFEFF?\s*[{[<]/.test(textOf(first));
}

function textOf(chunks: readonly Uint8Array[]): string {
  return new TextDecoder("utf8", { ignoreBOM: false }).decode(Buffer.concat(chunks));
}

/** A document without an end must not fill the memory. */
const LONGEST_DOCUMENT = 16 * 1024 * 1024;

async function readWhole(reader: Reader, first: readonly Uint8Array[], line: Line): Promise<string> {
  const chunks = [...first];
  let size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  while (size <= LONGEST_DOCUMENT) {
    const { done, value } = await reader.read();
    line.patience.heard();
    if (done) return textOf(chunks);
    chunks.push(value);
    size += value.length;
  }
  await reader.cancel();
  return "";
}

const LONGEST_TAIL = 64 * 1024;
/** The reason for a refusal is at its beginning. */
const LONGEST_ERROR = 1024 * 1024;

/** The same bytes. Read only when they are asked for: a transform in between would cost more than the request. */
function received(
  reader: Reader,
  first: readonly Uint8Array[],
  line: Line,
  longest: number,
): ReadableStream<Uint8Array> {
  const waiting = [...first];
  let kept = 0;
  let size = 0;
  const keep = (chunk: Uint8Array) => {
    line.tail.push(chunk);
    kept += chunk.length;
    while (line.tail.length > 1 && kept - line.tail[0]!.length >= LONGEST_TAIL)
      kept -= line.tail.shift()!.length;
  };
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } =
          waiting.length > 0 ? { done: false, value: waiting.shift() } : await reader.read();
        line.patience.heard();
        if (done || value === undefined) return controller.close();
        keep(value);
        controller.enqueue(value);
        size += value.length;
        if (size <= longest) return;
        controller.close();
        await reader.cancel();
      },
      cancel: async (reason) => await reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
