/** `lockstep fuzz`: the report, the author's properties, a saved case as a test, and exit codes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
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
