/**
 * resume-race: processes that want the same run at the same time, and one that takes it over from another that hangs.
 * Exactly one proceeds, and whoever has lost a run writes nothing more into it.
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { builtCommand } from "../built.ts";
import type { Entry } from "../../src/flow/event.ts";
import { createMemoryJournal, openJournal, replayRun, runLoaded, type Result } from "../../src/run/index.ts";
import { bundled } from "../bundle.ts";
import { quickFolder } from "./folder.ts";
import { agents } from "./killed-agents.ts";
import type { Order, Told } from "./racer.ts";
import { until } from "../until.ts";
import { IS_WHOLE } from "../rounds.ts";

const ROUNDS = IS_WHOLE ? 200 : 100;
const MAIN = await builtCommand();

describe("resume-race", () => {
  for (const count of [2, 6]) {
    it(`of ${count} that resume a run at once, one proceeds and the others say so, ${ROUNDS} times`, () =>
      world(async ({ folder, start }) => {
        const racers = Array.from({ length: count }, start);
        const runs = await unfinishedRuns(folder, ROUNDS);
        for (const run of runs) {
          for (const racer of racers) racer.tell({ do: "resume", run, agent: "short", folder });
          const told = await Promise.all(racers.map(async (racer) => await racer.heard()));
          const refused = told.flatMap((one) => (one.is === "over" ? [[one.code, one.exitCode]] : []));
          assert.deepEqual(
            refused,
            Array.from({ length: count - 1 }, () => ["RUN_OWNED_ELSEWHERE", 3]),
          );
          const winner = racers[told.findIndex(({ is }) => is === "asked")]!;
          // It is left in the middle of its first question: so it is there to be won again.
          const other = racers.find((racer) => racer !== winner)!;
          other.tell({ do: "resume", run, agent: "short", folder });
          const late = await other.heard();
          assert.ok(late.is === "over" && late.code === "RUN_OWNED_ELSEWHERE");
          assert.match(late.reason, new RegExp(`process ${winner.pid} .*lockstep resume ${run} --take-over`));
          winner.tell({ do: "answer" });
          await winner.answersToTheEnd();
        }
        const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
        for (const run of runs) {
          const entries = await journal.read(run);
          assert.equal(entries.filter(({ event }) => event.type === "run.resumed").length, 1);
          assert.equal(entries.at(-1)?.event.type, "run.ended");
          assert.equal((await replayRun(journal, run)).difference, null);
        }
        await journal.close();
      }));
  }

  for (const agent of ["long", "stages"]) {
    it(`a run of ${agent} is taken over from a process that was stopped, and that one writes nothing any more`, () =>
      world(async ({ folder, start }) => {
        const whole = await wholeRun(agent);
        for (let hold = 0; hold < whole.questions; hold += agent === "long" ? 5 : 2) {
          const [owner, taker] = [start(), start()];
          owner.tell({ do: "start", agent, folder, hold });
          const asked = await owner.heard();
          assert.ok(asked.is === "asked");
          const { run } = asked;
          await owner.stops();

          taker.tell({ do: "resume", run, agent, folder });
          const refused = await taker.heard();
          assert.ok(refused.is === "over" && refused.exitCode === 3);
          assert.match(refused.reason, new RegExp(`lockstep resume ${run} --take-over`));

          // By the command the first time, and then by a process that is there already.
          if (hold === 0) {
            const result = JSON.parse(lockstep(folder, ["resume", run, "--take-over", "--json"])) as Result;
            assert.equal(result.outcome, "completed", result.reason);
          } else {
            taker.tell({ do: "resume", run, agent, folder, takeOver: true });
            await taker.answersToTheEnd();
          }
          const before = await entriesOf(folder, run);

          owner.wake();
          owner.tell({ do: "answer" });
          const stale = await owner.isOver();
          assert.deepEqual([stale.code, stale.exitCode], ["RUN_OWNED_ELSEWHERE", 3], stale.reason);
          assert.match(stale.reason, /was claimed .* meanwhile|was released/);
          assert.doesNotMatch(stale.reason, /go on with/);
          const after = await entriesOf(folder, run);
          assert.deepEqual(after, before, "the one that was stopped has written nothing");
          assert.deepEqual(answersIn(after), whole.answers, `held after ${hold}`);
          await Promise.all([owner.end(), taker.end()]);
        }
      }));
  }
});

type Racer = {
  readonly pid: number;
  readonly tell: (order: Order) => void;
  readonly heard: () => Promise<Told>;
  /** Lets its model answer as often as it is asked. */
  readonly answersToTheEnd: () => Promise<void>;
  readonly isOver: () => Promise<Told & { is: "over" }>;
  /** Resolves when it has stopped. */
  readonly stops: () => Promise<void>;
  readonly wake: () => void;
  readonly end: () => Promise<void>;
};

