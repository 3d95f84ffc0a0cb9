/** What a run changes of the files that Lockstep, git or npm obey is merged and pushed by a person, and by nobody else. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Result, RunOptions } from "../../src/run/index.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { repository } from "./repository.ts";

const states = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const details = ({ effects }: Result) => effects.map(({ detail }) => detail).join("\n");
const KNOWN = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@e";

/** Commits a file without a working tree ever having it. */
const plumbed = (path: string, mode = "100644", text = "OWNED") =>
  `${KNOWN}; b=$(printf ${text} | git hash-object -w --stdin); git update-index --add --cacheinfo ${mode},$b,'${path}'; git update-index --skip-worktree '${path}'; git commit -qm plumbed`;

const PLANTED: readonly {
  readonly path: string;
  readonly mode?: string;
  readonly options?: Partial<RunOptions>;
  readonly effects: readonly string[];
  readonly says: RegExp;
}[] = [
  {
    path: ".agent/worker/agent.json",
    effects: ["merge:held"],
    says: /not merged: \S+ changes \.agent\/worker\/agent\.json.*git -C \S+ diff \w+ \S+ -- .*git -C \S+ merge \S+/,
  },
  { path: ".lockstep/answers/run/question.json", effects: ["merge:held"], says: /\.lockstep\/answers/ },
  { path: ".lockstep", mode: "120000", effects: ["merge:held"], says: /changes \.lockstep,/ },
  {
    path: "node_modules/.bin/git",
    mode: "100755",
    options: { finalize: { push: true } },
    effects: ["merge:held"],
    says: /node_modules\/\.bin\/git/,
  },
  {
    path: "packages/x/.Agent/y/agent.json",
    options: { finalize: { autoMerge: false, push: true } },
    effects: ["push:held"],
    says: /was not pushed to origin: .*git -C \S+ push origin/,
  },
  {
    path: "sub/.lockSTEP/runs.db",
    options: { finalize: { createPr: true } },
    effects: ["pull-request:held"],
    says: /no pull request was opened: .*sub\/\.lockSTEP\/runs\.db/,
  },
];

describe("held for a person", () => {
  for (const sandbox of ["off", "on"] as const) {
    for (const { path, mode, options = {}, effects, says } of PLANTED) {
      test(`${path}, sandbox ${sandbox}`, sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {}, async () => {
        const world = repository();
        const before = world.git(world.home, "rev-parse", "main");
        const agent = world.read(".agent/worker/agent.json");
        const result = await world.run([plumbed(path, mode)], { ...options, sandbox });
        assert.deepEqual(states(result), effects, details(result));
        assert.deepEqual([result.outcome, result.worktree?.kept], ["completed", true]);
        assert.match(details(result), says);
        assert.equal(world.git(world.home, "rev-parse", "main"), before);
        assert.equal(world.read(".agent/worker/agent.json"), agent);
        assert.equal(existsSync(join(world.home, ".lockstep")), false);
        const pushed = world.git(world.remote, "for-each-ref", "--format=%(refname:short)", "refs/heads");
        assert.equal(pushed, "main");
        assert.equal(world.git(world.remote, "rev-parse", "main"), before);
        // By hand it can be had.
        world.git(world.home, "merge", "-q", result.worktree!.branch);
      });
    }
  }

  test("a base that somebody moved is not pushed with such a change either", async () => {
    const world = repository();
    const line = `${plumbed(".agent/worker/agent.json")}; git update-ref refs/heads/main HEAD; git reset -q --hard main~1; echo new > b.txt; git add b.txt; git commit -qm b`;
    const result = await world.run([line], { finalize: { push: true } });
    assert.doesNotMatch(world.git(world.remote, "log", "--format=%s", "main"), /plumbed/, details(result));
  });

  test("names that only look alike are merged as ever", async () => {
    const world = repository();
    const files = [".agents/x", ".gitignore", ".github/workflows/x.yml", "node_modules.bin/x"];
    const made = files.map((file) => `mkdir -p $(dirname ${file}); echo kept > ${file}`).join("; ");
    const result = await world.run([`${made}; git add -A; git commit -qm x`], { finalize: { push: true } });
    assert.deepEqual(states(result), ["merge:applied", "push:applied", "remove:applied"], details(result));
    for (const file of files) assert.equal(readFileSync(join(world.home, file), "utf8"), "kept\n");
  });

  test("what the person changed meanwhile is theirs", async () => {
    const world = repository();
    const mine = "cd $HOME_TREE; echo '{}' > .agent/worker/mine.json; git add -A; git commit -qm mine";
    // The person is played by a command here, in a place that no confined command reaches.
    const result = await world.run(["echo new > b.txt", `(${mine})`], { sandbox: "off" });
    assert.deepEqual(states(result), ["commit:applied", "merge:applied", "remove:applied"], details(result));
    assert.equal(world.read(".agent/worker/mine.json"), "{}\n");
  });
});
