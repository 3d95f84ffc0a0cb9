/** Drawing and record agree: every decision of a run is an edge of its outline, over generated machines with forks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stateAfter } from "../../src/engine/decide/decide.ts";
import { deedsOf, story, type Moment } from "../../src/story/story.ts";
import { phaseOf } from "../../src/engine/decide/visit.ts";
import { replay } from "../../src/story/replay.ts";
import { addEntry, createReport } from "../../src/story/report.ts";
import { prepareSchemas, schemasOf } from "../../src/engine/schema/schema.ts";
import { EMPTY_STATE, recordedWith, type State } from "../../src/engine/decide/state.ts";
import type { Entry, Event, Led } from "../../src/flow/event.ts";
import type { Command } from "../../src/flow/command.ts";
import type { Flow, Move } from "../../src/flow/flow.ts";
import { outlineOf, type Edge } from "../../src/tell/outline.ts";
import { sketchCheck, sketchMachine, type StageSketch } from "../../src/testing/flows.ts";
import { random } from "../load/random.ts";
import { ready } from "../ready.ts";

const MACHINES = 1500;

test(`${MACHINES} generated machines: every recorded decision is drawn, and siblings lead to their join`, async () => {
  const next = random(20_261_115);
  const met = { forks: 0, joined: 0, apart: 0, failed: 0, recovered: 0, skipped: 0 };
  for (let round = 0; round < MACHINES; round += 1) {
    const flow = machine(next);
    if (round === 0) await prepareSchemas(schemasOf(flow));
    const { edges } = outlineOf(flow);
    const entries = drive(flow, next);
    const path = entries.flatMap(({ led }) => led ?? []);
    for (const moment of story(ready(flow), entries)) deedsAgree(moment);
    for (const led of path) {
      assert.ok(
        edges.some(isEdgeOf(led)),
        `${ledText(led)} is not drawn:\n${JSON.stringify(edges, null, 1)}`,
      );
      for (const id of led.fork ?? []) {
        met.forks += 1;
        assert.ok(edges.some((edge) => edge.kind === "fork" && edge.from === led.step && isTo(edge, id)));
      }
      if (led.place === undefined) continue;
      if (led.place < 0) met.recovered += 1;
      else if (led.to === null) met.failed += 1;
      else if (led.label === "ok") met.joined += 1;
      else met.apart += 1;
      if (led.label === "skip") met.skipped += 1;
    }
  }
  for (const [what, times] of Object.entries(met)) assert.ok(times > 20, `${what}: ${times}`);
});

/** What a decision says that it did is what the states around it show. */
function deedsAgree(moment: Moment): void {
  const { before, after, entry } = moment;
  const settled = deedsOf(moment, "settled").map(({ led }) => led);
  assert.deepEqual(settled, entry.led === undefined ? [] : [entry.led]);
  const ended = deedsOf(moment, "ended").map(({ verdict }) => verdict);
  assert.deepEqual(ended, before.verdict === null && after.verdict !== null ? [after.verdict] : []);
  const visits = { ...before.visits };
  for (const { step, visit } of deedsOf(moment, "began")) visits[step] = visit;
  assert.deepEqual(visits, after.visits);
  for (const lane of after.lanes) {
    const phases = deedsOf(moment, "phase").filter(({ step }) => step === lane.step);
    const was = before.lanes.find(({ step, visit }) => step === lane.step && visit === lane.visit);
    assert.equal(phases.at(-1)?.phase ?? (was && phaseOf(was)), phaseOf(lane));
    phases.reduce(
      (from, { from: left, phase }) => {
        assert.equal(left, from);
        return phase;
      },
      was === undefined ? null : phaseOf(was),
    );
  }
}

test("what an earlier version recorded of a fork replays as well, and a wrong record of one is noticed", async () => {
  const next = random(7);
  let forks = 0;
  for (let round = 0; round < 100; round += 1) {
    const flow = machine(next);
    await prepareSchemas(schemasOf(flow));
    const entries = drive(flow, next);
    const earlier = entries.map(
      (entry) =>
        JSON.parse(
          JSON.stringify(entry, (key, value: unknown) =>
            key === "underWay" || key === "fork" ? undefined : value,
          ),
        ) as Entry,
    );
    assert.deepEqual(replay(ready(flow), entries).difference, null);
    assert.deepEqual(replay(ready(flow), earlier).difference, null);
    const place = entries.findIndex(({ led }) => led?.fork !== undefined);
    if (place === -1) continue;
    forks += 1;
    const { led } = entries[place]!;
    const wrong = entries.with(place, {
      ...entries[place]!,
      led: { ...led!, fork: led!.fork!.toReversed() },
    });
    assert.equal(replay(ready(flow), wrong).difference?.seq, place + 1);
  }
  assert.ok(forks > 20);
});

