/** A run that a process in another PID namespace holds, as in a container: its number there is not taken for one here. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { createWorld, MAIN, onlyDocument, replies, script, writeAgent } from "./world.ts";

test("the holder is named by where it is", needs(hasBwrap, NO_BWRAP), async () => {
  using world = createWorld();
  writeAgent(world, "a");
  world.write("s.json", script(replies.initial(), { error: { kind: "rate-limit", retryAfterMs: 60_000 } }));
  const inside = [
    "--bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--unshare-pid",
    "--proc",
    "/proc",
    "--die-with-parent",
  ];
  const line = [process.execPath, MAIN, "run", "a", "--topic", "t", "--script", "s.json"];
  const child = spawn("bwrap", [...inside, ...line], {
    cwd: world.root,
    env: world.env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const over = once(child, "close");
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  try {
    for (let tries = 0; tries < 6000 && !/trying again/.test(said); tries++) await delay(10);
    const ran = await world.lockstep(["resume", "@last", "--json"]);
    const { code, reason } = onlyDocument(ran) as { readonly code: string; readonly reason: string };
    assert.equal(code, "RUN_OWNED_ELSEWHERE", said + ran.stderr);
    assert.match(reason, /driven by a process in another container on this machine \(since/);
  } finally {
    child.kill("SIGKILL");
    await over;
  }
});
