/** The small models behind the screens: keys, lists, windows, commands, figures, and what the stream says. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { STYLES } from "../../../scripts/page.ts";
import { chordOf } from "../../../src/studio/page/chords.ts";
import { commandLine } from "../../../src/studio/page/command.ts";
import { effectRows, type EffectLine } from "../../../src/studio/page/effect-rows.ts";
import { createEventReader, retryDelay } from "../../../src/studio/page/events.ts";
import { dollars, percentOf, px, shortCount } from "../../../src/studio/page/figures.ts";
import { askedAgain, hear, UNHEARD, withoutDoubtful, withPage } from "../../../src/studio/page/live.ts";
import { actionsOf } from "../../../src/studio/page/run-actions.ts";
import {
  countStates,
  heldRows,
  listedRuns,
  pickedRuns,
  type RunFilter,
  type RunSort,
} from "../../../src/studio/page/run-list.ts";
import { missingPages, windowOf } from "../../../src/studio/page/window.ts";
import type { LineFacts, RunLine, RunsDocument } from "../../../src/studio/wire.ts";

type Held = { readonly ctrl?: true; readonly meta?: true; readonly alt?: true; readonly field?: true };
const chords: readonly [key: string, held: Held, begun: string, chord: string | null, isWhole?: false][] = [
  ["j", {}, "", "j"],
  ["g", {}, "", "g", false],
  ["r", {}, "g", "g r"],
  ["g", {}, "g", "g g"],
  [" ", {}, "", "Space"],
  ["?", {}, "", "?"],
  ["j", { field: true }, "", null],
  ["Escape", { field: true }, "", "Escape"],
  ["Escape", {}, "", "Escape"],
  ["Enter", { ctrl: true }, "", "Ctrl-Enter"],
  ["Enter", { ctrl: true, field: true }, "", "Ctrl-Enter"],
  ["c", { ctrl: true }, "", null],
  ["r", { meta: true }, "g", null],
  ["r", { alt: true }, "", null],
];
for (const [key, held, begun, chord, isWhole = true] of chords)
  test(`${JSON.stringify(held)} ${key} after "${begun}" is ${chord}`, () => {
    const { ctrl = false, meta = false, alt = false, field = false } = held;
    const pressed = { key, ctrlKey: ctrl, metaKey: meta, altKey: alt, inField: field };
    assert.deepEqual(chordOf(pressed, begun), chord === null ? null : { chord, isWhole });
  });

for (const [words, line] of [
  [["why", "r1", "closure.issue@2"], "lockstep why r1 closure.issue@2"],
  [["why", "r1", "a b'c@1"], "lockstep why r1 'a b'\\''c@1'"],
  [["why", "r1", "$(id)"], "lockstep why r1 '$(id)'"],
  [["why", "r1", "a\nb"], null],
  [["why", "r1", "a\u202eb"], null],
  [["why", "r1", "a\u001b[2J"], null],
  [["why", "r1", "\ud800"], null],
] as const)
  test(`the command for ${JSON.stringify(words)}`, () => assert.equal(commandLine(words), line));

test("the command is typed as this user types it", () => {
  assert.equal(commandLine(["show", "r1"], "npx lockstep"), "npx lockstep show r1");
});

const streams: readonly [
  about: string,
  pieces: readonly string[],
  events: readonly (readonly [string | null, string])[],
][] = [
  ["one event", ["id: 7\ndata: {}\n\n"], [["7", "{}"]]],
  [
    "cut anywhere",
    ["id: 7\nda", "ta: {}\n", "\ndata: 1\n\n"],
    [
      ["7", "{}"],
      [null, "1"],
    ],
  ],
  ["several lines of data", ["data: a\ndata: b\n\n"], [[null, "a\nb"]]],
  ["a comment", [": still here\n\ndata: 1\n\n"], [[null, "1"]]],
  ["no end yet", ["data: 1\n"], []],
  ["line ends of another kind", ["data: 1\r\n\r\n"], [[null, "1"]]],
];
for (const [about, pieces, events] of streams)
  test(`events of a stream: ${about}`, () => {
    const read = createEventReader();
    assert.deepEqual(
      pieces.flatMap((piece) => read(piece)).map(({ id, data }) => [id, data]),
      events,
    );
  });

test("tries become rarer, up to ten seconds", () => {
  assert.deepEqual([1, 2, 3, 5, 6, 60].map(retryDelay), [500, 1000, 2000, 8000, 10_000, 10_000]);
});

const facts = (change: Partial<LineFacts> = {}): LineFacts => ({
  about: "",
  batch: null,
  forkedFrom: null,
  branch: null,
  lanes: [],
  visits: 1,
  turns: 1,
  tokens: 10,
  costUsd: 1,
  drivenMs: 5,
  questions: 0,
  pace: [],
  ...change,
});
const row = (run: string, change: Partial<RunLine> = {}): RunLine => ({
  run,
  agent: "fixer",
  state: "completed",
  code: null,
  createdAt: `2026-01-0${run.length}T00:00:00Z`,
  updatedAt: "2026-01-01T00:00:00Z",
  events: 1,
  step: null,
  steps: [],
  facts: facts(),
  ...change,
});
const ALL: RunFilter = { state: "", agent: "", q: "" };
const LIST: readonly RunLine[] = [
  row("a", { agent: "writer", facts: facts({ about: "Tides", tokens: 5, visits: 9 }) }),
  row("bb", { state: "failed", code: "LIMIT", facts: facts({ costUsd: null, drivenMs: 90 }) }),
  row("ccc", { state: "running", step: "initial.issue", facts: facts({ costUsd: 3, tokens: 50 }) }),
  row("dddd", { facts: null }),
];
const lists: readonly [filter: Partial<RunFilter>, sort: RunSort, isUp: boolean, runs: string][] = [
  [{}, "newest", false, "ccc dddd bb a"],
  [{}, "newest", true, "a bb ccc dddd"],
  [{ state: "failed" }, "newest", false, "bb"],
  [{ agent: "writer" }, "newest", false, "a"],
  [{ q: "tides WRITER" }, "newest", false, "a"],
  [{ q: "limit" }, "newest", false, "bb"],
  [{ q: "initial" }, "newest", false, "ccc"],
  [{ q: "tides fixer" }, "newest", false, ""],
  [{}, "cost", false, "ccc a dddd bb"],
  [{}, "tokens", true, "dddd a bb ccc"],
  [{}, "visits", false, "a ccc bb dddd"],
  [{}, "time", false, "bb ccc a dddd"],
  [{}, "agent", false, "dddd ccc bb a"],
  [{}, "agent", true, "a dddd ccc bb"],
];
for (const [filter, sort, isUp, runs] of lists)
  test(`runs ${JSON.stringify(filter)} by ${sort}${isUp ? ", upwards" : ""}: ${runs}`, () =>
    assert.equal(
      listedRuns(LIST, { ...ALL, ...filter }, sort, isUp)
        .map(({ run }) => run)
        .join(" "),
      runs,
    ));

test("states are counted in the order in which a person wants to know", () => {
  assert.deepEqual(
    countStates(LIST).map(({ state, count }) => `${state} ${count}`),
    [
      "running 1",
      "queued 0",
      "waiting 0",
      "paused 0",
      "interrupted 0",
      "poisoned 0",
      "failed 1",
      "damaged 0",
      "completed 2",
    ],
  );
});

const page = (runs: readonly RunLine[]): RunsDocument => ({ v: 1, total: 9, runs, next: null, cursor: "c1" });

test("rows of the stream win over rows that were asked for before, and keep what was read of them", () => {
  const first = withPage(UNHEARD, page([row("a", { events: 5 }), row("b", { events: 2, facts: null })]));
  assert.deepEqual([first.total, first.cursor], [9, "c1"]);
  const heard = hear(first, { type: "runs", total: 10, runs: [row("a", { events: 6, facts: null })] });
  assert.deepEqual([heard.total, heard.runs.get("a")?.events], [10, 6]);
  assert.notEqual(heard.runs.get("a")?.facts, null);
  const late = withPage(heard, page([row("a", { events: 5 }), row("b", { events: 2 })]));
  assert.equal(late.runs.get("a")?.events, 6);
  assert.notEqual(late.runs.get("b")?.facts, null);
});

test("everything is asked for again when another server answers, or the page fell behind", () => {
  const hello = hear(UNHEARD, { type: "hello", cursor: "1", began: 1 });
  assert.deepEqual([hello.connection, hello.epoch], ["live", 0]);
  assert.equal(hear(hello, { type: "hello", cursor: "1", began: 1 }).epoch, 0);
  assert.equal(hear(hello, { type: "hello", cursor: "1", began: 2 }).epoch, 1);
  assert.equal(hear(hello, { type: "reset" }).epoch, 1);
});

test("rows that no page names once everything was asked for again are not recorded any more", () => {
  const listed = withPage(UNHEARD, page([row("a", { events: 5 }), row("b"), row("c")]));
  const asked = hear(listed, { type: "reset" });
  assert.deepEqual([asked.round, asked.epoch, [...asked.runs.keys()]], [1, 1, ["a", "b", "c"]]);
  const first = withPage(asked, page([row("a", { events: 2 })]));
  const heard = hear(first, { type: "runs", total: 2, runs: [row("b")] });
  assert.deepEqual([...heard.runs.keys()], ["a", "b", "c"]);
  const settled = withoutDoubtful(heard);
  assert.deepEqual([...settled.runs.keys()], ["a", "b"]);
  // Another journal may have the same run, less far.
  assert.equal(settled.runs.get("a")?.events, 2);
  assert.equal(withoutDoubtful(settled), settled);
  const shown = askedAgain(listed);
  assert.deepEqual([shown.round, shown.epoch, shown.doubtful.size], [1, 0, 3]);
});

test("why the journal cannot be read is known until it can, or another server answers", () => {
  const away = hear(UNHEARD, { type: "journal", problem: "away" });
  assert.equal(away.problem, "away");
  assert.equal(hear(away, { type: "journal", problem: null }).problem, null);
  assert.equal(hear(away, { type: "hello", cursor: "1", began: 2 }).problem, null);
});

test("removed runs, open questions and changed files are heard of", () => {
  const listed = withPage(UNHEARD, page([row("a"), row("b")]));
  const gone = hear(listed, { type: "gone", runs: ["a", "z"] });
  assert.deepEqual([[...gone.runs.keys()], gone.total, gone.gone.has("a")], [["b"], 8, true]);
  const asked = hear(gone, { type: "questions", open: 2, runs: ["b"] });
  assert.deepEqual(asked.questions, { open: 2, runs: ["b"], version: 1 });
  const changed = ["f", "f", "g"].reduce(
    (live, agent) => hear(live, { type: "files", agents: [agent] }),
    asked,
  );
  assert.deepEqual(
    [...changed.files],
    [
      ["f", 2],
      ["g", 1],
    ],
  );
});

for (const [count, top, height, first, end] of [
  [1000, 0, 500, 0, 35],
  [1000, 2000, 500, 90, 135],
  [1000, 20_000, 500, 990, 1000],
  [1000, -300, 500, 0, 20],
  [0, 0, 500, 0, 0],
  [3, 0, 500, 0, 3],
] as const)
  test(`of ${count} rows, at ${top} of ${height} pixels, ${first} to ${end} are drawn`, () => {
    const seen = windowOf(count, 20, top, height);
    assert.deepEqual([seen.first, seen.end], [first, end]);
    assert.equal(seen.above + (end - first) * 20 + seen.below, count * 20);
  });

test("only pages that are looked at and were not asked for are asked for", () => {
  assert.deepEqual(missingPages(150, 450, 200, new Set([200])), [0, 400]);
  assert.deepEqual(missingPages(0, 0, 200, new Set()), []);
});

for (const [cost, text] of [
  [null, "–"],
  [0, "$0"],
  [0.00001, "< $0.0001"],
  [0.0123, "$0.0123"],
  [0.1, "$0.10"],
  [12, "$12.00"],
] as const)
  test(`${cost} costs ${text}`, () => assert.equal(dollars(cost), text));
for (const [count, text] of [
  [0, "0"],
  [999, "999"],
  [1000, "1.0k"],
  [9940, "9.9k"],
  [12_400, "12k"],
  [999_499, "999k"],
  [999_500, "1.0M"],
] as const)
  test(`${count} is ${text}`, () => assert.equal(shortCount(count), text));
for (const [part, whole, share] of [
  [0, 10, 0],
  [1, 1000, 1],
  [999, 1000, 99],
  [10, 10, 100],
  [12, 10, 100],
  [5, 0, 0],
] as const)
  test(`${part} of ${whole} is ${share} %`, () => assert.equal(percentOf(part, whole), share));
test("lengths of styles have a unit", () => assert.equal(px(1.2345), "1.23px"));

const effect = (state: EffectLine["state"], at: number): EffectLine => ({
  kind: "push",
  target: "",
  state,
  detail: "",
  at,
  run: "r",
  agent: "a",
  step: null,
  visit: null,
});
test("what was intended and is not known to be done comes first, then the newest", () => {
  const { rows, unheard } = effectRows([
    effect("applied", 1),
    effect("intended", 2),
    effect("failed", 3),
    effect("intended", 1),
  ]);
  assert.deepEqual(
    rows.map(({ state, at }) => `${state} ${at}`),
    ["intended 2", "intended 1", "failed 3", "applied 1"],
  );
  assert.equal(unheard, 2);
});

const CHANGED = [{ kind: "step" }] as unknown as NonNullable<Parameters<typeof actionsOf>[1]["changes"]>;
const states: readonly [RunLine["state"], isResumable: boolean, hasChanged: boolean, acts: string][] = [
  ["running", false, false, "pause stop"],
  ["paused", true, false, "continue"],
  ["paused", true, true, "continue adopt"],
  ["waiting", true, false, ""],
  ["interrupted", true, false, "resume"],
  ["interrupted", true, true, "resume adopt"],
  ["failed", true, false, "resume"],
  ["failed", true, true, "resume adopt"],
  ["failed", false, true, ""],
  ["completed", false, false, ""],
  ["damaged", true, false, ""],
];
for (const [state, resumable, hasChanged, acts] of states)
  test(`${state}${resumable ? ", resumable" : ""}${hasChanged ? ", with changed files" : ""}: ${acts}`, () => {
    const document = { shown: { resumable }, changes: hasChanged ? CHANGED : [] } as unknown as Parameters<
      typeof actionsOf
    >[1];
    assert.equal(
      actionsOf(state, document)
        .map(({ act }) => act)
        .join(" "),
      acts,
    );
  });

test("rows that are looked at keep their order, and new ones wait", () => {
  const names = (held: readonly string[] | null) => {
    const { rows, news } = heldRows(LIST, held);
    return [rows.map(({ run }) => run).join(" "), news];
  };
  assert.deepEqual(names(null), ["a bb ccc dddd", 0]);
  assert.deepEqual(names(["ccc", "gone", "a"]), ["ccc a", 2]);
});

for (const [picked, run, next] of [
  [[], "a", ["a"]],
  [["a"], "a", []],
  [["a"], "b", ["a", "b"]],
  [["a", "b"], "c", ["b", "c"]],
] as const)
  test(`picking ${run} after ${picked.join(" ")} leaves ${next.join(" ")}`, () =>
    assert.deepEqual(pickedRuns(picked, run), next));

test("every style sheet is part of the page", () => {
  const files = readdirSync(new URL("../../../src/studio/page/styles/", import.meta.url));
  assert.deepEqual(files.toSorted(), STYLES.map((name) => `${name}.css`).toSorted());
});
