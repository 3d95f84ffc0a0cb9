/**
 * The little language of retry prompts: `{{name}}`, `{{a.b}}`, `{{#each list}}…{{this}}…{{/each}}`,
 * `{{#if x}}…{{else}}…{{/if}}`. Parsed first and rendered once, so that what a value holds stays text.
 */
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";

export function renderRetry(text: string, params: JsonObject): string {
  return render(parse(text), params, undefined);
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
    if (tag === "#each") stack.push(opened("each", path));
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

function render(nodes: readonly Node[], params: JsonObject, item: Json | undefined): string {
  return nodes
    .map((node) => {
      switch (node.kind) {
        case "text":
          return node.text;
        case "value":
          return toText(read(node.path, params, item));
        case "each": {
          const list = read(node.path, params, item);
          if (!Array.isArray(list)) return "";
          return list.map((member: Json) => render(node.body, params, member)).join("");
        }
        case "if":
          return render(isTrue(read(node.path, params, item)) ? node.yes : node.no, params, item);
      }
    })
    .join("");
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
