/** The suite itself, as far as its source shows it: waits have an end, tests assert something, files can be read. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parseAst } from "rolldown/parseAst";

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

const root = new URL("../", import.meta.url).pathname;
const files = globSync(["test/**/*.ts", "src/testing/*.ts"], { cwd: root, exclude: ["test/fixtures/**"] });
const trees = files.map((file) => ({ file, text: readFileSync(root + file, "utf8") })).map(parsed);

interface Parsed {
  readonly file: string;
  readonly text: string;
  readonly tree: Node;
}

function parsed({ file, text }: { file: string; text: string }): Parsed {
  return { file, text, tree: parseAst(text, { lang: "ts" }, file) as unknown as Node };
}

test("a test waits with an end: until() of test/until.ts", () => {
  const wrong = trees.flatMap(endlessWaits);
  assert.deepEqual(wrong, []);
});

test("the check above sees every form of such a wait", () => {
  const waits = (text: string) => endlessWaits(parsed({ file: "x", text })).length;
  for (const text of [
    "while (!a) await delay(1);",
    "while (!a) { b(); await sleep(1); }",
    "do await delay(1); while (!a);",
    "for (;;) { if (a) break; await delay(1); }",
    "for (let tries = 0; !a; tries++) await delay(1);",
    "while (!(await a())) await new Promise((resolve) => setTimeout(resolve, 5));",
    "while (!a) await new Promise(setImmediate);",
    "while (!a) await timers.setTimeout(1);",
  ])
    assert.equal(waits(`async function f() { ${text} }`), 1, text);
  for (const text of [
    "for (let tries = 0; tries < 9 && !a; tries++) await delay(1);",
    "for (const one of all) await delay(one);",
    "while (!a) { if (b) throw new Error(); await delay(1); }",
    "while (a) await next();",
    "while (a) { b(); }",
  ])
    assert.equal(waits(`async function f() { ${text} }`), 0, text);
});

test("every test asserts something", () => {
  const names = assertingNames(trees);
  const wrong = trees.flatMap((one) => testsWithout(one, names.get(one.file)!));
  assert.deepEqual(wrong, []);
});

test("the check above sees a test that only ends", () => {
  const found = (text: string) => {
    const one = parsed({ file: "x", text });
    return testsWithout(one, assertingNames([one]).get("x")!).length;
  };
  for (const text of [
    'test("a", () => { work(); });',
    'test("a", options, async () => { await work(); });',
    'it("a", () => work());',
    'function work() { other(); } test("a", () => work());',
    "const table = { a: () => work() }; for (const [title, body] of Object.entries(table)) test(title, () => body());",
    "const table = { a: () => assert.ok(x) }; for (const [title] of Object.entries(table)) test(title, () => work());",
  ])
    assert.equal(found(text), 1, text);
  for (const text of [
    'test("a", () => assert.equal(1, 1));',
    'test("a", () => { assert(x); });',
    'function work() { assert.ok(x); } test("a", () => work());',
    'const work = () => { deeper(); }; function deeper() { throw new Error(); } test("a", () => work());',
    'const w = { work: () => assert.ok(x) }; test("a", () => w.work());',
    'test("a", work);',
    "const table = { a: () => assert.ok(x) }; for (const [title, body] of Object.entries(table)) test(title, () => on(body));",
  ])
    assert.equal(found(text), 0, text);
});

test("no file of the suite has more than 800 lines: a long table belongs in files by subject", () => {
  const long = trees.filter(({ text }) => text.trimEnd().split("\n").length > 800).map(({ file }) => file);
  assert.deepEqual(long, []);
});

/** Loops that wait for time to pass, and that neither a count nor an error ends. */
function endlessWaits({ file, text, tree }: Parsed): readonly string[] {
  return all(tree)
    .filter((node) => /^(?:While|DoWhile|For)Statement$/.test(node.type))
    .filter((node) => !isCounted(node) && within(node).some(isPause) && !within(node).some(isThrow))
    .map((node) => placeOf(file, text, node));
}

/** `tries < 9`: there is a bound among the conditions that all have to hold. */
function isCounted({ type, test: condition }: Node): boolean {
  const bounds = (node: unknown): boolean => {
    if (!isNode(node)) return false;
    if (node.type === "LogicalExpression" && node.operator === "&&")
      return bounds(node.left) || bounds(node.right);
    return node.type === "BinaryExpression" && /^[<>]=?$/.test(String(node.operator));
  };
  return type === "ForStatement" && bounds(condition);
}

function isThrow({ type }: Node): boolean {
  return type === "ThrowStatement";
}

function isPause(node: Node): boolean {
  if (node.type !== "AwaitExpression" || !isNode(node.argument)) return false;
  const { argument } = node;
  if (argument.type === "CallExpression") return isTimer(calledName(argument));
  return argument.type === "NewExpression" && all(argument).some(({ name }) => isTimer(String(name)));
}

