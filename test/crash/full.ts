/**
 * A process that lets a run fill its disk, with room for one page more each time, until the run fits. It prints a line
 * for each time: how many entries had been written when the disk was full. argv: a small disk, the name of the agent.
 */
import assert from "node:assert/strict";
import { closeSync, existsSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  createMemoryJournal,
  createScripted,
  openExistingJournal,
  replayRun,
  resume,
  runLoaded,
  type Backend,
} from "../../src/run/index.ts";
import { agents, modelOf } from "./killed-agents.ts";

const PAGE = 4096;
const [disk = "", agent = ""] = process.argv.slice(2);
const [folder, ballast] = [join(disk, "project"), join(disk, "ballast")];
const { loaded, script } = agents(folder)[agent]!;
const stateDir = join(folder, ".lockstep");
const whole = await runLoaded(loaded, { cwd: disk, journal: createMemoryJournal(), script });

for (let pages = 0; ; pages++) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  fillBut(pages);
  const asked: string[] = [];
  const result = await runLoaded(loaded, { cwd: folder, backend: listening(createScripted(script), asked) });
  if (result.outcome === "completed") break;
  assert.deepEqual([result.code, result.exitCode], ["JOURNAL_UNAVAILABLE", 3], `${pages}: ${result.reason}`);
  assert.match(result.reason, /full|no space|could not be read or written/i);
  if (result.run !== null) {
    assert.equal(result.resumable, true);
    assert.match(result.reason, new RegExp(`lockstep resume ${result.run}`));
  }

  rmSync(ballast);
  const journal = await openExistingJournal(stateDir, { now: Date.now });
  const [row] = (await journal?.list()) ?? [];
  console.log(row?.events ?? 0);
  if (journal === null || row === undefined) {
    await journal?.close();
    const again = await runLoaded(loaded, { cwd: folder, script });
    assert.equal(again.outcome, "completed", `${pages}: ${again.reason}`);
    continue;
  }
  const before = await journal.read(row.id);
  const backend = listening(await modelOf(journal, row.id, agent), asked);
  const resumed = await resume({ run: row.id, cwd: folder, journal, backend });
  assert.equal(resumed.outcome, "completed", `${pages}: ${resumed.reason}`);
  const { path, handoff, iterations, usage } = resumed;
  const same = JSON.parse(
    JSON.stringify({ path, handoff, iterations, usage }).replaceAll(row.id, whole.run!),
  );
  assert.deepEqual(same, JSON.parse(JSON.stringify(pick(whole))));
  const after = await journal.read(row.id);
  assert.deepEqual(after.slice(0, before.length), before);
  assert.equal((await replayRun(journal, row.id)).difference, null);
  // Only what could not be written is asked again: one question, or one for each sibling.
  assert.ok(asked.length - new Set(asked).size <= 3, asked.join(" "));
  await journal.close();
}
rmSync(ballast, { force: true });
assert.ok(existsSync(stateDir));

function pick({ path, handoff, iterations, usage }: typeof whole) {
  return { path, handoff, iterations, usage };
}

function listening(backend: Backend, asked: string[]): Backend {
  return {
    ...backend,
    turn: (request) => {
      asked.push(request.asker.key.slice(request.asker.key.indexOf("/")) + request.asker.attempt);
      return backend.turn!(request);
    },
  };
}

/** Leaves just so many pages free. */
function fillBut(pages: number): void {
  const fd = openSync(ballast, "w");
  const { bavail, bsize } = statfsSync(disk);
  let left = bavail * bsize - pages * PAGE;
  while (left > 0) left -= writeSync(fd, Buffer.alloc(Math.min(left, 1 << 20)));
  closeSync(fd);
}
