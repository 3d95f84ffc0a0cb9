/** Acting from the studio, over real sockets: start, answer, pause, stop, continue, resume, fork. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { QuestionsDocument, Refusal } from "../../src/studio/wire.ts";
import type {
  AnsweredDocument,
  ArgumentsDocument,
  JudgedDocument,
  StartedDocument,
  SteeredDocument,
} from "../../src/studio/wire-acts.ts";
import type { AgentDocument } from "../../src/studio/wire-agents.ts";
import { createWorld, MAIN, replies, script, start, writeAgent, type World } from "../cli/world.ts";
import { until } from "../until.ts";
import { openIn } from "./studio-client.ts";

const WRITE = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
const ALL = [replies.initial(), replies.continuation(), replies.closure()];
/** Keeps its run alive for a minute. */
const SLOW = { error: { kind: "rate-limit", retryAfterMs: 60_000 } };

/** `asks`: its first step may write only when a person agrees. */
function writeNotes(world: World, asks: boolean, ...first: readonly object[]): void {
  writeAgent(world, "notes", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      if (asks) steps["initial.note"]!.permissionMode = "default";
    },
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
  });
  world.write("all.json", script(...first, ...ALL));
}

const START = { agent: "notes", args: { topic: "tides" }, script: "all.json" };

async function entriesOf(world: World, run: string): Promise<readonly Entry[]> {
  const { stdout } = await world.lockstep(["show", run, "--events"]);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry);
}

type Row = { readonly run: string; readonly state: string; readonly code: string | null };

async function stateOf(world: World, run: string): Promise<string> {
  const { stdout } = await world.lockstep(["runs", "--json"]);
  const { runs } = JSON.parse(stdout) as { readonly runs: readonly Row[] };
  return runs.find((row) => row.run === run)?.state ?? "none";
}

async function becomes(world: World, run: string, state: string): Promise<void> {
  await until(async () => (await stateOf(world, run)) === state, `${run} becomes ${state}`);
}

