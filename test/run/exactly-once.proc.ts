/** Whatever breaks between a run and the world, wherever it breaks: nothing is done twice, and the resumed run ends well. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { openJournal, resume, type Result, type RunOptions } from "../../src/run/index.ts";
import { bundled } from "../bundle.ts";
import { openStandIn, type Asked, type Fault, type StandIn } from "../github/stand-in.ts";
import type { Plan } from "./outward-run.ts";
import { replies, repository, type Repository } from "./repository.ts";
import { until } from "../until.ts";
import { someOf } from "../rounds.ts";

const temp = mkdtempSync(join(tmpdir(), "lockstep-once-"));
const program = await bundled("run/outward-run", temp);
after(() => rmSync(temp, { recursive: true }));

const WORK = "echo new > b.txt; git add b.txt; git commit -qm 'Add b'; echo left > c.txt";
const LABELS = { inProgress: "doing", completion: { add: ["done"], remove: ["todo"] } };
const GITHUB = { labels: LABELS, defaultClosureAction: "label-and-close" };

/** Between them they do everything that a run can do to the world by itself. */
const SCENARIOS = {
  merge: {
    options: { branch: "mine", finalize: { push: true } },
    kinds: ["label", "commit", "merge", "push", "remove", "label", "label", "label", "close"],
    pulls: 0,
    // The start, what the agent committed, what it left, and one merge.
    commits: ["main", "4"],
  },
  pull: {
    options: { branch: "mine", finalize: { createPr: true } },
    kinds: ["label", "commit", "push", "pull-request", "label", "label", "label", "close"],
    pulls: 1,
    commits: ["mine", "3"],
  },
} as const satisfies { readonly [name: string]: Scenario };

type Scenario = {
  readonly options: Partial<RunOptions>;
  readonly kinds: readonly string[];
  readonly pulls: number;
  readonly commits: readonly [branch: string, count: string];
};

type World = {
  readonly repo: Repository;
  readonly stand: StandIn;
  /** Every change that had its effect on the stand-in. */
  readonly writes: string[];
  readonly env: { readonly [name: string]: string };
  readonly go: (kill: Pick<Plan, "nth" | "when">) => ChildProcess;
  readonly again: () => Promise<Result>;
};

async function withWorld(scenario: Scenario, use: (world: World) => Promise<void>): Promise<void> {
  const stand = await openStandIn();
  const repo = repository({ github: GITHUB });
  const address = "https://github.com/octo/demo.git";
  repo.git(repo.home, "remote", "set-url", "origin", address);
  repo.git(repo.home, "config", `url.${repo.remote}.insteadOf`, address);
  stand.world.addIssue({ labels: ["todo", "bug"] });
  stand.world.branches.add("mine");
  const writes: string[] = [];
  stand.onRequest = (asked) =>
    void (isWrite(asked) && writes.push(`${asked.method} ${asked.path} ${JSON.stringify(asked.body)}`));
  const env = { ...(repo.env as { [name: string]: string }), ...stand.env, LOCKSTEP_TRUST: "all" };
  const script = replies([WORK], repo.env);
  const go: World["go"] = (kill) => {
    const plan: Plan = { home: repo.home, env, options: { ...scenario.options, script }, ...kill };
    return spawn(process.execPath, [program, JSON.stringify(plan)], {
      stdio: ["ignore", "ignore", "inherit"],
    });
  };
  const again = async () => {
    const journal = await openJournal(`${repo.home}/.lockstep`, { now: Date.now });
    try {
      return await resume({ run: "@last", cwd: repo.home, journal, env, clock: CLOCK });
    } finally {
      await journal.close();
    }
  };
  try {
    await use({ repo, stand, writes, env, go, again });
  } finally {
    await stand.close();
  }
}

const CLOCK = { now: Date.now, sleep: async () => {} };

function isWrite({ method }: Asked): boolean {
  return method !== "GET";
}

async function ended(child: ChildProcess): Promise<string> {
  return await new Promise((resolve) => {
    child.on("close", (code, signal) => resolve(signal ?? `exit ${code}`));
  });
}

