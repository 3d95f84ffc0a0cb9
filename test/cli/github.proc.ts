/** GitHub from the command line: what doctor says of it, and a run that reads an issue; the token is nowhere to be seen. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import { createWorld, onlyDocument, replies, script, writeAgent } from "./world.ts";

describe("GitHub", () => {
  let stand: StandIn;
  before(async () => {
    stand = await openStandIn();
  });
  after(() => stand.close());

  type Check = {
    readonly name: string;
    readonly status: string;
    readonly detail: string;
    readonly fix: string | null;
  };
  async function doctor(env: { readonly [name: string]: string }, ...flags: readonly string[]) {
    using world = createWorld();
    execFileSync("git", ["init", "-q", world.root]);
    execFileSync("git", ["-C", world.root, "remote", "add", "origin", "git@github.com:octo/demo.git"]);
    const ran = await world.lockstep(["doctor", "--json", ...flags], { env });
    assert.ok(!(ran.stdout + ran.stderr).includes(stand.token));
    const checks = onlyDocument(ran).checks as readonly Check[];
    return checks.find(({ name }) => name === "github")!;
  }

  test("doctor tells whose repository and token it is, and whether GitHub answers", async () => {
    const { GH_REPO: _, ...env } = stand.env;
    const offline = await doctor(env);
    const words = "github.com/octo/demo (the remote origin), token from GH_TOKEN";
    assert.deepEqual([offline.status, offline.detail], ["ok", `${words}, not asked (--online)`]);
    assert.equal(stand.log.length, 0);
    const online = await doctor(env, "--online");
    assert.deepEqual([online.status, online.detail], ["ok", `${words}, answers`]);
    const wrong = await doctor({ ...env, GH_TOKEN: `ghp_${"w".repeat(36)}` }, "--online");
    assert.equal(wrong.status, "warn");
    assert.match(wrong.detail, /does not accept the token from GH_TOKEN/);
    assert.match(wrong.fix ?? "", /make a new one/);
  });

  test("doctor says what to do about a missing token", async () => {
    const { status, detail, fix } = await doctor({});
    assert.deepEqual([status, detail], ["warn", "There is no token for github.com"]);
    assert.match(fix ?? "", /^set GH_TOKEN/);
  });

  test("a token that gh tells is kept out of everything, and out of the reach of commands", async () => {
    const token = "quite-plain-words-7";
    const own = await openStandIn("octo", "demo", token);
    using world = createWorld();
    try {
      const allowedTools = ["Bash", "mcp__github__github_read"];
      const boundaries = { allowedTools, permissionMode: "acceptEdits" };
      const integrations = { github: { enabled: true } };
      writeAgent(world, "notes", {
        agent: (agent) => Object.assign(agent.runner as object, { boundaries, integrations }),
      });
      // Not in the project: from there it would not be taken.
      const bin = mkdtempSync(join(tmpdir(), "lockstep-bin-"));
      after(() => rmSync(bin, { recursive: true, force: true }));
      writeFileSync(join(bin, "gh"), `#!/bin/sh\necho ${token}\n`, { mode: 0o755 });
      const issue = own.world.addIssue({ title: "Mend it", body: `Somebody wrote ${token} here.` });
      const read = {
        name: "mcp__github__github_read",
        input: { operation: "issue_view", number: issue.number },
      };
      const calls = [read, { name: "Bash", input: { command: "env; echo ready" } }];
      world.write(
        "replies.json",
        script(
          { calls },
          { ...replies.initial(), saw: ["title: Mend it", "ready"] },
          replies.continuation(),
          replies.closure(),
        ),
      );
      const { GITHUB_API_URL, GH_REPO } = own.env;
      const env = {
        GITHUB_API_URL: GITHUB_API_URL!,
        GH_REPO: GH_REPO!,
        PATH: `${bin}:${process.env["PATH"]}`,
      };
      const args = ["run", "notes", "--topic", "t", "--script", "replies.json", "--json"];
      const ran = await world.lockstep(args, { env: { ...env, GITHUB_TOKEN: "" } });
      assert.equal(ran.code, 0, ran.stdout + ran.stderr);
      const shown = await world.lockstep(["logs", "@last", "--json"], { env });
      const files = globSync("**/*", { cwd: join(world.root, ".lockstep") })
        .map((name) => join(world.root, ".lockstep", name))
        .filter((name) => statSync(name).isFile());
      const everything = [ran, shown].flatMap(({ stdout, stderr }) => [stdout, stderr]);
      everything.push(...files.map((name) => readFileSync(name, "latin1")));
      assert.ok(everything.some((text) => text.includes("Somebody wrote [redacted")));
      for (const text of everything) assert.ok(!text.includes(token));
    } finally {
      await own.close();
    }
  });
});
