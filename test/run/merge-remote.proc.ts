/** Merging into the base branch of a remote while others push to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLedger } from "../../src/effects/actions/ledger.ts";
import type { Finalizing } from "../../src/effects/git/finalize.ts";
import type { Git } from "../../src/effects/git/git.ts";
import { mergeOnRemote } from "../../src/effects/git/merge-remote.ts";
import type { EffectEvent } from "../../src/flow/event.ts";
import { gitFor } from "../../src/run/world/worktree.ts";
import { repository } from "./repository.ts";

const signal = new AbortController().signal;

/** `others`: what somebody pushes right before each push of ours. */
async function merge(others: readonly string[], work = "echo mine > mine.txt") {
  const world = repository({ execution: {} });
  const commit = world.git(world.home, "rev-parse", "HEAD");
  world.shell(
    `git checkout -q -b run && ${work} && git add -A && git commit -qm work && git checkout -q main`,
  );
  world.shell("git clone -q $REMOTE ../other");
  const left = [...others];
  const real = gitFor({ env: world.env, signal }, [world.home]);
  let pushes = 0;
  const git: Git = async (cwd, args, how) => {
    if (args[0] === "push") {
      pushes += 1;
      const line = left.shift();
      if (line !== undefined)
        world.shell(
          `cd ../other && git pull -q && ${line} && git add -A && git commit -qm theirs && git push -q origin HEAD:main`,
        );
    }
    return await real(cwd, args, how);
  };
  const recorded: EffectEvent[] = [];
  const record = async (event: EffectEvent) => void recorded.push(event);
  const it: Finalizing = {
    git,
    ledger: createLedger({ past: new Map(), record, dryRun: false, signal }),
    worktree: {
      path: world.home,
      home: world.home,
      branch: "run",
      base: "main",
      commit,
      onRemote: true,
      finalize: { autoMerge: true, push: true, remote: "origin", createPr: false, prTarget: null },
    },
    copy: [],
    run: "r1",
    agent: "worker",
    proposing: {
      github: () => assert.fail("not asked"),
      answer: null,
      closes: null,
      mentions: false,
      redact: (text) => text,
    },
    onWait: () => undefined,
    signal,
  };
  const ok = await mergeOnRemote(it);
  const log = world.git(world.remote, "log", "--format=%s", "main").split("\n");
  return { ok, log, pushes, last: recorded.at(-1)! };
}

test("is done again when the base branch moved, and nothing of the others is lost", async () => {
  const { ok, log, pushes } = await merge(["echo 1 > one", "echo 2 > two"]);
  assert.deepEqual([ok, pushes], [true, 3]);
  assert.equal(log.filter((line) => line === "theirs").length, 2);
  assert.equal(log.filter((line) => line.startsWith("Merge branch 'run'")).length, 1);
});

test("is given up after five times, and everything of the others is there", async () => {
  const { ok, log, pushes, last } = await merge([1, 2, 3, 4, 5].map((n) => `echo ${n} > f${n}`));
  assert.deepEqual([ok, pushes], [false, 5]);
  assert.match(last.detail, /moved each time/);
  assert.equal(log.filter((line) => line === "theirs").length, 5);
});

test("is refused where both changed the same lines, with the line that brings the branch home", async () => {
  const { ok, log, last } = await merge(["echo theirs > a.txt"], "echo mine > a.txt");
  assert.equal(ok, false);
  assert.match(last.detail, /in conflict over a\.txt; .*lockstep fleet fetch r1 --as run/);
  assert.equal(log[0], "theirs");
});
