/** Signals, pipes and a real terminal. */
import assert from "node:assert/strict";
import { spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { alive } from "../alive.ts";
import { needs } from "../needs.ts";
import {
  createWorld,
  ESCAPE,
  lastLine,
  MAIN,
  onlyDocument,
  replies,
  script,
  start,
  writeAgent,
  typedAt,
  writeCheckedAgent,
  type World,
} from "./world.ts";
import { until } from "../until.ts";

const SLOW = script(replies.initial(), { error: { kind: "rate-limit", retryAfterMs: 1500 } });

/** Calls back once, when the output shows that the run is where the test wants it. */
function when(
  words: RegExp,
  act: (child: ChildProcess) => void,
): (output: string, child: ChildProcess) => void {
  let isDone = false;
  return (output, child) => {
    if (isDone || !words.test(output)) return;
    isDone = true;
    act(child);
  };
}

describe("a run can be stopped", { concurrency: 3 }, () => {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    test(`${signal} stops in an orderly way: exit ${code} and the command to go on`, async () => {
      using world = createWorld();
      writeAgent(world, "notes");
      world.write("slow.json", SLOW);
      const watch = when(/trying again/, (child) => child.kill(signal));
      const ran = await world.lockstep(
        ["run", "notes", "--topic", "t", "--script", "slow.json", "--state", "kept"],
        { watch },
      );
      assert.equal(ran.code, code, ran.stderr);
      assert.equal(lastLine(ran.stdout), '{"outcome":"failed"}');
      assert.match(ran.stderr, /stopping: current work is discarded\./i);
      assert.match(ran.stderr, /next +lockstep resume \w{10} --state kept$/m);

      world.write("rest.json", script(replies.continuation(), replies.closure()));
      const rest = await world.lockstep([
        "resume",
        "@last",
        "--script",
        "rest.json",
        "--state",
        "kept",
        "--json",
      ]);
      assert.equal(onlyDocument(rest).outcome, "completed");
    });
  }

  test("with --json an interrupted run is one document", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    world.write("slow.json", SLOW);
    const watch = when(/trying again/, (child) => child.kill("SIGINT"));
    const ran = await world.lockstep(["run", "notes", "--topic", "t", "--script", "slow.json", "--json"], {
      watch,
    });
    assert.deepEqual([onlyDocument(ran).outcome, ran.code], ["interrupted", 130]);
  });

  test("--quiet leaves how it ended and the command that goes on, and nothing else", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    world.write("slow.json", SLOW);
    const watch = when(/rate-limit/, (child) => child.kill("SIGTERM"));
    const flags = ["--script", "slow.json", "--quiet", "--events", "--state", "my state"];
    const ran = await world.lockstep(["run", "notes", "--topic", "t", ...flags], { watch });
    assert.equal(ran.code, 143);
    const lines = ran.stderr.trimEnd().split("\n");
    assert.equal(lines.length, 3, ran.stderr);
    assert.match(lines[2]!, /^ {2}next: lockstep resume \w{10} --state 'my state'$/);
  });

  test("a second SIGINT leaves at once", async () => {
    using world = createWorld();
    // The check cannot be stopped politely, so the first signal alone would take its time.
    writeCheckedAgent(
      world,
      "stubborn",
      "trap '' TERM; echo $$ $(readlink /proc/self/ns/pid) > pid; sleep 20 & wait; sleep 20",
    );
    world.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
    const again = when(/Stopping: /, (child) => child.kill("SIGINT"));
    const first = when(/continuation\.note #1/, (child) => {
      const timer = setInterval(() => {
        if (!existsSync(join(world.root, "pid"))) return;
        clearInterval(timer);
        child.kill("SIGINT");
      }, 20);
    });
    const ran = await world.lockstep(["run", "stubborn", "--topic", "t", "--script", "all.json"], {
      env: { LOCKSTEP_TRUST: "all" },
      watch: (output, child) => {
        first(output, child);
        again(output, child);
      },
    });
    assert.equal(ran.code, 130);
    assert.doesNotMatch(ran.stderr, /interrupted {2}/, "it did not wait for the check");
    const left = () => alive([readFileSync(join(world.root, "pid"), "utf8")]);
    await until(() => left().length === 0, "the check does not outlive it");
  });

  test("interrupted while it waits for input, nothing was begun", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    world.write("slow.json", SLOW);
    const watch = when(/Reading the input/, (child) => child.kill("SIGINT"));
    const ran = await world.lockstep(
      ["run", "notes", "--topic", "t", "--script", "slow.json", "--input", "-", "-v"],
      { input: null, watch },
    );
    assert.equal(ran.code, 130);
    assert.match(ran.stderr, /Stopped before the run began/);
    assert.equal(existsSync(join(world.root, ".lockstep")), false);
  });
});

