/** Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON. A run waits for it only for a moment. */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Attributes, TraceSpan } from "../flow/span.ts";

export type Exporter = {
  readonly add: (spans: readonly TraceSpan[]) => void;
  /** Sends what is left, within the given time. What a person should know of it. */
  readonly close: (withinMs: number) => Promise<readonly string[]>;
};

export type ExporterOptions = {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  readonly resource: Attributes;
  /** What the ids of the trace are made from. */
  readonly trace: string;
};

const EVERY_MS = 3000;
const MOST_IN_A_BATCH = 500;
const MOST_WAITING = 20_000;
/** The first wait before a batch is sent again, where the collector does not say; each one after it is twice as long. */
const FIRST_WAIT_MS = 100;
const MOST_RETRIES = 4;

export function createExporter(options: ExporterOptions): Exporter {
  const waiting: TraceSpan[] = [];
  const stop = new AbortController();
  let lost = 0;
  let trouble = "";
  let sending: Promise<void> = Promise.resolve();
  /** When a batch that the collector refused may be sent again, by a clock that is never set; and how often it was. */
  let again = { at: 0, refused: 0 };

  async function sendAll(): Promise<void> {
    while (waiting.length > 0 && performance.now() >= again.at) {
      const batch = waiting.slice(0, MOST_IN_A_BATCH);
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(EVERY_MS)]);
      const refusal = await send(options, batch, signal);
      trouble = refusal?.why ?? trouble;
      // What the collector may accept later stays for the next round.
      if (refusal?.isPassing) {
        const { refused } = again;
        const wait = refusal.retryAfterMs ?? FIRST_WAIT_MS * 2 ** Math.min(refused, 5);
        const isThere = refusal.status !== undefined;
        again = isThere ? { at: performance.now() + wait, refused: refused + 1 } : { at: 0, refused: 0 };
        return;
      }
      again = { at: 0, refused: 0 };
      waiting.splice(0, batch.length);
      if (refusal !== null) lost += batch.length;
    }
  }

  const flush = () => (sending = sending.then(sendAll));
  const timer = setInterval(() => void flush(), EVERY_MS);
  timer.unref();
  return {
    add: (spans) => {
      const taken = spans.slice(0, Math.max(0, MOST_WAITING - waiting.length));
      waiting.push(...taken);
      lost += spans.length - taken.length;
    },
    close: async (withinMs) => {
      clearInterval(timer);
      const end = performance.now() + withinMs;
      const limit = setTimeout(() => stop.abort(new Error("it did not answer in time")), withinMs);
      await flush();
      // Only a collector that answers is worth waiting for, and not for longer than there is time.
      const mayRetry = () => again.refused > 0 && again.refused <= MOST_RETRIES && again.at < end;
      while (waiting.length > 0 && mayRetry() && !stop.signal.aborted) {
        await delay(Math.max(0, again.at - performance.now()), undefined, { signal: stop.signal }).catch(
          () => undefined,
        );
        await flush();
      }
      clearTimeout(limit);
      const missing = lost + waiting.length;
      if (missing === 0) return [];
      return [`${missing} spans could not be sent to ${new URL(options.url).origin}: ${trouble}`];
    },
  };
}

/** `status` is absent where nothing answered. */
type Refusal = {
  readonly why: string;
  readonly isPassing: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;
};

/** Null when it was taken. Not followed elsewhere: the headers are meant for this address. */
async function send(
  { url, headers, resource, trace }: ExporterOptions,
  batch: readonly TraceSpan[],
  signal: AbortSignal,
): Promise<Refusal | null> {
  try {
    const {
      ok,
      status,
      body,
      headers: answered,
    } = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(toRequest(resource, trace, batch)),
      redirect: "error",
      signal,
    });
    await body?.cancel();
    if (ok) return null;
    const retryAfterMs = waitIn(answered.get("retry-after"));
    const asked = retryAfterMs === null ? {} : { retryAfterMs };
    return { why: `it answered ${status}`, isPassing: PASSING.has(status), status, ...asked };
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error && cause.message !== "" ? cause.message : message;
    // An address may hold a password.
    return { why: why.replaceAll(url, "the address"), isPassing: true };
  }
}

/** `Retry-After` is a number of seconds or a date. */
function waitIn(text: string | null): number | null {
  if (text === null) return null;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

const PASSING: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

function toRequest(resource: Attributes, trace: string, batch: readonly TraceSpan[]): unknown {
  const spans = batch.map((span) => toSpan(trace, span));
  return {
    resourceSpans: [
      {
        resource: { attributes: toAttributes(resource) },
        scopeSpans: [{ scope: { name: "lockstep" }, spans }],
      },
    ],
  };
}

/** 64-bit numbers are written as text, ids as hexadecimal digits. */
function toSpan(
  trace: string,
  { key, parent, name, kind, start, end, attributes, failed }: TraceSpan,
): unknown {
  return {
    traceId: hex(trace, 32),
    spanId: hex(`${trace} ${key}`, 16),
    ...(parent !== null && { parentSpanId: hex(`${trace} ${parent}`, 16) }),
    name,
    kind: kind === "client" ? 3 : 1,
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(Math.max(start, end)),
    attributes: toAttributes(attributes),
    status: failed ? { code: 2 } : {},
  };
}

function toAttributes(attributes: Attributes): unknown {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toValue(value) }));
}

function toValue(value: Attributes[string]): unknown {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number")
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map(toValue) } };
}

function hex(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms)) * 1_000_000n);
}
