/**
 * Hostile inputs through the real command: each ends by itself within five seconds of processor time, with a failure that
 * has a name, and SIGTERM ends each at once. Time is counted by the processor, because busy machines are slow.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { createWorld, MAIN, type World } from "./world.ts";
import { someOf } from "../rounds.ts";
import { ANSWERS, FILES, PATTERNS, TEXTS } from "./hostile-cases.ts";
import { BUNDLES, MEGABYTES, SIZES } from "./hostile-sizes.ts";
import { AGENT, GOOD, RUN, plain, type Case } from "./hostile-project.ts";

/** What the process may use of the processor; then the kernel ends it by SIGXCPU. */
const MOST_CPU_SECONDS = 5;

/** What it may use after SIGTERM. */
const MOST_CPU_AFTER_MS = 1_000;

/** What waits without using the processor is ended here; what is asserted is that nothing had to be. */
const KILL_MS = 300_000;

const CASES = [...FILES, ...TEXTS, ...PATTERNS, ...ANSWERS, ...MEGABYTES, ...BUNDLES, ...SIZES];

type Ended = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
  readonly tookMs: number;
  /** Used after SIGTERM; null: it had ended before. */
  readonly cpuAfterMs: number | null;
};

/** `termAfter`: SIGTERM is sent after this many milliseconds, if it is still there. */
async function end(
  world: World,
  { args, env }: Pick<Case, "args" | "env">,
  termAfter?: number,
): Promise<Ended> {
  const from = performance.now();
  const line = `ulimit -S -t ${MOST_CPU_SECONDS}; exec "$@"`;
  const child = spawn("/bin/sh", ["-c", line, "sh", process.execPath, MAIN, ...args], {
    cwd: world.root,
    env: { ...world.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < MOST_KEPT) output += text;
      else
        output = output.slice(0, MOST_KEPT / 2) + (output.slice(MOST_KEPT / 2) + text).slice(-MOST_KEPT / 2);
    });
  const limit = setTimeout(() => child.kill("SIGKILL"), KILL_MS);
  let cpuBefore: number | null = null;
  let cpuLast: number | null = null;
  let look: NodeJS.Timeout | undefined;
  const term = setTimeout(() => {
    cpuBefore = cpuMs(child.pid!);
    if (cpuBefore === null) return;
    cpuLast = cpuBefore;
    look = setInterval(() => (cpuLast = cpuMs(child.pid!) ?? cpuLast), 10);
    child.kill("SIGTERM");
  }, termAfter ?? KILL_MS);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on("close", (...how) => resolve(how)),
  );
  for (const timer of [limit, term, look]) clearTimeout(timer);
  const cpuAfterMs = cpuBefore === null || cpuLast === null ? null : cpuLast - cpuBefore;
  return { code, signal, output, tookMs: performance.now() - from, cpuAfterMs };
}

const MOST_KEPT = 4_000_000;

/** User and system time of a process; null when it is gone. */
function cpuMs(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return null;
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}

test("there are enough of them, and no two are the same", () => {
  assert.ok(CASES.length >= 80, String(CASES.length));
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length);
});

test(
  "hostile inputs end with a failure that has a name, and SIGTERM ends each",
  { concurrency: 2 },
  async (t) => {
    const toStop = someOf(CASES, 3);
    let stopped = 0;
    await Promise.all(
      CASES.map((one) =>
        t.test(one.name, async () => {
          const tookMs = await ends(one);
          if (toStop.includes(one)) stopped += (await isStopped(one, tookMs / 3)) ? 1 : 0;
        }),
      ),
    );
    assert.ok(stopped >= toStop.length / 4, `only ${stopped} of ${toStop.length} were there to be stopped`);
  },
);

/** It ends by itself as it should; how long that takes. */
async function ends(one: Case): Promise<number> {
  using world = createWorld();
  one.prepare(world);
  const ended = await end(world, one);
  const told = `${ended.code} ${ended.signal} ${ended.output.slice(0, 1500)}`;
  assert.equal(ended.signal, null, `it did not end by itself: ${told}`);
  assert.doesNotMatch(ended.output, /bug in Lockstep|out of memory|Maximum call stack/, told);
  assert.equal(ended.code, one.code, told);
  assert.match(ended.output, one.says, told);
  return ended.tookMs;
}

/** Whether SIGTERM stops it; false: it had ended sooner. */
async function isStopped(one: Case, afterMs: number): Promise<boolean> {
  using world = createWorld();
  one.prepare(world);
  const stopped = await end(world, one, afterMs);
  const how = `${stopped.code} ${stopped.signal} ${stopped.output.slice(0, 1500)}`;
  if (stopped.cpuAfterMs === null) return false;
  assert.ok(stopped.cpuAfterMs < MOST_CPU_AFTER_MS, `${stopped.cpuAfterMs} ms after SIGTERM: ${how}`);
  // It may have been about to end by itself.
  const isAsSaid = stopped.signal === "SIGTERM" || stopped.code === 143 || stopped.code === one.code;
  assert.ok(isAsSaid, how);
  return stopped.code !== one.code;
}

test("the same project without the attack works", async () => {
  using world = createWorld();
  plain(world);
  world.write("script.json", GOOD);
  const ended = await end(world, { args: RUN });
  assert.equal(ended.code, 0, ended.output);
  for (const args of [["check", "a"], ["list"], ["replay", "@last"], ["why", "@last"]])
    assert.equal((await end(world, { args })).code, 0, args.join(" "));
});

test("a record with 200 MB in one row", async () => {
  using world = createWorld();
  plain(world);
  world.write("script.json", GOOD);
  assert.equal((await end(world, { args: RUN })).code, 0);
  const file = join(world.root, ".lockstep/runs.db");
  const database = new DatabaseSync(file);
  database.exec("UPDATE event SET body = hex(zeroblob(100000000)) WHERE seq = 2");
  database.close();
  for (const args of [["show", "@last"], ["why", "@last"], ["replay", "@last"], ["runs"]]) {
    const ended = await end(world, { args });
    assert.equal(ended.signal, null, `${args.join(" ")}: ${ended.output.slice(0, 500)}`);
    assert.doesNotMatch(ended.output, /bug in Lockstep|out of memory|Maximum call stack/);
  }
});

test(
  "a file that may not be read says so",
  { skip: process.getuid?.() === 0 ? "root may read everything" : false },
  async () => {
    using world = createWorld();
    plain(world);
    chmodSync(join(world.root, AGENT), 0);
    assert.match((await end(world, { args: ["check", "a"] })).output, /EACCES/);
  },
);
