/** `lockstep fuzz`: the report, the author's properties, a saved case as a test, and exit codes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../until.ts";
import { createWorld, onlyDocument, script, writeAgent } from "../world.ts";

type Report = {
  readonly kind: string;
  readonly ok: boolean;
  readonly runs: number;
  readonly weaknesses: readonly {
    readonly code: string;
    readonly step: string;
    readonly script: readonly unknown[];
  }[];
  readonly broken: readonly { readonly property: string; readonly what: string; readonly file?: string }[];
};

test("fuzz reports the same for a seed, holds the author's properties, and saves a case that test judges", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const fuzz = (...more: readonly string[]) => world.lockstep(["fuzz", "notes", "--runs", "150", ...more]);
  const first = await fuzz("--json");
  const report = JSON.parse(first.stdout) as Report;
  assert.equal(first.code, 0, first.stdout + first.stderr);
  assert.deepEqual([report.kind, report.ok, report.runs, report.broken], ["lockstep-fuzz", true, 150, []]);
  assert.equal((await fuzz("--json")).stdout, first.stdout);

  world.write(".agent/notes/tests/settings.yaml", "within: { visits: 1 }\n");
  const second = await fuzz("--json", "--save");
  assert.equal(second.code, 7);
  const [broken] = (JSON.parse(second.stdout) as Report).broken;
  assert.equal(broken?.property, "author");
  assert.match(broken.what, /^within visits: \S+@\d+: the run took 2 visits/);
  assert.match(broken.file ?? "", /^\.agent\/notes\/tests\/fuzz-author-[0-9a-f]{8}\.yaml$/);
  const failed = await world.lockstep(["test", "notes", "-t", "author"]);
  assert.equal(failed.code, 7, failed.stdout);
  assert.match(failed.stdout, /within visits/);
  world.write(".agent/notes/tests/settings.yaml", "within: { visits: 99 }\n");
  const passed = await world.lockstep(["test", "notes", "-t", "author"]);
  assert.equal(passed.code, 0, passed.stdout);

  world.write(".agent/notes/tests/settings.yaml", "befor: {}\n");
  const wrong = await fuzz("--json");
  assert.equal(wrong.code, 2);
  assert.equal((JSON.parse(wrong.stdout) as Report).ok, false);
  assert.equal((await fuzz("--for", "1s")).code, 2);
});

test("an answer without an intent that fits its schema is found, and run --script goes the same way", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const file = ".agent/notes/schemas/note.schema.json";
  world.write(
    file,
    readFileSync(join(world.root, file), "utf8")
      .replaceAll(/"next_action",?\s*(?=\])/g, "")
      .replaceAll(/,(\s*\])/g, "$1"),
  );
  const fuzzed = await world.lockstep(["fuzz", "notes", "--runs", "400", "--json"]);
  assert.equal(fuzzed.code, 0, fuzzed.stdout + fuzzed.stderr);
  const { weaknesses } = onlyDocument(fuzzed) as unknown as Report;
  const first = weaknesses.find(({ code, step }) => code === "FUZZ-LEGAL-END" && step === "initial.note");
  assert.equal(first?.script.length, 1, JSON.stringify(weaknesses));
  world.write("script.json", script(...first.script));
  const ran = onlyDocument(
    await world.lockstep(["run", "notes", "--script", "script.json", "--topic", "tea", "--json"]),
  );
  assert.deepEqual([ran.outcome, ran.code], ["failed", "GATE_INTERPRETATION_ERROR"]);
});

test("the report is the same from another folder and environment, and differs for another seed", async () => {
  const reports: string[] = [];
  const rows: readonly (readonly [seed: string, env: NodeJS.ProcessEnv])[] = [
    ["3", {}],
    ["3", { TZ: "Asia/Tokyo", LANG: "tr_TR.UTF-8", LC_ALL: "tr_TR.UTF-8", CI: "1", NODE_ENV: "production" }],
    ["4", {}],
  ];
  for (const [seed, env] of rows) {
    using world = createWorld();
    writeAgent(world, "notes");
    // A broken property too, so that shrinking is part of it.
    world.write(".agent/notes/tests/settings.yaml", "within: { visits: 2 }\n");
    world.write("below/further/x.txt", "");
    const cwd = env.CI === undefined ? "." : "below/further";
    const ran = await world.lockstep(
      ["fuzz", "notes", "--runs", "300", "--seed", seed, "--json", "-C", cwd],
      { env },
    );
    assert.equal(ran.code, 7, ran.stderr);
    reports.push(ran.stdout);
  }
  assert.equal(reports[0], reports[1]);
  assert.notEqual(reports[0], reports[2]);
});

test("Ctrl-C ends with 130 and one document about the runs so far", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const child = world.begin(["fuzz", "notes", "--for", "10m", "--json"]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (part: Buffer) => (stdout += part.toString()));
  child.stderr.on("data", (part: Buffer) => (stderr += part.toString()));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  // It listens once it says so; a signal before that ends the process at once.
  await until(() => stderr.includes("Fuzzing notes"), "it listens");
  child.kill("SIGINT");
  assert.equal(await ended, 130, stderr);
  const report = onlyDocument({ code: 130, stdout, stderr });
  assert.deepEqual([report.kind, report.ok, report.stopped], ["lockstep-fuzz", false, "interrupted"]);
});