/** The end that every run must come to, however often it was broken on its way. */
function assertDoneOnce(
  { repo, stand, writes }: World,
  scenario: Scenario,
  result: Result,
  at: string,
): void {
  assert.equal(result.outcome, "completed", `${at}: ${result.reason}`);
  assert.deepEqual(
    result.effects.map(({ kind, state }) => `${kind}:${state}`),
    scenario.kinds.map((kind) => `${kind}:applied`),
    at,
  );
  assert.equal(new Set(writes).size, writes.length, `${at}: done twice: ${writes.join(", ")}`);
  const [issue] = stand.world.issues.values();
  assert.deepEqual(
    [issue?.state, issue?.labels, stand.world.pulls.size],
    ["closed", ["bug", "done"], scenario.pulls],
    at,
  );
  const [branch, count] = scenario.commits;
  assert.equal(repo.git(repo.remote, "rev-list", "--count", branch), count, at);
  assert.equal(repo.git(repo.home, "rev-parse", branch), repo.git(repo.remote, "rev-parse", branch), at);
  assert.equal(repo.git(repo.home, "status", "--porcelain"), "", at);
}

/** How many journal writes and requests an undisturbed run makes. */
async function measure(
  scenario: Scenario,
): Promise<{ readonly writes: number; readonly log: readonly Asked[] }> {
  let log: readonly Asked[] = [];
  let effects = 0;
  await withWorld(scenario, async (world) => {
    assert.equal(await ended(world.go({ nth: 0, when: "after" })), "exit 0");
    log = [...world.stand.log];
    const journal = await openJournal(`${world.repo.home}/.lockstep`, { now: Date.now });
    const [row] = await journal.list();
    const entries = await journal.read(row!.id);
    await journal.close();
    effects = entries.filter(({ event }) => event.type.startsWith("effect.")).length + 1;
    assertDoneOnce(world, scenario, await world.again(), "undisturbed");
  });
  return { writes: effects, log };
}

async function all<T>(points: readonly T[], at: (point: T) => Promise<void>): Promise<void> {
  const queue = [...points];
  const worker = async () => {
    for (let point = queue.shift(); point !== undefined; point = queue.shift()) await at(point);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

for (const [name, scenario] of Object.entries(SCENARIOS) as [string, Scenario][])
  describe(`everything that follows a run: ${name}`, async () => {
    const { writes, log } = await measure(scenario);
    const writing = log.flatMap((asked, place) => (isWrite(asked) ? [place] : []));
    const sides = ["before", "after"] as const;

    test("killed at each record of an effect, before it is written, and after it where something follows", async () => {
      // Intended and applied take turns, and the end comes last; after what is applied comes the next intention at once.
      const points = Array.from({ length: writes }, (_, i) => i + 1).flatMap((nth) =>
        sides.slice(0, nth % 2 === 1 ? 2 : 1).map((when) => ({ nth, when })),
      );
      assert.ok(points.length >= 20, String(points.length));
      await all(someOf(points, 2), async (point) => {
        await withWorld(scenario, async (world) => {
          assert.equal(await ended(world.go(point)), "SIGKILL", JSON.stringify(point));
          assertDoneOnce(world, scenario, await world.again(), `${point.when} record ${point.nth}`);
        });
      });
    });

    test("killed at each write, before and after it has its effect", async () => {
      const points = writing.flatMap((place) => sides.map((when) => ({ place, when })));
      await all(someOf(points, 3), async ({ place, when }) => {
        await withWorld(scenario, async (world) => {
          const { stand } = world;
          stand.fault({ kind: "hang", ...(when === "after" && { after: true }) }, { nth: place + 1 });
          const child = world.go({ nth: 0, when });
          const end = ended(child);
          await until(() => stand.log.length > place, `request ${place + 1}`);
          // Its effect follows in the same turn as the arrival.
          await sleep(2);
          child.kill("SIGKILL");
          assert.equal(await end, "SIGKILL");
          stand.calm();
          assertDoneOnce(world, scenario, await world.again(), `${when} request ${place + 1}`);
        });
      });
    });

    test("each write is answered with nothing, before and after it has its effect", async () => {
      const faults: readonly Fault[] = [{ kind: "drop" }, { kind: "drop", after: true }];
      const points = writing.flatMap((place) => faults.map((fault) => ({ place, fault })));
      await all(someOf(points, 3), async ({ place, fault }) => {
        await withWorld(scenario, async (world) => {
          world.stand.fault(fault, { nth: place + 1, times: 1 });
          const end = await ended(world.go({ nth: 0, when: "after" }));
          const isHeard = "after" in fault;
          assert.equal(
            end,
            isHeard ? "exit 0" : "exit 1",
            `${JSON.stringify(fault)} at request ${place + 1}`,
          );
          world.stand.calm();
          assertDoneOnce(
            world,
            scenario,
            await world.again(),
            `${JSON.stringify(fault)} at request ${place + 1}`,
          );
        });
      });
    });
  });
