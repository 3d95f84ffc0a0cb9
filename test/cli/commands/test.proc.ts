/** `lockstep test`: what is run, what is reported, what is kept of a failure, and how the command ends. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../until.ts";
import { createWorld, type World } from "../world.ts";

type TestsDocument = {
  readonly kind: string;
  readonly ok: boolean;
  readonly failed: number;
  readonly notRun: number;
  readonly problems?: readonly { readonly code: string; readonly line: number; readonly message: string }[];
  readonly tests: readonly { readonly name: string; readonly status: string; readonly look: string | null }[];
};

const WAY = "[initial.note next, continuation.note handoff, closure.note closing]";

/** What `init` writes, and a file of tests of which two fail. */
async function tested(): Promise<World> {
  const world = createWorld();
  const made = await world.lockstep(["init", "hello"]);
  assert.equal(made.code, 0, made.stderr);
  world.write(
    ".agent/hello/tests/more.yaml",
    `params: { topic: tides }
tests:
  - name: goes wrong
    script: ${WAY}
    expect:
      path: [..., closure.note repeat]
  - name: ends early
    script: [initial.note next]
  - name: says \${case.word}
    cases: [{ word: one }, { word: two }, { word: three }]
    script:
      - { step: initial.note, label: next, with: { plan.angle: "\${case.word}" } }
      - { step: continuation.note, saw: ["\${case.word}"], label: handoff }
      - closure.note closing
`,
  );
  return world;
}

const documentOf = ({ stdout }: { readonly stdout: string }) => JSON.parse(stdout) as TestsDocument;
const namesIn = (document: TestsDocument) => document.tests.map(({ name }) => name);

