/** The folder that a run works in is moved away: nothing more is done, and the run goes on when it is back. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { resume, run, type Result, type RunOptions } from "../../src/run/index.ts";
import { replies, repository, WORKER, type Repository } from "./repository.ts";

const LINES = ["echo one > one.txt", "echo two > two.txt"];

/** A run in the folder `work` of the project that stops after its first tool call. */
async function stopped(world: Repository, work: string, more: Partial<RunOptions> = {}): Promise<Result> {
  mkdirSync(work, { recursive: true });
  const script = replies(LINES, world.env).slice(0, 1);
  return await world.run([], { agent: WORKER, worktree: false, cwd: work, script, ...more });
}

describe("a run whose folder is not there", () => {
  for (const name of ["project", "project/app"])
    test(`${name}: resume is refused before anything is done, and works when it is back`, async () => {
      const world = repository();
      const work = join(world.temp, name);
      const first = await stopped(world, work);
      assert.equal(first.code, "SCRIPT_EXHAUSTED", first.reason);
      renameSync(work, `${work}.moved`);
      const script = replies(LINES.slice(1), world.env);
      // The journal is kept elsewhere, so that the run is found from anywhere.
      const refused = await world.resume(first, { script, cwd: world.temp });
      assert.deepEqual([refused.code, refused.exitCode], ["PLACE_GONE", 3], refused.reason);
      assert.match(refused.reason, /does not exist: \S+.*move it back/);
      assert.equal(existsSync(work), false);
      renameSync(`${work}.moved`, work);
      const result = await world.resume(first, { script });
      assert.equal(result.outcome, "completed", result.reason);
      assert.deepEqual([existsSync(join(work, "one.txt")), existsSync(join(work, "two.txt"))], [true, true]);
    });

  const MOVERS: readonly (readonly [
    name: string,
    call: { name: string; input: { [key: string]: string } },
  ])[] = [
    ["a command", { name: "Bash", input: { command: "echo two > two.txt" } }],
    ["a tool that writes", { name: "Write", input: { file_path: "two.txt", content: "two" } }],
  ];
  for (const [name, call] of MOVERS)
    test(`it is moved between two steps: ${name} is not tried, and the run can be resumed`, async () => {
      const world = repository();
      const work = join(world.home, "app");
      mkdirSync(work);
      const [one, ...rest] = replies(LINES.slice(0, 1), world.env);
      const script = [one!, { step: "initial.work", calls: [call] }, ...rest];
      const result = await world.run([], {
        worktree: false,
        cwd: work,
        script,
        sandbox: "off",
        observe: ({ event }) => {
          if (event.type === "step.called" && existsSync(work)) renameSync(work, `${work}.moved`);
        },
      });
      assert.deepEqual(
        [result.code, result.exitCode, result.resumable],
        ["PLACE_GONE", 3, true],
        result.reason,
      );
      assert.equal(existsSync(work), false);
      renameSync(`${work}.moved`, work);
      const again = await world.resume(result, { script: script.slice(1), sandbox: "off" });
      assert.equal(again.outcome, "completed", again.reason);
      assert.ok(existsSync(join(work, "two.txt")));
    });
});

test("a project that was moved with its journal: the hint does not lead to a folder that is not there", async () => {
  const temp = mkdtempSync(join(tmpdir(), "lockstep-moved-"));
  try {
    const world = repository();
    const env = { ...world.env, LOCKSTEP_TRUST: "all" };
    const script = replies(LINES, world.env).slice(0, 1);
    const first = await run({ agent: WORKER, cwd: world.home, env, worktree: false, script });
    assert.equal(first.code, "SCRIPT_EXHAUSTED", first.reason);
    const moved = join(temp, "moved");
    renameSync(world.home, moved);
    const refused = await resume({ run: first.run!, cwd: moved, env, script, trustJournal: true });
    assert.deepEqual([refused.code, refused.exitCode], ["PLACE_FOREIGN", 3], refused.reason);
    assert.match(refused.reason, /The recorded folder does not exist: .* move it back to/);
    assert.doesNotMatch(refused.reason, /--cwd/);
  } finally {
    rmSync(temp, { recursive: true });
  }
});
