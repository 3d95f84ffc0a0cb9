/** A run becomes a test, and a changed prompt makes the test stale: `export --test`, `test` and `test --stale` as typed. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { agentFiles, stepTo } from "../../run/project.ts";
import { createWorld } from "../world.ts";

const STEPS = {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null }),
};
const PROMPT = ".agent/a/prompts/steps/closure/a/f_default.md";

const script = JSON.stringify({
  replies: [
    { step: "initial.a", output: { stepId: "initial.a", next_action: { action: "next" } } },
    { step: "closure.a", output: { stepId: "closure.a", next_action: { action: "closing" } } },
  ],
});

type Stale = {
  readonly kind: string;
  readonly ok: boolean;
  readonly stale: number;
  readonly tests: readonly {
    readonly drift: {
      readonly compared: number;
      readonly responses: readonly { readonly reply: number; readonly parts: readonly string[] }[];
    };
  }[];
};

test("a recorded run passes as a test; a changed prompt is reported at its response, and shown", async () => {
  using world = createWorld();
  for (const [path, text] of Object.entries(agentFiles("a", STEPS))) world.write(path, text);
  assert.ok(existsSync(join(world.root, PROMPT)));
  world.write("s.json", script);
  assert.equal((await world.lockstep(["run", "a", "--script", "s.json"])).code, 0);
  const file = ".agent/a/tests/recorded.yaml";
  world.write(".agent/a/tests/README.md", "Tests.\n");
  const exported = await world.lockstep(["export", "@last", "--test", "--out", file, "--json"]);
  assert.equal(exported.code, 0, exported.stderr);
  const { heard, kind, ok } = JSON.parse(exported.stdout) as {
    readonly heard: string;
    readonly kind: string;
    readonly ok: boolean;
  };
  assert.deepEqual([kind, ok], ["lockstep-run-as-test", true]);
  assert.equal(heard, ".agent/a/tests/recorded.heard.md");
  assert.ok(readFileSync(join(world.root, heard), "utf8").includes("## Response 2: closure.a #1"));
  const redacted = ["export", "@last", "--test", "--redact", "--out", ".agent/a/tests/redacted.yaml"];
  assert.equal((await world.lockstep(redacted)).code, 0);
  assert.ok(!existsSync(join(world.root, ".agent/a/tests/redacted.heard.md")));

  const fresh = await world.lockstep(["test"]);
  assert.deepEqual([fresh.code, fresh.stdout.includes("other words")], [0, false], fresh.stdout);
  assert.equal((await world.lockstep(["check"])).code, 0);
  const none = await world.lockstep(["test", "--stale"]);
  assert.deepEqual([none.code, none.stdout.trim()], [0, "0 of 2 recorded tests stale"]);

  world.write(PROMPT, "Close it \u001b[31mnow.\n");
  const warned = await world.lockstep(["test", "a"]);
  assert.equal(warned.code, 0, warned.stdout);
  assert.match(
    warned.stdout,
    /recorded\.yaml:\d+: 1 of 2 responses were given to other words \(prompt at 2\)/,
  );
  const stale = await world.lockstep(["test", "--stale"]);
  assert.equal(stale.code, 0);
  assert.match(stale.stdout, /response 2 to closure\.a@1: another prompt[\s\S]*\+ Close it [^\n]*now\./);
  assert.ok(!stale.stdout.includes("\u001b[31m"), "text of a file reaches the terminal as it is");
  const document = JSON.parse((await world.lockstep(["test", "--stale", "--json"])).stdout) as Stale;
  assert.deepEqual(
    [document.kind, document.ok, document.stale, document.tests.length],
    ["lockstep-stale-tests", true, 2, 2],
  );
  for (const { drift } of document.tests)
    assert.deepEqual(
      [drift.compared, drift.responses.map(({ reply, parts }) => [reply, parts])],
      [2, [[2, ["prompt"]]]],
    );

  world.write(".agent/a/tests/settings.yaml", "drift: { prompt: fail }\n");
  const failed = await world.lockstep(["test"]);
  assert.equal(failed.code, 7);
  assert.match(failed.stdout, /drift\.prompt +expected {2}what response 2 was given to/);
  world.write(".agent/a/tests/settings.yaml", "drift: { promt: fail, words: never }\n");
  const wrong = await world.lockstep(["test"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stdout, /Did you mean "prompt"[\s\S]*"never" is not a rule/);
});

test("what export writes, test reads: a run of 700 KB, with texts that look like the syntax of tests", async () => {
  using world = createWorld();
  for (const [path, text] of Object.entries(agentFiles("a", STEPS))) world.write(path, text);
  const odd = "${case.x} re:( absent ... file:none <= x";
  const { replies } = JSON.parse(script) as { readonly replies: readonly object[] };
  const text = `${odd} ${"many words ".repeat(32_000)}`;
  world.write("s.json", JSON.stringify({ replies: replies.map((reply) => Object.assign(reply, { text })) }));
  assert.equal((await world.lockstep(["run", "a", "--script", "s.json"])).code, 0);
  world.write(".agent/a/tests/README.md", "Tests.\n");
  const file = ".agent/a/tests/recorded.yaml";
  const exported = await world.lockstep(["export", "@last", "--test", "--out", file]);
  assert.equal(exported.code, 0, exported.stderr);
  assert.ok(readFileSync(join(world.root, file), "utf8").length > 700_000);
  const tested = await world.lockstep(["test", "a"]);
  assert.equal(tested.code, 0, tested.stdout + tested.stderr);
  assert.match(tested.stdout, /1 test, all passed/);
});
