/** A run of a fleet is the same run: examples come to the same end as on one machine, and every report reads the same elsewhere. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Journal } from "../../src/engine/ports.ts";
import { submitRuns, type Submission } from "../../src/fleet/submit.ts";
import {
  createMemoryJournal,
  exportRun,
  importRun,
  logs,
  replayRun,
  run,
  show,
  why,
  type Result,
  type Shown,
} from "../../src/run/index.ts";
import { openJournal } from "../../src/run/records/journal.ts";
import { findSource, type FoundSource } from "../../src/run/source.ts";
import { prepareRun } from "../../src/run/submit.ts";
import { systemClock } from "../../src/run/world/clock.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { createFleetWorld, type FleetWorld } from "./fleet-world.ts";
import { needsFleet, programs } from "./fleet-server.ts";

const { skip } = needsFleet("examples on a fleet of two workers");
const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

const CASES: readonly {
  readonly example: string;
  readonly agent: string;
  readonly script?: string;
  readonly args?: { readonly [name: string]: string };
  readonly input?: string;
}[] = [
  { example: "01-fix-a-test", agent: "fixer", args: { issue: "7" } },
  { example: "02-prompt-files", agent: "digest", args: { audience: "children" }, input: "notes.txt" },
  { example: "03-checks-and-retries", agent: "writer", args: { topic: "tides" } },
  ...["checked", "combined", "counted", "custom", "signalled", "spoken"].map((agent) => ({
    example: "04-verdict-types",
    agent,
    script: `scripts/${agent}.yaml`,
  })),
  { example: "04-verdict-types", agent: "polled", script: "scripts/polled.yaml", args: { topic: "launch" } },
  { example: "05-plan-stage", agent: "planner", args: { task: "rename the module" } },
  { example: "06-stage-machine", agent: "ship", args: { task: "make the tests pass" } },
];

/** The project of an example. Its own runs need a repository only where it has files. */
function projectOf(example: string, folder: string): string {
  const project = join(EXAMPLES, example, "project");
  cpSync(existsSync(project) ? project : join(EXAMPLES, example), folder, { recursive: true });
  cpSync(join(EXAMPLES, example, ".agent"), join(folder, ".agent"), { recursive: true });
  return existsSync(project) ? asRepository(folder) : folder;
}

function asRepository(folder: string): string {
  if (existsSync(join(folder, ".git"))) return folder;
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: folder, stdio: "ignore" });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "t");
  git("config", "user.email", "t@example.invalid");
  git("add", "-A");
  git("commit", "-qm", "start");
  return folder;
}

/** Without the id, which texts of a run may hold. */
function endOf({ run: id, path, handoff, outcome, code, verdict, result, checks }: Shown): unknown {
  // Those of siblings come in any order.
  const ran = checks.map(({ name, ok }) => `${name} ${ok}`).toSorted();
  const text = JSON.stringify({ path, handoff, outcome, code, verdict, result, ran });
  return JSON.parse(text.replaceAll(id ?? "", "RUN"));
}

describe("a run of a fleet", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-same-"));
  const signal = new AbortController().signal;
  let server: PostgresServer;
  let world: FleetWorld;
  let journal: Journal;
  let alone: readonly Result[] = [];
  let runs: readonly string[] = [];

  before(async () => {
    server = await startServer(programs!);
    const url = `${server.url}?schema=same`;
    world = await createFleetWorld(url);
    const env = { ...world.env, ...world.around, LOCKSTEP_TRUST: "all" };
    const workers = [world.startWorker("--sandbox", "off"), world.startWorker("--sandbox", "off")];
    journal = await openJournal(url, systemClock, { env });
    const sources = new Map<string, { readonly cwd: string; readonly found: FoundSource }>();
    for (const example of new Set(CASES.map((one) => one.example))) {
      const cwd = asRepository(projectOf(example, join(folder, example)));
      sources.set(example, { cwd, found: await findSource("bundle", cwd, {}, { env, signal }) });
    }
    const both = await Promise.all(
      CASES.map(async ({ example, agent, script = "script.yaml", args = {}, input }, place) => {
        const file = join(EXAMPLES, example, script);
        const options = {
          agent,
          args,
          env,
          sandbox: "off",
          script: { text: readFileSync(file, "utf8"), file },
          ...(input !== undefined && { input: readFileSync(join(EXAMPLES, example, input), "utf8") }),
        } as const;
        const { cwd, found } = sources.get(example)!;
        const prepared = await prepareRun({ ...options, cwd, found });
        const submission: Submission = { name: agent, prepared };
        const asked = { queue: "runs", group: "g", priority: 0, bundle: found.bundle };
        const [submitted] = await submitRuns(world.postgres, [submission], asked);
        const here = projectOf(example, join(folder, `alone-${place}`));
        const ended = await run({ ...options, cwd: here, journal: createMemoryJournal() });
        return { run: submitted!.run, ended };
      }),
    );
    runs = both.map((one) => one.run);
    alone = both.map(({ ended }) => ended);
    const isOver = async () =>
      (await journal.rows(runs)).every(({ last }) => last?.event.type === "run.ended");
    await until(isOver, "all runs have ended").catch((error: unknown) => {
      const said = workers.map((worker) => `${JSON.stringify(worker.lines())}\n${worker.stderr()}`);
      throw new Error(`${String(error)}\n${said.join("\n")}`);
    });
    const busy = workers.filter((worker) => worker.lines().some(({ kind }) => kind === "over"));
    assert.equal(busy.length, 2, "both workers have driven some");
  });
  after(async () => {
    await journal?.close();
    world?.[Symbol.dispose]();
    server?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const [place, { example, agent }] of CASES.entries())
    test(`${example} ${agent}: same path, handoff and verdict as on one machine`, async () => {
      assert.deepEqual(endOf(await show(journal, runs[place]!)), endOf(alone[place]!));
    });

  test("show, why, logs, export and replay equal those of the same run imported into a folder", async () => {
    const env = { ...world.env, LOCKSTEP_TRUST: "all" };
    const local = await openJournal(join(folder, "state"), systemClock, { env });
    for (const id of runs) {
      const { bundle } = await exportRun(journal, id);
      await importRun(local, bundle, { cwd: folder, now: bundle.run.createdAt });
      const all = async (from: Journal) => {
        const said: unknown[] = [];
        for await (const line of logs(from, id)) said.push(line);
        const { difference } = await replayRun(from, id);
        return {
          show: await show(from, id),
          why: await why(from, id),
          difference,
          logs: said,
          export: (await exportRun(from, id)).bundle.entries.slice(1),
        };
      };
      const there = await all(journal);
      assert.equal(there.difference, null);
      const here = JSON.stringify(await all(local)).replaceAll(JSON.stringify(folder), '"."');
      assert.deepEqual(JSON.parse(here), JSON.parse(JSON.stringify(there)));
    }
    await local.close();
  });
});
