/** The demo behind `npm start`: example 01 in a temporary git repository, offline, with everything real but the model. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const example = fileURLToPath(new URL("01-fix-a-test/", import.meta.url));
const lockstep = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lockstep-demo-"));

say("A project whose tests fail, and an agent of three steps: analyse, fix, close.");
cpSync(join(example, "project"), folder, { recursive: true });
cpSync(join(example, ".agent"), join(folder, ".agent"), { recursive: true });
git("init", "-q", "-b", "main");
git("config", "user.name", "Lockstep demo");
git("config", "user.email", "demo@example.invalid");
git("add", "-A");
git("commit", "-qm", "A cart with two bugs");
say(`Its tests: ${tests()}\n`);

// Trusted by name: the commands come from this very package.
const run = spawnSync(
  process.execPath,
  [lockstep, "run", "fixer", "--issue", "7", "--script", join(example, "script.yaml")],
  { cwd: folder, stdio: "inherit", env: { ...process.env, LOCKSTEP_TRUST: "all" } },
);
if (run.status !== 0) process.exit(run.status ?? 1);

say(`\nIts tests now: ${tests()}. What the agent committed:`);
say(git("log", "--oneline"));
say(`The scripted model said "done" with a test still failing. The check did not believe it.

Try next:
  npm run -s lockstep -- -C ${folder} studio           the same in your browser, step by step
  npm run -s lockstep -- -C ${folder} show @last       how that run went
  npm run -s lockstep -- -C ${folder} check fixer      what is proven before a token is spent
  npm run -s lockstep -- -C ${folder} init hello       an agent of your own, with a script to run it
Read on: README.md, docs/first-agent.md, ${join("examples", "01-fix-a-test", "script.yaml")}`);

function tests(): string {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=tap"], {
    cwd: folder,
    encoding: "utf8",
    env,
  });
  const count = (what: string) => new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1] ?? "?";
  return `${count("pass")} pass, ${count("fail")} fail`;
}

function git(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) {
    console.error(`git ${args[0]} failed: ${stderr}`);
    process.exit(1);
  }
  return stdout;
}

function say(line: string): void {
  console.error(line);
}
