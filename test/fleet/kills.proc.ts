/**
 * Workers that are killed with SIGKILL before and after each statement that writes and each request: every one of them goes
 * on with what the one before left, and dies too. FLEET_KILLS chooses how often.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { releaseRuns } from "../../src/fleet/rows.ts";
import { submitRuns } from "../../src/fleet/submit.ts";
import type { Entry } from "../../src/flow/event.ts";
import { prepareRun } from "../../src/run/submit.ts";
import { writeAgent } from "../cli/world.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { bodies, fenced } from "../run/acting.ts";
import { until } from "../until.ts";
import { startModel, type FleetModel } from "./fleet-model.ts";
import { ageJobs, bossAt, needsFleet, programs } from "./fleet-server.ts";
import { createFleetWorld, KEY, type FleetWorld } from "./fleet-world.ts";

const { skip } = needsFleet("workers that are killed at every write and question");
const KILLS = Number(process.env.FLEET_KILLS ?? 24);
const LANES = 2;
const SLOTS = 6;
/** A worker that takes six runs has done so much before all of them are over. */
const OPERATIONS = 40;
const FAULT = fileURLToPath(new URL("fault.ts", import.meta.url));

type Recorded = { readonly run: string; readonly topic: string; readonly entries: readonly Entry[] };
type Tally = { kills: number; runs: number; asked: number; repeated: number; acts: number };

describe("workers that are killed", { skip }, () => {
  let server: PostgresServer;
  let stand: StandIn;
  before(async () => {
    server = await startServer(programs!);
    stand = await openStandIn();
  });
  after(async () => {
    server?.remove();
    await stand?.close();
  });

  test(`${KILLS} times: nothing is lost, nothing committed is asked again, and every act is done once`, async (context) => {
    const lanes = Array.from({ length: LANES }, (_, place) => lane(place, KILLS / LANES));
    const tallies = await Promise.all(lanes);
    const sum = (key: keyof Tally) => tallies.reduce((all, tally) => all + tally[key], 0);
    context.diagnostic(
      `${sum("kills")} kills, ${sum("runs")} runs, ${sum("asked")} questions, ${sum("repeated")} of them repeated, ${sum("acts")} acts`,
    );
    assert.equal(sum("kills"), KILLS);
    assert.ok(sum("acts") > 0);
  });

  /** Workers one after the other in a schema of their own. */
  async function lane(place: number, kills: number): Promise<Tally> {
    const comment = fenced({ type: "comment", issueNumber: 0, content: "Noted" });
    using model = await startModel(5, ({ topic, step }) =>
      issues.has(topic) && step === "continuation.note"
        ? comment.replace('"issueNumber":0', `"issueNumber":${issues.get(topic)}`)
        : null,
    );
    using world = await createFleetWorld(`${server.url}?schema=kills${place}`, model.config);
    const issues = new Map<string, number>();
    writeAgent(world, "notes", {
      agent: (agent) => {
        const { parameters, runner } = agent as { parameters: object; runner: object };
        const handlers = { comment: "builtin:github-comment" };
        const actions = { enabled: true, types: ["comment"], outputFormat: "json", handlers };
        agent.parameters = { ...parameters, issue: { type: "number", cli: "--issue" } };
        agent.runner = { ...runner, actions, integrations: { github: {} } };
      },
      registry: ({ steps }) => {
        const { "continuation.note": step } = steps as { [id: string]: { permissionMode?: string } };
        step!.permissionMode = "acceptEdits";
      },
    });
    const { postgres } = world;
    const { schema } = postgres;
    const dispatch = await bossAt(postgres);
    const send = async (text: string) => await postgres.send({ name: "", text });
    const tally: Tally = { kills: 0, runs: 0, asked: 0, repeated: 0, acts: 0 };

    const submit = async () => {
      const submissions = [];
      for (let count = 0; count < SLOTS; count += 1) {
        const topic = `topic-${(tally.runs += 1)}`;
        // GitHub wants a second between two writes of a process: one run of six writes.
        const issue = count === 0 ? stand.world.addIssue().number : null;
        if (issue !== null) issues.set(topic, issue);
        const prepared = await prepareRun({
          agent: "notes",
          cwd: world.root,
          env: { ...world.env, ...world.around, LOCKSTEP_TRUST: "all" },
          args: { topic, ...(issue !== null && { issue: String(issue) }) },
          use: "ai-sdk",
          found: { source: { kind: "none" }, within: ".", base: "main", bundle: null },
        });
        submissions.push({ name: topic, prepared });
      }
      await submitRuns(postgres, submissions, { queue: "runs", group: "g", priority: 0, bundle: null });
    };
    /** A run that three workers in a row could not drive gets another chance. */
    const release = async () => {
      const held = await send(`SELECT id FROM ${schema}.run WHERE held IS NOT NULL`);
      const runs = held.map(({ id }) => id as string);
      await releaseRuns(postgres, runs);
    };
    const start = (more: NodeJS.ProcessEnv) =>
      world.begin(["fleet", "worker", "--sandbox", "off", "--concurrency", String(SLOTS)], {
        ...world.env,
        ...world.around,
        ...stand.env,
        ...KEY,
        ...more,
      });
    try {
      let known = new Map<string, Recorded>();
      while (tally.kills < kills) {
        const open = [...known.values()].filter((run) => !isOver(run)).length;
        if (open < SLOTS) await submit();
        const nth = 1 + (tally.kills % OPERATIONS);
        const when = Math.floor(tally.kills / OPERATIONS) % 2 === place ? "before" : "after";
        const how = `killed ${when} operation ${nth}`;
        const earlier = model.asked.length;
        const fault = { NODE_OPTIONS: `--import=${FAULT}`, FAULT_NTH: String(nth), FAULT_WHEN: when };
        const worker = start(fault);
        let said = "";
        worker.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
        const [, signal] = (await once(worker, "exit")) as [number | null, string | null];
        assert.equal(signal, "SIGKILL", `${how}: ${said}`);
        tally.kills += 1;
        // As if the lease of the dead worker were over.
        await send(`UPDATE ${schema}.owner SET beat = beat - interval '1 hour'`);
        await ageJobs(postgres);
        await dispatch.tend(["runs.v1"]);
        await release();
        known = await look(world, known, model, earlier, how);
      }
      const last = start({});
      const ended = once(last, "exit");
      await until(async () => {
        await release();
        return (await world.outcomes()).completed === tally.runs;
      }, "all runs are completed");
      last.kill("SIGTERM");
      await ended;
      const whole = new Set([...(await recordedIn(world)).values()].map(essence));
      assert.equal(whole.size, 1, "every run ends as the others");
      tally.asked = model.asked.length;
      tally.repeated = tally.asked - 3 * tally.runs;
      assert.ok(tally.repeated >= 0 && tally.repeated <= kills * SLOTS, JSON.stringify(tally));
      tally.acts = issues.size;
      for (const number of issues.values())
        assert.deepEqual(bodies(stand.world.issues.get(number)!), ["Noted (signed)"], `issue ${number}`);
      return tally;
    } finally {
      await dispatch.close();
    }
  }
});

