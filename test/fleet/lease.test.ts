/** When a worker may take from others, and when it must give up its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contactAt, isCalm, keepEvery, keptBy, missedBy, mustStop } from "../../src/fleet/lease.ts";
import { nextStretch, type Ended, type NextStretch } from "../../src/fleet/life.ts";

const LEASE = 9000;
const EVERY = keepEvery(LEASE);

/** A worker from 0 on: at every `EVERY` ms a sign of life, as `server` says for that moment. */
function lived(until: number, server: (at: number) => "takes" | "refuses" | "silent") {
  let contact = contactAt(0);
  for (let at = 0; at <= until; at += EVERY)
    contact =
      server(at) === "takes"
        ? keptBy(contact, at, at, LEASE)
        : missedBy(contact, server(at) === "refuses", at, LEASE);
  return contact;
}

test("a worker that was stopped, and goes on while the server refuses, gives up its runs at once", () => {
  const stopped = contactAt(0);
  for (const [silent, stops] of [
    [0.5 * LEASE, false],
    [0.9 * LEASE, true],
    [3 * LEASE, true],
  ] as const)
    assert.equal(mustStop(missedBy(stopped, true, silent, LEASE), silent, LEASE), stops, String(silent));
});

const outage = (from: number, to: number, how: "refuses" | "silent") => (at: number) =>
  at >= from && at < to ? how : ("takes" as const);

for (const [name, server, at, calm, stops] of [
  ["a worker that just began", () => "takes" as const, 6000, false, false],
  ["one without trouble for a lease", () => "takes" as const, 9000, true, false],
  ["one in an outage", outage(30_000, 90_000, "refuses"), 60_000, false, false],
  ["one right after an outage", outage(30_000, 90_000, "refuses"), 90_000, false, false],
  ["one a lease after an outage", outage(30_000, 90_000, "refuses"), 99_000, true, false],
  ["one that is refused for ever", outage(30_000, 1e9, "refuses"), 160_000, false, true],
  ["one that hears nothing for a while", outage(30_000, 1e9, "silent"), 33_000, false, false],
  ["one that hears nothing for most of a lease", outage(30_000, 1e9, "silent"), 36_000, false, true],
  ["one that missed a single sign", outage(30_000, 30_001, "silent"), 33_000, false, false],
] as const)
  test(name, () => {
    const contact = lived(at, server);
    assert.deepEqual([isCalm(contact, at, LEASE), mustStop(contact, at, LEASE)], [calm, stops]);
  });

test("a process that was stopped stops its runs, and is not calm when it goes on", () => {
  const before = lived(30_000, () => "takes");
  assert.ok(isCalm(before, 30_100, LEASE));
  assert.ok(mustStop(before, 40_000, LEASE), "the clock went on, and no sign was given");
  assert.ok(!isCalm(before, 40_000, LEASE));
  const after = keptBy(before, 40_000, 40_000, LEASE);
  assert.ok(!mustStop(after, 40_000, LEASE));
  assert.ok(!isCalm(after, 40_001, LEASE), "others may have been in the same trouble");
  const slow = keptBy(before, 30_500, 39_500, LEASE);
  assert.ok(mustStop(slow, 39_500, LEASE), "the lease counts from when the sign was sent");
});

for (const [end, tries, next] of [
  [{ kind: "ended" }, 2, { afterMs: null, tries: 0, held: null, rest: "ended" }],
  [{ kind: "waiting" }, 1, { afterMs: null, tries: 0, held: null, rest: "waiting" }],
  [{ kind: "yielded" }, 1, { afterMs: 0, tries: 0, held: null, rest: null }],
  [{ kind: "parked", until: 1_005_000 }, 0, { afterMs: 5000, tries: 0, held: null, rest: null }],
  [{ kind: "parked", until: 900_000 }, 0, { afterMs: 0, tries: 0, held: null, rest: null }],
  [{ kind: "budget" }, 0, { afterMs: 60_000, tries: 0, held: null, rest: null }],
  [{ kind: "lost" }, 2, { afterMs: LEASE, tries: 2, held: null, rest: null }],
  [{ kind: "unavailable", code: "B", reason: "r" }, 0, { afterMs: 10_000, tries: 1, held: null, rest: null }],
  [{ kind: "unavailable", code: "B", reason: "r" }, 1, { afterMs: 40_000, tries: 2, held: null, rest: null }],
  [{ kind: "unavailable", code: "B", reason: "r" }, 2, { afterMs: null, tries: 3, held: "B: r", rest: null }],
  [
    { kind: "unavailable", code: "JOURNAL_UNAVAILABLE", reason: "r" },
    2,
    { afterMs: 10_000, tries: 2, held: null, rest: null },
  ],
  [
    { kind: "unavailable", code: "JOURNAL_UNAVAILABLE", reason: "r", isDamaged: false },
    2,
    { afterMs: 10_000, tries: 2, held: null, rest: null },
  ],
  [
    { kind: "unavailable", code: "JOURNAL_UNAVAILABLE", reason: "r", isDamaged: true },
    0,
    { afterMs: 10_000, tries: 1, held: null, rest: null },
  ],
  [
    { kind: "unavailable", code: "JOURNAL_UNAVAILABLE", reason: "r", isDamaged: true },
    2,
    { afterMs: null, tries: 3, held: "JOURNAL_UNAVAILABLE: r", rest: null },
  ],
] as const satisfies readonly (readonly [Ended, number, NextStretch])[])
  test(`after ${JSON.stringify(end)} at ${tries} tries`, () => {
    assert.deepEqual(nextStretch(end, tries, 1_000_000, LEASE), next);
  });
