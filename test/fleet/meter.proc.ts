/** What all workers together may ask and spend, against a real server. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, describe, test } from "node:test";
import type { Backend, TurnRequest, TurnResult } from "../../src/engine/ports.ts";
import { createBuckets } from "../../src/fleet/buckets.ts";
import { listLimits, readLimit, removeLimit, setLimit } from "../../src/fleet/limits.ts";
import { createMeter } from "../../src/fleet/meter.ts";
import { readPostgresAddress } from "../../src/journal/postgres/address.ts";
import { openPostgres, type Postgres } from "../../src/journal/postgres/connection.ts";
import { makeTables } from "../../src/journal/postgres/tables.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { resume, run } from "../../src/run/index.ts";
import { createWorld, replies, script, writeAgent } from "../cli/world.ts";
import { pgPackage, startServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { needsFleet, programs } from "./fleet-server.ts";
import { createFleetWorld } from "./fleet-world.ts";

const pg = pgPackage();
const { skip } = needsFleet("limits of a fleet");
const server = skip === false ? await startServer(programs!) : null;
after(() => server?.remove());

let schemas = 0;
let statements = 0;

type Fleet = {
  readonly open: () => Postgres;
  readonly sql: (text: string) => ReturnType<Postgres["send"]>;
  readonly schema: string;
};

async function fleet(body: (fleet: Fleet) => Promise<void>): Promise<void> {
  const schema = `meter${(schemas += 1)}`;
  const opened: Postgres[] = [];
  const open = () => {
    const address = readPostgresAddress(`${server!.url}?schema=${schema}`);
    const postgres = openPostgres({ address, pg: pg!, patienceMs: 20_000 });
    opened.push(postgres);
    return postgres;
  };
  try {
    const first = open();
    await makeTables(first);
    const sql = (text: string) => first.send({ name: `case-${(statements += 1)}`, text });
    await body({ open, sql, schema });
  } finally {
    for (const postgres of opened) await postgres.close();
  }
}

const request = (step = "s", signal = new AbortController().signal): TurnRequest => ({
  asker: { key: "k", step, visit: 1, turn: 1, attempt: 1, beside: [] },
  model: "mine",
  system: "",
  messages: [{ role: "user", text: "x".repeat(400) }],
  tools: [],
  signal,
});

/** Its name for the model is one of the user's own. */
function model(answer: () => TurnResult): { readonly backend: Backend; readonly asked: () => number } {
  let asked = 0;
  return {
    asked: () => asked,
    backend: {
      spec: { id: "ai-sdk", options: { models: { mine: "acme/big" } } },
      toolCalling: false,
      turn: async () => {
        asked += 1;
        return answer();
      },
    },
  };
}

const said = (tokens: number, costUsd: number | null = 0): TurnResult => ({
  kind: "reply",
  text: "",
  calls: [],
  usage: { turns: 1, inputTokens: tokens, outputTokens: 0, costUsd },
});
const codeOf = (result: TurnResult) =>
  result.kind === "fault" ? (result.fault.code ?? result.fault.kind) : "said";

