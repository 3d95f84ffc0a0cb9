/** The record of a batch: written whole, found by its name, and refused where Lockstep cannot have written it. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import {
  forgetBatch,
  invalidBatches,
  readBatch,
  writeBatch,
  type BatchRecord,
} from "../../src/run/batch-record.ts";
import { systemClock } from "../../src/run/world/clock.ts";
import { createMemoryJournal, openJournal, resumeBatch } from "../../src/run/index.ts";
import { named, prune } from "../../src/run/records/prune.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-batch-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const RECORD: BatchRecord = {
  v: 1,
  batch: "batch-0123456789",
  agent: "a",
  items: [{ name: "#1", args: { issue: 1 }, run: "abcdefghjk" }],
  concurrency: 2,
  left: 3,
  folder: "",
  ways: { args: { topic: "t" }, worktree: true, script: { text: "replies: []", file: "s.yaml" } },
};

test("it is read back as it was, by its name or the beginning of it, until it is forgotten", () => {
  const state = join(folder, "whole");
  mkdirSync(state);
  writeBatch(state, RECORD);
  writeBatch(state, { ...RECORD, batch: "batch-9999999999" });
  assert.deepEqual(readBatch(state, RECORD.batch), RECORD);
  assert.deepEqual(readBatch(state, "batch-01"), RECORD);
  assert.throws(() => readBatch(state, "batch-"), { code: "RUN_AMBIGUOUS" });
  assert.throws(() => readBatch(state, "batch-x"), { code: "RUN_UNKNOWN" });
  forgetBatch(state, RECORD.batch);
  assert.throws(() => readBatch(state, RECORD.batch), { code: "RUN_UNKNOWN" });
});

test("runs that are removed leave their batch, and a batch of which none is left is forgotten", async () => {
  const state = join(folder, "pruned");
  mkdirSync(state);
  const journal = createMemoryJournal();
  const flow = { ir: 1 } as unknown as Flow;
  const names = ["one", "two", "three", "alone"];
  for (const id of names)
    await (await journal.create({ id, agent: "a", at: 1, digest: "d", flow })).release();
  const itemsOf = (ids: readonly string[]) => ids.map((run) => ({ name: run, args: {}, run }));
  writeBatch(state, { ...RECORD, items: itemsOf(["one", "two", "planned"]) });
  writeBatch(state, { ...RECORD, batch: "batch-9999999999", items: itemsOf(["three"]) });
  writeFileSync(join(state, "batches", "batch-0000000000.json"), "{");
  const left = () => readBatch(state, RECORD.batch).items.map(({ run }) => run);
  const remove = async (...ids: string[]) => await prune(journal, await named(journal, ids), state);
  await remove("alone");
  assert.deepEqual(left(), ["one", "two", "planned"]);
  await remove("one", "three");
  assert.deepEqual(left(), ["two", "planned"]);
  assert.throws(() => readBatch(state, "batch-9"), { code: "RUN_UNKNOWN" });
  assert.deepEqual(invalidBatches(state), [join(state, "batches", "batch-0000000000.json")]);
  assert.throws(() => readBatch(state, "batch-00"), { message: /: rm \/.*batch-0000000000\.json$/ });
});

const item = RECORD.items[0]!;
const { ways } = RECORD;
const HARMED: readonly (readonly [name: string, text: string])[] = [
  ["is cut off", JSON.stringify(RECORD).slice(0, 60)],
  ...(
    [
      ["has another version", { v: 2 }],
      ["has the name of another", { batch: "batch-9999999999" }],
      ["has no agent", { agent: 1 }],
      ["has no items", { items: {} }],
      ["has an item without a name", { items: [{ ...item, name: 1 }] }],
      ["has an item without arguments", { items: [{ ...item, args: [] }] }],
      ["has an item with an id that leads elsewhere", { items: [{ ...item, run: "../../x" }] }],
      ["has a broken item behind a whole one", { items: [item, null] }],
      ["has a negative concurrency", { concurrency: -1 }],
      ["leaves out half an issue", { left: 0.5 }],
      ["works outside of the project", { folder: "../elsewhere" }],
      ["works at an absolute place", { folder: "/etc" }],
      ["has no folder", { folder: 1 }],
      ["has no ways", { ways: [] }],
      ["has no arguments", { ways: { ...ways, args: "x" } }],
      ["has a model that is a list", { ways: { ...ways, model: ["m"] } }],
      ["has a dry run that is a word", { ways: { ...ways, dryRun: "no" } }],
      ["has a script without a text", { ways: { ...ways, script: { file: "s" } } }],
      ["has limits that are a number", { ways: { ...ways, spending: 1 } }],
    ] as const
  ).map(([name, part]) => [name, JSON.stringify({ ...RECORD, ...part })] as const),
];
for (const [name, text] of HARMED) {
  test(`a record that ${name} is refused`, () => {
    const state = mkdtempSync(join(folder, "harmed-"));
    writeBatch(state, RECORD);
    const file = join(state, "batches", `${RECORD.batch}.json`);
    assert.notEqual(readFileSync(file, "utf8"), text);
    writeFileSync(file, text);
    assert.throws(() => readBatch(state, RECORD.batch), {
      code: "JOURNAL_UNAVAILABLE",
      message: /not a valid/,
    });
  });
}

test("a link in the place of the records is not followed", () => {
  const state = mkdtempSync(join(folder, "linked-"));
  const other = mkdtempSync(join(folder, "other-"));
  writeBatch(other, RECORD);
  symlinkSync(join(other, "batches"), join(state, "batches"));
  assert.throws(() => readBatch(state, RECORD.batch), { code: "STATE_UNSAFE" });
  assert.throws(() => writeBatch(state, RECORD), { code: "STATE_UNSAFE" });
});

test("the record of somebody else is not obeyed", async () => {
  const root = mkdtempSync(join(folder, "foreign-"));
  const stateDir = join(root, ".lockstep");
  const env = { XDG_CONFIG_HOME: join(root, "mine") };
  await (await openJournal(stateDir, systemClock, { env })).close();
  writeBatch(stateDir, { ...RECORD, items: [] });
  const copy = join(root, "copy");
  cpSync(stateDir, copy, { recursive: true });
  const resumed = async (state: string) =>
    await resumeBatch({ cwd: root, stateDir: state, batch: "batch-", env });
  await assert.rejects(resumed(copy), { code: "STATE_FOREIGN" });
  assert.equal((await resumed(stateDir)).exitCode, 0);
});
