/** kill -9 at journal writes, before and after the commit; two processes that want one run. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createMemoryJournal, openJournal, resume, runLoaded } from "../../src/run/index.ts";
import type { Entry } from "../../src/flow/event.ts";
import { longRun } from "./long-run.ts";

const POINTS = 200;
const program = (name: string) => fileURLToPath(new URL(name, import.meta.url));

test(`${POINTS} kills: nothing committed is lost, nothing committed is asked again`, async () => {
  const whole = await wholeRun();
  const writes = appendsOf(whole.entries);
  const points = Array.from({ length: POINTS }, (_, i) => ({
    nth: 1 + Math.floor((Math.floor(i / 2) * writes) / (POINTS / 2)),
    when: i % 2 === 0 ? "before" : "after",
  }));
  const queue = [...points];
  let killed = 0;
  const worker = async () => {
    for (let point = queue.shift(); point !== undefined; point = queue.shift()) {
      await killAndResume(point, whole);
      killed += 1;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  assert.equal(killed, POINTS, "every process was killed where it should be");
});

test("of processes that resume one run at the same time, exactly one proceeds and the others say so", async () => {
  for (let round = 0; round < 3; round++) {
    const folder = mkdtempSync(join(tmpdir(), "lockstep-two-"));
    try {
      await start("./killed-run.ts", [folder, "5", "after"]);
      const ends = await Promise.all([1, 2, 3].map(() => start("./resumed-run.ts", [folder])));
      const codes = ends.map(({ stdout }) => stdout.trim()).toSorted();
      assert.deepEqual(codes, ["RUN_OWNED_ELSEWHERE 3", "RUN_OWNED_ELSEWHERE 3", "completed 0"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
});

type Whole = { readonly result: Awaited<ReturnType<typeof runLoaded>>; readonly entries: readonly Entry[] };

async function wholeRun(): Promise<Whole> {
  const { agent, script } = longRun(tmpdir());
  const journal = createMemoryJournal();
  const result = await runLoaded(agent, { cwd: tmpdir(), journal, script });
  assert.equal(result.outcome, "completed", result.reason);
  return { result, entries: await journal.read(result.run!) };
}

/** The end of a run is appended together with the event that led to it. */
function appendsOf(entries: readonly Entry[]): number {
  return entries.length - 1;
}

async function killAndResume(point: { nth: number; when: string }, whole: Whole): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-kill-"));
  try {
    const { signal, stderr } = await start("./killed-run.ts", [folder, String(point.nth), point.when]);
    assert.equal(signal, "SIGKILL", `${JSON.stringify(point)} ${stderr}`);
    const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
    try {
      const [row] = await journal.list();
      if (row === undefined) {
        assert.deepEqual(point, { nth: 1, when: "before" }, "only a run that was never made is not there");
        return;
      }
      const before = await journal.read(row.id);
      assert.equal(row.owned, false, "a dead owner holds nothing");
      const result = await resume({ run: "@last", cwd: folder, journal });
      const after = await journal.read(row.id);
      assert.deepEqual(after.slice(0, before.length), before, "what was committed stands");
      const { outcome, path, handoff, iterations, usage } = result;
      assert.deepEqual(
        { outcome, path, handoff, iterations, usage },
        {
          outcome: whole.result.outcome,
          path: whole.result.path,
          handoff: whole.result.handoff,
          iterations: whole.result.iterations,
          usage: whole.result.usage,
        },
        JSON.stringify(point),
      );
      const answered = after.flatMap(({ event }) =>
        event.type === "step.answered" ? [`${event.step}@${event.visit}/${event.turn}`] : [],
      );
      assert.equal(new Set(answered).size, answered.length, "no committed step was asked again");
      assert.deepEqual(
        after.map(({ seq }) => seq),
        after.map((_, index) => index + 1),
      );
    } finally {
      await journal.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(
  name: string,
  args: readonly string[],
): Promise<{ signal: string | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program(name), ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.on("error", reject);
    child.on("close", (_code, signal) => resolve({ signal, stdout, stderr }));
  });
}
