/** People and runs of a fleet: answers, pauses and stops reach a run that is queued, driven or waiting, from any machine. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { QuestionsDocument } from "../../src/studio/wire.ts";
import type { AnsweredDocument, StartedDocument, SteeredDocument } from "../../src/studio/wire-acts.ts";
import { createWorld, replies, script, writeAgent, type World } from "../cli/world.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { openIn } from "../studio/studio-client.ts";
import { until } from "../until.ts";
import { createFleetWorld, type FleetWorker, type FleetWorld } from "./fleet-world.ts";
import { needsFleet, programs } from "./fleet-server.ts";

const { skip } = needsFleet("people and runs of a fleet");

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
  const rest = [replies.initial(), replies.continuation(), replies.closure()];
  const write = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
  // Shorter than a wait that gives the slot back.
  const limited = { step: "initial.note", error: { kind: "rate-limit", retryAfterMs: 25_000 } };
  world.write("asking.json", script(write, ...rest));
  world.write("fast.json", script(...rest));
  world.write("slow.json", script(limited, ...rest));
}

describe("people and runs of a fleet", { skip }, () => {
  let server: PostgresServer;
  let fleet: FleetWorld;
  let worker: FleetWorker;
  before(async () => {
    server = await startServer(programs!);
    fleet = await createFleetWorld(`${server.url}?schema=people`);
    writeAsking(fleet);
  });
  after(() => {
    fleet[Symbol.dispose]();
    server.remove();
  });

  const submitted = async (file: string, ...more: readonly string[]): Promise<string> => {
    const args = ["fleet", "submit", "notes", "--topic", "t", "--no-files", "--script", file, ...more];
    const said = more.includes("--on-permission") ? [] : ["--on-permission", "halt"];
    const made = await fleet.document([...args, ...said]);
    return (made.runs as readonly { readonly run: string }[])[0]!.run;
  };
  const ends = (run: string) =>
    worker.lines().flatMap((line) => (line.kind === "over" && line.run === run ? [line.end] : []));
  const says = async (from: World, ...args: readonly string[]) => {
    const { code, stdout, stderr } = await from.lockstep([...args, "--no-color"], { env: fleet.around });
    return `${code} ${stdout}${stderr}`;
  };
  const entriesOf = async (run: string) => {
    const text = `SELECT count(*)::int AS count FROM people.event e JOIN people.run r ON r.key = e.run WHERE r.id = $1`;
    return (await fleet.postgres.send({ name: "", text }, [run]))[0]?.count as number;
  };
  const stateOf = async (run: string) => {
    const shown = await fleet.document(["show", run]);
    return String(shown.outcome);
  };

  test("a run that is queued is paused, and goes on when a worker may have it again", async () => {
    using elsewhere = createWorld();
    const run = await submitted("fast.json");
    assert.match(await says(elsewhere, "stop", run), /^2 .*nothing to stop/s);
    assert.match(await says(elsewhere, "pause", run), /^0 .*is paused/);
    worker = fleet.startWorker("--name", "one");
    await worker.ready();
    await until(() => ends(run).length > 0, "the worker has looked at it");
    assert.deepEqual(ends(run), ["waiting"], "it is not driven");
    assert.match(await says(elsewhere, "resume", run), /^5 .*is paused/s);
    assert.match(await says(elsewhere, "continue", run), /^0 A worker continues/);
    await until(() => ends(run).includes("ended"), "it has ended").catch((error) => {
      throw new Error(`${String(error)} ${JSON.stringify(worker.lines())} ${worker.stderr()}`);
    });
    assert.equal(await stateOf(run), "completed");
  });

  test("a run that is driven is paused or stopped, and goes on", async () => {
    using elsewhere = createWorld();
    for (const [verb, state, onward] of [
      ["pause", "paused", "continue"],
      ["stop", "stopped", "resume"],
    ] as const) {
      const run = await submitted("slow.json");
      await until(async () => (await entriesOf(run)) >= 3, "it is driven, and waits");
      const steered = JSON.parse((await says(elsewhere, verb, run, "--json")).slice(2)) as {
        readonly state: string;
      };
      assert.equal(steered.state, state);
      await until(() => ends(run).length > 0, "the worker has let go of it");
      assert.deepEqual(ends(run), ["waiting"]);
      assert.match(await says(elsewhere, onward, run), /^0 A worker continues/);
      await until(() => ends(run).includes("ended"), "it has ended");
      assert.equal(await stateOf(run), "completed");
    }
  });

  const HERE = ["resume", "--here", "--sandbox", "off"];
  const MET: readonly [state: string, line: readonly string[], says: RegExp, after: string][] = [
    ["queued", ["answer", "allow"], /^2 .*waits for no answer/, "queued"],
    ["queued", ["pause"], /^0 .*is paused/, "waiting"],
    ["queued", ["stop"], /^2 .*nothing to stop/, "queued"],
    ["queued", ["continue"], /^0 A worker continues/, "queued"],
    ["queued", HERE, /^5 .*waiting PermissionRequired/s, "waiting"],
    ["driven", ["answer", "allow"], /^2 .*waits for no answer/, "running"],
    ["driven", ["pause"], /^0 .*is paused/, "waiting"],
    ["driven", ["stop"], /^0 .*is stopped/, "interrupted"],
    ["driven", ["continue"], /^3 .*A process is running run/s, "running"],
    ["driven", HERE, /^3 .*RUN_OWNED_ELSEWHERE/s, "running"],
    ["waiting", ["answer", "allow"], /^0 Answered .*A worker of the fleet continues/, "completed"],
    ["waiting", ["pause"], /^0 .*is paused/, "waiting"],
    ["waiting", ["stop"], /^2 .*nothing to stop/, "waiting"],
    ["waiting", ["continue"], /^0 A worker continues/, "waiting"],
    ["waiting", HERE, /^5 .*waiting PermissionRequired/s, "waiting"],
  ];
  for (const [state, [verb = "", ...rest], words, after] of MET)
    test(`${verb} of a run that is ${state}: it is ${after} then`, async () => {
      using elsewhere = createWorld();
      const file = state === "driven" ? "slow.json" : "asking.json";
      const run = await submitted(file, "--queue", state === "queued" ? "nobody" : "runs");
      if (state === "driven") await until(async () => (await entriesOf(run)) >= 3, "it is driven");
      if (state === "waiting") await until(() => ends(run).includes("waiting"), "it waits");
      const before = ends(run).length;
      assert.match(await says(elsewhere, verb, run, ...rest), words);
      // What another worker is asked for is done by it; nothing else begins.
      const isOffered = state === "waiting" && (verb === "answer" || verb === "continue");
      if (isOffered) await until(() => ends(run).length > before, "a worker has had it");
      assert.equal(await stateOf(run), after);
      if (after === "running") await says(elsewhere, "stop", run);
    });

  const ALLOW = ["--on-permission", "allow"];
  const SAID: readonly [said: string, how: "worker" | "retry" | readonly string[], outcome: string][] = [
    ["deny", "worker", "completed, denied"],
    ["halt", "worker", "waiting"],
    ["allow", "worker", "completed"],
    ["deny", HERE, "completed, denied"],
    ["allow", HERE, "completed"],
    ["halt", [...HERE, ...ALLOW], "completed"],
    ["allow", ["continue", ...HERE.slice(1)], "completed"],
    ["halt", "retry", "waiting"],
    ["allow", "retry", "completed"],
  ];
  for (const [said, how, outcome] of SAID)
    test(`submitted with --on-permission ${said} and driven by ${String(how)}: ${outcome}`, async () => {
      using elsewhere = createWorld();
      const queue = typeof how === "string" ? "runs" : "nobody";
      const about = ["--on-permission", said, "--queue", how === "retry" ? "held" : queue];
      const run = await submitted("asking.json", ...about);
      if (how === "retry") {
        const text = `UPDATE people.run SET held = 'poisoned', held_because = 'a test', due = NULL, queue = 'runs' WHERE id = $1`;
        await fleet.postgres.send({ name: "", text }, [run]);
        assert.match(await says(elsewhere, "fleet", "retry", run), /^0 .*waits for a worker again/);
      }
      if (typeof how !== "string") await says(elsewhere, how[0]!, run, ...how.slice(1));
      else await until(() => ends(run).length > 0, "the worker has had it");
      const { stdout } = await fleet.lockstep(["show", run, "--events"], { env: fleet.around });
      const denied = stdout.includes('"denied"') ? ", denied" : "";
      assert.equal(`${await stateOf(run)}${denied}`, outcome, stdout);
    });

  test("the studio of another machine answers, pauses and resumes", async () => {
    using elsewhere = createWorld();
    const studio = await openIn(elsewhere, [], { ...elsewhere.env, ...fleet.around });
    const run = await submitted("asking.json");
    await until(() => ends(run).includes("waiting"), "it waits");
    const paused = await studio.post<SteeredDocument>(`runs/${run}/pause`);
    assert.equal(paused.document.state, "paused", paused.text);
    const { open } = (await studio.get<QuestionsDocument>("questions")).document;
    const question = open.find((one) => one.run === run);
    const path = `runs/${run}/questions/${question!.id}`;
    const answered = await studio.post<AnsweredDocument>(path, { answer: "allow" });
    assert.equal(answered.document.goesOn, "no", "it is paused");
    const resumed = await studio.post<StartedDocument>(`runs/${run}/resume`);
    assert.deepEqual([resumed.status, resumed.document.run], [202, run], resumed.text);
    await until(() => ends(run).includes("ended"), "it has ended");
    assert.equal(await stateOf(run), "completed");
    assert.ok(!existsSync(join(elsewhere.root, ".lockstep")), "nothing is left here");
    await studio.close();
  });

  test("the studio goes on with changed files as it was said at submit", async () => {
    const studio = await openIn(fleet, [], { ...fleet.env, ...fleet.around });
    const run = await submitted("asking.json", "--queue", "nobody", "--on-permission", "allow");
    const resumed = await studio.post<StartedDocument>(`runs/${run}/resume`, { adopt: true });
    assert.equal(resumed.status, 202, resumed.text);
    assert.ok(!resumed.document.command.includes("--on-permission"), resumed.document.command);
    await until(async () => (await stateOf(run)) === "completed", "it has ended");
    await studio.close();
  });

  test("a run that waits for a person holds no slot, and goes on with the answer, which counts once", async () => {
    using elsewhere = createWorld();
    const run = await submitted("asking.json");
    await until(() => ends(run).includes("waiting"), "it waits");
    const answers = await Promise.all([1, 2, 3].map(() => says(elsewhere, "answer", run, "allow")));
    const taken = answers.filter((text) => text.includes("A worker of the fleet continues the run."));
    assert.equal(taken.length, 1, answers.join());
    await until(() => ends(run).includes("ended"), "it has ended");
    assert.equal(await stateOf(run), "completed");
    const { stdout } = await fleet.lockstep(["show", run, "--events"], { env: fleet.around });
    assert.equal(stdout.split('"type":"step.told"').length, 2);
    worker.process.kill("SIGTERM");
    assert.equal(await worker.gone(), 0, worker.stderr());
  });
});