test("whoever reads stdout may leave early", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const line = `'${process.execPath}' '${MAIN}' run notes --topic t --script .agent/notes/script.yaml --events | head -n 1; echo "codes \${PIPESTATUS[@]}"`;
  const ran = await start("bash", ["-c", line], world.root, { env: world.env });
  assert.match(ran.stdout, /^\{"seq":1.*\ncodes 0 0\n$/);
  assert.match(ran.stderr, /✓ completed/);
});

test("a result that cannot be written is a failure, and says so", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const run = "run notes --topic t --script .agent/notes/script.yaml";
  const calls = [run, `${run} --json`, "show @last", "export @last --out /dev/full", "run nobody"];
  const line = calls
    .map(
      (call) => `'${process.execPath}' '${MAIN}' ${call} > /dev/full 2> err; echo "$? $(tail -n 1 err)" >&2`,
    )
    .join("; ");
  const { stderr } = await start("bash", ["-c", line], world.root, { env: world.env });
  const lost = "lockstep: The result cannot be written to stdout: ENOSPC";
  assert.deepEqual(
    stderr.split("\n").map((text) => text.replace(/(ENOSPC): .*/, "$1")),
    [
      `1 ${lost}`,
      `1 ${lost}`,
      `1 ${lost}`,
      "3 lockstep: The run cannot be written to /dev/full: the disk is full",
      // What went wrong before is still what the exit code says.
      `2 ${lost}`,
      "",
    ],
    stderr,
  );
});

test("what a model says cannot steer the terminal", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const evil = "\u001b]0;owned\u0007\u001b[2J\u009b31m";
  world.write(
    "evil.json",
    script(replies.initial(), { ...replies.continuation(), text: evil }, replies.closure("abort", evil)),
  );
  const args = ["run", "notes", "--topic", evil, "--script", "evil.json", "-v"];
  const [plain, json, events] = await Promise.all([
    world.lockstep(args),
    world.lockstep([...args, "--json"]),
    world.lockstep([...args, "--events"]),
  ]);
  for (const { stdout, stderr } of [plain, json, events]) {
    assert.doesNotMatch(stdout.replaceAll("\n", ""), /\p{Cc}/u);
    assert.doesNotMatch(stderr.replaceAll("\n", ""), /\p{Cc}/u);
  }
  assert.match(plain.stderr, /\\x1b\]0;owned\\x07\\x1b\[2J\\x9b31m/);
  assert.ok(String(onlyDocument(json).reason).includes(evil));
});

test("FORCE_COLOR colours, NO_COLOR and --no-color do not", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const [forced, none, flag] = await Promise.all([
    world.lockstep(["check"], { env: { FORCE_COLOR: "1" } }),
    world.lockstep(["check"], { env: { NO_COLOR: "1" } }),
    world.lockstep(["check", "--no-color"], { env: { FORCE_COLOR: "1" } }),
  ]);
  assert.ok(forced.stdout.startsWith(`${ESCAPE}[32m✓`));
  assert.match(none.stdout, /^✓/);
  assert.match(flag.stdout, /^✓/);
});

