/** Grep with and without ripgrep: one answer. */
import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { literalsOf } from "../../../src/boundaries/tools/literals.ts";
import { filesWithout } from "../../../src/boundaries/tools/ripgrep.ts";
import type { RunToolProcess } from "../../../src/boundaries/tools/tool.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import { childEnv, runProcess } from "../../../src/effects/process/process.ts";
import type { JsonObject } from "../../../src/flow/json.ts";
import { programsFor } from "../../../src/run/world/programs.ts";
import { needs } from "../../needs.ts";
import { createMachine, hasBwrap, NO_BWRAP } from "../confined.ts";
import { createDice, madePattern, madeText } from "../patterns.ts";
import { stepWith } from "../step.ts";
import { until } from "../../until.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-ripgrep-")));
after(() => rmSync(base, { recursive: true, force: true }));

const { PATH = "" } = process.env;
const hasRipgrep = needs(
  programsFor({ PATH }, []).rg !== null,
  "ripgrep is not installed (apt install ripgrep)",
);

function write(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** So many files that it pays to ask ripgrep, and they come first. */
function fill(cwd: string): void {
  for (let index = 0; index < 700; index += 1) write(join(cwd, `0-${index}.txt`), `filler ${index}\nmore\n`);
}

/** One Grep over the folder, and how many processes it took. */
async function grep(
  cwd: string,
  input: JsonObject,
  path: string,
  exec: RunToolProcess = runProcess,
  more = {},
) {
  let started = 0;
  const counted: RunToolProcess = (options) => {
    started += 1;
    return exec(options);
  };
  const env = { ...childEnv(process.env), PATH: path, ...more };
  const programs = programsFor({ PATH: path }, [cwd]);
  const toolbox = createToolbox({
    cwd,
    protect: [],
    env: () => env,
    autoResponse: "",
    exec: counted,
    programs,
  });
  const calls = [{ id: "1", name: "Grep", input }];
  const [result] = await toolbox.call(stepWith({}), calls, new AbortController().signal);
  assert.ok(result);
  return { content: result.content, started };
}

function sized(bytes: number): Buffer {
  return Buffer.concat([Buffer.from("needle\n"), Buffer.alloc(bytes - 7, `${"x".repeat(500)}\n`)]);
}

function hostileTree(): string {
  const cwd = mkdtempSync(join(base, "hostile-"));
  fill(cwd);
  const files: { readonly [path: string]: string | Buffer } = {
    "plain/a.ts": "one\nneedle here\nthree\nneedle_two\nfour\nfive\nsix\nNEEDLE\n",
    "plain/b.js": "const x = 'Needle';\n",
    "plain/crlf.ts": "first\r\nneedle\r\nlast needle\r\n",
    "plain/old-mac.ts": "first\rneedle\rlast",
    "plain/long.ts": `${"x".repeat(300_000)}needle${"y".repeat(300_000)}\n`,
    "plain/no-end": "needle",
    "plain/empty": "",
    "bytes/latin": Buffer.from([0xe9, 0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0xff, 0x0a]),
    "bytes/binary": Buffer.from("needle\0needle\n"),
    "bytes/binary-without": Buffer.from("nothing\0here\n"),
    "bytes/late-nul": `${"line\n".repeat(2_000)}\0\nneedle\n`,
    "bytes/bom": "\ufeffneedle\n",
    "bytes/utf16": Buffer.from("\ufeffneedle\n", "utf16le"),
    "bytes/wide": "größe und ſ, \u212aelvin, ÄÖÜ äöü, \ud83d\ude00 needle\u2028end\u00a0x\n",
    "bytes/large": sized(4 * 1024 * 1024 + 1),
    "bytes/exact": sized(4 * 1024 * 1024),
    ".gitignore": "*\n!plain\n",
    ".ignore": "*\n",
    ".rgignore": "*\n",
    ".hidden/deep/.x": "needle\n",
    ".git/config": "needle\n",
    "node_modules/m/index.js": "needle\n",
    "plain/node_modules": "needle in a file of that name\n",
    "names/-e": "needle\n",
    "names/--pre=sh": "needle\n",
    "names/a b\tc": "needle\n",
    "names/line\nend": "needle\n",
    "names/line": "none\n",
    "names/'\"$(x)`;": "needle\n",
    "names/back\\slash": "needle\n",
    "names/[glob]*?": "needle\n",
    "names/größe": "needle\n",
    "names/zip.gz": "needle\n",
  };
  for (const [path, content] of Object.entries(files)) write(join(cwd, path), content);
  const secret = join(base, "outside", "secret");
  write(secret, "needle outside\n");
  writeFileSync(Buffer.concat([Buffer.from(`${cwd}/names/bad-`), Buffer.from([0xff])]), "nothing\n");
  symlinkSync(secret, join(cwd, "names/link"));
  symlinkSync(dirname(secret), join(cwd, "names/folder-link"));
  symlinkSync(join(cwd, "plain"), join(cwd, "inner-link"));
  symlinkSync("nowhere", join(cwd, "dangling"));
  write(join(cwd, "names/closed"), "needle\n");
  chmodSync(join(cwd, "names/closed"), 0);
  return cwd;
}

describe("the same answer with ripgrep and without", hasRipgrep, () => {
  const cwd = hostileTree();
  const asked: readonly (JsonObject & { readonly pattern: string })[] = [
    { pattern: "needle" },
    { pattern: "needle", "-i": true },
    { pattern: "needle", output_mode: "count" },
    { pattern: "needle", output_mode: "content" },
    { pattern: "needle", output_mode: "content", "-n": false },
    { pattern: "needle", output_mode: "content", "-C": 1 },
    { pattern: "needle", output_mode: "content", "-A": 2, "-B": 1 },
    { pattern: "needle", head_limit: 3 },
    { pattern: "needle", output_mode: "content", head_limit: 9 },
    { pattern: "filler|needle", head_limit: 705 },
    { pattern: "^needle$", output_mode: "content" },
    { pattern: "\\bneedle\\b", output_mode: "count" },
    { pattern: "needle.*end", output_mode: "content" },
    { pattern: "(?:last|first) ?needle", output_mode: "content" },
    { pattern: "first.needle", output_mode: "content" },
    { pattern: "größe", output_mode: "content" },
    { pattern: "ÄÖÜ ÄÖÜ", "-i": true },
    { pattern: "kelvin", "-i": true },
    { pattern: "und s", "-i": true },
    { pattern: "\ud83d\ude00 needle" },
    { pattern: "\ufffdneedle" },
    { pattern: "nothing" },
    { pattern: "absent from all" },
    { pattern: "^$", output_mode: "count", head_limit: 2_000 },
    { pattern: "(?!)needle" },
    { pattern: "\\$\\(x\\)|needle'" },
    { pattern: "--pre=sh" },
  ];
  for (const input of asked) {
    test(JSON.stringify(input), async () => {
      const [plain, helped] = [await grep(cwd, input, ""), await grep(cwd, input, PATH)];
      assert.equal(helped.content, plain.content);
      const pays = literalsOf(input.pattern, input["-i"] === true) !== null;
      assert.deepEqual([plain.started, helped.started], [0, pays ? 1 : 0]);
    });
  }

  const narrowed: readonly JsonObject[] = [
    { pattern: "needle", path: "plain" },
    { pattern: "needle", path: "plain/a.ts" },
    { pattern: "needle", glob: "*.ts" },
    { pattern: "needle", glob: "**/*.{ts,js}" },
    { pattern: "needle", glob: "!plain" },
    { pattern: "needle", glob: "[" },
    { pattern: "filler 69", glob: "0-*.txt" },
    { pattern: "needle", glob: "**/node_modules/**" },
    { pattern: "needle", path: "names/folder-link" },
    { pattern: "(" },
  ];
  for (const input of narrowed) {
    test(JSON.stringify(input), async () => {
      assert.equal((await grep(cwd, input, PATH)).content, (await grep(cwd, input, "")).content);
    });
  }

  test("nothing outside is found, and what cannot be searched is counted", async () => {
    const { content } = await grep(cwd, { pattern: "needle" }, PATH);
    assert.doesNotMatch(content, /outside|link|node_modules\/m|\.git\//);
    assert.match(content, /^plain\/a\.ts$/m);
    assert.match(content, /\[\d+ files were passed over/);
  });

  test("a configuration of ripgrep is not obeyed", async () => {
    const config = join(base, "ripgreprc");
    write(config, "--invert-match\n--glob=!plain\n");
    const { content } = await grep(cwd, { pattern: "needle" }, PATH, runProcess, {
      RIPGREP_CONFIG_PATH: config,
    });
    assert.equal(content, (await grep(cwd, { pattern: "needle" }, "")).content);
  });
});

test("of made patterns and texts, no file is spared that has a match", hasRipgrep, async () => {
  const folder = mkdtempSync(join(base, "made-"));
  const roll = createDice(11);
  const texts = Array.from({ length: 200 }, () => madeText(roll));
  for (const [index, text] of texts.entries()) write(join(folder, String(index)), `\n${text}\n`);
  const programs = programsFor(process.env, [folder]);
  const world = { env: () => childEnv(process.env), exec: runProcess, programs };
  const { signal } = new AbortController();
  const told = { patterns: 0, matches: 0, spared: 0 };
  for (let round = 0; told.patterns < 80; round += 1) {
    const ignoreCase = round % 2 === 0;
    const pattern = madePattern(roll);
    const needed = literalsOf(pattern, ignoreCase);
    if (needed === null) continue;
    const bounds = { folder, glob: undefined, skip: [], maxBytes: 1_000 };
    const spared = await filesWithout({ pattern, ignoreCase, ...bounds }, world, signal);
    const regex = new RegExp(pattern, ignoreCase ? "i" : "");
    const matching = [...texts.keys()].filter((index) => regex.test(texts[index]!));
    const missed = matching.filter((index) => spared.has(String(index)));
    assert.deepEqual(missed, [], `${pattern} ${ignoreCase} ${JSON.stringify(needed)}`);
    told.patterns += 1;
    told.matches += matching.length;
    told.spared += spared.size;
  }
  assert.ok(told.matches > 500 && told.spared > 2_000, JSON.stringify(told));
});

describe("a ripgrep that cannot be relied on changes nothing", () => {
  const cwd = mkdtempSync(join(base, "broken-"));
  fill(cwd);
  write(join(cwd, "z/a"), "needle\n");
  write(join(cwd, "z/b"), "none\n");
  const programs: { readonly [name: string]: string } = {
    "that fails": "echo no such flag >&2; exit 2",
    "that is something else": "echo hello; exit 0",
    "that says half of a path": "printf './z'; exit 0",
    "that is killed": "printf './z/a\\0'; kill -9 $$",
    "that ends as nobody does": "printf './z/a\\0'; exit 101",
  };
  for (const [name, body] of Object.entries(programs)) {
    test(`one ${name}`, async () => {
      const bin = mkdtempSync(join(base, "bin-"));
      writeFileSync(join(bin, "rg"), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
      const answer = await grep(cwd, { pattern: "needle" }, [bin, PATH].join(delimiter));
      assert.deepEqual(answer, { content: "z/a", started: 1 });
    });
  }

  test("one whose time is up, and one that cannot be started", async () => {
    const bin = mkdtempSync(join(base, "bin-"));
    writeFileSync(join(bin, "rg"), "#!/bin/sh\nprintf './z/a\\0'; sleep 1000\n", { mode: 0o755 });
    const hasty: RunToolProcess = (options) => runProcess({ ...options, timeoutMs: 300 });
    assert.equal((await grep(cwd, { pattern: "needle" }, `${bin}:${PATH}`, hasty)).content, "z/a");
    const broken: RunToolProcess = () => Promise.reject(new Error("no sandbox"));
    assert.equal((await grep(cwd, { pattern: "needle" }, `${bin}:${PATH}`, broken)).content, "z/a");
  });

  test("an abort ends it, and the search", async () => {
    const bin = mkdtempSync(join(base, "bin-"));
    const begun = join(bin, "begun");
    writeFileSync(join(bin, "rg"), `#!/bin/sh\n: > '${begun}'\nsleep 1000\n`, { mode: 0o755 });
    const controller = new AbortController();
    const exec: RunToolProcess = (options) => {
      void until(() => existsSync(begun), "the search has begun").then(() => controller.abort());
      return runProcess(options);
    };
    const env = { PATH: `${bin}:${PATH}` };
    const programs = programsFor(env, [cwd]);
    const toolbox = createToolbox({ cwd, protect: [], env: () => env, autoResponse: "", exec, programs });
    const calls = [{ id: "1", name: "Grep", input: { pattern: "needle" } }];
    const [result] = await toolbox.call(stepWith({}), calls, controller.signal);
    assert.equal(result?.content, "Grep was interrupted.");
  });

  test("one that the project brought along is not started, by whatever name", async () => {
    const trap = "#!/bin/sh\ntouch sprung\n";
    write(join(cwd, "node_modules/.bin/rg"), trap);
    chmodSync(join(cwd, "node_modules/.bin/rg"), 0o755);
    const [linked, alias] = [mkdtempSync(join(base, "bin-")), join(base, "alias")];
    symlinkSync(join(cwd, "node_modules/.bin/rg"), join(linked, "rg"));
    symlinkSync(join(cwd, "node_modules/.bin"), alias);
    const path = [join(cwd, "node_modules/.bin"), "node_modules/.bin", linked, alias].join(delimiter);
    assert.deepEqual(await grep(cwd, { pattern: "needle" }, path), { content: "z/a", started: 0 });
  });
});

test("a small search starts nothing", async () => {
  const cwd = mkdtempSync(join(base, "small-"));
  write(join(cwd, "a"), "needle\n");
  assert.deepEqual(await grep(cwd, { pattern: "needle" }, PATH), { content: "a", started: 0 });
});

test("inside of the sandbox it is the same", needs(hasBwrap, NO_BWRAP), async () => {
  using machine = createMachine();
  fill(machine.project);
  write(join(machine.project, "z/a"), "needle\n");
  write(join(machine.project, ".lockstep/x"), "needle\n");
  const { exec, close } = await machine.open();
  try {
    for (const input of [{ pattern: "needle" }, { pattern: "needle", glob: "**/{.lockstep,z}/*" }]) {
      const helped = await grep(machine.project, input, PATH, exec);
      assert.equal(helped.content, (await grep(machine.project, input, "")).content);
    }
    assert.equal((await grep(machine.project, { pattern: "needle" }, PATH, exec)).started, 1);
  } finally {
    await close();
  }
});
