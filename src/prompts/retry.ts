/**
 * The little language of retry prompts: `{{name}}`, `{{a.b}}`, `{{#each list}}…{{this}}…{{/each}}`,
 * `{{#if x}}…{{else}}…{{/if}}`. Parsed first and rendered once, so that what a value holds stays text.
 */
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";

export function renderRetry(text: string, params: JsonObject): string {
  const room: Room = { chars: MOST_CHARS, nodes: MOST_NODES };
  const rendered = render(parse(text), params, undefined, room);
  return isFull(room)
    ? `${rendered}\n[… cut: the prompt would be longer than ${MOST_CHARS} characters]`
    : rendered;
}

/** Lists inside of lists multiply: what is left to be said, and to be looked at. */
type Room = { chars: number; nodes: number };
const MOST_CHARS = 1024 * 1024;
const MOST_NODES = 200_000;
const DEEPEST = 32;

function isFull({ chars, nodes }: Room): boolean {
  return chars < 0 || nodes < 0;
}

type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly path: readonly string[] }
  | { readonly kind: "each"; readonly path: readonly string[]; readonly body: readonly Node[] }
  | {
      readonly kind: "if";
      readonly path: readonly string[];
      readonly yes: readonly Node[];
      readonly no: readonly Node[];
    };

type Open = {
  kind: "root" | "each" | "if";
  path: readonly string[];
  yes: Node[];
  no: Node[];
  inElse: boolean;
};

/** A tag that closes nothing, or is never closed, is left as it stands. */
function parse(text: string): readonly Node[] {
  const stack: Open[] = [opened("root", [])];
  const push = (node: Node) => {
    const top = stack.at(-1)!;
    (top.inElse ? top.no : top.yes).push(node);
  };
  let from = 0;
  for (const match of text.matchAll(/\{\{\s*(?:(#each|#if|else|\/each|\/if)\s*)?(?:([\w.-]+)\s*)?\}\}/g)) {
    push({ kind: "text", text: text.slice(from, match.index) });
    from = match.index + match[0].length;
    const [whole, tag, name = ""] = match;
    const top = stack.at(-1)!;
    const path = name.split(".");
    if (tag?.startsWith("#") === true && stack.length > DEEPEST) push({ kind: "text", text: whole });
    else if (tag === "#each") stack.push(opened("each", path));
    else if (tag === "#if") stack.push(opened("if", path));
    else if (tag === "else" && top.kind === "if") top.inElse = true;
    else if ((tag === "/each" && top.kind === "each") || (tag === "/if" && top.kind === "if")) {
      stack.pop();
      push(closed(top));
    } else if (tag === undefined && name !== "") push({ kind: "value", path });
    else push({ kind: "text", text: whole });
  }
  push({ kind: "text", text: text.slice(from) });
  while (stack.length > 1) {
    const open = stack.pop()!;
    push({ kind: "text", text: `{{#${open.kind} ${open.path.join(".")}}}` });
    for (const node of open.yes) push(node);
  }
  return stack[0]!.yes;
}

function opened(kind: Open["kind"], path: readonly string[]): Open {
  return { kind, path, yes: [], no: [], inElse: false };
}

function closed(open: Open): Node {
  const { path, yes, no } = open;
  return open.kind === "each" ? { kind: "each", path, body: yes } : { kind: "if", path, yes, no };
}

function render(nodes: readonly Node[], params: JsonObject, item: Json | undefined, room: Room): string {
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