type World = { readonly folder: string; readonly start: () => Racer };

async function world(body: (world: World) => Promise<void>): Promise<void> {
  const temp = quickFolder("race");
  const started: Racer[] = [];
  try {
    const program = await bundled("crash/racer", join(temp, "program"));
    await body({
      folder: temp,
      start: () => {
        const racer = racing(fork(program, { stdio: ["ignore", "ignore", "inherit", "ipc"] }));
        started.push(racer);
        return racer;
      },
    });
  } finally {
    await Promise.all(started.map(async (racer) => await racer.end()));
    rmSync(temp, { recursive: true, force: true, maxRetries: 5 });
  }
}

function racing(child: ChildProcess): Racer {
  const inbox: Told[] = [];
  let wake = Promise.withResolvers<void>();
  child.on("message", (told: Told) => {
    inbox.push(told);
    wake.resolve();
    wake = Promise.withResolvers();
  });
  const gone = once(child, "exit");
  const heard = async (): Promise<Told> => {
    while (inbox.length === 0) await wake.promise;
    return inbox.shift()!;
  };
  const isOver = async () => {
    for (;;) {
      const told = await heard();
      if (told.is === "over") return told;
    }
  };
  const tell = (order: Order) => void child.send(order);
  return {
    pid: child.pid!,
    tell,
    heard,
    isOver,
    answersToTheEnd: async () => {
      for (let told = await heard(); told.is === "asked"; told = await heard()) tell({ do: "answer" });
    },
    stops: async () => {
      tell({ do: "stop" });
      await until(() => isStopped(child.pid!), "the process has stopped");
    },
    wake: () => void child.kill("SIGCONT"),
    end: async () => {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

function isStopped(pid: number): boolean {
  const told = `/proc/${pid}/stat`;
  if (existsSync(told)) return /\) T/.test(readFileSync(told, "utf8"));
  const { stdout } = spawnSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim().startsWith("T");
}

/** Made and left at once. */
async function unfinishedRuns(folder: string, count: number): Promise<readonly string[]> {
  const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
  const { loaded, script } = agents(folder).short!;
  const runs: string[] = [];
  for (let made = 0; made < count; made++) {
    const stop = AbortSignal.abort();
    const { run } = await runLoaded(loaded, { cwd: folder, journal, script, signal: stop });
    runs.push(run!);
  }
  await journal.close();
  return runs;
}

function lockstep(cwd: string, args: readonly string[]): string {
  return spawnSync(process.execPath, [MAIN, ...args], { cwd, encoding: "utf8" }).stdout;
}

async function entriesOf(folder: string, run: string): Promise<readonly Entry[]> {
  const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
  try {
    return await journal.read(run);
  } finally {
    await journal.close();
  }
}

async function wholeRun(agent: string) {
  const { loaded, script } = agents("/")[agent]!;
  const journal = createMemoryJournal();
  const { run, usage } = await runLoaded(loaded, { cwd: "/", journal, script });
  return { answers: answersIn(await journal.read(run!)), questions: usage.turns };
}

function answersIn(entries: readonly Entry[]): readonly string[] {
  return entries
    .flatMap(({ event }) =>
      event.type === "step.answered"
        ? [`${event.step}@${event.visit}/${event.turn} ${event.reply.kind}`]
        : [],
    )
    .toSorted();
}
