/** Every decision once more: golden journals, what is changed in them, and what is taken out of them. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Entry } from "../../../src/flow/event.ts";
import {
  createMemoryJournal,
  exportRun,
  importRun,
  readRun,
  replayRun,
  run,
  why,
  type Bundle,
} from "../../../src/run/index.ts";
import { openExport, parseBundle, replayBundle, textOf } from "../../../src/run/records/bundle.ts";
import { asDriven, whyAll } from "../../../src/tell/why.ts";
import { jsonLine } from "../../../src/flow/text/harmless.ts";
import { replay } from "../../../src/story/replay.ts";
import { redact } from "../../../src/tell/redact-run.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";
import { play } from "../../engine/played.ts";
import { GOLDEN, JOURNALS } from "../golden.ts";
import { agentFiles, projectWith } from "../project.ts";
import { ready } from "../../ready.ts";

const files = readdirSync(JOURNALS).toSorted();
const read = (name: string): Bundle => parseBundle(readFileSync(join(JOURNALS, name), "utf8"), name);
const bundles = files.map((name) => ({ name, bundle: read(name) }));

test("there is a golden journal for every golden run, and for nothing else", () => {
  const made = Object.keys(GOLDEN).map((name) => `${name}.json`);
  assert.deepEqual(files, made.toSorted());
});

test("together they hold every kind of event", () => {
  const types = new Set(bundles.flatMap(({ bundle }) => bundle.entries.map(({ event }) => event.type)));
  for (const type of [
    "run.resumed",
    "run.adopted",
    "run.edited",
    "step.called",
    "step.checked",
    "step.looked",
  ])
    assert.ok(types.has(type as never), type);
  for (const type of ["step.hooked", "step.waited", "run.ended", "run.noted"])
    assert.ok(types.has(type as never), type);
});

for (const { name, bundle } of bundles) {
  test(`the golden journal ${name} still replays`, async () => {
    const { difference, events } = await replayBundle(bundle);
    assert.equal(difference, null);
    assert.equal(events, bundle.entries.length);
  });

  test(`${name} can be imported, under its id or another, and exported again as it was`, async () => {
    const journal = createMemoryJournal();
    const place = { cwd: "/project", now: bundle.run.createdAt };
    const { run: id, difference } = await importRun(journal, bundle, place);
    assert.deepEqual([id, difference], [bundle.run.id, null]);
    assert.deepEqual((await exportRun(journal, id)).bundle, { ...bundle, meta: {} });
    await assert.rejects(importRun(journal, bundle, place), { code: "RUN_EXISTS", message: /--as ID/ });
    await importRun(journal, bundle, { ...place, as: "other" });
    assert.equal((await replayRun(journal, "other")).difference, null);
    await why(journal, "other");
  });

  test(`${name} is written piece by piece as it is exported`, async () => {
    const journal = createMemoryJournal();
    const { run: id } = await importRun(journal, bundle, { cwd: "/project", now: 0 });
    for (const redacted of [false, true]) {
      const options = { redact: redacted, meta: { by: "a test" } };
      const whole = (await exportRun(journal, id, options)).bundle;
      const pieces = await Array.fromAsync(textOf(await openExport(journal, id, options)));
      assert.equal(pieces.join(""), jsonLine(whole, 1));
    }
  });

  test(`why tells the same of one visit of ${name} as of all`, async () => {
    const journal = createMemoryJournal();
    const { run: id } = await importRun(journal, bundle, { cwd: "/project", now: 0 });
    const { flow, adopted, entries } = await readRun(journal, id);
    const all = whyAll(flow, entries, adopted).map((one) => asDriven(one, false));
    for (const one of all) assert.deepEqual(await why(journal, id, `${one.step}@${one.visit}`), one);
    for (const step of new Set(all.map((one) => one.step)))
      assert.deepEqual(
        await why(journal, id, step),
        all.findLast((one) => one.step === step),
      );
  });

  test(`why tells the same of where ${name} stands as of all visits, wherever it is cut off`, async () => {
    const journal = createMemoryJournal();
    const { run: first } = await importRun(journal, bundle, { cwd: "/project", now: 0 });
    const { row, flow, adopted, entries } = await readRun(journal, first);
    for (let length = 2; length <= entries.length; length++) {
      const id = `cut-${length}`;
      const past = entries.slice(0, length);
      const about = { id, agent: row.agent, digest: row.digest, at: 0, flow };
      await (await journal.create(about, past, adopted)).release();
      const last = await why(journal, id);
      const all = whyAll(flow, past, adopted).map((one) => asDriven(one, false));
      assert.deepEqual(
        last,
        all.find(({ step, visit }) => step === last.step && visit === last.visit),
        id,
      );
    }
  });

  test(`${name} replays without its words`, async () => {
    const journal = createMemoryJournal();
    await importRun(journal, bundle, { cwd: "/project", now: 0 });
    const { bundle: redacted, kept } = await exportRun(journal, bundle.run.id, { redact: true });
    const again = parseBundle(JSON.stringify(redacted), name);
    assert.equal((await replayBundle(again)).difference, null);
    assert.deepEqual(again.entries.map(wayOf), bundle.entries.map(wayOf));
    assert.deepEqual(
      kept.map(({ seq }) => seq),
      KEPT[name] ?? [],
    );
    const text = JSON.stringify(redacted.entries);
    for (const word of SECRETS[name] ?? []) {
      assert.ok(JSON.stringify(bundle.entries).includes(word), `${name} holds no ${word}`);
      assert.ok(!text.includes(word), `${name} tells ${word}`);
    }
  });
}

test("the cases of a counted switch are words of the flow, and stay without being opened", async () => {
  const goto = { kind: "goto", step: "b" } as const;
  const sized = { kind: "switch", on: ["size"], cases: { low: goto, high: goto } } as const;
  const next = { kind: "times", max: 2, move: sized, after: sized } as const;
  const flow = sketchFlow({ a: { edges: { next }, handoff: ["size"] }, b: { edges: { next: null } } });
  const say = (more: object) => ({ output: { next_action: { action: "next" }, ...more } });
  const { entries } = await play({ flow, model: [say({ size: "low", why: "small" }), say({})] });
  const { entries: told, kept } = redact(ready(flow), entries, {});
  assert.deepEqual(kept, []);
  const text = JSON.stringify(told);
  assert.ok(text.includes('"low"') && !text.includes("small"), text);
});

/** Words that were said in the run and are no words of its flow. */
const SECRETS: { readonly [name: string]: readonly string[] } = {
  "gate.json": ["dig", "because of", "no object at all", "/project"],
  "check-prompts.json": ["the login", "is done", "is ng"],
  "stages.json": ["make the tests pass", "slug() gives", "toLowerCase", "separated by"],
  "stage-hooks.json": ["the work", "planned", "seen by", "once more"],
  "closure-retry.json": ["tides"],
  "verdict-keyword.json": ["A note", "It is there now"],
  "rate-limit.json": ["scripted rate-limit"],
  "fork.json": ['"edited"'],
};

