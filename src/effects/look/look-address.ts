/** Whether what is to be read at an address is as a stop rule wants it. */
import type { Sight } from "../../flow/event.ts";
import type { Resource } from "../../flow/flow.ts";
import { isObject, own, parseJson, sameJson, type Json, type JsonObject } from "../../flow/json.ts";
import { fillArgument } from "../actions/arguments.ts";

/** Whatever goes wrong, the state was not seen, and so it is not the one that is wanted. */
export async function lookAtAddress(
  { url: template, want }: Extract<Resource, { kind: "api" }>,
  args: JsonObject,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Sight> {
  const filled = fillArgument(template, args, encodeSegment);
  if (filled.kind === "unresolved") return { met: false, what: filled.why };
  const url = filled.text;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await get(new URL(url), AbortSignal.any([signal, timeout]));
    if (!response.ok) {
      await response.body?.cancel();
      return { met: false, what: `${url} answered ${response.status}` };
    }
    const text = await readBody(response);
    const found = parseJson(text);
    if (found === undefined)
      return { met: false, what: `${url} answered with no JSON: ${text.slice(0, 200)}` };
    const met = holds(found, want);
    return { met, what: `${url} ${met ? "answers with" : "does not answer with"} ${JSON.stringify(want)}` };
  } catch (error) {
    const why = timeout.aborted ? `nothing came within ${timeoutMs} ms` : wordsFor(error);
    return { met: false, what: `${url} was not read: ${why}` };
  }
}

/** Every member that is wanted is there with its value; lists must be the same. */
export function holds(found: Json, want: Json): boolean {
  if (!isObject(want) || !isObject(found)) return sameJson(found, want);
  return Object.entries(want).every(([key, value]) => {
    const member = own(found, key);
    return member !== undefined && holds(member, value);
  });
}

const MOST_REDIRECTS = 5;
const MOST_READ = 1024 * 1024;

/** Redirects are followed within the same origin: trust was given to that one, and https does not become http. */
async function get(url: URL, signal: AbortSignal): Promise<Response> {
  let here = url;
  for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
    const response = await fetch(here, {
      redirect: "manual",
      signal,
      headers: { accept: "application/json" },
    });
    const to = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || to === null) return response;
    await response.body?.cancel();
    const next = new URL(to, here);
    if (!mayFollow(here, next)) throw new Error(`it leads on to ${next.origin}, which is not followed`);
    here = next;
  }
  throw new Error(`it leads on more than ${MOST_REDIRECTS} times`);
}

export function mayFollow(from: URL, to: URL): boolean {
  const isWeb = to.protocol === "http:" || to.protocol === "https:";
  return isWeb && to.origin === from.origin && to.username === "" && to.password === "";
}

async function readBody({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MOST_READ) throw new Error(`the answer is longer than ${MOST_READ} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A whole segment of dots would lead up in the path, however it is written. */
function encodeSegment(text: string): string | null {
  return text === "." || text === ".." ? null : encodeURIComponent(text);
}

/** `fetch failed` says nothing; what it was is in the cause. */
function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
