/**
 * What happens to the runs of a fleet when workers and the server fail: workers are processes, the server is real, and the
 * model counts its questions. FLEET_KILLS_BESIDE and FLEET_OUTAGES choose how often and for how long.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { releaseRuns } from "../../src/fleet/rows.ts";
import { writeAgent, writeCheckedAgent } from "../cli/world.ts";
import { startProxy } from "../journal/postgres/proxy.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { startModel, type FleetModel } from "./fleet-model.ts";
import { createFleetWorld, KEY, type FleetWorld } from "./fleet-world.ts";
import { needsFleet, programs } from "./fleet-server.ts";

const { skip } = needsFleet("a fleet whose workers and server fail");
/** Beside a worker that lives; kills.proc.ts kills at every write and question. */
const KILLS = Number(process.env.FLEET_KILLS_BESIDE ?? 2);
const OUTAGES = (process.env.FLEET_OUTAGES ?? "12").split(",").map(Number);
const SLOTS = 10;

describe("a fleet that fails", { skip, concurrency: 3 }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startServer(programs!);
  });
  after(() => server.remove());

  const fleet = async (schema: string, model: FleetModel): Promise<FleetWorld> => {
    const world = await createFleetWorld(`${server.url}?schema=${schema}`, model.config);
    writeAgent(world, "notes");
    return world;
  };
  /** As if the lease of a dead worker were over: those of the living are not touched. */
  const endLease = async ({ postgres }: FleetWorld, worker: string) =>
    await postgres.send(
      {
        name: "",
        text: `UPDATE ${postgres.schema}_boss.job j SET heartbeat_on = heartbeat_on - interval '1 hour'
          FROM ${postgres.schema}.run r JOIN ${postgres.schema}.owner o ON o.id = r.owner
          WHERE j.id::text = r.job AND o.worker = $1 AND j.state = 'active'`,
      },
      [worker],
    );
  /** Every run has each answer once, in a row without a gap. */
  const answers = async ({ postgres }: FleetWorld): Promise<readonly number[]> => {
    const { schema } = postgres;
    const text = `SELECT count(*) FILTER (WHERE body::json -> 'event' ->> 'type' = 'step.answered')::int AS answered,
      count(*) = max(seq) AS whole FROM ${schema}.event GROUP BY run`;
    const rows = await postgres.send({ name: "", text });
    assert.ok(rows.every(({ whole }) => whole === true));
    return rows.map(({ answered }) => answered as number);
  };
  const done = async (world: FleetWorld, runs: number) =>
    await until(async () => (await world.outcomes()).completed === runs, `${runs} runs are completed`);

  test(`${KILLS} kills of workers: nothing is lost, and only what was in flight is asked again`, async () => {
    using model = await startModel(50);
    using world = await fleet("kills", model);
    const start = (at: number) => world.startWorker("--name", `w${at}`, "--concurrency", String(SLOTS));
    const keeper = world.startWorker("--name", "keeper", "--concurrency", "1");
    await keeper.ready();
    let runs = 0;
    let cut = 0;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const worker = start(kill);
      await worker.ready();
      runs += SLOTS;
      await world.submit("notes", SLOTS);
      const before = model.asked.length;
      const within = 1 + Math.floor(Math.random() * SLOTS * 2);
      await until(() => model.asked.length >= before + within, "the worker asks");
      worker.process.kill("SIGKILL");
      await worker.gone();
      // Those of the worker that lives may be among them, so that more is allowed than is right; never less.
      await until(() => model.asked.every(({ topic, end }) => end !== null || topic === ""), "nothing hangs");
      cut += model.asked.filter(({ isGivenUp }) => isGivenUp).length;
      await endLease(world, `w${kill}`);
    }
    const last = start(KILLS + 1);
    await last.ready();
    await until(async () => {
      // One that three kills in a row have hit is held, as it should be: it gets another chance.
      const text = `SELECT id FROM ${world.postgres.schema}.run WHERE held IS NOT NULL`;
      const held = await world.postgres.send({ name: "", text });
      await releaseRuns(
        world.postgres,
        held.map(({ id }) => id as string),
      );
      return (await world.outcomes()).completed === runs;
    }, `${runs} runs are completed`);
    for (const worker of [keeper, last]) {
      worker.process.kill("SIGTERM");
      assert.equal(await worker.gone(), 0, worker.stderr());
    }
    assert.deepEqual(
      await answers(world),
      Array.from({ length: runs }, () => 3),
    );
    const repeated = model.asked.length - 3 * runs;
    // An answer may have arrived that was not committed yet.
    assert.ok(
      repeated <= KILLS * SLOTS,
      `${repeated} of ${model.asked.length} questions were repeated, ${cut} were cut off`,
    );
    const { postgres } = world;
    const scan = await postgres.send({
      name: "",
      text: `SELECT table_schema || '.' || table_name AS name, (xpath('/row/c/text()', query_to_xml(
          format('SELECT count(*) AS c FROM %I.%I t WHERE t::text LIKE ''%%${KEY.FLEET_TEST_KEY}%%''', table_schema, table_name),
          false, true, '')))[1]::text::int AS found
        FROM information_schema.tables WHERE table_schema IN ('kills', 'kills_boss') AND table_type = 'BASE TABLE'`,
    });
    assert.ok(scan.length > 10);
    assert.deepEqual(
      scan.filter(({ found }) => found !== 0),
      [],
      "no table holds a key",
    );
  });

  test("a worker that is stopped over its lease writes nothing when it goes on, and gives up its run", async () => {
    using model = await startModel(1500);
    using world = await fleet("zombie", model);
    const zombie = world.startWorker("--name", "zombie", "--concurrency", "1");
    await zombie.ready();
    const [run = ""] = await world.submit("notes", 1);
    await until(() => model.asked.length === 1, "it asks");
    zombie.process.kill("SIGSTOP");
    const other = world.startWorker("--name", "other", "--concurrency", "1");
    await other.ready();
    await done(world, 1);
    const before = (
      await world.postgres.send({
        name: "",
        text: `SELECT max(seq) AS last FROM ${world.postgres.schema}.event`,
      })
    )[0];
    zombie.process.kill("SIGCONT");
    await until(() => zombie.lines().some((line) => line.kind === "over" && line.run === run), "it gives up");
    const over = zombie.lines().find(({ kind }) => kind === "over");
    assert.deepEqual([over?.end, over?.isSettled], ["lost", false], JSON.stringify(over));
    assert.ok(zombie.lines().some(({ kind }) => kind === "stopped"));
    const [after] = await world.postgres.send({
      name: "",
      text: `SELECT max(seq) AS last FROM ${world.postgres.schema}.event`,
    });
    assert.deepEqual(after, before);
    assert.deepEqual(await answers(world), [3]);
    // Its slot is free again.
    other.process.kill("SIGTERM");
    await other.gone();
    await world.submit("notes", 1);
    await done(world, 2);
    zombie.process.kill("SIGTERM");
    assert.equal(await zombie.gone(), 0, zombie.stderr());
  });

  test("a worker that is stopped while its run has a command ends that command when it goes on", async () => {
    using model = await startModel(10);
    using world = await fleet("command", model);
    const pids = join(world.root, "pids");
    // The one of the first worker stays, that of another passes.
    writeCheckedAgent(world, "checked", `echo $$ >> ${pids}; [ $(wc -l < ${pids}) -gt 1 ] || exec sleep 600`);
    const start = (name: string) =>
      world.startWorker(
        "--name",
        name,
        "--concurrency",
        "1",
        "--sandbox",
        "off",
        "--work",
        `${pids}-${name}`,
      );
    const zombie = start("zombie");
    await zombie.ready();
    const [run = ""] = await world.submit("checked", 1);
    await until(() => existsSync(pids) && readFileSync(pids, "utf8").endsWith("\n"), "its command runs");
    zombie.process.kill("SIGSTOP");
    const command = Number(readFileSync(pids, "utf8"));
    const isRunning = () => existsSync(`/proc/${command}`);
    await endLease(world, "zombie");
    const other = start("other");
    await other.ready();
    await done(world, 1);
    assert.ok(isRunning(), "nobody else has ended it");
    zombie.process.kill("SIGCONT");
    const over = () => zombie.lines().find((line) => line.kind === "over" && line.run === run);
    await until(() => over() !== undefined, "it gives up");
    assert.deepEqual([over()?.end, over()?.isSettled], ["lost", false], JSON.stringify(over()));
    assert.ok(!isRunning(), "its command is ended");
    for (const worker of [other, zombie]) {
      worker.process.kill("SIGTERM");
      assert.equal(await worker.gone(), 0, worker.stderr());
    }
  });

  test("a queued run that must not be begun twice is begun, and one that was cut off is not", async () => {
    using model = await startModel(1500);
    using world = await fleet("once", model);
    writeAgent(world, "once", {
      agent: ({ runner }) => {
        (runner as { ifInterrupted: string }).ifInterrupted = "fail";
      },
    });
    const first = world.startWorker("--name", "first", "--concurrency", "1");
    await first.ready();
    const [cut = "", queued = ""] = await world.submit("once", 2);
    await until(() => model.asked.length === 1, "it asks");
    first.process.kill("SIGKILL");
    await first.gone();
    await endLease(world, "first");
    model.waitMs = 10;
    const second = world.startWorker("--name", "second", "--concurrency", "1");
    await second.ready();
    const ended = async (run: string) => {
      const { outcome, code } = await world.document(["show", run]);
      return [outcome, code];
    };
    await until(async () => {
      const { failed = 0, completed = 0 } = await world.outcomes();
      return failed + completed === 2;
    }, "both are over");
    assert.deepEqual(await ended(cut), ["failed", "STEP_INTERRUPTED"]);
    assert.deepEqual(await ended(queued), ["completed", null]);
    second.process.kill("SIGTERM");
    assert.equal(await second.gone(), 0, second.stderr());
  });

  test("a worker that is cut off has given up before another one asks, and its slots are free afterwards", async () => {
    using model = await startModel(25_000);
    using world = await fleet("partition", model);
    const proxy = await startProxy(server.port);
    try {
      const through = `${server.url.replace(`:${server.port}/`, `:${proxy.port}/`)}?schema=partition`;
      const cut = world.startWorkerAt(through, "--name", "cut", "--concurrency", "1");
      await cut.ready();
      const [run = ""] = await world.submit("notes", 1);
      await until(() => model.asked.length === 1, "it asks");
      proxy.hold();
      const other = world.startWorker("--name", "other", "--concurrency", "1");
      await other.ready();
      await until(() => model.asked.length === 2, "the other one asks");
      model.waitMs = 10;
      const [first, second] = model.asked;
      assert.ok(first!.isGivenUp && first!.end! <= second!.at, "the first has aborted before");
      assert.ok(cut.lines().some((line) => line.kind === "stopped" && line.why === "lease"));
      await done(world, 1);
      proxy.pass();
      await until(
        () => cut.lines().some((line) => line.kind === "over" && line.run === run),
        "it has let go",
      );
      other.process.kill("SIGTERM");
      await other.gone();
      await world.submit("notes", 1);
      await done(world, 2);
      cut.process.kill("SIGTERM");
      assert.equal(await cut.gone(), 0, cut.stderr());
      assert.deepEqual(await answers(world), [3, 3]);
    } finally {
      await proxy.close();
    }
  });
});

