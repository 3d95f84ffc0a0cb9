/** What can be asked of recorded runs: what if, where do two differ, what may go, what is happening now. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  compareRuns,
  createMemoryJournal,
  followRun,
  importRun,
  load,
  openJournal,
  resume,
  run,
  whatIf,
  type Backend,
  type Journal,
  type ScriptReply,
} from "../../src/run/index.ts";
import { reroute } from "../../src/story/reroute.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { openSqliteJournal } from "../../src/journal/sqlite/sqlite.ts";
import { prunable, prune } from "../../src/run/records/prune.ts";
import { particularsOf } from "../../src/run/records/runs.ts";
import { followRuns } from "../../src/run/watch/follow.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { JOURNALS } from "./golden.ts";
import { agentFiles, projectWith, writeFiles, type StepFile, stepTo } from "./project.ts";
import { until } from "../until.ts";
import { ready } from "../ready.ts";

const says = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action }, ...more },
});
const STEPS: { readonly [id: string]: StepFile } = {
  "initial.a": stepTo("work", { next: "continuation.a", repeat: "initial.a" }),
  "continuation.a": stepTo("work", { next: "continuation.a", handoff: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null, repeat: "closure.a" }),
};
const guarded = (...names: readonly string[]) => ({
  registry: {
    validators: Object.fromEntries(
      names.map((name) => [
        name,
        { type: "command", command: `test -f ${name}`, successWhen: "exitCode:0", failurePattern: "gone" },
      ]),
    ),
    failurePatterns: { gone: { description: "Gone", edition: "failed", params: [] } },
    validationSteps: {
      "closure.a": {
        stepId: "closure.a",
        name: "There",
        c2: "retry",
        c3: "a",
        validationConditions: names.map((validator) => ({ validator })),
        onFailure: { action: "retry", maxAttempts: 3 },
      },
    },
  },
});
const RETRY = { ".agent/a/prompts/steps/retry/a/f_failed.md": "It is gone." };
const AGAIN = [says("continuation.a", "handoff"), says("closure.a", "closing")];
const SCRIPT = [says("initial.a", "next"), says("continuation.a", "next"), ...AGAIN];
const env = { ...process.env, LOCKSTEP_TRUST: "all" };

// What if.

type Row = {
  readonly name: string;
  /** Before and after. */
  readonly first?: { readonly [id: string]: StepFile };
  readonly steps?: { readonly [id: string]: StepFile };
  readonly before?: Parameters<typeof agentFiles>[2];
  readonly after?: Parameters<typeof agentFiles>[2];
  readonly script?: readonly ScriptReply[];
  readonly kind: "same" | "path" | "verdict" | "stuck";
  readonly was?: string;
  readonly now?: string;
  readonly stuck?: RegExp;
  readonly ends?: string | null;
};

const rows: readonly Row[] = [
  { name: "the same flow", kind: "same", ends: "completed" },
  {
    name: "another edge, to a step that nothing is recorded of",
    steps: { ...STEPS, "initial.a": stepTo("work", { next: "closure.a", repeat: "initial.a" }) },
    kind: "path",
    was: "initial.a:next>continuation.a",
    now: "initial.a:next>closure.a",
    ends: "completed",
  },
  {
    name: "a step between that was never answered",
    steps: {
      ...STEPS,
      "continuation.a": stepTo("work", { next: "verification.a", handoff: "closure.a" }),
      "verification.a": stepTo("verification", { next: "closure.a" }),
    },
    kind: "path",
    was: "continuation.a:next>continuation.a",
    now: "continuation.a:next>verification.a",
    stuck: /verification\.a@1: no answer to it is recorded/,
    ends: null,
  },
  {
    name: "a schema that the answer does not fit any more",
    first: { ...STEPS, "closure.a": { ...STEPS["closure.a"]!, properties: { sum: {} } } },
    steps: { ...STEPS, "closure.a": { ...STEPS["closure.a"]!, properties: { sum: { type: "number" } } } },
    script: [...SCRIPT.slice(0, 3), says("closure.a", "closing", { sum: "many" })],
    kind: "stuck",
    was: "closure.a:closing>null",
    stuck: /closure\.a@1: its recorded answer does not fit any more: \/sum must be number/,
    ends: null,
  },
  {
    name: "a limit that ends it earlier",
    after: { runner: { verdict: { type: "detect:graph", config: { maxIterations: 2 } } } },
    kind: "path",
    was: "continuation.a:handoff>closure.a",
    ends: "failed AGENT_MAX_ITERATIONS",
  },
  {
    name: "a check less: the run ends where it was sent back",
    before: guarded("there", "proof"),
    after: guarded("there"),
    script: [...SCRIPT, ...AGAIN, ...AGAIN],
    kind: "path",
    was: "closure.a:closing>continuation.a",
    now: "closure.a:closing>null",
    ends: "completed",
  },
  {
    name: "a check more that was never run",
    after: guarded("proof"),
    kind: "stuck",
    was: "closure.a:closing>null",
    stuck: /closure\.a@1: what "proof" would find is not recorded/,
    ends: null,
  },
  {
    name: "a parameter that is required now",
    after: { agent: { parameters: { n: { type: "number", description: "n", cli: "--n", required: true } } } },
    kind: "stuck",
    stuck: /initial\.a@1: .*"n"/,
    ends: null,
  },
];

