/** Reading what a model gave back: bounded first, then a JSON object if there is one. Nothing here trusts the value. */
import type { jsonrepair } from "jsonrepair";
import { fencesIn } from "../../flow/text/fences.ts";
import { own, parseJsonObject, type Json, type JsonObject } from "../../flow/json.ts";
import type { Actions } from "../../flow/settings.ts";

export const ANSWER_CAPS = { depth: 64, nodes: 100_000, bytes: 1024 * 1024 } as const;

export type Bounded =
  | { readonly kind: "json"; readonly value: Json }
  | { readonly kind: "oversized"; readonly why: string };

/** The value as plain JSON within the caps: nesting which the journal could not write back is refused here. */
export function bound(value: unknown): Bounded {
  const size: Size = { nodes: 0, bytes: 0, plain: true };
  const why = excess(value, 1, size);
  if (why !== null) return { kind: "oversized", why };
  if (size.plain) return { kind: "json", value: value as Json };
  const text = JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "bigint" ? member.toString() : member,
  ) as string | undefined;
  return { kind: "json", value: text === undefined ? null : (JSON.parse(text) as Json) };
}

type Size = { nodes: number; bytes: number; plain: boolean };

/** Which cap the value is beyond, or null. It never goes deeper than the caps allow. */
function excess(here: unknown, depth: number, size: Size): string | null {
  if (++size.nodes > ANSWER_CAPS.nodes) return `more than ${ANSWER_CAPS.nodes} values`;
  if (depth > ANSWER_CAPS.depth) return `nested deeper than ${ANSWER_CAPS.depth}`;
  if (typeof here === "string") size.bytes += here.length;
  else if (Array.isArray(here)) {
    if (here.length > ANSWER_CAPS.nodes) return `more than ${ANSWER_CAPS.nodes} values`;
    for (const member of here) {
      const why = excess(member, depth + 1, size);
      if (why !== null) return why;
    }
  } else if (typeof here === "object" && here !== null) {
    const prototype: unknown = Object.getPrototypeOf(here);
    if (prototype !== Object.prototype && prototype !== null) size.plain = false;
    // Without a list of the keys: this is done for every object of every answer.
    for (const key in here) {
      if (!size.plain && !Object.hasOwn(here, key)) continue;
      size.bytes += key.length;
      const why = excess((here as { readonly [key: string]: unknown })[key], depth + 1, size);
      if (why !== null) return why;
    }
  } else if (here !== null && typeof here !== "boolean" && !Number.isFinite(here)) size.plain = false;
  return size.bytes > ANSWER_CAPS.bytes ? `longer than ${ANSWER_CAPS.bytes} characters` : null;
}

/** Repairing takes quadratic time: this much stays well below a second. */
const MOST_REPAIRED = 65_536;

/** Loaded when it is first needed, and kept: a module is looked up at each import(). */
let repair: typeof jsonrepair | null = null;

/**
 * The JSON object in a text: the whole text, else the last fenced block, else the last balanced pair of braces.
 * A candidate is repaired only where that cannot change its meaning; a truncated one is never completed.
 */
export async function extractObject(text: string): Promise<JsonObject | undefined> {
  for (const candidate of candidates(text)) {
    const parsed = parseJsonObject(candidate);
    if (parsed !== null) return parsed;
  }
  for (const candidate of candidates(text)) {
    if (candidate.length > MOST_REPAIRED || lastBalanced(candidate) === undefined) continue;
    repair ??= (await import("jsonrepair")).jsonrepair;
    try {
      const parsed = parseJsonObject(repair(candidate));
      if (parsed !== null) return parsed;
    } catch {
      // It cannot be repaired.
    }
  }
  return undefined;
}

/** The same where answers may ask for something to be done: the blocks that do so are no answer, wherever they stand. */
export async function extractBeside(text: string, actions: Actions): Promise<JsonObject | undefined> {
  const blocks = [...fencesIn(text)].filter(({ info, body }) => {
    if (actions.types.includes(info)) return true;
    const type = info === actions.outputFormat ? own(parseJsonObject(body) ?? {}, "type") : undefined;
    return typeof type === "string" && actions.types.includes(type);
  });
  if (blocks.length === 0) return await extractObject(text);
  const lines = text.split("\n");
  const beside = [...blocks, { from: lines.length }].flatMap(({ from }, at) =>
    lines.slice(blocks[at - 1]?.to ?? 0, from),
  );
  // One that nothing stands beside may be meant as the answer after all.
  return (await extractObject(beside.join("\n"))) ?? (await extractObject(text));
}

function* candidates(text: string): Generator<string> {
  const trimmed = text.trim();
  if (trimmed.startsWith("{") && trimmed.endsWith("}")) yield trimmed;
  const fenced = lastFenced(text);
  if (fenced !== undefined) yield fenced;
  const braces = lastBalanced(text);
  if (braces !== undefined) yield braces;
}

function lastFenced(text: string): string | undefined {
  let last: string | undefined;
  for (const { body } of fencesIn(text, true)) if (body.trimStart().startsWith("{")) last = body.trim();
  return last;
}

/** The last outermost `{…}` whose braces match, strings respected. */
function lastBalanced(text: string): string | undefined {
  let last: string | undefined;
  let from = text.indexOf("{");
  // A stray brace in prose costs one failed scan; hostile runs of them must not cost a quadratic number.
  for (let failures = 0; from !== -1 && failures < 32;) {
    const end = matchingBrace(text, from);
    if (end === -1) {
      failures += 1;
      from = text.indexOf("{", from + 1);
    } else {
      last = text.slice(from, end + 1);
      from = text.indexOf("{", end + 1);
    }
  }
  return last;
}

function matchingBrace(text: string, from: number): number {
  let depth = 0;
  let inString = false;
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (inString) {
      if (char === "\\") i += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{") depth += 1;
    else if (char === "}" && --depth === 0) return i;
  }
  return -1;
}
