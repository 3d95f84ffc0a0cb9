/** The chain behind a decision, asked for by the public door: run with a script, then why. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { whyText } from "../../../src/cli/text/why-text.ts";
import { createPaint } from "../../../src/cli/text/text.ts";
import {
  createMemoryJournal,
  createScripted,
  readRun,
  resume,
  run,
  runLoaded,
  RunnerError,
  why,
  type Backend,
  type Entry,
  type Event,
  type Journal,
  type Result,
  type TurnResult,
  type Why,
} from "../../../src/run/index.ts";
import { findProject } from "../../../src/run/world/project.ts";
import { whyAll } from "../../../src/tell/why.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { projectWith } from "../project.ts";
import { STEPS, checked, files, forked, rows, say, type Row } from "./why-rows.ts";

for (const row of rows) {
  test(`why: ${row.name}`, async () => {
    const { journal } = await played(row);
    const found = await why(journal, "@last", row.target);
    assert.deepEqual(chainOf(found), row.chain);
    // Whatever is told, it is told in words and as JSON that is read back the same.
    assert.deepEqual(JSON.parse(JSON.stringify(found)), found);
    const text = whyText(found, createPaint(false), false);
    assert.ok(text.includes(`${found.step} #${found.visit}`), text);
    assert.doesNotMatch(text, /undefined|\[object/);
  });
}

test("why without a step is the last decision of a run that is still under way, or of one that was stopped", async () => {
  const stopper = new AbortController();
  const journal = createMemoryJournal();
  const cwd = projectWith(files());
  const during: ReturnType<typeof why>[] = [];
  const result = await run({
    agent: "a",
    cwd,
    journal,
    signal: stopper.signal,
    observe: ({ led }) => {
      if (led === undefined) return;
      during.push(why(journal, "@last", "continuation.a"));
      stopper.abort();
    },
    script: [say("next"), say("handoff"), say("closing")],
  });
  assert.equal(result.outcome, "interrupted");
  const [running] = await Promise.all(during);
  assert.deepEqual([running?.state, running?.pending?.command.type], ["open", "ask"]);
  assert.match(whyText(running!, createPaint(false), false), /under way\n +next +turn 1 is asked\n/);
  assert.equal((await why(journal, "@last")).step, "initial.a");
  const open = await why(journal, "@last", "continuation.a");
  assert.deepEqual([open.state, open.decision, open.ended], ["stopped", null, null]);
  assert.equal(open.pending?.command.type, "ask");
  assert.match(
    whyText(open, createPaint(false), false),
    /when the run is resumed\n +next +turn 1 is asked\n/,
  );

  await resume({ run: "@last", cwd, journal });
  const after = chainOf(await why(journal, "@last", "continuation.a"));
  assert.deepEqual(after.slice(0, 3), [
    "continuation.a@1 from initial.a, iteration 2, settled",
    "resumed",
    "turn 1 after 2, attempt 2",
  ]);
  assert.equal((await why(journal, "@last")).step, "closure.a");
});

test("a visit beside the one that ended the run was never decided", async () => {
  const scripted = createScripted([say("next"), { ...say("abort"), step: "right" }]);
  const stopped: TurnResult = { kind: "fault", fault: { kind: "other", message: "stopped" } };
  const backend: Backend = {
    ...scripted,
    turn: async (request) =>
      request.asker.step === "left"
        ? await new Promise((resolve) => {
            request.signal.addEventListener("abort", () => resolve(stopped));
          })
        : await scripted.turn!(request),
  };
  const { journal } = await played({ name: "", flow: forked(), backend, chain: [] });
  const left = await why(journal, "@last", "left");
  assert.deepEqual([left.state, left.decision, left.ended, left.pending], ["left", null, null, null]);
  assert.equal((await why(journal, "@last")).step, "right");
});

test("a step or a visit that is not there is refused with those that are", async () => {
  const { journal } = await played({
    name: "",
    files: files(),
    script: [say("next"), say("next"), say("abort")],
    chain: [],
  });
  const refused: readonly [target: string, reason: RegExp][] = [
    [
      "continuation.b",
      /no step "continuation\.b"\. Did you mean "continuation\.a"\? Visited were initial\.a, continuation\.a \(2 times\)\./,
    ],
    ["closure.a", /never came to step "closure\.a"\. Visited were/],
    ["continuation.a@3", /visited 2 times; there is no visit 3\. The last is continuation\.a@2\./],
    ["initial.a@0", /visited once; there is no visit 0/],
    ["constructor", /no step "constructor"/],
  ];
  for (const [target, reason] of refused) {
    await assert.rejects(why(journal, "@last", target), (error) => {
      assert.ok(error instanceof RunnerError && error.code === "STEP_UNKNOWN", String(error));
      assert.match(error.message, reason);
      return true;
    });
  }
});

test("a run of which only the end was left to be recorded ended where it was decided", async () => {
  const script = [say("next"), say("handoff"), say("closing")];
  const { journal } = await played({ name: "", files: files(), script, chain: [] });
  const { flow, entries } = await readRun(journal, "@last");
  const [ending] = entries.slice(-1);
  const resumed: Entry = { ...ending!, event: { type: "run.resumed", epoch: 2 } };
  const found = whyAll(flow, [...entries.slice(0, -1), resumed, { ...ending!, seq: ending!.seq + 1 }]).at(-1);
  assert.deepEqual([found?.step, found?.ended?.outcome], ["closure.a", "completed"]);
});

test("what happens around a stage is told in a line each", async () => {
  const { journal } = await played({ name: "", files: files(), script: [say("abort")], chain: [] });
  const found = await why(journal, "@last");
  const at = { step: "initial.a", visit: 1 };
  const lines: readonly [event: Event, line: RegExp][] = [
    [
      { type: "step.hooked", ...at, hook: "setup", result: { kind: "gave", value: { n: 1 } } },
      /setup +gave \{"n":1\}/,
    ],
    [
      { type: "step.hooked", ...at, hook: "assert", result: { kind: "threw", code: "X", message: "no" } },
      /assert +failed: no/,
    ],
    [{ type: "step.hooked", ...at, hook: "next", result: { kind: "absent" } }, /decided .*\n\n--full/],
    [{ type: "step.told", ...at, answer: null }, /said +nothing: no one was available/],
    [{ type: "step.suspended", ...at, code: "NEEDS_HELP", why: "ask Ann" }, /NEEDS_HELP +ask Ann/],
    [
      { type: "step.looked", ...at, sights: [{ met: false, what: "a.txt is absent" }] },
      /not met +a\.txt is absent/,
    ],
  ];
  for (const [event, line] of lines) {
    const told = { ...found, moments: [{ seq: 2, at: 0, event }] };
    assert.match(whyText(told, createPaint(false), false), line);
  }
});

test("what is decided again is what was decided: every visit of a run, in the order of its path", async () => {
  const { journal, result } = await played(rows.find(({ name }) => name.includes("one too many"))!);
  const { flow, entries } = await readRun(journal, "@last");
  const all = whyAll(flow, entries);
  assert.deepEqual(
    all.map(({ decision }) => decision),
    result.path,
  );
});

test("texts are cut in words, unless all is asked for, and never in the document", async () => {
  const long = "x".repeat(5000);
  const { journal } = await played({
    name: "",
    files: { ...files(), ".agent/a/prompts/steps/initial/a/f_default.md": `${long}\n`.repeat(30) },
    script: [say("next")],
    chain: [],
  });
  const found = await why(journal, "@last", "initial.a");
  const paint = createPaint(false);
  assert.ok(whyText(found, paint, false).length < 4000);
  assert.match(whyText(found, paint, false), /… \d+ more lines/);
  assert.ok(whyText(found, paint, true).length > 30 * 5000);
  assert.ok(JSON.stringify(found).length > 30 * 5000);
});

test("the contract of a step says which checks guard it, and what follows when they fail", async () => {
  for (const [action, most] of [
    ["retry", 2],
    ["abort", 3],
  ] as const) {
    const script = [say("next"), say("handoff"), say("closing")];
    const { journal } = await played({ name: "", files: checked(action, most), script, chain: [] });
    const [guarded] = (await why(journal, "@last", "closure.a")).contracts;
    const { on, checks, onFailure, maxFailures } = guarded!.guard!;
    assert.deepEqual([on, checks, onFailure, maxFailures], ["closing", ["proof", "never"], action, most]);
    const [plain] = (await why(journal, "@last", "continuation.a")).contracts;
    assert.equal(plain!.guard, null);
  }
});

test("the schema is always in the document, and in words when it is asked for or inspection is on", async () => {
  const paint = createPaint(false);
  for (const inspection of [false, true]) {
    const flow = { systemPromptPath: "prompts/system.md", schemas: { inspection } };
    const { journal } = await played({
      name: "",
      files: files(STEPS, { runner: { flow } }),
      script: [say("next")],
      chain: [],
    });
    const found = await why(journal, "@last", "initial.a");
    const [contract] = found.contracts;
    assert.ok(contract?.answer.kind === "object" && contract.answer.schema.kind === "schema");
    assert.deepEqual(contract.answer.schema.schema.required, ["next_action"]);
    assert.equal(/"additionalProperties": false/.test(whyText(found, paint, false)), inspection);
    assert.match(whyText(found, paint, true), /"additionalProperties": false/);
  }
});

// Helpers.
async function played(row: Row): Promise<{ readonly journal: Journal; readonly result: Result }> {
  const journal = createMemoryJournal();
  const options = {
    journal,
    clock: fakeClock(),
    args: row.args ?? {},
    env: { ...process.env, LOCKSTEP_TRUST: "all" },
    ...(row.script !== undefined && { script: row.script }),
    ...(row.backend !== undefined && { backend: row.backend }),
  };
  const cwd = projectWith(row.files ?? {});
  if (row.flow === undefined) {
    const result = await run({ agent: row.agent ?? "a", cwd, ...options });
    assert.deepEqual(
      result.problems.filter(({ severity }) => severity === "error"),
      [],
    );
    return { journal, result };
  }
  const loaded = { agent: row.flow.agent, flow: row.flow, problems: [], project: findProject(cwd) };
  return { journal, result: await runLoaded(loaded, { cwd, ...options }) };
}

/** A chain in short: a line for each of its links. */
function chainOf({
  step,
  visit,
  from,
  iteration,
  state,
  moments,
  decision,
  pending,
  ended,
}: Why): readonly string[] {
  return [
    `${step}@${visit} from ${from}, iteration ${iteration}, ${state}`,
    ...moments.flatMap(momentOf),
    ...(decision === null ? [] : [`decided ${decision.label} → ${decision.to ?? "end"}`]),
    ...(decision?.notes ?? []).map((note) => `note ${note.split("\n")[0]}`),
    ...(pending === null ? [] : [`pending ${pending.command.type}`]),
    ...(ended === null ? [] : [`ended ${ended.outcome} ${ended.code}`]),
  ];
}

