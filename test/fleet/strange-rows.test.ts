/** Rows of a fleet that others wrote, and trouble that lasts: what a worker and those who look at it make of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { workerWords } from "../../src/cli/fleet/worker.ts";
import { readOffers } from "../../src/fleet/presence.ts";
import { rowFault } from "../../src/fleet/rows.ts";
import { faultsOf, type WorkerRow } from "../../src/fleet/status.ts";
import { createTroubles } from "../../src/fleet/trouble.ts";
import type { WorkerEvent } from "../../src/fleet/worker.ts";

const OFFERS = {
  slots: 2,
  queues: ["runs"],
  speech: 1,
  models: ["a/b"],
  backends: [],
  sandbox: "bwrap",
  trouble: null,
};

for (const [name, text, read] of [
  ["what a worker writes", JSON.stringify(OFFERS), OFFERS],
  [
    "what an older worker wrote",
    '{"slots":1,"queues":[],"speech":1}',
    { slots: 1, queues: [], speech: 1, models: [], backends: [], sandbox: null, trouble: null },
  ],
  ["no JSON", "not json", null],
  ["an empty object", "{}", null],
  ["null in JSON", "null", null],
  ["a list", "[]", null],
  ["nothing", null, null],
  ["slots as text", JSON.stringify({ ...OFFERS, slots: "2" }), null],
  ["no speech", JSON.stringify({ ...OFFERS, speech: undefined }), null],
  ["one queue as text", JSON.stringify({ ...OFFERS, queues: "runs" }), null],
  ["queues that are numbers", JSON.stringify({ ...OFFERS, queues: [1] }), null],
  [
    "models and a sandbox of another kind",
    JSON.stringify({ ...OFFERS, models: 1, sandbox: 1, trouble: 1 }),
    { ...OFFERS, models: [], sandbox: null },
  ],
] as const)
  test(`the offers of a worker: ${name}`, () => assert.deepEqual(readOffers(text), read));

for (const [row, says] of [
  [{ queue: "runs", grp: "g", speaks: 1 }, null],
  [{ queue: "a_B-9", grp: "x".repeat(500), speaks: 2 }, null],
  [{ queue: "runs", grp: "", speaks: 1 }, /group/],
  [{ queue: "runs", grp: null, speaks: 1 }, /group/],
  [{ queue: "runs", grp: "x".repeat(501), speaks: 1 }, /group/],
  [{ queue: "bad name", grp: "g", speaks: 1 }, /queue/],
  [{ queue: "", grp: "g", speaks: 1 }, /queue/],
  [{ queue: "runs\n", grp: "g", speaks: 1 }, /queue/],
  [{ queue: "q".repeat(61), grp: "g", speaks: 1 }, /queue/],
  [{ queue: "runs", grp: "g", speaks: 0 }, /version/],
] as const)
  test(`a row ${JSON.stringify(row).slice(0, 60)} ${says === null ? "becomes a job" : "is held"}`, () => {
    const fault = rowFault(row);
    if (says === null) assert.equal(fault, null);
    else assert.match(fault ?? "", says);
  });

test("trouble that lasts is said once, and once more when it comes again", () => {
  const troubles = createTroubles();
  const fail = () => troubles.failed("poll", new Error("refused"));
  assert.deepEqual([fail(), fail(), troubles.lasting()], [false, false, null]);
  assert.deepEqual([fail(), fail(), troubles.lasting()], [true, false, "refused"]);
  for (let round = 0; round < 3; round += 1)
    assert.equal(troubles.failed("keep", new Error("away")), false, "it is in trouble already");
  assert.equal(troubles.worked("tend"), false);
  assert.equal(troubles.worked("poll"), false, "the other part is still in trouble");
  assert.equal(troubles.lasting(), "away");
  assert.deepEqual(
    [troubles.worked("keep"), troubles.worked("keep"), troubles.lasting()],
    [true, false, null],
  );
  assert.deepEqual(
    [fail(), fail(), troubles.worked("poll"), fail(), fail()],
    [false, false, false, false, false],
  );
  assert.equal(fail(), true);
});

test("a worker in lasting trouble, and one whose row cannot be read, are faults while they live", () => {
  const row: WorkerRow = {
    id: "i",
    name: "w",
    host: "h",
    pid: 1,
    version: "",
    offers: OFFERS,
    runs: 0,
    upMs: 1,
    beatMs: 1,
    alive: true,
    drainMs: null,
  };
  assert.deepEqual(faultsOf([row], []), []);
  assert.match(faultsOf([{ ...row, offers: null }], []).join("\n"), /row of the worker w cannot be read/);
  const offers = { ...OFFERS, trouble: "refused" };
  assert.match(faultsOf([{ ...row, offers }], []).join("\n"), /^w has trouble: refused$/);
  assert.deepEqual(faultsOf([{ ...row, offers, alive: false }], []), []);
  assert.deepEqual(faultsOf([{ ...row, offers: null, alive: false }], []), []);
});

const RUN = "x\u001b[31m\ny";
const LOST = new Error("lost\u001b[2J\nline");
for (const [event, verbose, words] of [
  [{ kind: "began", run: RUN, attempt: 0 }, false, "x\\x1b[31m y goes on here."],
  [{ kind: "over", run: RUN, end: { kind: "ended" }, isSettled: true }, false, "x\\x1b[31m y ended."],
  [{ kind: "stopped", run: RUN, why: "lost" }, false, "x\\x1b[31m y is stopped: another worker has it now."],
  [{ kind: "trouble", error: LOST, isLasting: false }, false, null],
  [{ kind: "trouble", error: LOST, isLasting: false }, true, "Trouble: lost\\x1b[2J line"],
  [
    { kind: "trouble", error: LOST, isLasting: true },
    false,
    "Trouble, which is shown once: lost\\x1b[2J line",
  ],
] as const satisfies readonly (readonly [WorkerEvent, boolean, string | null])[])
  test(`a worker says one harmless line about ${event.kind}, ${verbose ? "in many words" : "usually"}: ${words}`, () =>
    assert.equal(workerWords(event, verbose), words));
