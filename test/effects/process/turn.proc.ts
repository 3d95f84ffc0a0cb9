/** One process at a time merges: a dead one holds nobody up, and a living one is not passed by. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { takeTurn, type Turn } from "../../../src/effects/process/turn.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-turn-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const place = (name: string) => {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
};
const isTaken = (turn: Turn) => "release" in turn;
const release = (turn: Turn) => "release" in turn && turn.release();

/** Another process that has the turn until it is ended. */
async function holder(common: string) {
  const turn = join(import.meta.dirname, "../../../src/effects/process/turn.ts");
  const code = `const { takeTurn } = await import(${JSON.stringify(turn)});
    globalThis.turn = await takeTurn(${JSON.stringify(common)}); console.log("taken"); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return async (signal: NodeJS.Signals) => {
    const exited = once(child, "exit");
    child.kill(signal);
    if (signal !== "SIGSTOP") await exited;
  };
}

test("in one process one has the turn, and the next gets it", async () => {
  const common = place("own");
  const first = await takeTurn(common);
  assert.ok(isTaken(first));
  assert.ok(!isTaken(await takeTurn(common, 30)));
  const waiting = takeTurn(common);
  release(first);
  const second = await waiting;
  assert.ok(isTaken(second));
  release(second);
});

test("a living process is not passed by, whatever the clock says, and also when it is stopped", async () => {
  const common = place("living");
  const send = await holder(common);
  const old = new Date(0);
  utimesSync(join(common, "info", "lockstep-merge.lock"), old, old);
  assert.ok(!isTaken(await takeTurn(common, 30)));
  await send("SIGSTOP");
  const refused = await takeTurn(common, 30);
  assert.match("why" in refused ? refused.why : "", /another run has been at it/);
  await send("SIGKILL");
});

test("a process that died holds nobody up, and leaves one empty file", async () => {
  const common = place("dead");
  await (
    await holder(common)
  )("SIGKILL");
  const turn = await takeTurn(common, 0);
  assert.ok(isTaken(turn));
  release(turn);
  assert.deepEqual(readdirSync(join(common, "info")), ["lockstep-merge.lock"]);
});

test("a folder that cannot be written is told at once", async () => {
  const common = place("odd");
  writeFileSync(join(common, "info"), "a file");
  const turn = await takeTurn(common);
  assert.match("why" in turn ? turn.why : "", /cannot be locked/);
});
