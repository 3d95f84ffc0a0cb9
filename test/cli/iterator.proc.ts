/** The complete agent.json of document 003, word for word, from the command to the issue, the branch and the logs. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { builtCommand } from "../built.ts";
import type { Result } from "../../src/run/index.ts";
import { openStandIn } from "../github/stand-in.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const example = join(root, "examples/08-github-issue");

type World = {
  readonly folder: string;
  readonly git: (...args: readonly string[]) => string;
  readonly lockstep: (
    args: readonly string[],
    env?: { readonly [name: string]: string },
  ) => Promise<{ status: number | null; stdout: string; stderr: string }>;
};

async function withProject(use: (world: World) => Promise<void>, agent?: string): Promise<void> {
  const temp = mkdtempSync(join(tmpdir(), "lockstep-iterator-"));
  try {
    const folder = join(temp, "project");
    cpSync(join(example, "project"), folder, { recursive: true });
    cpSync(join(example, ".agent"), join(folder, ".agent"), { recursive: true });
    if (agent !== undefined) cpSync(agent, join(folder, ".agent/iterator/agent.json"));
    const home = { PATH: process.env.PATH, HOME: temp, LOCKSTEP_TRUST: "all" };
    const git: World["git"] = (...args) => {
      const { status, stdout, stderr } = spawnSync("git", args, { cwd: folder, env: home, encoding: "utf8" });
      assert.equal(status, 0, `${args.join(" ")}: ${stderr}`);
      return stdout.trim();
    };
    git("init", "-q", "-b", "main");
    git("config", "user.name", "t");
    git("config", "user.email", "t@example.invalid");
    git("add", "-A");
    git("commit", "-qm", "start");
    const lockstep: World["lockstep"] = async (args, env = {}) => {
      const main = await builtCommand();
      const child = spawn(process.execPath, [main, ...args], { cwd: folder, env: { ...home, ...env } });
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
      child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
      return await new Promise((resolve) => {
        child.on("close", (status) => resolve({ status, stdout, stderr }));
      });
    };
    await use({ folder, git, lockstep });
  } finally {
    rmSync(temp, { recursive: true, force: true });
  }
}

const RUN = ["run", "iterator", "--issue", "12", "--script", join(example, "script.yaml")];
const LOGS = "tmp/logs/agents/iterator";
const PRINTED = join(root, "test/fixtures/documents/003-agent.json");

test("issue 12 is labelled, the branch merged, and a hundred logs are kept", async () => {
  const stand = await openStandIn();
  try {
    const issue = stand.world.addIssue({ number: 12 });
    const seen: string[] = [];
    stand.onRequest = ({ method }) => void (method !== "GET" && seen.push(issue.labels.join(" ")));
    await withProject(async ({ folder, git, lockstep }) => {
      mkdirSync(join(folder, LOGS), { recursive: true });
      for (let day = 0; day < 105; day += 1) {
        const at = new Date(Date.UTC(2020, 0, 1 + day)).toISOString().replaceAll(/[:.]/g, "-");
        writeFileSync(join(folder, LOGS, `iterator-${at}.jsonl`), "{}\n");
      }
      const ran = await lockstep([...RUN, "--json"], stand.env);
      assert.equal(ran.status, 0, ran.stdout + ran.stderr);
      const result = JSON.parse(ran.stdout) as Result;
      assert.deepEqual(
        result.effects.map(({ kind, target, state }) => `${kind} ${target} ${state}`),
        [
          "label issue #12 applied",
          "merge main applied",
          `remove ${result.worktree!.path} applied`,
          "label issue #12 applied",
          "label issue #12 applied",
        ],
      );
      assert.deepEqual(seen, ["in-progress", "in-progress done docs", "done docs"]);
      assert.deepEqual([issue.state, issue.labels], ["open", ["done", "docs"]]);
      assert.match(readFileSync(join(folder, "hello.md"), "utf8"), /Welcome to/);
      assert.match(
        git("log", "--topo-order", "--format=%s"),
        /^Merge branch 'iterator\/\w+' into main\nSpell the welcome right\n/,
      );
      assert.equal(git("status", "--porcelain"), "");
      const logs = readdirSync(join(folder, LOGS)).filter((name) => name.endsWith(".jsonl"));
      assert.equal(logs.length, 100);
      assert.ok(!logs.some((name) => name.includes("2020-01-06")), "the oldest are gone");

      const told = await lockstep(["effects", "@last"]);
      assert.match(
        told.stdout,
        /^KIND +TARGET +STATE +WHEN +DETAIL\nlabel +issue #12 +applied +\d{4}-\d\d-\d\d/,
      );
      const listed = JSON.parse((await lockstep(["effects", "@last", "--json"])).stdout) as Result;
      assert.deepEqual([listed.run, listed.effects], [result.run, result.effects]);
      const events = (await lockstep(["show", "@last", "--events"])).stdout;
      assert.equal(events.match(/"effect\.applied"/g)?.length, 5);
    }, PRINTED);
  } finally {
    await stand.close();
  }
});

test("without GitHub it says what it would do there, and does the rest", async () => {
  await withProject(async ({ folder, git, lockstep }) => {
    const dry = await lockstep([...RUN, "--dry-run", "--json"]);
    assert.equal(dry.status, 0, dry.stdout + dry.stderr);
    const { effects } = JSON.parse(dry.stdout) as Result;
    assert.deepEqual(new Set(effects.map(({ state }) => state)), new Set(["held"]));
    assert.equal(git("rev-list", "--count", "main"), "1");

    const ran = await lockstep(RUN);
    assert.equal(ran.status, 0, ran.stderr);
    assert.match(ran.stderr, /nothing will be changed on GitHub, only reported: It is not known which/);
    assert.match(ran.stderr, /&& gh issue edit 12 --add-label done --add-label docs$/m);
    assert.match(readFileSync(join(folder, "hello.md"), "utf8"), /Welcome to/);
  });
  await withProject(async ({ lockstep }) => {
    assert.equal((await lockstep(["effects", "@last"])).status, 2);
  });
});
