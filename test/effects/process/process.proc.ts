import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { until } from "../../until.ts";
import { childEnv, runProcess, type ProcessOptions } from "../../../src/effects/process/process.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-process-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function run(command: ProcessOptions["command"], options: Partial<ProcessOptions> = {}) {
  return runProcess({
    command,
    cwd: folder,
    env: childEnv(process.env),
    timeoutMs: 60_000,
    maxOutputBytes: 64 * 1024,
    signal: new AbortController().signal,
    graceMs: 100,
    ...options,
  });
}

/** Processes that wrote their id to `name` and still run; a zombie does not run. */
function survivors(name: string): readonly number[] {
  const pids = readFileSync(join(folder, name), "utf8").split("\n").filter(Boolean).map(Number);
  assert.ok(pids.length > 0 && pids.every((pid) => pid > 1), "the command noted who it started");
  return pids.filter((pid) => {
    try {
      process.kill(pid, 0);
      return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
      return false;
    }
  });
}

/** Aborts once the file is there: the command has come far enough. */
function abortWhenThere(name: string): AbortSignal {
  const controller = new AbortController();
  const timer = setInterval(() => {
    if (!existsSync(join(folder, name))) return;
    clearInterval(timer);
    controller.abort();
  }, 10);
  return controller.signal;
}

describe("a command that behaves", () => {
  const cases: readonly [
    string,
    ProcessOptions["command"],
    { exitCode: number; stdout: string; stderr: string },
  ][] = [
    ["prints to both streams", "echo out; echo err >&2", { exitCode: 0, stdout: "out\n", stderr: "err\n" }],
    ["gives its exit code", "exit 7", { exitCode: 7, stdout: "", stderr: "" }],
    ["finds its input closed", "cat; echo end", { exitCode: 0, stdout: "end\n", stderr: "" }],
    [
      "runs where it is told",
      "basename $PWD",
      { exitCode: 0, stdout: `${folder.split("/").at(-1)}\n`, stderr: "" },
    ],
    [
      "as an argument vector is read by no shell",
      ["printf", "%s|", "$(id)", "a b", "; exit 3", "*"],
      { exitCode: 0, stdout: "$(id)|a b|; exit 3|*|", stderr: "" },
    ],
    ["keeps whole characters", "printf 'äöü→🙂'", { exitCode: 0, stdout: "äöü→🙂", stderr: "" }],
  ];
  for (const [name, command, expected] of cases) {
    test(name, async () => {
      const { exitCode, stdout, stderr, timedOut, aborted, truncated } = await run(command);
      assert.deepEqual({ exitCode, stdout, stderr }, expected);
      assert.deepEqual(
        { timedOut, aborted, truncated },
        { timedOut: false, aborted: false, truncated: false },
      );
    });
  }
});

describe("a command that cannot start is a result like any other", () => {
  const cases: readonly [string, ProcessOptions["command"], Partial<ProcessOptions>, number, RegExp][] = [
    ["does not exist", ["no-such-command-at-all"], {}, 127, /cannot start "no-such-command-at-all".*ENOENT/],
    ["is not executable", [folder], {}, 126, /EACCES/],
    ["runs nowhere", "true", { cwd: join(folder, "missing") }, 127, /ENOENT/],
    ["is empty", [], {}, 126, /cannot start ""/],
    ["holds a NUL", "echo \0", {}, 126, /: the command contains a NUL character, ERR_INVALID_ARG_VALUE/],
    [
      "is longer than the system takes",
      `: ${"x".repeat(4 * 1024 * 1024)}`,
      {},
      126,
      /: the command is too long, E2BIG/,
    ],
  ];
  for (const [name, command, options, exitCode, stderr] of cases) {
    test(name, async () => {
      const result = await run(command, options);
      assert.equal(result.exitCode, exitCode);
      assert.match(result.stderr, stderr);
    });
  }
});

