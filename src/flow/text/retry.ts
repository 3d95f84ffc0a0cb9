/**
 * The little language of failure prompts, parsed: `{{name}}`, `{{a.b}}`, `{{#each list}}…{{this}}…{{/each}}`,
 * `{{#if x}}…{{else}}…{{/if}}`. What is not of the language stays text, and is reported as a fault.
 */

export type RetryNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly path: readonly string[] }
  | { readonly kind: "each"; readonly path: readonly string[]; readonly body: readonly RetryNode[] }
  | {
      readonly kind: "if";
      readonly path: readonly string[];
      readonly yes: readonly RetryNode[];
      readonly no: readonly RetryNode[];
    };

export type RetryTemplate = {
  readonly nodes: readonly RetryNode[];
  /** Every name that is read, where; `each`: within a list, where `this` is one of its members. */
  readonly reads: readonly {
    readonly path: readonly string[];
    readonly at: number;
    readonly each: boolean;
  }[];
  /** Tags that reach the model as they are written. */
  readonly faults: readonly RetryFault[];
};

export type RetryFault = { readonly at: number; readonly written: string; readonly what: string };

type Open = {
  kind: "root" | "each" | "if";
  path: readonly string[];
  written: string;
  at: number;
  yes: RetryNode[];
  no: RetryNode[];
  inElse: boolean;
};

const DEEPEST = 32;

export function parseRetry(text: string): RetryTemplate {
  const stack: Open[] = [opened("root", [], "", 0)];
  const reads: { path: readonly string[]; at: number; each: boolean }[] = [];
  const faults: RetryFault[] = [];
  const push = (node: RetryNode) => {
    const top = stack.at(-1)!;
    (top.inElse ? top.no : top.yes).push(node);
  };
  const leave = (at: number, written: string, what: string) => {
    faults.push({ at, written, what });
    push({ kind: "text", text: written });
  };
  const plain = (from: number, to: number) => {
    const part = text.slice(from, to);
    push({ kind: "text", text: part });
    for (const { index, 0: written } of part.matchAll(STRANGE))
      faults.push({ at: from + index, written, what: "it is not a tag of failure prompts" });
  };
  let from = 0;
  for (const match of text.matchAll(/\{\{\s*(?:(#each|#if|else|\/each|\/if)\s*)?(?:([\w.-]+)\s*)?\}\}/g)) {
    const at = match.index;
    plain(from, at);
    from = at + match[0].length;
    const [whole, tag, name = ""] = match;
    const top = stack.at(-1)!;
    const path = name.split(".");
    const isOpening = tag === "#each" || tag === "#if";
    if (isOpening || (tag === undefined && name !== ""))
      reads.push({ path, at, each: stack.some(({ kind }) => kind === "each") });
    if (isOpening && stack.length > DEEPEST) leave(at, whole, `blocks nest deeper than ${DEEPEST} levels`);
    else if (isOpening) stack.push(opened(tag === "#each" ? "each" : "if", path, whole, at));
    else if (tag === "else" && top.kind === "if") top.inElse = true;
    else if ((tag === "/each" && top.kind === "each") || (tag === "/if" && top.kind === "if")) {
      stack.pop();
      push(closed(top));
    } else if (tag === undefined && name !== "") push({ kind: "value", path });
    else if (tag === undefined) leave(at, whole, "it names nothing");
    else if (tag === "else") leave(at, whole, "there is no {{#if}} around it");
    else leave(at, whole, `there is no open {{#${tag.slice(1)}}} before it`);
  }
  plain(from, text.length);
  while (stack.length > 1) {
    const open = stack.pop()!;
    faults.push({ at: open.at, written: open.written, what: `it is never closed by {{/${open.kind}}}` });
    push({ kind: "text", text: `{{#${open.kind} ${open.path.join(".")}}}` });
    for (const node of open.yes) push(node);
  }
  return { nodes: stack[0]!.yes, reads, faults: faults.toSorted((a, b) => a.at - b.at) };
}

/** What looks like a tag, and is not one. */
const STRANGE = /\{\{[^{}\n]{0,80}\}\}/g;

function opened(kind: Open["kind"], path: readonly string[], written: string, at: number): Open {
  return { kind, path, written, at, yes: [], no: [], inElse: false };
}

function closed(open: Open): RetryNode {
  const { path, yes, no } = open;
  return open.kind === "each" ? { kind: "each", path, body: yes } : { kind: "if", path, yes, no };
}