describe("a server that is away", { skip }, () => {
  for (const seconds of OUTAGES)
    test(`for ${seconds} s at a lease of 10: no question is repeated, and no run is taken over`, async () => {
      const server = await startServer(programs!);
      try {
        using model = await startModel(1000);
        using world = await createFleetWorld(server.url, model.config);
        writeAgent(world, "notes");
        const workers = [1, 2].map((at) => world.startWorker("--name", `w${at}`, "--concurrency", "2"));
        for (const worker of workers) await worker.ready();
        await world.submit("notes", 4);
        await until(() => model.asked.length === 4, "all are asked");
        // In the middle of the second answer of each.
        await until(() => model.asked.length === 8, "all go on");
        server.stop();
        await delay(seconds * 1000);
        server.start();
        await until(
          async () => (await world.outcomes().catch(() => ({ completed: 0 }))).completed === 4,
          "all are completed",
        );
        for (const worker of workers) worker.process.kill("SIGTERM");
        for (const worker of workers) assert.equal(await worker.gone(), 0, worker.stderr());
        const lines = workers.flatMap((worker) => worker.lines());
        assert.deepEqual(
          lines.filter(({ kind, attempt }) => kind === "stopped" || (kind === "began" && attempt !== 0)),
          [],
        );
        assert.equal(model.asked.length, 12, "each question once");
      } finally {
        server.remove();
      }
    });
});
