/** A fleet by the commands as users type them: workers are processes, the server is real. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { MAIN, replies, script, writeAgent } from "../cli/world.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { canMount, mounted } from "../mounted.ts";
import { needs } from "../needs.ts";
import { until } from "../until.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { offerRuns } from "../../src/fleet/offer.ts";
import { workersOf } from "../../src/fleet/status.ts";
import { wakeWithin } from "../../src/journal/postgres/wake.ts";
import { startModel } from "./fleet-model.ts";
import { createFleetWorld } from "./fleet-world.ts";
import { needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("a fleet by its commands");

describe("a fleet", { skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startServer(programs!);
  });
  after(() => server.remove());

  test("drives what is submitted, and is looked at and drained by its commands", async () => {
    using world = await createFleetWorld(`${server.url}?schema=verbs`);
    writeAgent(world, "notes");
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    const runs = await world.submit("notes", 3);
    const early = await world.document(["fleet", "status"]);
    assert.match(JSON.stringify(early.faults), /No living worker takes runs from the queue runs/);
    assert.equal((await world.lockstep(["fleet", "status", "--check"], { env: world.around })).code, 1);
    const worker = world.startWorker("--script", "script.json", "--name", "one", "--concurrency", "2");
    await worker.ready();
    await until(async () => (await world.outcomes()).completed === 3, "all are completed").catch((error) => {
      throw new Error(`${String(error)}\n${JSON.stringify(worker.lines())}\n${worker.stderr()}`);
    });
    const shown = await world.document(["show", runs[0]!]);
    assert.deepEqual([shown.outcome, shown.success], ["completed", true]);
    const ps = (await world.document(["fleet", "ps", "--self"])).workers as readonly {
      name: string;
      alive: boolean;
    }[];
    assert.deepEqual(
      ps.map(({ name, alive }) => [name, alive]),
      [["one", true]],
    );
    assert.equal((await world.lockstep(["fleet", "status", "--check"], { env: world.around })).code, 0);
    const unknown = await world.lockstep(["fleet", "drain", "two"], { env: world.around });
    assert.match(unknown.stderr, /no living worker "two"/);
    assert.deepEqual((await world.document(["fleet", "drain", "one"])).draining, ["one"]);
    assert.equal(await worker.gone(), 0, worker.stderr());
    assert.deepEqual((await world.document(["fleet", "ps"])).workers, []);
    assert.equal((await world.lockstep(["fleet", "ps", "--self"], { env: world.around })).code, 1);
    const retry = await world.lockstep(["fleet", "retry", runs[0]!], { env: world.around });
    assert.match(retry.stderr, /is not poisoned/);
  });

  test("workers that are drained in turn, with init in between, repeat and lose nothing", async () => {
    using model = await startModel(100);
    using world = await createFleetWorld(`${server.url}?schema=rolling`, model.config);
    writeAgent(world, "notes");
    let worker = world.startWorker("--name", "w0", "--concurrency", "4");
    await worker.ready();
    await world.submit("notes", 16);
    for (let at = 1; at <= 2; at += 1) {
      const before = model.asked.length;
      await until(() => model.asked.length >= before + 5, "it asks");
      const next = world.startWorker("--name", `w${at}`, "--concurrency", "4");
      await next.ready();
      const init = world.lockstep(["fleet", "init"], { env: world.around });
      worker.process.kill("SIGTERM");
      assert.equal(await worker.gone(), 0, worker.stderr());
      assert.equal((await init).code, 0);
      worker = next;
    }
    await until(async () => (await world.outcomes()).completed === 16, "all are completed");
    assert.equal(model.asked.length, 48, "each question once");
  });

  test("a run whose record is damaged is held after three attempts", async () => {
    using world = await createFleetWorld(`${server.url}?schema=damaged`);
    writeAgent(world, "notes");
    const { postgres } = world;
    const { schema } = postgres;
    const [entry = "", flow = ""] = await world.submit("notes", 2);
    const change = (text: string, run: string) => postgres.send({ name: "", text }, [run]);
    await change(
      `UPDATE ${schema}.event SET body = 'garbage' WHERE run = (SELECT key FROM ${schema}.run WHERE id = $1)`,
      entry,
    );
    await change(`UPDATE ${schema}.run SET digest = 'unknown' WHERE id = $1`, flow);
    const worker = world.startWorker("--name", "one");
    await worker.ready();
    const held = `SELECT held_because, tries FROM ${schema}.run WHERE held = 'poisoned' ORDER BY key`;
    await until(async () => {
      // The pauses between attempts are not waited for.
      const text = `UPDATE ${schema}.run SET due = clock_timestamp() WHERE due > clock_timestamp()`;
      await postgres.send({ name: "", text });
      return (await postgres.send({ name: "", text: held })).length === 2;
    }, "both are held");
    const rows = await postgres.send({ name: "", text: held });
    assert.deepEqual(
      rows.map(({ tries }) => tries),
      [3, 3],
    );
    assert.match(String(rows[0]!.held_because), /^JOURNAL_UNAVAILABLE: .*entry 1 of run .* is not JSON/);
    assert.match(String(rows[1]!.held_because), /^JOURNAL_UNAVAILABLE: The flow unknown/);
    assert.equal((await world.lockstep(["fleet", "status", "--check"], { env: world.around })).code, 1);
    worker.process.kill("SIGTERM");
    assert.equal(await worker.gone(), 0, worker.stderr());
  });

  const mounting = needs(...canMount());
  test("a worker whose disk is full takes no run and says so, until there is room", mounting, async () => {
    using world = await createFleetWorld(`${server.url}?schema=room`);
    writeAgent(world, "notes");
    const folder = join(world.env.HOME!, "small");
    const line = `mkdir "${folder}" && mount -t tmpfs -o size=100m none "${folder}" && head -c 80M /dev/zero > "${folder}/ballast"`;
    const [command = "", ...args] = mounted(line);
    const flags = ["fleet", "worker", "--name", "full", "--work", folder, "--sandbox", "off"];
    const full = spawn(command, [...args, process.execPath, MAIN, ...flags], {
      env: { ...world.env, ...world.around },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    full.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
    try {
      const [run = ""] = await world.submit("notes", 1);
      await until(() => said.includes("takes no run"), "it says so").catch((error: unknown) => {
        throw new Error(`${String(error)}: ${said}`);
      });
      const troubled = async () =>
        (await workersOf(world.postgres)).some(({ offers }) => offers?.trouble?.includes("is full"));
      await until(troubled, "its row says so");
      const status = await world.lockstep(["fleet", "status", "--check"], { env: world.around });
      assert.deepEqual(
        [status.code, /full has trouble: The disk of/.test(status.stdout + status.stderr)],
        [1, true],
      );
      const text = `SELECT owner, tries, epoch FROM ${world.postgres.schema}.run WHERE id = $1`;
      const rows = await world.postgres.send({ name: "", text }, [run]);
      assert.deepEqual(rows, [{ owner: null, tries: 0, epoch: 0 }], "nobody has tried it");
      // The disk that only the worker sees.
      rmSync(`/proc/${full.pid}/root${folder}/ballast`);
      const isTaken = async () => (await world.postgres.send({ name: "", text }, [run]))[0]?.epoch !== 0;
      await until(isTaken, "it takes the run");
      await until(() => said.includes("The trouble is over."), "it says that, too");
    } finally {
      full.kill("SIGKILL");
    }
  });

  test("a worker that cannot start says why, and a signal ends one that is about to start", async () => {
    using world = await createFleetWorld(`${server.url}?schema=start`);
    for (const folder of ["/proc/nope", "/dev/null", "/dev/null/below"]) {
      const ran = world.startWorker("--work", folder);
      assert.equal(await ran.gone(), 3, ran.stderr());
      assert.match(
        ran.stderr(),
        new RegExp(`The folder ${folder} cannot hold the files of runs: .* --work DIR`),
      );
    }
    let isAsked = false;
    const silent = createServer((socket) => {
      isAsked = true;
      socket.on("error", () => undefined);
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = silent.address() as AddressInfo;
      const waiting = world.startWorkerAt(`postgres://postgres@127.0.0.1:${port}/postgres`);
      await until(() => isAsked, "it asks the server");
      waiting.process.kill("SIGTERM");
      assert.equal(await waiting.gone(), null, waiting.stderr());
      assert.equal(waiting.process.signalCode, "SIGTERM");
    } finally {
      silent.close();
    }
  });

  test("a role that submits can neither delete nor read another schema", async () => {
    using world = await createFleetWorld(`${server.url}?schema=roles`);
    const { schema } = world.postgres;
    await world.postgres.send({
      name: "",
      text: `CREATE ROLE submitter LOGIN; GRANT USAGE ON SCHEMA ${schema} TO submitter;
        GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA ${schema} TO submitter; GRANT UPDATE ON ${schema}.run TO submitter;
        CREATE SCHEMA other_team; CREATE TABLE other_team.run (id text)`,
    });
    const own = postgresAt(`${server.url.replace("postgres@", "submitter@")}?schema=${schema}`);
    try {
      const run = { id: "submitted", agent: "a", at: 0, digest: "d", flow: {} as Flow };
      const offer = { run, entries: [{ seq: 1 } as Entry], queue: "runs", group: "g", priority: 0 };
      assert.deepEqual(await offerRuns(own, [offer], 1), [{ run: "submitted", isNew: true }]);
      await own.together((send) => wakeWithin(send, schema, "submitted"));
      for (const text of [
        `DELETE FROM ${schema}.run`,
        "SELECT * FROM other_team.run",
        `SELECT * FROM ${schema}_boss.job`,
      ])
        await assert.rejects(own.send({ name: "", text }), /does not allow this user/, text);
    } finally {
      await own.close();
    }
  });
});