/** Entries whose decision hangs on words that no flow names as they were said: what hooks give back, "NEXT" for next. */
const KEPT: { readonly [name: string]: readonly number[] } = { "stage-hooks.json": [11], "gate.json": [3] };

/** Without what is said of it. */
function wayOf({ seq, event, led }: Entry): unknown {
  if (event.type === "run.ended") return [seq, event.verdict.outcome, event.verdict.code, event.verdict.step];
  return [seq, event.type, led?.step, led?.visit, led?.label, led?.to, led?.overturned, led?.check?.label];
}

describe("a journal that was tampered with", () => {
  const gate = read("gate.json");
  const tampered = (change: (entries: Entry[]) => void): Bundle => {
    const copy = structuredClone(gate) as { -readonly [key in keyof Bundle]: Bundle[key] } & {
      entries: Entry[];
    };
    change(copy.entries);
    return copy;
  };
  const rows: readonly {
    readonly name: string;
    readonly change: (entries: Entry[]) => void;
    readonly seq: number;
    readonly about: string;
    readonly recorded: RegExp;
    readonly derived: RegExp;
  }[] = [
    {
      name: "another target",
      change: (entries) => Object.assign(entries[2]!.led!, { to: "closure.a" }),
      seq: 3,
      about: "decision",
      recorded: /"to":"closure.a"/,
      derived: /"to":"continuation.a"/,
    },
    {
      name: "a note that was never made",
      change: (entries) => Object.assign(entries[2]!.led!, { notes: [] }),
      seq: 3,
      about: "decision",
      recorded: /"notes":\[\]/,
      derived: /corrected to/,
    },
    {
      name: "a decision too few",
      change: (entries) => delete (entries[5] as { led?: unknown }).led,
      seq: 6,
      about: "decision",
      recorded: /^null$/,
      derived: /"label":"handoff"/,
    },
    {
      name: "another answer",
      change: (entries) =>
        Object.assign(entries[1]!.event, {
          reply: { kind: "fault", fault: { kind: "auth", message: "no" } },
        }),
      seq: 2,
      about: "decision",
      recorded: /"label":"repeat"/,
      derived: /^null$/,
    },
    {
      name: "another verdict",
      change: (entries) =>
        Object.assign((entries[7]!.event as { verdict: object }).verdict, { outcome: "failed" }),
      seq: 8,
      about: "verdict",
      recorded: /"outcome":"failed"/,
      derived: /"outcome":"completed"/,
    },
    {
      name: "an entry left out",
      change: (entries) => entries.splice(3, 1),
      seq: 5,
      about: "entry",
      recorded: /^5$/,
      derived: /^4$/,
    },
    {
      name: "an answer of a step that is not under way",
      change: (entries) => Object.assign(entries[3]!.event, { step: "closure.a" }),
      seq: 4,
      about: "entry",
      recorded: /step\.answered closure\.a@1/,
      derived: /^null$/,
    },
    {
      name: "a check where an answer is pending",
      change: (entries) =>
        Object.assign(entries[3]!, {
          event: { type: "step.checked", step: "continuation.a", visit: 1, results: [] },
        }),
      seq: 4,
      about: "entry",
      recorded: /step\.checked/,
      derived: /ask continuation\.a@1/,
    },
    {
      name: "a second beginning",
      change: (entries) => Object.assign(entries[3]!, { event: entries[0]!.event }),
      seq: 4,
      about: "entry",
      recorded: /run\.started/,
      derived: /null/,
    },
    {
      name: "nonsense",
      change: (entries) => Object.assign(entries[3]!.event, { reply: null }),
      seq: 4,
      about: "entry",
      recorded: /step\.answered/,
      derived: /reply|null/,
    },
    ...(
      [
        [{ overturned: true }, /"overturned":true/, /"label":"repeat"/],
        [{ visit: 2 }, /"visit":2/, /"visit":1/],
        [{ step: "closure.a" }, /"step":"closure.a"/, /"step":"initial.a"/],
        [{ label: "next" }, /"label":"next"/, /"label":"repeat"/],
        [{ place: "elsewhere" }, /"place":"elsewhere"/, /"label":"repeat"/],
        [{ check: { id: "c", label: "x" } }, /"check"/, /"label":"repeat"/],
      ] as const
    ).map(([led, recorded, derived]) => ({
      name: `a decision with ${JSON.stringify(led)}`,
      change: (entries: Entry[]) => Object.assign(entries[1]!.led!, led),
      seq: 2,
      about: "decision",
      recorded,
      derived,
    })),
  ];
  for (const { name, change, seq, about, recorded, derived } of rows) {
    test(`differs: ${name}`, async () => {
      const { difference } = await replayBundle(tampered(change));
      assert.deepEqual([difference?.seq, difference?.about], [seq, about], JSON.stringify(difference));
      assert.match(JSON.stringify(difference?.recorded), recorded);
      assert.match(JSON.stringify(difference?.derived), derived);
    });
  }

  test("is imported with its decisions as they are recorded, unless it is no record at all", async () => {
    const journal = createMemoryJournal();
    const place = { cwd: "/", now: 0 };
    const { difference } = await importRun(journal, tampered(rows[0]!.change), place);
    assert.equal(difference?.seq, 3);
    assert.equal((await replayRun(journal, "gate")).difference?.seq, 3);
    const broken = importRun(journal, tampered(rows[5]!.change), { ...place, as: "broken" });
    await assert.rejects(broken, { code: "EXPORT_INVALID", message: /Entry 5 of run gate/ });
    await assert.rejects(importRun(journal, gate, { ...place, as: "../up" }), { code: "USAGE" });
    assert.deepEqual(
      (await journal.list()).map(({ id }) => id),
      ["gate"],
    );
  });
});

