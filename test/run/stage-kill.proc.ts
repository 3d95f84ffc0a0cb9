/** kill -9 for machines of stages: of the command in the middle of the six stages of example 06, and between hooks. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { builtCommand } from "../built.ts";
import { bundled } from "../bundle.ts";
import type { Entry } from "../../src/flow/event.ts";
import { openExistingJournal, resume, type Result, type ScriptReply } from "../../src/run/index.ts";
import { machineFiles } from "./stage-project.ts";
import { projectWith } from "./project.ts";
import { IS_WHOLE } from "../rounds.ts";

const MAIN = await builtCommand();

const place = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const POINTS = IS_WHOLE ? 24 : 12;
const EXAMPLE = place("../../examples/06-stage-machine/");

// The command, killed as soon as it has told of so many events, whatever it is doing then.

test(`example 06, killed at ${POINTS} events: each resume ends the same way and repeats nothing that was committed`, async () => {
  const whole = await inProject(async (folder, env) => {
    const { code, stdout } = await lockstep(folder, env, RUN);
    assert.equal(code, 0, stdout);
    return { result: await shown(folder, env), entries: read(stdout) };
  });
  const last = whole.entries.length;
  assert.ok(last > 20, `${last} events`);
  const points = Array.from({ length: POINTS }, (_, nth) => 1 + Math.floor((nth * (last - 1)) / POINTS));
  const worker = async () => {
    for (let point = points.shift(); point !== undefined; point = points.shift()) {
      const lines = point;
      await inProject(async (folder, env) => await killAndResume(folder, env, lines, whole));
    }
  };
  await Promise.all([worker(), worker()]);
});

type Env = NodeJS.ProcessEnv;
const RUN = [
  "run",
  "ship",
  "--task",
  "make the tests pass",
  "--script",
  join(EXAMPLE, "script.yaml"),
  "--events",
];

async function killAndResume(
  folder: string,
  env: Env,
  lines: number,
  whole: { readonly result: Result; readonly entries: readonly Entry[] },
): Promise<void> {
  const killed = await lockstep(folder, env, RUN, lines);
  const before = await journalOf(folder);
  assert.ok(before.length >= lines, "what was told was committed");
  const resumed = await lockstep(folder, env, ["resume", "@last", "--json"]);
  const result = JSON.parse(resumed.stdout) as Result;
  const told = `killed after ${lines} (${killed.signal}): ${result.reason}`;
  assert.deepEqual(essence(result), essence(whole.result), told);
  const after = await journalOf(folder);
  assert.deepEqual(after.slice(0, before.length), before, "what was committed stands");
  for (const type of ["step.answered", "step.called"] as const) {
    const done = after.flatMap(({ event }) =>
      event.type === type ? [`${event.step}@${event.visit}/${event.turn}`] : [],
    );
    assert.equal(new Set(done).size, done.length, `${told}: ${type} twice`);
  }
  const answered = (entries: readonly Entry[]) =>
    entries.flatMap(({ event }) =>
      event.type === "step.answered" ? [`${event.step}@${event.visit}/${event.turn}`] : [],
    );
  assert.deepEqual(answered(after).toSorted(), answered(whole.entries).toSorted(), told);
}

/** All that a run leaves, with its own id taken out: it is in every stageExecutionId. */
function essence({ outcome, path, handoff, iterations, usage, run }: Result): unknown {
  return JSON.parse(JSON.stringify({ outcome, path, handoff, iterations, usage }).replaceAll(run!, "RUN"));
}

async function shown(folder: string, env: Env): Promise<Result> {
  return JSON.parse((await lockstep(folder, env, ["show", "@last", "--json"])).stdout) as Result;
}

function read(lines: string): readonly Entry[] {
  return lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry);
}

async function journalOf(folder: string): Promise<readonly Entry[]> {
  const journal = (await openExistingJournal(join(folder, ".lockstep"), { now: Date.now }))!;
  try {
    const [row] = await journal.list();
    assert.equal(row!.owned, false, "a dead owner holds nothing");
    return await journal.read(row!.id);
  } finally {
    await journal.close();
  }
}

