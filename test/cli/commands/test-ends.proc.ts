/** How the commands about tests end: by a signal at any time, without tests, with a report that cannot be written, quietly. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld, onlyDocument, writeAgent, type World } from "../world.ts";

const TESTS = ".agent/notes/tests/first.yaml";

const PASSING =
  "params: { topic: a }\ntests: [{ name: goes on, script: [initial.note next], until: continuation.note }]\n";

function worldWith(tests?: string): World {
  const world = createWorld();
  writeAgent(world, "notes");
  if (tests !== undefined) world.write(TESTS, tests);
  return world;
}

test("a signal that comes as soon as the command listens is answered with one document", async () => {
  using world = worldWith(PASSING);
  // As early as a signal can be heard, and on every machine at the same place.
  world.write(
    "early.mjs",
    `process.on("newListener", (name) => {
      if (name === "SIGINT") process.nextTick(() => process.kill(process.pid, "SIGINT"));
    });`,
  );
  const rows = [
    ["test", "lockstep-tests"],
    ["fuzz notes --for 10m", "lockstep-fuzz"],
    ["mutate notes", "lockstep-mutation"],
    ["coverage notes --tests", "lockstep-coverage"],
  ] as const;
  for (const [line, kind] of rows) {
    const ran = await world.lockstep([...line.split(" "), "--json"], {
      env: { NODE_OPTIONS: `--import ${join(world.root, "early.mjs")}` },
    });
    assert.equal(ran.code, 130, `${line}: ${ran.stderr}`);
    const { ok, kind: found } = onlyDocument(ran);
    assert.deepEqual([found, ok], [kind, false], line);
  }
});

test("a signal in the middle of the work is answered with what is known by then, and with the number of the signal", async () => {
  using world = worldWith(PASSING);
  // At the same place on every machine: the command has given way to others so many times.
  world.write(
    "late.mjs",
    `import timers from "node:timers/promises";
    import { syncBuiltinESMExports } from "node:module";
    let turns = 0;
    const hear = () => { if (++turns === Number(process.env.TURNS)) process.kill(process.pid, process.env.SIGNAL); };
    const [real, promised] = [setImmediate, timers.setImmediate];
    // A search gives way by the second, as often as its time takes; runs by the first, one turn each.
    if (process.env.IN === "runs") globalThis.setImmediate = (...given) => (hear(), real(...given));
    else timers.setImmediate = (...given) => (hear(), promised(...given));
    syncBuiltinESMExports();`,
  );
  const stopped = async (line: string, signal: string, part: "search" | "runs", turns: number) => {
    const ran = await world.lockstep([...line.split(" "), "--json"], {
      env: {
        NODE_OPTIONS: `--import ${join(world.root, "late.mjs")}`,
        SIGNAL: signal,
        IN: part,
        TURNS: String(turns),
      },
    });
    const document = onlyDocument(ran);
    assert.deepEqual([document.ok, document.stopped], [false, "interrupted"], line);
    return { code: ran.code, document };
  };
  const before = PASSING.replace("goes on", "kept, generated: true");
  world.write(".agent/notes/tests/generated.yaml", before);
  const made = await stopped("test --generate --write", "SIGTERM", "runs", 8);
  const [agent] = made.document.agents as readonly {
    file: null;
    tests: readonly object[];
    gaps: readonly [];
  }[];
  assert.deepEqual([made.code, made.document.kind, agent?.file], [143, "lockstep-generated", null]);
  assert.ok(agent!.tests.length > 0, "the tests that were run are in the report");
  assert.deepEqual(agent!.gaps, [], "nothing is said about what was not tried");
  assert.equal(readFileSync(join(world.root, ".agent/notes/tests/generated.yaml"), "utf8"), before);
  const early = await stopped("test --generate", "SIGINT", "search", 2);
  assert.equal(early.code, 130);
  const mutated = await stopped("mutate notes", "SIGTERM", "runs", 40);
  const mutants = mutated.document.mutants as readonly object[];
  assert.equal(mutated.code, 143);
  const whole = onlyDocument(await world.lockstep(["mutate", "notes", "--json"]))
    .mutants as readonly object[];
  assert.ok(mutants.length > 0 && mutants.length < whole.length, `${mutants.length} of ${whole.length}`);
  assert.deepEqual(mutants, whole.slice(0, mutants.length), "what was tried has its result");
  const fuzzed = await stopped("fuzz notes --for 10m", "SIGHUP", "runs", 5);
  assert.deepEqual([fuzzed.code, (fuzzed.document.runs as number) > 0], [129, true]);
});

test("every failure has one shape, whatever keeps the command from its result", async () => {
  using world = worldWith();
  const refused = async (line: string, code: number) => {
    const ran = await world.lockstep([...line.split(" "), "--json"]);
    assert.equal(ran.code, code, `${line}: ${ran.stdout}`);
    const { kind, ok, outcome, success, code: why, reason, exitCode, problems } = onlyDocument(ran);
    assert.deepEqual([ok, outcome, success, exitCode], [false, "failed", false, code], line);
    assert.ok(typeof why === "string" && typeof reason === "string" && reason !== "", line);
    return { kind, why, problems: (problems as readonly unknown[]).length };
  };
  const rows = [
    ["test notes", "lockstep-tests"],
    ["fuzz notes", "lockstep-fuzz"],
    ["mutate notes", "lockstep-mutation"],
    ["coverage notes", "lockstep-coverage"],
    ["test notes --recorded", "lockstep-recorded"],
    ["test notes --generate", "lockstep-generated"],
  ] as const;
  for (const [line, kind] of rows.slice(0, 4))
    assert.deepEqual(await refused(`${line} --nonsense`, 2), { kind, why: "USAGE", problems: 0 });
  world.write(".agent/notes/tests/settings.yaml", "befor: {}\n");
  for (const [line, kind] of rows)
    if (kind !== "lockstep-mutation")
      assert.deepEqual(await refused(line, 2), { kind, why: "FLOW_INVALID", problems: 1 });
  world.write(".agent/notes/tests/settings.yaml", "{}\n");
  world.write(TESTS, "");
  assert.deepEqual(await refused("mutate notes", 2), {
    kind: "lockstep-mutation",
    why: "FLOW_INVALID",
    problems: 1,
  });
});

test("nothing that was not tested is said to have passed", async () => {
  using world = worldWith(PASSING);
  const rows = [
    ["--shard 2/2", 0, /none is in part 2\/2\.\nno tests were run\n$/],
    ["--last-failed", 0, /No test failed when the tests were last run\.\nno tests were run\n$/],
    ["--stale", 0, /^0 of 0 recorded tests stale\n$/],
    ["notes notes", 0, /^✓ notes › goes on\n\n1 test, all passed\n$/],
  ] as const;
  for (const [line, code, says] of rows) {
    const ran = await world.lockstep(["test", ...line.split(" ")]);
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stdout, says);
    assert.doesNotMatch(ran.stdout, /0 tests/);
  }
  world.write(".agent/notes/tests/fixtures/box/a.txt", "");
  world.write(TESTS, PASSING.replace("name: goes on", "name: goes on, project: fixtures/box"));
  const none = await world.lockstep(["test", "--memory"]);
  assert.deepEqual([none.code, none.stdout], [2, ""]);
  assert.match(none.stderr, /--memory leaves out 1 test on copies of a project.*nothing was tested/);
});

test("a file of tests that is not read is named, also where there are no others", async () => {
  using world = worldWith(PASSING);
  world.write(".agent/notes/tests/more/second.yaml", PASSING);
  const one = await world.lockstep(["test"]);
  assert.equal(one.code, 0, one.stderr);
  assert.match(
    one.stdout,
    /! \.agent\/notes\/tests\/more\/second\.yaml holds tests that are not run\. Move it/,
  );
  const named = await world.lockstep(["test", TESTS]);
  assert.doesNotMatch(named.stdout, /second/);
});

test("reports are written where they are wanted; one that cannot be makes no good result", async () => {
  using world = worldWith(PASSING);
  const there = ["--reporter", "junit=out/deep/junit.xml", "--coverage-file", "out/more/c.json"];
  const good = await world.lockstep(["test", ...there]);
  assert.equal(good.code, 0, good.stderr);
  for (const file of ["out/deep/junit.xml", "out/more/c.json"])
    assert.ok(existsSync(join(world.root, file)), file);
  world.write("blocked", "a file");
  const rows = [
    ["--reporter", "junit=blocked/junit.xml"],
    ["--coverage-file", "blocked/c.json"],
  ];
  for (const line of rows) {
    const bad = await world.lockstep(["test", "--json", ...line]);
    assert.equal(bad.code, 3, bad.stdout);
    const { ok, kind, passed, reason } = onlyDocument(bad);
    assert.deepEqual([ok, kind, passed], [false, "lockstep-tests", 1], line.join(" "));
    assert.match(String(reason), /cannot be written to blocked/);
    const told = await world.lockstep(["test", ...line]);
    assert.deepEqual([told.code, told.stdout.includes("1 test, all passed")], [3, true]);
    assert.match(told.stderr, /cannot be written to blocked/);
  }
});

test("reports have a failed case for what keeps the tests from being run, with its file and line", async () => {
  using world = worldWith(PASSING.replace("initial.note next", "initial.nope next"));
  const files = ["junit=out/j.xml", "tap=out/t.tap", "json=out/r.json", "github"];
  const line = ["test", ...files.flatMap((one) => ["--reporter", one]), "--reporter", "pretty"];
  const text = (file: string) => readFileSync(join(world.root, file), "utf8");
  const read = (name: string) => JSON.parse(text(name)) as { [key: string]: unknown };
  const wrong = await world.lockstep(line, { env: { GITHUB_STEP_SUMMARY: join(world.root, "summary.md") } });
  assert.equal(wrong.code, 2, wrong.stderr);
  assert.match(wrong.stdout, /TEST-STEP[\s\S]*first\.yaml/);
  assert.match(wrong.stdout, /^::error file=\.agent\/notes\/tests\/first\.yaml,line=2,title=notes/m);
  assert.match(
    text("out/j.xml"),
    /failures="1"[\s\S]*<testcase name="TEST-STEP at \S+first\.yaml:2" classname="notes" file="\S+first\.yaml" line="2"[\s\S]*<failure message="[^"]*initial\.nope/,
  );
  assert.match(
    text("out/t.tap"),
    /^1\.\.1\nnot ok 1 - notes › TEST-STEP at \S+first\.yaml:2\n[\s\S]*initial\.nope/m,
  );
  const { kind, ok, code, problems } = read("out/r.json");
  assert.deepEqual(
    [kind, ok, code, (problems as readonly unknown[]).length],
    ["lockstep-tests", false, "FLOW_INVALID", 1],
  );
  assert.match(text("summary.md"), /1 test, 1 failed[\s\S]*TEST-STEP/);
  for (const [given, starts] of [
    ["tap", "TAP version 13\n1..1\nnot ok 1"],
    ["junit", "<?xml"],
    ["json", '{"v":1,"kind":"lockstep-tests"'],
  ] as const) {
    const alone = await world.lockstep(["test", "--reporter", given]);
    assert.deepEqual([alone.code, alone.stdout.startsWith(starts)], [2, true], alone.stdout);
  }
  // No tests at all is not a file that can be named, and not a success either.
  rmSync(join(world.root, TESTS));
  const none = await world.lockstep([
    "test",
    "notes",
    "--reporter",
    "junit=out/j.xml",
    "--reporter",
    "json=out/r.json",
  ]);
  assert.deepEqual([none.code, none.stdout], [2, ""]);
  assert.match(
    text("out/j.xml"),
    /failures="1"[\s\S]*<failure message="There are no tests in \.agent\/notes\/tests/,
  );
  assert.deepEqual([read("out/r.json").code, read("out/r.json").ok], ["USAGE", false]);
});

test("-q prints only what is wrong, and coverage lists its first gaps", async () => {
  using world = worldWith(PASSING);
  for (const line of [
    "test",
    "test --coverage",
    "fuzz notes --runs 20",
    "mutate notes --class gates",
    "coverage notes --tests --out c.json",
    "test --stale",
    "honesty notes",
  ]) {
    const quiet = await world.lockstep([...line.split(" "), "-q"]);
    assert.deepEqual([quiet.code, quiet.stdout, quiet.stderr], [0, "", ""], line);
  }
  // A list that is asked for is printed, without its total.
  const listed = await world.lockstep(["test", "--list", "-q"]);
  assert.deepEqual([listed.code, listed.stdout], [0, `notes › goes on  ${TESTS}:2\n`]);
  const covered = await world.lockstep(["test", "--coverage"]);
  const gaps = covered.stdout.match(/^ {2}.*(?:\.json|\.md):\d+/gm) ?? [];
  assert.ok(gaps.length <= 20, `${gaps.length} gaps are listed`);
  assert.match(covered.stdout, /and \d+ more/);
  const all = await world.lockstep(["test", "--coverage", "--verbose"]);
  assert.ok(all.stdout.split("\n").length > covered.stdout.split("\n").length);

  world.write(
    TESTS,
    PASSING.replace("until: continuation.note", "expect: { outcome: waiting }").replace(
      "tests: [",
      "tests: [{ name: good, script: [initial.note next], until: continuation.note }, ",
    ),
  );
  const failed = await world.lockstep(["test", "-q"]);
  assert.equal(failed.code, 7);
  assert.match(failed.stdout, /^✗ notes › goes on[\s\S]*\n2 tests, 1 failed\n$/);
  assert.doesNotMatch(failed.stdout, /✓/);
  const low = await world.lockstep(["mutate", "notes", "-q"]);
  assert.deepEqual([low.code, low.stdout], [7, ""]);
});

test("a state folder that is a file does not keep tests from being judged", async () => {
  using world = worldWith(PASSING.replace("until: continuation.note", "expect: { outcome: waiting }"));
  world.write(".lockstep", "a file");
  const failed = await world.lockstep(["test", "--json"]);
  assert.equal(failed.code, 7, failed.stdout + failed.stderr);
  const { remarks } = onlyDocument(failed) as unknown as { readonly remarks: readonly string[] };
  assert.ok(
    remarks.some((one) => /\.lockstep is a file/.test(one)),
    remarks.join("\n"),
  );
  assert.equal(readFileSync(join(world.root, ".lockstep"), "utf8"), "a file");
  mkdirSync(join(world.root, "x"));
  writeFileSync(join(world.root, TESTS), PASSING);
  assert.equal((await world.lockstep(["test"])).code, 0);
});

test("a broken rule names its own line, and the visit that broke it; the run of a test offers no resume", async () => {
  using world = worldWith(
    "params: { topic: a }\ntests: [{ name: goes on, script: [initial.note next, continuation.note handoff], until: closure.note }]\n",
  );
  world.write(
    ".agent/notes/tests/settings.yaml",
    "within:\n  turns: 1\nbefore:\n  continuation.note: closure.note\nnever:\n  - initial.note next\n",
  );
  const failed = await world.lockstep(["test"]);
  assert.equal(failed.code, 7, failed.stderr);
  const rows = [
    [
      /settings\.continuation\.note@1 expected {2}within turns {2}\S+settings\.yaml:2\n/,
      "the turn was taken there",
    ],
    [
      /settings\.continuation\.note@1 expected {2}before continuation\.note {2}\S+settings\.yaml:4\n/,
      "before",
    ],
    [/settings\.initial\.note@1 +expected {2}never initial\.note next {2}\S+settings\.yaml:6\n/, "never"],
  ] as const;
  for (const [says, why] of rows) assert.match(failed.stdout, says, why);
  const { tests } = onlyDocument(await world.lockstep(["test", "--json"])) as unknown as {
    readonly tests: readonly {
      readonly unmet: readonly { readonly file?: string; readonly line: number }[];
    }[];
  };
  assert.deepEqual(
    tests[0]!.unmet.map(({ file, line }) => `${file}:${line}`).toSorted(),
    [2, 4, 6].map((line) => `.agent/notes/tests/settings.yaml:${line}`),
  );
  world.write(TESTS, "params: { topic: a }\ntests: [{ name: ends early, script: [initial.note next] }]\n");
  world.write(".agent/notes/tests/settings.yaml", "{}\n");
  const early = await world.lockstep(["test"]);
  const [, file = ""] = /lockstep why (\S+)/.exec(early.stdout) ?? [];
  for (const command of ["show", "why", "logs"]) {
    const told = await world.lockstep([command, file]);
    assert.equal(told.code, 0, told.stderr);
    assert.doesNotMatch(told.stdout, /lockstep resume/, command);
  }
});

test("what is there and cannot be read is not said to be missing", async () => {
  using world = worldWith();
  world.write(".agent/notes/tests", "a file");
  const tests = await world.lockstep(["test", "notes"]);
  assert.equal(tests.code, 2);
  assert.match(tests.stderr, /\.agent\/notes\/tests is not a folder that can be read/);
  symlinkSync(world.env.HOME!, join(world.root, ".agent/linked"));
  const linked = await world.lockstep(["test", "linked"]);
  assert.equal(linked.code, 2);
  assert.match(
    linked.stdout,
    /\.agent\/linked cannot be read: a link leads out of the project\.[\s\S]*Copy what the link leads to/,
  );
  for (const hits of [-1, 0.5, "3"]) {
    const elements = [{ id: "initial.note", hits }];
    world.write("c.json", JSON.stringify({ v: 1, kind: "lockstep-coverage", agent: "notes", elements }));
    const drawn = await world.lockstep(["graph", "notes", "--coverage", "c.json"]);
    assert.equal(drawn.code, 2, `${hits}`);
    assert.match(drawn.stderr, /c\.json is not a coverage file/);
  }
});

test("fuzz prints a case as a whole test, with what checks and tools gave, and speaks of your rules", async () => {
  using world = worldWith();
  world.write(".agent/notes/tests/settings.yaml", "within: { visits: 1 }\n");
  const told = await world.lockstep(["fuzz", "notes", "--runs", "100"]);
  assert.equal(told.code, 7, told.stderr);
  assert.match(told.stdout, /✗ your rule {2}within visits[\s\S]*\n {4}- name: [\s\S]*\n {6}script:\n/);
  assert.doesNotMatch(told.stdout, /author/);
  const { broken } = onlyDocument(
    await world.lockstep(["fuzz", "notes", "--runs", "100", "--json"]),
  ) as unknown as {
    readonly broken: readonly { readonly test: string }[];
  };
  assert.match(broken[0]!.test, /^ {2}- name: .*\n[\s\S]*script:/);
});