const ledText = (led: { step: string; label: string | null; to: string | null } | null | undefined) =>
  led == null ? undefined : `${led.step}:${led.label}>${led.to}`;

for (const {
  name,
  first = STEPS,
  steps = first,
  before = {},
  after = before,
  script = SCRIPT,
  ...expected
} of rows) {
  test(`what if: ${name}`, async () => {
    const cwd = projectWith({ ...agentFiles("a", first, before), ...RETRY, there: "" });
    const journal = createMemoryJournal();
    await run({ agent: "a", script, cwd, journal, env });
    writeFiles(cwd, { ...agentFiles("a", steps, after), ...RETRY });
    const { runs, same, changed, stuck } = await whatIf(journal, await load("a", { cwd }));
    const [found] = runs;
    assert.equal(found?.kind, expected.kind, JSON.stringify(found));
    assert.deepEqual([same, changed + stuck], expected.kind === "same" ? [1, 0] : [0, 1]);
    if (expected.was !== undefined) assert.equal(ledText(found.at?.recorded), expected.was);
    if (expected.now !== undefined) assert.equal(ledText(found.at?.derived), expected.now);
    const where = found.stuck === null ? "" : `${found.stuck.step}@${found.stuck.visit}: ${found.stuck.why}`;
    assert.match(where, expected.stuck ?? /^$/);
    const { derived } = found;
    const ends =
      derived === null ? null : [derived.outcome, ...(derived.code ?? "").split(" ")].join(" ").trim();
    assert.equal(ends, expected.ends ?? null);
  });
}

for (const file of readdirSync(JOURNALS)) {
  test(`the golden journal ${file} goes the same way through the flow it ended with`, async () => {
    const bundle = parseBundle(readFileSync(join(JOURNALS, file), "utf8"), file);
    const journal = createMemoryJournal();
    await importRun(journal, bundle, { cwd: "/", now: 0 });
    const flow = Object.values(bundle.flows).at(-1)!;
    const project = { root: "/", agentsDir: "/.agent", stateDir: "/.lockstep" };
    const { runs } = await whatIf(journal, { agent: flow.agent, project, flow, problems: [] });
    assert.deepEqual(
      runs.map(({ kind }) => kind),
      ["same"],
      JSON.stringify(runs),
    );
  });
}

test("what if keeps what was edited on the way", () => {
  const {
    run: about,
    flows,
    entries,
  } = parseBundle(readFileSync(join(JOURNALS, "fork.json"), "utf8"), "fork");
  const started = entries[0]!.event;
  assert.ok(started.type === "run.started");
  const { state, stuck } = reroute(ready(flows[about.flow]!), started, entries);
  assert.equal(stuck, null);
  assert.deepEqual(state.handoff["initial.a"], { plan: "edited" });
});

test("what if tells only of the agent's own runs, or of those that were named; and of a flow that is valid", async () => {
  const cwd = projectWith({ ...agentFiles("a", STEPS), ...agentFiles("b", STEPS) });
  const journal = createMemoryJournal();
  const one = await run({ agent: "a", script: SCRIPT, cwd, journal });
  const open = await run({ agent: "a", script: SCRIPT.slice(0, 2), cwd, journal });
  await run({ agent: "b", script: SCRIPT, cwd, journal });
  const loaded = await load("a", { cwd });
  const all = await whatIf(journal, loaded);
  assert.deepEqual(
    all.runs.map(({ run: id, kind }) => [id, kind]),
    [
      [open.run, "same"],
      [one.run, "same"],
    ],
  );
  assert.deepEqual(
    (await whatIf(journal, loaded, [one.run!])).runs.map(({ run: id }) => id),
    [one.run],
  );
  await assert.rejects(whatIf(journal, await load("nobody", { cwd })), { code: "FLOW_INVALID" });
});

