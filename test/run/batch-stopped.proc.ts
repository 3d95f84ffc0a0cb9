/** A batch whose run could not be opened again, for a reason that passes: the batch is kept, and goes on later. */
import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  load,
  resumeBatch,
  runBatch,
  type Batch,
  type BatchOptions,
  type ResumeBatchOptions,
} from "../../src/run/index.ts";
import { replies, repository, WORKER } from "./repository.ts";

/** A repository, and how its batch of one run in a worktree is begun and resumed. */
async function world() {
  const made = repository();
  const around = {
    cwd: made.home,
    stateDir: join(made.temp, "state"),
    env: { ...made.env, LOCKSTEP_TRUST: "all" },
  };
  const script = replies(["echo one > one.txt"], made.env);
  const items = [{ name: "#1", args: {} }];
  const loaded = await load(WORKER, around);
  return {
    ...made,
    begin: async (options: Partial<BatchOptions> = {}) =>
      await runBatch(loaded, { ...around, items, script, ...options }),
    /** It ends with the script of the model. */
    beginHalf: async () => {
      const begun = await runBatch(loaded, { ...around, items, script: script.slice(0, 1) });
      assert.equal(begun.items[0]?.result?.code, "SCRIPT_EXHAUSTED", begun.items[0]?.result?.reason);
      return begun.batch!;
    },
    goOn: async (batch: string, options: Partial<ResumeBatchOptions> = {}) =>
      await resumeBatch({ ...around, batch, script: script.slice(1), ...options }),
  };
}

/** Sends the signal when the clock is read first after the batch began, which is before its run is opened. */
function stoppedWhileOpening() {
  const stop = new AbortController();
  let isOpening = false;
  const clock: NonNullable<BatchOptions["clock"]> = {
    now: () => {
      if (isOpening) stop.abort("SIGINT");
      return Date.now();
    },
    sleep: () => Promise.resolve(),
  };
  return { signal: stop.signal, clock, onBatch: () => void (isOpening = true) };
}

function facts({ batch, exitCode, items: [item] }: Batch) {
  const { outcome = null, code = null, resumable = null } = item?.result ?? {};
  return { batch, exitCode, outcome, code, resumable };
}

test("a signal while the files of a run are restored interrupts its batch, which is resumed later", async () => {
  const { beginHalf, goOn } = await world();
  const batch = await beginHalf();
  const stopped = facts(await goOn(batch, stoppedWhileOpening()));
  assert.deepEqual(stopped, {
    batch,
    exitCode: 130,
    outcome: "interrupted",
    code: "INTERRUPTED",
    resumable: true,
  });
  assert.deepEqual((await goOn(batch)).exitCode, 0);
});

test("a signal before a run is recorded leaves a batch that begins it later", async () => {
  const { begin, goOn } = await world();
  const stop = new AbortController();
  const { batch, ...stopped } = facts(
    await begin({ signal: stop.signal, onBatch: () => queueMicrotask(() => stop.abort("SIGINT")) }),
  );
  assert.deepEqual(stopped, {
    exitCode: 130,
    outcome: "interrupted",
    code: "INTERRUPTED",
    resumable: false,
  });
  assert.ok(batch !== null);
  const script = replies(["echo one > one.txt"]);
  assert.deepEqual((await goOn(batch, { script })).exitCode, 0);
});

test("a batch is kept while the repository of its run is elsewhere", async () => {
  const { temp, home, beginHalf, goOn } = await world();
  const batch = await beginHalf();
  const git = join(home, ".git");
  renameSync(git, join(temp, "git"));
  const { code, ...refused } = facts(await goOn(batch));
  assert.deepEqual(refused, { batch, exitCode: 3, outcome: "failed", resumable: false }, String(code));
  renameSync(join(temp, "git"), git);
  assert.deepEqual((await goOn(batch)).exitCode, 0);
});
