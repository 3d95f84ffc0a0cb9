/** Folders where none can be made: the commands that are given one say so, and do not try for ever. */
import assert from "node:assert/strict";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder } from "../../src/journal/make-folder.ts";
import { createWorld, replies, script } from "../cli/world.ts";
import { needs } from "../needs.ts";

const linux = needs(process.platform === "linux", "below /proc nobody can make a folder");
/** A folder that a run of Node's own `recursive` never comes back from. */
const NOWHERE = "/proc/nowhere/below";
const RUN = ["run", "hello", "--topic", "tea", "--script", "script.json"];

for (const [what, args, code, text] of [
  ["the state folder of a run", [...RUN, "--state", NOWHERE], 3, /state folder \/proc\/nowhere/],
  ["the folder of a log", [...RUN, "--log", NOWHERE], 0, /log file could not be written.*\/proc\/nowhere/],
  ["the folder of a report", ["test", "hello", "--reporter", `junit=${NOWHERE}/x.xml`], 3, /\/proc\/nowhere/],
  ["the folder of coverage", ["test", "hello", "--coverage-file", `${NOWHERE}/x.info`], 3, /\/proc\/nowhere/],
  ["the folder of a salvage", ["salvage", "--out", NOWHERE], 3, /\/proc\/nowhere/],
] as const)
  test(`${what} cannot be made: the command says so and ends`, linux, async () => {
    using world = createWorld();
    await world.lockstep(["init", "hello", "--template", "steps"]);
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    await world.lockstep(RUN);
    const ran = await world.lockstep(args);
    assert.equal(ran.code, code, ran.stdout + ran.stderr);
    assert.match(ran.stderr, text);
  });

test("a folder is made with those above it, and the first that was made is given", () => {
  using world = createWorld();
  const deep = join(world.root, "a/b/c");
  assert.equal(makeFolder(deep, { mode: 0o700 }), join(world.root, "a"));
  assert.equal(statSync(deep).mode & 0o777, 0o700);
  assert.equal(makeFolder(deep), undefined);
  assert.equal(makeFolder(join(world.root, "a/b/d")), join(world.root, "a/b/d"));
  writeFileSync(join(world.root, "file"), "");
  assert.throws(() => makeFolder(join(world.root, "file")), { code: "EEXIST" });
  assert.throws(() => makeFolder(join(world.root, "file/below")), { code: "EEXIST" });
  assert.ok(!existsSync(join(world.root, "file/below")));
});
