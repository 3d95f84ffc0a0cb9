/** What a run that goes on has left behind, noted entry by entry. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, Event } from "../../../src/flow/event.ts";
import { isImported, peopleSaid, recall, type Recalled } from "../../../src/run/records/recall.ts";

type Started = Extract<Event, { type: "run.started" }>;
type Told = Partial<Omit<Recalled, "started">>;

const STARTED: Started = {
  type: "run.started",
  run: "r",
  agent: "a",
  flow: "digest",
  args: {},
  input: "",
  cwd: "/work",
  backend: { id: "first", options: null },
};
const RESUMED = { type: "run.resumed", epoch: 2 } as const;
const TREE = { commit: "c", blobs: [] } as unknown as NonNullable<Entry["tree"]>;
const IMPORTED = { imported: { entries: 2 } } as unknown as Partial<Started>;

const ROWS: readonly (readonly [string, Partial<Started>, readonly Partial<Entry>[], Told])[] = [
  ["new", {}, [], { hasWorked: false, isUndriven: false, isImported: false, isAsked: false, tree: null }],
  ["queued", { queued: true }, [], { isUndriven: true, last: { ...STARTED, queued: true } }],
  ["queued and driven", { queued: true }, [{ event: RESUMED }], { isUndriven: false, last: RESUMED }],
  [
    "confined at last",
    {},
    [{ event: { ...RESUMED, sandbox: { confined: true } as never } }],
    { wasConfined: true },
  ],
  [
    "with another model",
    {},
    [answered("lost"), { event: { ...RESUMED, backend: { id: "second", options: null } } }, answered("kept")],
    { spec: { id: "second", options: null }, marks: ["kept"], hasWorked: true },
  ],
  ["imported", IMPORTED, [{ event: { ...RESUMED, accepted: true } }], { isImported: true }],
  [
    "accepted",
    IMPORTED,
    [{ event: RESUMED }, { event: { ...RESUMED, accepted: true } }],
    { isImported: false },
  ],
  ["with files", {}, [{ event: RESUMED, tree: TREE }, { event: RESUMED }], { tree: TREE }],
];

for (const [name, how, more, told] of ROWS)
  test(`a run is recalled: ${name}`, () => {
    const all = [{ event: { ...STARTED, ...how } }, ...more];
    const entries = all.map((entry, place) => Object.assign({ seq: place + 1, at: place }, entry) as Entry);
    const recalled = recall(entries);
    for (const [key, value] of Object.entries(told))
      assert.deepEqual(recalled[key as keyof Told], value, key);
    assert.equal(isImported(entries), recalled.isImported);
  });

test("a run without a first entry is damaged", () => {
  for (const entries of [[], [{ seq: 1, at: 0, event: RESUMED }]])
    assert.throws(() => recall(entries), { message: /no first entry/ });
});

function answered(mark: string): Partial<Entry> {
  const reply = { kind: "said", text: "", calls: [], mark } as never;
  return { event: { type: "step.answered", step: "a", visit: 1, turn: 1, reply } };
}

const FLEET = { mail: {} } as unknown as Parameters<typeof peopleSaid>[0];
const LOCAL = {};
const SAID: readonly (readonly [string, object, unknown, Partial<Started>, object])[] = [
  ["of a fleet", FLEET, { onPermission: "allow", expireMs: 5 }, {}, { onPermission: "allow", expireMs: 5 }],
  ["of this machine", LOCAL, { onPermission: "allow", expireMs: 5 }, {}, { expireMs: 5 }],
  ["of a fleet, imported", FLEET, { onPermission: "allow" }, IMPORTED, {}],
  ["imported, and denied", LOCAL, { onPermission: "deny" }, IMPORTED, { onPermission: "deny" }],
  ["held", LOCAL, { onPermission: "halt" }, {}, { onPermission: "halt" }],
  ["with options of a run", FLEET, { sandbox: "off", trust: {}, onPermission: "yes" }, {}, {}],
  ["without a time", FLEET, { expireMs: "5", onPermission: "halt" }, {}, { onPermission: "halt" }],
  ["until before now", FLEET, { expireMs: -1 }, {}, {}],
  ["not an object", FLEET, "allow", {}, {}],
  ["nothing said", FLEET, undefined, {}, {}],
];
for (const [what, journal, people, more, expected] of SAID)
  test(`what is taken of how people take part: ${what}`, () => {
    const started = { ...STARTED, ...more, people } as Started;
    assert.deepEqual(peopleSaid(journal, started), expected);
  });
