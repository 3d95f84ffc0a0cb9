/**
 * Validators that misbehave: each comes to one of the ends that docs/checks.md lists, and leaves no process behind.
 * How a process is ended is tested in process.proc.ts; here it is what the flow is told.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { runProcess } from "../../src/effects/process/process.ts";
import { createShell } from "../../src/effects/process/shell.ts";
import type { CheckResult } from "../../src/flow/event.ts";
import type { CommandCheck } from "../../src/flow/flow.ts";
import { sketchCheck } from "../../src/testing/flows.ts";
import { needs } from "../needs.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-hostile-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const onLinux = needs(process.platform === "linux", "processes are looked up in /proc");

type End = "passes" | "fails" | "cannot be helped";

type Row = {
  readonly name: string;
  readonly command: string;
  readonly more?: Partial<CommandCheck>;
  readonly end: End;
  readonly says: RegExp;
};

const STOPPED = /was stopped after 1500 ms/;
const empty = { success: { kind: "empty" } } as const;

const ROWS: readonly Row[] = [
  { name: "hangs", command: "echo begun; sleep 1000", end: "fails", says: STOPPED },
  { name: "hangs without a word", command: "sleep 1000", more: empty, end: "fails", says: STOPPED },
  {
    name: "ignores being asked to end",
    command: "trap '' TERM INT HUP QUIT; while :; do sleep 1000; done",
    end: "fails",
    says: STOPPED,
  },
  { name: "turns in circles", command: "while :; do :; done", end: "fails", says: STOPPED },
  { name: "stops itself", command: "kill -STOP $$", end: "fails", says: STOPPED },
  {
    name: "forks and forks",
    command:
      "fork() { test $1 -gt 0 || exec sleep 1000; for i in 1 2 3; do (fork $(($1 - 1))) & done; wait; }; fork 4",
    end: "fails",
    says: STOPPED,
  },
  {
    name: "forks, ignores being asked, and scatters",
    command:
      "for i in 1 2 3 4 5 6 7 8; do setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & done; wait",
    end: "fails",
    says: STOPPED,
  },
  {
    name: "becomes a daemon",
    command: "(setsid nohup sh -c 'sleep 1000 & sleep 1000' </dev/null >/dev/null 2>&1 &); echo done",
    end: "passes",
    says: /exit code 0/,
  },
  {
    name: "becomes a daemon that holds the pipes and ignores being asked",
    command: "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1000; done' & echo done",
    end: "passes",
    says: /exit code 0/,
  },
  {
    name: "prints a gigabyte",
    command: "echo first; head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo last",
    more: { timeoutMs: 120_000, success: { kind: "matches", pattern: "^first\\n" } },
    end: "passes",
    says: /exit code 0/,
  },
  {
    name: "prints a gigabyte with what is asked for in its midst",
    command:
      "head -c 500000000 /dev/zero | tr '\\0' x; echo needle; head -c 500000000 /dev/zero | tr '\\0' x",
    more: { timeoutMs: 120_000, success: { kind: "contains", text: "needle" } },
    end: "fails",
    says: /expected output containing "needle"/,
  },
  { name: "prints without end", command: "yes", end: "fails", says: STOPPED },
  { name: "prints errors without end", command: "yes >&2", end: "fails", says: STOPPED },
  { name: "reads its input", command: "cat; read -r line; exit 5", end: "fails", says: /exit code 5/ },
  {
    name: "closes its output",
    command: "exec >&- 2>&-; echo lost",
    end: "fails",
    says: /ended with exit code [1-9]/,
  },
  {
    name: "closes its output and hangs",
    command: "exec >&- 2>&-; sleep 1000",
    more: empty,
    end: "fails",
    says: STOPPED,
  },
  { name: "ends its own group", command: "kill -9 0; sleep 1000", end: "fails", says: /ended by SIGKILL/ },
  {
    name: "deletes where it stands",
    command: 'cd / && rm -rf "$OLDPWD"',
    end: "passes",
    says: /exit code 0/,
  },
  {
    name: "does not exist",
    command: "no-such-command-at-all",
    end: "cannot be helped",
    says: /exit code 127/,
  },
  { name: "may not run", command: "/dev/null", end: "cannot be helped", says: /exit code 126/ },
];

describe("a validator that", { concurrency: 4, ...onLinux }, () => {
  for (const [index, { name, command, more, end, says }] of ROWS.entries()) {
    test(`${name} → ${end}`, async () => {
      const cwd = join(folder, String(index));
      mkdirSync(cwd);
      const token = `hostile-${process.pid}-${index}`;
      const before = process.memoryUsage().rss;
      const check = { ...sketchCheck(name, command), timeoutMs: 1_500, env: { token }, ...more };
      const shell = createShell({ cwd, env: process.env, exec: runProcess });
      const result = await shell.check(check, new AbortController().signal);
      assert.equal(endOf(result), end, result.summary);
      assert.match(result.summary, says);
      assert.deepEqual(carriersOf(token), []);
      assert.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024);
    });
  }

  test("who looks for processes finds one that runs", async () => {
    const token = `hostile-${process.pid}-probe`;
    const command = 'grep -lz "$token" /proc/[0-9]*/environ 2>/dev/null; exit 3';
    const shell = createShell({ cwd: folder, env: process.env, exec: runProcess });
    const check = { ...sketchCheck("probe", command), env: { token } };
    const { params } = await shell.check(check, new AbortController().signal);
    assert.match(params["stdout"] as string, /^\/proc\/\d+\/environ/);
  });
});

test("where there is no working directory any more, no command can be helped", async () => {
  const cwd = join(folder, "gone");
  assert.equal(existsSync(cwd), false);
  const shell = createShell({ cwd, env: process.env, exec: runProcess });
  const result = await shell.check(sketchCheck("next", "true"), new AbortController().signal);
  assert.equal(endOf(result), "cannot be helped");
  assert.match(result.summary, /cannot start "\/bin\/sh" in .*gone: ENOENT/);
});

test("docs/checks.md lists every one of these ends", () => {
  const page = readFileSync(new URL("../../docs/checks.md", import.meta.url), "utf8");
  for (const { name, end } of ROWS) assert.ok(page.includes(`| ${name} | ${end} |`), name);
});

function endOf({ ok, unrecoverable }: CheckResult): End {
  if (ok) return "passes";
  return unrecoverable ? "cannot be helped" : "fails";
}

/** Processes that have the token in their environment, as all descendants of the command do. */
function carriersOf(token: string): readonly string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/environ`, "latin1").includes(token);
    } catch {
      return false; // ended meanwhile, or another user's
    }
  });
}