/** Holds the record against what was there before, and against what the worker asked for since. */
async function look(
  world: FleetWorld,
  known: ReadonlyMap<string, Recorded>,
  model: FleetModel,
  earlier: number,
  how: string,
): Promise<Map<string, Recorded>> {
  const asked = model.asked.slice(earlier).map(({ topic, step }) => `${topic} ${step}`);
  assert.equal(new Set(asked).size, asked.length, `one worker asked twice; ${how}`);
  const now = await recordedIn(world);
  for (const [run, before] of known) {
    const { entries = [] } = now.get(run) ?? {};
    assert.deepEqual(entries.slice(0, before.entries.length), before.entries, `lost from ${run}; ${how}`);
    for (const step of answered(before))
      assert.ok(!asked.includes(`${before.topic} ${step}`), `${step} of ${run} was asked again; ${how}`);
  }
  for (const recorded of now.values()) {
    assert.ok(
      recorded.entries.every(({ seq }, place) => seq === place + 1),
      how,
    );
    const steps = answered(recorded);
    assert.equal(new Set(steps).size, steps.length, `answered twice; ${how}`);
  }
  return now;
}

async function recordedIn({ postgres }: FleetWorld): Promise<Map<string, Recorded>> {
  const { schema } = postgres;
  const text = `SELECT r.id, e.body FROM ${schema}.event e JOIN ${schema}.run r ON r.key = e.run ORDER BY e.run, e.seq`;
  const rows = await postgres.send({ name: "", text });
  const entriesOf = Map.groupBy(rows, ({ id }) => id as string);
  return new Map(
    [...entriesOf].map(([run, own]) => {
      const topic = /topic-\d+/.exec(own[0]!.body as string)![0];
      return [run, { run, topic, entries: own.map(({ body }) => JSON.parse(body as string) as Entry) }];
    }),
  );
}

function answered({ entries }: Recorded): readonly string[] {
  return entries.flatMap(({ event }) => (event.type === "step.answered" ? [event.step] : []));
}

function isOver({ entries }: Recorded): boolean {
  return entries.at(-1)?.event.type === "run.ended";
}

/** The way and the end of a run. */
function essence({ entries }: Recorded): string {
  return JSON.stringify(
    entries.flatMap(({ event, led }) => [
      ...(led === undefined ? [] : [[led.step, led.visit, led.label, led.to]]),
      ...(event.type === "run.ended" ? [event.verdict.outcome, event.verdict.code] : []),
    ]),
  );
}
