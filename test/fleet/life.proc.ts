/** The life of a run in a fleet: what holds no slot, what people do with it from elsewhere, and workers that come and go. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Journal } from "../../src/engine/ports.ts";
import { submitRuns } from "../../src/fleet/submit.ts";
import { summarise } from "../../src/run/records/runs.ts";
import { openJournal } from "../../src/run/records/journal.ts";
import { prepareRun, type PrepareOptions } from "../../src/run/submit.ts";
import { systemClock } from "../../src/run/world/clock.ts";
import { replies, script, writeAgent, writeCheckedAgent } from "../cli/world.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { machineFiles } from "../run/stage-project.ts";
import { until } from "../until.ts";
import { createFleetWorld, type FleetWorld, type FleetWorker } from "./fleet-world.ts";
import { needsFleet, programs } from "./fleet-server.ts";

const { skip } = needsFleet("the life of runs in a fleet");
const RUNS = Number(process.env.FLEET_RUNS ?? 40);
const NOTE = [replies.initial(), replies.continuation(), replies.closure()];

describe("a run in a fleet", { skip }, () => {
  let server: PostgresServer;
  let world: FleetWorld;
  let journal: Journal;
  const workers: FleetWorker[] = [];
  before(async () => {
    server = await startServer(programs!);
    const url = `${server.url}?schema=life`;
    world = await createFleetWorld(url);
    writeAgent(world, "notes");
    // Its check says that it has begun, and ends when it may.
    const gate = `echo > ${world.root}/begun-$$; while [ ! -f ${world.root}/go ]; do sleep 0.1; done`;
    writeCheckedAgent(world, "slow", gate);
    writeAgent(world, "asking", {
      registry: ({ steps }) => {
        (steps as { [id: string]: { permissionMode?: string } })["initial.note"]!.permissionMode = "default";
      },
      agent: ({ runner }) => {
        (runner as { boundaries: { allowedTools: readonly string[] } }).boundaries.allowedTools = ["*"];
      },
    });
    journal = await openJournal(url, systemClock, { env: { ...world.env, ...world.around } });
    start("first");
  });
  after(async () => {
    await journal?.close();
    world?.[Symbol.dispose]();
    server?.remove();
  });

  const start = (name: string, ...args: readonly string[]): FleetWorker => {
    const worker = world.startWorker("--sandbox", "off", "--name", name, "--concurrency", "4", ...args);
    workers.push(worker);
    return worker;
  };
  const submit = async (
    agent: string,
    answers: readonly object[],
    more: Partial<PrepareOptions> = {},
    queue = "runs",
  ) => {
    const file = "script.json";
    const prepared = await prepareRun({
      agent,
      cwd: world.root,
      env: { ...world.env, LOCKSTEP_TRUST: "all" },
      args: { topic: "tides" },
      script: { text: script(...answers), file },
      found: { source: { kind: "none" }, within: ".", base: "main", bundle: null },
      ...more,
    });
    const wanted = { queue, group: "g", priority: 0, bundle: null };
    const [submitted] = await submitRuns(world.postgres, [{ name: agent, prepared }], wanted);
    return submitted!.run;
  };
  const stateOf = async (run: string) => summarise((await journal.rows([run]))[0]!).state;
  const reaches = async (run: string, state: string) =>
    await until(async () => (await stateOf(run)) === state, `${run} is ${state}`).catch((error: unknown) => {
      throw new Error(
        `${String(error)}\n${JSON.stringify(workers.map((one) => [one.lines(), one.stderr()]))}`,
      );
    });
  /** Nobody has it in hand. */
  const isFree = async (run: string) => {
    const text = `SELECT owner, job, due FROM ${world.postgres.schema}.run WHERE id = $1`;
    const [row] = await world.postgres.send({ name: "", text }, [run]);
    return row?.owner === null && row.job === null ? { due: row.due as Date | null } : null;
  };
  const lockstep = async (...args: readonly string[]) => {
    const ran = await world.lockstep(args, { env: world.around });
    assert.equal(ran.code, 0, `${args.join(" ")}: ${ran.stdout}${ran.stderr}`);
  };
  const begun = () => readdirSync(world.root).filter((name) => name.startsWith("begun-")).length;

  test("waits for a rate limit and for a person without a worker, and goes on when it is answered", async () => {
    const busy = { error: { kind: "rate-limit", retryAfterMs: 240_000 } };
    const parked = await submit("notes", [busy, ...NOTE]);
    const write = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
    const asked = await submit("asking", [write, ...NOTE], { onPermission: "halt" });
    await reaches(asked, "waiting");
    await until(async () => (await isFree(asked)) !== null, "nobody has the run that waits for a person");
    assert.equal((await isFree(asked))!.due, null);
    await until(
      async () => (await stateOf(parked)) === "queued" && (await isFree(parked))?.due instanceof Date,
      "nobody has the run that waits for a rate limit",
    );
    const wait = (await isFree(parked))!.due!.getTime() - Date.now();
    assert.ok(wait > 120_000 && wait < 300_000, String(wait));
    await lockstep("answer", asked, "allow");
    await reaches(asked, "completed");
  });

  test("holds no connection while it waits, and no slot", async () => {
    const count = async (text: string) =>
      Number((await world.postgres.send({ name: "", text: `SELECT count(*) AS n FROM ${text}` }))[0]!.n);
    const connections = () => count("pg_stat_activity WHERE application_name = 'lockstep'");
    // Three pools of three of the worker, and two of this process.
    const most = 15;
    const write = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
    const before = await count("life.run WHERE rest = 'waiting'");
    for (let runs = 0; runs <= most; runs += 1)
      await submit("asking", [write, ...NOTE], { onPermission: "halt" });
    // More than the worker has slots.
    await until(
      async () => (await count("life.run WHERE rest = 'waiting'")) - before > most,
      "all wait for a person",
    );
    const open = await connections();
    assert.ok(open <= most, `${open} connections`);
    assert.equal(await count("life.run WHERE job IS NOT NULL OR owner IS NOT NULL"), 0);
  });

  test("waits for a gate without a worker, however often somebody looks, and goes on when it opens", async () => {
    const looked = join(world.root, "looked");
    const command = `echo x >> ${looked}; test -f ${world.root}/open`;
    const files = machineFiles({
      stages: { a: { gate: "ready", resolutionPolicy: "retry-later", next: "end" } },
      machine: { checks: { ready: { type: "command", command, successWhen: "exitCode:0" } } },
    });
    for (const [path, text] of Object.entries(files)) world.write(path, text);
    const run = await submit("m", [{ step: "a", output: {} }], { args: {} });
    const looks = () => (existsSync(looked) ? readFileSync(looked, "utf8").split("\n").length - 1 : 0);
    /** Processes that the worker has started. */
    const started = (pid: number) => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    // What asks every hour does this.
    for (let hour = 1; hour <= 3; hour += 1) {
      await until(() => looks() === hour, "the gate was looked at");
      await until(async () => (await isFree(run)) !== null, "nobody has it");
      assert.deepEqual(await isFree(run), { due: null });
      assert.equal(await stateOf(run), "waiting");
      assert.equal(started(workers[0]!.process.pid!), "", "no process is held");
      assert.equal(looks(), hour);
      if (hour === 3) writeFileSync(join(world.root, "open"), "");
      await lockstep("resume", run);
    }
    await reaches(run, "completed");
    assert.equal(looks(), 4);
  });

  test("keeps the time of the server, also on a machine whose clock is wrong", async () => {
    const busy = { error: { kind: "rate-limit", retryAfterMs: 240_000 } };
    const run = await submit("notes", [busy, ...NOTE], {}, "skewed");
    const skewed = world.begin(["fleet", "worker", "--queue", "skewed", "--sandbox", "off"], {
      ...world.env,
      ...world.around,
      NODE_OPTIONS: `--import=${new URL("skew.ts", import.meta.url).href}`,
      SKEW_MS: "-7200000",
    });
    const waitsFor = async () => ((await isFree(run))?.due?.getTime() ?? 0) - Date.now();
    await until(async () => (await waitsFor()) > 60_000, "it waits without a worker");
    assert.ok((await waitsFor()) < 300_000, String(await waitsFor()));
    const [, ...entries] = await journal.read(run);
    assert.ok(entries.length > 0);
    for (const { at } of entries)
      assert.ok(Math.abs(at - Date.now()) < 1_800_000, new Date(at).toISOString());
    skewed.kill("SIGKILL");
  });

  test("is paused, continued and resumed here while it is queued", async () => {
    const run = await submit("notes", NOTE, {}, "nobody-takes-it");
    await lockstep("pause", run);
    await reaches(run, "paused");
    await lockstep("continue", run);
    await until(async () => (await isFree(run))?.due instanceof Date, "it is offered again");
    await lockstep("resume", run, "--here", "--sandbox", "off");
    assert.equal(await stateOf(run), "completed");
    // What a submitter trusted for workers is not trusted by the user of this machine.
    const checked = await submit("slow", NOTE, {}, "nobody-takes-it");
    const refused = await world.lockstep(["resume", checked, "--here", "--sandbox", "off"], {
      env: world.around,
    });
    assert.equal(refused.code, 3, refused.stdout);
    assert.match(refused.stderr, /NOT_TRUSTED/);
  });

  test("is stopped while it is driven elsewhere, and goes on there", async () => {
    const run = await submit("slow", NOTE);
    await until(() => begun() === 1, "its check has begun");
    await lockstep("stop", run);
    await reaches(run, "interrupted");
    await until(async () => (await isFree(run)) !== null, "nobody has it");
    assert.equal((await isFree(run))!.due, null, "it is not offered again before somebody says so");
    writeFileSync(join(world.root, "go"), "");
    await lockstep("resume", run);
    await reaches(run, "completed");
  });

  test("of another speech is left alone by older workers, and nothing is repeated when workers are replaced", async () => {
    const newer = await submit("notes", NOTE, {}, "upgraded");
    const speaks = (speech: number) =>
      world.postgres.send(
        { name: "", text: `UPDATE ${world.postgres.schema}.run SET speaks = $2 WHERE id = $1` },
        [newer, speech],
      );
    await speaks(2);
    const runs = await Promise.all(
      // Some of them start a command.
      Array.from({ length: RUNS }, async (_, place) =>
        submit(place % 20 === 0 ? "slow" : "notes", NOTE, {}, "upgraded"),
      ),
    );
    const isOver = async () =>
      (await journal.rows(runs)).filter(({ last }) => last?.event.type === "run.ended").length;
    for (const [place, name] of ["a", "b", "c"].entries()) {
      const worker = start(name, "--queue", "upgraded");
      await until(async () => (await isOver()) >= (RUNS * (place + 1)) / 3, `worker ${name} has driven some`);
      worker.process.kill("SIGTERM");
      if (name !== "c") assert.equal(await worker.gone(), 0, worker.stderr());
    }
    await until(async () => (await isOver()) === RUNS, "all are over");
    for (const run of runs) {
      const entries = await journal.read(run);
      const resumed = entries.filter(({ event }) => event.type === "run.resumed");
      assert.ok(
        resumed.every(({ event }) => event.type === "run.resumed" && event.fresh),
        JSON.stringify(entries.map(({ event }) => event.type)),
      );
      assert.equal(entries.filter(({ event }) => event.type === "step.answered").length, 3);
      assert.equal(await stateOf(run), "completed");
    }
    assert.equal(await stateOf(newer), "queued");
    assert.equal((await journal.read(newer)).length, 1, "nobody has claimed it");
    // Nor does a person with an older program.
    for (const how of [[], ["--take-over"]]) {
      const here = ["resume", newer, "--here", "--sandbox", "off", ...how];
      const refused = await world.lockstep(here, { env: world.around });
      assert.deepEqual([refused.code, /newer version of Lockstep/.test(refused.stderr)], [3, true]);
    }
    assert.equal((await journal.read(newer)).length, 1);
    await speaks(1);
    start("d", "--queue", "upgraded");
    await reaches(newer, "completed");
  });
});