type Moment = Why["moments"][number];

function momentOf({ event, asked, read, checked, followed }: Moment): readonly string[] {
  const lines: string[] = [];
  if (event.type === "run.resumed") lines.push("resumed");
  if (event.type === "step.waited") lines.push(`waited ${event.ms}`);
  if (event.type === "step.called")
    lines.push(
      ...event.results.map(({ name, denied }) => `${name} ${denied === undefined ? "done" : "denied"}`),
    );
  if (asked?.by === "command") lines.push(`command ${asked.argv?.join(" ")}`);
  if (asked?.by === "model" && event.type === "step.answered") {
    const again = asked.attempt === 1 ? "" : `, attempt ${asked.attempt}`;
    lines.push(`turn ${event.turn} after ${asked.heard}${again}`, ...asked.told.flatMap(requestOf));
  }
  if (event.type === "step.answered" && event.reply.kind === "fault")
    lines.push(`fault ${event.reply.fault.kind}`);
  if (event.type === "step.answered" && event.reply.kind === "said" && event.reply.calls.length > 0)
    lines.push(`calls ${event.reply.calls.map(({ name }) => name).join(", ")}`);
  if (read !== undefined) lines.push(...readOf(read));
  if (checked !== undefined) lines.push(...checkedOf(checked));
  if (followed !== undefined) lines.push(...followedOf(followed));
  return lines;
}

