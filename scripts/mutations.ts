/** Small defects that can be planted in a source text, found on its syntax tree: each is one edit. */
import { parseAst } from "rolldown/parseAst";

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface Mutation extends Edit {
  readonly kind: Kind;
  /** Line of the first character that changes, counted from 1. */
  readonly line: number;
}

export type Kind = (typeof KINDS)[number];

export const KINDS = [
  "condition dropped",
  "and for or",
  "negation dropped",
  "comparison",
  "off by one",
  "truth value",
  "fallback",
  "default",
  "order",
  "first for last",
  "some for every",
  "filter dropped",
  "largest for smallest",
  "arithmetic",
  "early exit dropped",
  "branch",
  "spread order",
  "part dropped",
  "case or space kept",
  "pattern",
  "statements swapped",
] as const;

/** The edits of a source text, in the order of their places. A few give a text that cannot be parsed: see `isValid`. */
export function mutationsOf(source: string): readonly Mutation[] {
  const found: Mutation[] = [];
  const add = (kind: Kind, edits: readonly Edit[]) => {
    for (const edit of edits) {
      const before = source.slice(edit.start, edit.end);
      if (before === edit.text || before === `(${edit.text})`) continue;
      const same = found.some(
        (known) => known.start === edit.start && known.end === edit.end && known.text === edit.text,
      );
      if (!same) found.push({ kind, line: lineOf(source, edit.start), ...edit });
    }
  };
  visit(parsed(source) as unknown as Node, [], (node, above) => {
    for (const [kind, edits] of EDITS) add(kind, edits(node, above, source));
  });
  return found.toSorted((a, b) => a.start - b.start);
}

export function planted(source: string, { start, end, text }: Edit): string {
  return source.slice(0, start) + text + source.slice(end);
}

