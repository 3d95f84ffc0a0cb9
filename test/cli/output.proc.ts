/** A long result on its way to a pipe or a file: it arrives whole, whoever reads it and whenever. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { describe, test } from "node:test";
import { createWorld, MAIN, writeAgent, type World } from "./world.ts";

/** Far more findings than a pipe holds. */
const STRANGERS = 4000;

function writeFaulty(world: World): void {
  const strangers = Array.from({ length: STRANGERS }, (_, place) => [`stranger${place}`, "é"]);
  writeAgent(world, "a", { agent: (agent) => Object.assign(agent, Object.fromEntries(strangers)) });
}

/** Node's own stream makes a pipe answer EAGAIN instead of waiting for its reader. */
const AGAIN = "process.stdout";
/** Says at the end whether the streams were loaded. */
const STREAMS = `process.on("exit", () => process.getBuiltinModule("node:fs").writeSync(
  2, process.moduleLoadList.includes("NativeModule net") ? "streams" : "no streams"))`;

function begin(world: World, preload: string, stdout: "pipe" | number) {
  const code = `data:text/javascript,${encodeURIComponent(preload)}`;
  return spawn(process.execPath, ["--import", code, MAIN, "check", "a", "--json"], {
    cwd: world.root,
    env: world.env,
    stdio: ["ignore", stdout, "pipe"],
  });
}

function assertWhole(document: string): void {
  const { problems } = JSON.parse(document) as { readonly problems: readonly object[] };
  assert.ok(problems.length >= STRANGERS);
  assert.match(document, /^\{.*\}\n$/);
}

describe("a result that is longer than a pipe", { concurrency: 2 }, () => {
  for (const [name, preload, waitMs, says] of [
    ["read at once", STREAMS, 0, "no streams"],
    ["read late", STREAMS, 300, "no streams"],
    ["read late from a pipe that does not wait", `${AGAIN}; ${STREAMS}`, 300, "streams"],
  ] as const)
    test(name, async () => {
      using world = createWorld();
      writeFaulty(world);
      const child = begin(world, preload, "pipe");
      const over = once(child, "close");
      const stderr = text(child.stderr!);
      await pause(waitMs);
      assertWhole(await text(child.stdout!));
      assert.deepEqual(await over, [0, null]);
      assert.equal(await stderr, says);
    });

  for (const [name, preload] of [
    ["whose reader is gone", ""],
    ["whose reader is gone from a pipe that does not wait", AGAIN],
  ] as const)
    test(name, async () => {
      using world = createWorld();
      writeFaulty(world);
      const child = begin(world, preload, "pipe");
      child.stdout!.destroy();
      const over = once(child, "close");
      assert.equal(await text(child.stderr!), "");
      assert.deepEqual(await over, [0, null]);
    });

  test("written to a file", async () => {
    using world = createWorld();
    writeFaulty(world);
    const path = join(world.root, "out.json");
    const file = openSync(path, "w");
    const child = begin(world, STREAMS, file);
    closeSync(file);
    const over = once(child, "close");
    assert.equal(await text(child.stderr!), "no streams");
    assert.deepEqual(await over, [0, null]);
    assertWhole(readFileSync(path, "utf8"));
  });
});
