/** Modules through the door of `check`: what is wrong with them is found, and nothing in them is run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultNames, type Names } from "../../src/load/text/object-names.ts";
import { load } from "../../src/run/load.ts";
import { stageTree, FOLDER } from "./stage-world.ts";
import { filesOf, tree, type Tree } from "./world.ts";

const GLOBAL = "lockstepRanAModule";
const HOOKS = `${FOLDER}/hooks.mjs`;
const hooks = (text: string, more: Tree = {}): Tree => ({ ...stageTree({}), [HOOKS]: text, ...more });
const RUNS = `globalThis.${GLOBAL} = true;\n`;

const names = (count: number) => Array.from({ length: count }, (_, index) => `m${index}.mjs`);
const imported = (count: number) =>
  names(count)
    .map((name) => `import "./${name}";\n`)
    .join("");
const packages = (count: number) =>
  names(count)
    .map((name) => `import "${name}";\n`)
    .join("");
const modules = (count: number): Tree =>
  Object.fromEntries(names(count).map((name) => [`${FOLDER}/${name}`, ""]));

type Row = {
  readonly name: string;
  readonly files: Tree;
  readonly agent?: string;
  /** Code, file, line and column of each finding. */
  readonly found: readonly string[];
  readonly says?: RegExp;
};

const verdict = (path: string, text: string): Tree =>
  tree({
    "agent /runner/verdict": { type: "meta:custom", config: { handlerPath: path } },
    "registry /entryStep": "initial.issue",
    [path]: text,
  });