test("siblings stand in the path in the order of the flow, and a failed one's own way comes after it", () => {
  const report = createReport();
  const entry = (step: string, place?: number): Entry => ({
    seq: 1,
    at: 0,
    event: started,
    led: { step, visit: 1, label: "ok", to: null, ...(place !== undefined && { place }) },
  });
  for (const [step, place] of [["start"], ["b", 1], ["a", 0], ["rescue", -1]] as const)
    addEntry(report, entry(step, place));
  assert.deepEqual(
    report.path.map(({ step }) => step),
    ["start", "a", "b", "rescue"],
  );
});

function isTo({ to }: Edge, id: string | null): boolean {
  return id === null ? to.kind === "end" : to.kind === "step" && to.step === id;
}

/** The run's own end apart, a decision names the label and where it led. */
function isEdgeOf({ step, label, to }: Led) {
  return (edge: Edge) => edge.from === step && (edge.as ?? edge.label) === label && isTo(edge, to);
}

function ledText({ step, label, to, place }: Led): string {
  return `${step} -${label}-> ${to ?? "end"}${place === undefined ? "" : ` (place ${place})`}`;
}

/** Forks of two or three stages in a row, some of them shared, with and without a join, a gate and a way out. */
function machine(next: () => number): Flow {
  const isOften = (share: number) => next() < share;
  const stages: { [id: string]: StageSketch } = { rescue: {} };
  const rounds = 1 + Math.floor(next() * 3);
  const sketch = (more: StageSketch = {}): StageSketch => ({
    attempts: 1 + Math.floor(next() * 2),
    turns: 2,
    ...(isOften(0.5) && { assert: ["proof"] }),
    ...(isOften(0.3) && { onFail: "rescue" }),
    ...(isOften(0.3) && { rules: { gate: "proof", unresolved: "skip" } }),
    ...more,
  });
  for (let at = 0; at < rounds; at += 1) {
    const own = Array.from({ length: 2 + Math.floor(next() * 2) }, (_, place) => `s${at}${place}`);
    const steps = at > 0 && isOften(0.3) ? ["s00", ...own] : own;
    const isLast = at === rounds - 1;
    const join = isLast ? (isOften(0.5) ? null : "last") : `f${at + 1}`;
    const fork: Move = { kind: "fork", steps, join, ...(isOften(0.4) && { policy: "independent" }) };
    const way: Move = isOften(0.3)
      ? {
          kind: "switch",
          on: ["parsed", "n"],
          cases: { "1": fork },
          otherwise: { kind: "goto", step: own[0]! },
        }
      : fork;
    stages[`f${at}`] = sketch({ next: way });
    for (const id of own) stages[id] = sketch();
  }
  stages.last = sketch();
  return sketchMachine(stages, { entry: "f0", checks: { proof: sketchCheck("proof", "true") } });
}

/** One run in which everything happens by chance. */
function drive(flow: Flow, next: () => number): readonly Entry[] {
  const entries: Entry[] = [];
  let state: State = EMPTY_STATE;
  const add = (event: Event) => {
    state = stateAfter(ready(flow), state, event);
    entries.push({ seq: entries.length + 1, at: 0, event, ...recordedWith(state) });
  };
  add(started);
  while (state.verdict === null) {
    assert.ok(entries.length < 500, "a machine that does not end");
    add(outcome(state.pending[Math.floor(next() * state.pending.length)]!, next));
  }
  return entries;
}

const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };

function outcome(command: Command, next: () => number): Event {
  if (command.type === "ask") {
    const { step, visit, turn } = command;
    const input = { n: next() < 0.7 ? 1 : 2 };
    const calls = next() < 0.75 ? [{ id: "c", name: "done", input }] : [];
    return { type: "step.answered", step, visit, turn, reply: { kind: "said", text: "", calls, usage } };
  }
  assert.ok(command.type === "check", `unforeseen: ${command.type}`);
  const { step, visit } = command;
  const ok = next() < 0.75;
  const results = [{ name: "proof", ok, pattern: ok ? "" : "no", summary: ok ? "" : "no", params: {} }];
  return { type: "step.checked", step, visit, results };
}

const started: Event = {
  type: "run.started",
  run: "run",
  agent: "a",
  flow: "f",
  args: {},
  input: "",
  cwd: "/",
  backend: { id: "scripted", options: null },
};
