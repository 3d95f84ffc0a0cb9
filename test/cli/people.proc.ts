/** People and runs in different processes: answers, pauses and stops come from elsewhere, and nothing waits in memory. */
import assert from "node:assert/strict";
import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createWorld, replies, script, writeAgent, type World } from "./world.ts";
import { until } from "../until.ts";

type Document = {
  readonly run: string;
  readonly outcome: string;
  readonly code: string | null;
  readonly exitCode: number | null;
  readonly questions: readonly { readonly id: string; readonly answer: string; readonly expiresAt: string }[];
};

const WRITE = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };

/** An agent whose first step works in the mode that asks, and wants to write a file. */
function writeAsking(world: World, ...first: readonly object[]): void {
  writeWithTools(world, "default");
  const wanted = first.length === 0 ? [WRITE] : first;
  world.write("all.json", script(...wanted, replies.initial(), replies.continuation(), replies.closure()));
}

function writeWithTools(world: World, mode: string): void {
  writeAgent(world, "notes", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      steps["initial.note"]!.permissionMode = mode;
    },
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
  });
}

const RUN = ["run", "notes", "--topic", "t", "--script", "all.json", "--json"];

/** A run in a process of its own, while others go on beside it. */
function begin(world: World, args: readonly string[]) {
  const child = world.begin(args);
  const heard = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (heard.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (heard.stderr += text));
  const over = once(child, "close").then(([code]) => code as number | null);
  const saying = async (words: RegExp) => {
    await until(() => words.test(heard.stderr) || child.exitCode !== null, String(words));
    assert.match(heard.stderr, words);
  };
  return { child, heard, over, saying };
}

async function openQuestion(world: World): Promise<{ readonly run: string; readonly id: string }> {
  const asked = await world.lockstep(["answer", "@last", "--json"]);
  assert.equal(asked.code, 0, asked.stderr);
  const { run, questions } = JSON.parse(asked.stdout) as Document;
  return { run, id: questions[0]?.id ?? "" };
}

const eventsOf = async (world: World) => (await world.lockstep(["show", "@last", "--events"])).stdout;
const resultOf = (text: string) => JSON.parse(text) as Document;
const isMade = (world: World) => existsSync(join(world.root, "made.txt"));

test("a process that a test leaves behind ends with its world", async () => {
  const world = createWorld();
  writeAsking(world);
  const child = world.begin([...RUN, "--wait"]);
  const closed = once(child, "close");
  world[Symbol.dispose]();
  assert.deepEqual(await closed, [null, "SIGKILL"]);
});

