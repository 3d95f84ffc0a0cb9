/** Log files and logs of runs, through the public door. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  createMemoryJournal,
  logs,
  resume,
  run,
  show,
  type DriveOptions,
  type Journal,
  type LogLine,
  type ScriptReply,
} from "../../../src/run/index.ts";
import { momentsOf } from "../../../src/run/watch/follow.ts";
import { formatLine, LEVELS, toLine } from "../../../src/tell/log-line.ts";
import { createTranscript, type Utterance } from "../../../src/tell/transcript.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { homeBeside, agentFiles, projectWith, type StepFile, PROVEN } from "../project.ts";
import { until } from "../../until.ts";

const STEPS: { readonly [id: string]: StepFile } = {
  "initial.a": {
    kind: "work",
    intents: ["next", "repeat"],
    transitions: { next: { target: "closure.a" }, repeat: { target: "initial.a" } },
  },
  "closure.a": {
    kind: "closure",
    intents: ["closing", "repeat"],
    transitions: { closing: { target: null }, repeat: { target: "initial.a" } },
  },
};

type Change = {
  readonly logging?: object | null;
  readonly schemas?: object;
  readonly registry?: object;
  readonly tools?: readonly string[];
};

function project({
  logging = { directory: "logs" },
  schemas,
  registry = {},
  tools = ["*"],
}: Change = {}): string {
  const runner = {
    flow: { systemPromptPath: "prompts/system.md", ...(schemas !== undefined && { schemas }) },
    boundaries: { allowedTools: tools, permissionMode: "acceptEdits" },
    ...(logging !== null && { logging }),
  };
  return projectWith({
    ...agentFiles("a", STEPS, { runner, registry }),
    ".agent/a/prompts/steps/retry/a/f_failed.md": "Mend it.",
  });
}

const say = (action: string, reason = ""): ScriptReply => ({
  output: { stepId: "x", next_action: { action, reason } },
});
const STRAIGHT = [say("next"), say("closing", "all done")];

async function go(cwd: string, script: readonly ScriptReply[] = STRAIGHT, more: DriveOptions = {}) {
  const journal = createMemoryJournal();
  const env = { PATH: process.env.PATH, HOME: homeBeside(), LOCKSTEP_TRUST: "all" };
  const result = await run({ agent: "a", cwd, journal, env, clock: fakeClock(), script, ...more });
  return { ...result, journal };
}

function filesIn(folder: string): readonly string[] {
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name !== ".gitignore")
        .toSorted()
    : [];
}

function linesOf(folder: string): readonly LogLine[] {
  const [name = ""] = filesIn(folder);
  const text = readFileSync(join(folder, name), "utf8");
  assert.ok(text.endsWith("\n"));
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as LogLine);
}

async function fromJournal(journal: Journal): Promise<readonly LogLine[]> {
  return await Array.fromAsync(logs(journal, "@last"));
}

test("a registry flow is logged in the words by which its logs are searched", async () => {
  const cwd = project({ registry: PROVEN });
  const proof: ScriptReply = { calls: [{ name: "Write", input: { file_path: "proof", content: "" } }] };
  const outside: ScriptReply = {
    calls: [{ name: "Write", input: { file_path: ".git/config", content: "" } }],
  };
  const { success, journal, warnings } = await go(cwd, [
    say("next", "clear"),
    say("closing"),
    outside,
    proof,
    { text: "no object" },
    say("next"),
    say("closing", "proved"),
  ]);
  assert.ok(success, warnings.join("\n"));
  const lines = linesOf(join(cwd, "logs"));
  assert.deepEqual(lines, await fromJournal(journal));
  const told = lines
    .filter(({ level }) => level !== "debug")
    .map(({ level, message }) => `${level} ${message}`);
  const visit = (n: number, more: readonly string[] = []) => [
    `info === Iteration ${n} ===`,
    "info [FlowLoop] Enter",
    ...more,
  ];
  const work = [
    'info [ToolPolicy] Step "initial.a" (work): * in mode acceptEdits',
    "info [StructuredOutput] Using schema for step: initial.a",
  ];
  const close = [
    "info [CompletionLoop] Iteration enter",
    "info Prompt resolved: closure.a",
    'info [ClosureAdaptation] Resolved closure prompt for step "closure.a"',
    'info [ToolPolicy] Step "closure.a" (closure): * in mode acceptEdits',
    "info [StructuredOutput] Using schema for step: closure.a",
  ];
  const answer = (intent: string) => [
    "info [StructuredOutput] Got structured output from result",
    `info [StepFlow] Interpreted intent: ${intent}`,
  ];
  const corrected = (step: string) => `warn [StepFlow] stepId "x" corrected to "${step}"`;
  assert.deepEqual(
    told.filter((line) => !/denied|Denied|Sent back/.test(line)),
    [
      "info Run started: a",
      ...visit(1, ["info Prompt resolved: initial.a", ...work]),
      ...answer("next"),
      corrected("initial.a"),
      "info [StepFlow] Routing decision: initial.a -> closure.a",
      ...visit(2, close),
      ...answer("closing"),
      "info [CompletionLoop] Enter",
      "warn [CompletionLoop] Validation result",
      corrected("closure.a"),
      "info [CompletionLoop] Exit",
      "info [CompletionLoop] Iteration exit",
      "warn [StepFlow] Routing decision: closure.a -> initial.a",
      ...visit(3, ["info Prompt resolved: initial.a", ...work]),
      ...answer("next"),
      corrected("initial.a"),
      "info [StepFlow] Routing decision: initial.a -> closure.a",
      ...visit(4, close),
      ...answer("closing"),
      "info [CompletionLoop] Enter",
      "info [CompletionLoop] Validation result",
      corrected("closure.a"),
      "info [BoundaryHook] Invoked for closure step: closure.a",
      "info [CompletionLoop] Exit",
      "info [CompletionLoop] Iteration exit",
      "info [StepFlow] Routing decision: closure.a -> end",
      'info Agent completed after 4 iteration(s): Step "closure.a" ended the run: proved',
    ],
  );
  assert.ok(
    told.some((line) => line.startsWith("warn [ToolPolicy] Denied Write: ")),
    told.join("\n"),
  );
  assert.ok(told.includes("warn [StructuredOutput] Sent back: the answer holds no JSON object"));
  const retry = lines.find(({ metadata }) => metadata?.retry === true);
  assert.equal(retry?.metadata?.promptPath, ".agent/a/prompts/steps/retry/a/f_failed.md");
});

const STARTED = "a-2023-11-14T22-13-20-000Z";

test("the file is named by agent, start and run, and keeps itself out of git", async () => {
  const cwd = project();
  const first = await go(cwd);
  assert.deepEqual(filesIn(join(cwd, "logs")), [`${STARTED}-${first.run}.jsonl`]);
  assert.equal(readFileSync(join(cwd, "logs/.gitignore"), "utf8"), "*\n");
});

test("runs that begin in the same moment each write a file of their own", async () => {
  const cwd = project();
  const all = await Promise.all(Array.from({ length: 20 }, async () => await go(cwd)));
  assert.deepEqual(filesIn(join(cwd, "logs")), all.map(({ run: id }) => `${STARTED}-${id}.jsonl`).toSorted());
  for (const { run: id } of all) {
    const text = readFileSync(join(cwd, `logs/${STARTED}-${id}.jsonl`), "utf8");
    const named = text.split("\n").flatMap((line) => /"run":"(\w+)"/.exec(line)?.[1] ?? []);
    assert.deepEqual(new Set(named), new Set([id]));
    assert.match(text, /Agent completed/);
  }
});

test("a folder that was there is left as it is", async () => {
  const cwd = project();
  mkdirSync(join(cwd, "logs"));
  await go(cwd);
  assert.ok(!existsSync(join(cwd, "logs/.gitignore")));
});

test("text logs have one line for each message", async () => {
  const cwd = project({ logging: { directory: "tmp/logs/a", format: "text" } });
  const { journal, run: id } = await go(cwd);
  const folder = join(cwd, "tmp/logs/a");
  assert.deepEqual(filesIn(folder), [`${STARTED}-${id}.log`]);
  const text = readFileSync(join(folder, filesIn(folder)[0]!), "utf8");
  assert.match(text, /^\[2023-11-14T22:13:20\.000Z\] \[INFO\] Run started: a \{"run":"\w+"/);
  assert.match(text, /^\[\S+\] \[INFO\] === Iteration 2 === \{/m);
  assert.deepEqual(
    text.trimEnd().split("\n"),
    (await fromJournal(journal)).map((line) => formatLine(line, "text")),
  );
});

test("a file has the lines of its level and above, after the line that names the run", async () => {
  for (const level of LEVELS) {
    const cwd = project({ logging: { level } });
    const first = await go(cwd, [say("next")]);
    const read = () => readFileSync(join(cwd, `logs/${STARTED}-${first.run}.jsonl`), "utf8").trimEnd();
    const least = LEVELS.indexOf(level);
    const expected = async () => {
      const [head, ...lines] = await fromJournal(first.journal);
      const kept = lines.filter((line) => LEVELS.indexOf(line.level) >= least);
      return [head!, ...kept].map((line) => formatLine(line, "jsonl")).join("\n");
    };
    assert.equal(read(), await expected(), level);
    assert.equal(read().includes('"level":"debug"'), level === "debug");
    assert.ok(read().includes('"level":"error"'), level);
    const around = { cwd, journal: first.journal, clock: fakeClock() };
    assert.ok((await resume({ run: "@last", ...around, script: [say("closing")] })).success);
    assert.equal(read(), await expected(), `${level}, resumed`);
  }
});

test("without runner.logging nothing is written, and --log writes wherever it is told to", async () => {
  const cwd = project({ logging: null });
  await go(cwd);
  assert.ok(!existsSync(join(cwd, "logs")));
  const elsewhere = join(projectWith({}), "deep/logs");
  await go(cwd, STRAIGHT, { log: elsewhere });
  assert.equal(filesIn(elsewhere).length, 1);
});

test("the oldest files of the same agent make room, and no other file is touched", async () => {
  const cwd = project({ logging: { directory: "logs", maxFiles: 2 } });
  const folder = join(cwd, "logs");
  mkdirSync(join(folder, "a-2019-01-01T00-00-00-000Z.jsonl"), { recursive: true });
  const ours = [
    "a-2020-01-01T00-00-00-000Z.jsonl",
    "a-2021-01-01T00-00-00-000Z-0123456789.log",
    "a-2021-01-01T00-00-00-000Z.log",
    "a-2022-01-01T00-00-00-000Z-0123456789.jsonl",
  ];
  const others = [
    "a-2020-01-01.jsonl",
    "a-2020-01-01T00-00-00-000Z.jsonl.bak",
    "a-2020-01-01T00-00-00-000Z-notes.jsonl",
    "a-2020-01-01T00-00-00-000Z-0123456789-notes.jsonl",
    "a-b-2020-01-01T00-00-00-000Z.jsonl",
    "aa-2020-01-01T00-00-00-000Z.jsonl",
    "notes.txt",
    "A-2020-01-01T00-00-00-000Z.jsonl",
  ];
  for (const name of [...ours, ...others]) writeFileSync(join(folder, name), "");
  symlinkSync(join(folder, "notes.txt"), join(folder, "a-2018-01-01T00-00-00-000Z.jsonl"));
  // The newest by its name, whatever was done to it since.
  utimesSync(join(folder, ours[3]!), 1, 1);
  const { warnings, run: id } = await go(cwd);
  assert.ok(!warnings.some((text) => /log/.test(text)), warnings.join("\n"));
  assert.deepEqual(
    filesIn(folder),
    [
      ...others,
      ours[3]!,
      "a-2018-01-01T00-00-00-000Z.jsonl",
      "a-2019-01-01T00-00-00-000Z.jsonl",
      `${STARTED}-${id}.jsonl`,
    ].toSorted(),
  );
});

test("of runs that begin together no more files are kept than the agent says", async () => {
  const cwd = project({ logging: { directory: "logs", maxFiles: 5 } });
  const all = await Promise.all(Array.from({ length: 20 }, async () => await go(cwd)));
  const kept = filesIn(join(cwd, "logs"));
  assert.equal(kept.length, 5);
  assert.ok(kept.every((name) => all.some(({ run: id }) => name === `${STARTED}-${id}.jsonl`)));
});

test("a run that goes on uses the file that an earlier version named by the time alone", async () => {
  const cwd = project();
  const folder = join(cwd, "logs");
  const [other, first] = [await go(cwd), await go(cwd, [say("next")])];
  const old = [`${STARTED}.jsonl`, "a-2023-11-14T22-13-20-001Z.jsonl"];
  for (const [place, { run: id }] of [other, first].entries())
    renameSync(join(folder, `${STARTED}-${id}.jsonl`), join(folder, old[place]!));
  const before = readFileSync(join(folder, old[0]!), "utf8");
  const { journal } = first;
  const again = await resume({ run: "@last", cwd, journal, clock: fakeClock(), script: [say("closing")] });
  assert.ok(again.success);
  assert.deepEqual(filesIn(folder), old);
  assert.equal(readFileSync(join(folder, old[0]!), "utf8"), before);
  assert.match(readFileSync(join(folder, old[1]!), "utf8"), /Agent completed/);
});

test("a run that goes on has one file, with everything in it once", async () => {
  const cwd = project();
  const first = await go(cwd, [say("next")]);
  assert.equal(first.code, "SCRIPT_EXHAUSTED");
  const folder = join(cwd, "logs");
  const [name = ""] = filesIn(folder);
  // What a killed process left behind is half a line.
  writeFileSync(join(folder, name), readFileSync(join(folder, name), "utf8").slice(0, -20));
  const again = await resume({
    run: "@last",
    cwd,
    journal: first.journal,
    clock: fakeClock(),
    script: [say("closing")],
  });
  assert.ok(again.success);
  assert.deepEqual(filesIn(folder), [name]);
  const lines = linesOf(folder);
  assert.deepEqual(lines, await fromJournal(first.journal));
  const heads = lines.map(({ message }) => message);
  assert.equal(heads.filter((head) => head === "=== Iteration 2 ===").length, 1);
  assert.ok(heads.some((head) => head.startsWith("Run resumed: ")));
});

test("a file in the place of the log of a run is not overwritten", async () => {
  const cwd = project();
  const first = await go(cwd, [say("next")]);
  const path = join(cwd, `logs/${STARTED}-${first.run}.jsonl`);
  writeFileSync(path, "not a log\n");
  const { journal } = first;
  const again = await resume({ run: "@last", cwd, journal, clock: fakeClock(), script: [say("closing")] });
  assert.ok(again.success);
  assert.equal(readFileSync(path, "utf8"), "not a log\n");
  assert.match(
    again.warnings.join("\n"),
    /log file could not be written: .* exists and is not a log of this run/,
  );
});

type Broken = readonly [what: string, logging: object, prepare: (cwd: string) => void, warning: RegExp];
const BROKEN: readonly Broken[] = [
  [
    "a file in the place of the folder",
    { directory: "logs" },
    (cwd) => writeFileSync(join(cwd, "logs"), ""),
    /log file could not be written: "logs" is a link or not a folder/,
  ],
  [
    "a link out of the project",
    { directory: "logs/deep" },
    (cwd) => symlinkSync(projectWith({}), join(cwd, "logs")),
    /log file could not be written: logs\/deep leads out of the project/,
  ],
  ["a way out of the project", { directory: "../logs" }, () => undefined, /runner\.logging has no effect/],
  ["an absolute folder", { directory: "/tmp/never" }, () => undefined, /runner\.logging has no effect/],
];
for (const [what, logging, prepare, warning] of BROKEN) {
  test(`${what} is a warning, and the run goes on`, async () => {
    const cwd = project({ logging });
    prepare(cwd);
    const { success, warnings } = await go(cwd);
    assert.ok(success);
    assert.equal(warnings.filter((text) => warning.test(text)).length, 1, warnings.join("\n"));
    assert.deepEqual(filesIn(join(cwd, "logs/deep")), []);
  });
}

const HOSTILE = `line one\nline two\r\u001b[31mred\u001b[0m \u0007\u2028 \u202egnp.exe \u0000 "quoted" \\n`;

const [LONG, LONGER] = ["x".repeat(2000), "x".repeat(2001)];
const many = (count: number) => Array.from({ length: count }, (_, place) => place);
const CUT = `${LONG}… (2001 characters)`;
for (const [name, given, kept] of [
  ["a text that fits", { a: LONG }, { a: LONG }],
  ["a text that is too long", { a: LONGER, b: 1 }, { a: CUT, b: 1 }],
  ["one in a list in an object", { a: { b: [null, LONGER] } }, { a: { b: [null, CUT] } }],
  ["a name that is too long", { [LONGER]: true }, { [CUT]: true }],
  ["a list that fits", { a: many(100) }, { a: many(100) }],
  ["a list that is too long", { a: many(101) }, { a: many(100) }],
  [
    "too many members",
    Object.fromEntries(many(101).map((place) => [`m${place}`, place])),
    Object.fromEntries(many(100).map((place) => [`m${place}`, place])),
  ],
] as const) {
  test(`what a line tells is cut where it is too much: ${name}`, () => {
    assert.deepEqual(toLine("", ["info", "m", given]).metadata, kept);
    assert.deepEqual(toLine("", ["info", "m", given, "whole"]).metadata, given);
  });
}

for (const format of ["jsonl", "text"]) {
  test(`whatever a model says is one line of a ${format} log, without orders to the terminal`, async () => {
    const cwd = project({ logging: { directory: "logs", format } });
    const { success, journal } = await go(cwd, [
      { calls: [{ name: HOSTILE, input: { [HOSTILE]: HOSTILE } }] },
      say("next", HOSTILE),
      { output: { stepId: HOSTILE, next_action: { action: "repeat", reason: "x".repeat(1_000_000) } } },
      say("next"),
      say("closing", HOSTILE),
    ]);
    assert.ok(success);
    const folder = join(cwd, "logs");
    const text = readFileSync(join(folder, filesIn(folder)[0]!), "utf8");
    assert.doesNotMatch(text, /(?!\n)[\p{Cc}\u2028-\u202e\u2066-\u2069]/u);
    const lines = text.trimEnd().split("\n");
    assert.ok(
      lines.every((line) =>
        format === "jsonl" ? line.startsWith('{"timestamp":') : line.startsWith("[2023-"),
      ),
    );
    assert.ok(
      lines.every((line) => line.length < 12_000),
      "a line is bounded",
    );
    const logged = await fromJournal(journal);
    assert.equal(lines.length, logged.length);
    assert.ok(logged.every(({ message }) => !/\p{Cc}/u.test(message)));
    if (format === "jsonl")
      assert.deepEqual(
        lines.map((line) => JSON.parse(line) as LogLine),
        logged,
      );
  });
}

test("with schemas.inspection every resolved schema and every validation is in the log", async () => {
  const script = [
    { output: { stepId: "x", next_action: { action: "next" }, extra: 1 } },
    say("next"),
    say("repeat"),
    say("next"),
    say("closing"),
  ];
  for (const inspection of [true, false]) {
    const cwd = project({ schemas: { inspection } });
    const { success } = await go(cwd, script);
    assert.ok(success);
    const told = linesOf(join(cwd, "logs")).filter(({ message }) => message.startsWith("[SchemaResolution]"));
    if (!inspection) {
      assert.deepEqual(told, []);
      continue;
    }
    const name = (step: string) => `steps.schema.json#${step}`;
    assert.deepEqual(
      told.map(({ level, message }) => `${level} ${message}`),
      [
        `info [SchemaResolution] Resolved ${name("initial.a")} for step: initial.a`,
        `warn [SchemaResolution] The answer of initial.a does not fit ${name("initial.a")}`,
        `info [SchemaResolution] The answer of initial.a fits ${name("initial.a")}`,
        `info [SchemaResolution] Resolved ${name("closure.a")} for step: closure.a`,
        `info [SchemaResolution] The answer of closure.a fits ${name("closure.a")}`,
        `info [SchemaResolution] The answer of initial.a fits ${name("initial.a")}`,
        `info [SchemaResolution] The answer of closure.a fits ${name("closure.a")}`,
      ],
    );
    const [schema, misfit] = told;
    const { additionalProperties } = schema!.metadata!.schema as { readonly additionalProperties?: boolean };
    assert.equal(additionalProperties, false);
    assert.deepEqual(
      [misfit?.metadata?.valid, misfit?.metadata?.errors],
      [false, ['the object must NOT have additional properties: "extra"']],
    );
  }
});

const STAGE = `---
id: plan
name: Plan
allowedTools: [Read]
completionTool: submit
completionSchema: { type: object, required: [n], properties: { n: { type: number } } }
retryPolicy: { maxAttempts: 1, backoff: none }
turnCap: 5
resolutionPolicy: fail
---

Plan it.
`;

test("a machine of stages is logged in the names of its audit", async () => {
  const agent = JSON.stringify({
    runner: { logging: { directory: "logs" }, flow: { schemas: { inspection: true } } },
  });
  const cwd = projectWith({ ".agent/a/stages/plan.md": STAGE, ".agent/a/agent.json": agent });
  const { success, journal, reason } = await go(cwd, [
    { text: "hm" },
    { calls: [{ name: "submit", input: { n: "x" } }] },
    { calls: [{ name: "submit", input: { n: 1 } }] },
  ]);
  assert.ok(success, reason);
  const lines = linesOf(join(cwd, "logs"));
  assert.deepEqual(lines, await fromJournal(journal));
  const told = lines
    .filter(({ level }) => level !== "debug")
    .map(({ level, message }) => `${level} ${message}`);
  assert.deepEqual(told, [
    "info Run started: a",
    "info SMAttached",
    "info SessionTurnStart",
    "info StageExecutionSpanStart",
    "info [SchemaResolution] Resolved .agent/a/stages/plan.md#/completionSchema for step: plan",
    "info StageSteered",
    "warn [SchemaResolution] The answer of plan does not fit .agent/a/stages/plan.md#/completionSchema",
    "warn StageParseError",
    "info [SchemaResolution] The answer of plan fits .agent/a/stages/plan.md#/completionSchema",
    "info StageAssertOutcome",
    "info StageExited",
    "info StageExecution",
    "info SMTransition",
    "info SessionTurnEnd",
    "info SMDetached",
    `info ${lines.at(-1)!.message}`,
  ]);
  assert.ok(
    lines.some(
      ({ level, message, metadata }) =>
        level === "debug" && message === "StagePreFired" && metadata?.phase === "Act",
    ),
  );
});

test("a transcript is the whole conversation, each thing once, also where a turn had to be repeated", async () => {
  const cwd = project({ logging: null });
  const { journal } = await go(cwd, [
    { error: { kind: "rate-limit", retryAfterMs: 10 } },
    { text: "let me look", calls: [{ name: "Read", input: { file_path: ".agent/a/agent.json" } }] },
    { text: "no object" },
    say("next"),
    say("closing"),
  ]);
  const [row] = await journal.list();
  const said = (await Array.fromAsync(momentsOf(journal, row!))).flat().flatMap(createTranscript());
  const brief = (one: Utterance) => {
    const words = "results" in one ? one.results.map(({ name }) => name).join() : one.text.split("\n", 1)[0];
    return `${one.role} ${one.step}/${one.turn} ${words}`;
  };
  assert.deepEqual(said.map(brief), [
    "system initial.a/1 You are a.",
    "user initial.a/1 Do initial.a.",
    "error initial.a/1 scripted rate-limit",
    "assistant initial.a/1 let me look",
    "tool initial.a/1 Read",
    "assistant initial.a/2 no object",
    "user initial.a/3 Your last answer cannot be used:",
    "assistant initial.a/3 ",
    "user closure.a/1 Do closure.a.",
    "assistant closure.a/1 ",
  ]);
});

test("a run is followed until it has ended, line by line as it is written", async () => {
  const cwd = project({ logging: null });
  const journal = createMemoryJournal();
  let goOn: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => (goOn = resolve));
  const usage = { turns: 1, inputTokens: 1, outputTokens: 1, costUsd: null };
  let turns = 0;
  const running = run({
    agent: "a",
    cwd,
    journal,
    env: {},
    backend: {
      spec: { id: "held", options: null },
      turn: async () => {
        if (++turns === 2) await asked;
        const { output } = STRAIGHT[turns - 1]!;
        return { kind: "reply", text: "", calls: [], output, usage };
      },
    },
  });
  await until(async () => (await journal.list()).length > 0, "a run");
  const heads: string[] = [];
  for await (const { message } of logs(journal, "@last", { follow: true })) {
    heads.push(message);
    if (heads.includes("=== Iteration 2 ===")) goOn();
  }
  assert.ok((await running).success);
  assert.match(heads.at(-1)!, /^Agent completed/);
});

test("each step's visits, turns, tokens, time and cost are in the result, live and from the journal", async () => {
  const cwd = project({ logging: null });
  const journal = createMemoryJournal();
  let now = 0;
  let turns = 0;
  const actions = ["repeat", "next", "closing"];
  const result = await run({
    agent: "a",
    cwd,
    journal,
    env: {},
    clock: { now: () => now, sleep: () => Promise.resolve() },
    backend: {
      spec: { id: "metered", options: null },
      turn: () => {
        now += 100 * ++turns;
        const usage = {
          turns: 1,
          inputTokens: 10 * turns,
          outputTokens: turns,
          costUsd: turns === 3 ? null : 0.5,
        };
        const { output } = say(actions[turns - 1]!);
        return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
      },
    },
  });
  const steps = [
    { step: "initial.a", visits: 2, turns: 2, inputTokens: 30, outputTokens: 3, ms: 300, costUsd: 1 },
    { step: "closure.a", visits: 1, turns: 1, inputTokens: 30, outputTokens: 3, ms: 300, costUsd: null },
  ];
  assert.deepEqual(result.steps, steps);
  assert.deepEqual((await show(journal, "@last")).steps, steps);
});
