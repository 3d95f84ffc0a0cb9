/** What Lockstep loads, installed in the very project that a run works in, is not for the run to change. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { hasBwrap, NO_BWRAP } from "./boundaries/confined.ts";
import { builtCommand } from "./built.ts";
import { needs } from "./needs.ts";
import { agentFiles, stepTo, writeFiles } from "./run/project.ts";

const repository = fileURLToPath(new URL("..", import.meta.url));
const bwrap = needs(hasBwrap, NO_BWRAP);
const built = dirname(dirname(dirname(await builtCommand())));

// Not below /tmp, which is another one inside of a sandbox.
const base = realpathSync(mkdtempSync(join(homedir(), ".lockstep-own-")));
after(() => rmSync(base, { recursive: true, force: true }));

const EVIL = `process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(join(base, "PWNED"))}, "x")`;
const BYTES = "planted\n";

let projects = 0;
/** A project with Lockstep, some packages of it and one of its own in `node_modules`. */
function newProject(): string {
  const project = join(base, `p${(projects += 1)}`);
  const modules = join(project, "node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(built, join(modules, "lockstep"), { recursive: true });
  const pack = (name: string, more = {}) => ({
    [`node_modules/${name}/package.json`]: JSON.stringify({ name, version: "1.0.0", ...more }),
    [`node_modules/${name}/index.js`]: "",
  });
  writeFiles(project, {
    ...agentFiles(
      "a",
      {
        "initial.a": stepTo("work", { next: "closure.a" }),
        "closure.a": stepTo("closure", { closing: null }),
      },
      { runner: { boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" } } },
    ),
    ...pack("ajv", { dependencies: { "fast-deep-equal": "*" } }),
    ...pack("fast-deep-equal"),
    ...pack("@ai-sdk/google", { dependencies: { "@ai-sdk/provider-utils": "*" } }),
    ...pack("@ai-sdk/provider-utils"),
    ...pack("other"),
    "src/index.ts": "",
    ".npmrc": "fund=false\n",
    "package.json": "{}",
  });
  mkdirSync(join(modules, ".bin"));
  symlinkSync("../lockstep/dist/bin/main.js", join(modules, ".bin/lockstep"));
  chmodSync(join(modules, "lockstep/dist/bin/main.js"), 0o755);
  symlinkSync("node_modules/lockstep/dist", join(project, "way"));
  symlinkSync("node_modules", join(project, "modules"));
  return project;
}

const CHUNK = readdirSync(join(built, "dist/bin")).find(
  (name) => name.startsWith("esm") || name !== "main.js",
)!;

/** What a run must not be able to change or make, and beside it what it may. */
const KEPT = [
  "node_modules/lockstep/dist/bin/main.js",
  `node_modules/lockstep/dist/bin/${CHUNK}`,
  "node_modules/lockstep/dist/bin/new.js",
  "node_modules/lockstep/package.json",
  "node_modules/lockstep/node_modules/@ai-sdk/openai/index.js",
  "node_modules/lockstep/dist/node_modules/yaml/index.js",
  "node_modules/ajv/index.js",
  "node_modules/ajv/node_modules/fast-deep-equal/index.js",
  "node_modules/fast-deep-equal/index.js",
  "node_modules/fast-deep-equal.js",
  "node_modules/ajv.json",
  "node_modules/@ai-sdk/google/index.js",
  "node_modules/@ai-sdk/provider-utils/index.js",
  "node_modules/@ai-sdk/node_modules/@ai-sdk/provider-utils/index.js",
  "node_modules/node_modules/ajv/index.js",
  "node_modules/@ai-sdk/openai/package.json",
  "node_modules/@anthropic-ai/claude-agent-sdk/index.js",
  "node_modules/@modelcontextprotocol/client/index.js",
  "node_modules/@modelcontextprotocol/server/index.js",
  "node_modules/.bin/lockstep",
  "node_modules/.bin/git",
  ".npmrc",
  ".yarnrc.yml",
  ".pnp.cjs",
  "way/bin/main.js",
  "modules/lockstep/dist/bin/main.js",
  "modules/.bin/gh",
  "src/../node_modules/lockstep/dist/bin/main.js",
  "./node_modules//lockstep/dist/bin/main.js",
];
/** On this file system other files, and the same ones elsewhere. */
const OTHER_CASES = [
  "Node_Modules/lockstep/dist/bin/main.js",
  "node_modules/LOCKSTEP/dist/bin/main.js",
  "NODE_MODULES/.BIN/git",
  "node_modules./lockstep/package.json",
  "node_modules/lock\u200bstep/package.json",
];
const FREE = [
  "node_modules/other/index.js",
  "node_modules/new-one/index.js",
  "node_modules/@ai-sdk/other/index.js",
  "node_modules/other/node_modules/ajv/index.js",
  "src/index.ts",
  "src/new/file.ts",
  "package.json",
  "lockstep/package.json",
];

type Called = { readonly ok: boolean; readonly content: string };

/** A run with a model that makes these calls, and what became of each. */
function runWith(
  project: string,
  calls: readonly { readonly name: string; readonly input: object }[],
  last?: string,
) {
  const output = (step: string, action: string) => ({ stepId: step, next_action: { action } });
  writeFileSync(
    join(base, "script.json"),
    JSON.stringify({
      replies: [
        ...calls.map((call) => ({ step: "initial.a", calls: [call] })),
        last === undefined
          ? { step: "initial.a", output: output("initial.a", "next") }
          : { step: "initial.a", text: last },
        { step: "closure.a", output: output("closure.a", "closing") },
      ],
    }),
  );
  const { NODE_TEST_CONTEXT: _, LOCKSTEP_PACKAGES: __, ...rest } = process.env;
  const PATH = `${join(project, "node_modules/.bin")}:${process.env.PATH}`;
  const env = { ...rest, PATH, HOME: join(base, "home"), LOCKSTEP_TRUST: "all" };
  mkdirSync(env.HOME, { recursive: true });
  const main = join(project, "node_modules/lockstep/dist/bin/main.js");
  const lockstep = (...args: readonly string[]) =>
    spawnSync(process.execPath, [main, ...args, "--cwd", project], {
      encoding: "utf8",
      env,
      timeout: 120_000,
    });
  const ran = lockstep("run", "a", "--script", join(base, "script.json"), "--sandbox", "on", "--json");
  const { run = "" } = JSON.parse(ran.stdout || "{}") as { run?: string };
  const told = JSON.parse(lockstep("export", run).stdout || "{}") as {
    readonly entries?: readonly {
      readonly event: { readonly type: string; readonly results?: readonly Called[] };
    }[];
  };
  const results = (told.entries ?? []).flatMap(({ event }) => event.results ?? []);
  return { ...ran, results };
}

/** Every file with its length; links are not followed. */
function snapshot(project: string): readonly string[] {
  const walk = (folder: string): readonly string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return walk(path);
      return [`${path}: ${entry.isFile() ? readFileSync(path, "utf8").length : readlinkSync(path)}`];
    });
  return walk(join(project, "node_modules")).toSorted();
}

const isKept = (path: string) => !FREE.some((free) => path.includes(`/${dirname(free)}/`));

describe("a project with Lockstep in its node_modules", { skip: bwrap.skip }, () => {
  test("a model that can only write", () => {
    const project = newProject();
    const before = snapshot(project).filter(isKept);
    const all = [...KEPT, ...OTHER_CASES, ...FREE];
    const calls = all.map((path) => ({ name: "Write", input: { file_path: path, content: BYTES } }));
    const { status, results, stderr, stdout } = runWith(project, calls);
    assert.equal(status, 0, stderr + stdout);
    assert.deepEqual(
      all.map((path, index) => [path, results[index]?.ok]),
      all.map((path) => [path, FREE.includes(path)]),
    );
    assert.match(results[0]!.content, /node_modules\/lockstep is part of the Lockstep that runs this flow/);
    assert.deepEqual(snapshot(project).filter(isKept), before);
    for (const path of FREE) assert.equal(readFileSync(join(project, path), "utf8"), BYTES, path);
  });

  test("code that is loaded later", () => {
    const project = newProject();
    // A visit may take 200 responses; the command at the end writes to all of them.
    const chunks = readdirSync(join(built, "dist/bin"))
      .filter((name) => name !== "main.js")
      .slice(0, 150);
    const folder = "node_modules/lockstep/dist/bin";
    const writes = chunks.map((name) => ({
      name: "Write",
      input: { file_path: `${folder}/${name}`, content: EVIL },
    }));
    const command = `for f in ${folder}/*; do echo '${EVIL}' > $f; done; true`;
    const calls = [...writes, { name: "Bash", input: { command } }];
    // It has to be put right before it can be read, and what does that is loaded only now.
    const broken = `{"stepId": "initial.a", "next_action": {"action": "next",},}`;
    const { status, stdout } = runWith(project, calls, broken);
    assert.equal(status, 0, stdout);
    assert.ok(!existsSync(join(base, "PWNED")));
  });

  test("confined commands", () => {
    const project = newProject();
    const before = snapshot(project).filter(isKept);
    const write = (path: string) =>
      `{ mkdir -p "$(dirname '${path}')" && printf 'planted\\n' > '${path}'; } 2>/dev/null`;
    const [first, second] = [
      [...KEPT, ...FREE].map(write).join("\n"),
      [
        // A folder that only contains what is read-only must not be moved either.
        "mv node_modules elsewhere; mkdir -p node_modules/lockstep/dist/bin; echo x > node_modules/lockstep/dist/bin/main.js",
        "mv node_modules/@ai-sdk node_modules/x; mkdir -p node_modules/@ai-sdk/google; echo x > node_modules/@ai-sdk/google/index.js",
        "mv node_modules/lockstep node_modules/y; rm -rf node_modules/lockstep; rm -rf node_modules/.bin",
        "ln -f node_modules/lockstep/dist/bin/main.js mine.js && echo x > mine.js",
        "rm node_modules/.bin/lockstep; ln -s /bin/true node_modules/.bin/git; mv .npmrc .npmrc2",
        "cp --remove-destination src/index.ts node_modules/lockstep/dist/bin/main.js; chmod 777 node_modules/lockstep/dist/bin/main.js",
        "mkdir -p node_modules/@ai-sdk/openai; ln -s /tmp node_modules/@agentclientprotocol; true",
      ].join("\n"),
    ];
    const calls = [first, second].map((command) => ({ name: "Bash", input: { command } }));
    const { status, stderr, stdout, results } = runWith(project, calls);
    assert.equal(status, 0, stderr + stdout);
    assert.deepEqual(
      snapshot(project).filter((path) => isKept(path) && !path.includes("lockstep-refused")),
      before,
    );
    assert.ok(!existsSync(join(project, "elsewhere")));
    for (const path of [
      "node_modules/@ai-sdk/openai",
      "node_modules/@modelcontextprotocol/client",
      "node_modules/@agentclientprotocol",
      "node_modules/node_modules",
      ".pnp.cjs",
      ".yarnrc.yml",
    ])
      assert.equal(lstatSync(join(project, path), { throwIfNoEntry: false }), undefined, path);
    assert.equal(readFileSync(join(project, ".npmrc"), "utf8"), "fund=false\n");
    assert.match(results[0]!.content, /@ai-sdk\/openai is not for commands to make: it was moved away/);
    for (const path of FREE) assert.equal(readFileSync(join(project, path), "utf8"), BYTES, path);
  });

  test("a store of hard links in the project", () => {
    const project = newProject();
    const main = join(project, "node_modules/lockstep/dist/bin/main.js");
    mkdirSync(join(project, ".pnpm-store"));
    linkSync(main, join(project, ".pnpm-store/aa"));
    linkSync(main, join(project, "by-another-name.js"));
    const before = readFileSync(main, "utf8");
    const calls = [
      { name: "Bash", input: { command: "echo x > .pnpm-store/aa; true" } },
      { name: "Write", input: { file_path: ".pnpm-store/aa", content: BYTES } },
      { name: "Write", input: { file_path: "by-another-name.js", content: BYTES } },
    ];
    const { results } = runWith(project, calls);
    assert.deepEqual(
      results.map(({ ok }) => ok),
      [true, false, true],
    );
    // Write puts a new file in the place of a name, and never writes through it.
    assert.equal(readFileSync(main, "utf8"), before);
    assert.equal(readFileSync(join(project, "by-another-name.js"), "utf8"), BYTES);
  });
});

describe("packages that come into being while Lockstep runs", () => {
  const CASES = [
    ["not installed before", "vendor/node_modules/@ai-sdk/openai", "module"],
    ["nearer than the one that is installed", "vendor/lockstep/src/node_modules/@ai-sdk/openai", "module"],
    ["further up", "node_modules/@ai-sdk/openai", "module"],
    ["of an older kind", "vendor/node_modules/@ai-sdk/openai", "commonjs"],
    ["behind a link out of the project", "vendor/node_modules/@ai-sdk/openai", "linked"],
  ] as const;
  for (const [what, path, type] of CASES) {
    for (const isKeptIn of [true, false]) {
      test(`${what}${isKeptIn ? "" : ", where nothing is kept"}`, () => {
        const project = join(base, `v${(projects += 1)}`);
        cpSync(join(repository, "src"), join(project, "vendor/lockstep/src"), { recursive: true });
        cpSync(join(repository, "package.json"), join(project, "vendor/lockstep/package.json"));
        const pwned = join(project, "PWNED");
        const isModule = type !== "commonjs";
        const code = isModule ? 'import fs from "node:fs";' : 'const fs = require("node:fs");';
        const exported = isModule ? "export const createOpenAI = 1;" : "exports.createOpenAI = 1;";
        const text = `${code} fs.writeFileSync(${JSON.stringify(pwned)}, "x"); ${exported}`;
        const about = JSON.stringify({
          name: "@ai-sdk/openai",
          type: isModule ? "module" : type,
          main: "index.js",
        });
        const driver = `
          import fs from "node:fs";
          const at = (path) => ${JSON.stringify(`${project}/`)} + path;
          const { keptIn } = await import(at("vendor/lockstep/src/run/world/own-files.ts"));
          const { loadProvider } = await import(at("vendor/lockstep/src/backends/ai-sdk/packages.ts"));
          if (${isKeptIn}) keptIn([${JSON.stringify(project)}]);
          if (${type === "linked"}) {
            fs.mkdirSync(at("../elsewhere-${projects}/openai"), { recursive: true });
            fs.mkdirSync(at("vendor/node_modules"), { recursive: true });
            fs.symlinkSync(at("../elsewhere-${projects}"), at("vendor/node_modules/@ai-sdk"));
          }
          fs.mkdirSync(at("${path}"), { recursive: true });
          fs.writeFileSync(at("${path}/package.json"), ${JSON.stringify(about)});
          fs.writeFileSync(at("${path}/index.js"), ${JSON.stringify(text)});
          console.log(await loadProvider("openai").then(() => "loaded", (error) => error.code));
        `;
        const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", driver], {
          encoding: "utf8",
          cwd: base,
        });
        // A folder in our own package is read-only for a run, and so it counts as ours.
        const isOurs = path.startsWith("vendor/lockstep/");
        assert.equal(stdout.trim(), isKeptIn && !isOurs ? "NO_BACKEND" : "loaded", stderr);
        assert.equal(existsSync(pwned), !isKeptIn || isOurs);
      });
    }
  }
});
