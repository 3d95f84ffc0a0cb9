/**
 * crash-kill: processes that drive runs on a real journal are killed with SIGKILL, by themselves before and after each
 * write and each question, or from outside at any moment. The next process goes on with what is there, and is killed too.
 * CRASH_KILLS and CRASH_SEED choose how often and where.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import { fold } from "../../src/engine/drive/drive.ts";
import { prepareSchemas, schemasOf } from "../../src/engine/schema/schema.ts";
import { createMemoryJournal, openJournal, runLoaded, type Journal } from "../../src/run/index.ts";
import { random as seeded } from "../load/random.ts";
import { bundled, warmed } from "../bundle.ts";
import { quickFolder } from "./folder.ts";
import { agents } from "./killed-agents.ts";
import { ready } from "../ready.ts";

const KILLS = Number(process.env.CRASH_KILLS ?? 150);
const SEED = Number(process.env.CRASH_SEED ?? 7);
const WORKERS = 2;

const temp = quickFolder("kill");
after(() => rmSync(temp, { recursive: true, force: true, maxRetries: 5 }));

test(`${KILLS} kills: nothing acknowledged is lost, nothing committed is asked again, every run ends as without them`, async (context) => {
  const program = await bundled("crash/killed", join(temp, "program"));
  mkdirSync(join(temp, "warm"));
  const env = warmed(program, [join(temp, "warm"), "0", "once"], temp);
  const wholes = await wholeRuns();
  const tallies = await Promise.all(
    Array.from({ length: WORKERS }, async (_, worker) => {
      const folder = join(temp, `worker-${worker}`);
      mkdirSync(folder);
      return await killAgainAndAgain(folder, program, env, wholes, seeded(SEED + worker), KILLS / WORKERS);
    }),
  );
  const sum = (key: "kills" | "inside" | "finished") => tallies.reduce((all, tally) => all + tally[key], 0);
  assert.equal(sum("kills"), KILLS);
  assert.ok(sum("finished") > KILLS / 10, `${sum("finished")} runs were brought to their end`);
  context.diagnostic(
    `${sum("kills")} kills, ${sum("inside")} of them from outside; ${sum("finished")} runs; seed ${SEED}`,
  );
});

type Wholes = { readonly [agent: string]: string };
type Tally = { kills: number; inside: number; finished: number };

async function killAgainAndAgain(
  folder: string,
  program: string,
  env: NodeJS.ProcessEnv,
  wholes: Wholes,
  random: () => number,
  count: number,
): Promise<Tally> {
  const tally = { kills: 0, inside: 0, finished: 0 };
  const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
  const seen = new Map<string, readonly Entry[]>();
  try {
    while (tally.kills < count) {
      const isOutside = tally.kills % 4 === 3;
      const at = String(1 + Math.floor(random() * 50));
      const args = isOutside ? ["0", "never"] : [at, random() < 0.5 ? "before" : "after"];
      const lines = await killed([program, folder, ...args], env, isOutside ? random() * 40 : null);
      tally.kills += 1;
      tally.inside += isOutside ? 1 : 0;
      tally.finished += await look(
        journal,
        seen,
        lines,
        wholes,
        `seed ${SEED}, ${folder}, ${args.join(" ")}`,
      );
    }
  } finally {
    await journal.close();
  }
  using db = new DatabaseSync(join(folder, ".lockstep", "runs.db"));
  assert.deepEqual({ ...db.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
  return tally;
}

/** What it told before it died. `delay`: so long after its first word it is killed from outside. */
function killed(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  delay: number | null,
): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (stdout === "" && delay !== null) setTimeout(() => child.kill("SIGKILL"), delay);
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (signal === "SIGKILL") resolve(stdout.split("\n").slice(0, -1));
      else reject(new Error(`${args.join(" ")} ended with ${code}: ${stderr}`));
    });
  });
}

/** Holds what is on disk against what was told and what was there before; gives how many runs came to their end. */
async function look(
  journal: Journal,
  seen: Map<string, readonly Entry[]>,
  lines: readonly string[],
  wholes: Wholes,
  how: string,
): Promise<number> {
  let finished = 0;
  const rows = (await journal.list()).filter(({ id }) => seen.get(id)?.at(-1)?.event.type !== "run.ended");
  const told = lines.map((line) => line.split(" "));
  for (const { id, agent, owned } of rows) {
    assert.equal(owned, false, "a dead owner holds nothing");
    const before = seen.get(id) ?? [];
    const entries = await journal.read(id);
    assert.deepEqual(entries.slice(0, before.length), before, `what was committed stands; ${how}`);
    assert.ok(entries.every(({ seq }, index) => seq === index + 1));
    let kept = before.length;
    for (const [what, run, word = ""] of told) {
      if (run !== id) continue;
      if (what === "kept") kept = Number(word);
      else assert.ok(!answersIn(entries.slice(0, kept)).includes(word), `${word} was asked again; ${how}`);
    }
    assert.ok(entries.length >= kept, `${id} lost entries it had acknowledged; ${how}`);
    assert.equal(new Set(answersIn(entries)).size, answersIn(entries).length, `answered twice; ${how}`);
    seen.set(id, entries);
    if (entries.at(-1)?.event.type !== "run.ended") continue;
    finished += 1;
    assert.equal(essence(agent, id, entries), wholes[agent], how);
    seen.set(id, entries.slice(-1));
  }
  const lost = told.find(([what, run = ""]) => what === "kept" && !seen.has(run));
  assert.equal(lost, undefined, `a run that was made is gone; ${how}`);
  return finished;
}

/** A fault may be followed by the same question. */
function answersIn(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(({ event }) =>
    event.type === "step.answered" && event.reply.kind !== "fault"
      ? [`${event.step}@${event.visit}/${event.turn}`]
      : [],
  );
}

/** The whole state, with the id of the run taken out: it is in every stageExecutionId. Members in any order. */
function essence(agent: string, run: string, entries: readonly Entry[]): string {
  const { flow } = agents("/")[agent]!.loaded;
  const state = JSON.parse(JSON.stringify(fold(ready(flow!), entries)).replaceAll(run, "RUN")) as object;
  return JSON.stringify(state, (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

async function wholeRuns(): Promise<Wholes> {
  const wholes: { [agent: string]: string } = {};
  for (const [agent, { loaded, script }] of Object.entries(agents("/"))) {
    await prepareSchemas(schemasOf(loaded.flow!));
    const journal = createMemoryJournal();
    const { run, outcome, reason } = await runLoaded(loaded, { cwd: "/", journal, script });
    assert.equal(outcome, "completed", reason);
    wholes[agent] = essence(agent, run!, await journal.read(run!));
  }
  return wholes;
}
