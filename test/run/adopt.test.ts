/** Files that change while a run is under way: what is told, what is adopted, what is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeText } from "../../src/story/changes.ts";
import {
  createMemoryJournal,
  readRun,
  replayRun,
  resume,
  run,
  why,
  type Result,
  type ScriptReply,
} from "../../src/run/index.ts";
import { agentFiles, homeBeside, projectWith, PROVEN, writeFiles, type StepFile, stepTo } from "./project.ts";

const says = (stepId: string, action: string): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action } },
});
const STEPS: { readonly [id: string]: StepFile } = {
  "initial.a": stepTo("work", { next: "continuation.a" }),
  "continuation.a": stepTo("work", { next: "continuation.a", handoff: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null, repeat: "closure.a" }),
};
const files = (steps = STEPS, more: Parameters<typeof agentFiles>[2] = {}) => agentFiles("a", steps, more);
const { "closure.a": _closure, ...WITHOUT_CLOSURE } = STEPS;

type Row = {
  readonly name: string;
  readonly files: { readonly [path: string]: string };
  readonly changes: readonly RegExp[];
  /** What the run does once it has adopted; absent: it is refused. */
  readonly script?: readonly ScriptReply[];
  readonly obstacles?: readonly RegExp[];
};

const rows: readonly Row[] = [
  {
    name: "another prompt",
    files: { ...files(), ".agent/a/prompts/steps/closure/a/f_default.md": "Close it well.\n" },
    changes: [/^~ closure\.a: prompt: .*f_default\.md, 1 lines in, 1 out$/],
    script: [says("continuation.a", "handoff"), { ...says("closure.a", "closing"), saw: ["Close it well."] }],
  },
  {
    name: "a step between",
    files: files({
      ...STEPS,
      "continuation.a": stepTo("work", { next: "continuation.a", handoff: "verification.a" }),
      "verification.a": stepTo("verification", { next: "closure.a" }),
    }),
    changes: [/^\+ step verification\.a/, /^~ continuation\.a: edge handoff: closure\.a → verification\.a$/],
    script: [says("continuation.a", "handoff"), says("verification.a", "next"), says("closure.a", "closing")],
  },
  {
    name: "another limit and a tool list",
    files: files(STEPS, {
      runner: {
        verdict: { type: "detect:graph", config: { maxIterations: 9 } },
        boundaries: { allowedTools: ["Read"], permissionMode: "acceptEdits" },
      },
    }),
    changes: [/^~ limit visits: 20 → 9$/, /tools/],
    script: [says("continuation.a", "handoff"), says("closure.a", "closing")],
  },
  {
    name: "a step gone that was not visited yet",
    files: files({
      ...WITHOUT_CLOSURE,
      "continuation.a": stepTo("work", { next: "continuation.a", handoff: "closure.b" }),
      "closure.b": stepTo("closure", { closing: null }),
    }),
    changes: [/^\+ step closure\.b/, /^- step closure\.a/],
    script: [says("continuation.a", "handoff"), says("closure.b", "closing")],
  },
  {
    name: "another schema of a visited step",
    files: files({
      ...STEPS,
      "initial.a": { ...STEPS["initial.a"]!, properties: { plan: { type: "string" } } },
    }),
    changes: [/^~ initial\.a: answer: schema \/properties\/plan$/],
    obstacles: [/step "initial\.a" was visited, and its answer has another contract now/],
  },
  {
    name: "a visited step gone",
    files: files({
      "initial.b": stepTo("work", { next: "continuation.a" }),
      "continuation.a": STEPS["continuation.a"]!,
      "closure.a": STEPS["closure.a"]!,
    }),
    changes: [/^- step initial\.a/, /^~ entry: "initial\.a" → "initial\.b"$/],
    obstacles: [/step "initial\.a" was visited, and is not there any more/],
  },
  {
    name: "a label gone that was taken",
    files: files({
      ...STEPS,
      "initial.a": stepTo("work", { repeat: "initial.a", handoff: "continuation.a" }),
    }),
    changes: [/^- initial\.a: edge next: continuation\.a$/],
    obstacles: [/"initial\.a" went on by "next", which leads nowhere now/],
  },
];

/** A run that waits at continuation.a for more replies. */
async function begun() {
  const around = { cwd: projectWith(files()), journal: createMemoryJournal() };
  const stopped = await run({ agent: "a", script: [says("initial.a", "next")], ...around });
  assert.equal(stopped.code, "SCRIPT_EXHAUSTED", stopped.reason);
  return { ...around, id: stopped.run! };
}