describe("acting from the studio", { concurrency: 2 }, () => {
  test("a run is started by the command, goes on when the studio is killed, and shows its line", async () => {
    using world = createWorld();
    writeNotes(world, false, { error: { kind: "rate-limit", retryAfterMs: 1500 } });
    const studio = await openIn(world);
    const { status, document } = await studio.post<StartedDocument>("runs", START);
    assert.equal(status, 202);
    assert.equal(
      document.command.replace(/^.*lockstep(?: --)? run/, "lockstep run"),
      "lockstep run notes --topic=tides --script=all.json --on-permission=halt",
    );
    process.kill(studio.pid, "SIGKILL");
    await becomes(world, document.run, "completed");
    const [first] = await entriesOf(world, document.run);
    assert.ok(first?.event.type === "run.started");
    assert.deepEqual(first.event.args, { topic: "tides" });
  });

  test("a question is answered in the studio, and the run goes on; a second answer is refused in words", async () => {
    using world = createWorld();
    writeNotes(world, true, WRITE);
    const studio = await openIn(world);
    const { document: begun } = await studio.post<StartedDocument>("runs", START);
    const { run } = begun;
    await becomes(world, run, "waiting");
    const { document: asked } = await studio.get<QuestionsDocument>("questions");
    const [question] = asked.open;
    assert.deepEqual([asked.open.length, question?.run], [1, run]);
    const path = `runs/${run}/questions/${question!.id}`;
    const wrong = await studio.post<Refusal>(path, { answer: "perhaps" });
    assert.deepEqual([wrong.status, wrong.document.field], [400, "answer"]);
    const answered = await studio.post<AnsweredDocument>(path, { answer: "allow" });
    assert.deepEqual([answered.status, answered.document.goesOn], [200, "resumed"], answered.text);
    await becomes(world, run, "completed");
    assert.ok(existsSync(join(world.root, "made.txt")));
    const told = (await entriesOf(world, run)).flatMap(({ event }) =>
      event.type === "step.told" ? event : [],
    );
    assert.deepEqual(
      told.map(({ answer, by }) => [answer, by]),
      [["allow", "studio"]],
    );
    const again = await studio.post<Refusal>(path, { answer: "deny" });
    assert.deepEqual([again.status, again.document.code], [409, "QUESTION_ANSWERED"]);
    assert.match(again.document.reason, /was answered in the studio: allow/);
    assert.equal(await studio.close(), 0);
  });

  test("an answer without resuming is kept; what became of a question is said", async () => {
    using world = createWorld();
    writeNotes(world, true, WRITE);
    const studio = await openIn(world);
    const { run } = (await studio.post<StartedDocument>("runs", START)).document;
    await becomes(world, run, "waiting");
    const { id } = (await studio.get<QuestionsDocument>("questions")).document.open[0]!;
    const path = `runs/${run}/questions/${id}`;
    const kept = await studio.post<AnsweredDocument>(path, { answer: "deny", resume: false });
    assert.deepEqual([kept.status, kept.document.goesOn], [200, "no"]);
    const twice = await studio.post<Refusal>(path, { answer: "allow" });
    assert.deepEqual([twice.status, twice.document.code], [409, "QUESTION_ANSWERED"]);
    const unknown = await studio.post<Refusal>(`runs/${run}/questions/qnone`, { answer: "allow" });
    assert.deepEqual([unknown.status, unknown.document.code], [404, "NO_QUESTION"]);
    const resumed = await studio.post<StartedDocument>(`runs/${run}/resume`);
    assert.equal(resumed.status, 202, resumed.text);
    await becomes(world, run, "completed");
    assert.ok(!existsSync(join(world.root, "made.txt")));
    await studio.close();
  });

  test("a process that waits goes on by itself, and the files of now are adopted on request", async () => {
    using world = createWorld();
    writeNotes(world, true, WRITE);
    const studio = await openIn(world);
    const questionOf = async () => {
      let open: QuestionsDocument["open"] = [];
      await until(async () => {
        ({ open } = (await studio.get<QuestionsDocument>("questions")).document);
        return open.length > 0;
      }, "a question is open");
      return open[0]!;
    };
    const line = ["run", "notes", "--topic=t", "--script=all.json", "--json"];
    const waiting = world.begin([...line, "--wait"]);
    const ended = new Promise((resolve) => waiting.once("close", resolve));
    const first = await questionOf();
    assert.equal(first.isDriven, true);
    const answered = await studio.post<AnsweredDocument>(`runs/${first.run}/questions/${first.id}`, {
      answer: "allow",
    });
    assert.deepEqual([answered.status, answered.document.goesOn], [200, "driven"], answered.text);
    assert.equal(await ended, 0);
    assert.equal((await world.lockstep([...line, "--on-permission=halt"])).code, 5);
    const { run, id } = await questionOf();
    await studio.post(`runs/${run}/questions/${id}`, { answer: "deny", resume: false });
    const prompt = join(world.root, ".agent/notes/prompts/steps/closure/note/f_default.md");
    writeFileSync(prompt, `${readFileSync(prompt, "utf8")}\nBriefly.\n`);
    const adopted = await studio.post<StartedDocument>(`runs/${run}/resume`, { adopt: true });
    assert.equal(adopted.status, 202, adopted.text);
    assert.match(adopted.document.command, new RegExp(`resume ${run} --adopt --on-permission=halt$`));
    await becomes(world, run, "completed");
    assert.ok((await entriesOf(world, run)).some(({ event }) => event.type === "run.adopted"));
    await studio.close();
  });

  test("a paused run that is answered stays paused, until it is continued", async () => {
    using world = createWorld();
    writeNotes(world, true, WRITE);
    const studio = await openIn(world);
    const { run } = (await studio.post<StartedDocument>("runs", START)).document;
    await becomes(world, run, "waiting");
    const paused = await studio.post<SteeredDocument>(`runs/${run}/pause`);
    assert.equal(paused.document.state, "paused", paused.text);
    const { open } = (await studio.get<QuestionsDocument>("questions")).document;
    const path = `runs/${run}/questions/${open[0]!.id}`;
    const answered = await studio.post<AnsweredDocument>(path, { answer: "allow" });
    assert.deepEqual([answered.status, answered.document.goesOn], [200, "no"], answered.text);
    assert.equal(await stateOf(world, run), "paused");
    await studio.post(`runs/${run}/resume`);
    await becomes(world, run, "completed");
    await studio.close();
  });

  test("a question that expired is said to have, before and after the run goes on", async () => {
    using world = createWorld();
    writeNotes(world, true, WRITE);
    const studio = await openIn(world);
    const waits = await world.lockstep([
      "run",
      "notes",
      "--topic=t",
      "--script=all.json",
      "--on-permission=halt",
      "--expire=3s",
      "--json",
    ]);
    const { run, questions } = JSON.parse(waits.stdout) as {
      readonly run: string;
      readonly questions: readonly { readonly id: string; readonly expiresAt: string }[];
    };
    await until(() => Date.now() > Date.parse(questions[0]!.expiresAt), "the question expires");
    const path = `runs/${run}/questions/${questions[0]!.id}`;
    const late = await studio.post<Refusal>(path, { answer: "allow" });
    assert.deepEqual([late.status, late.document.code], [409, "QUESTION_EXPIRED"], late.text);
    await world.lockstep(["resume", run]);
    const later = await studio.post<Refusal>(path, { answer: "allow" });
    assert.deepEqual([later.status, later.document.code], [409, "QUESTION_EXPIRED"], later.text);
    await studio.close();
  });

  test("a living run is paused, continued, stopped and resumed", async () => {
    using world = createWorld();
    writeNotes(world, false, SLOW, SLOW);
    const studio = await openIn(world);
    const { run } = (await studio.post<StartedDocument>("runs", START)).document;
    const owned = await studio.post<Refusal>(`runs/${run}/resume`);
    assert.deepEqual([owned.status, owned.document.code], [409, "RUN_OWNED_ELSEWHERE"]);
    const paused = await studio.post<SteeredDocument>(`runs/${run}/pause`);
    assert.deepEqual([paused.status, paused.document.state], [200, "paused"], paused.text);
    assert.match(paused.document.command, new RegExp(`lockstep(?: --)? pause ${run}$`));
    const continued = await studio.post<StartedDocument>(`runs/${run}/resume`);
    assert.equal(continued.status, 202, continued.text);
    assert.match(continued.document.command, new RegExp(`continue ${run} --on-permission=halt$`));
    const stopped = await studio.post<SteeredDocument>(`runs/${run}/stop`);
    assert.deepEqual([stopped.status, stopped.document.state], [200, "stopped"], stopped.text);
    const nothing = await studio.post<Refusal>(`runs/${run}/stop`);
    assert.deepEqual([nothing.status, nothing.document.code], [409, "NOT_DRIVEN"]);
    const resumed = await studio.post<StartedDocument>(`runs/${run}/resume`);
    assert.match(resumed.document.command, new RegExp(`resume ${run} --on-permission=halt$`));
    await becomes(world, run, "completed");
    const over = await studio.post<Refusal>(`runs/${run}/resume`);
    assert.deepEqual([over.status, over.document.code], [409, "RUN_OVER"]);
    await studio.close();
  });

  test("a fork: its preview is what is recorded, with each of the four edits", async () => {
    using world = createWorld();
    writeNotes(world, false);
    const studio = await openIn(world);
    const { run } = (await studio.post<StartedDocument>("runs", START)).document;
    await becomes(world, run, "completed");
    const closing = { stepId: "closure.note", note: "mine", next_action: { action: "closing", reason: "r" } };
    const cases: readonly { readonly edit: object; readonly told: string }[] = [
      { edit: { output: closing }, told: "output of closure.note@1" },
      { edit: { handoff: { "initial.note": { plan: { angle: "b" } } } }, told: "handoff of initial.note" },
      { edit: { prompts: { "closure.note": "Close it." } }, told: "prompt of closure.note" },
      { edit: { models: { "closure.note": "haiku" } }, told: "model of closure.note: haiku" },
    ];
    for (const { edit, told } of cases) {
      const body = { at: "closure.note@1", ...edit };
      const judged = (await studio.post<JudgedDocument>(`runs/${run}/judge`, body)).document;
      assert.deepEqual(judged.errors, [], told);
      const forked = await studio.post<StartedDocument>(`runs/${run}/fork`, body);
      assert.deepEqual([forked.status, forked.document.refusal], [202, undefined], forked.text);
      await becomes(world, forked.document.run, "completed");
      const entries = await entriesOf(world, forked.document.run);
      const [first] = entries;
      assert.ok(first?.event.type === "run.started");
      assert.deepEqual(first.event.forkedFrom, { run, seq: judged.sharedUntil, edits: [told] });
      assert.deepEqual(
        entries
          .slice(0, judged.sharedUntil)
          .flatMap(({ seq, led }) => (led === undefined ? [] : { step: led.step, visit: led.visit, seq })),
        judged.shared,
      );
    }
    const rests = await studio.post<StartedDocument>(`runs/${run}/part`, { at: "closure.note@1" });
    assert.equal(rests.status, 201);
    assert.equal(await stateOf(world, rests.document.run), "interrupted");
    const misfit = await studio.post<JudgedDocument>(`runs/${run}/judge`, {
      at: "closure.note@1",
      output: { stepId: "closure.note", next_action: 3 },
    });
    assert.match(misfit.document.errors.map(({ message }) => message).join(), /next_action/);
    for (const [body, field] of [
      [{ at: "closure.nte@1" }, "at"],
      [{ at: "closure.note@1", output: "words" }, "output"],
    ] as const) {
      const judged = await studio.post<JudgedDocument>(`runs/${run}/judge`, body);
      assert.deepEqual(
        judged.document.errors.map((error) => error.field),
        [field],
      );
    }
    const both = await studio.post<Refusal>(`runs/${run}/fork`, {
      at: "closure.note@1",
      adopt: true,
      models: { "closure.note": "x" },
    });
    assert.deepEqual([both.status, both.document.field], [400, "adopt"]);
    await studio.close();
  });

  test("nothing untrusted runs without the digest of the list; a command that changes after it is refused", async () => {
    using world = createWorld();
    writeNotes(world, false);
    const file = join(world.root, ".agent/notes/steps_registry.json");
    const withCheck = (command: string) => {
      const registry = JSON.parse(readFileSync(file, "utf8")) as { [key: string]: unknown };
      registry.validators = {
        proof: {
          type: "command",
          command,
          successWhen: "exitCode:0",
          failurePattern: "proof-missing",
          extractParams: {},
        },
      };
      registry.failurePatterns = { "proof-missing": { description: "d", edition: "failed", params: [] } };
      registry.validationSteps = {
        "closure.note": {
          stepId: "closure.note",
          name: "Proof",
          c2: "retry",
          c3: "note",
          validationConditions: [{ validator: "proof" }],
          onFailure: { action: "retry", maxAttempts: 2 },
        },
      };
      writeFileSync(file, JSON.stringify(registry));
    };
    world.write(".agent/notes/prompts/steps/retry/note/f_failed.md", "Again.\n");
    withCheck("touch proof.txt");
    const studio = await openIn(world);
    const first = await studio.post<Refusal>("runs", START);
    assert.deepEqual([first.status, first.document.code], [409, "NOT_TRUSTED"], first.text);
    const { digest, commands } = first.document.trust!;
    assert.ok(commands.some((line) => line.includes("touch proof.txt")));
    const { document: shown } = await studio.get<AgentDocument>("agents/notes");
    assert.deepEqual(shown.trust, first.document.trust);
    withCheck("touch other.txt");
    const changed = await studio.post<Refusal>("runs", { ...START, trust: digest });
    assert.deepEqual([changed.status, changed.document.code], [409, "NOT_TRUSTED"], changed.text);
    assert.notEqual(changed.document.trust?.digest, digest);
    assert.ok(
      changed.document.trust?.commands.some((line) => line.includes("touch other.txt")),
      changed.text,
    );
    withCheck("touch proof.txt");
    for (const trust of ["all", digest.slice(0, 32), `${digest} --trust-journal`, digest.toUpperCase()]) {
      const refused = await studio.post<Refusal>("runs", { ...START, trust });
      assert.deepEqual([refused.status, refused.document.field], [400, "trust"], trust);
    }
    assert.deepEqual((await studio.get<{ runs: readonly Row[] }>("runs")).document.runs, []);
    assert.ok(!existsSync(join(world.root, "proof.txt")) && !existsSync(join(world.root, "other.txt")));
    const agreed = await studio.post<StartedDocument>("runs", { ...START, trust: digest });
    assert.equal(agreed.status, 202, agreed.text);
    await becomes(world, agreed.document.run, "completed");
    assert.ok(existsSync(join(world.root, "proof.txt")));
    await studio.close();
  });

  test("arguments: every type, the same sentence per field as the command, and the line that runs", async () => {
    using world = createWorld();
    writeNotes(world, false);
    const file = join(world.root, ".agent/notes/agent.json");
    const agent = JSON.parse(readFileSync(file, "utf8")) as { parameters: object };
    const about = { description: "d", required: false };
    agent.parameters = {
      topic: { type: "string", description: "The topic", required: true, cli: "--topic" },
      many: { type: "number", ...about, cli: "--many", validation: { min: 1, max: 9 } },
      kind: { type: "string", ...about, cli: "--kind", validation: { enum: ["a", "b"] } },
      code: { type: "string", ...about, cli: "--code", validation: { pattern: "^[A-Z]+$" } },
      loud: { type: "boolean", ...about, cli: "--loud", default: false },
      tags: { type: "array", ...about, cli: "--tags" },
      first: { type: "number", ...about, cli: "--first", default: 3 },
    };
    writeFileSync(file, JSON.stringify(agent));
    const studio = await openIn(world);
    const judge = async (args: object) =>
      (await studio.post<ArgumentsDocument>("agents/notes/arguments", { args, script: "all.json" })).document;
    const faults: readonly [args: object, field: string][] = [
      [{}, "topic"],
      [{ topic: " " }, "topic"],
      [{ topic: "t", many: "x" }, "many"],
      [{ topic: "t", many: "10" }, "many"],
      [{ topic: "t", kind: "c" }, "kind"],
      [{ topic: "t", code: "abc" }, "code"],
      [{ topic: "t", loud: "perhaps" }, "loud"],
      [{ topic: "t", tpoic: "t" }, "tpoic"],
      // On a command line these are other names for a parameter; in a form they are not.
      [{ topic: "t", "--many": "2" }, "--many"],
      [{ topic: "t", "no-loud": true }, "no-loud"],
    ];
    for (const [args, field] of faults) {
      const { errors } = await judge(args);
      assert.deepEqual(
        errors.map((error) => error.field),
        [field],
        JSON.stringify(args),
      );
      const refused = await studio.post<Refusal>("runs", { agent: "notes", args, script: "all.json" });
      assert.deepEqual([refused.status, refused.document.field], [400, field], refused.text);
      const words = Object.entries(args).map(([name, value]) => `--${name}=${String(value)}`);
      const isSame = !/^(?:--|no-|tpoic)/.test(field);
      const ran = isSame ? await world.lockstep(["run", "notes", ...words, "--script=all.json"]) : null;
      if (ran !== null)
        assert.ok(ran.stderr.includes(errors[0]!.message), `${ran.stderr} ${errors[0]?.message}`);
    }
    const args = {
      topic: "it's $(touch x) `y` -z",
      many: "2",
      kind: "b",
      code: "ABC",
      loud: true,
      tags: ["one", "-two"],
    };
    const judged = await judge(args);
    assert.deepEqual(judged.errors, []);
    const expected = { ...args, many: 2, first: 3 };
    assert.deepEqual(judged.args, expected);
    const { document } = await studio.post<StartedDocument>("runs", {
      agent: "notes",
      args,
      script: "all.json",
    });
    assert.equal(document.command, judged.command);
    await becomes(world, document.run, "completed");
    const argsOf = async (run: string) => {
      const [first] = await entriesOf(world, run);
      return first?.event.type === "run.started" ? first.event.args : null;
    };
    assert.deepEqual(await argsOf(document.run), expected);
    // The line that is shown is a line for a shell, and does the same.
    const typed = document.command.replace(/^.*?lockstep(?: --)? run/, `'${process.execPath}' '${MAIN}' run`);
    const pasted = await start("/bin/sh", ["-c", typed], world.root, { env: world.env });
    assert.equal(pasted.code, 0, pasted.stderr);
    assert.deepEqual(await argsOf("@last"), expected);
    assert.ok(!existsSync(join(world.root, "x")));
    await studio.close();
  });
});
