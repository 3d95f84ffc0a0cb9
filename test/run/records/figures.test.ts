/** Figures of recorded runs: those of the golden journals recounted by hand, and those of runs made for the purpose. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { addUp, type AddedFigures, type InRuns } from "../../../src/proof/added-figures.ts";
import { createFigures } from "../../../src/run/records/figures.ts";
import {
  createMemoryJournal,
  importRun,
  listRuns,
  readRun,
  resume,
  run,
  show,
  type Entry,
  type Journal,
  type ScriptReply,
} from "../../../src/run/index.ts";
import { parseBundle } from "../../../src/run/records/bundle.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { JOURNALS } from "../golden.ts";
import { agentFiles, projectWith, stepTo } from "../project.ts";

async function golden(): Promise<Journal> {
  const journal = createMemoryJournal();
  for (const name of readdirSync(JOURNALS)) {
    const bundle = parseBundle(readFileSync(join(JOURNALS, name), "utf8"), name);
    await importRun(journal, bundle, { as: name.replace(".json", ""), cwd: "/nowhere", now: 0 });
  }
  return journal;
}

const journal = await golden();
const runs = await listRuns(journal);
const read = await createFigures()(journal);
const figures = addUp(read.runs);
const named = (places: InRuns, of: AddedFigures = figures) =>
  places.map((place) => of.ids[place]!).toSorted();

test("every recorded run is counted once", () => {
  assert.ok(runs.length >= 8);
  assert.deepEqual(read.damaged, []);
  assert.deepEqual(figures.ids.toSorted(), runs.map((one) => one.run).toSorted());
});

test("states, codes and flows lead to exactly their runs", () => {
  const statesOf = (state: string) => runs.filter((one) => one.state === state).map((one) => one.run);
  for (const state of new Set(runs.map((one) => one.state)))
    assert.deepEqual(
      figures.days
        .filter((day) => day.state === state)
        .flatMap((day) => named(day.in))
        .toSorted(),
      statesOf(state).toSorted(),
      state,
    );
  for (const { code, in: where } of figures.codes)
    assert.deepEqual(
      named(where),
      runs
        .filter((one) => one.code === code)
        .map((one) => one.run)
        .toSorted(),
    );
  assert.deepEqual(
    figures.codes.map(({ code }) => code).toSorted(),
    [...new Set(runs.flatMap(({ code }) => code ?? []))].toSorted(),
  );
  assert.equal(
    figures.flows.reduce((sum, flow) => sum + flow.in.length, 0),
    runs.length,
  );
});

test("visits, turns and tokens are those of the result documents", async () => {
  const shown = await Promise.all(runs.map(async (one) => await show(journal, one.run)));
  const sum = (of: (one: (typeof shown)[number]) => number) => shown.reduce((so, one) => so + of(one), 0);
  const ofSteps = (key: "turns" | "inputTokens" | "outputTokens") =>
    figures.steps.reduce((so, step) => so + step[key], 0);
  for (const key of ["turns", "inputTokens", "outputTokens"] as const)
    assert.equal(
      ofSteps(key),
      sum(({ usage }) => usage[key]),
      key,
    );
  const visits = shown.map(({ iterations }) => iterations).toSorted((a, b) => a - b);
  assert.deepEqual(figures.visits, {
    median: visits[Math.ceil(visits.length / 2) - 1],
    p90: visits[Math.ceil(visits.length * 0.9) - 1],
    most: visits.at(-1),
  });
});

test("denials, questions, faults and overturned claims are those of the entries", async () => {
  const all: (readonly [run: string, entries: readonly Entry[]])[] = [];
  for (const one of runs) all.push([one.run, (await readRun(journal, one.run)).entries]);
  const entries = all.flatMap(([, of]) => of);
  const denied = entries.flatMap(({ event }) =>
    event.type === "step.called" ? event.results.filter((result) => result.denied !== undefined) : [],
  );
  assert.equal(
    figures.denials.reduce((sum, { times }) => sum + times, 0),
    denied.length,
  );
  const asked = new Set(
    all.flatMap(([name, of]) =>
      of.flatMap(({ event }) => (event.type === "step.asked" ? `${name} ${event.question.id}` : [])),
    ),
  );
  assert.equal(
    figures.people.reduce((sum, one) => sum + one.asked, 0),
    asked.size,
  );
  const faults = entries.filter(
    ({ event }) =>
      event.type === "step.answered" && (event.reply.kind === "fault" || event.reply.kind === "oversized"),
  );
  assert.equal(
    figures.retries.reduce((sum, one) => sum + Object.values(one.faults).reduce((a, b) => a + b, 0), 0),
    faults.length,
  );
  const overturned = entries.filter(({ led }) => led?.overturned === true).length;
  assert.ok(figures.patterns.reduce((sum, { hits }) => sum + hits, 0) >= overturned && overturned > 0);
});

const STEPS = {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null, repeat: "closure.a" }),
};
const says = (stepId: string, action: string): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action, reason: "r" } },
});

test("a run is read again only when it has more entries, and counts as it stands now", async () => {
  const mine = createMemoryJournal();
  let reads = 0;
  const counted: Journal = {
    ...mine,
    read: async (...given) => {
      reads += 1;
      return await mine.read(...given);
    },
  };
  const around = { cwd: projectWith(agentFiles("a", STEPS)), journal: mine, clock: fakeClock() };
  const open = await run({ agent: "a", script: [says("initial.a", "next")], ...around });
  assert.equal(open.code, "SCRIPT_EXHAUSTED");
  const figuresOf = createFigures();
  const first = await figuresOf(counted);
  assert.deepEqual([first.runs.length, first.runs[0]?.state, reads > 0], [1, "failed", true]);
  reads = 0;
  assert.deepEqual((await figuresOf(counted)).runs, first.runs);
  assert.equal(reads, 0);
  await resume({ run: open.run!, script: [says("closure.a", "closing")], ...around });
  const then = await figuresOf(counted);
  assert.deepEqual([then.runs[0]?.state, then.runs[0]?.figures.visits, reads > 0], ["completed", 2, true]);
});

test("only runs of that agent, that time and that flow are counted", async () => {
  const figuresOf = createFigures();
  const digest = read.runs[0]!.figures.flow;
  const ofFlow = await figuresOf(journal, { flow: digest.slice(0, 12) });
  assert.deepEqual(
    ofFlow.runs.map((one) => one.run),
    read.runs.filter(({ figures: { flow } }) => flow === digest).map((one) => one.run),
  );
  assert.ok(ofFlow.runs.length < read.runs.length);
  const { agent } = read.runs[0]!;
  const ofAgent = await figuresOf(journal, { agent });
  assert.deepEqual(
    ofAgent.runs.map((one) => one.run),
    read.runs.filter((one) => one.agent === agent).map((one) => one.run),
  );
  assert.ok(ofAgent.runs.length < read.runs.length);
  assert.deepEqual((await figuresOf(journal, { since: Date.now() + 1 })).runs, []);
  assert.equal((await figuresOf(journal, { since: 0 })).runs.length, read.runs.length);
});

test("a damaged run is named, and hides no other", async () => {
  const bad = runs[0]!.run;
  const { RunnerError } = await import("../../../src/run/errors.ts");
  const torn: Journal = {
    ...journal,
    read: async (id, ...rest) => {
      if (id === bad) throw new RunnerError("JOURNAL_UNAVAILABLE", "torn");
      return await journal.read(id, ...rest);
    },
  };
  const found = await createFigures()(torn);
  assert.deepEqual([found.damaged, found.runs.length], [[bad], runs.length - 1]);
});