describe("a command that does not end is ended, with all it started", { concurrency: true }, () => {
  const cases: readonly [string, string][] = [
    ["hangs", "echo $$ >>$F; sleep 1000"],
    ["ignores being asked", "trap '' TERM INT HUP; echo $$ >>$F; while :; do sleep 1000; done"],
    [
      "has children and grandchildren",
      "echo $$ >>$F; (sh -c 'echo $$ >>'$F'; sleep 1000' & echo $! >>$F; sleep 1000) & sleep 1000",
    ],
    ["started one that left its group", "echo $$ >>$F; setsid sh -c 'echo $$ >>'$F'; sleep 1000' & wait"],
    [
      "started one that left its group and ignores being asked",
      "echo $$ >>$F; setsid sh -c 'trap \"\" TERM; echo $$ >>'$F'; while :; do sleep 1000; done' & wait",
    ],
    ["is stopped", "echo $$ >>$F; kill -STOP $$; sleep 1000"],
    ["prints without end", "echo $$ >>$F; yes"],
  ];
  for (const [index, [name, script]] of cases.entries()) {
    test(`${name}: at its time cap`, async () => {
      const file = `timeout-${index}`;
      const result = await run(script.replaceAll("$F", file), { timeoutMs: 1_500 });
      assert.equal(result.timedOut, true);
      assert.equal(result.aborted, false);
      assert.deepEqual(survivors(file), []);
    });
    test(`${name}: when the signal aborts`, async () => {
      const file = `abort-${index}`;
      const result = await run(script.replaceAll("$F", file), { signal: abortWhenThere(file) });
      assert.equal(result.aborted, true);
      assert.equal(result.timedOut, false);
      assert.deepEqual(survivors(file), []);
    });
  }

  test("it may tidy up when it is asked to end", async () => {
    const result = await run("trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done", {
      timeoutMs: 1_500,
      graceMs: 30_000,
    });
    assert.equal(result.stdout, "ready\ntidied\n");
    assert.deepEqual([result.timedOut, result.exitCode], [true, 0]);
  });

  test("a signal that is already aborted starts nothing", async () => {
    const result = await run("touch started", { signal: AbortSignal.abort() });
    assert.equal(result.aborted, true);
    assert.equal(existsSync(join(folder, "started")), false);
  });

  test("a time cap beyond what timers can count does not strike at once", async () => {
    const result = await run("echo fine", { timeoutMs: Number.MAX_SAFE_INTEGER });
    assert.deepEqual([result.timedOut, result.stdout], [false, "fine\n"]);
  });

  test("no listener stays on the signal", async () => {
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    for (let round = 0; round < 15; round += 1) await run(["true"], { signal });
    await new Promise(setImmediate);
    process.off("warning", note);
    assert.deepEqual(warnings, []);
  });
});

describe("a command that ends but leaves something running", () => {
  const cases: readonly [string, string][] = [
    ["a child in the background that holds the pipes", "sleep 1000 & echo $! >>$F; echo done"],
    [
      "a child that ignores being asked",
      "sh -c 'trap \"\" TERM HUP; while :; do sleep 1000; done' & echo $! >>$F; echo done",
    ],
    [
      "a daemon in a session of its own",
      "setsid sh -c 'echo $$ >>'$F'; sleep 1000' & while ! test -s $F; do sleep 0.01; done; echo done",
    ],
    [
      "a daemon that was forked twice and let go of everything",
      "(setsid sh -c 'sleep 1000 & echo $! >>'$F </dev/null >/dev/null 2>&1 &); while ! test -s $F; do sleep 0.01; done; echo done",
    ],
    ["a child with an empty environment, in the group", "env -i sleep 1000 & echo $! >>$F; echo done"],
    ["a pipe that nobody reads to its end", "(yes & echo $! >>$F) | head -n 1 >/dev/null; echo done"],
    ["fifty at once", "i=0; while test $i -lt 50; do sleep 1000 & echo $! >>$F; i=$((i+1)); done; echo done"],
  ];
  for (const [index, [name, script]] of cases.entries()) {
    test(`${name}: gives its result, and nothing runs on`, async () => {
      const file = `left-${index}`;
      const result = await run(script.replaceAll("$F", file));
      assert.deepEqual([result.exitCode, result.stdout, result.timedOut], [0, "done\n", false]);
      assert.deepEqual(survivors(file), []);
    });
  }

  test("one that left the group and wiped its environment gets away, but nobody waits for it", async () => {
    const script =
      "env -i setsid sh -c 'echo $$ >escaped; sleep 1000' & while ! test -s escaped; do sleep 0.01; done; echo done";
    const result = await run(script);
    assert.deepEqual([result.exitCode, result.stdout], [0, "done\n"]);
    for (const pid of survivors("escaped")) process.kill(-pid, "SIGKILL");
  });

  test("a run inside a run: ending the outer one ends the children of the inner one", async () => {
    const inner = `
      import { runProcess, childEnv } from ${JSON.stringify(new URL("../../../src/effects/process/process.ts", import.meta.url).href)};
      process.on("SIGTERM", () => {});
      await runProcess({ command: "echo $$ >nested; sleep 1000", cwd: process.cwd(), env: childEnv(process.env),
        timeoutMs: 1e9, maxOutputBytes: 1000, signal: new AbortController().signal });
    `;
    const command = [process.execPath, "--input-type=module", "-e", inner];
    const result = await run(command, { signal: abortWhenThere("nested") });
    assert.equal(result.aborted, true);
    assert.deepEqual(survivors("nested"), []);
  });
});

