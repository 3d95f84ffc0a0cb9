/** Pull requests of the branches of runs: what they say, and that there is only ever one. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Result, RunOptions } from "../../src/run/index.ts";
import { createClock } from "../github/client.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import type { StoredPull } from "../../src/testing/github/world.ts";
import { replies, repository, type Repository } from "./repository.ts";

const COMMIT = "echo new > b.txt; git add b.txt; git commit -qm 'Add b'";
const MORE = `${COMMIT}; echo more > c.txt; git add c.txt; git commit -qm 'Add c'`;
const GITHUB = { labels: { inProgress: "doing" }, defaultClosureAction: "label-only" };

type World = Repository & {
  readonly stand: StandIn;
  /** The agent does what the line says and ends with this answer; its branch is `mine`. */
  readonly go: (line: string, answer?: object, options?: Partial<RunOptions>) => Promise<Result>;
};

async function withWorld(github: object, use: (world: World) => Promise<void>): Promise<void> {
  const stand = await openStandIn();
  const world = repository({ github });
  const address = "https://github.com/octo/demo.git";
  world.git(world.home, "remote", "set-url", "origin", address);
  world.git(world.home, "config", `url.${world.remote}.insteadOf`, address);
  stand.world.addIssue();
  stand.world.branches.add("mine");
  const env = { ...world.env, ...stand.env, LOCKSTEP_TRUST: "all" };
  const go: World["go"] = async (line, answer = {}, options = {}) => {
    const closing = { stepId: "closure.work", next_action: { action: "closing" }, ...answer };
    const script = [...replies([line], world.env).slice(0, -1), { step: "closure.work", output: closing }];
    const { clock } = createClock();
    const finalize = { createPr: true };
    return await world.run([], {
      script,
      args: { issue: 1 },
      branch: "mine",
      finalize,
      env,
      clock,
      ...options,
    });
  };
  const again: World["resume"] = async (result, more = {}) => await world.resume(result, { env, ...more });
  try {
    await use({ ...world, stand, go, resume: again });
  } finally {
    await stand.close();
  }
}

const effectsOf = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const pullsOf = ({ stand }: World): readonly StoredPull[] => [...stand.world.pulls.values()];

const WORDS: readonly {
  readonly name: string;
  readonly line: string;
  readonly answer?: object;
  readonly action?: string;
  readonly title: string;
  readonly body: string;
}[] = [
  { name: "one commit", line: COMMIT, title: "Add b", body: "- Add b" },
  { name: "two commits", line: MORE, title: "Add b", body: "- Add b\n- Add c" },
  {
    name: "what would close other issues does not, and the run's own only where it is to be closed",
    line: COMMIT,
    answer: { pr: { title: "Fixes #99", body: "Closes #99, fixes victim/other#7. See #5. Ask @octo/team." } },
    action: "close",
    title: "Fixes #\u200b99",
    body: "Closes #\u200b99, fixes victim/other#\u200b7. See #5. Ask @\u200bocto/team.\n\nCloses #1",
  },
  {
    name: "the run's own issue is named as one that is closed",
    line: COMMIT,
    answer: { pr: { title: "t", body: "Fixes: #1 and octo/demo#1" } },
    action: "close",
    title: "t",
    body: "Fixes: #1 and octo/demo#1\n\nCloses #1",
  },
  {
    name: "the run's own issue where it stays open",
    line: COMMIT,
    answer: { pr: { title: "t", body: "Fixes: #1" } },
    title: "t",
    body: "Fixes: #\u200b1",
  },
  {
    name: "what the model says",
    line: COMMIT,
    answer: { pr: { title: "Bring  b\nin" }, summary: "It was missing." },
    title: "Bring b in",
    body: "It was missing.",
  },
  {
    name: "what the model says cannot hide what follows",
    line: COMMIT,
    answer: { pr: { title: "t", body: "before <!-- after" }, summary: "not this" },
    action: "close",
    title: "t",
    body: "before &lt;!-- after\n\nCloses #1",
  },
  {
    name: "words without an end",
    line: COMMIT,
    answer: { pr: { title: "t".repeat(1000), body: "b".repeat(100_000) } },
    title: "t".repeat(200),
    body: "b".repeat(60_000),
  },
  {
    name: "secrets are kept",
    line: COMMIT,
    answer: { pr: { title: `ghp_${"s".repeat(36)}` }, summary: "x" },
    title: "[redacted]",
    body: "x",
  },
];