function isTimer(name: string): boolean {
  return /^(?:delay|sleep|setTimeout|setImmediate)$/.test(name);
}

/** Calls of test() and it() whose function neither asserts nor calls anything that does. */
function testsWithout({ file, text, tree }: Parsed, names: ReadonlySet<string>): readonly string[] {
  const nodes = all(tree);
  const ofTables = new Set(nodes.flatMap((node) => testsOfTable(node, names)));
  return nodes
    .filter((node) => !ofTables.has(node))
    .filter((node) => node.type === "CallExpression" && /^(?:test|it)$/.test(plainName(node.callee)))
    .filter((node) => {
      const work = (node.arguments as readonly Node[]).at(-1);
      return work !== undefined && isFunction(work) && !asserts(work, names);
    })
    .map((node) => placeOf(file, text, node));
}

/** Before the name of a table among the names that assert. */
const TABLE = "table ";

/** What stands in a loop over a table of functions that assert, and uses the one of its row. */
function testsOfTable({ type, left, right, body }: Node, names: ReadonlySet<string>): readonly Node[] {
  if (type !== "ForOfStatement" || !isNode(left) || !isNode(right) || !isNode(body)) return [];
  if (!all(right).some((node) => names.has(TABLE + plainName(node)))) return [];
  const bound = new Set(all(left).map(plainName).filter(Boolean));
  const works = (node: Node) => (node.arguments as readonly Node[]).slice(1);
  return all(body).filter(
    (node) =>
      node.type === "CallExpression" &&
      works(node).some((work) => all(work).some((one) => bound.has(plainName(one)))),
  );
}

/** For each file the functions and tables of functions that assert, by themselves or through each other: its own, and those of files it imports. */
function assertingNames(trees: readonly Parsed[]): ReadonlyMap<string, ReadonlySet<string>> {
  const known = new Map(trees.map(({ file }) => [file, new Set(["assert"])]));
  const declared = trees.map(({ file, tree }) => ({
    names: known.get(file)!,
    functions: all(tree).flatMap(declaredBy),
    imported: importsOf(file, tree).flatMap((other) => known.get(other) ?? []),
  }));
  const size = () => [...known.values()].reduce((sum, names) => sum + names.size, 0);
  for (let before = 0; before !== size();) {
    before = size();
    for (const { names, functions, imported } of declared) {
      for (const { name, work } of functions) if (!names.has(name) && asserts(work, names)) names.add(name);
      for (const other of imported) for (const name of other) names.add(name);
    }
  }
  return known;
}

function importsOf(file: string, tree: Node): readonly string[] {
  return (tree.body as readonly Node[])
    .flatMap(({ source }) => (isNode(source) ? [String(source.value)] : []))
    .filter((path) => path.startsWith("."))
    .map((path) => new URL(path, `file:///${file}`).pathname.slice(1));
}

function declaredBy(node: Node): readonly { readonly name: string; readonly work: Node }[] {
  const { type, id, key, init, value } = node;
  if (type === "FunctionDeclaration") return [{ name: plainName(id), work: node }];
  if (type === "VariableDeclarator" && isFunction(init)) return [{ name: plainName(id), work: init }];
  if (type === "VariableDeclarator" && isTable(init)) return [{ name: TABLE + plainName(id), work: init }];
  if (type === "Property" && isFunction(value)) return [{ name: plainName(key), work: value }];
  return [];
}

function asserts(work: Node, names: ReadonlySet<string>): boolean {
  return all(work).some((node) => {
    if (node.type === "ThrowStatement") return true;
    if (node.type !== "CallExpression") return false;
    const { callee } = node;
    const owner = isNode(callee) ? plainName(callee.object) : "";
    return owner === "assert" || names.has(calledName(node));
  });
}

function isFunction(value: unknown): value is Node {
  return isNode(value) && /^(?:ArrowFunction|Function)Expression$/.test(value.type);
}

function isTable(value: unknown): value is Node {
  return isNode(value) && value.type === "ObjectExpression";
}

function calledName({ callee }: Node): string {
  return isNode(callee) && callee.type === "MemberExpression"
    ? plainName(callee.property)
    : plainName(callee);
}

function plainName(value: unknown): string {
  return isNode(value) && typeof value.name === "string" ? value.name : "";
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

function all(node: Node): readonly Node[] {
  return [node, ...childrenOf(node).flatMap(all)];
}

/** The same without the functions in it, which run at another time. */
function within(node: Node): readonly Node[] {
  return [node, ...childrenOf(node).flatMap((child) => (isFunction(child) ? [] : within(child)))];
}

function placeOf(file: string, text: string, { start }: Node): string {
  return `${file}:${text.slice(0, start).split("\n").length}`;
}
