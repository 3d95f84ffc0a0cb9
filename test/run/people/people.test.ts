/** People in the loop, by the public door: who is asked about what, what is recorded, and how the run goes on. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import {
  createMemoryJournal,
  createScripted,
  compareRuns,
  exportRun,
  fork,
  load,
  readRun,
  replayRun,
  whatIf,
  resume,
  run,
  type Backend,
  type DriveOptions,
  type Entry,
  type Journal,
  type Result,
  type ScriptReply,
} from "../../../src/run/index.ts";
import { answerQuestion, answerWith, questionsOf } from "../../../src/run/people/answer.ts";
import { answerFile } from "../../../src/run/people/mail-files.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { agentFiles, projectWith } from "../project.ts";
import { machineFiles } from "../stage-project.ts";

type Told = Entry["event"] & { type: "step.told" };
type Ran = {
  readonly result: Result;
  readonly entries: readonly Entry[];
  readonly told: readonly string[];
  readonly folder: string;
  readonly journal: Journal;
  readonly again: (script: readonly ScriptReply[], options?: Partial<DriveOptions>) => Promise<Ran>;
};
type Start = {
  readonly files: { readonly [path: string]: string };
  readonly model: readonly ScriptReply[] | Backend;
  readonly options?: Partial<DriveOptions>;
};

async function start({ files, model, options = {} }: Start): Promise<Ran> {
  const folder = projectWith(files);
  const journal = createMemoryJournal();
  return await look(folder, journal, model, options, async (all) => await run({ agent: "m", ...all }));
}

async function look(
  folder: string,
  journal: Journal,
  model: Start["model"],
  options: Partial<DriveOptions>,
  go: (options: DriveOptions) => Promise<Result>,
): Promise<Ran> {
  const backend = "spec" in model ? model : createScripted(model);
  const env = { LOCKSTEP_TRUST: "all" };
  const result = await go({ cwd: folder, journal, clock: fakeClock(), env, backend, ...options });
  const id = result.run ?? "";
  const entries = id === "" ? [] : await journal.read(id);
  const told = entries
    .filter((entry): entry is Entry & { event: Told } => entry.event.type === "step.told")
    .map(({ event: { answer, by } }) => `${answer} by ${by}`);
  assert.equal((await replayRun(journal, id)).difference, null);
  return {
    result,
    entries,
    told,
    folder,
    journal,
    again: async (script, more = {}) =>
      await look(folder, journal, script, more, async (all) => await resume({ run: id, ...all })),
  };
}

/** Steps of which the first works in the mode that asks. */
const asking = (runner: object = {}, more: object = {}) =>
  agentFiles(
    "m",
    {
      "initial.a": {
        kind: "work",
        intents: ["next"],
        transitions: { next: { target: "closure.a" } },
        more: { permissionMode: "default", ...more },
      },
      "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    },
    { runner },
  );
const next: ScriptReply = { output: { stepId: "initial.a", next_action: { action: "next" } } };
const closing: ScriptReply = { output: { stepId: "closure.a", next_action: { action: "closing" } } };
const write = (file: string) => ({ name: "Write", input: { file_path: file, content: "x" } });
const bash = (command: string) => ({ name: "Bash", input: { command } });
const calls = (...list: NonNullable<ScriptReply["calls"]>): ScriptReply => ({ calls: list });
const isThere = ({ folder }: Ran, file: string) => existsSync(join(folder, file));
const letter = ({ folder, result }: Ran, id: string) =>
  join(folder, ".lockstep/answers", result.run ?? "", `${id}.json`);

function post(ran: Ran, id: string, text: string): void {
  mkdirSync(dirname(letter(ran, id)), { recursive: true });
  writeFileSync(letter(ran, id), text);
}

/** Answers as told, and keeps the questions. */
function answering(...answers: readonly (string | null)[]) {
  const heard: string[] = [];
  const ask = (question: string) => Promise.resolve(answers[heard.push(question) - 1] ?? null);
  return { heard, ask };
}

type Row = {
  readonly name: string;
  readonly options: Partial<DriveOptions>;
  readonly isWritten: boolean;
  readonly told: readonly string[];
  readonly code?: string;
};

const ROWS: readonly Row[] = [
  { name: "allow", options: { ask: answering("allow").ask }, isWritten: true, told: ["allow by terminal"] },
  { name: "deny", options: { ask: answering("deny").ask }, isWritten: false, told: ["deny by terminal"] },
  {
    name: "stop",
    options: { ask: answering("stop").ask },
    isWritten: false,
    told: ["stop by terminal"],
    code: "PERMISSION_DENIED",
  },
  { name: "nobody at all", options: {}, isWritten: false, told: [] },
  { name: "a setting", options: { onPermission: "allow" }, isWritten: true, told: [] },
  {
    name: "somebody who goes away",
    options: { ask: answering(null).ask },
    isWritten: false,
    told: ["null by headless"],
  },
];

for (const { name, options, isWritten, told, code = null } of ROWS) {
  test(`a tool that the mode asks about: ${name}`, async () => {
    const ran = await start({
      files: asking(),
      model: [calls(write("out.txt")), next, closing],
      options,
    });
    assert.equal(ran.result.code, code, ran.result.reason);
    assert.equal(isThere(ran, "out.txt"), isWritten);
    assert.deepEqual(ran.told, told);
  });
}

test("allowed for the run: the same tool is not asked about again, another command is", async () => {
  const { ask, heard } = answering("allow-run", "allow-run", "deny");
  const model = [
    calls(write("one.txt"), write("two.txt")),
    calls(bash("touch three.txt"), bash("touch three.txt")),
    calls(bash("touch four.txt")),
    next,
    closing,
  ];
  const ran = await start({ files: asking(), model, options: { ask } });
  assert.equal(ran.result.outcome, "completed", ran.result.reason);
  assert.equal(heard.length, 3);
  assert.match(heard[1]!, /for this run would be: Bash\(touch three\.txt\)/);
  const made = ["one.txt", "two.txt", "three.txt", "four.txt"].map((file) => isThere(ran, file));
  assert.deepEqual(made, [true, true, true, false]);
});

for (const [what, first, second] of [
  ["a tool", write("one.txt"), write("two.txt")],
  ["a command", bash("touch one.txt"), bash("touch one.txt; touch two.txt")],
  ["the very same command", bash("touch one.txt"), bash("touch one.txt")],
] as const) {
  test(`allowed once: ${what} is asked about again`, async () => {
    const { ask, heard } = answering("allow", "deny");
    const model = [calls(first), calls(second), next, closing];
    const ran = await start({ files: asking(), model, options: { ask } });
    assert.equal(ran.result.outcome, "completed", ran.result.reason);
    assert.deepEqual([heard.length, ran.told], [2, ["allow by terminal", "deny by terminal"]]);
    assert.deepEqual([isThere(ran, "one.txt"), isThere(ran, "two.txt")], [true, false]);
  });
}

for (const [what, call] of [
  ["a command that writes to GitHub", bash("gh issue close 3")],
  ["a protected file", write(".git/config")],
  ["a file outside", write("../out.txt")],
  ["a tool of another kind of step", { name: "githubIssueClose", input: {} }],
] as const) {
  test(`nobody can allow ${what}: nobody is asked`, async () => {
    const { ask, heard } = answering("allow");
    const model = [calls(call), next, closing];
    const ran = await start({ files: asking(), model, options: { ask } });
    assert.deepEqual([ran.result.outcome, heard], ["completed", []], ran.result.reason);
    assert.match(JSON.stringify(ran.entries), /"denied":|"ok":false/);
  });
}

test("plan asks nobody, whoever is there", async () => {
  const { ask, heard } = answering("allow");
  const model = [calls(write("out.txt")), next, closing];
  const ran = await start({ files: asking({}, { permissionMode: "plan" }), model, options: { ask } });
  assert.deepEqual([heard, isThere(ran, "out.txt")], [[], false]);
});

test("a run that waits has its question in the result, and goes on with a file", async () => {
  const ran = await start({
    files: asking(),
    model: [calls(write("out.txt"))],
    options: { onPermission: "halt" },
  });
  const { result } = ran;
  assert.deepEqual([result.outcome, result.code, result.exitCode], ["waiting", "PermissionRequired", 5]);
  const [question, ...others] = result.questions;
  assert.ok(question !== undefined && others.length === 0);
  assert.deepEqual(
    [question.step, question.visit, question.choices],
    ["initial.a", 1, ["allow", "allow-run", "deny", "stop"]],
  );
  assert.equal(question.answer, `lockstep answer ${result.run} ${question.id} allow`);

  for (const bad of ["{", "[]", '{"answer":"maybe"}', '{"answer":"allow","more":1}', '{"answer":3}']) {
    post(ran, question.id, bad);
    const heard: string[] = [];
    const still = await ran.again([], { notify: (text) => heard.push(text) });
    assert.deepEqual([still.result.exitCode, heard.length], [5, 1], bad);
    assert.ok(still.result.warnings.some((warning) => warning.includes("is not a valid answer")));
    assert.ok(existsSync(letter(ran, question.id)));
  }

  post(ran, question.id, '{"answer":"allow"}');
  const whole = await ran.again([next, closing]);
  assert.equal(whole.result.outcome, "completed", whole.result.reason);
  assert.deepEqual([whole.told, isThere(ran, "out.txt")], [["allow by file"], true]);
  assert.deepEqual(whole.result.questions, []);
  const box = dirname(letter(ran, question.id));
  assert.deepEqual(readdirSync(box), []);
});

for (const by of ["answer", "studio"] as const) {
  test(`the journal says that the answer came by ${by}`, async () => {
    const ran = await start({
      files: asking(),
      model: [calls(write("out.txt"))],
      options: { onPermission: "halt" },
    });
    const stateDir = join(ran.folder, ".lockstep");
    const asked = await questionsOf(ran.journal, ran.result.run!);
    await answerQuestion(stateDir, asked, asked.questions[0]!, "allow", 0, { LOCKSTEP_TRUST: "all" }, by);
    const whole = await ran.again([next, closing]);
    assert.deepEqual([whole.told, isThere(ran, "out.txt")], [[`allow by ${by}`], true]);
  });
}

test("a question that was open for too long is settled as if nobody had been there", async () => {
  const ran = await start({
    files: asking({ questions: { expireAfter: "1h" } }),
    model: [calls(write("out.txt"))],
    options: { onPermission: "halt" },
  });
  const [question] = ran.result.questions;
  assert.ok(question?.expiresAt != null);
  const early = await ran.again([]);
  assert.equal(early.result.exitCode, 5);
  const late = Date.parse(question.expiresAt) + 1;
  // It came after its time, so it does not count.
  post(ran, question.id, '{"answer":"allow"}');
  const whole = await ran.again([{ ...next, saw: ["nobody answered in time"] }, closing], {
    clock: { ...fakeClock(), now: () => late },
  });
  assert.equal(whole.result.outcome, "completed", whole.result.reason);
  assert.deepEqual([whole.told, isThere(ran, "out.txt")], [["null by expired"], false]);
});

test("--on-permission on resume settles what was left open", async () => {
  const ran = await start({
    files: asking(),
    model: [calls(write("out.txt"))],
    options: { onPermission: "halt" },
  });
  const whole = await ran.again([next, closing], { onPermission: "deny" });
  assert.deepEqual([whole.result.outcome, whole.told], ["completed", ["null by headless"]]);
});

const QUESTION = {
  name: "AskUserQuestion",
  input: { questions: [{ question: "Which colour?", options: [{ label: "red" }, { label: "blue" }] }] },
};
for (const [who, runner, ask, sees] of [
  ["the standing answer, unless the agent says otherwise", {}, answering("red").ask, "my own words"],
  ["a person", { questions: { askUser: "person" } }, answering("blue").ask, "blue"],
  [
    "a person in words of their own",
    { questions: { askUser: "person" } },
    answering("a dark one").ask,
    "dark",
  ],
  // Only an answer about a permission stops a run.
  ["a person who says stop", { questions: { askUser: "person" } }, answering("stop").ask, "stop"],
  [
    "a person who says allow-run",
    { questions: { askUser: "person" } },
    answering("allow-run").ask,
    "allow-run",
  ],
  [
    "the standing answer, where nobody is there",
    { questions: { askUser: "person" } },
    undefined,
    "my own words",
  ],
] as const) {
  test(`a question of the model is answered by ${who}`, async () => {
    const ran = await start({
      files: asking({
        flow: { systemPromptPath: "prompts/system.md", askUserAutoResponse: "In my own words." },
        ...runner,
      }),
      model: [calls(QUESTION), next, closing],
      options: ask === undefined ? {} : { ask },
    });
    assert.equal(ran.result.outcome, "completed", ran.result.reason);
    const heard = ran.entries.flatMap(({ event }) => (event.type === "step.called" ? event.results : []));
    assert.match(heard[0]?.content ?? "", new RegExp(sees, "i"));
  });
}

test("what files say about people is in the flow", async () => {
  const runner = {
    questions: { askUser: "person", expireAfter: "2h" },
    watch: { repeats: 4, inactivityMs: 1000 },
    ifInterrupted: "ask",
  };
  const cwd = projectWith(asking(runner, { ifInterrupted: "retry" }));
  const { flow, problems } = await load("m", { cwd });
  assert.ok(
    problems.every(({ severity }) => severity === "warning"),
    JSON.stringify(problems),
  );
  assert.deepEqual(flow?.settings.questions, { askUser: "person", expireMs: 7_200_000 });
  assert.deepEqual(flow?.settings.watch, { repeats: 4, inactivityMs: 1000 });
  const policies = Object.values(flow?.steps ?? {}).map(({ ifInterrupted = "retry" }) => ifInterrupted);
  assert.deepEqual(policies, ["retry", "ask"]);
  const stages = machineFiles({ stages: { a: { ifInterrupted: "fail" } } });
  const machine = await load("m", { cwd: projectWith(stages) });
  assert.equal(machine.flow?.steps.a?.ifInterrupted, "fail");
  const wrong = { questions: { expireAfter: "soon" }, watch: { repeats: 1 }, ifInterrupted: "perhaps" };
  const bad = await load("m", { cwd: projectWith(asking(wrong)) });
  const pointers = new Set(bad.problems.map(({ pointer }) => pointer));
  for (const key of ["questions/expireAfter", "watch/repeats", "ifInterrupted"])
    assert.ok(pointers.has(`/runner/${key}`), key);
});

// Afterwards.

test("a run in which people were asked can be told, forked, compared and handed on like any other", async () => {
  const ran = await start({
    files: asking(),
    model: [calls(write("out.txt"))],
    options: { onPermission: "halt" },
  });
  post(ran, ran.result.questions[0]?.id ?? "", '{"answer":"allow"}');
  const whole = await ran.again([next, closing]);
  const { journal, folder: cwd } = ran;
  const { run: id } = whole.result;
  assert.ok(id !== null);
  const { same, changed, stuck } = await whatIf(journal, await load("m", { cwd }), [id]);
  assert.deepEqual([same, changed, stuck], [1, 0, 0]);
  const forked = await fork({
    run: id,
    at: "closure.a",
    journal,
    cwd,
    backend: createScripted([closing]),
    env: { LOCKSTEP_TRUST: "all" },
  });
  assert.equal(forked.outcome, "completed", forked.reason);
  assert.ok((await compareRuns(journal, id, forked.run ?? "")).same);
  const { bundle } = await exportRun(journal, id, { redact: true });
  assert.doesNotMatch(JSON.stringify(bundle), /wants to call|out\.txt/);
});

test("a run that waits since before questions had names can be answered", async () => {
  const ran = await start({
    files: asking(),
    model: [calls(write("out.txt"))],
    options: { onPermission: "halt" },
  });
  const at = { step: "initial.a", visit: 1 };
  const [started, said] = ran.entries;
  const why = "Somebody has to decide.";
  const code = "PermissionRequired";
  const older: Entry[] = [
    { ...started!, event: { ...started!.event, run: "older" } as Entry["event"] },
    said!,
    { seq: 3, at: 3, event: { type: "step.suspended", ...at, code, why, choices: ["allow", "deny"] } },
    {
      seq: 4,
      at: 4,
      event: { type: "run.ended", verdict: { outcome: "waiting", code, reason: why, step: at.step } },
    },
  ];
  const { row, flow } = await readRun(ran.journal, "@last");
  const handle = await ran.journal.create({ ...row, id: "older", at: 5, flow }, older);
  await handle.release();
  assert.equal((await replayRun(ran.journal, "older")).difference, null);
  const { questions, isNameless } = await questionsOf(ran.journal, "older");
  assert.deepEqual([isNameless, questions.length, questions[0]?.question], [true, 1, why]);
  const whole = await resume({
    run: "older",
    journal: ran.journal,
    cwd: ran.folder,
    env: {},
    backend: createScripted([next, closing]),
    onPermission: "halt",
    ask: answerWith("allow"),
  });
  assert.deepEqual([whole.outcome, isThere(ran, "out.txt")], ["completed", true], whole.reason);
});

test("no name in a journal leads out of the folder of answers", () => {
  assert.equal(answerFile("/state", "..", "../../x"), "/state/answers/__/______x.json");
});

// Siblings.

test("siblings wait each for their own answer, and the others go on", async () => {
  const of = (step: string, reply: ScriptReply): ScriptReply => ({ ...reply, step });
  const done: ScriptReply = { output: {} };
  const ran = await start({
    files: machineFiles({
      stages: { s: { next: { parallel: ["a", "b", "c"], join: "meet" } }, a: {}, b: {}, c: {}, meet: {} },
    }),
    model: [
      of("s", done),
      of("a", calls(write("a.txt"))),
      of("b", calls(write("b.txt"))),
      of("c", { text: "hm" }),
      of("c", done),
    ],
    options: { onPermission: "halt" },
  });
  const { questions } = ran.result;
  assert.deepEqual(questions.map(({ step }) => step).toSorted(), ["a", "b"]);
  assert.ok(ran.result.path.some(({ step, label }) => step === "c" && label === "ok"));
  const idOf = (step: string) => questions.find((question) => question.step === step)?.id ?? "";

  post(ran, idOf("b"), '{"answer":"allow"}');
  const half = await ran.again([of("b", done)]);
  assert.deepEqual(
    [half.result.outcome, half.result.questions.map(({ id }) => id)],
    ["waiting", [idOf("a")]],
    half.result.reason,
  );
  assert.deepEqual([isThere(ran, "a.txt"), isThere(ran, "b.txt")], [false, true]);
  assert.ok(half.result.path.some(({ step }) => step === "b"));

  post(ran, idOf("a"), '{"answer":"deny"}');
  const whole = await ran.again([of("a", done), of("meet", done)]);
  assert.equal(whole.result.outcome, "completed", whole.result.reason);
  assert.equal(isThere(ran, "a.txt"), false);
  assert.deepEqual(whole.told.toSorted(), ["allow by file", "deny by file"]);
});

test("a sibling that fails takes with it whoever waits", async () => {
  const of = (step: string, reply: ScriptReply): ScriptReply => ({ ...reply, step });
  const ran = await start({
    files: machineFiles({
      stages: { s: { next: { parallel: ["a", "b"], join: "meet" } }, a: {}, b: { turnCap: 2 }, meet: {} },
    }),
    model: [
      of("s", { output: {} }),
      of("a", calls(write("a.txt"))),
      of("b", { text: "hm" }),
      of("b", { text: "hm" }),
    ],
    options: { onPermission: "halt" },
  });
  const { code, resumable, questions } = ran.result;
  assert.deepEqual([code, resumable, questions], ["ParallelSiblingFailure", false, []], ran.result.reason);
});

// Agents with a loop of their own.

for (const [who, options, allows] of [
  ["somebody at the terminal says yes", { ask: answering("allow").ask }, true],
  ["somebody at the terminal says no", { ask: answering("deny").ask }, false],
  ["nobody is there", {}, false],
  ["nobody is there, and the run would wait", { onPermission: "halt" }, false],
  ["a setting says yes", { onPermission: "allow" }, true],
] as const) {
  test(`within a query of an agent: ${who}`, async () => {
    const allowances: boolean[] = [];
    const answers = [next.output, closing.output];
    const backend: Backend = {
      spec: { id: "agent", options: null },
      run: async ({ gate }) => {
        allowances.push((await gate({ name: "Bash", input: { command: "ls" } }, null)).allow);
        allowances.push((await gate({ name: "Bash", input: { command: "gh issue close 3" } }, null)).allow);
        const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
        return { kind: "reply", text: "", calls: [], output: answers.shift(), usage };
      },
    };
    const ran = await start({ files: asking(), model: backend, options });
    assert.equal(ran.result.outcome, "completed", ran.result.reason);
    // The closing step is in another mode.
    assert.deepEqual(allowances, [allows, false, true, false]);
    const [first] = ran.entries.flatMap(({ event }) =>
      event.type === "step.answered" && event.reply.kind === "said" ? [event.reply.asked] : [],
    );
    const isAsked = "ask" in options || ("onPermission" in options && options.onPermission === "halt");
    assert.equal(first?.length ?? 0, isAsked ? 1 : 0);
  });
}

for (const [onPermission, isMade] of [
  [undefined, false],
  ["allow", true],
] as const)
  test(`a permission in a record of this machine is not obeyed; the option of the caller is: ${onPermission}`, async () => {
    const stop = new AbortController();
    const begun = await start({
      files: asking(),
      model: [],
      options: { signal: stop.signal, observe: () => stop.abort() },
    });
    assert.equal(begun.result.outcome, "interrupted");
    const [first, ...others] = begun.entries;
    const people = { onPermission: "allow", sandbox: "off" };
    const [row] = await begun.journal.rows([begun.result.run!]);
    const flow = await begun.journal.flow(row!.digest);
    const planted = createMemoryJournal();
    const { id, agent, digest } = row!;
    const entries = [{ ...first!, event: { ...first!.event, people } as Entry["event"] }, ...others];
    await (await planted.create({ id, agent, at: first!.at, digest, flow: flow! }, entries)).release();
    const options = onPermission === undefined ? {} : { onPermission };
    const model = [calls(write("a.txt")), next, closing];
    const ran = await look(
      begun.folder,
      planted,
      model,
      options,
      async (all) => await resume({ run: id, ...all }),
    );
    assert.equal(ran.result.outcome, "completed", ran.result.reason);
    assert.equal(isThere(ran, "a.txt"), isMade);
  });
