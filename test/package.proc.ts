/** What is published: its contents, and that it works in an empty folder. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { needs } from "./needs.ts";
import { linksOf } from "./page-links.ts";
import { agentFiles, stepTo, writeFiles } from "./run/project.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lockstep-package-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function call(command: string, args: readonly string[], cwd: string) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", env });
  assert.equal(status, 0, `${command} ${args.join(" ")}: ${stderr}${stdout}`);
  return stdout;
}

test("the packed tarball holds what is needed, and works where it is installed", async (t) => {
  const [packed] = JSON.parse(
    call("npm", ["pack", "--json", "--silent", "--pack-destination", folder], root),
  ) as [
    {
      readonly filename: string;
      readonly files: readonly { readonly path: string }[];
      readonly unpackedSize: number;
    },
  ];
  const paths = packed.files.map((file) => file.path);

  await t.test("contents", () => {
    for (const path of [
      "package.json",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "dist/bin/main.js",
      "dist/bin/bench.js",
      "dist/studio/index.html",
      "dist/studio/page.js",
      "dist/studio/more.js",
      "dist/studio/page.css",
      "dist/run/index.js",
      "dist/run/index.d.ts",
      "dist/testing/index.js",
      "dist/backends/ai-sdk/prices.json",
      "templates/steps/agent.json",
      "templates/stages/machine.yaml",
      "templates/completion/lockstep.bash",
      "docs/cli.md",
      "examples/01-fix-a-test/script.yaml",
    ]) {
      assert.ok(paths.includes(path), `${path} is missing`);
    }
    const stray = paths.filter(
      (path) => /^(?:src|bench|test|node_modules|scripts|dist\/cli\/|\.)/.test(path) || path.endsWith(".tgz"),
    );
    assert.deepEqual(stray, []);
    assert.ok(packed.unpackedSize < 8 * 1024 * 1024, `${packed.unpackedSize} bytes`);
  });

  await t.test("links of its pages", () => {
    const isPacked = (target: string) => {
      const path = relative(root, target);
      return paths.some((one) => one === path || one.startsWith(`${path}/`));
    };
    const pages = paths.filter((path) => path.endsWith(".md"));
    assert.ok(pages.length > 50);
    for (const page of pages) {
      const { links, pictures } = linksOf(join(root, page));
      const dead = [
        ...links.filter(({ target }) => !isPacked(target)),
        ...pictures.filter(({ target, alt }) => alt === "" && !isPacked(target)),
      ];
      assert.deepEqual([page, ...dead.map(({ link }) => link)], [page]);
    }
  });

  const packages = join(process.env.LOCKSTEP_PACKAGES ?? "", "node_modules");
  for (const [name, program, args] of [
    ["publint", "publint/src/cli.js", ["run", "--strict"]],
    ["@arethetypeswrong/cli", "@arethetypeswrong/cli/dist/index.js", ["--profile", "esm-only"]],
  ] as const)
    await t.test(`${name} finds nothing`, needs(existsSync(join(packages, name)), name), () => {
      call(process.execPath, [join(packages, program), ...args, join(folder, packed.filename)], folder);
    });

  const home = join(folder, "home");
  call("mkdir", [home], folder);
  writeFileSync(join(home, "package.json"), JSON.stringify({ name: "home", private: true, type: "module" }));
  call("npm", ["install", "--silent", "--no-audit", "--no-fund", join(folder, packed.filename)], home);

  await t.test("few packages, none with an install script", () => {
    const lock = JSON.parse(readFileSync(join(home, "package-lock.json"), "utf8")) as {
      readonly packages: { readonly [path: string]: { readonly hasInstallScript?: boolean } };
    };
    const installed = Object.entries(lock.packages).filter(([path]) => path !== "");
    assert.ok(installed.length <= 25, `${installed.length} packages`);
    assert.deepEqual(
      installed.filter(([, about]) => about.hasInstallScript === true),
      [],
    );
  });

  await t.test("no more than 20 MB, and no package of a provider", () => {
    // The bytes of the files: what they take on a disk depends on the size of its blocks.
    const files = readdirSync(join(home, "node_modules"), { recursive: true, withFileTypes: true });
    const bytes = files
      .filter((file) => file.isFile())
      .reduce((sum, { parentPath, name }) => sum + lstatSync(join(parentPath, name)).size, 0);
    assert.ok(bytes < 20 * 1024 * 1024, `${bytes} bytes`);
    assert.ok(!existsSync(join(home, "node_modules", "@ai-sdk")));
  });

  const bin = join(home, "node_modules", ".bin", "lockstep");
  const lockstep = (...args: readonly string[]) => call(process.execPath, [bin, ...args], home);

  await t.test("the command runs", () => {
    assert.match(lockstep("--help"), /Usage {2}npx lockstep COMMAND/);
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      readonly version: string;
    };
    assert.match(lockstep("--version"), new RegExp(version.replaceAll(".", "\\.")));
  });

  await t.test("a flow runs", () => {
    lockstep("init", "hello");
    assert.equal((JSON.parse(lockstep("check", "hello", "--json")) as { ok: boolean }).ok, true);
    const args = ["run", "hello", "--topic", "tides", "--script", ".agent/hello/script.yaml", "--json"];
    const result = JSON.parse(lockstep(...args)) as { outcome: string; iterations: number };
    assert.deepEqual([result.outcome, result.iterations], ["completed", 3]);
  });

  await t.test("the kit runs in vitest", needs(existsSync(join(packages, "vitest")), "vitest"), () => {
    symlinkSync(join(packages, "vitest"), join(home, "node_modules", "vitest"));
    writeFileSync(
      join(home, ".agent/hello/tests/second.yaml"),
      "params: { topic: a }\ntests: [{ name: fails, script: [] }, { name: later, skip: not yet, script: [] }]\n",
    );
    writeFileSync(
      join(home, "agents.test.js"),
      `import { test } from "vitest";
      import { flowTests, play, sketchFlow } from "lockstep/testing";
      await flowTests("hello", { test });
      test("a sketch is played", async ({ expect }) => {
        const flow = sketchFlow({ work: { edges: { next: null } } });
        const { state } = await play({ flow, model: [{ output: { next_action: { action: "next" } } }] });
        expect(state.verdict.outcome).toBe("completed");
      });`,
    );
    const line = ["run", "--root", home, "--reporter", "json", "--outputFile", join(home, "vitest.json")];
    const ran = spawnSync(process.execPath, [join(packages, "vitest/vitest.mjs"), ...line], {
      cwd: home,
      encoding: "utf8",
    });
    assert.equal(ran.status, 1, ran.stderr);
    const { testResults } = JSON.parse(readFileSync(join(home, "vitest.json"), "utf8")) as {
      readonly testResults: readonly {
        readonly assertionResults: readonly {
          readonly status: string;
          readonly title: string;
          readonly failureMessages: readonly string[];
        }[];
      }[];
    };
    const results = testResults.flatMap(({ assertionResults }) => assertionResults);
    const having = (status: string) =>
      results.filter((one) => one.status === status).map(({ title }) => title);
    assert.deepEqual([having("failed"), having("skipped")], [["hello › fails"], ["hello › later (not yet)"]]);
    assert.ok(having("passed").includes("a sketch is played") && having("passed").length > 2);
    const [failed] = results.flatMap(({ failureMessages }) => failureMessages);
    assert.match(failed!, /second\.yaml:2: what is expected does not hold/);
  });

  await t.test("a run cannot change the Lockstep that runs it", () => {
    const steps = {
      "initial.a": stepTo("work", { next: "closure.a" }),
      "closure.a": stepTo("closure", { closing: null }),
    };
    const boundaries = { allowedTools: ["Write"], permissionMode: "acceptEdits" };
    writeFiles(home, agentFiles("writer", steps, { runner: { boundaries } }));
    const kept = [
      "node_modules/lockstep/dist/bin/main.js",
      "node_modules/lockstep/dist/run/index.js",
      "node_modules/ajv/dist/ajv.js",
      "node_modules/fast-uri/index.js",
      "node_modules/@octokit/core/package.json",
      "node_modules/@ai-sdk/openai/package.json",
      "node_modules/.bin/lockstep",
      "node_modules/.bin/git",
      ".npmrc",
    ];
    const free = ["node_modules/other/index.js", "src/index.js"];
    const calls = [...kept, ...free].map((file_path) => ({
      name: "Write",
      input: { file_path, content: "x" },
    }));
    const output = (stepId: string, action: string) => ({ output: { stepId, next_action: { action } } });
    const replies = [{ calls }, output("initial.a", "next"), output("closure.a", "closing")];
    writeFileSync(join(home, "script.json"), JSON.stringify({ replies }));
    const text = (path: string) =>
      existsSync(join(home, path)) ? readFileSync(join(home, path), "utf8") : null;
    const before = kept.map(text);
    assert.ok(before.filter((one) => one !== null).length >= 6, "the packages are where they are expected");
    lockstep("run", "writer", "--script", "script.json", "--json");
    assert.deepEqual(kept.map(text), before);
    assert.deepEqual(free.map(text), ["x", "x"]);
  });

  await t.test("a model whose package and key are missing is named with all that it takes", () => {
    const env = { ...process.env, OPENAI_API_KEY: "", HOME: home };
    const args = ["run", "hello", "--topic", "tides", "--model", "openai/gpt-4o", "--json"];
    const { status, stdout } = spawnSync(process.execPath, [bin, ...args], {
      cwd: home,
      encoding: "utf8",
      env,
    });
    assert.equal(status, 3);
    const { code, reason } = JSON.parse(stdout) as { code: string; reason: string };
    assert.equal(code, "NO_BACKEND");
    assert.match(
      reason,
      /needs a key: set OPENAI_API_KEY .* It also needs a package that is not installed: npm install @ai-sdk\/openai@4/,
    );
    assert.match(
      lockstep("bench", "--part", "http"),
      /not measured: .*npm install @ai-sdk\/openai-compatible@3/,
    );
  });

  await t.test("the library can be imported, and its types are there", () => {
    const code = `import { run, check } from "lockstep"; import { flowTests, play } from "lockstep/testing";
      const result = await check("hello"); console.log(typeof run, typeof play, typeof flowTests, result.ok);`;
    assert.equal(
      call(process.execPath, ["--input-type=module", "-e", code], home).trim(),
      "function function function true",
    );
  });
});