// Where two runs differ.

async function two(script: readonly ScriptReply[], other: readonly ScriptReply[], args: object[] = [{}, {}]) {
  const parameters = { n: { type: "number", description: "n", cli: "--n", default: 1 } };
  const plan = { gate: { handoffFields: ["plan"] }, properties: { plan: { type: "string" } } };
  const steps = { ...STEPS, "initial.a": { ...STEPS["initial.a"]!, ...plan } };
  const cwd = projectWith({
    ...agentFiles("a", steps, { ...guarded("there"), agent: { parameters } }),
    ...RETRY,
  });
  const journal = createMemoryJournal();
  const clock = fakeClock();
  const ids: string[] = [];
  for (const [place, replies] of [script, other].entries()) {
    if (place === 1) writeFiles(cwd, { there: "" });
    const result = await run({
      agent: "a",
      script: replies,
      args: { ...args[place] },
      cwd,
      journal,
      clock,
      env,
    });
    ids.push(result.run!);
  }
  const { differences, same, runs } = await compareRuns(journal, ids[0]!, ids[1]!);
  return { told: differences.map(({ about, at }) => `${about} ${at}`), differences, same, runs };
}

test("two runs that did the same do not differ", async () => {
  const repeat = says("initial.a", "repeat", { plan: "p" });
  const script = [repeat, repeat, says("initial.a", "next", { plan: "p" })];
  const { same, told, runs } = await two(script, script);
  assert.deepEqual([same, told], [true, []]);
  assert.deepEqual(
    runs.map(({ outcome, iterations }) => [outcome, iterations]),
    [
      ["failed", 4],
      ["failed", 4],
    ],
  );
});

test("differences come in the order of the run: argument, answer, check, path, handoff, verdict, usage", async () => {
  const { same, told, differences } = await two(
    [says("initial.a", "next", { plan: "dig" }), ...AGAIN],
    [says("initial.a", "next", { plan: "climb" }), ...AGAIN],
    [{}, { n: 2 }],
  );
  assert.equal(same, false);
  assert.deepEqual(told, [
    "argument /n",
    "answer initial.a@1 /plan",
    "check closure.a@1",
    "path closure.a@1",
    "handoff /initial.a/plan",
    "verdict end",
  ]);
  assert.deepEqual([differences[1]?.a, differences[1]?.b], ["dig", "climb"]);
  assert.deepEqual(
    [differences[3]?.a, differences[3]?.b],
    ["closing overturned → continuation.a", "closing → end"],
  );
});

test("a run that was stopped is compared as far as it came", async () => {
  const cwd = projectWith(agentFiles("a", STEPS));
  const around = { agent: "a", cwd, journal: createMemoryJournal(), clock: fakeClock(), env };
  const stop = new AbortController();
  const script = [says("initial.a", "next"), ...AGAIN];
  const observe: NonNullable<Parameters<typeof run>[0]["observe"]> = ({ led }) =>
    void (led !== undefined && stop.abort());
  const stopped = await run({ ...around, script, signal: stop.signal, observe });
  const whole = await run({ ...around, script });
  const { runs, same } = await compareRuns(around.journal, stopped.run!, whole.run!);
  assert.equal(same, false);
  assert.deepEqual(
    runs.map(({ outcome }) => outcome),
    ["interrupted", "completed"],
  );
});

test("where the ways part, what each went on with is told", async () => {
  const { told, differences } = await two(
    [says("initial.a", "repeat", { plan: "p" }), says("initial.a", "next", { plan: "p" })],
    [says("initial.a", "next", { plan: "p" })],
  );
  assert.deepEqual(told.slice(0, 3), [
    "answer initial.a@1 /next_action/action",
    "path initial.a@1",
    "path initial.a@1",
  ]);
  assert.deepEqual([differences[2]?.a, differences[2]?.b], [["initial.a@2"], []]);
});

// What may go.