test("a file that is no exported run is refused with what is wrong with it", () => {
  const gate = readFileSync(join(JOURNALS, "gate.json"), "utf8");
  const rows: readonly [text: string, message: RegExp][] = [
    ["{", /f\.json is not valid JSON, or was cut off/],
    ["[]", /is not an exported run/],
    ['{"kind":"lockstep-run","v":2}', /has version 2, but this Lockstep only reads version 1/],
    ['{"kind":"lockstep-run","v":1,"run":{}}', /lacks parts of a run/],
    [gate.replace('"flows": {', '"flows": { "x": {} }, "more": {'), /lacks the flow/],
    [gate.replace('"Do initial.a."', '"Do harm."'), /was changed: its flow is not the one/],
  ];
  for (const [text, message] of rows)
    assert.throws(() => parseBundle(text, "f.json"), { code: "EXPORT_INVALID", message });
});

test("a run that keeps growing replays at every length", async () => {
  const gate = read("rate-limit.json");
  for (let length = 1; length <= gate.entries.length; length++) {
    const { difference } = await replayBundle({ ...gate, entries: gate.entries.slice(0, length) });
    assert.equal(difference, null, `cut after ${length}`);
  }
});

test("a run of a project replays by its reference, with how long that took", async () => {
  const step = { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } } as const;
  const cwd = projectWith(agentFiles("a", { "closure.a": step }));
  const journal = createMemoryJournal();
  const script = [{ output: { stepId: "closure.a", next_action: { action: "closing" } } }];
  const { run: id } = await run({ agent: "a", cwd, journal, script });
  const { events, difference, ms } = await replayRun(journal, id!.slice(0, 4));
  assert.deepEqual([events, difference, ms >= 0], [3, null, true]);
  await assert.rejects(replayRun(journal, "zzz"), { code: "RUN_UNKNOWN" });
});

test("a sibling that does not stop in time is told once, and the decision before it is not told again", async () => {
  const flow = sketchFlow({
    "initial.a": { edges: { next: { kind: "fork", steps: ["left", "right"], join: "closure.a" } } },
    left: { edges: { next: null } },
    right: { edges: { next: null } },
    "closure.a": { edges: { closing: null } },
  });
  const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
  const reply = (action: string) =>
    ({ kind: "reply", text: "", calls: [], output: { next_action: { action } }, usage }) as const;
  const { entries } = await play({
    flow,
    model: {
      spec: { id: "deaf", options: null },
      turn: ({ asker: { step } }) =>
        step === "left"
          ? new Promise(() => undefined)
          : Promise.resolve(reply(step === "right" ? "abort" : "next")),
    },
  });
  assert.deepEqual(
    entries.map(({ event, led }) => [event.type, led?.step]),
    [
      ["run.started", undefined],
      ["step.answered", "initial.a"],
      ["step.answered", "right"],
      ["run.left", undefined],
      ["run.ended", undefined],
    ],
  );
  assert.equal(replay(ready(flow), entries).difference, null);
});
