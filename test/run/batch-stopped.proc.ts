/** A batch whose run could not be opened again, for a reason that passes: the batch is kept, and goes on later. */
import assert from "node:assert/strict";
import { readdirSync, renameSync, writeFileSync } from "node:fs";
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
import { readBatch } from "../../src/run/batch-record.ts";
import { runLoaded } from "../../src/run/open.ts";
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
    loaded,
    around,
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

test("a batch that is being driven is not resumed, and the one who drives it ends it as if nobody had asked", async () => {
  const { begin, goOn, around } = await world();
  let name = "";
  let refused: Promise<unknown> | null = null;
  const batch = await begin({
    onBatch: (given) => void (name = given!),
    observe: () => void (refused ??= goOn(name).catch((error: unknown) => error)),
  });
  assert.deepEqual(facts(batch), {
    batch: null,
    exitCode: 0,
    outcome: "completed",
    code: null,
    resumable: false,
  });
  const { code, message } = (await refused!) as { code: string; message: string };
  assert.equal(code, "RUN_OWNED_ELSEWHERE");
  assert.match(message, /^Batch batch-\w+ is being driven by another process\..*--take-over$/);
  assert.deepEqual(readdirSync(join(around.stateDir, "batches")), []);
});

test("a batch that nobody drives any more is free, and a hanging one can be taken over", async () => {
  const { beginHalf, goOn } = await world();
  const name = await beginHalf();
  let taken: Promise<Batch> | null = null;
  // While the first holds it.
  const first = await goOn(name, {
    onBatch: () => void (taken = goOn(name, { takeOver: true })),
    signal: AbortSignal.abort("SIGINT"),
  });
  assert.equal(first.exitCode, 130);
  assert.equal((await taken!).exitCode, 0);
  await assert.rejects(goOn(name), { code: "RUN_UNKNOWN" });
});

for (const isEnded of [true, false])
  test(`an item that another process ${isEnded ? "has done" : "has begun"} is that run's`, async () => {
    const { begin, around, loaded, home, env } = await world();
    let batchName = "";
    let other: ReturnType<typeof runLoaded> | null = null;
    const beginOther = async (first: string) => {
      const { run } = readBatch(around.stateDir, batchName).items[1]!;
      const script = replies(["echo two > two.txt"], env).slice(0, isEnded ? undefined : 1);
      const result = await runLoaded(loaded, { ...around, script }, { run, batch: batchName });
      writeFileSync(join(home, ".worktrees", `worker-${first.slice(0, 6)}`, "go"), "");
      return result;
    };
    const batch = await begin({
      items: ["#1", "#2"].map((name) => ({ name, args: {} })),
      script: replies(["for n in $(seq 3000); do [ -e go ] && break; sleep 0.02; done; rm go"], env),
      onBatch: (given) => void (batchName = given!),
      observe: (_item, _entry, { run }) => void (other ??= beginOther(run)),
    });
    const its = await other!;
    const [one, two] = batch.items.map(({ result }) => result);
    assert.deepEqual([its.success, one?.success], [isEnded, true], its.reason);
    const [outcome, code] = isEnded ? ["completed", null] : ["failed", "RUN_OWNED_ELSEWHERE"];
    assert.deepEqual([two?.run, two?.outcome, two?.code], [its.run, outcome, code], two?.reason);
    assert.deepEqual([batch.exitCode, batch.batch], isEnded ? [0, null] : [3, batchName]);
  });
