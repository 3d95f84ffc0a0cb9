/** Forks of runs with a worktree: each has a worktree and a branch of its own, and its work is merged like that of any run. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { partRun } from "../../../src/run/fork.ts";
import { fork, replayRun, type ForkOptions, type Result } from "../../../src/run/index.ts";
import { replies, repository, type Repository } from "../repository.ts";
import { until } from "../../until.ts";

const effectsOf = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const MERGED = ["merge:applied", "remove:applied"];
const COMMITTED = ["commit:applied", ...MERGED];

async function forked(world: Repository, run: string, options: Partial<ForkOptions> = {}): Promise<Result> {
  const env = { ...world.env, LOCKSTEP_TRUST: "all" };
  const script = replies(["echo forked > forked.txt"], world.env);
  const at = "initial.work@1";
  const result = await fork({ run, at, cwd: world.home, journal: world.journal, env, script, ...options });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal((await replayRun(world.journal, result.run!)).difference, null);
  return result;
}

/** A run that stops after these lines. */
async function stopped(world: Repository, lines: readonly string[]): Promise<{ run: string; tree: string }> {
  const script = replies(lines, world.env).slice(0, lines.length);
  const { run, code, worktree } = await world.run(lines, { script });
  assert.equal(code, "SCRIPT_EXHAUSTED");
  return { run: run!, tree: worktree!.path };
}

test("a fork of a run that is being driven leaves its files alone, and says which it goes without", async () => {
  const world = repository();
  const wait =
    "echo original > orig.txt; for n in $(seq 3000); do [ -e go ] && break; sleep 0.02; done; rm go";
  let run = "";
  const original = world.run([wait], { onRun: (id) => void (run = id) });
  const tree = () => join(world.home, ".worktrees", `worker-${run.slice(0, 6)}`);
  await until(() => run !== "" && existsSync(join(tree(), "orig.txt")), "the original works");
  const result = await forked(world, run);
  assert.deepEqual(effectsOf(result), COMMITTED);
  assert.match(result.warnings.join("\n"), /without the uncommitted work \(orig\.txt\).*still being driven/);
  assert.deepEqual([world.read("forked.txt"), world.read("orig.txt")], ["forked\n", null]);
  assert.equal(existsSync(join(tree(), "forked.txt")), false);
  writeFileSync(join(tree(), "go"), "");
  assert.deepEqual(effectsOf(await original), COMMITTED);
  assert.deepEqual([world.read("forked.txt"), world.read("orig.txt")], ["forked\n", "original\n"]);
});

test("a fork has the work of a run that stopped, committed or not, and the original keeps its own", async () => {
  const world = repository();
  const { run, tree } = await stopped(world, [
    "echo c > c.txt; git add c.txt; git commit -qm c",
    "echo changed > a.txt; rm c.txt; echo staged > s.txt; git add s.txt; echo new > n.txt; mkdir r; git -C r init -q; echo x > r/x",
  ]);
  const look = () => [world.git(tree, "status", "--porcelain"), world.git(tree, "rev-parse", "HEAD")];
  const before = look();
  const result = await forked(world, run);
  assert.deepEqual(effectsOf(result), COMMITTED);
  const names = ["a.txt", "c.txt", "s.txt", "n.txt", "forked.txt", "r/x"];
  assert.deepEqual(names.map(world.read), ["changed\n", null, "staged\n", "new\n", "forked\n", null]);
  assert.match(result.warnings.join("\n"), /without r\/ in /);
  assert.deepEqual(look(), before);
  assert.equal(readFileSync(join(tree, "n.txt"), "utf8"), "new\n");
});

test("a fork that adds nothing merges the work that it shares, also where its answer was given", async () => {
  const world = repository();
  const { run } = await stopped(world, ["echo shared > shared.txt"]);
  const first = { stepId: "initial.work", next_action: { action: "handoff" } };
  const closing = { stepId: "closure.work", next_action: { action: "closing" } };
  const script = [{ step: "closure.work", output: closing }];
  const result = await forked(world, run, { edits: { output: first }, script });
  assert.deepEqual(effectsOf(result), MERGED);
  assert.equal(world.read("shared.txt"), "shared\n");
  // The given answer ends this one: nothing is left to do but to merge it.
  const last = await forked(world, result.run!, {
    at: "closure.work",
    edits: { output: closing },
    script: [],
  });
  assert.deepEqual(effectsOf(last), MERGED);
});

test("a fork of a run that was merged and removed begins at the base", async () => {
  const world = repository();
  const original = await world.run(["echo one > one.txt"]);
  assert.deepEqual(effectsOf(original), COMMITTED);
  world.git(world.home, "commit", "-q", "--allow-empty", "-m", "later");
  const result = await forked(world, original.run!);
  assert.deepEqual(effectsOf(result), COMMITTED);
  assert.match(result.warnings.join("\n"), /do not exist any more: the fork begins at .* "main"/);
  assert.deepEqual([world.read("one.txt"), world.read("forked.txt")], ["one\n", "forked\n"]);
});

test("a fork that is only recorded has its worktree made when it is resumed, with the work of the parting", async () => {
  const world = repository();
  const { run, tree } = await stopped(world, ["mkdir -p sub; echo then > then.txt"]);
  const env = { ...world.env, LOCKSTEP_TRUST: "all" };
  const parted = await partRun(world.journal, { run, at: "initial.work@1" }, Date.now(), { env });
  writeFileSync(join(tree, "later.txt"), "later\n");
  const script = replies(["echo forked > forked.txt"], world.env);
  const result = await world.resume({ run: parted.run } as Result, { script });
  assert.deepEqual(effectsOf(result), COMMITTED, result.reason);
  assert.deepEqual([world.read("then.txt"), world.read("later.txt")], ["then\n", null]);
});

test("where no worktree can be made, the fork says why, and can be resumed", async () => {
  const world = repository();
  const { run } = await stopped(world, ["echo a > b.txt"]);
  const env = { ...world.env, LOCKSTEP_TRUST: "all" };
  const script = replies(["true"], world.env);
  const how = { run, cwd: world.home, journal: world.journal, env, script };
  const unknown = await fork({ ...how, at: "nowhere" });
  assert.equal(unknown.code, "STEP_UNKNOWN", unknown.reason);
  world.git(world.home, "switch", "-qc", "other");
  world.git(world.home, "branch", "-qm", "main", "gone");
  const refused = await fork({ ...how, at: "initial.work@1" });
  assert.deepEqual([refused.code, refused.run], ["WORKTREE_UNAVAILABLE", null]);
  assert.match(refused.reason, /no branch "main"/);
  assert.doesNotMatch(refused.reason, /--no-worktree/);
  world.git(world.home, "branch", "-qm", "gone", "main");
  const info = join(world.home, ".git/info");
  rmSync(info, { recursive: true });
  writeFileSync(info, "");
  const failed = await fork({ ...how, at: "initial.work@1" });
  assert.equal(failed.code, "WORKTREE_UNAVAILABLE", failed.reason);
  rmSync(info);
  mkdirSync(info);
  const again = await world.resume(failed, { script });
  assert.deepEqual(effectsOf(again), MERGED, again.reason);
});