async function inProject<T>(use: (folder: string, env: Env) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-stages-"));
  const home = mkdtempSync(join(tmpdir(), "lockstep-home-"));
  const cache = join(tmpdir(), "lockstep-test-cache");
  const env = { PATH: process.env.PATH, HOME: home, XDG_CACHE_HOME: cache, LOCKSTEP_TRUST: "all" };
  try {
    cpSync(join(EXAMPLE, "project"), folder, { recursive: true });
    cpSync(join(EXAMPLE, ".agent"), join(folder, ".agent"), { recursive: true });
    writeFileSync(join(folder, ".gitignore"), ".lockstep\n");
    for (const args of [
      ["init", "-q"],
      ["config", "user.name", "t"],
      ["config", "user.email", "t@example.invalid"],
      ["add", "-A"],
      ["commit", "-qm", "start"],
    ])
      assert.equal(spawnSync("git", args, { cwd: folder }).status, 0, args.join(" "));
    return await use(folder, env);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

type Ended = { readonly code: number | null; readonly signal: string | null; readonly stdout: string };

/** Killed when it has printed so many lines; never, unless said. */
function lockstep(cwd: string, env: Env, args: readonly string[], lines = Infinity): Promise<Ended> {
  return started([MAIN, ...args], cwd, env, lines);
}

function started(args: readonly string[], cwd: string, env: Env, lines = Infinity): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", "ignore"] });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      if (stdout.split("\n").length > lines) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout }));
  });
}

// Between hooks: each writes down that it was called, outside of anything that could be rolled back.

const HOOKS = `import { appendFileSync } from "node:fs";
const called = (what) => appendFileSync("called.txt", what + "\\n");
export default {
  plan: {
    setup: (ctx) => { called("plan.setup"); ctx.branch = "b1"; },
    checkGate: () => { called("plan.checkGate"); return "proceed"; },
    assert: (ctx, { parsed }) => { called("plan.assert " + parsed.n); return parsed.n > 1 ? "ok" : { verdict: "retry", reason: "more" }; },
    exit: (ctx, result) => { called("plan.exit"); return { digest: result.parsed.n * 10 }; },
    next: () => { called("plan.next"); return { execution: "sequential", nextStages: ["build", "last"] }; },
  },
  build: { setup: (ctx) => { called("build.setup"); ctx.more = ctx.branch + "!"; }, exit: () => { called("build.exit"); } },
};
`;
const SCRIPT: readonly ScriptReply[] = [
  { step: "plan", saw: ["on b1"], output: { n: 1 } },
  { step: "plan", saw: ["more"], output: { n: 2 } },
  { step: "build", saw: ["20 on b1!"], output: {} },
  { step: "last", saw: ["b1! after build"], output: {} },
];
const EXPECTED = [
  "plan.setup",
  "plan.checkGate",
  "plan.assert 1",
  "plan.assert 2",
  "plan.exit",
  "plan.next",
  "build.setup",
  "build.exit",
];

test("killed between hooks: what a hook said is kept, and it is not asked again", async () => {
  const files = machineFiles({
    stages: {
      plan: { retryPolicy: { maxAttempts: 2, backoff: "none" }, body: "on {{ctx.branch}}" },
      build: { body: "{{ctx.upstream[0].output.digest}} on {{ctx.more}}" },
      last: { body: "{{ctx.more}} after {{ctx.upstream[0].stageId}}" },
    },
    hooks: HOOKS,
    files: { "script.json": JSON.stringify(SCRIPT) },
  });
  let killed = 0;
  const points = Array.from({ length: 40 }, (_, i) => ({
    nth: 2 + Math.floor(i / 2),
    when: i % 2 === 0 ? "before" : "after",
  }));
  const temp = mkdtempSync(join(tmpdir(), "lockstep-killed-"));
  const program = await bundled("run/killed-machine", temp);
  const worker = async () => {
    for (let point = points.shift(); point !== undefined; point = points.shift()) {
      const { nth, when } = point;
      const folder = projectWith(files);
      const args = [program, folder, String(nth), when];
      const { signal } = await started(args, folder, process.env);
      if (signal === null) continue;
      killed += 1;
      const result = await resume({
        run: "@last",
        cwd: folder,
        env: { ...process.env, LOCKSTEP_TRUST: "all" },
      });
      const told = `killed ${when} write ${nth}: ${result.reason}`;
      assert.equal(result.outcome, "completed", told);
      assert.deepEqual(
        result.path.map(({ step }) => step),
        ["plan", "build", "last"],
      );
      assert.equal(result.handoff.plan!.stageExecutionId, `${result.run}/plan/1`);
      const called = readFileSync(join(folder, "called.txt"), "utf8").trim().split("\n");
      const twice = called.filter((line, index) => called.indexOf(line) !== index);
      // What was said but not written down is asked for once more; what was written down never is.
      assert.ok(twice.length <= (when === "before" ? 1 : 0), `${told}: twice ${twice.join(", ")}`);
      assert.deepEqual([...new Set(called)], EXPECTED, told);
    }
  };
  await Promise.all([worker(), worker()]);
  rmSync(temp, { recursive: true });
  assert.ok(killed >= 30, `${killed} were killed`);
});