const ROWS: readonly Row[] = [
  {
    name: "hooks that are right",
    files: hooks(`${RUNS}export default { plan: { setup() {}, "next": () => "build" }, guard() {} };`),
    found: [],
  },
  {
    name: "an unexpected token",
    files: hooks(`${RUNS}export default {\n  plan: {\n    setup: (ctx) => { ctx.x = ; },\n  },\n};\n`),
    found: [`MODULE-SYNTAX ${HOOKS}:4:31`],
    says: /hooks\.mjs is not a valid module: Unexpected token ';'\./,
  },
  {
    name: "a file that ends too early",
    files: hooks(`${RUNS}export default {\n  plan: {\n    setup() {}`),
    found: [`MODULE-SYNTAX ${HOOKS}:4:1`],
    says: /Unexpected end of input/,
  },
  {
    name: "more brackets than a parser takes",
    files: hooks("(".repeat(200_000)),
    found: [`MODULE-UNPARSED ${HOOKS}:1:1`],
    says: /hooks\.mjs could not be parsed: it is nested too deeply\./,
  },
  {
    name: "a module that another imports, and that cannot be parsed",
    files: hooks('import "./a.mjs";\nexport default {};', { [`${FOLDER}/a.mjs`]: "[".repeat(200_000) }),
    found: [`MODULE-UNPARSED ${FOLDER}/a.mjs:1:1`],
  },
  {
    name: "packages whose names only look like paths",
    files: hooks('import "a./b";\nimport "x../y.mjs";\nexport default {};'),
    found: [],
  },
  {
    name: "an import that is written with an escape",
    files: hooks('export default {};\nimport "./\\u0061.mjs";'),
    found: [`MODULE-IMPORT ${HOOKS}:1:1`],
    says: /imports "\.\/a\.mjs"/,
  },
  {
    name: "an import that is not there, in single quotes",
    files: hooks("export default {};\nimport './gone.mjs';"),
    found: [`MODULE-IMPORT ${HOOKS}:2:8`],
  },
  {
    name: "as many modules as are looked at",
    files: hooks(`${imported(63)}export default {};`, modules(63)),
    found: [],
  },
  {
    name: "one module more than is looked at",
    files: hooks(`${imported(64)}export default {};`, modules(64)),
    found: [`MODULE-UNPARSED ${FOLDER}/m63.mjs:1:1`],
    says: /m63\.mjs was not parsed: check parses at most 64 modules of an agent\./,
  },
  {
    name: "modules beyond those that are looked at, found one after the other",
    files: hooks('import "./m0.mjs";\nexport default {};', {
      ...modules(70),
      [`${FOLDER}/m0.mjs`]: imported(40),
      [`${FOLDER}/m1.mjs`]: imported(70),
    }),
    found: [`MODULE-UNPARSED ${FOLDER}/m63.mjs:1:1`],
    says: /m63\.mjs and 6 more were not parsed/,
  },
  {
    name: "as many imports as are looked at, and packages",
    files: hooks(`${imported(63)}${packages(60)}export default {};`, modules(63)),
    found: [],
  },
  {
    name: "more imports than are looked at",
    files: hooks(`${imported(101)}import "yaml";\nexport default {};`, modules(101)),
    found: [`MODULE-UNPARSED ${HOOKS}:1:1`, `MODULE-UNPARSED ${FOLDER}/m63.mjs:1:1`],
    says: /hooks\.mjs imports 101 modules of the project; check only looked at the first 100\./,
  },
  {
    name: "a name that is declared twice",
    files: hooks("const a = 1;\n  let a = 2;\nexport default {};\n"),
    found: [`MODULE-SYNTAX ${HOOKS}:2:7`],
  },
  {
    name: "an import that is not there, and one that is",
    files: hooks(
      `import { a } from "./lib/a.mjs";\nimport b from './b.mjs';\nimport "node:fs";\nexport default {};`,
      {
        [`${FOLDER}/lib/a.mjs`]: "import '../../shared.mjs';\nexport const a = 1;",
        ".agent/shared.mjs": "",
      },
    ),
    found: [`MODULE-IMPORT ${HOOKS}:2:15`],
    says: /imports "\.\/b\.mjs", but there is no \.agent\/release\/b\.mjs/,
  },
  {
    name: "a module that another imports does not parse",
    files: hooks(`import "./a.mjs";\nexport default {};`, {
      [`${FOLDER}/a.mjs`]: "import './hooks.mjs';\n\nexport const = 1;",
    }),
    found: [`MODULE-SYNTAX ${FOLDER}/a.mjs:3:14`],
  },
  {
    name: "imports that are not looked at: packages, the outside of the project, a query",
    files: hooks(`import "yaml";\nimport "../../../out.mjs";\nimport "./a.mjs?x";\nexport default {};`),
    found: [],
  },
  {
    name: "a stage that is not there",
    files: hooks(`export default {\n  plann: { setup() {} },\n  build: { setup() {} },\n};`),
    found: [`HOOK-UNKNOWN ${HOOKS}:2:3`],
    says: /hooks for the stage "plann", but there is no such stage \(did you mean "plan"\?\), so "plann" is never called/,
  },
  {
    name: "a hook that is not there",
    files: hooks(`const all = {\n  plan: { setUp() {}, async exit() {} },\n};\nexport default all;`),
    found: [`HOOK-UNKNOWN ${HOOKS}:2:11`],
    says: /"setUp" for the stage "plan", which is not a hook \(did you mean "setup"\?\)/,
  },
  {
    name: "hooks that the text does not name",
    files: hooks("const make = () => ({ plann: {} });\nexport default make();"),
    found: [],
  },
  {
    name: "a broken module of the verdict",
    agent: "iterator",
    files: verdict("verdict.mjs", `${RUNS}export default () => (;`),
    found: ["MODULE-SYNTAX .agent/iterator/verdict.mjs:2:23"],
  },
  {
    name: "a module of the verdict with types",
    agent: "iterator",
    files: verdict(
      "verdict.ts",
      "export default (a: string): boolean => a === '';\ninterface B { c: string }\n",
    ),
    found: [],
  },
  ...["module.exports = require('./a.cjs'); return;", "export default await 1;"].map((text) => ({
    name: `a module of the verdict of either kind: ${text}`,
    agent: "iterator",
    files: verdict("verdict.js", text),
    found: [],
  })),
  {
    name: "broken types",
    agent: "iterator",
    files: verdict("verdict.ts", "export default (a: string: boolean => true;"),
    found: ["MODULE-SYNTAX .agent/iterator/verdict.ts:1:26"],
  },
  {
    name: "a broken action handler",
    agent: "iterator",
    files: tree({
      "agent /runner/actions": { enabled: true, types: ["note"], handlers: { note: "./note.mjs" } },
      "note.mjs": "export default async () => {\n  await\n}}",
    }),
    found: ["MODULE-SYNTAX .agent/iterator/note.mjs:3:1"],
  },
  {
    name: "two broken handlers, and one between them that is right",
    agent: "iterator",
    files: tree({
      "agent /runner/actions": {
        enabled: true,
        types: ["a", "b", "c"],
        handlers: { a: "./a.mjs", b: "./b.mjs", c: "./c.mjs" },
      },
      "a.mjs": "(",
      "b.mjs": "export default 1;",
      "c.mjs": "\n)",
    }),
    found: ["MODULE-SYNTAX .agent/iterator/a.mjs:1:1", "MODULE-SYNTAX .agent/iterator/c.mjs:2:1"],
  },
  {
    name: "a handler of actions that are switched off",
    agent: "iterator",
    files: tree({
      "agent /runner/actions": { enabled: false, types: ["note"], handlers: { note: "./note.mjs" } },
      "note.mjs": "}",
    }),
    found: [],
  },
];

