/** What a run does to the world through a fleet: each act once, although a worker is killed before and after each of them. */
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Dispatch } from "../../src/fleet/dispatch.ts";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import { openJournalAt } from "../../src/run/records/postgres-journal.ts";
import { MAIN } from "../cli/world.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { actingAgent, bodies, closing, handoff } from "../run/acting.ts";
import { replies, repository, type Repository } from "../run/repository.ts";
import { until } from "../until.ts";
import { ageJobs, bossAt, env, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("acts of runs whose workers are killed");
const ADDRESS = "https://github.com/octo/demo.git";

/** The acts in the order in which the run comes to them. */
const ACTS = ["comment", "push", "pull-request"] as const;
const SIDES = ["before", "after"] as const;
type Point = { readonly act: (typeof ACTS)[number]; readonly side: (typeof SIDES)[number] };

describe("acts of a run whose workers are killed", { skip }, () => {
  let server: PostgresServer;
  let postgres: Postgres;
  let dispatch: Dispatch;
  let stand: StandIn;
  let url = "";
  const started: ChildProcess[] = [];
  before(async () => {
    server = await startServer(programs!);
    url = `${server.url}?schema=acts`;
    postgres = postgresAt(url);
    await makeFleet(postgres);
    dispatch = await bossAt(postgres);
    stand = await openStandIn();
  });
  after(async () => {
    for (const worker of started) worker.kill("SIGKILL");
    await dispatch?.close();
    await postgres?.close();
    server?.remove();
    await stand?.close();
  });

  /** The remote stops at a push where the file says so: before it, to refuse it, or after it. */
  const hookOf = (temp: string, side: Point["side"]) => `#!/bin/sh
test ${side} = after && cat >> ${temp}/pushed
test -e ${temp}/${side} || exit 0
mv ${temp}/${side} ${temp}/reached
for i in $(seq 1200); do test -e ${temp}/go && break; sleep 0.05; done
touch ${temp}/over
exit 1
`;

  function createProject(): Repository {
    const project = repository();
    const execution = { worktree: { enabled: true } };
    for (const [path, text] of Object.entries(actingAgent({ execution }))) project.write(path, text);
    project.shell("git add -A && git commit -qm agent && git push -q origin main");
    project.git(project.home, "remote", "set-url", "origin", ADDRESS);
    for (const [name, side] of [
      ["pre-receive", "before"],
      ["post-receive", "after"],
    ] as const) {
      const hook = join(project.remote, "hooks", name);
      writeFileSync(hook, hookOf(project.temp, side));
      chmodSync(hook, 0o755);
    }
    const [work] = replies(["echo new > b.txt; git add b.txt; git commit -qm 'Add b'"], project.env);
    const script = [work, handoff({ type: "comment", issueNumber: 1, content: "Found it" }), closing()];
    writeFileSync(join(project.temp, "script.json"), JSON.stringify({ replies: script }));
    mkdirSync(join(project.env.HOME!, ".config/lockstep"), { recursive: true });
    const config = JSON.stringify({ fleet: { leaseSeconds: 10 } });
    writeFileSync(join(project.env.HOME!, ".config/lockstep/config.json"), config);
    return project;
  }

  test("each comes about once, and every time another worker goes on", async () => {
    const project = createProject();
    const issue = stand.world.addIssue();
    stand.world.branches.add("mine");
    const writes: string[] = [];
    stand.onRequest = ({ method, path }) => void (method !== "GET" && writes.push(`${method} ${path}`));
    const around = { ...project.env, ...env, ...stand.env, LOCKSTEP_STATE: url, LOCKSTEP_TRUST: "all" };
    const lockstep = (...args: readonly string[]) => {
      const options = { cwd: project.home, env: around, encoding: "utf8", timeout: 60_000 } as const;
      const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], options);
      assert.equal(status, 0, `${args.join(" ")}: ${stdout}${stderr}`);
      return stdout;
    };
    const start = (name: string) => {
      const flags = ["--name", name, "--sandbox", "off"];
      const args = [MAIN, "fleet", "worker", "--work", join(project.temp, name), ...flags];
      const worker = spawn(process.execPath, args, { cwd: project.temp, env: around, stdio: "ignore" });
      started.push(worker);
      return worker;
    };
    const end = async (worker: ChildProcess, signal: NodeJS.Signals) => {
      const ended = once(worker, "exit");
      worker.kill(signal);
      await ended;
    };
    const send = async (text: string) => await postgres.send({ name: "", text });

    const submit = [
      "fleet",
      "submit",
      "worker",
      "--issue",
      "1",
      "--branch",
      "mine",
      "--create-pr",
      "--bundle",
    ];
    const script = ["--script", join(project.temp, "script.json")];
    const [{ run }] = (JSON.parse(lockstep(...submit, ...script, "--json")) as { runs: [{ run: string }] })
      .runs;
    // Only for workers: what is submitted names the address.
    project.shell(`git config --global url.${project.remote}.insteadOf ${ADDRESS}`);

    /** Resolves when the act has been reached; nothing goes on from there. */
    const reached = async ({ act, side }: Point) => {
      const file = join(project.temp, "reached");
      if (act === "push") {
        writeFileSync(join(project.temp, side), "");
        await until(() => existsSync(file), `${side} ${act}`);
        return;
      }
      const path = act === "comment" ? /\/comments$/ : /\/pulls$/;
      const count = () => stand.log.filter((one) => one.method === "POST" && path.test(one.path)).length;
      const earlier = count();
      stand.fault({ kind: "hang", ...(side === "after" && { after: true }) }, { method: "POST", path });
      await until(() => count() > earlier, `${side} ${act}`);
      if (side === "after") await until(() => writes.some((one) => path.test(one)), "it has its effect");
    };
    const points = ACTS.flatMap((act) => SIDES.map((side): Point => ({ act, side })));
    for (const [place, point] of points.entries()) {
      const arrived = reached(point);
      const worker = start(`w${place}`);
      await arrived;
      await end(worker, "SIGKILL");
      stand.calm();
      if (point.act === "push") {
        const [go, over] = ["go", "over"].map((name) => join(project.temp, name));
        writeFileSync(go!, "");
        await until(() => existsSync(over!), "the remote goes on");
        for (const name of ["go", "over", "reached"]) rmSync(join(project.temp, name));
      }
      // As if the lease of the dead worker were over.
      await ageJobs(postgres);
      await send("UPDATE acts.owner SET beat = beat - interval '1 hour'");
      await dispatch.tend(["runs.v1"]);
      // Three in a row without a settled visit: it is held, until somebody says that it may go on.
      const [row] = await send("SELECT tries FROM acts.run");
      if (Number(row?.tries) >= 2) {
        const holder = start(`h${place}`);
        await until(async () => (await send("SELECT held FROM acts.run"))[0]?.held !== null, "it is held");
        await end(holder, "SIGTERM");
        lockstep("fleet", "retry", run);
      }
    }
    const last = start("last");
    const outcome = () => JSON.parse(lockstep("show", run, "--json")) as { outcome: string };
    await until(() => outcome().outcome === "completed", "the run is completed");
    await end(last, "SIGTERM");

    // What the dead ones left goes away when a worker is started in their folder again.
    const left = () => readdirSync(join(project.temp, "w0/runs"));
    assert.deepEqual(left(), [run]);
    const again = start("w0");
    await until(() => left().length === 0, "the files of the run are removed");
    await end(again, "SIGTERM");

    assert.deepEqual(bodies(issue), ["Found it (signed)"]);
    assert.equal(stand.world.pulls.size, 1);
    assert.equal(new Set(writes).size, writes.length, writes.join(", "));
    const pushed = readFileSync(join(project.temp, "pushed"), "utf8").trimEnd().split("\n");
    assert.equal(pushed.length, 1, pushed.join("\n"));
    assert.equal(project.git(project.remote, "log", "--format=%s", "main..mine"), "Add b");
    const journal = await openJournalAt(url, around);
    try {
      const entries = await journal.read(run);
      const applied = entries.flatMap(({ event }) => (event.type === "effect.applied" ? [event.key] : []));
      assert.equal(applied.length, ACTS.length, applied.join(", "));
      assert.deepEqual(applied.slice(1), ACTS.slice(1));
      const resumed = entries.filter(({ event }) => event.type === "run.resumed");
      assert.ok(resumed.length >= points.length, `${resumed.length} workers went on`);
    } finally {
      await journal.close();
    }
  });
});
