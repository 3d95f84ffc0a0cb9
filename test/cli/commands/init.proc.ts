/** `init`: the schemas that its files name for editors are there, or are not named. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { createWorld, onlyDocument } from "../world.ts";

/** Every path of a schema that files below the folder name. */
function schemasIn(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.flatMap(({ parentPath, name }) => {
    const text = readFileSync(join(parentPath, name), "utf8");
    return [...text.matchAll(/\$schema(?:": "|=)(\.[^"\n]*)/g)].map((match) =>
      resolve(parentPath, match[1]!),
    );
  });
}

test("the schemas that are named exist, wherever the package is", async () => {
  // Where the package is, if anywhere; and the project.
  for (const [place, project, count] of [
    [null, "p", 0],
    ["p", "p", 4],
    [".", "workspace/p", 4],
  ] as const)
    for (const flags of [[], ["--stages"]]) {
      using world = createWorld();
      mkdirSync(join(world.root, project), { recursive: true });
      if (place !== null)
        for (const name of ["agent", "steps_registry", "machine", "script", "tests"]) {
          const file = join(world.root, place, `node_modules/lockstep/schemas/${name}.schema.json`);
          mkdirSync(dirname(file), { recursive: true });
          writeFileSync(file, "{}");
        }
      const made = await world.lockstep(["init", "notes", "--cwd", project, ...flags]);
      assert.equal(made.code, 0, made.stderr);
      const named = schemasIn(join(world.root, project, ".agent"));
      assert.equal(named.length, flags.length === 0 ? count : Math.min(count, 3), `${place} ${flags.join()}`);
      for (const file of named) assert.ok(existsSync(file), file);
      assert.equal((await world.lockstep(["check", "notes", "--cwd", project, "--strict"])).code, 0);
    }
});

test("a folder that cannot be written is exit 3, and names a way out", async () => {
  using world = createWorld();
  world.write(".agent", "a file");
  const ran = await world.lockstep(["init", "notes", "--json"]);
  const { code, reason } = onlyDocument(ran);
  assert.deepEqual([ran.code, code], [3, "NOT_WRITABLE"], ran.stderr);
  assert.match(String(reason), /cannot be written: .* or choose another folder with --cwd DIR/);
});

test("a runtime without a cache for compiled code runs the command all the same", async () => {
  using world = createWorld();
  world.write("without.mjs", 'import module from "node:module";\ndelete module.enableCompileCache;\n');
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(join(world.root, "without.mjs")).href}` };
  const ran = await world.lockstep(["list"], { env });
  assert.deepEqual([ran.code, /There is no agent/.test(ran.stderr)], [0, true], ran.stderr);
});
