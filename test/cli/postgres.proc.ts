/** Runs that are recorded on a PostgreSQL server, by the command as a user types it. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pgPackage, serversHere, startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { readPostgresAddress } from "../../src/journal/postgres/address.ts";
import { openPostgres } from "../../src/journal/postgres/connection.ts";
import { needs } from "../needs.ts";
import { until } from "../until.ts";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "./world.ts";

const PASSWORD = "long-and-secret";
const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const [programs] = serversHere().values();
const missing =
  pgPackage() === null ? "pg@8 (runs on PostgreSQL)" : "PostgreSQL 15 or newer (runs on PostgreSQL)";
const { skip } = needs(pgPackage() !== null && programs !== undefined, missing);

/** Its first step asks before it writes a file. */
function writeAsking(world: World): void {
  writeAgent(world, "notes", {
    registry: ({ steps }) => {
      (steps as { [id: string]: { permissionMode?: string } })["initial.note"]!.permissionMode = "default";
    },
    agent: ({ runner }) => {
      (runner as { boundaries: { allowedTools: readonly string[] } }).boundaries.allowedTools = ["*"];
    },
  });
  const write = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
  world.write("asking.json", script(write, replies.initial(), replies.continuation(), replies.closure()));
}

describe("runs on PostgreSQL", { skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startServer(programs!);
  });
  after(() => server.remove());

  const env = { LOCKSTEP_PACKAGES: packages };
  const project = (): World => {
    const world = createWorld();
    writeAgent(world, "notes");
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    return world;
  };
  const run = ["run", "notes", "--topic", "tides", "--script", "script.json", "--json"];

  test("are driven, listed, explained, replayed, exported, imported and removed as those of a folder", async () => {
    using world = project();
    const at = ["--state", `${server.url}?schema=verbs`];
    const early = await world.lockstep([...run, ...at], { env });
    assert.equal(early.code, 3);
    assert.match(String(onlyDocument(early).reason), /no tables.*lockstep fleet init/);
    for (const _ of [1, 2]) {
      const made = await world.lockstep(["fleet", "init", ...at], { env });
      assert.deepEqual([made.code, made.stderr], [0, ""]);
    }
    const ran = onlyDocument(await world.lockstep([...run, ...at], { env }));
    assert.equal(ran.outcome, "completed", String(ran.reason));
    const id = String(ran.run);
    assert.ok(!existsSync(join(world.root, ".lockstep/runs.db")), "nothing is recorded in the folder");
    const onDisk = onlyDocument(await world.lockstep(run, { env }));
    const asked = async (args: readonly string[]) =>
      onlyDocument(await world.lockstep([...args, "--json", ...at], { env }));
    assert.deepEqual(
      ((await asked(["runs"])).runs as readonly { run: string }[]).map((row) => row.run),
      [id],
    );
    const shown = await asked(["show", id]);
    assert.deepEqual([shown.path, shown.handoff], [onDisk.path, onDisk.handoff]);
    assert.equal((await asked(["why", id])).step, "closure.note");
    assert.equal((await world.lockstep(["replay", "--all", ...at], { env })).code, 0);
    const exported = await world.lockstep(["export", id, ...at], { env });
    world.write("exported.json", exported.stdout);
    assert.equal(
      (await world.lockstep(["import", "exported.json", "--as", "again", ...at], { env })).code,
      0,
    );
    assert.equal((await world.lockstep(["diff", id, "again", ...at], { env })).code, 0);
    assert.equal((await world.lockstep(["runs", "--prune", "again", "--yes", ...at], { env })).code, 0);
    assert.equal((await world.lockstep(["show", "again", ...at], { env })).code, 2);
  });

  test("killed in the middle, a run goes on in another process, and nothing committed is asked again", async () => {
    using world = project();
    const state = `${server.url}?schema=killed`;
    const around = { ...env, LOCKSTEP_STATE: state };
    assert.equal((await world.lockstep(["fleet", "init"], { env: around })).code, 0);
    // It waits for a while after the first step, and is killed then.
    const limited = { step: "continuation.note", error: { kind: "rate-limit", retryAfterMs: 50_000 } };
    world.write("slow.json", script(replies.initial(), limited));
    world.write("rest.json", script(replies.continuation(), replies.closure()));
    const child = world.begin(["run", "notes", "--topic", "tides", "--script", "slow.json", "--json"], {
      ...world.env,
      ...around,
    });
    const rows = async () =>
      onlyDocument(await world.lockstep(["runs", "--json"], { env: around })).runs as readonly {
        run: string;
        events: number;
      }[];
    let found: Awaited<ReturnType<typeof rows>> = [];
    await until(
      async () => (found = await rows()).some(({ events }) => events >= 3),
      "the first step is recorded",
    );
    const id = found[0]!.run;
    child.kill("SIGKILL");
    const resumed = ["resume", id, "--script", "rest.json", "--json"];
    const refused = onlyDocument(await world.lockstep(resumed, { env: around }));
    assert.equal(refused.code, "RUN_OWNED_ELSEWHERE", `its lease is not over: ${String(refused.reason)}`);
    assert.match(String(refused.reason), new RegExp(`driven by process ${child.pid} .*--take-over`));
    const ended = onlyDocument(await world.lockstep([...resumed, "--take-over"], { env: around }));
    assert.equal(ended.outcome, "completed", String(ended.reason));
    const path = ended.path as readonly { step: string; visit: number }[];
    assert.deepEqual(
      path.map(({ step, visit }) => `${step}@${visit}`),
      ["initial.note@1", "continuation.note@1", "closure.note@1"],
    );
  });

  test("are paused, stopped and answered from another machine, and nothing is left in its folder", async () => {
    using world = project();
    using elsewhere = createWorld();
    const around = { ...env, LOCKSTEP_STATE: `${server.url}?schema=steered` };
    assert.equal((await world.lockstep(["fleet", "init"], { env: around })).code, 0);
    const limited = { step: "initial.note", error: { kind: "rate-limit", retryAfterMs: 50_000 } };
    world.write("slow.json", script(limited, replies.initial(), replies.continuation(), replies.closure()));
    const slow = ["run", "notes", "--topic", "x", "--script", "slow.json", "--json"];
    const driven = async (args: readonly string[]) => {
      const before = await newest();
      const child = world.begin(args, { ...world.env, ...around });
      await until(async () => {
        assert.equal(child.exitCode, null);
        const row = await newest();
        return row !== undefined && row.run !== before?.run && row.events >= 2;
      }, "the run waits");
      return { child, run: (await newest())!.run };
    };
    const newest = async () => {
      const { runs } = onlyDocument(
        await world.lockstep(["runs", "--json", "--limit", "1"], { env: around }),
      );
      return (runs as readonly { run: string; events: number }[])[0];
    };
    const says = async (from: World, args: readonly string[]) => {
      const said = await from.lockstep([...args, "--json"], { env: around });
      assert.ok(said.code === 0 || said.code === 5, said.stderr);
      return onlyDocument(said);
    };
    for (const [verb, state, onward] of [
      ["pause", "paused", "continue"],
      ["stop", "stopped", "resume"],
    ] as const) {
      const { child, run: id } = await driven(slow);
      assert.equal((await says(elsewhere, [verb, id])).state, state);
      await until(() => child.exitCode !== null, "the run has ended");
      const refused = await world.lockstep(["resume", id, "--no-color"], { env: around });
      if (verb === "pause") assert.match(refused.stderr, /is paused. Continue with/);
      else assert.equal(refused.code, 0, refused.stderr);
      if (verb === "pause") assert.equal((await says(world, [onward, id])).outcome, "completed");
    }
    writeAsking(world);
    const asking = await driven([...slow.with(5, "asking.json"), "--wait"]);
    const { questions } = await says(elsewhere, ["answer", asking.run]);
    const [question] = questions as readonly { id: string }[];
    const answered = await says(elsewhere, ["answer", asking.run, question!.id, "allow"]);
    assert.equal(answered.answer, "allow");
    await until(() => asking.child.exitCode !== null, "the run has ended");
    assert.equal(asking.child.exitCode, 0);
    assert.ok(existsSync(join(world.root, "made.txt")), "the call was allowed");
    const again = await elsewhere.lockstep(["answer", asking.run, "allow"], { env: around });
    assert.match(again.stderr, /waits for no answer/);
    assert.ok(!existsSync(join(elsewhere.root, ".lockstep")), "letters lie on the server");
  });

  test("of a fleet: answered, resumed and continued from anywhere, they ask for a worker", async () => {
    using world = project();
    using elsewhere = createWorld();
    const around = { ...env, LOCKSTEP_STATE: `${server.url}?schema=offered` };
    const address = readPostgresAddress(around.LOCKSTEP_STATE);
    const postgres = openPostgres({ address, pg: pgPackage()!, patienceMs: 60_000 });
    try {
      assert.equal((await world.lockstep(["fleet", "init"], { env: around })).code, 0);
      writeAsking(world);
      const asked = await world.lockstep([...run.with(5, "asking.json"), "--on-permission", "halt"], {
        env: around,
      });
      assert.equal(asked.code, 5, asked.stderr);
      const id = String(onlyDocument(asked).run);
      const row = async (change = "") => {
        const text = `UPDATE offered.run SET queue = 'runs', grp = 'g' ${change} RETURNING wakes, due IS NOT NULL AS due`;
        const [found] = await postgres.send({ name: `row${change.length}`, text });
        return `${String(found?.wakes)} ${String(found?.due)}`;
      };
      const says = async (args: readonly string[], from: World = elsewhere) => {
        const { code, stdout, stderr } = await from.lockstep([...args, "--no-color"], { env: around });
        return `${code} ${stdout}${stderr}`;
      };
      assert.equal(await row(), "0 false");
      assert.match(await says(["resume", id]), /^0 A worker continues run \w+ \(queue runs\)/);
      assert.equal(await row(", due = NULL"), "1 false");
      assert.match(await says(["resume", id, "--model", "openai/x"]), /^2 .*--model has no effect.*--here/s);
      assert.match(await says(["answer", id, "allow"]), /^0 Answered .*A worker of the fleet continues/);
      assert.equal(await row(), "2 true");
      assert.match(await says(["pause", id]), /^0 .*is paused/);
      assert.match(await says(["resume", id]), /^5 .*is paused/s);
      assert.match(await says(["continue", id]), /^0 A worker continues/);
      assert.equal(await row(", held = 'poisoned', held_because = 'Three workers died.'"), "3 true");
      assert.match(await says(["continue", id]), /^3 .*Three workers died\..*lockstep fleet retry/s);
      assert.equal(await row(", held = NULL"), "3 true");
      // The wish to continue holds for whoever drives it next.
      assert.match(await says(["resume", id, "--here"], world), /"outcome":"success"/);
      assert.match(await says(["resume", id]), /had already ended/);
      assert.ok(existsSync(join(world.root, "made.txt")), "the answer counted");
    } finally {
      await postgres.close();
    }
  });

  test("of a fleet are held to limits that the command sets, shows and removes", async () => {
    using world = createWorld();
    const around = { ...env, LOCKSTEP_STATE: `${server.url}?schema=limited` };
    const says = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await world.lockstep(["fleet", "limit", ...args], { env: around });
      return `${code} ${stdout}${stderr}`;
    };
    assert.match(await says(), /^3 .*no tables.*lockstep fleet init/s);
    assert.equal((await world.lockstep(["fleet", "init"], { env: around })).code, 0);
    assert.match(await says(), /^0 The fleet has no limits/);
    assert.match(
      await says("acme/big.tokens", "600000/min"),
      /^0 acme\/big\.tokens +600000\/min +100000 left\n$/,
    );
    await says("acme/big.tokens", "60000/min");
    await says("costUsd", "20/day");
    const shown = await says("costUsd", "5/day", "--group", "nightly", "--json");
    const { limits } = JSON.parse(shown.slice(2)) as { readonly limits: readonly object[] };
    const rate = { name: "acme/big.tokens", group: null, amount: 60_000, periodMs: 60_000, burst: 10_000 };
    const budget = { name: "costUsd", periodMs: 86_400_000, notBefore: null };
    assert.deepEqual(limits, [
      { ...rate, left: 10_000, notBefore: null },
      { ...budget, group: null, amount: 20, burst: 20, left: 20 },
      { ...budget, group: "nightly", amount: 5, burst: 5, left: 5 },
    ]);
    assert.match(await says("costUsd", "none", "--group", "nightly"), /^0 acme[^(]*\n$/s);
    const wrong: readonly [args: readonly string[], says: RegExp][] = [
      [["costUsd", "none", "--group", "nightly"], /There is no limit costUsd \(group nightly\)/],
      [["costUsd"], /needs AMOUNT\/PERIOD/],
      [["big.tokens", "1/s"], /Use PROVIDER\/MODEL\.requests/],
      [["costUsd", "much"], /is not a limit/],
    ];
    for (const [args, words] of wrong) {
      const said = await says(...args);
      assert.ok(said.startsWith("2 "), said);
      assert.match(said, words);
    }
    const folder = await world.lockstep(["fleet", "limit"], { env });
    assert.match(`${folder.code} ${folder.stderr}`, /^2 .*fleet limit needs the address of a server/s);
  });

  test("what is wrong with the address is a sentence", async () => {
    using world = project();
    const cases: readonly [state: string, args: readonly string[], code: number, says: RegExp][] = [
      [`postgres://u:${PASSWORD}@127.0.0.1/x`, ["runs"], 2, /must not hold a password/],
      [`${server.url}?schema=A-B`, ["runs"], 3, /schema is not a valid name/],
      [`${server.url}?pooler=session`, ["runs"], 3, /pooler is not "transaction"/],
      [`${server.url}?user=me&password=${PASSWORD}`, ["runs"], 3, /option that is not known/],
      [`${server.url}?shema=other`, ["runs"], 3, /option that is not known; use schema/],
      [`${server.url}?sslmode=wrong`, ["runs"], 3, /sslmode is not one of/],
      [`mysql://me:${PASSWORD}@127.0.0.1/x`, ["runs"], 3, /cannot be recorded at mysql:/],
      ["postgres://127.0.0.1:1/x", ["runs"], 3, /cannot be reached/],
      ["postgres://127.0.0.1", ["runs"], 3, /names no database/],
      [server.url.replace(/postgres$/, "absent"), ["fleet", "init"], 3, /absent does not exist/],
      ["folder", ["fleet", "init"], 2, /needs the address of a server/],
    ];
    for (const [state, args, code, says] of cases) {
      const ran = await world.lockstep([...args, "--state", state], { env });
      assert.equal(ran.code, code, `${state}: ${ran.stderr}`);
      assert.match(ran.stderr, says);
      assert.ok(!ran.stderr.includes(PASSWORD));
    }
    const unescaped = `postgres://me:p@ss/w#rd?x@127.0.0.1/x`;
    const cut = await world.lockstep(["runs"], { env: { ...env, LOCKSTEP_STATE: unescaped } });
    assert.equal(cut.code, 3);
    assert.match(cut.stderr, /as %2F %3F %23 and %40/);
    const without = await world.lockstep(["runs", "--state", server.url], {
      env: { LOCKSTEP_PACKAGES: world.root },
    });
    assert.equal(without.code, 3);
    assert.match(without.stderr, /needs pg, which is not installed.*npm install pg@8/s);
  });
});
