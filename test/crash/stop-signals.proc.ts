/**
 * crash-signals: SIGINT, SIGTERM and SIGHUP, once or twice, at any moment from the first one after the start of the command,
 * over runs with hooks, modules, tools, a model over HTTP, worktrees and batches, and over their resumes. Every time there is
 * one document and the right exit code, nothing is left running, and the next resume comes to the end of the run.
 * CRASH_SIGNALS and CRASH_SEED choose how many and which.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openJournal } from "../../src/run/index.ts";
import { MAIN, onlyDocument, type Ran } from "../cli/world.ts";
import { random as seeded } from "../load/random.ts";
import { needs } from "../needs.ts";
import { marked, send, until } from "./halts.ts";
import { signalledWorld, type Line, type Signalled } from "./signalled-world.ts";

const SIGNALS = Number(process.env.CRASH_SIGNALS ?? 40);
const SEED = Number(process.env.CRASH_SEED ?? 7);
const WORKERS = 2;
const MOST_FAILURES = 20;
const CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
/** In which the command begins. */
const BEGINNING_MS = 150;

const temp = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-signals-")));
after(() => rmSync(temp, { recursive: true, force: true, maxRetries: 5 }));

const linux = needs(process.platform === "linux", "processes are found by /proc");
/** Only for a machine that is very busy. */
const HOUR_MS = 3_600_000;

test(
  `${SIGNALS} signals: each is answered with one document, and the run is resumed to its end`,
  { ...linux, timeout: HOUR_MS },
  async (context) => {
    const failures: Error[] = [];
    const tallies = await Promise.all(
      Array.from({ length: WORKERS }, async (_, worker) => await signalAgainAndAgain(worker, failures)),
    );
    const sum = (key: keyof Tally) => tallies.reduce((all, tally) => all + tally[key], 0);
    context.diagnostic(
      `${sum("signals")} signals, ${sum("early")} of them before the command listened, ${sum("again")} at a resume; ` +
        `${sum("runs")} runs; seed ${SEED}`,
    );
    if (failures.length > 0)
      throw new AggregateError(failures, failures.map(({ message }) => message).join("\n"));
    assert.ok(
      sum("early") < sum("signals") / 2,
      "the command listens from the first line of its own code on",
    );
  },
);

type Tally = { signals: number; early: number; again: number; runs: number };

async function signalAgainAndAgain(worker: number, failures: Error[]): Promise<Tally> {
  const tally = { signals: 0, early: 0, again: 0, runs: 0 };
  const world = await signalledWorld(join(temp, `worker-${worker}`));
  try {
    const lasts = new Map<Line, number>();
    // Without a signal first: so long each takes, and Node keeps what it has compiled.
    for (const line of world.lines) {
      const begun = performance.now();
      const ran = await begin(world, ["--state", stateOf(world, "whole"), ...line.args]).ended();
      assert.equal(ran.code, 0, `${line.name}: ${ran.stdout}${ran.stderr}`);
      lasts.set(line, performance.now() - begun);
    }
    for (
      let run = worker;
      tally.signals < SIGNALS / WORKERS && failures.length < MOST_FAILURES;
      run += WORKERS
    ) {
      const line = world.lines[Math.floor(run / WORKERS) % world.lines.length]!;
      const done: string[] = [];
      try {
        await oneRun(world, line, lasts, seeded(SEED * 10_000 + run), tally, done);
      } catch (error) {
        const how = `${line.name}: ${done.join(", then ")}; CRASH_SEED=${SEED}, run ${run}`;
        failures.push(new Error(how, { cause: error }));
        console.error(how);
      }
      tally.runs += 1;
    }
  } finally {
    await world.server[Symbol.asyncDispose]();
  }
  return tally;
}

function stateOf({ root }: Signalled, name: string): string {
  return join(root, "states", name);
}