describe("what a pull request says", () => {
  for (const { name, line, answer, action = "label-only", title, body } of WORDS)
    test(name, async () => {
      await withWorld({ ...GITHUB, defaultClosureAction: action }, async (world) => {
        const result = await world.go(line, answer);
        assert.equal(result.outcome, "completed", result.reason);
        const [pull, ...others] = pullsOf(world);
        assert.deepEqual([pull?.head, pull?.base, others], ["mine", "main", []]);
        assert.equal(pull?.body, `${body}\n\n<!-- lockstep ${result.run} pull-request -->`);
        if (title === "[redacted]") assert.doesNotMatch(pull.title, /ghp_/);
        else assert.equal(pull.title, title);
        assert.match(result.effects.map(({ detail }) => detail).join("\n"), /opened pull request #2: https:/);
        assert.ok(world.git(world.remote, "for-each-ref", "refs/heads/mine"));
        assert.equal(world.git(world.home, "rev-list", "--count", "main"), "1", "nothing is merged");
      });
    });
});

test("a pull request that is there already is the one", async () => {
  await withWorld(GITHUB, async (world) => {
    world.stand.world.addPull({ head: "mine", state: "closed", title: "by hand" });
    const result = await world.go(COMMIT);
    assert.match(result.effects.at(-2)!.detail, /there is pull request #2 of mine/, effectsOf(result).join());
    assert.equal(pullsOf(world).length, 1);
  });
});

test("a run that committed nothing proposes nothing", async () => {
  await withWorld(GITHUB, async (world) => {
    const result = await world.go("true");
    assert.deepEqual([result.outcome, pullsOf(world)], ["completed", []], result.reason);
  });
});

test("a dry run opens none", async () => {
  await withWorld(GITHUB, async (world) => {
    const result = await world.go(COMMIT, {}, { dryRun: true });
    assert.deepEqual([result.outcome, world.stand.log.length], ["completed", 0]);
    assert.match(
      result.effects.map(({ detail }) => detail).join("\n"),
      /--dry-run\): open a pull request of mine/,
    );
  });
});

const HELD: readonly (readonly [
  name: string,
  github: object,
  set: (world: World) => object,
  says: RegExp,
])[] = [
  ["there is no token", GITHUB, () => ({ GH_TOKEN: "" }), /no token for github\.com/],
  [
    "the remote is another repository",
    GITHUB,
    ({ home, git, remote }) => {
      git(home, "remote", "set-url", "origin", remote);
      return {};
    },
    /the remote origin, which has the branch, is not octo\/demo/,
  ],
  [
    "GitHub is switched off",
    { ...GITHUB, enabled: false },
    () => ({}),
    /GitHub is disabled.*runner\.integrations\.github\.enabled.*agent\.json/,
  ],
];

for (const [name, github, set, says] of HELD)
  test(`${name}: the branch is pushed, and the command told`, async () => {
    await withWorld(github, async (world) => {
      const more = set(world);
      const env = { ...world.env, ...world.stand.env, LOCKSTEP_TRUST: "all", ...more };
      const result = await world.go(COMMIT, {}, { env });
      const pull = result.effects.find(({ kind }) => kind === "pull-request");
      assert.deepEqual([result.outcome, pull?.state], ["completed", "held"], result.reason);
      assert.match(pull!.detail, says);
      assert.match(pull!.detail, /By hand: cd \S+ && gh pr create --base main --head mine --fill$/);
      assert.ok(world.git(world.remote, "for-each-ref", "refs/heads/mine"));
      assert.deepEqual(pullsOf(world), []);
    });
  });

test("a pull request that GitHub refuses is a failure, and resume tries again", async () => {
  await withWorld(GITHUB, async (world) => {
    world.stand.world.branches.delete("mine");
    const result = await world.go(COMMIT);
    assert.deepEqual([result.code, result.exitCode], ["FINALIZE_FAILED", 1]);
    assert.match(result.reason, /no pull request of mine into main was opened[^]*lockstep resume/);
    const [issue] = world.stand.world.issues.values();
    assert.deepEqual(issue?.labels, ["doing"], "the issue is not done before its work is where it was to go");
    world.stand.world.branches.add("mine");
    const again = await world.resume(result);
    assert.equal(again.outcome, "completed", again.reason);
    assert.deepEqual([pullsOf(world).length, issue?.labels], [1, []]);
  });
});

test("a branch that the remote refuses is not proposed", async () => {
  await withWorld(GITHUB, async (world) => {
    const hook = "printf '#!/bin/sh\\nexit 1\\n' > hooks/pre-receive; chmod +x hooks/pre-receive";
    world.shell(hook, world.remote);
    const result = await world.go(COMMIT);
    assert.deepEqual(
      [result.code, ...effectsOf(result)],
      ["FINALIZE_FAILED", "label:applied", "push:failed"],
      result.reason,
    );
    assert.match(result.reason, /mine was not pushed to origin[^]*git -C \S+ push origin mine/);
    assert.deepEqual([pullsOf(world), result.worktree?.kept], [[], true]);
  });
});

describe("commits whose words close other issues", () => {
  const FOREIGN = "echo new > b.txt; git add b.txt; git commit -qm 'Add b' -m 'Closes #99'";
  const OWN = "echo new > b.txt; git add b.txt; git commit -qm 'Add b' -m 'Closes #1'";
  const CLOSES = { ...GITHUB, defaultClosureAction: "close" };

  test("are told in the pull request and in the result", async () => {
    await withWorld(CLOSES, async (world) => {
      const result = await world.go(FOREIGN);
      assert.equal(result.outcome, "completed", result.reason);
      const [pull] = pullsOf(world);
      assert.match(
        pull!.body ?? "",
        /Note: merging this closes other issues.*[0-9a-f]{7} says "Closes #\u200b99"/,
      );
      assert.match(JSON.stringify(result.effects), /would close other issues: [0-9a-f]{7} says/);
    });
  });
  for (const [whose, line, isHeld] of [
    ["other issues", FOREIGN, true],
    ["the run's own", OWN, false],
  ] as const) {
    test(`pushed with the base branch: ${whose}`, async () => {
      await withWorld(CLOSES, async (world) => {
        const before = world.git(world.remote, "rev-parse", "main").trim();
        const result = await world.go(
          line,
          {},
          { finalize: { autoMerge: true, push: true, createPr: false } },
        );
        assert.equal(result.outcome, "completed", result.reason);
        const push = result.effects.find(({ kind }) => kind === "push");
        assert.equal(push?.state, isHeld ? "held" : "applied", push?.detail);
        assert.equal(world.git(world.remote, "rev-parse", "main").trim() === before, isHeld);
        if (isHeld) assert.match(push.detail, /would close other issues.*Closes #99.*by hand: git -C/);
      });
    });
  }
});