function requestOf({
  say: said,
  prompt,
  variables,
  words,
}: NonNullable<Why["pending"]>["told"][number]): readonly string[] {
  return [
    ...(said.kind === "repair" ? [`repair ${said.errors.join("; ")}`] : []),
    ...(said.kind === "failed-check" ? [`failed-check ${said.result.name} of ${said.guard}`] : []),
    ...(said.kind === "results" ? [`results ${said.results.map(({ name }) => name).join(", ")}`] : []),
    ...(prompt === null ? [] : [`prompt ${prompt.file}`]),
    ...variables.map(({ name, value, supplier, missing }) => {
      if (value === null) return `${name} has no value: ${missing}`;
      const { kind } = supplier!;
      const detail =
        "flag" in supplier!
          ? ` ${supplier.flag}`
          : "step" in supplier!
            ? ` ${supplier.step}.${supplier.key}`
            : "";
      return `${name} = ${value} (${kind}${detail})`;
    }),
    ...(words === null
      ? []
      : [words.kind === "text" ? `text ${words.text.split("\n")[0]}` : `unaskable ${words.code}`]),
  ];
}

function readOf(read: NonNullable<Moment["read"]>): readonly string[] {
  const { corrected, label, by, word, reason, errors, handoff } = read;
  const said = by === "alias" || by === "fallback" ? ` (${JSON.stringify(word)})` : "";
  return [
    ...(corrected === null
      ? []
      : [`corrected ${corrected.field} "${corrected.said}" → "${corrected.value}"`]),
    ...errors.map((error) => `unusable ${error}`),
    ...(label === null ? [] : [`read ${label} by ${by}${said}${reason === "" ? "" : `: ${reason}`}`]),
    ...Object.entries(handoff).map(([key, value]) => `handoff ${key} = ${JSON.stringify(value)}`),
  ];
}