describe("output", () => {
  test("200 MB are read through, head and tail are kept, memory does not grow", async () => {
    const before = process.memoryUsage().rss;
    const result = await run("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last");
    const grown = process.memoryUsage().rss - before;
    assert.deepEqual([result.exitCode, result.truncated], [0, true]);
    assert.ok(result.stdout.length < 65 * 1024, `kept ${result.stdout.length}`);
    assert.ok(result.stdout.startsWith("first\nxxx") && result.stdout.endsWith("xxx\nlast\n"));
    assert.match(result.stdout, /\n\[… 1999\d{5} bytes cut …\]\n/);
    assert.ok(grown < 100 * 1024 * 1024, `grew by ${grown} bytes`);
  });

  test("many tiny pieces are kept like a few large ones", async () => {
    const script = "for (let i = 0; i < 20000; i++) process.stdout.write('x'); process.stdout.write('end')";
    const result = await run([process.execPath, "-e", script], { maxOutputBytes: 1_000 });
    assert.ok(result.stdout.endsWith("xend") && result.truncated);
  });

  test("a flood on stderr does not disturb stdout", async () => {
    const result = await run("yes 2>/dev/null | head -c 5000000 >&2; echo fine");
    assert.equal(result.stdout, "fine\n");
    assert.equal(result.truncated, true);
  });
});

describe("the environment of a child", () => {
  const secrets = {
    ANTHROPIC_API_KEY: "canary-1",
    OPENAI_API_KEY: "canary-2",
    GITHUB_TOKEN: "canary-3",
    GH_TOKEN: "canary-4",
    AWS_SECRET_ACCESS_KEY: "canary-5",
    NPM_TOKEN: "canary-6",
    DATABASE_URL: "canary-7",
    SSH_AUTH_SOCK: "canary-8",
    NODE_OPTIONS: "canary-9",
    LD_PRELOAD: "canary-10",
    BASH_ENV: "canary-11",
    LC_: "canary-12",
    LC_secret: "canary-13",
    PATH_TOKEN: "canary-14",
    path: "canary-15",
    CLAUDE_CODE_OAUTH_TOKEN: "canary-16",
    GEMINI_API_KEY: "canary-17",
    AZURE_OPENAI_API_KEY: "canary-18",
    GITHUB_PAT: "canary-19",
    SLACK_BOT_TOKEN: "canary-20",
    PGPASSWORD: "canary-21",
    GOOGLE_APPLICATION_CREDENTIALS: "canary-22",
    DOCKER_AUTH_CONFIG: "canary-23",
    SENTRY_DSN: "canary-24",
    HTTP_PROXY: "canary-25",
  };

  test("holds no secret", async () => {
    const { stdout } = await run("env; cat /proc/self/environ", {
      env: childEnv({ ...process.env, ...secrets }),
    });
    assert.doesNotMatch(stdout, /canary/);
    assert.match(stdout, /^PATH=/m);
  });

  const WARY = {
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "safe.bareRepository",
    GIT_CONFIG_VALUE_0: "explicit",
  };

  test("holds what programs need", () => {
    const needed = {
      PATH: "/bin",
      HOME: "/h",
      LANG: "C",
      LC_ALL: "C",
      TERM: "x",
      TMPDIR: "/t",
      CI: "1",
      NO_COLOR: "1",
    };
    assert.deepEqual(childEnv({ ...secrets, ...needed }), { ...needed, ...WARY });
  });

  test("holds besides what the user added, by its whole name", () => {
    const more = { CARGO_HOME: "/c", CARGO: "/x" };
    assert.deepEqual(childEnv({ ...secrets, ...more }, ["CARGO_HOME", "ABSENT"]), {
      CARGO_HOME: "/c",
      ...WARY,
    });
  });
});

test("nothing of this file is running any more", () => {
  const files = readdirSync(folder).filter((name) => /^(?:timeout|abort|left)-|nested/.test(name));
  assert.ok(files.length > 20);
  for (const file of files) assert.deepEqual(survivors(file), [], file);
});

describe("a command that is to go on to its end", () => {
  const library = new URL("../../../src/effects/process/process.ts", import.meta.url).href;
  /** A process of ours that starts the command and ends at once, as it does at a second Ctrl-C. */
  const left = (name: string, lasting: boolean) => `
    import { existsSync } from "node:fs";
    import { childEnv, runProcess } from ${JSON.stringify(library)};
    const command = "touch ${name}.begun; while [ ! -e ${name}.go ]; do sleep 0.05; done; touch ${name}.done";
    void runProcess({
      command, cwd: ${JSON.stringify(folder)}, env: childEnv(process.env), timeoutMs: 600_000,
      maxOutputBytes: 1024, signal: new AbortController().signal, ${lasting ? "lasting: true," : ""}
    });
    setInterval(() => existsSync(${JSON.stringify(join(folder, `${name}.begun`))}) && process.exit(130), 10);
  `;
  const there = (name: string) => existsSync(join(folder, name));

  test("goes on when our process exits, and any other ends with it", async () => {
    for (const [name, lasting] of [
      ["lasting", true],
      ["other", false],
    ] as const) {
      const args = ["--input-type=module", "--eval", left(name, lasting)];
      const ours = spawn(process.execPath, args, { stdio: "inherit" });
      const [code] = (await once(ours, "exit")) as [number];
      assert.equal(code, 130);
      writeFileSync(join(folder, `${name}.go`), "");
    }
    await until(() => there("lasting.done"), "the lasting command ends");
    assert.ok(!there("other.done"));
  });
});
