/** Failure prompts rendered: parsed first and rendered once, so that what a value holds stays text. */
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { parseRetry, type RetryNode } from "../flow/text/retry.ts";

export function renderRetry(text: string, params: JsonObject): string {
  const room: Room = { chars: MOST_CHARS, nodes: MOST_NODES };
  const rendered = render(parseRetry(text).nodes, params, undefined, room);
  return isFull(room)
    ? `${rendered}\n[… cut: the prompt would be longer than ${MOST_CHARS} characters]`
    : rendered;
}

/** Lists inside of lists multiply: what is left to be said, and to be looked at. */
type Room = { chars: number; nodes: number };
const MOST_CHARS = 1024 * 1024;
const MOST_NODES = 200_000;

function isFull({ chars, nodes }: Room): boolean {
  return chars < 0 || nodes < 0;
}

function render(nodes: readonly RetryNode[], params: JsonObject, item: Json | undefined, room: Room): string {
  let text = "";
  const say = (more: string) => {
    text += more.slice(0, Math.max(0, room.chars));
    room.chars -= more.length;
  };
  for (const node of nodes) {
    room.nodes -= 1;
    if (isFull(room)) break;
    switch (node.kind) {
      case "text":
        say(node.text);
        break;
      case "value":
        say(toText(read(node.path, params, item)));
        break;
      case "each": {
        const list = read(node.path, params, item);
        for (const member of Array.isArray(list) ? (list as readonly Json[]) : []) {
          if (isFull(room)) break;
          room.nodes -= 1;
          text += render(node.body, params, member, room);
        }
        break;
      }
      case "if":
        text += render(isTrue(read(node.path, params, item)) ? node.yes : node.no, params, item, room);
    }
  }
  return text;
}

function read(path: readonly string[], params: JsonObject, item: Json | undefined): Json | undefined {
  const [head = "", ...rest] = path;
  let here: Json | undefined = head === "this" ? item : own(params, head);
  for (const name of rest) here = isObject(here) ? own(here, name) : undefined;
  return here;
}

function isTrue(value: Json | undefined): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

function toText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((member: Json) => toText(member)).join(", ");
  return JSON.stringify(value);
}