async function oneRun(
  world: Signalled,
  line: Line,
  lasts: Map<Line, number>,
  random: () => number,
  tally: Tally,
  done: string[],
): Promise<void> {
  const state = stateOf(world, randomUUID());
  let args = line.args;
  const times = 1 + Math.floor(random() * 3);
  for (let time = 0; time < times; time += 1) {
    const names = Object.keys(CODES) as (keyof typeof CODES)[];
    const signal = names[Math.floor(random() * names.length)]!;
    const isTwice = random() < 0.4;
    const isEarly = random() < 0.2;
    const delay = random() * (isEarly ? BEGINNING_MS : lasts.get(line)!);
    done.push(
      `${signal} ${isTwice ? "twice " : ""}${delay.toFixed(1)} ms into ${args.slice(0, 2).join(" ")}`,
    );
    const { ran, wasListening, wasOver } = await signalled(
      world,
      ["--state", state, ...args],
      signal,
      delay,
      isTwice ? random() * 50 : null,
    );
    // It came too late: the machine is faster than it was, or the resume had little left to do.
    if (wasOver && time === 0) lasts.set(line, delay * 0.9);
    tally.signals += wasOver ? 0 : 1;
    tally.again += wasOver || time === 0 ? 0 : 1;
    tally.early += wasListening ? 0 : 1;
    const open = await unfinishedIn(state);
    done.push(`${open.length} to go on with`);
    checkAnswer(ran, CODES[signal], wasListening, open, time > 0);
    if (open.length === 0) break;
    args = ["resume", open[0]!];
  }
  for (const run of await unfinishedIn(state)) {
    const ran = await begin(world, ["--state", state, "resume", run]).ended();
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    assert.equal(onlyDocument(ran).success, true);
  }
  assert.deepEqual(await unfinishedIn(state), []);
}

/** A process that did not listen yet was ended by the kernel, and has begun nothing. */
function checkAnswer(
  ran: Ran & { readonly signal: NodeJS.Signals | null },
  code: number,
  wasListening: boolean,
  open: readonly string[],
  isResume: boolean,
): void {
  const said = JSON.stringify(ran);
  if (!wasListening && ran.signal !== null) {
    assert.equal(ran.stdout, "", said);
    if (!isResume) assert.deepEqual(open, [], said);
    return;
  }
  const document = onlyDocument(ran);
  assert.equal(document.exitCode, ran.code, said);
  if (document.success === true) assert.deepEqual([ran.code, open], [0, []], said);
  else assert.equal(ran.code, code, said);
  const named = document.batch ?? document.run;
  if (named !== null && document.success !== true) assert.deepEqual(open, [named], said);
  // With no run in the answer none was begun.
  if (named === null && !isResume) assert.deepEqual(open, [], said);
}

async function signalled(
  world: Signalled,
  args: readonly string[],
  signal: NodeJS.Signals,
  delay: number,
  again: number | null,
) {
  const { pid, ended, hasEnded } = begin(world, args);
  await sleep(delay);
  const wasOver = hasEnded();
  const wasListening = isListening(pid);
  send(pid, signal);
  if (again !== null) {
    await sleep(again);
    if (!hasEnded()) send(pid, signal);
  }
  return { ran: await ended(), wasListening: wasListening || wasOver, wasOver };
}

/** Node itself catches SIGINT and SIGTERM from its first moment on; a caught SIGHUP is ours, and the last that we catch. */
function isListening(pid: number): boolean {
  try {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return (BigInt(`0x${caught ?? "0"}`) & 1n) === 1n;
  } catch {
    return false;
  }
}

function begin({ env, root }: Signalled, args: readonly string[]) {
  const mark = `signalled-${randomUUID()}`;
  const child = spawn(process.execPath, [MAIN, ...args, "--json"], {
    cwd: join(root, "project"),
    env: { ...env, LOCKSTEP_TREE: mark },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  const closed = new Promise<void>((resolve) => child.on("close", () => resolve()));
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const ended = async () => {
    // One that hangs shows as ended by another signal than was sent.
    const limit = setTimeout(() => child.kill("SIGABRT"), 120_000);
    await closed;
    clearTimeout(limit);
    await until("no process is left", () => marked(mark).length === 0);
    return { ...said, code: child.exitCode, signal: child.signalCode };
  };
  return { pid: child.pid!, ended, hasEnded };
}

/** What a state folder has to continue with: a batch, or the runs that have not ended. */
async function unfinishedIn(state: string): Promise<readonly string[]> {
  const records = join(state, "batches");
  const batches = existsSync(records) ? readdirSync(records).filter((name) => name.endsWith(".json")) : [];
  if (batches.length > 0) return batches.map((name) => name.slice(0, -".json".length));
  const journal = await openJournal(state, { now: Date.now });
  try {
    const rows = await journal.list();
    assert.deepEqual(
      rows.filter(({ owned }) => owned),
      [],
      "no dead process owns a run",
    );
    return rows.filter(({ last }) => last?.event.type !== "run.ended").map(({ id }) => id);
  } finally {
    await journal.close();
  }
}