for (const { name, files, agent = "release", found, says } of ROWS) {
  test(`modules: ${name}`, async () => {
    const { problems } = await load(agent, { files: filesOf(files) });
    const ours = problems.filter(({ code }) => /^(?:MODULE|HOOK)-/.test(code));
    assert.deepEqual(
      ours.map(({ code, file, line, column }) => `${code} ${file}:${line}:${column}`),
      found,
    );
    if (says !== undefined) assert.match(ours[0]!.message, says);
    assert.ok(ours.every(({ fix, why, pointer }) => fix !== "" && why !== "" && pointer === ""));
    assert.ok(!(GLOBAL in globalThis), "a module was run");
  });
}

const NAMES: readonly (readonly [text: string, names: string | null])[] = [
  ["export default {}", ""],
  ["export default { a: { b() {}, c: 1 }, 'd-e': { f }, g }", "a(b c) d-e(f) g"],
  [
    "export default { a: { async b() {}, *c() {}, get d() { return 1 }, async: 1, get: 2, set() {} } }",
    "a(b c d async get set)",
  ],
  ["export default { ...x, [y]: { z() {} }, a: { ...b, c() {} } }", "a(c …) …"],
  ["export default { a: f({ b: 1 }), c: { d() {} }.d, e: [{ f: 1 }], g: (h, i) => ({ j: 1 }) }", "a c e g"],
  ["// export default { x: 1 }\n/* export default { y } */ export default { a: { b } }", "a(b)"],
  ['const s = "export default { x }", t = `${`}`} export default { y }`;\nexport default { a }', "a"],
  [
    "export default { a: /[/}]{2}/g.test('}'), b: 1 / 2 / 3, c: { d: `${{ e: '}' }.e}`, f() {} } }",
    "a b c(d f)",
  ],
  ["const all = { a: { b() {} } };\nexport default all;", "a(b)"],
  ["let all = { a };\nexport default all;", null],
  ["export default make({ a });", null],
  [`export default { a: ${"`${".repeat(5000)}1${"}`".repeat(5000)} }`, null],
  [`export default { a: ${"`${".repeat(60)}1${"}`".repeat(60)}, b }`, "a b"],
  ["export default { a: { b() {} }, c: 1", "a(b) c"],
  ["export default { a: {", "a"],
  ["export default class {}", null],
  ["export const a = {};", null],
];

for (const [text, names] of NAMES) {
  test(`names in ${text.slice(0, 100)}`, () => assert.equal(shown(defaultNames(text)), names));
}

function shown(found: Names | null): string | null {
  if (found === null) return null;
  const names = found.names.map(
    ({ name, members }) => name + (members === null ? "" : `(${shown(members)})`),
  );
  return [...names, ...(found.isOpen ? ["…"] : [])].join(" ");
}