// A real terminal, by way of util-linux' `script`.

const hasScript =
  spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux") ?? false;
const terminal = needs(hasScript, "util-linux `script` is not installed: nothing was tested on a terminal");

/** The program on a terminal of its own; the exit code is printed last. */
async function onTerminal(
  world: World,
  args: readonly string[],
  around: { readonly env?: NodeJS.ProcessEnv; readonly type?: string } = {},
): Promise<string> {
  const words = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(" ");
  const line = `printf '%s' "$TYPED" | script -qec "stty cols 100; ${words}; echo exit \\$?" /dev/null`;
  const env = { ...world.env, TERM: "xterm", TYPED: around.type ?? "", ...around.env };
  return (await start("bash", ["-c", line], world.root, { env })).stdout;
}

const CTRL_D = "\u0004";

/** An agent whose first step may use every tool once a person allows it. */
function writeAsking(world: World): void {
  writeAgent(world, "notes", {
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      steps["initial.note"]!.permissionMode = "default";
    },
  });
}

describe("on a terminal", { concurrency: 3, ...terminal }, () => {
  test("a live line runs beside the lines that stay", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    const shown = await onTerminal(world, [
      "run",
      "notes",
      "--topic",
      "t",
      "--script",
      ".agent/notes/script.yaml",
    ]);
    const seen = shown.replaceAll(ESCAPE, "<esc>");
    assert.match(seen, /<esc>\[2minitial\.note #1 · asking · \d+ ms · iteration 1<esc>\[22m\r<esc>\[K/);
    assert.match(seen, /initial\.note <esc>\[2m#1/);
    assert.match(shown, /\{"outcome":"success","result":\{"note":"[^"]+"\}\}\r\nexit 0/);
  });

  test("CI takes the live line and the colours away", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    const shown = await onTerminal(
      world,
      ["run", "notes", "--topic", "t", "--script", ".agent/notes/script.yaml"],
      { env: { CI: "true" } },
    );
    assert.ok(!shown.includes(ESCAPE));
    assert.match(shown, /initial\.note #1 → next → continuation\.note/);
  });

  for (const [typed, isMade] of [
    [["maybe", "", "Y"], true],
    [["allowed", "n"], false],
  ] as const) {
    test(`a question about a tool is asked until it is answered: ${JSON.stringify(typed)}`, async () => {
      using world = createWorld();
      writeAsking(world);
      const wish = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
      const all = [wish, replies.initial(), replies.continuation(), replies.closure()];
      world.write("all.json", script(...all));
      const shown = await typedAt(
        world,
        ["run", "notes", "--topic", "t", "--script", "all.json"],
        typed.map((line) => `${line}\n`),
      );
      assert.match(shown, /exit 0/);
      assert.equal(existsSync(join(world.root, "made.txt")), isMade);
      // The question once, the choices as often as it was asked, and every answer on a line of its own.
      assert.equal(shown.split("wants to call Write").length, 2, shown);
      const choices = "[a]llow once · allow for this [r]un · [d]eny · [s]top the run\r\n";
      assert.deepEqual(
        shown.split(`${choices}> `).map((part) => part.split("\r\n", 1)[0]),
        [shown.split("\r\n", 1)[0], ...typed],
      );
      assert.match(shown, /is not one of the choices: allow, allow-run, deny, stop\./);
      assert.equal(/You denied Write in step initial\.note\./.test(shown), !isMade);
    });
  }

  test("what is typed before a question is on the screen does not answer it", async () => {
    using world = createWorld();
    writeAsking(world);
    const wishes = ["first", "second"].map((name) => ({
      calls: [{ name: "Write", input: { file_path: `${name}.txt`, content: "hi" } }],
    }));
    const all = [...wishes, replies.initial(), replies.continuation(), replies.closure()];
    world.write("all.json", script(...all));
    const shown = await typedAt(
      world,
      ["run", "notes", "--topic", "t", "--script", "all.json"],
      ["y\ny\n", "n\n"],
    );
    assert.match(shown, /exit 0/);
    assert.deepEqual(
      ["first.txt", "second.txt"].map((name) => existsSync(join(world.root, name))),
      [true, false],
      shown,
    );
  });

  for (const [early, typed, why] of [
    ["y\n", "n\n", "a yes that was typed too early"],
    ["y", "\n", "a yes that was typed too early, and not finished"],
    ["", CTRL_D, "Ctrl-D"],
  ] as const) {
    test(`a question of trust is not answered by ${why}: exit 3`, async () => {
      using world = createWorld();
      writeCheckedAgent(world, "careful", "test -d .agent");
      world.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
      const args = ["run", "careful", "--topic", "t", "--script", "all.json"];
      const shown = await typedAt(world, args, [typed], early);
      assert.match(shown, /Trust exactly this/);
      assert.match(shown, /exit 3/);
      assert.ok(!shown.includes("bug in Lockstep"), shown);
    });
  }

  test("Ctrl-D at a question about a tool stops the run, and the question stays open", async () => {
    using world = createWorld();
    writeAsking(world);
    const wish = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
    world.write("all.json", script(wish, replies.initial(), replies.continuation(), replies.closure()));
    const shown = await typedAt(world, ["run", "notes", "--topic", "t", "--script", "all.json"], [CTRL_D]);
    assert.match(shown, /wants to call Write[^]*exit 130/);
    assert.ok(!existsSync(join(world.root, "made.txt")));
    const open = await world.lockstep(["answer", "@last"]);
    assert.match(open.stdout, /wants to call Write/);
  });

  test("a terminal that cannot draw can still answer", async () => {
    using world = createWorld();
    writeAsking(world);
    const wish = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
    world.write("all.json", script(wish, replies.initial(), replies.continuation(), replies.closure()));
    world.env.TERM = "dumb";
    const shown = await typedAt(world, ["run", "notes", "--topic", "t", "--script", "all.json"], ["y\n"]);
    assert.match(shown, /exit 0/);
    assert.ok(existsSync(join(world.root, "made.txt")), shown);
    assert.ok(!shown.includes(ESCAPE));
  });

  for (const [typed, code] of [
    ["y", 0],
    ["no", 3],
  ] as const)
    test(`trust add asks, and ${JSON.stringify(typed)} ends in exit ${code}: nothing is run`, async () => {
      using world = createWorld();
      writeCheckedAgent(world, "careful", "touch ran");
      const shown = await typedAt(world, ["trust", "add", "careful"], [`${typed}\n`]);
      assert.match(shown, /makes Lockstep do this:\r\n {2}\$ touch ran\r\nTrust exactly this/);
      assert.match(shown, new RegExp(`exit ${code}`));
      assert.ok(!existsSync(join(world.root, "ran")));
      assert.equal((await world.lockstep(["trust", "show", "careful"])).code, code);
    });

  for (const [typed, code] of [
    ["y", 0],
    ["", 3],
    ["no", 3],
  ] as const) {
    test(`the question of trust answered with ${JSON.stringify(typed)} ends in exit ${code}`, async () => {
      using world = createWorld();
      writeCheckedAgent(world, "careful", "test -d .agent");
      world.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
      const args = ["run", "careful", "--topic", "t", "--script", "all.json"];
      const shown = await typedAt(world, args, [`${typed}\n`]);
      assert.match(shown, /makes Lockstep do this:\r\n {2}\$ test -d \.agent\r\nTrust exactly this/);
      assert.match(shown, new RegExp(`exit ${code}`));
      if (code !== 0) return;
      // Once trusted, nobody is asked again, on a terminal or off it.
      assert.equal((await world.lockstep(args)).code, 0);
    });
  }
});
