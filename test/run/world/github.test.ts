/** Runs that look at GitHub and read it, through the public door. GitHub is a stand-in on loopback. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { createMemoryJournal, run, type Entry, type ScriptReply } from "../../../src/run/index.ts";
import { openStandIn, type StandIn } from "../../github/stand-in.ts";
import { projectWith } from "../project.ts";
import { verdictAgent } from "../verdict-agents.ts";

const READ = "mcp__github__github_read";
const parameters = { issue: { type: "number", cli: "--issue", description: "x", default: 1 } };
const polling = { type: "poll:state", config: { maxIterations: 4 } };
const work: readonly ScriptReply[] = Array.from({ length: 4 }, () => ({ text: "work" }));

describe("a run and GitHub", () => {
  let stand: StandIn;
  beforeEach(async () => {
    stand = await openStandIn();
  });
  afterEach(() => stand.close());

  async function go(
    script: readonly ScriptReply[],
    { runner = {}, env = stand.env }: { runner?: object; env?: { readonly [name: string]: string } } = {},
  ) {
    const cwd = projectWith(verdictAgent("bare", polling, { parameters, runner }));
    const entries: Entry[] = [];
    const result = await run({
      agent: "ender",
      cwd,
      journal: createMemoryJournal(),
      env: { PATH: "/nowhere", HOME: cwd, ...env },
      script,
      observe: (entry) => void entries.push(entry),
    });
    return { ...result, record: JSON.stringify(entries) };
  }

  test("poll:state: over when the issue is closed, by whomever", async () => {
    const issue = stand.world.addIssue();
    stand.onRequest = () => {
      if (stand.log.length === 2) issue.state = "closed";
    };
    const result = await go(work.slice(1));
    assert.deepEqual(
      [result.outcome, result.exitCode, result.iterations],
      ["completed", 0, 3],
      result.reason,
    );
    assert.match(result.reason, /issue 1 is closed/);
    assert.deepEqual(
      stand.log.map(({ status }) => status),
      [200, 304, 200],
    );
    assert.deepEqual(result.warnings, []);
  });

  const BLIND: readonly (readonly [name: string, env: { readonly [name: string]: string }, warns: RegExp])[] =
    [
      ["no token", { GH_REPO: "octo/demo" }, /There is no token for github\.com: set GH_TOKEN/],
      ["no repository", { GH_TOKEN: "x" }, /set GH_REPO=OWNER\/NAME/],
    ];
  for (const [name, env, warns] of BLIND) {
    test(`poll:state with ${name}: not in the target state, and one warning`, async () => {
      stand.world.addIssue({ state: "closed" });
      const result = await go(work, { env });
      assert.deepEqual([result.code, result.iterations], ["AGENT_MAX_ITERATIONS", 4]);
      assert.equal(result.warnings.length, 1);
      assert.match(result.warnings[0]!, warns);
      assert.equal(stand.log.length, 0);
    });
  }

  test("poll:state with GitHub switched off", async () => {
    const result = await go(work, { runner: { integrations: { github: { enabled: false } } } });
    assert.equal(result.code, "AGENT_MAX_ITERATIONS");
    assert.match(result.warnings.join(), /GitHub is disabled for this agent/);
    assert.equal(stand.log.length, 0);
  });

  test("a step reads an issue, and whatever stands in it the token is nowhere", async () => {
    const issue = stand.world.addIssue({ title: "Mend it", body: `The token is ${stand.token}.` });
    const calls = [{ name: READ, input: { operation: "issue_view", number: issue.number } }];
    const boundaries = { allowedTools: ["Read", READ], permissionMode: "acceptEdits" };
    issue.state = "closed";
    const result = await go([{ calls }, { text: "read", saw: ["title: Mend it", "never an instruction"] }], {
      runner: { boundaries },
    });
    assert.equal(result.outcome, "completed", result.reason);
    assert.match(result.record, /The token is \[redacted/);
    assert.ok(!result.record.includes(stand.token));
    assert.ok(!JSON.stringify(result).includes(stand.token));
  });

  test("a step that does not list it is not told of it", async () => {
    stand.world.addIssue({ state: "closed" });
    const calls = [{ name: READ, input: { operation: "issue_list" } }];
    const result = await go([{ calls }, { text: "no", saw: ["not listed"] }]);
    assert.equal(result.outcome, "completed", result.reason);
    assert.deepEqual(
      stand.log.map(({ path }) => path),
      ["/repos/octo/demo/issues/1"],
    );
  });
});
