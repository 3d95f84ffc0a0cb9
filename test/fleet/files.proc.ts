/** The files of runs on PostgreSQL: stored while workers drive, brought home by `fleet fetch`, cleared away by `fleet prune`. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Journal } from "../../src/engine/ports.ts";
import { createPostgresReading } from "../../src/journal/postgres/reading.ts";
import type { Postgres, Statement, StatementValues } from "../../src/journal/postgres/connection.ts";
import { openJournalAt } from "../../src/run/records/postgres-journal.ts";
import { findRun } from "../../src/run/records/runs.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { replies, repository, type Repository } from "../run/repository.ts";
import { until } from "../until.ts";
import { createFleet, working } from "../run/travel-fleet.ts";
import { env, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("files of runs on PostgreSQL");
const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

describe("files of runs on PostgreSQL", { skip }, () => {
  let server: PostgresServer;
  let postgres: Postgres;
  let journal: Journal;
  let url = "";
  before(async () => {
    server = await startServer(programs!);
    url = `${server.url}?schema=files`;
    postgres = postgresAt(url);
    await makeFleet(postgres);
    journal = await openJournalAt(url, { ...process.env, ...env });
  });
  after(async () => {
    await journal.close();
    await postgres.close();
    server.remove();
  });

  const lockstep = (world: Repository, ...args: readonly string[]) => {
    const around = { ...world.env, ...env, LOCKSTEP_STATE: url };
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      cwd: world.home,
      env: around,
      encoding: "utf8",
      timeout: 60_000,
    });
    return { code: status, stdout, stderr };
  };
  const count = async (table: string) =>
    (await postgres.send({ name: "", text: `SELECT count(*)::int AS n FROM files.${table}` }))[0]?.n;

  test("a run that failed elsewhere is fetched with what it had not committed, and pruned with its files", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world, journal);
    world.write("draft.txt", "draft\n");
    const run = await fleet.submit("bundle");
    const stop = new AbortController();
    const lines = ["echo two > a.txt; git commit -qam two", "cat draft.txt > copy.txt", "exit 1"];
    const cut = await fleet.drive(run, "one", working(lines), {
      stopSignal: stop.signal,
      observe: ({ event, tree }) => event.type === "step.called" && tree !== undefined && stop.abort(),
    });
    assert.equal(cut.kind, "yielded", JSON.stringify(cut));
    const end = await fleet.drive(run, "two", working(lines));
    assert.equal(end.kind, "ended", JSON.stringify(end));
    const fetched = lockstep(world, "fleet", "fetch", run.slice(0, 6), "--as", "home", "--json");
    assert.equal(fetched.code, 0, fetched.stderr);
    const { branch, base, uncommitted, commit } = JSON.parse(fetched.stdout) as { [key: string]: unknown };
    assert.deepEqual([branch, uncommitted], ["home", true]);
    assert.equal(base, world.git(world.home, "rev-parse", "main"));
    assert.equal(world.git(world.home, "rev-parse", "home"), commit);
    for (const [file, text] of [
      ["a.txt", "two"],
      ["copy.txt", "draft"],
      ["draft.txt", "draft"],
    ] as const)
      assert.equal(world.git(world.home, "show", `home:${file}`), text);
    assert.equal(world.git(world.home, "log", "--format=%s", "main..home^"), "two");
    assert.equal(world.git(world.home, "status", "--porcelain"), "?? draft.txt");
    assert.equal(world.git(world.home, "for-each-ref", "refs/lockstep"), "");
    // The same again is the same; another commit under the name is not overwritten.
    assert.equal(lockstep(world, "fleet", "fetch", run, "--as", "home").code, 0);
    const taken = lockstep(world, "fleet", "fetch", run, "--as", "main");
    assert.deepEqual([taken.code, /exists/.test(taken.stderr)], [2, true], taken.stderr);
    const odd = lockstep(world, "fleet", "fetch", run, "--as", "--x");
    assert.notEqual(odd.code, 0);
    world.shell("git init -q ../other && git -C ../other commit -q --allow-empty -m other");
    const elsewhere = lockstep({ ...world, home: join(world.temp, "other") }, "fleet", "fetch", run);
    assert.equal(elsewhere.code, 0, "a bundle brings all that it needs");

    const kept = lockstep(world, "fleet", "prune", "--older-than", "1h", "--json", "--yes");
    assert.deepEqual(JSON.parse(kept.stdout), { v: 1, dryRun: false, runs: 0, blobs: 0, bytes: 0 });
    await postgres.send({ name: "", text: "UPDATE files.blob SET at = at - interval '2 hours'" });
    const queued = await fleet.submit("none");
    await postgres.send({ name: "", text: "UPDATE files.run SET due = clock_timestamp() WHERE id = $1" }, [
      queued,
    ]);
    const asked = lockstep(world, "fleet", "prune", "--older-than", "0s");
    assert.deepEqual([asked.code, /--yes/.test(asked.stderr)], [2, true]);
    const look = lockstep(world, "fleet", "prune", "--older-than", "0s", "--dry-run", "--json");
    assert.equal((JSON.parse(look.stdout) as { runs: number }).runs, 1);
    const pruned = lockstep(world, "fleet", "prune", "--older-than", "0s", "--yes", "--json");
    const { runs, blobs } = JSON.parse(pruned.stdout) as { runs: number; blobs: number };
    assert.deepEqual([runs, blobs > 0], [1, true]);
    for (const table of ["blob", "run_blob", "mail"]) assert.equal(await count(table), 0, table);
    assert.equal(await count("run"), 1, "a run that waits for a worker stays");
    assert.equal(lockstep(world, "fleet", "fetch", run).code, 2);
    await journal.remove(queued);
  });

  test("a worker that is killed in a tool call loses nothing: another one repeats it, and pushes once", async () => {
    const world = repository();
    const began = join(world.temp, "began");
    const line = `if test -e ${began}; then test ! -e half && echo whole > result; else echo half > half; touch ${began}; sleep 300; fi`;
    writeFileSync(join(world.temp, "script.json"), JSON.stringify({ replies: replies([line]) }));
    const config = { fleet: { leaseSeconds: 10, repositories: ["file://**"] } };
    mkdirSync(join(world.env.HOME!, ".config/lockstep"), { recursive: true });
    writeFileSync(join(world.env.HOME!, ".config/lockstep/config.json"), JSON.stringify(config));
    const submit = ["fleet", "submit", "worker", "--push", "--no-merge", "--json"];
    const refused = lockstep({ ...world, env: { ...world.env, LOCKSTEP_TRUST: undefined } }, ...submit);
    assert.equal(refused.code, 3, refused.stdout);
    const trusting = { ...world, env: { ...world.env, LOCKSTEP_TRUST: "all" } };
    assert.match(lockstep(trusting, "fleet", "submit", "worker").stderr, /FLEET_NO_HOME|--push/);
    const submitted = lockstep(trusting, ...submit);
    assert.equal(submitted.code, 0, submitted.stderr);
    const [{ run }] = (JSON.parse(submitted.stdout) as { runs: [{ run: string }] }).runs;
    const workers = ["one", "two"].map((name) => ({
      start: () => {
        const flags = [
          "--work",
          join(world.temp, name),
          "--name",
          name,
          "--script",
          join(world.temp, "script.json"),
        ];
        const args = [MAIN, "fleet", "worker", "--sandbox", "off", ...flags];
        const around = { ...world.env, ...env, LOCKSTEP_STATE: url };
        return spawn(process.execPath, args, { cwd: world.temp, env: around, stdio: "ignore" });
      },
    }));
    const first = workers[0]!.start();
    await until(() => existsSync(began), "the call has begun");
    const ended = once(first, "exit");
    first.kill("SIGKILL");
    await ended;
    const second = workers[1]!.start();
    try {
      const outcome = () => JSON.parse(lockstep(world, "show", run, "--json").stdout) as { outcome: string };
      await until(() => outcome().outcome === "completed", "the run is completed");
    } finally {
      const gone = once(second, "exit");
      second.kill("SIGTERM");
      await gone;
    }
    const [begin] = await journal.read(run, 0, 1);
    assert.ok(begin?.event.type === "run.started");
    const { branch } = begin.event.worktree!;
    assert.equal(world.git(world.remote, "show", `${branch}:result`), "whole");
    assert.equal(world.git(world.remote, "ls-tree", "--name-only", branch).includes("half"), false);
    assert.equal(world.git(world.remote, "log", "--format=%s", `main..${branch}`).split("\n").length, 1);
    const pushes = (await journal.read(run)).filter(
      ({ event }) => event.type === "effect.applied" && event.key === "push",
    );
    assert.equal(pushes.length, 1);
    assert.deepEqual(readdirSync(join(world.temp, "two/runs")), [], "nothing of it is kept");
    await journal.remove(run);
  });

  test("the commit that a run began at has to be here", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world, journal);
    const run = await fleet.submit();
    await fleet.drive(run, "one", working(["echo x > made"]));
    world.shell("git init -q ../other && git -C ../other commit -q --allow-empty -m other");
    const elsewhere = lockstep({ ...world, home: join(world.temp, "other") }, "fleet", "fetch", run);
    assert.deepEqual(
      [elsewhere.code, /git -C \S+ fetch/.test(elsewhere.stderr)],
      [2, true],
      elsewhere.stderr,
    );
    assert.equal(lockstep(world, "fleet", "fetch", run).code, 0);
    assert.equal(world.git(world.home, "show", `lockstep/${run}:made`), "x");
    await journal.remove(run);
  });

  test("finding, listing and reading runs touch as much of a large record as of a small one", async () => {
    await postgres.send({ name: "", text: "CREATE SCHEMA many" });
    const many = postgresAt(`${server.url}?schema=many`);
    try {
      await makeFleet(many);
      const fill = async (from: number, to: number) => {
        const run = `INSERT INTO many.run (id, agent, digest, created_at, epoch) SELECT md5(n::text), 'a', 'd', n, 1
          FROM generate_series(${from}, ${to}) n`;
        const body = `'{"seq":' || s || ',"at":' || n || ',"event":{"type":"step.waited","step":"a","visit":1,"ms":1}}'`;
        const event = `INSERT INTO many.event (run, seq, body)
          SELECT r.key, s, ${body} FROM many.run r, LATERAL (SELECT r.created_at::int AS n) x, generate_series(1, 12) s
          WHERE r.created_at BETWEEN ${from} AND ${to} ORDER BY r.key, s`;
        for (const text of [run, event, "ANALYZE many.run", "ANALYZE many.event"])
          await many.send({ name: "", text });
      };
      /** Pages of tables and indexes that the statements of a question look at. */
      const touched = async (question: (journal: Pick<Journal, "list" | "read">) => Promise<unknown>) => {
        const asked: [Statement, StatementValues][] = [];
        const heard: Postgres = {
          ...many,
          send: async (statement, values = []) => {
            asked.push([statement, values]);
            return await many.send(statement, values);
          },
        };
        await question(createPostgresReading(heard));
        let pages = 0;
        for (const [{ text }, values] of asked) {
          const [row] = await many.send(
            { name: "", text: `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}` },
            values,
          );
          const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: { [key: string]: number } }];
          pages += Plan["Shared Hit Blocks"]! + Plan["Shared Read Blocks"]!;
        }
        return pages;
      };
      const id = (await many.send({ name: "", text: "SELECT md5('77') AS id" }))[0]!.id as string;
      const QUESTIONS = {
        find: (reading: Pick<Journal, "list" | "read">) => findRun(reading as Journal, id.slice(0, 12)),
        list: (reading: Pick<Journal, "list" | "read">) => reading.list({ limit: 20 }),
        show: (reading: Pick<Journal, "list" | "read">) => reading.read(id),
      };
      await fill(1, 1000);
      const small = new Map<string, number>();
      for (const [name, question] of Object.entries(QUESTIONS)) small.set(name, await touched(question));
      const most = 100_000;
      await fill(1001, most);
      for (const [name, question] of Object.entries(QUESTIONS)) {
        const [before, now] = [small.get(name)!, await touched(question)];
        assert.ok(now <= before * 3, `${name}: ${before} pages of 1,000 runs, ${now} of ${most}`);
      }
    } finally {
      await many.close();
    }
  });
});
