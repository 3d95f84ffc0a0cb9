/** What belongs to Lockstep below a folder that a run may write, where that is Lockstep's own repository or another folder. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createGround } from "../../../src/boundaries/gate/paths.ts";
import { guardedIn, ownFiles } from "../../../src/run/world/own-files.ts";
import { loadedBy } from "../../../src/run/world/own-modules.ts";

const repository = realpathSync(fileURLToPath(new URL("../../..", import.meta.url)));
const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-own-")));
after(() => rmSync(base, { recursive: true, force: true }));

function write(path: string, text = ""): string {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), text);
  return join(base, path);
}

describe("Lockstep developed with Lockstep", () => {
  const places = { cwd: repository, root: repository, stateDir: join(repository, ".lockstep") };
  const ground = createGround(repository, [], () => guardedIn(places, { PATH: "" }));

  test("what this process is made of is read-only, and the reason says what to do", () => {
    for (const path of [
      "src/run/open.ts",
      "src/new.ts",
      "SRC/new.ts",
      "package.json",
      "bench/measure.ts",
      "bench/new.ts",
      "templates/completion/lockstep.bash",
      "templates/steps/agent.json",
    ]) {
      const place = ground.writing(path);
      assert.ok(place.kind === "refused", path);
      assert.match(
        place.why,
        /part of the Lockstep that runs this flow \(to work on it, run an installed Lockstep/,
      );
    }
    for (const path of [
      "node_modules/.bin/git",
      "node_modules/ajv/dist/ajv.js",
      "node_modules/node_modules/ajv/x.js",
    ])
      assert.equal(ground.writing(path).kind, "refused", path);
  });

  test("the rest of the repository can be worked on, and all of it be read", () => {
    for (const path of [
      "test/new.test.ts",
      "docs/new.md",
      "README.md",
      "scripts/new.mjs",
      "node_modules/new/x.js",
    ])
      assert.equal(ground.writing(path).kind, "inside", path);
    for (const path of ["src/run/open.ts", "package.json", "node_modules/ajv/package.json"])
      assert.equal(ground.reading(path).kind, "inside", path);
  });

  test("a folder below what is read-only is read-only as a whole", () => {
    const cwd = join(repository, "src/run");
    const inner = createGround(cwd, [], () => guardedIn({ ...places, cwd }, { PATH: "" }));
    assert.equal(inner.writing("run.ts").kind, "refused");
    assert.equal(inner.reading("run.ts").kind, "inside");
  });
});

describe("Lockstep elsewhere", () => {
  test("nothing of it is in the way", () => {
    assert.deepEqual(ownFiles([base], { PATH: "/usr/bin" }).there, []);
    assert.deepEqual(ownFiles([base], { PATH: "/usr/bin" }).missing, []);
  });

  test("folders of programs that npx puts on the PATH, there or not", () => {
    write("p/node_modules/.bin/x");
    const PATH = ["p/node_modules/.bin", "q/node_modules/.bin", "bin"]
      .map((path) => join(base, path))
      .join(":");
    const { there, missing } = ownFiles([base], { PATH });
    assert.deepEqual(
      [there, missing].map((all) => all.map(({ path }) => path)),
      [[join(base, "p/node_modules/.bin")], [join(base, "q/node_modules/.bin")]],
    );
  });

  test("packages in the folder that LOCKSTEP_PACKAGES names", () => {
    const name = "@anthropic-ai/claude-agent-sdk";
    const folder = dirname(write(`packages/node_modules/${name}/index.js`));
    write(`packages/node_modules/${name}/package.json`, JSON.stringify({ dependencies: { zod: "*" } }));
    write("packages/node_modules/zod/package.json", "{}");
    mkdirSync(join(base, "store/mcp"), { recursive: true });
    mkdirSync(join(base, "packages/node_modules/@modelcontextprotocol"));
    symlinkSync(join(base, "store/mcp"), join(base, "packages/node_modules/@modelcontextprotocol/client"));
    const own = ownFiles([base], { PATH: "", LOCKSTEP_PACKAGES: join(base, "packages") });
    const paths = new Set(own.there.map(({ path }) => path));
    for (const path of [folder, join(base, "packages/node_modules/zod"), join(base, "store/mcp")])
      assert.ok(paths.has(path), path);
    // A link cannot be made read-only, so the folder that holds it is.
    assert.ok(paths.has(join(base, "packages/node_modules/@modelcontextprotocol")));
    const missing = new Set(own.missing.map(({ path }) => path));
    for (const path of ["@ai-sdk/openai", "zod.js", "@ai-sdk/openai.js", "node_modules"])
      assert.ok(missing.has(join(base, "packages/node_modules", path)), path);
  });

  test("what the environment makes Node load", () => {
    const at = (path: string) => join(base, path);
    const NODE_OPTIONS = `--import ${at("first.mjs")} --require="${at("with space/r.cjs")}" --max-old-space-size=4096`;
    const env = { PATH: "", HOME: at("home2"), NODE_OPTIONS, NODE_PATH: `${at("libs")}:${base}` };
    const missing = new Set(ownFiles([base], env).missing.map(({ path }) => path));
    for (const path of [
      "first.mjs",
      "with space/r.cjs",
      "libs",
      "home2/.node_modules",
      "home2/.node_libraries",
    ])
      assert.ok(missing.has(at(path)), path);
    // A folder that is searched and is all of the work stays a place to work in.
    const places = { cwd: base, root: base, stateDir: at(".lockstep") };
    const ground = createGround(base, [], () => guardedIn(places, env));
    assert.equal(ground.writing("libs/x.js").kind, "refused");
    assert.equal(ground.writing("src/x.js").kind, "inside");
  });

  test("settings of the user below the working directory are not for tools", () => {
    const home = join(base, "home");
    write("home/.config/lockstep/trust.json", "{}");
    write("home/.config/other/file", "");
    const places = { cwd: home, root: home, stateDir: join(home, "state") };
    const ground = createGround(home, [], () => guardedIn(places, { PATH: "", HOME: home }));
    for (const path of [".config/lockstep/trust.json", "state/runs.db"]) {
      assert.equal(ground.reading(path).kind, "refused", path);
      assert.equal(ground.writing(path).kind, "refused", path);
    }
    assert.equal(ground.writing(".config/other/file").kind, "inside");
  });
});

test("what modules load, by every way to write it", () => {
  const module = write(
    "m/main.mjs",
    `import "./a.mjs"; import x from '../lib/b.mjs'; export * from "./c.mjs"; const d = await import("./d.mjs");
     import { createRequire } from "node:module"; const e = createRequire(import.meta.url)("./e"); require("./f.json");
     import y from "pkg/deep"; import z from "@scope/name"; import "./nowhere.mjs"; import "https://example.invalid/x";`,
  );
  for (const name of ["a.mjs", "c.mjs", "d.mjs", "f.json"]) write(`m/${name}`);
  write("lib/b.mjs", 'import "../m/main.mjs"; import "./g.mjs";');
  write("lib/g.mjs");
  const { files, packages } = loadedBy([module]);
  const expected = ["lib/b.mjs", "lib/g.mjs", "m/a.mjs", "m/c.mjs", "m/d.mjs", "m/f.json", "m/main.mjs"];
  assert.deepEqual(
    files.toSorted(),
    expected.map((path) => join(base, path)),
  );
  assert.deepEqual(packages, [{ folder: join(base, "m"), names: ["pkg", "@scope/name"] }]);
});
