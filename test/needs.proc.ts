/** What the suite says about the tests that it leaves out, and which packages it can be given. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const root = new URL("../", import.meta.url).pathname;

for (const [name, left, code, says] of [
  ["nothing is left out", [], 0, ""],
  [
    "a program is missing",
    ["strace is not installed"],
    0,
    "LEFT OUT are tests that need what is missing here: strace is not installed.\n",
  ],
  [
    "packages are missing, for several files, and a test failed",
    ["@b/c not installed", "no zsh", "@b/c not installed"],
    1,
    "LEFT OUT are tests that need what is missing here: @b/c not installed; no zsh. `npm run test:all` installs the packages.\n",
  ],
] as const)
  test(`npm test says in one line what it left out: ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "lockstep-needs-"));
    try {
      for (const place of ["scripts", "test"]) mkdirSync(join(folder, place));
      for (const file of ["scripts/test.mjs", "test/needs.ts"]) cpSync(join(root, file), join(folder, file));
      const needed = left.map((missing) => `needs(false, ${JSON.stringify(missing)});`).join(" ");
      writeFileSync(
        join(folder, "suite.mjs"),
        `import { needs } from "./test/needs.ts"; ${needed} process.exitCode = ${code};`,
      );
      const suite = { "test:pure": `"${process.execPath}" suite.mjs`, "test:process": "exit 0" };
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", scripts: suite }));
      const { CI: _, LOCKSTEP_LEFT_OUT: __, ...env } = process.env;
      const ran = spawnSync(process.execPath, ["scripts/test.mjs"], { cwd: folder, env, encoding: "utf8" });
      assert.deepEqual([ran.status, ran.stderr], [code, says]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

/** Notes how it was called, and makes what an install makes. */
const NPM = `#!/usr/bin/env node
const { appendFileSync, mkdirSync, writeFileSync } = require("node:fs");
const [command, ...rest] = process.argv.slice(2);
const at = rest.indexOf("--prefix");
const words = at === -1 ? [process.env.LOCKSTEP_PACKAGES, process.env.LOCKSTEP_AGENTS, rest.at(-1)] : rest.slice(at + 1);
appendFileSync("called", [command, ...words].join(" ") + "\\n");
for (const spec of at === -1 ? [] : words.slice(1)) {
  const [, name, version] = /^(.+)@(.+)$/.exec(spec);
  mkdirSync(words[0] + "/node_modules/" + name, { recursive: true });
  writeFileSync(words[0] + "/node_modules/" + name + "/package.json", JSON.stringify({ version }));
}
`;

test("test:all installs what is missing, once, where it is asked to, and runs with it", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-needs-"));
  try {
    for (const place of ["scripts", "bin"]) mkdirSync(join(folder, place));
    cpSync(join(root, "scripts/test.mjs"), join(folder, "scripts/test.mjs"));
    const wanted = { packages: { "@a/b": "1.0.0", c: "2.0.0" }, agents: { d: "3.0.0" } };
    writeFileSync(join(folder, "scripts/test-packages.json"), JSON.stringify(wanted));
    writeFileSync(join(folder, "bin/npm"), NPM, { mode: 0o755 });
    const env = {
      ...process.env,
      PATH: `${folder}/bin:${process.env.PATH}`,
      LOCKSTEP_PACKAGES: `${folder}/p`,
      LOCKSTEP_AGENTS: "",
      TMPDIR: folder,
    };
    const runs = `run ${folder}/p ${folder}/lockstep-agents`;
    const installs = [`install ${folder}/p @a/b@1.0.0 c@2.0.0`, `install ${folder}/lockstep-agents d@3.0.0`];
    const ran = [`${runs} test:pure`, `${runs} test:process`];
    for (const expected of [
      [...installs, ...ran],
      [...installs, ...ran, ...ran],
    ]) {
      const { status, stderr } = spawnSync(process.execPath, ["scripts/test.mjs", "--all"], {
        cwd: folder,
        env,
        encoding: "utf8",
      });
      assert.equal(status, 0, stderr);
      assert.deepEqual(readFileSync(join(folder, "called"), "utf8").trimEnd().split("\n"), expected);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the packages of test:all are the optional peers, in a version that is supported", () => {
  const read = (path: string) => JSON.parse(readFileSync(root + path, "utf8")) as unknown;
  const { packages } = read("scripts/test-packages.json") as { packages: Record<string, string> };
  const { peerDependencies, devDependencies } = read("package.json") as {
    peerDependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  for (const [name, range] of Object.entries(peerDependencies)) {
    if (name in devDependencies) continue;
    const [sign = ""] = /^[~^]?/.exec(range) ?? [];
    assert.equal(`${sign}${packages[name]}`, range, name);
  }
});