test("what is old enough and not among the newest may go, and never what is being driven", async () => {
  const journal = createMemoryJournal();
  const bundle = parseBundle(readFileSync(join(JOURNALS, "gate.json"), "utf8"), "gate");
  const { at } = bundle.entries.at(-1)!;
  for (const [place, as] of ["r1", "r2", "r3"].entries())
    await importRun(journal, bundle, { as, cwd: "/", now: place });
  const handle = await journal.claim("r2");
  const idsOf = async (options: object) =>
    (await prunable(journal, { now: at + 1000, ...options })).map((one) => one.run);
  assert.deepEqual(await idsOf({}), ["r3", "r2", "r1"], "ended runs may go, whoever looks at them");
  assert.deepEqual(await idsOf({ keep: 1 }), ["r2", "r1"]);
  assert.deepEqual(await idsOf({ olderThanMs: 1000, keep: 2 }), ["r1"]);
  assert.deepEqual(await idsOf({ olderThanMs: 1001 }), []);
  const gone = await prune(journal, await prunable(journal, { now: at }));
  assert.deepEqual(
    gone.map(({ run: id }) => id),
    ["r3", "r1"],
    "the one that is claimed stays",
  );
  assert.ok(gone.every(({ bytes }) => bytes > 1000));
  await handle.release();
  assert.deepEqual(
    (await journal.list()).map(({ id }) => id),
    ["r2"],
  );
});

test("a run whose row or newest entry is damaged does not go by its age", async () => {
  const directory = projectWith({});
  const opened = () => openSqliteJournal({ directory, now: () => 1, ownerId: "a", pid: 1 });
  const bundle = parseBundle(readFileSync(join(JOURNALS, "gate.json"), "utf8"), "gate");
  const made = await opened();
  for (const as of ["r1", "r2", "r3"]) await importRun(made, bundle, { as, cwd: "/", now: 1 });
  await made.close();
  using db = new DatabaseSync(join(directory, "runs.db"));
  db.exec(`UPDATE run SET agent = 'other' WHERE id = 'r1';
    UPDATE event SET body = '' WHERE run = 2 AND seq = (SELECT max(seq) FROM event WHERE run = 2)`);
  await using stack = new AsyncDisposableStack();
  const journal = stack.adopt(await opened(), (one) => one.close());
  const now = bundle.entries.at(-1)!.at + 1e9;
  const idsOf = async (options: object) =>
    (await prunable(journal, { now, ...options })).map(({ run: id }) => id);
  assert.deepEqual(await idsOf({ olderThanMs: 1 }), ["r3"]);
  assert.equal((await particularsOf(journal, "r3")).damaged, undefined);
  assert.deepEqual(await idsOf({ keep: 1 }), ["r2", "r1"], "age does not decide here");
  for (const harm of ["UPDATE flow SET json = json || ' '", "PRAGMA foreign_keys = OFF; DELETE FROM flow"]) {
    db.exec(harm);
    const again = stack.adopt(await opened(), (one) => one.close());
    assert.equal((await particularsOf(again, "r3")).damaged, true, harm);
  }
});

test("what belongs to a run goes with it, and nothing else does", async () => {
  const journal = createMemoryJournal();
  const bundle = parseBundle(readFileSync(join(JOURNALS, "gate.json"), "utf8"), "gate");
  const { at } = bundle.entries.at(-1)!;
  const stateDir = join(projectWith({}), ".lockstep");
  const outside = projectWith({ "r3/file": "x".repeat(100) });
  const files = (id: string) => [`runs/${id}/claude/a/b.jsonl`, `answers/${id}/q.json`, `control/${id}.json`];
  const ids = ["r1", "r2", "r3", "r10"];
  writeFiles(stateDir, Object.fromEntries(ids.flatMap(files).map((path) => [path, "x".repeat(1000)])));
  for (const as of ["r1", "r2", "r3"]) await importRun(journal, bundle, { as, cwd: "/", now: 1 });
  const plain = await journal.size("r1");
  const handle = await journal.claim("r2");
  // A project that came with links for folders gets nobody's files removed.
  rmSync(join(stateDir, "answers"), { recursive: true });
  symlinkSync(outside, join(stateDir, "answers"));
  const rows = await prunable(journal, { now: at, stateDir });
  assert.equal(rows.find((row) => row.run === "r1")!.bytes, plain + 2000);
  await prune(journal, rows, stateDir);
  const left = readdirSync(stateDir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => relative(stateDir, join(one.parentPath, one.name)));
  const kept = ["r10", "r2"].flatMap((id) => files(id).filter((path) => !path.startsWith("answers")));
  assert.deepEqual(left.toSorted(), ["answers/r3/file", ...kept].toSorted());
  await handle.release();
});

