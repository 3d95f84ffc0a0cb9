/** The house holds: rooms import only what they may, the pure rooms touch nothing, the map is true. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { pages } from "../scripts/reference.ts";
import { ROOMS, roomOf } from "../scripts/rooms.ts";

const root = new URL("../", import.meta.url).pathname;

const files = globSync("src/**/*.{ts,tsx}", { cwd: root });

test("every room imports only what it may", () => {
  assert.ok(files.length > 40);
  assert.deepEqual(
    files.flatMap((file) => forbiddenIn(file, importsOf(file))),
    [],
  );
});

/** One declaration after the other: commands, and kinds of events. */
const TABLES = new Set(["src/cli/commands.ts", "src/flow/event.ts"]);

test("no file has more than 400 lines that is not a table", () => {
  const lines = (file: string) =>
    readFileSync(root + file, "utf8")
      .trimEnd()
      .split("\n").length;
  const long = files.filter((file) => lines(file) > 400);
  assert.deepEqual(long.toSorted(), [...TABLES].toSorted());
});

/** The imports of a file that its room does not allow. */
function forbiddenIn(file: string, imports: readonly string[]): readonly string[] {
  const room = roomOf(file.slice("src/".length));
  assert.ok(room !== undefined, `${file} stands in no known room`);
  const may = ROOMS[room]!.imports;
  return imports
    .filter((path) => path.startsWith("."))
    .map((path) => new URL(path, `file:///${file}`).pathname.replace(/^\/src\//, "").replace(/\.tsx?$/, ""))
    .filter((path) => roomOf(path) !== room)
    .filter(
      (path) =>
        !may.some((allowed) => path === allowed || path.startsWith(`${allowed}/`)) || isBehindDoor(path),
    )
    .map((path) => `${file} imports ${path}`);
}

for (const [file, path, isAllowed] of [
  ["src/studio/page/screens/run.tsx", "../../../flow/json.ts", true],
  ["src/studio/page/screens/run.tsx", "../../wire.ts", true],
  ["src/studio/page/screens/run.tsx", "../parts/graph.tsx", true],
  ["src/studio/page/screens/run.tsx", "../../server.ts", false],
  ["src/studio/page/screens/run.tsx", "../../../run/load.ts", false],
  ["src/studio/server.ts", "./page/main.tsx", false],
  ["src/studio/server.ts", "../run/load.ts", true],
  ["src/studio/server.ts", "../cli/version.ts", false],
  ["src/cli/commands/studio.ts", "../../studio/index.ts", true],
  ["src/cli/commands/studio.ts", "../../studio/server.ts", false],
  ["src/run/index.ts", "../studio/index.ts", false],
  ["src/mcp/index.ts", "../serve/drive.ts", true],
  ["src/studio/acts.ts", "../serve/drive.ts", true],
  ["src/mcp/index.ts", "../studio/server.ts", false],
  ["src/serve/drive.ts", "../studio/route.ts", false],
  ["src/serve/drive.ts", "../mcp/ground.ts", false],
  ["src/cli/commands/mcp.ts", "../../mcp/index.ts", true],
  ["src/cli/commands/mcp.ts", "../../mcp/http.ts", false],
  ["src/studio/server.ts", "../mcp/index.ts", false],
] as const)
  test(`${file} may ${isAllowed ? "" : "not "}import ${path}`, () =>
    assert.equal(forbiddenIn(file, [path]).length === 0, isAllowed));

/** On a floor of a room that other rooms enter only by the files beside its floors. */
function isBehindDoor(path: string): boolean {
  const [room = "", ...rest] = path.split("/");
  return ROOMS[room]?.isClosed === true && rest.length > 1;
}

test("a closed room is entered by the files beside its floors only", () => {
  assert.deepEqual(["load/index", "load/rules/ends", "flow/text/places"].map(isBehindDoor), [
    false,
    true,
    false,
  ]);
});

test("the check above sees a forbidden import", () => {
  assert.deepEqual(
    importsIn('import { x } from "../run/run.ts";\nawait import("../cli/main.ts");\nexport * from "./y.ts";'),
    ["../run/run.ts", "../cli/main.ts", "./y.ts"],
  );
});

const IMPURE = [
  /from "node:/,
  /import\("node:/,
  /\bprocess\./,
  /\bDate\.now\b|\bnew Date\(\)|(?<!new )\bDate\(/,
  /\bperformance\b/,
  /Math\.random/,
  /\bcrypto\b/,
  /\bset(?:Timeout|Interval|Immediate)\b/,
  /\bfetch\(/,
  /\bconsole\./,
  /\brequire\(/,
];

test("the pure rooms touch no clock, chance, environment, disk, network or process", () => {
  const pure = files.filter((file) => /^src\/(?:flow|engine|prompts|load|story|tell)\//.test(file));
  const wrong = pure.flatMap((file) => {
    const code = withoutComments(readFileSync(root + file, "utf8"));
    return IMPURE.filter((pattern) => pattern.test(code)).map((pattern) => `${file}: ${pattern.source}`);
  });
  assert.deepEqual(wrong, []);
});

/** Words of one written form. What a flow says in them is data, which `flow/` reads and words. */
const FORM_WORDS =
  /stage|registry|intent(?!ion|ed)|closure|continuation|c3l|dialect|stepflow|structuredgate|workflow|machine/i;

test("no word of a written form stands in engine/", () => {
  const engine = files.filter((file) => file.startsWith("src/engine/"));
  assert.ok(engine.length > 20);
  const found = engine.flatMap((file) =>
    [file, ...readFileSync(root + file, "utf8").split("\n")]
      .map((line, number) => ({ line, where: `${file}:${number}` }))
      .filter(({ line }) => FORM_WORDS.test(line))
      .map(({ line, where }) => `${where}: ${line.trim()}`),
  );
  assert.deepEqual(found, []);
});

for (const [word, isOfForm] of [
  ["lane.stage", true],
  ["callInStage", true],
  ["steps_registry.json", true],
  ["fallbackIntent", true],
  ["effect.intended", false],
  ["the intention", false],
  ["a closure", true],
  ["machine.yaml", true],
  ["flow.dialect", true],
  ["lifecycle", false],
] as const)
  test(`${word} is ${isOfForm ? "" : "not "}a word of a written form`, () =>
    assert.equal(FORM_WORDS.test(word), isOfForm));

for (const [file, text] of Object.entries(pages())) {
  test(`${file} is up to date (npm run reference)`, () => {
    assert.equal(readFileSync(root + file, "utf8"), text);
  });
}

test("docs/dependencies.md has a line for every dependency", () => {
  const page = readFileSync(`${root}docs/dependencies.md`, "utf8");
  const { dependencies, devDependencies } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const missing = Object.keys({ ...dependencies, ...devDependencies }).filter(
    (name) => !page.includes(`\`${name}\``),
  );
  assert.deepEqual(missing, []);
});

function importsOf(file: string): readonly string[] {
  return importsIn(readFileSync(root + file, "utf8"));
}

function importsIn(code: string): readonly string[] {
  return [...code.matchAll(/(?:from\s+|import\s*\(\s*|import\s+)"([^"]+)"/g)].map((match) => match[1]!);
}

function withoutComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/^\s*\/\/.*$/gm, "");
}

/** How a program is started by a name that a PATH has to explain, or by a shell that nobody chose. */
const BARE = [
  /\b(?:spawn|spawnSync|execFile|execFileSync|fork)\(\s*["'`](?!\/)/,
  /\b(?:execSync|child_process\.exec)\(/,
  /import \{[^}]*\bexec(?:Sync)?\b[^}]*\} from "node:child_process"/,
  /\bcommand:\s*\[\s*["'`](?!\/)/,
  /\bgitCommand\(\s*["'`]/,
  /\bshell:\s*(?:true|["'`](?!\/))/,
  /\[\s*["'`](?:sh|bash|git|gh|rg|bwrap|socat|node|ssh|strace)["'`],\s*["'`]-/,
];

function bareIn(code: string): readonly string[] {
  return BARE.filter((pattern) => pattern.test(withoutComments(code))).map((pattern) => pattern.source);
}

/** What runs in a browser cannot start anything, and has functions of its own by such names. */
const onMachine = files.filter((file) => !file.startsWith("src/studio/page/"));

test("only their commands load the studio and the MCP server", () => {
  const loads = files.filter((file) => !/^src\/(?:studio|mcp)\//.test(file));
  const loading = (room: string) =>
    loads.filter((file) => importsOf(file).some((path) => path.includes(`../${room}/`)));
  assert.deepEqual(loading("studio"), ["src/cli/commands/studio.ts"]);
  assert.deepEqual(loading("../mcp"), ["src/cli/commands/mcp.ts"]);
  // Commands are loaded when they are called.
  const table = readFileSync(`${root}src/cli/commands.ts`, "utf8");
  assert.match(table, /studio: async \(\) => \(await import\("\.\/commands\/studio\.ts"\)\)/);
  assert.match(table, /mcp: async \(\) => \(await import\("\.\/commands\/mcp\.ts"\)\)/);
});

test("the page of the studio imports nothing of Node", () => {
  const wrong = files
    .filter((file) => !onMachine.includes(file))
    .filter((file) => importsOf(file).some((path) => path.startsWith("node:")));
  assert.deepEqual(wrong, []);
});

test("nothing is started by a bare name", () => {
  const wrong = onMachine.flatMap((file) =>
    bareIn(readFileSync(root + file, "utf8")).map((found) => `${file}: ${found}`),
  );
  assert.deepEqual(wrong, []);
});

test("the check above sees every way to do it", () => {
  for (const line of [
    'spawn("git", args)',
    "spawnSync('rg', [])",
    'execFileSync("git", args)',
    'execSync("git status")',
    'import { exec } from "node:child_process";',
    'exec({ command: ["gh", "auth", "token"] })',
    'gitCommand("git", args)',
    "spawn(program, args, { shell: true })",
    'const argv = ["sh", "-c", line];',
  ])
    assert.equal(bareIn(line).length > 0, true, line);
  for (const line of ['spawn("/bin/sh", [])', "spawn(file, args)", "exec({ command: [program, name] })"])
    assert.deepEqual(bareIn(line), [], line);
});

test("what holds something while a promise is under way is async, so that the linter asks for its await", () => {
  const wrong = files.flatMap((file) =>
    heldInPlain(readFileSync(root + file, "utf8")).map((at) => `${file}: ${at}`),
  );
  assert.deepEqual(wrong, []);
  const held = (head: string) => `${head} {\n  using x = open();\n  return work(x);\n}\n`;
  assert.equal(heldInPlain(held("function a(): Promise<number>")).length, 1);
  assert.equal(heldInPlain(held("function a(\n  b: number,\n): Promise<number>")).length, 1);
  assert.equal(heldInPlain(held("const a = (): Promise<number> =>")).length, 1);
  assert.equal(heldInPlain(held("async function a(): Promise<number>")).length, 0);
  assert.equal(heldInPlain(held("async function a(\n  b: number,\n): Promise<number>")).length, 0);
  assert.equal(heldInPlain(held("function a(): number")).length, 0);
});

/** Heads of functions that give a promise back, are not async, and hold something with `using`. */
function heldInPlain(text: string): readonly string[] {
  const lines = text.split("\n");
  const depth = (line: string) => line.length - line.trimStart().length;
  return lines.flatMap((line, at) => {
    if (!/^\s+(?:await )?using \w/.test(line)) return [];
    const opens = lines.findLastIndex(
      (other, place) => place < at && other !== "" && depth(other) < depth(line),
    );
    const isHeadsEnd = /^\s*\)/.test(lines[opens] ?? "");
    const begins = isHeadsEnd
      ? lines.findLastIndex((other, place) => place < opens && depth(other) <= depth(lines[opens]!))
      : opens;
    const head = lines.slice(begins, opens + 1).join(" ");
    return /: Promise<.*(?:\{|=>)$/.test(head) && !/\basync\b/.test(head) ? [head.trim()] : [];
  });
}