test("what init writes passes without a key, and each end has its exit code", async () => {
  using world = await tested();
  const first = await world.lockstep(["test", "hello", "-t", "drafts"]);
  assert.equal(first.code, 0, first.stderr);
  assert.match(
    first.stdout,
    /^✓ hello › plans, drafts and closes\n✓ hello › drafts until it is good\n\n2 tests, all passed\n$/,
  );
  assert.equal(existsSync(join(world.root, ".lockstep")), false, "a passing test leaves nothing behind");

  const all = await world.lockstep(["test", "--cut"]);
  assert.equal(all.code, 7);
  assert.match(
    all.stdout,
    /✗ hello › goes wrong {2}\.agent\/hello\/tests\/more\.yaml:3\n {2}path +expected .*more\.yaml:6\n +got +closure\.note closing -> end\n +after +continuation\.note handoff -> closure\.note \(item 2\)\n {2}look +lockstep why \.lockstep\/tests\/hello\/goes-wrong-\w+\.json closure\.note@1\n/,
  );
  assert.match(
    all.stdout,
    /✗ hello › ends early {2}.*:7\n.*more\.yaml:7\n.*\n {2}because the run asked the model more often than the script has responses\n/,
  );
  for (const word of ["one", "two", "three"])
    assert.ok(all.stdout.includes(`✓ hello › says ${word}\n`), word);
  assert.match(all.stdout, /\n7 tests, 2 failed\n$/);

  const look = /lockstep (why \S+ \S+)/.exec(all.stdout)![1]!.split(" ");
  const why = await world.lockstep(look);
  assert.equal(why.code, 0, why.stderr);
  assert.match(why.stdout, /closure\.note #1[\s\S]*closing → end/);
  for (const command of ["show", "logs", "replay"]) {
    const read = await world.lockstep([command, look[1]!]);
    assert.equal(read.code, 0, `${command}: ${read.stderr}`);
  }

  const again = documentOf(await world.lockstep(["test", "--last-failed", "--bail", "1", "--json"]));
  assert.deepEqual(
    [again.kind, again.ok, namesIn(again), again.notRun],
    ["lockstep-tests", false, ["goes wrong"], 1],
  );
  world.write(
    ".agent/hello/tests/more.yaml",
    `params: { topic: tides }\ntests:\n  - name: goes wrong\n    script: ${WAY}\n`,
  );
  const passed = await world.lockstep(["test", "--last-failed", "--json"]);
  assert.deepEqual([passed.code, namesIn(documentOf(passed))], [0, ["goes wrong"]]);
  assert.equal(existsSync(join(world.root, look[1]!)), false, "the run of a test that passes is not kept");
});

test("tests are chosen by file, pattern and shard; every shard has some, and together they are all", async () => {
  using world = await tested();
  const listed = async (...args: readonly string[]) =>
    namesIn(documentOf(await world.lockstep(["test", "--list", "--json", ...args])));
  const all = await listed();
  assert.equal(all.length, 7);
  const shards = [await listed("--shard", "1/2"), await listed("--shard", "2/2")];
  assert.deepEqual(
    shards.map(({ length }) => length),
    [4, 3],
  );
  assert.deepEqual(shards.flat().toSorted(), all.toSorted());
  assert.deepEqual(await listed(".agent/hello/tests/f*.yaml"), [
    "plans, drafts and closes",
    "drafts until it is good",
  ]);
  for (const [args, says] of [
    [["--shard", "3/2"], /--shard "3\/2" is not valid/],
    [["nothing.yaml"], /"nothing\.yaml" matches no test file/],
    [["-t", "("], /is not a valid regular expression/],
    [["-t", "no such name"], /No test has a name that matches/],
    [["--reporter", "xml"], /--reporter takes pretty, tap, junit, json or github, not "xml"/],
    [["--reporter", "tap", "--reporter", "pretty"], /tap needs stdout for itself/],
  ] as const) {
    const refused = await world.lockstep(["test", ...args]);
    assert.equal(refused.code, 2, args.join(" "));
    assert.match(refused.stderr, says);
  }
});

test("only: true holds here and is refused in CI; no tests and wrong test files are exit code 2, with one document", async () => {
  using world = await tested();
  world.write(
    ".agent/hello/tests/more.yaml",
    `params: { topic: tides }\ntests:\n  - { name: alone, only: true, script: ${WAY} }\n`,
  );
  const alone = await world.lockstep(["test"]);
  assert.equal(alone.code, 0, alone.stderr);
  assert.match(
    alone.stdout,
    /^✓ hello › alone\n\n! Some tests say only: true, so no other test was run\.\n1 test, all passed\n$/,
  );
  const inCi = await world.lockstep(["test", "--json"], { env: { CI: "true" } });
  assert.equal(inCi.code, 2);
  assert.match(inCi.stdout, /tests\/more\.yaml:3: the test \\"alone\\" says only: true/);

  world.write(
    ".agent/hello/tests/more.yaml",
    `tests:\n  - name: wrong\n    script: [initial.nte next, closure.note clsing]\n  - name: table\n    cases: [{ a: next, b: 2 }]\n    script: ["initial.note \${case.a}"]\n`,
  );
  const wrong = await world.lockstep(["test", "--json"]);
  assert.equal(wrong.code, 2);
  const { ok, problems } = documentOf(wrong);
  assert.equal(ok, false);
  const found = problems!.map(({ code, line }) => `${code}:${line}`);
  for (const one of ["TEST-STEP:3", "TEST-LABEL:3", "TEST-KEY:5"])
    assert.ok(found.includes(one), `${one} in ${found.join(" ")}`);
  const checked = await world.lockstep(["check", "hello", "--json"]);
  assert.equal(checked.code, 2);
  assert.deepEqual(documentOf(checked).problems, problems, "check finds the same");

  world.write(".agent/hello/tests/more.yaml", "tests: []\n");
  using empty = createWorld();
  await empty.lockstep(["init", "hello"]);
  writeFileSync(join(empty.root, ".agent/hello/tests/first.yaml"), "");
  const none = await empty.lockstep(["test", "hello", "--json"]);
  assert.equal(none.code, 2);
  assert.ok(documentOf(none));
  rmSync(join(empty.root, ".agent/hello/tests/first.yaml"));
  for (const words of [["test"], ["test", "hello"]]) {
    const without = await empty.lockstep(words);
    assert.equal(without.code, 2);
    assert.match(without.stderr, /generate them with: lockstep test hello --generate --write/);
  }
});

test("a new required member breaks no test that says only STEP LABEL; a removed edge breaks exactly those that take it", async () => {
  using world = await tested();
  world.write(
    ".agent/hello/tests/more.yaml",
    `params: { topic: tides }
tests:
  - { name: does not repeat, script: ${WAY} }
  - { name: repeats, script: [initial.note repeat, ${WAY.slice(1)} }
`,
  );
  const edit = (path: string, change: (text: string) => string) => {
    const file = join(world.root, ".agent/hello", path);
    const [before, after] = [readFileSync(file, "utf8"), change(readFileSync(file, "utf8"))];
    assert.notEqual(after, before, path);
    writeFileSync(file, after);
  };
  edit("schemas/note.schema.json", (text) => {
    const schemas = JSON.parse(text) as {
      readonly [step: string]: { required?: string[]; properties?: { [key: string]: unknown } };
    };
    for (const { required, properties } of Object.values(schemas)) {
      required?.push("mood");
      if (properties !== undefined) properties.mood = { enum: ["calm", "tense"] };
    }
    return JSON.stringify(schemas);
  });
  const grown = await world.lockstep(["test", "hello"]);
  assert.equal(grown.code, 0, grown.stdout);
  assert.match(grown.stdout, /4 tests, all passed/);

  edit("steps_registry.json", (text) =>
    text
      .replace('"allowedIntents": ["next", "repeat"]', '"allowedIntents": ["next"]')
      .replace(/,\s*"repeat": \{ "target": "initial\.note" \}/, ""),
  );
  const shrunk = await world.lockstep(["test", "hello", "--json"]);
  assert.equal(shrunk.code, 2, shrunk.stdout);
  assert.deepEqual(
    documentOf(shrunk)
      .problems!.filter(({ code }) => code.startsWith("TEST-"))
      .map(({ code, line }) => `${code}:${line}`),
    ["TEST-LABEL:4"],
  );
});

test("--watch runs again when a test, a prompt, a schema or a fixture changes, and prints only results that differ", async () => {
  using world = await tested();
  const place = (path: string) => join(world.root, ".agent/hello", path);
  const prompt = place("prompts/steps/initial/note/f_default.md");
  const file = place("tests/more.yaml");
  const text = (saw: string) =>
    `params: { topic: tides }
tests:
  - name: sees
    tools: { Read: "file:fixtures/read.txt" }
    script:
      - { step: initial.note, saw: [${saw}], calls: [{ name: Read, input: { file_path: a } }] }
      - { step: initial.note, saw: [from a file], label: next }
    until: continuation.note
`;
  world.write(".agent/hello/tests/fixtures/read.txt", "from a file");
  writeFileSync(file, text("a new word"));
  const [good, bad] = ["1 test, all passed", "1 test, 1 failed"];
  const schema = readFileSync(place("schemas/note.schema.json"), "utf8");
  const changes: readonly (readonly [after: string, change: () => void])[] = [
    [
      bad,
      () => {
        writeFileSync(file, `${text("a new word")}# the same tests\n`);
        writeFileSync(prompt, `${readFileSync(prompt, "utf8")}\na new word\n`);
      },
    ],
    [good, () => world.write(".agent/hello/tests/fixtures/read.txt", "another text")],
    [bad, () => world.write(".agent/hello/tests/fixtures/read.txt", "from a file")],
    [
      good,
      () => writeFileSync(place("schemas/note.schema.json"), schema.replaceAll("next_action", "action")),
    ],
    ["SR-VALID-002", () => writeFileSync(place("schemas/note.schema.json"), schema)],
    [good, () => writeFileSync(file, text("an old word"))],
    [bad, () => undefined],
  ];
  let stage = 0;
  const { code, stdout } = await world.lockstep(["test", "hello", "-t", "sees", "--watch"], {
    watch: (output, child) => {
      const printed = output.match(/1 test, all passed|1 test, 1 failed|SR-VALID-002/g) ?? [];
      const results = printed.filter((one, at) => one !== printed[at - 1]);
      const [result, change] = changes[stage] ?? [];
      if (results.length <= stage || results[stage] !== result) return;
      stage += 1;
      change?.();
      if (stage === changes.length) child.kill("SIGINT");
    },
  });
  assert.deepEqual([code, stage], [0, changes.length], stdout);
  assert.equal(stdout.match(/^1 test, /gm)?.length, 6, stdout);
});

test("Ctrl-C ends with 130, a document of what was run, and the coverage of it", async () => {
  using world = await tested();
  const one = `  - { name: again, script: [initial.note next, { step: continuation.note, label: repeat, times: 5 }], until: closure.note }\n`;
  world.write(".agent/hello/tests/more.yaml", `params: { topic: tides }\ntests:\n${one.repeat(300)}`);
  const child = world.begin(["test", "--cut", "--json", "--coverage-file", "c.json"]);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.resume();
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  await until(() => existsSync(join(world.root, ".lockstep/tests/hello")), "a failed test is kept");
  child.kill("SIGINT");
  assert.equal(await ended, 130);
  const { ok, notRun, tests } = documentOf({ stdout });
  assert.equal(ok, false);
  assert.ok(notRun > 0 && tests.length > 0, `${tests.length} run, ${notRun} not`);
  const coverage = JSON.parse(readFileSync(join(world.root, "c.json"), "utf8")) as { readonly kind: string };
  assert.equal(coverage.kind, "lockstep-coverage");
});
