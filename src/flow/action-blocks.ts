/**
 * Action blocks in what a model said: fences that stand for themselves in its message, each around one JSON object. Pure,
 * in one pass over the text, and without an exception for any text: whatever is wrong with a block is told.
 */
import { fencesIn, type Fence } from "./text/fences.ts";
import { FORBIDDEN_NAMES, isObject, own, parseJson, sameJson, type Json, type JsonObject } from "./json.ts";
import type { Actions } from "./settings.ts";

export type Action = {
  readonly type: string;
  readonly content: string;
  /** All other members of the block. */
  readonly metadata: JsonObject;
};

export type Block =
  | { readonly kind: "action"; readonly action: Action }
  /** It looks like an action, and is none that can be carried out. */
  | { readonly kind: "refused"; readonly why: string };

/** Ceilings for one message. */
export const BLOCK_CAPS = { blocks: 10, bytes: 64 * 1024, depth: 16 } as const;

/** In the order of the text. `answer`: the payload of the visit, which may itself be a fenced object. */
export function blocksIn(
  text: string,
  settings: Pick<Actions, "types" | "outputFormat">,
  answer: JsonObject | null = null,
): readonly Block[] {
  const blocks: Block[] = [];
  let beyond = 0;
  for (const fence of fencesIn(text)) {
    const block = readBlock(fence, settings, answer);
    if (block === null) continue;
    if (blocks.length < BLOCK_CAPS.blocks) blocks.push(block);
    else beyond += 1;
  }
  if (beyond === 0) return blocks;
  return [...blocks, refused(`${beyond} more than the ${BLOCK_CAPS.blocks} blocks that a message may have`)];
}

function readBlock(
  { info, body, isClosed }: Fence,
  { types, outputFormat }: Pick<Actions, "types" | "outputFormat">,
  answer: JsonObject | null,
): Block | null {
  const isNamed = types.includes(info);
  if (!isNamed && (info !== outputFormat || info === "")) return null;
  const name = `the block "${cut(info)}"`;
  if (!isClosed) return refused(`${name} is not closed`);
  if (Buffer.byteLength(body) > BLOCK_CAPS.bytes)
    return refused(`${name} is longer than ${BLOCK_CAPS.bytes} bytes`);
  const value = parseJson(body);
  if (value === undefined) return refused(`${name} is not JSON`);
  if (!isObject(value)) return isNamed ? refused(`${name} does not contain an object`) : null;
  const type = own(value, "type") ?? (isNamed ? info : undefined);
  // Any other data that is shown to somebody, or the answer itself.
  if (type === undefined || (!isNamed && answer !== null && sameJson(value, answer))) return null;
  if (typeof type !== "string") return refused(`"type" of ${name} is not a string`);
  if (!types.includes(type))
    return refused(`${name} is of the type "${cut(type)}", which is not among runner.actions.types`);
  if (isNamed && info !== outputFormat && type !== info)
    return refused(`${name} says that it is of the type "${cut(type)}"`);
  const fault = faultIn(value);
  return fault === null ? readMembers(type, value) : refused(`${name} ${fault}`);
}

function readMembers(type: string, value: JsonObject): Block {
  const { type: _, content = "", ...metadata } = value;
  if (typeof content !== "string")
    return refused(`"content" of the block of the type "${type}" is not a string`);
  return { kind: "action", action: { type, content, metadata } };
}

function refused(why: string): Block {
  return { kind: "refused", why };
}

/** Walks without recursion. */
function faultIn(value: Json): string | null {
  const open: { readonly value: Json; readonly depth: number }[] = [{ value, depth: 1 }];
  for (let here = open.pop(); here !== undefined; here = open.pop()) {
    const { value: json, depth } = here;
    if (typeof json !== "object" || json === null) continue;
    if (depth > BLOCK_CAPS.depth) return `is nested deeper than ${BLOCK_CAPS.depth}`;
    const name = Object.keys(json).find((key) => FORBIDDEN_NAMES.has(key));
    if (name !== undefined) return `has a member "${name}"`;
    for (const member of Object.values(json) as readonly Json[])
      open.push({ value: member, depth: depth + 1 });
  }
  return null;
}

function cut(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
