/** Forks of runs whose files travel, and files of the agent that changed since: driven in the folders of several machines. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Journal } from "../../src/engine/ports.ts";
import { clearBlobs } from "../../src/journal/postgres/blobs.ts";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import { fork, resume, type Result } from "../../src/run/index.ts";
import { partRun } from "../../src/run/fork.ts";
import { openJournalAt } from "../../src/run/records/postgres-journal.ts";
import type { SourceKind } from "../../src/run/source.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { repository, WORKER, type Repository } from "../run/repository.ts";
import { createFleet, working } from "../run/travel-fleet.ts";
import { env, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("forks of runs whose files travel");
const PUSHED = { finalize: { autoMerge: false, push: true } };
const LINES = ["echo two > a.txt; git commit -qam two", "echo left > left.txt"];
const FOLDER = { execution: {} };
const WORKTREE = { execution: { worktree: { enabled: true } } };

describe("forks of runs whose files travel", { skip }, () => {
  let server: PostgresServer;
  let postgres: Postgres;
  let journal: Journal;
  before(async () => {
    server = await startServer(programs!);
    const url = `${server.url}?schema=forks`;
    postgres = postgresAt(url);
    await makeFleet(postgres);
    journal = await openJournalAt(url, { ...process.env, ...env });
  });
  after(async () => {
    await journal.close();
    await postgres.close();
    server.remove();
  });

  /** Another user of another machine: a home and a work folder of their own, and no folder of the project. */
  const machine = (world: Repository, name: string) => {
    const HOME = join(world.temp, name);
    mkdirSync(join(HOME, ".config/lockstep"), { recursive: true });
    mkdirSync(join(HOME, "elsewhere"));
    const fleet = { work: join(HOME, "work"), repositories: ["file://**"] };
    writeFileSync(join(HOME, ".config/lockstep/config.json"), JSON.stringify({ fleet }));
    writeFileSync(join(HOME, ".gitconfig"), readFileSync(join(world.env.HOME!, ".gitconfig")));
    const around = { ...world.env, HOME, LOCKSTEP_TRUST: "all" };
    return { journal, cwd: join(HOME, "elsewhere"), env: around, sandbox: "off" as const };
  };
  const started = async (run: string) => {
    const [first] = await journal.read(run);
    assert.ok(first?.event.type === "run.started");
    return first.event;
  };
  const completed = ({ outcome, reason, run }: Result): string => {
    assert.equal(outcome, "completed", reason);
    return run!;
  };

  /** Its files lie nowhere but in the database from now on. */
  const forget = async (run: string) => {
    await journal.remove(run);
    await postgres.send({ name: "", text: "UPDATE forks.blob SET at = at - interval '2 hours'" });
    await clearBlobs(postgres);
  };

  const ROWS: readonly [kind: SourceKind, at: string, execution: object][] = [
    ["git", "closure.work", WORKTREE],
    ["bundle", "closure.work", WORKTREE],
    ["git", "initial.work", WORKTREE],
    ["bundle", "closure.work", FOLDER],
    ["none", "closure.work", FOLDER],
  ];
  for (const [kind, at, execution] of ROWS)
    test(`source ${kind}, ${JSON.stringify(execution)}: a fork at ${at} has the files of that visit on any machine`, async () => {
      const world = repository(execution);
      const isApart = execution === WORKTREE;
      const fleet = createFleet(world, journal);
      if (kind === "bundle") world.write("draft.txt", "draft\n");
      const run = await fleet.submit(kind, isApart ? PUSHED : {});
      const lines = kind === "none" ? ["echo left > left.txt"] : LINES;
      assert.equal((await fleet.drive(run, "one", working(lines))).kind, "ended");
      // On a second machine; stopped after its first tool call, if it makes any.
      const stop = new AbortController();
      const second = machine(world, "second");
      const model = working(lines);
      const cut = await fork({
        ...second,
        run,
        at,
        backend: model,
        signal: stop.signal,
        observe: ({ tree }) => tree !== undefined && at === "initial.work" && stop.abort(),
      });
      const forked = cut.run!;
      assert.equal(cut.outcome, at === "initial.work" ? "interrupted" : "completed", cut.reason);
      assert.notEqual(forked, run);
      const [was, is] = [await started(run), await started(forked)];
      assert.deepEqual([is.source, is.forkedFrom?.run], [was.source, run]);
      assert.equal(is.worktree?.branch, isApart ? `${WORKER}/${forked.slice(0, 6)}` : undefined);
      if (at === "initial.work") {
        await forget(run);
        completed(await resume({ ...machine(world, "third"), run: forked, backend: model }));
      }
      if (!isApart) {
        const home = join(second.env.HOME, "work/runs", forked, "home");
        assert.equal(readFileSync(join(home, "left.txt"), "utf8"), "left\n");
        return;
      }
      const show = (ref: string | undefined, file: string) =>
        world.git(world.remote, "show", `${ref}:${file}`);
      const files = ["a.txt", "left.txt", ...(kind === "bundle" ? ["draft.txt"] : [])];
      for (const file of files)
        assert.equal(show(is.worktree?.branch, file), show(was.worktree?.branch, file), file);
      const subjects = world.git(world.remote, "log", "--format=%s", `main..${is.worktree?.branch}`);
      assert.equal(subjects.split("\n").filter((line) => line === "two").length, 1, subjects);
    });

  test("a fork that only was recorded goes on elsewhere, after its original is gone", async () => {
    const world = repository();
    const fleet = createFleet(world, journal);
    const run = await fleet.submit("bundle", PUSHED);
    assert.equal((await fleet.drive(run, "one", working(LINES))).kind, "ended");
    const { run: forked } = await partRun(journal, { run, at: "closure.work" }, Date.now());
    await forget(run);
    completed(await resume({ ...machine(world, "second"), run: forked!, backend: working(LINES) }));
    const { worktree } = await started(forked!);
    assert.equal(world.git(world.remote, "show", `${worktree!.branch}:left.txt`), "left");
  });

  test("--adopt takes the files of the agent as they are here, with another worktree.root too", async () => {
    const world = repository();
    const fleet = createFleet(world, journal);
    const [run, other] = [await fleet.submit("git", PUSHED), await fleet.submit("git", PUSHED)];
    const file = `.agent/${WORKER}/agent.json`;
    const agent = JSON.parse(world.read(file)!) as { runner: { execution: object } };
    agent.runner.execution = { worktree: { enabled: true, root: "../other-root" } };
    world.write(file, JSON.stringify(agent));
    const changes: string[] = [];
    const here = { ...machine(world, "second"), cwd: world.home };
    const onChange = (found: readonly object[], adopted: boolean) =>
      void changes.push(`${found.length} ${adopted}`);
    completed(await resume({ ...here, run, backend: working(LINES), adopt: true, onChange }));
    assert.deepEqual(changes, ["1 true"]);
    assert.ok((await journal.read(run)).some(({ event }) => event.type === "run.adopted"));
    assert.ok(
      !existsSync(join(world.temp, "other-root")),
      "the worktree of a run that travels lies in its folder",
    );
    assert.equal(
      world.git(world.remote, "show", `${(await started(run)).worktree!.branch}:left.txt`),
      "left",
    );
    // From a folder without the agent nothing can be adopted.
    const refused = await resume({
      ...machine(world, "third"),
      run: other,
      backend: working(LINES),
      adopt: true,
    });
    assert.equal(refused.code, "FLOW_INVALID", refused.reason);
  });
});
