/** What every journal must do with the writers of a run: one at a time, fenced by its epoch. */
import assert from "node:assert/strict";
import {
  newRun,
  waited,
  spoken,
  seqs,
  many,
  refuses,
  settled,
  type JournalCases,
} from "./journal-samples.ts";

export const ownerCases: JournalCases = {
  "knows a run without entries from a run that is not there": async (journal) => {
    await journal.create(newRun("r1"));
    assert.deepEqual(await journal.read("r1"), []);
    await refuses("RUN_UNKNOWN", journal.read("r2"), /r2/);
    await refuses("RUN_UNKNOWN", journal.claim("r2"), /r2/);
  },

  "refuses an id that is taken, and leaves the run that has it alone": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    await handle.append([waited(1)]);
    await refuses("RUN_EXISTS", journal.create(newRun("r1")), /r1/);
    await handle.append([waited(2)]);
    assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
  },

  "lets one of many creates of the same id win": async (journal) => {
    const tries = await Promise.allSettled(many(5).map(() => journal.create(newRun("r1"))));
    assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
  },

  "claims a run for one writer only, until it is released": async (journal) => {
    const first = await journal.create(newRun("r1"));
    await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1"), /r1/);
    await first.release();
    const tries = await Promise.allSettled(many(5).map(() => journal.claim("r1")));
    assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
  },

  "raises the epoch with each claim": async (journal) => {
    const epochs: number[] = [];
    let handle = await journal.create(newRun("r1"));
    for (const _ of many(3)) {
      epochs.push(handle.epoch);
      assert.equal(handle.run, "r1");
      await handle.release();
      handle = await journal.claim("r1");
    }
    assert.deepEqual(epochs, [1, 2, 3]);
  },

  "commits what was offered before a release, and takes nothing after it": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    await Promise.all([handle.append([waited(1)]), handle.release()]);
    await refuses("RUN_OWNED_ELSEWHERE", handle.append([waited(2)]), /r1/);
    await handle.release();
    assert.deepEqual(seqs(await journal.read("r1")), [1]);
  },

  "fences a stale writer: its append is refused while the others beside it are committed": async (
    journal,
  ) => {
    const stale = await journal.create(newRun("r1"));
    await stale.append([waited(1)]);
    await stale.release();
    const fresh = await journal.claim("r1");
    const before = await journal.create(newRun("before"));
    const after = await journal.create(newRun("after"));
    const [first, refused, second, third] = await Promise.allSettled([
      before.append([waited(1)]),
      stale.append([waited(2), waited(3)]),
      fresh.append([spoken(2, "by the fresh one", {})]),
      after.append([waited(1)]),
    ]);
    assert.deepEqual([first.status, second.status, third.status], many(3, "fulfilled"));
    await refuses("RUN_OWNED_ELSEWHERE", settled(refused), /r1/);
    assert.deepEqual(await journal.read("r1"), [waited(1), spoken(2, "by the fresh one", {})]);
    assert.deepEqual(seqs(await journal.read("before")), [1]);
    assert.deepEqual(seqs(await journal.read("after")), [1]);
  },

  "lets a run be taken over that is being driven, and its driver write no more": async (journal) => {
    const stale = await journal.create(newRun("r1"), [waited(1)]);
    await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1", { takeOver: false }), /r1.*--take-over/);
    const fresh = await journal.claim("r1", { takeOver: true });
    assert.equal(fresh.abandoned, true, "the owner before did not let go");
    assert.equal(fresh.epoch, 2);
    await refuses("RUN_OWNED_ELSEWHERE", stale.append([waited(2)]), /r1/);
    await stale.release();
    await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1"), /r1/);
    await fresh.append([waited(2)]);
    assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
    await refuses("RUN_UNKNOWN", journal.claim("r2", { takeOver: true }), /r2/);
    await fresh.release();
    const third = await journal.claim("r1", { takeOver: true });
    assert.deepEqual([third.epoch, third.abandoned], [3, undefined]);
  },

  "does not let a stale writer release the run of the fresh one": async (journal) => {
    const stale = await journal.create(newRun("r1"));
    await stale.release();
    const fresh = await journal.claim("r1");
    await stale.release();
    await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1"), /r1/);
    await fresh.append([waited(1)]);
  },

  "does not let the writer of a removed run write into the one made after it": async (journal) => {
    const stale = await journal.create(newRun("r1"), [waited(1)]);
    await stale.release();
    await journal.remove("r1");
    const fresh = await journal.create(newRun("r2"), [waited(1)]);
    await refuses("RUN_UNKNOWN", stale.append([waited(2)]), /r1/);
    await stale.release();
    await fresh.append([waited(2)]);
    assert.deepEqual(seqs(await journal.read("r2")), [1, 2]);
  },

  "does not remove a run that is being driven": async (journal) => {
    const handle = await journal.create(newRun("r1"), [waited(1)]);
    await refuses("RUN_OWNED_ELSEWHERE", journal.remove("r1"), /r1/);
    await handle.append([waited(2)]);
    assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
  },

  "does nothing any more once it is closed, and can be closed again": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    await journal.close();
    await refuses("JOURNAL_UNAVAILABLE", journal.create(newRun("r2")));
    await refuses("JOURNAL_UNAVAILABLE", journal.claim("r1"));
    await refuses("JOURNAL_UNAVAILABLE", journal.read("r1"));
    await refuses("JOURNAL_UNAVAILABLE", journal.flow("digest-1"));
    await refuses("JOURNAL_UNAVAILABLE", journal.list());
    await refuses("JOURNAL_UNAVAILABLE", journal.rows(["r1"]));
    await refuses("JOURNAL_UNAVAILABLE", journal.count());
    await refuses("JOURNAL_UNAVAILABLE", journal.since(""));
    await refuses("JOURNAL_UNAVAILABLE", journal.tidy());
    await refuses("JOURNAL_UNAVAILABLE", journal.size("r1"));
    await refuses("JOURNAL_UNAVAILABLE", journal.version());
    await refuses("JOURNAL_UNAVAILABLE", journal.remove("r1"));
    await refuses("JOURNAL_UNAVAILABLE", handle.append([waited(1)]));
    await handle.release();
    await journal.close();
  },
};
