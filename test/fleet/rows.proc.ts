/** The jobs of runs among many runs: what the server does for them does not grow with runs times jobs. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Dispatch } from "../../src/fleet/dispatch.ts";
import { beginning, promote, settling } from "../../src/fleet/rows.ts";
import type { Postgres, Statement, StatementValues } from "../../src/journal/postgres/connection.ts";
import { startServer } from "../journal/postgres/server.ts";
import { bossAt, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("jobs among many runs");
const RUNS = 20_000;
const JOBS = 250;
const NEXT = { afterMs: null, tries: 0, held: null, rest: "ended" } as const;

type PlanNode = {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly Plans?: readonly PlanNode[];
};

/** Rows that all parts of a plan looked at. */
function rowsIn(node: PlanNode): number {
  const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
  const own = (node["Actual Rows"] + removed) * node["Actual Loops"];
  return own + (node.Plans ?? []).reduce((sum, inner) => sum + rowsIn(inner), 0);
}

/** Nothing in them needs a quote of its own. */
function literal(value: unknown): string {
  if (!Array.isArray(value)) return `'${String(value)}'`;
  return `'{${value.map((one) => (one === null ? "NULL" : `"${String(one)}"`)).join()}}'`;
}

test(
  "jobs are begun and settled by their index, also where the server knows nothing of the table",
  { skip },
  async () => {
    const server = await startServer(programs!);
    const postgres = postgresAt(`${server.url}?schema=fleet`);
    let dispatch: Dispatch | undefined;
    try {
      await makeFleet(postgres);
      const sql = async (text: string) => await postgres.send({ name: "", text });
      await sql("ALTER TABLE fleet.run SET (autovacuum_enabled = false)");
      const insert = (prefix: string, count: number, due: string) =>
        sql(`INSERT INTO fleet.run (id, agent, digest, created_at, epoch, queue, grp, due)
        SELECT '${prefix}' || n, 'a', 'd', 0, 0, 'q', 'g', ${due} FROM generate_series(1, ${count}) n`);
      await insert("other", RUNS, "NULL");
      await insert("run", JOBS, "clock_timestamp()");
      const boss = (dispatch = await bossAt(postgres));
      assert.equal(await promote(postgres, boss, { queues: ["q"], speech: 1 }), JOBS);
      const jobs = await boss.take(["q.v1"], JOBS, { default: 1000, of: {} });
      assert.equal(jobs.length, JOBS);

      /** The plan that the server keeps for a statement once it has seen it often, and what it takes to perform that. */
      const looked = async (send: Postgres["send"], { text }: Statement, values: StatementValues) => {
        const name = `p${randomUUID().replaceAll("-", "")}`;
        const steps = [
          "SAVEPOINT before",
          "SET LOCAL plan_cache_mode = force_generic_plan",
          `PREPARE ${name} AS ${text}`,
        ];
        for (const step of steps) await send({ name: "", text: step });
        const explain = `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE ${name}(${values.map(literal).join()})`;
        const [row] = await send({ name: "", text: explain });
        await send({ name: "", text: "ROLLBACK TO SAVEPOINT before" });
        return rowsIn((row!["QUERY PLAN"] as [{ readonly Plan: PlanNode }])[0].Plan);
      };
      const found = new Map<string, number>();
      const watched: Postgres = {
        ...postgres,
        transaction: (work) =>
          postgres.transaction((send) =>
            work(async (statement, values = []) => {
              if (["begin", "settle"].includes(statement.name))
                found.set(statement.name, await looked(send, statement, values));
              return await send(statement, values);
            }),
          ),
      };
      assert.equal((await beginning(watched, boss, jobs, 1)()).length, JOBS);
      const stretches = jobs.map((job) => ({ job, next: NEXT }));
      assert.equal((await settling(watched, boss, stretches)()).size, JOBS);
      assert.deepEqual([...found.keys()], ["begin", "settle"]);
      for (const [name, rows] of found) assert.ok(rows < 2 * RUNS, `${name}: ${rows} rows`);
      await dispatch.close();
    } finally {
      await postgres.close();
      server.remove();
    }
  },
);
