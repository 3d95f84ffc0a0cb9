/** Forks: a shared past, a future of their own, and an original that stays as it was. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  compareRuns,
  createMemoryJournal,
  fork,
  importRun,
  readRun,
  replayRun,
  resume,
  run,
  show,
  type Edits,
  type Journal,
  type Result,
  type ScriptReply,
} from "../../src/run/index.ts";
import { partRun, previewFork } from "../../src/run/fork.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { whyAll } from "../../src/tell/why.ts";
import { JOURNALS } from "./golden.ts";
import { homeBeside, agentFiles, projectWith, stepTo } from "./project.ts";

const says = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action, reason: "r" }, ...more },
});
const STEPS = {
  "initial.a": {
    ...stepTo("work", { next: "continuation.a" }),
    gate: { handoffFields: ["plan"] },
    properties: { plan: { type: "string" } },
  },
  "continuation.a": {
    ...stepTo("work", { next: "continuation.a", handoff: "closure.a" }),
    more: { uvVariables: ["initial_a_plan"] },
  },
  "closure.a": stepTo("closure", { closing: null, repeat: "closure.a" }),
};
const FILES = {
  ...agentFiles("a", STEPS),
  ".agent/a/prompts/steps/continuation/a/f_default.md": "The plan: {uv-initial_a_plan}",
};
const SCRIPT = [
  says("initial.a", "next", { plan: "dig" }),
  says("continuation.a", "next"),
  says("continuation.a", "handoff"),
  says("closure.a", "closing"),
];

type World = { readonly cwd: string; readonly journal: Journal; readonly original: string };

async function world(): Promise<World> {
  const around = { cwd: projectWith(FILES), journal: createMemoryJournal() };
  const result = await run({ agent: "a", script: SCRIPT, ...around });
  assert.equal(result.outcome, "completed", result.reason);
  return { ...around, original: result.run! };
}

const pathOf = ({ path }: Result) => path.map(({ step: id, visit, label }) => `${id}@${visit}:${label}`);

const rows: readonly {
  readonly name: string;
  readonly at: string;
  readonly edits?: Edits;
  readonly script?: readonly ScriptReply[];
  readonly seq: number;
  readonly path: readonly string[];
  readonly told?: readonly string[];
}[] = [
  {
    name: "at the last visit of a step, the script goes on where it was",
    at: "closure.a",
    seq: 4,
    path: ["initial.a@1:next", "continuation.a@1:next", "continuation.a@2:handoff", "closure.a@1:closing"],
  },
  {
    name: "at the first step nothing but the beginning is shared",
    at: "initial.a",
    seq: 1,
    path: ["initial.a@1:next", "continuation.a@1:next", "continuation.a@2:handoff", "closure.a@1:closing"],
  },
  {
    name: "at a visit, with other answers from there on",
    at: "continuation.a@1",
    script: [says("continuation.a", "handoff"), says("closure.a", "repeat"), says("closure.a", "closing")],
    seq: 2,
    path: ["initial.a@1:next", "continuation.a@1:handoff", "closure.a@1:repeat", "closure.a@2:closing"],
  },
  {
    name: "with another output the visit is answered already, and its reply is spent",
    at: "continuation.a@1",
    edits: { output: { stepId: "continuation.a", next_action: { action: "next", reason: "other" } } },
    seq: 2,
    path: ["initial.a@1:next", "continuation.a@1:next", "continuation.a@2:handoff", "closure.a@1:closing"],
    told: ["output of continuation.a@1"],
  },
  {
    name: "with an output that ends the run nobody is asked",
    at: "closure.a",
    edits: { output: { stepId: "closure.a", next_action: { action: "closing", reason: "mine" } } },
    script: [],
    seq: 4,
    path: ["initial.a@1:next", "continuation.a@1:next", "continuation.a@2:handoff", "closure.a@1:closing"],
    told: ["output of closure.a@1"],
  },
  {
    name: "with another handoff the prompts say so",
    at: "continuation.a@2",
    edits: { handoff: { "initial.a": { plan: "climb" } } },
    script: [
      { ...says("continuation.a", "handoff"), saw: ["The plan: climb"] },
      says("closure.a", "closing"),
    ],
    seq: 3,
    path: ["initial.a@1:next", "continuation.a@1:next", "continuation.a@2:handoff", "closure.a@1:closing"],
    told: ["handoff of initial.a"],
  },
  {
    name: "with another prompt it is said from there on, and what was said before stays",
    at: "continuation.a@2",
    edits: {
      prompts: { "continuation.a": { file: "new.md", text: "---\nx: 1\n---\nTry {uv-initial_a_plan}!" } },
    },
    script: [
      { ...says("continuation.a", "handoff"), saw: ["The plan: dig", "Try dig!"], unseen: ["x: 1"] },
      says("closure.a", "closing"),
    ],
    seq: 3,
    path: ["initial.a@1:next", "continuation.a@1:next", "continuation.a@2:handoff", "closure.a@1:closing"],
    told: ["prompt of continuation.a"],
  },
];

for (const { name, at, edits, script, seq, path, told } of rows) {
  test(`fork: ${name}`, async () => {
    const { original, ...around } = await world();
    const before = await readRun(around.journal, original);
    const forked = await fork({
      run: original,
      at,
      ...(edits !== undefined && { edits }),
      ...(script !== undefined && { script }),
      ...around,
    });
    assert.equal(forked.outcome, "completed", forked.reason);
    assert.deepEqual(pathOf(forked), path);
    assert.notEqual(forked.run, original);
    assert.deepEqual(forked.forkedFrom, { run: original, seq, ...(told !== undefined && { edits: told }) });
    assert.equal((await replayRun(around.journal, forked.run!)).difference, null);
    assert.deepEqual(await readRun(around.journal, original), before);
    assert.deepEqual((await show(around.journal, forked.run!)).path, forked.path);
    const { flow, entries, adopted } = await readRun(around.journal, forked.run!);
    assert.equal(whyAll(flow, entries, adopted).length, path.length);
  });
}

for (const { name, at, edits, script, seq, path, told } of rows) {
  test(`parted and then resumed: ${name}`, async () => {
    const { original, ...around } = await world();
    const asked = { run: original, at, ...(edits !== undefined && { edits }) };
    const preview = await previewFork(around.journal, asked, 7);
    assert.equal((await around.journal.list()).length, 1);
    const parted = await partRun(around.journal, asked, 7);
    assert.deepEqual({ ...parted, run: null }, preview);
    assert.deepEqual([parted.origin, parted.seq, parted.edits], [original, seq, told ?? []]);
    assert.deepEqual(
      parted.shared.map(({ step, visit, label }) => `${step}@${visit}:${label}`),
      path.slice(0, parted.shared.length),
    );
    assert.equal(parted.shared.length, seq - 1);
    const result = await resume({ run: parted.run!, ...(script !== undefined && { script }), ...around });
    assert.equal(result.outcome, "completed", result.reason);
    assert.deepEqual(pathOf(result), path);
    assert.deepEqual(result.forkedFrom, { run: original, seq, ...(told !== undefined && { edits: told }) });
  });
}

test("a preview says where an edited answer does not fit its schema", async () => {
  const { original, journal } = await world();
  const misfitsOf = async (output: Edits["output"] & {}) =>
    (await previewFork(journal, { run: original, at: "closure.a", edits: { output } }, 0)).misfits;
  assert.deepEqual(
    await misfitsOf({ stepId: "closure.a", next_action: { action: "closing", reason: "" } }),
    [],
  );
  assert.match((await misfitsOf({ stepId: "closure.a", next_action: 3 })).join(), /next_action/);
});

test("another model is asked from the parting on, and in that step only", async () => {
  const { original, ...around } = await world();
  const asked: string[] = [];
  const forked = await fork({
    run: original,
    at: "continuation.a@2",
    edits: { models: { "continuation.a": "haiku" } },
    backend: {
      spec: { id: "mine", options: null },
      turn: ({ asker, model }) => {
        asked.push(`${asker.step}@${asker.visit} ${model}`);
        const { output } = SCRIPT[asker.step === "closure.a" ? 3 : 2]!;
        const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
        return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
      },
    },
    ...around,
  });
  assert.equal(forked.outcome, "completed", forked.reason);
  assert.deepEqual(asked, ["continuation.a@2 haiku", "closure.a@1 opus"]);
  const { differences } = await compareRuns(around.journal, original, forked.run!);
  assert.deepEqual(
    differences.map(({ about, at }) => `${about} ${at}`),
    ['flow ~ continuation.a: model: "opus" → "haiku"'],
  );
});

describe("a fork that cannot be is refused, and nothing is left of it", () => {
  const refused: readonly [name: string, at: string, edits: Edits, code: string, why: RegExp][] = [
    ["an unknown step", "closure.b", {}, "STEP_UNKNOWN", /Did you mean "closure\.a"/],
    ["a visit that was never", "closure.a@2", {}, "STEP_UNKNOWN", /visited once/],
    [
      "a prompt of an unknown step",
      "closure.a",
      { prompts: { x: { file: "f", text: "" } } },
      "STEP_UNKNOWN",
      /"x"/,
    ],
    [
      "a model of an unknown step",
      "closure.a",
      { models: { "closure.b": "m" } },
      "STEP_UNKNOWN",
      /closure\.b/,
    ],
    ["a handoff of an unknown step", "closure.a", { handoff: { x: {} } }, "STEP_UNKNOWN", /"x"/],
    [
      "an output that is no object",
      "closure.a",
      { output: "done" },
      "EDIT_INVALID",
      /answers with a JSON object/,
    ],
  ];
  for (const [name, at, edits, code, why] of refused) {
    test(name, async () => {
      const { original, ...around } = await world();
      const result = await fork({ run: original, at, edits, ...around });
      assert.deepEqual([result.code, result.exitCode, result.run], [code, 2, null], result.reason);
      assert.match(result.reason, why);
      assert.equal((await around.journal.list()).length, 1);
    });
  }
});

test("a fork whose model is missing is there all the same, and can be resumed", async () => {
  const { original, ...around } = await world();
  const stopped = await fork({ run: original, at: "closure.a", script: [], ...around });
  assert.deepEqual([stopped.code, stopped.resumable], ["SCRIPT_EXHAUSTED", true]);
  const script = [says("closure.a", "closing")];
  const result = await resume({ run: stopped.run!, script, ...around });
  assert.deepEqual([result.outcome, result.forkedFrom?.run], ["completed", original]);
});

test("a fork of a fork, and of a run that is still to be resumed", async () => {
  const around = { cwd: projectWith(FILES), journal: createMemoryJournal() };
  const open = await run({ agent: "a", script: SCRIPT.slice(0, 2), ...around });
  assert.equal(open.code, "SCRIPT_EXHAUSTED");
  const first = await fork({ run: open.run!, at: "continuation.a@2", script: SCRIPT.slice(2), ...around });
  const output = { stepId: "continuation.a", next_action: { action: "handoff" } };
  const edited = { run: open.run!, at: "continuation.a@2", edits: { output }, script: SCRIPT.slice(3) };
  const second = await fork({ ...edited, ...around });
  const third = await fork({ run: first.run!, at: "closure.a", ...around });
  for (const result of [first, second, third]) {
    assert.equal(result.outcome, "completed", result.reason);
    assert.equal((await replayRun(around.journal, result.run!)).difference, null);
  }
  assert.equal(third.forkedFrom?.run, first.run);
  assert.equal((await resume({ run: open.run!, script: SCRIPT.slice(2), ...around })).outcome, "completed");
});

test("a fork that is refused leaves nothing behind", async () => {
  const around = { cwd: projectWith(FILES), journal: createMemoryJournal() };
  const first = await run({ agent: "a", script: SCRIPT, ...around });
  assert.equal(first.outcome, "completed", first.reason);
  const listed = await around.journal.list();
  const at = "closure.a";
  const cases = [
    // Found out after the past of the fork is known, and before anything is done.
    { code: "NO_BACKEND", options: { at, use: "nobody" } },
    { code: "SANDBOX_UNAVAILABLE", options: { at, script: [], sandbox: "on", env: { PATH: "/nowhere" } } },
    { code: "FLOW_INVALID", options: { at, script: [], adopt: true, cwd: projectWith({}) } },
    { code: "STEP_UNKNOWN", options: { at: "nowhere", script: [] } },
  ] as const;
  for (const { code, options } of cases) {
    const refused = await fork({ run: first.run!, ...around, ...options });
    assert.deepEqual([refused.code, refused.run], [code, null], refused.reason);
    assert.deepEqual(await around.journal.list(), listed, code);
  }
});

for (const name of readdirSync(JOURNALS)) {
  test(`every visit of the golden journal ${name} can be forked at, and the fork replays`, async () => {
    const bundle = parseBundle(readFileSync(join(JOURNALS, name), "utf8"), name);
    const cwd = projectWith({});
    const journal = createMemoryJournal();
    await importRun(journal, bundle, { cwd, now: 0 });
    const { flow, entries, adopted } = await readRun(journal, bundle.run.id);
    const visits = whyAll(flow, entries, adopted).map(({ step: id, visit }) => `${id}@${visit}`);
    assert.ok(visits.length > 0);
    for (const at of visits) {
      // A fork is made, and stopped before anything is done.
      const env = { HOME: homeBeside(), LOCKSTEP_TRUST: "all" };
      const signal = AbortSignal.abort();
      const about = { run: bundle.run.id, at, script: [], env, signal, cwd, journal };
      const forked = await fork({ ...about, trustJournal: true });
      assert.notEqual(forked.run, null, forked.reason);
      const { difference } = await replayRun(journal, forked.run!);
      assert.equal(difference, null, `${at}: ${JSON.stringify(difference)}`);
    }
  });
}