for (const { name, files: changed, changes, script, obstacles } of rows) {
  test(`adopting ${name}`, async () => {
    const { id, ...around } = await begun();
    writeFiles(around.cwd, changed);
    const told: string[] = [];
    const adopt = async (replies: readonly ScriptReply[]): Promise<Result> =>
      await resume({
        run: id,
        adopt: true,
        onChange: (list) => told.push(...list.map(changeText)),
        script: replies,
        ...around,
      });
    const result = await adopt(script ?? []);
    for (const change of changes)
      assert.ok(
        told.some((line) => change.test(line)),
        `${String(change)} in ${told.join("\n")}`,
      );
    if (obstacles !== undefined) {
      assert.deepEqual([result.code, result.exitCode], ["FLOW_INCOMPATIBLE", 2]);
      for (const obstacle of obstacles) assert.match(result.reason, obstacle);
      const own = [says("continuation.a", "handoff"), says("closure.a", "closing")];
      const plain = await resume({ run: id, script: own, ...around });
      assert.equal(plain.outcome, "completed", "without --adopt it goes on with its own flow");
      return;
    }
    assert.equal(result.outcome, "completed", result.reason);
    const { entries, current, flow } = await readRun(around.journal, id);
    assert.equal(entries.filter(({ event }) => event.type === "run.adopted").length, 1);
    assert.notDeepEqual(current, flow);
    assert.equal((await replayRun(around.journal, id)).difference, null);
    assert.equal((await why(around.journal, id, "initial.a")).step, "initial.a");
    assert.notEqual(
      (await why(around.journal, id, "initial.a")).digest,
      (await why(around.journal, id)).digest,
    );
  });
}

test("without --adopt the differences are told, and the run goes on with its own flow", async () => {
  const { id, ...around } = await begun();
  writeFiles(around.cwd, rows[0]!.files);
  const told: [string, boolean][] = [];
  const result = await resume({
    run: id,
    onChange: (list, adopted) =>
      told.push(...list.map((one): [string, boolean] => [changeText(one), adopted])),
    script: [
      says("continuation.a", "handoff"),
      { ...says("closure.a", "closing"), unseen: ["Close it well."] },
    ],
    ...around,
  });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(told.length, 1);
  assert.equal(told[0]?.[1], false);
});

test("nothing is told where nothing changed, and files that cannot be loaded are not adopted", async () => {
  const { id, ...around } = await begun();
  const onChange = () => assert.fail("nothing changed");
  const same = await resume({ run: id, adopt: true, onChange, script: [], ...around });
  assert.equal(same.code, "SCRIPT_EXHAUSTED");
  writeFiles(around.cwd, { ".agent/a/steps_registry.json": "{" });
  const broken = await resume({ run: id, adopt: true, script: [], ...around });
  assert.deepEqual([broken.code, broken.exitCode], ["FLOW_INVALID", 2]);
  const plain = await resume({ run: id, onChange, script: [], ...around });
  assert.equal(plain.code, "SCRIPT_EXHAUSTED");
});

test("a run may adopt again and again", async () => {
  const { id, ...around } = await begun();
  for (const words of ["One.", "Two.", "Three."]) {
    writeFiles(around.cwd, { ".agent/a/prompts/steps/continuation/a/f_default.md": words });
    const script = [{ ...says("continuation.a", "next"), saw: [words] }];
    const result = await resume({ run: id, adopt: true, script, ...around });
    assert.equal(result.code, "SCRIPT_EXHAUSTED", result.reason);
  }
  const { entries } = await readRun(around.journal, id);
  assert.equal(entries.filter(({ event }) => event.type === "run.adopted").length, 3);
  assert.equal((await replayRun(around.journal, id)).difference, null);
});

test("after an adoption, the next resume asks trust for the adopted flow, not for the first one", async () => {
  const env = { PATH: process.env.PATH, HOME: homeBeside() };
  const { id, ...around } = await begun();
  writeFiles(around.cwd, { ...files(STEPS, { registry: PROVEN }), proof: "" });
  // The yes holds for this one resume.
  const trusting = { ...env, LOCKSTEP_TRUST: "all" };
  const adopted = await resume({ run: id, adopt: true, script: [], env: trusting, ...around });
  assert.equal(adopted.code, "SCRIPT_EXHAUSTED", adopted.reason);
  const script = [says("continuation.a", "handoff"), says("closure.a", "closing")];
  const refused = await resume({ run: id, script, env, ...around });
  assert.deepEqual([refused.code, refused.exitCode], ["NOT_TRUSTED", 3], refused.reason);
  assert.match(refused.reason, /test -f proof/);
  const trusted = await resume({ run: id, script, env: trusting, ...around });
  assert.equal(trusted.outcome, "completed", trusted.reason);
});