describe("what a fleet may ask and spend", { skip }, () => {
  test("two workers together get a rate and its burst, over every window, and all of it", () =>
    fleet(async ({ open, sql, schema }) => {
      const [rate, burst, wanted] = [100, 20, 120];
      await setLimit(open(), readLimit("acme/big.requests", `${rate}/s`, { burst }));
      // Every take as the server saw it.
      await sql(`CREATE TABLE ${schema}.taken (at timestamptz, tokens float8)`);
      await sql(`CREATE FUNCTION ${schema}.note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO ${schema}.taken VALUES (NEW.at, NEW.tokens); RETURN NEW; END'`);
      await sql(
        `CREATE TRIGGER note AFTER UPDATE ON ${schema}.bucket FOR EACH ROW EXECUTE FUNCTION ${schema}.note()`,
      );
      const [begun] = await sql(`SELECT extract(epoch FROM at)::float8 AS at FROM ${schema}.bucket`);
      const workers = [createBuckets(open()), createBuckets(open())];
      const grants = await Promise.all(
        workers.flatMap((buckets) =>
          Array.from({ length: wanted / 2 }, () => buckets.take("acme/big.requests", 1, 60_000)),
        ),
      );
      assert.deepEqual(new Set(grants), new Set([0]), "nobody was sent away");
      const rows = await sql(
        `SELECT extract(epoch FROM at)::float8 AS at, tokens FROM ${schema}.taken ORDER BY at`,
      );
      let before = { at: begun!.at as number, tokens: burst };
      const debits = rows.map((row) => {
        const next = { at: row.at as number, tokens: row.tokens as number };
        const have = Math.min(burst, before.tokens + (next.at - before.at) * rate);
        before = next;
        assert.ok(next.tokens > -1e-6, "nothing is lent");
        return { at: next.at, amount: have - next.tokens };
      });
      const total = debits.reduce((sum, { amount }) => sum + amount, 0);
      assert.ok(Math.abs(total - wanted) < 0.01, `${total} were taken`);
      for (const [place, { at }] of debits.entries()) {
        const within = debits.slice(place).filter((debit) => debit.at <= at + 0.5);
        const sum = within.reduce((all, { amount }) => all + amount, 0);
        assert.ok(sum <= rate * 0.5 + burst + 0.01, `${sum} in half a second`);
      }
      assert.ok(rows.length < wanted, `${rows.length} statements for ${wanted} calls`);
    }));

  test("what a provider refuses for a while, no worker asks; a limit that is taken away holds nobody back", () =>
    fleet(async ({ open }) => {
      const [mine, others] = [open(), open()];
      await setLimit(mine, readLimit("acme/big.requests", "1000/s"));
      const refusing = model(() => ({
        kind: "fault",
        fault: { kind: "rate-limit", message: "429", retryAfterMs: 3_600_000 },
      }));
      const willing = model(() => said(1));
      const first = createMeter(mine).metered("g")(refusing.backend).turn!;
      const second = createMeter(others).metered("g")(willing.backend).turn!;
      assert.equal(codeOf(await second(request())), "said");
      assert.equal(codeOf(await first(request())), "rate-limit");
      const held = await second(request());
      assert.equal(codeOf(held), "FLEET_RATE");
      assert.ok(held.kind === "fault" && held.fault.retryAfterMs! > 3_000_000, "it says when");
      assert.equal(willing.asked(), 1);
      const [limit] = await listLimits(mine);
      assert.ok(Date.parse(limit!.notBefore!) > Date.now() + 1_800_000);
      assert.equal(await removeLimit(mine, limit!), true);
      assert.equal(codeOf(await second(request())), "said");
      assert.equal(await removeLimit(mine, limit!), false);
    }));

  test("tokens are set aside by the largest call of a step, and settled by what it took", () =>
    fleet(async ({ open, sql, schema }) => {
      const postgres = open();
      // It hardly flows back.
      await setLimit(postgres, readLimit("acme/big.tokens", "1000/day", { burst: 1000 }));
      const left = async () => Math.round((await listLimits(postgres))[0]!.left);
      let tokens = 300;
      const { backend, asked } = model(() => said(tokens));
      const turn = createMeter(postgres).metered("g")(backend).turn!;
      assert.equal(codeOf(await turn(request())), "said");
      assert.equal(await left(), 700, "100 were set aside, 300 were taken");
      tokens = 50;
      assert.equal(codeOf(await turn(request())), "said");
      assert.equal(await left(), 650);
      await sql(`UPDATE ${schema}.bucket SET tokens = 290`);
      assert.equal(
        codeOf(await turn(request())),
        "FLEET_RATE",
        "the next one may be as large as the largest",
      );
      assert.equal(codeOf(await turn(request("other"))), "said", "another step begins small");
      assert.equal(await left(), 240);
      assert.equal(asked(), 3);
      tokens = 5000;
      await sql(`UPDATE ${schema}.bucket SET tokens = 1000`);
      assert.equal(codeOf(await turn(request())), "said");
      assert.equal(await left(), -4000, "what was not foreseen is made up for");
      await sql(`UPDATE ${schema}.bucket SET tokens = 1000`);
      assert.equal(codeOf(await turn(request())), "said", "a call larger than the burst needs a full bucket");
    }));

  test("a budget that is spent ends the call before it is made, of all runs or of one group, until its period is over", () =>
    fleet(async ({ open, sql, schema }) => {
      const postgres = open();
      await setLimit(postgres, readLimit("costUsd", "1/day"));
      await setLimit(postgres, readLimit("costUsd", "0.5/day", { group: "nightly" }));
      // Midnight must not come between.
      const age = (days: number) => sql(`UPDATE ${schema}.bucket SET at = at + interval '${days} day'`);
      await age(1);
      const { backend, asked } = model(() => said(1, 0.4));
      const meter = createMeter(postgres);
      const [nightly, daily] = ["nightly", "daily"].map((group) => meter.metered(group)(backend).turn!);
      assert.equal(codeOf(await nightly!(request())), "said");
      assert.equal(codeOf(await nightly!(request())), "FLEET_BUDGET");
      assert.equal(codeOf(await daily!(request())), "said");
      assert.equal(codeOf(await daily!(request())), "FLEET_BUDGET");
      assert.equal(asked(), 2);
      await sql(`UPDATE ${schema}.bucket SET tokens = 0 WHERE name = 'costUsd@nightly'`);
      assert.match((await meter.spent("nightly")) ?? "", /costUsd@nightly is spent/);
      assert.equal(await meter.spent("daily"), null, "a little is left");
      await setLimit(postgres, readLimit("costUsd", "2/day"));
      assert.equal(codeOf(await daily!(request())), "said", "a larger budget keeps what was spent of it");
      assert.equal(Math.round((await listLimits(postgres))[0]!.left * 10), 8);
      await age(-2);
      assert.equal(await meter.spent("nightly"), null);
      assert.equal(codeOf(await nightly!(request("new"))), "said", "its period has begun anew");
    }));

  test("nothing is held back where no limit names it, what is stopped waits no more, and an answer outlives the server", () =>
    fleet(async ({ open }) => {
      const postgres = open();
      await setLimit(postgres, readLimit("acme/other.requests", "1/day"));
      const { backend, asked } = model(() => said(1));
      const meter = createMeter(postgres);
      const metered = meter.metered("g")(backend);
      assert.deepEqual([metered.toolCalling, metered.run], [false, undefined]);
      for (const _ of [1, 2, 3]) assert.equal(codeOf(await metered.turn!(request())), "said");
      assert.equal(asked(), 3);
      await setLimit(postgres, readLimit("acme/big.requests", "1/min"));
      const later = createMeter(postgres, 60_000).metered("g")(backend);
      assert.equal(codeOf(await later.turn!(request())), "said");
      const stop = new AbortController();
      const waiting = later.turn!(request("s", stop.signal));
      stop.abort();
      // The backend says what becomes of a request that was stopped.
      assert.equal(codeOf(await waiting), "said");
      const lost = open();
      const closing = model(() => said(1, 1));
      await setLimit(postgres, readLimit("acme/big.tokens", "1000/s"));
      await setLimit(postgres, readLimit("acme/big.requests", "1000/s"));
      const turn = createMeter(lost).metered("g")({
        ...closing.backend,
        turn: async (asking) => {
          await lost.close();
          return await closing.backend.turn!(asking);
        },
      }).turn!;
      assert.equal(codeOf(await turn(request())), "said");
    }));

  test("a run ends with a spent budget, with exit code 4, and goes on when it is raised", () =>
    fleet(async ({ open, sql, schema }) => {
      const postgres = open();
      await setLimit(postgres, readLimit("costUsd", "1/day"));
      await sql(`UPDATE ${schema}.bucket SET at = at + interval '1 day'`);
      using world = createWorld();
      writeAgent(world, "notes");
      const steps = [replies.initial(), replies.continuation(), replies.closure()];
      const backend: Backend = {
        spec: { id: "mine", options: null },
        turn: async () => ({ ...said(1, 0.6), output: (steps.shift() as { output: object }).output }),
      };
      const journal = createMemoryJournal();
      const { metered } = createMeter(postgres);
      const common = { cwd: world.root, env: { LOCKSTEP_TRUST: "all" }, journal, backend };
      const ran = await run({ ...common, agent: "notes", args: { topic: "t" }, meter: metered("r") });
      assert.deepEqual([ran.code, ran.exitCode, ran.resumable], ["FLEET_BUDGET", 4, true], ran.reason);
      assert.match(ran.reason, /costUsd is spent/);
      await setLimit(postgres, readLimit("costUsd", "100/day"));
      const more = await resume({ ...common, run: ran.run!, meter: metered("r") });
      assert.deepEqual([more.outcome, more.path.length, steps.length], ["completed", 3, 0], more.reason);
      assert.equal(Math.round((await listLimits(postgres))[0]!.left * 10), 982);
    }));

  test("workers drive nothing while a budget is spent, and go on when it is raised", async () => {
    using world = await createFleetWorld(`${server!.url}?schema=spent`);
    writeAgent(world, "notes");
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    await world.document(["fleet", "limit", "costUsd", "1/day"]);
    const spend = "UPDATE spent.bucket SET at = at + interval '1 day', tokens = 0";
    await world.postgres.send({ name: "", text: spend });
    const runs = await world.submit("notes", 4);
    const workers = ["one", "two"].map((name) =>
      world.startWorker("--script", "script.json", "--name", name),
    );
    const rests = () => workers.flatMap((worker) => worker.lines().filter(({ kind }) => kind === "over"));
    await until(() => new Set(rests().map((line) => line.run)).size === 4, "all have come to rest");
    assert.deepEqual(new Set(rests().map(({ end }) => end)), new Set(["budget"]));
    assert.deepEqual(await world.outcomes(), { open: 4 });
    await world.document(["fleet", "limit", "costUsd", "100/day"]);
    for (const id of runs) assert.equal((await world.document(["resume", id])).state, "queued");
    await until(async () => (await world.outcomes()).completed === 4, "all are completed");
    for (const worker of workers) worker.process.kill("SIGTERM");
    for (const worker of workers) assert.equal(await worker.gone(), 0, worker.stderr());
  });

  test("the number that a scaler asks for is that of runs which are driven or could be", () =>
    fleet(async ({ sql, schema }) => {
      const [first] = [...readFileSync("deploy/kubernetes/keda.yaml", "utf8").matchAll(/query: "(.*)"/g)];
      const count = async () =>
        Object.values((await sql(first![1]!.replace("lockstep.", `${schema}.`)))[0] ?? {}).map(Number);
      assert.deepEqual(await count(), [0]);
      const rows: readonly [due: string, job: string, owner: string, held: string][] = [
        ["clock_timestamp()", "NULL", "NULL", "NULL"],
        ["NULL", "'j1'", "NULL", "NULL"],
        ["NULL", "'j2'", "'w'", "NULL"],
        // Not now, not without a person, and not of the fleet.
        ["clock_timestamp() + interval '1 hour'", "NULL", "NULL", "NULL"],
        ["clock_timestamp()", "NULL", "NULL", "'poisoned'"],
        ["NULL", "NULL", "'w'", "NULL"],
      ];
      for (const [place, [due, job, owner, held]] of rows.entries())
        await sql(`INSERT INTO ${schema}.run (id, agent, digest, created_at, epoch, queue, grp, due, job, owner, held)
          VALUES ('r${place}', 'a', 'd', 0, 0, 'runs', 'g', ${due}, ${job}, ${owner}, ${held})`);
      assert.deepEqual(await count(), [3]);
    }));
});