describe("a question of a run", { concurrency: 2 }, () => {
  test("is answered from another process while the first one waits", async () => {
    using world = createWorld();
    writeAsking(world);
    const { heard, over, saying } = begin(world, [...RUN, "--wait"]);
    await saying(/wants to call Write/);
    const { run, id } = await openQuestion(world);
    const mistyped = await world.lockstep(["answer", run, "perhaps"]);
    assert.equal(mistyped.code, 2);
    assert.match(mistyped.stderr, /"perhaps" is not one of the choices: allow, allow-run, deny, stop\./);
    const answered = await world.lockstep(["answer", run, id, "Y"]);
    assert.deepEqual(
      [answered.code, /The process that runs it continues the run/.test(answered.stdout)],
      [0, true],
      answered.stderr,
    );
    assert.equal(await over, 0, heard.stderr);
    assert.ok(isMade(world));
    assert.match(await eventsOf(world), /"type":"step.told".*"answer":"allow".*"by":"answer"/);
  });

  test("is answered by a file while the process waits, and a bad one is told and left", async () => {
    using world = createWorld();
    writeAsking(world);
    const { heard, over, saying } = begin(world, [...RUN, "--wait"]);
    await saying(/wants to call Write/);
    const { run, id } = await openQuestion(world);
    const box = join(world.root, ".lockstep/answers", run);
    mkdirSync(box, { recursive: true });
    writeFileSync(join(box, `${id}.json`), '{"answer":"perhaps"}');
    await saying(/\.json is not a valid answer: "answer" must be one of allow/);
    const twice = await world.lockstep(["answer", run, id, "allow"]);
    assert.deepEqual([twice.code, /already has an answer/.test(twice.stderr)], [2, true]);
    writeFileSync(join(box, `${id}.json`), '{"answer":"deny"}');
    assert.equal(await over, 0, heard.stderr);
    assert.equal(isMade(world), false);
    assert.match(await eventsOf(world), /"answer":"deny".*"by":"file"/);
  });

  test("outlives its process: killed, answered and resumed", async () => {
    using world = createWorld();
    writeAsking(world);
    const { child, over, saying } = begin(world, [...RUN, "--wait"]);
    await saying(/wants to call Write/);
    child.kill("SIGKILL");
    await over;
    // Nobody has answered yet, so it goes on waiting.
    const still = await world.lockstep(["resume", "@last", "--json"]);
    assert.deepEqual([still.code, resultOf(still.stdout).code], [5, "PermissionRequired"], still.stderr);
    const { run, id } = await openQuestion(world);
    const left = await world.lockstep(["answer", run, id, "allow", "--no-resume"]);
    assert.deepEqual([left.code, isMade(world)], [0, false], left.stderr);
    const whole = await world.lockstep(["resume", run, "--json"]);
    assert.equal(whole.code, 0, whole.stderr);
    assert.ok(isMade(world));
    assert.match((await world.lockstep(["replay", run])).stdout, /same|identical|no difference|✓/i);
  });

  test("waits in no process at all, and is answered with what the report says", async () => {
    using world = createWorld();
    writeAsking(world);
    const ran = await world.lockstep([...RUN, "--on-permission", "halt", "--expire", "24h"]);
    assert.equal(ran.code, 5, ran.stderr);
    const { questions } = resultOf(ran.stdout);
    const { answer: command = "" } = questions[0] ?? {};
    const commands = ["allow", "allow-run", "deny", "stop"].map((choice) =>
      command.replace(/allow$/, choice),
    );
    assert.ok(ran.stderr.endsWith(`  next      ${commands.join("\n            ")}\n`), ran.stderr);
    // What check found is a line at the end, and not in the way of the question.
    assert.match(ran.stderr, /warnings {2}1 warning from check, shown by: lockstep check notes\n/);
    assert.doesNotMatch(ran.stderr, /^ {2}(?:why|fix) /m);
    assert.match(ran.stdout, /"expiresAt":"20/);
    const answered = await world.lockstep([...command.split(" ").slice(1), "--json"]);
    assert.deepEqual([answered.code, resultOf(answered.stdout).outcome], [0, "completed"], answered.stderr);
    assert.ok(isMade(world));
  });

  test("that nobody answered in time is settled when the run goes on", async () => {
    using world = createWorld();
    writeAsking(world);
    const ran = await world.lockstep([...RUN, "--on-permission", "halt", "--expire", "2s"]);
    assert.equal(ran.code, 5, ran.stderr);
    const expires = Date.parse(resultOf(ran.stdout).questions[0]?.expiresAt ?? "");
    await until(() => Date.now() > expires, "the question has expired");
    const late = await world.lockstep(["answer", "@last", "allow"]);
    assert.deepEqual([late.code, /was open until/.test(late.stderr)], [2, true]);
    const whole = await world.lockstep(["resume", "@last", "--json"]);
    assert.deepEqual([whole.code, isMade(world)], [0, false], whole.stderr);
    assert.match(await eventsOf(world), /"answer":null.*"by":"expired"/);
  });
});

const SLOW = { error: { kind: "rate-limit", retryAfterMs: 60_000 } };

describe("a run that another process drives", { concurrency: 2 }, () => {
  test("is paused, is not resumed by accident, and is continued", async () => {
    using world = createWorld();
    writeAsking(world, SLOW);
    const { heard, over, saying } = begin(world, RUN);
    await saying(/trying again/);
    const [text, json, rows] = await Promise.all([
      world.lockstep(["show", "@last"]),
      world.lockstep(["show", "@last", "--json"]),
      world.lockstep(["runs"]),
    ]);
    assert.match(
      text.stdout,
      /▶ running {2}notes · run \w+ · 1 iteration · [\d.]+ m?s\n {2}The run is active in another process/,
    );
    assert.doesNotMatch(text.stdout, /next +lockstep/);
    const { outcome, exitCode } = resultOf(json.stdout);
    assert.deepEqual([outcome, exitCode], ["running", null]);
    assert.match(rows.stdout, /\brunning\b/);
    const paused = await world.lockstep(["pause", "@last"]);
    assert.equal(paused.code, 0, paused.stderr);
    assert.equal(await over, 5, heard.stderr);
    assert.deepEqual([resultOf(heard.stdout).code, resultOf(heard.stdout).outcome], ["PAUSED", "waiting"]);
    assert.match((await world.lockstep(["runs"])).stdout, /\bpaused\b/);
    assert.match((await world.lockstep(["show", "@last"])).stdout, /paused/);
    const refused = await world.lockstep(["resume", "@last"]);
    assert.deepEqual(
      [refused.code, refused.stdout, /is paused\. Continue with: lockstep continue/.test(refused.stderr)],
      [5, '{"outcome":"paused"}\n', true],
    );
    const whole = await world.lockstep(["continue", "@last", "--json"]);
    assert.deepEqual([whole.code, resultOf(whole.stdout).outcome], [0, "completed"], whole.stderr);
    const over2 = await world.lockstep(["pause", "@last"]);
    assert.deepEqual([over2.code, /has ended/.test(over2.stderr)], [2, true]);
  });

  test("is stopped, and resumed", async () => {
    using world = createWorld();
    writeAsking(world, SLOW);
    const { heard, over, saying } = begin(world, RUN);
    await saying(/trying again/);
    const stopped = await world.lockstep(["stop", "@last", "--json"]);
    assert.equal(stopped.code, 0, stopped.stderr);
    assert.equal((JSON.parse(stopped.stdout) as { state: string }).state, "stopped");
    assert.equal(await over, 130, heard.stderr);
    assert.match(await eventsOf(world), /"type":"run.stopped"/);
    const again = await world.lockstep(["stop", "@last"]);
    assert.deepEqual([again.code, /nothing to stop/.test(again.stderr)], [2, true]);
    const whole = await world.lockstep(["resume", "@last", "--json"]);
    assert.deepEqual([whole.code, resultOf(whole.stdout).outcome], [0, "completed"], whole.stderr);
  });

  test("that waits for an answer is paused, answered meanwhile, and continued", async () => {
    using world = createWorld();
    writeAsking(world);
    const { heard, over, saying } = begin(world, [...RUN, "--wait"]);
    await saying(/wants to call Write/);
    const { run, id } = await openQuestion(world);
    assert.equal((await world.lockstep(["pause", run])).code, 0);
    assert.equal(await over, 5, heard.stderr);
    const answered = await world.lockstep(["answer", run, id, "allow"]);
    assert.match(answered.stdout, /paused; continue with: lockstep continue/);
    const whole = await world.lockstep(["continue", run, "--json"]);
    assert.deepEqual([whole.code, isMade(world)], [0, true], whole.stderr);
  });

  test("and died before it was paused rests all the same", async () => {
    using world = createWorld();
    writeAsking(world, SLOW);
    const { child, over, saying } = begin(world, RUN);
    await saying(/trying again/);
    child.kill("SIGKILL");
    await over;
    const paused = await world.lockstep(["pause", "@last"]);
    assert.match(paused.stdout, /is paused/);
    assert.equal((await world.lockstep(["resume", "@last"])).code, 5);
    const whole = await world.lockstep(["continue", "@last", "--json"]);
    assert.equal(whole.code, 0, whole.stderr);
  });
});

describe("a command that is running", { concurrency: 2 }, () => {
  // One that does not listen, and one that has left its group.
  const line = "setsid sh -c 'echo $$ > stray; exec sleep 30' & trap '' TERM; echo $$ > pid; sleep 30";
  const SLEEP = { calls: [{ name: "Bash", input: { command: line } }] };
  for (const [signals, code] of [
    [["SIGINT"], 130],
    [["SIGTERM"], 143],
    [["SIGHUP"], 129],
    [["SIGINT", "SIGINT"], 130],
    [["SIGTERM", "SIGINT"], 130],
  ] as const) {
    test(`does not outlive ${signals.join(" and ")}, and nothing committed is lost`, async () => {
      using world = createWorld();
      writeWithTools(world, "acceptEdits");
      // Without a sandbox any command has to be trusted.
      world.env.LOCKSTEP_TRUST = "all";
      world.write("all.json", script(SLEEP, replies.initial(), replies.continuation(), replies.closure()));
      const { child, heard, over, saying } = begin(world, [...RUN, "--sandbox", "off"]);
      const pids = [await pidIn(world, child, "stray"), await pidIn(world, child, "pid")];
      child.kill(signals[0]);
      for (const signal of signals.slice(1)) {
        await saying(/stopping: /i);
        child.kill(signal);
      }
      assert.equal(await over, code, heard.stderr);
      await until(() => !pids.some(isAlive), "both processes have ended");
      world.write("rest.json", script(replies.initial(), replies.continuation(), replies.closure()));
      assert.match(await eventsOf(world), /"type":"step.answered"/);
      const whole = await world.lockstep([
        "fork",
        "@last",
        "--at",
        "initial.note",
        "--script",
        "rest.json",
        "--json",
      ]);
      assert.equal(whole.code, 0, whole.stderr);
    });
  }
});

async function pidIn(world: World, child: ChildProcess, name: string): Promise<number> {
  const file = join(world.root, name);
  const isWhole = () => existsSync(file) && readFileSync(file, "utf8").endsWith("\n");
  await until(() => isWhole() || child.exitCode !== null, `${name} is written`);
  assert.ok(existsSync(file), "the command has begun");
  return Number(readFileSync(file, "utf8"));
}

/** A killed process may stay as a zombie until somebody asks for it; that one does nothing any more. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