// What is happening now.

/** Answers when it is told to. */
function slowModel(replies: readonly ScriptReply[]) {
  const waiting: (() => void)[] = [];
  let place = 0;
  const backend: Backend = {
    spec: { id: "slow", options: null },
    turn: async () => {
      await new Promise<void>((resolve) => void waiting.push(resolve));
      const { output } = replies[place++]!;
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      return { kind: "reply", text: "", calls: [], output, usage };
    },
  };
  return { backend, answer: () => waiting.shift()?.() };
}

const clock = {
  now: () => Date.now(),
  sleep: async (ms: number, signal: AbortSignal) =>
    await delay(ms, undefined, { signal }).catch(() => undefined),
};

async function driven(use: (around: { reader: Journal; cwd: string; answer: () => void }) => Promise<void>) {
  const cwd = projectWith(agentFiles("a", STEPS));
  const stateDir = join(cwd, ".lockstep");
  const [writer, reader] = [await openJournal(stateDir, clock), await openJournal(stateDir, clock)];
  const { backend, answer } = slowModel(SCRIPT);
  const stop = new AbortController();
  const running = run({ agent: "a", backend, cwd, journal: writer, signal: stop.signal });
  try {
    await until(async () => (await reader.list()).length > 0, "a run");
    await use({ reader, cwd, answer });
  } finally {
    stop.abort();
    for (let times = 0; times < 5; times++) {
      answer();
      await delay(1);
    }
    await running;
    await writer.close();
    await reader.close();
  }
}

test("a run that another journal drives is followed entry by entry, until it ends", async () => {
  await driven(async ({ reader, answer }) => {
    const seen: string[] = [];
    for await (const { entry, state } of followRun(reader, "@last", clock, new AbortController().signal)) {
      seen.push(`${entry.seq} ${entry.event.type} ${state.lanes[0]?.step ?? "end"}`);
      if (state.lanes[0]?.command.type === "ask") setTimeout(answer, 5);
    }
    assert.deepEqual(seen, [
      "1 run.started initial.a",
      "2 step.answered continuation.a",
      "3 step.answered continuation.a",
      "4 step.answered closure.a",
      "5 step.answered end",
      "6 run.ended end",
    ]);
  });
});

test("following ends with the signal, and at once where nobody drives the run", async () => {
  await driven(async ({ reader }) => {
    const stop = new AbortController();
    const seen: number[] = [];
    for await (const { entry } of followRun(reader, "@last", clock, stop.signal)) {
      seen.push(entry.seq);
      stop.abort();
    }
    assert.deepEqual(seen, [1]);
  });
  const journal = createMemoryJournal();
  const cwd = projectWith(agentFiles("a", STEPS));
  await run({ agent: "a", script: SCRIPT.slice(0, 1), cwd, journal });
  const halted = (await journal.read((await journal.list())[0]!.id)).slice(0, 2);
  await (await journal.create({ ...(await about(journal)), id: "cut" }, halted)).release();
  const seen: number[] = [];
  for await (const { entry } of followRun(journal, "cut", clock, new AbortController().signal))
    seen.push(entry.seq);
  assert.deepEqual(seen, [1, 2]);
});

async function about(journal: Journal) {
  const { agent, digest } = (await journal.list())[0]!;
  return { agent, digest, at: 0, flow: (await journal.flow(digest))! };
}

test("the list of runs is told at once and whenever it changes", async () => {
  await driven(async ({ reader, answer }) => {
    const stop = new AbortController();
    const seen = new Set<string>();
    for await (const [first] of followRuns(reader, clock, stop.signal)) {
      seen.add(`${first?.state} ${first?.step}`);
      if (first?.state === "completed") stop.abort();
      else answer();
    }
    assert.ok(seen.has("running continuation.a"), [...seen].join(", "));
    assert.ok(seen.has("completed closure.a"), [...seen].join(", "));
  });
});

test("a run that was resumed is followed through its stop", async () => {
  const journal = createMemoryJournal();
  const cwd = projectWith(agentFiles("a", STEPS));
  await run({ agent: "a", script: SCRIPT.slice(0, 1), cwd, journal });
  await resume({ run: "@last", script: SCRIPT.slice(1), cwd, journal });
  const seen: string[] = [];
  for await (const { entry } of followRun(journal, "@last", clock, new AbortController().signal))
    seen.push(entry.event.type);
  assert.equal(seen.filter((type) => type === "run.ended").length, 2);
});