function checkedOf({
  results,
  notRun,
  overturned,
  failures,
  maxFailures,
}: NonNullable<Moment["checked"]>): readonly string[] {
  return [
    ...results.map(({ name, ok, pattern, attempt, params }) =>
      ok
        ? `check ${name} passed, attempt ${attempt}`
        : `check ${name} failed (${pattern}), attempt ${attempt}, changed = ${JSON.stringify(params.changed)}`,
    ),
    ...notRun.map((name) => `check ${name} not run`),
    ...(overturned ? [`overturned ${failures} of ${maxFailures}`] : []),
  ];
}

function followedOf({
  label,
  choices,
  move,
  why: none,
  fork,
  stop,
  isTaken,
}: NonNullable<Moment["followed"]>): readonly string[] {
  return [
    ...choices.map((choice) => {
      if (choice.kind === "times") return `times ${choice.taken} of ${choice.max}`;
      const otherwise = choice.otherwise ? ", otherwise" : "";
      return choice.kind === "switch"
        ? `switch ${choice.on.join(".")} is ${JSON.stringify(choice.value)}${otherwise}`
        : `jump ${choice.field.join(".")} names ${JSON.stringify(choice.found)}${otherwise}`;
    }),
    ...(stop === null ? [] : [`stop ${stop.rule.kind} ${stop.standing.kind} (${stop.done})`]),
    ...(fork === null ? [] : [`fork ${fork.done.length} of ${fork.steps.length}`]),
    ...(none === null ? [] : ["no onward transition"]),
    ...(isTaken && move !== null ? [`edge ${label} → ${targetOf(move)}`] : []),
  ];
}

function targetOf(move: NonNullable<NonNullable<Moment["followed"]>["move"]>): string {
  if (move.kind === "goto") return move.step;
  if (move.kind === "fork") return `${move.steps.join(", ")} ⇒ ${move.join}`;
  return `end ${move.outcome === "failed" ? move.code : move.outcome}`;
}
