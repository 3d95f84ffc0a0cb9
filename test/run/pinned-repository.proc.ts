/** Which GitHub repository a run speaks of is settled before its first step: what the run writes changes nothing. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { ScriptReply } from "../../src/run/index.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import { replies, repository, type Repository } from "./repository.ts";

const GOOD = "https://github.com/octo/demo.git";
const EVIL = "https://github.com/victim/private.git";
const READ = { name: "mcp__github__github_read", input: { operation: "issue_view", number: 1 } };
const write = (file_path: string, content: string) => ({ name: "Write", input: { file_path, content } });
const bash = (command: string) => ({ name: "Bash", input: { command } });

const CONFIG = `[core]\n\trepositoryformatversion = 0\n\tbare = true\n[remote "origin"]\n\turl = ${EVIL}\n`;
const ATTACKS: { readonly [name: string]: readonly { readonly name: string; readonly input: object }[] } = {
  "control: nothing is written": [],
  "a folder that looks like a repository": [
    write("HEAD", "ref: refs/heads/main\n"),
    write("config", CONFIG),
    write("objects/x", ""),
    write("refs/x", ""),
  ],
  "another address of the remote": [bash(`git remote set-url origin ${EVIL}`)],
  "another meaning of the address": [bash(`git config url.${EVIL}.insteadOf ${GOOD}`)],
  "a repository in the working directory": [bash(`git init -q .; git remote add origin ${EVIL}`)],
  "a file that points to another repository": [
    bash(
      `git init -q ../other; git -C ../other remote add origin ${EVIL}; echo 'gitdir: ../other/.git' > .git`,
    ),
  ],
};

describe("the repository on GitHub", () => {
  let stand: StandIn;
  beforeEach(async () => {
    stand = await openStandIn();
    stand.world.addIssue();
  });
  afterEach(() => stand.close());

  function world(): { readonly made: Repository; readonly cwd: string; readonly env: NodeJS.ProcessEnv } {
    const made = repository({ execution: {} });
    made.git(made.home, "remote", "set-url", "origin", GOOD);
    const cwd = join(made.home, "pkg");
    mkdirSync(cwd);
    const { GH_REPO: _, ...env } = { ...made.env, ...stand.env, LOCKSTEP_TRUST: "all" } as NodeJS.ProcessEnv;
    return { made, cwd, env };
  }
  const asked = () => [...new Set(stand.log.map(({ path }) => path.split("/").slice(1, 4).join("/")))];
  const script = (...calls: readonly (readonly object[])[]) =>
    [
      ...calls.filter((batch) => batch.length > 0).map((batch) => ({ step: "initial.work", calls: batch })),
      ...replies([]),
    ] as readonly ScriptReply[];

  for (const [name, calls] of Object.entries(ATTACKS)) {
    test(name, async () => {
      const { made, cwd, env } = world();
      const result = await made.run([], { cwd, env, script: script(calls, [READ]) });
      assert.equal(result.outcome, "completed", result.reason);
      assert.deepEqual(asked(), ["repos/octo/demo"]);
    });

    test(`${name}, and the run is resumed`, async () => {
      const { made, cwd, env } = world();
      const first = script(calls.length === 0 ? [bash("true")] : calls).slice(0, 1);
      const begun = await made.run([], { cwd, env, script: first });
      assert.equal(begun.code, "SCRIPT_EXHAUSTED");
      const result = await made.resume(begun, { cwd, env, script: script([READ]) });
      assert.equal(result.outcome, "completed", result.reason);
      assert.deepEqual(asked(), ["repos/octo/demo"]);
    });
  }
});
