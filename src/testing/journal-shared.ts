/** What a place must do that two journals are open on, as by two processes. */
import assert from "node:assert/strict";
import type { Journal } from "../engine/ports.ts";
import { newRun, aFlow, waited, adopted, seqs, many, newsOf, refuses } from "./journal-samples.ts";

export const sharedCases: { readonly [title: string]: (open: () => Promise<Journal>) => Promise<void> } = {
  "shows a second journal what the first has written, at once": async (open) => {
    const [writer, reader] = [await open(), await open()];
    const handle = await writer.create(newRun("r1"));
    for (const [index] of many(3).entries()) {
      await handle.append([waited(index + 1)]);
      assert.deepEqual(seqs(await reader.read("r1", index)), [index + 1]);
    }
    assert.deepEqual(await reader.flow("digest-1"), newRun("r1").flow);
    assert.deepEqual(await reader.list(), await writer.list());
    assert.deepEqual(await reader.rows(["r1"]), await writer.list());
    assert.deepEqual(await newsOf(reader, ""), ["r1 1", "r1 2", "r1 3"]);
  },

  "keeps a run from a second journal while the first one drives it": async (open) => {
    const [first, second] = [await open(), await open()];
    const handle = await first.create(newRun("r1"));
    await refuses("RUN_OWNED_ELSEWHERE", second.claim("r1"), /r1/);
    await refuses("RUN_EXISTS", second.create(newRun("r1")), /r1/);
    await handle.release();
    const taken = await second.claim("r1");
    assert.equal(taken.epoch, 2);
    await refuses("RUN_OWNED_ELSEWHERE", first.claim("r1"), /r1/);
    await refuses("RUN_OWNED_ELSEWHERE", handle.append([waited(1)]), /r1/);
    await taken.append([waited(1)]);
    assert.deepEqual(seqs(await first.read("r1")), [1]);
  },

  "lets a second journal take over what the first one drives": async (open) => {
    const [first, second] = [await open(), await open()];
    const [taken, kept] = [await first.create(newRun("r1")), await first.create(newRun("r2"))];
    const fresh = await second.claim("r1", { takeOver: true });
    await refuses("RUN_OWNED_ELSEWHERE", taken.append([waited(1)]), /r1/);
    await refuses("RUN_OWNED_ELSEWHERE", first.claim("r1"), /r1/);
    await fresh.append([waited(1)]);
    await kept.append([waited(1)]);
    await first.close();
    await fresh.append([waited(2)]);
    assert.equal((await second.list()).find(({ id }) => id === "r1")?.owned, true);
  },

  "does not remove a run that another journal owns, and notifies a second journal of every change": async (
    open,
  ) => {
    const [first, second] = [await open(), await open()];
    const handle = await first.create(newRun("r1"));
    await refuses("RUN_OWNED_ELSEWHERE", second.remove("r1"), /r1/);
    const before = await second.version();
    await handle.append([waited(1)]);
    assert.notEqual(await second.version(), before);
    await handle.release();
    await second.remove("r1");
    await refuses("RUN_UNKNOWN", first.read("r1"), /r1/);
  },

  "forgets the flows that no run needs once a journal that removed runs is closed": async (open) => {
    const first = await open();
    const runs = [
      { ...newRun("r1"), digest: "d1", flow: aFlow("first") },
      { ...newRun("r2"), digest: "d2", flow: aFlow("second") },
    ];
    const made = { d3: aFlow("third"), d4: aFlow("fourth") };
    const [one, two] = await Promise.all([
      first.create(runs[0]!, [adopted(1, "d3"), adopted(2, "d4")], made),
      first.create(runs[1]!, [adopted(1, "d3")], made),
    ]);
    await Promise.all([one.release(), two.release()]);
    await first.remove("r1");
    await first.close();
    const second = await open();
    const flows = await Promise.all(["d1", "d2", "d3", "d4"].map((digest) => second.flow(digest)));
    assert.deepEqual(flows, [null, aFlow("second"), aFlow("third"), null]);
  },

  "releases its runs and keeps their entries when it is closed": async (open) => {
    const first = await open();
    const handle = await first.create(newRun("r1"));
    const unwaited = handle.append([waited(1)]);
    await first.close();
    await unwaited;
    const second = await open();
    assert.deepEqual(
      (await second.list()).map(({ owned }) => owned),
      [false],
    );
    const next = await second.claim("r1");
    assert.equal(next.epoch, 2);
    await next.append([waited(2)]);
    assert.deepEqual(seqs(await second.read("r1")), [1, 2]);
  },
};