/** The lines that an edit changes, before and after, as a short diff. */
export function diffOf(source: string, edit: Edit): string {
  const first = source.lastIndexOf("\n", edit.start - 1) + 1;
  const next = source.indexOf("\n", edit.end);
  const last = next === -1 ? source.length : next;
  const after = source.slice(first, edit.start) + edit.text + source.slice(edit.end, last);
  const marked = (text: string, mark: string) => text.split("\n").map((line) => `${mark} ${line}`);
  return [...marked(source.slice(first, last), "-"), ...marked(after, "+")].join("\n");
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

type Finder = (node: Node, above: readonly Node[], source: string) => readonly Edit[];

const EDITS: readonly (readonly [Kind, Finder])[] = [
  [
    "condition dropped",
    (node, _, source) =>
      node.type === "LogicalExpression" && node.operator !== "??"
        ? [whole(node, child(node, "left"), source), whole(node, child(node, "right"), source)]
        : [],
  ],
  ["and for or", (node, _, source) => swapped(node, "LogicalExpression", { "&&": "||", "||": "&&" }, source)],
  [
    "negation dropped",
    (node, _, source) =>
      node.type === "UnaryExpression" && node.operator === "!"
        ? [whole(node, child(node, "argument"), source)]
        : [],
  ],
  [
    "comparison",
    (node, _, source) =>
      swapped(
        node,
        "BinaryExpression",
        { "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===" },
        source,
      ),
  ],
  [
    "off by one",
    (node) =>
      node.type === "Literal" && typeof node.value === "number"
        ? [replaced(node, otherNumber(node.value))]
        : [],
  ],
  [
    "truth value",
    (node, above) =>
      node.type === "Literal" && typeof node.value === "boolean" && !isWhile(above)
        ? [replaced(node, `${!node.value}`)]
        : [],
  ],
  [
    "fallback",
    (node, _, source) =>
      node.type === "LogicalExpression" && node.operator === "??"
        ? [whole(node, child(node, "left"), source), whole(node, child(node, "right"), source)]
        : [],
  ],
  [
    "default",
    (node, _, source) =>
      node.type === "AssignmentPattern" ? [replaced(node, textOf(child(node, "left"), source))] : [],
  ],
  [
    "order",
    (node, _, source) => {
      if (!isCall(node, ["toSorted", "sort", "toReversed", "reverse"])) return [];
      return [whole(node, child(child(node, "callee"), "object"), source)];
    },
  ],
  [
    "first for last",
    (node, _, source) => [
      ...renamed(node, {
        find: "findLast",
        findLast: "find",
        findIndex: "findLastIndex",
        findLastIndex: "findIndex",
        indexOf: "lastIndexOf",
        lastIndexOf: "indexOf",
        shift: "pop",
        pop: "shift",
        startsWith: "includes",
        endsWith: "includes",
      }),
      ...(isCall(node, ["at"]) ? firstForLast(node, source) : []),
    ],
  ],
  ["some for every", (node) => renamed(node, { some: "every", every: "some" })],
  [
    "filter dropped",
    (node, _, source) =>
      isCall(node, ["filter"]) ? [whole(node, child(child(node, "callee"), "object"), source)] : [],
  ],
  ["largest for smallest", (node) => renamed(node, { max: "min", min: "max" })],
  [
    "arithmetic",
    (node, _, source) =>
      isNumeric(node)
        ? swapped(node, "BinaryExpression", { "+": "-", "-": "+", "*": "/", "/": "*" }, source)
        : [],
  ],
  [
    "early exit dropped",
    (node) =>
      node.type === "IfStatement" && node.alternate === null && isExit(child(node, "consequent"))
        ? [replaced(node, ";")]
        : [],
  ],
  [
    "branch",
    (node, _, source) =>
      node.type === "ConditionalExpression"
        ? [whole(node, child(node, "consequent"), source), whole(node, child(node, "alternate"), source)]
        : node.type === "IfStatement" && !isExit(child(node, "consequent"))
          ? [replaced(child(node, "test"), "false")]
          : [],
  ],
  ["spread order", (node, above, source) => (isUnordered(above) ? [] : spreads(node, source))],
  ["part dropped", (node, _, source) => parts(node, source)],
  [
    "case or space kept",
    (node, _, source) =>
      isCall(node, ["toLowerCase", "toUpperCase", "trim", "trimEnd", "trimStart", "normalize"])
        ? [whole(node, child(child(node, "callee"), "object"), source)]
        : [],
  ],
  ["pattern", (node) => patterns(node)],
  ["statements swapped", (node, _, source) => swaps(node, source)],
];

/** Keys of texts for people: what is said there is not a decision. */
const WORDS = new Set([
  "cause",
  "description",
  "fix",
  "help",
  "hint",
  "message",
  "note",
  "said",
  "summary",
  "text",
  "title",
  "what",
  "why",
]);

/** Nodes in which an edit only changes a text for people, or nothing that runs. */
function isSkipped(node: Node): boolean {
  if (/^(?:TS(?!As|NonNull|Satisfies|Instantiation)|Import|ExportAll)/.test(node.type)) return true;
  if (node.type === "TemplateLiteral" || node.type === "ThrowStatement") return true;
  if (node.type === "NewExpression") return /Error$|Warning$/.test(nameOf(child(node, "callee")));
  return node.type === "Property" && node.computed === false && WORDS.has(nameOf(child(node, "key")));
}

function visit(node: Node, above: readonly Node[], each: (node: Node, above: readonly Node[]) => void): void {
  if (isSkipped(node)) return;
  each(node, above);
  const path = [...above, node];
  for (const value of Object.values(node)) {
    for (const inner of Array.isArray(value) ? value : [value]) if (isNode(inner)) visit(inner, path, each);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function child(node: Node, key: string): Node {
  const value = node[key];
  if (!isNode(value)) throw new Error(`${node.type} has no part ${key}`);
  return value;
}

function children(node: Node, key: string): readonly Node[] {
  const value = node[key];
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function nameOf(node: Node): string {
  const { name, value } = node;
  return typeof name === "string" ? name : typeof value === "string" ? value : "";
}

function textOf(node: Node, source: string): string {
  return source.slice(node.start, node.end);
}

function replaced(node: Node, text: string): Edit {
  return { start: node.start, end: node.end, text };
}

/** A part takes the place of the whole. */
function whole(node: Node, part: Node, source: string): Edit {
  return replaced(node, `(${textOf(part, source)})`);
}

function swapped(
  node: Node,
  type: string,
  operators: { readonly [operator: string]: string },
  source: string,
): readonly Edit[] {
  if (node.type !== type) return [];
  const operator = String(node.operator);
  const other = operators[operator];
  if (other === undefined) return [];
  const from = child(node, "left").end;
  const start = from + source.slice(from, child(node, "right").start).indexOf(operator);
  return [{ start, end: start + operator.length, text: other }];
}

function isCall(node: Node, names: readonly string[]): boolean {
  if (node.type !== "CallExpression") return false;
  const callee = child(node, "callee");
  return (
    callee.type === "MemberExpression" &&
    callee.computed === false &&
    names.includes(nameOf(child(callee, "property")))
  );
}

function renamed(node: Node, names: { readonly [name: string]: string }): readonly Edit[] {
  if (!isCall(node, Object.keys(names))) return [];
  const property = child(child(node, "callee"), "property");
  return [replaced(property, names[nameOf(property)]!)];
}

function firstForLast(node: Node, source: string): readonly Edit[] {
  const [argument] = children(node, "arguments");
  if (argument === undefined) return [];
  return [replaced(argument, textOf(argument, source) === "-1" ? "0" : "-1")];
}

/** Only numbers are sure to be meant by these: `+` joins texts as well. */
function isNumeric(node: Node): boolean {
  if (node.type !== "BinaryExpression") return false;
  if (node.operator !== "+") return true;
  return [child(node, "left"), child(node, "right")].some(
    (side) => side.type === "Literal" && typeof side.value === "number",
  );
}

/** One more; a ceiling that is one higher makes no difference to anybody, so those become ten times as high. */
function otherNumber(value: number): string {
  return `${value < 60 ? value + 1 : value * 10}`;
}

/** What is done with a list does not depend on its order. */
function isUnordered(above: readonly Node[]): boolean {
  const parent = above.at(-1);
  if (parent?.type === "NewExpression") return nameOf(child(parent, "callee")) === "Set";
  return (
    parent?.type === "MemberExpression" && /^(?:some|every|includes)$/.test(nameOf(child(parent, "property")))
  );
}

function isWhile(above: readonly Node[]): boolean {
  return above.at(-1)?.type === "WhileStatement";
}

function isExit(node: Node): boolean {
  if (node.type === "ReturnStatement" || node.type === "ContinueStatement" || node.type === "BreakStatement")
    return true;
  const last = node.type === "BlockStatement" ? children(node, "body").at(-1) : undefined;
  return last !== undefined && isExit(last);
}

/** A spread and its neighbour change places: the other one wins. */
function spreads(node: Node, source: string): readonly Edit[] {
  const key = node.type === "ObjectExpression" ? "properties" : "elements";
  if (node.type !== "ObjectExpression" && node.type !== "ArrayExpression") return [];
  const items = children(node, key);
  return items.flatMap((item, at) => {
    const next = items[at + 1];
    if (next === undefined || (item.type !== "SpreadElement" && next.type !== "SpreadElement")) return [];
    if (key === "properties" && (item.type !== "SpreadElement" || isDisjoint(item, next))) return [];
    return [exchanged(item, next, source)];
  });
}

/** Neither can win over the other: both say which keys they have, and share none. */
function isDisjoint(one: Node, next: Node): boolean {
  const [ours, theirs] = [keysOf(one), keysOf(next)];
  return ours !== null && theirs !== null && !ours.some((key) => theirs.includes(key));
}

/** The keys that a part of an object brings, where they can be read off it. */
function keysOf(node: Node): readonly string[] | null {
  if (node.type === "Property") return node.computed === false ? [nameOf(child(node, "key"))] : null;
  if (node.type === "SpreadElement") return keysOf(child(node, "argument"));
  if (node.type === "LogicalExpression") return keysOf(child(node, "right"));
  const inner =
    node.type === "ConditionalExpression"
      ? [child(node, "consequent"), child(node, "alternate")]
      : node.type === "ObjectExpression"
        ? children(node, "properties")
        : null;
  const keys = inner?.map(keysOf) ?? [null];
  return keys.every((each) => each !== null) ? keys.flat() : null;
}

/** One part of an object that has several is left out. */
function parts(node: Node, source: string): readonly Edit[] {
  if (node.type !== "ObjectExpression") return [];
  const items = children(node, "properties");
  if (items.length < 2) return [];
  return items.flatMap((item, at) => {
    const next = items[at + 1];
    if (isSkipped(item) || item.method === true) return [];
    return [{ start: item.start, end: next?.start ?? item.end, text: "" }].filter(
      (edit) => !source.slice(edit.start, edit.end).includes("//"),
    );
  });
}

/** Adjacent statements that wait, change places: what was written before is written after. */
function swaps(node: Node, source: string): readonly Edit[] {
  if (node.type !== "BlockStatement") return [];
  const statements = children(node, "body");
  return statements.flatMap((one, at) => {
    const next = statements[at + 1];
    if (next === undefined || one.type !== "ExpressionStatement" || next.type !== "ExpressionStatement")
      return [];
    const waits = [one, next].some((each) => child(each, "expression").type === "AwaitExpression");
    return waits ? [exchanged(one, next, source)] : [];
  });
}

function exchanged(one: Node, next: Node, source: string): Edit {
  const between = source.slice(one.end, next.start);
  return {
    start: one.start,
    end: next.end,
    text: textOf(next, source) + between + textOf(one, source),
  };
}

/** A regular expression without one of its anchors, its looks ahead, or its disregard of case. */
function patterns(node: Node): readonly Edit[] {
  const { regex } = node as { readonly regex?: { readonly pattern: string; readonly flags: string } };
  if (node.type !== "Literal" || regex === undefined) return [];
  const { pattern, flags } = regex;
  const others = [
    pattern.replace(/^\^/, ""),
    pattern.replace(/(?<!\\)\$$/, ""),
    pattern.replace(/\(\?<?[!=](?:\\.|\[(?:\\.|[^\]])*\]|[^()\\])*\)/, ""),
    pattern.replace(/(?<!\\)\+/, "*"),
  ];
  return [
    ...others
      .filter((other) => other !== pattern && other !== "")
      .map((other) => replaced(node, `/${other}/${flags}`)),
    ...(flags.includes("i") ? [replaced(node, `/${pattern}/${flags.replace("i", "")}`)] : []),
  ];
}

export function lineOf(source: string, at: number): number {
  let line = 1;
  for (let next = source.indexOf("\n"); next !== -1 && next < at; next = source.indexOf("\n", next + 1))
    line += 1;
  return line;
}

function parsed(source: string) {
  return parseAst(source, { lang: "ts" }, "mutated.ts");
}

export function isValid(source: string): boolean {
  try {
    parsed(source);
    return true;
  } catch {
    return false;
  }
}
