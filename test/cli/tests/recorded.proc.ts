/** `lockstep test --recorded`: the author's own properties over recorded runs, with run and visit of each breach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, onlyDocument, replies, script, writeAgent } from "../world.ts";

type Held = {
  readonly ok: boolean;
  readonly agents: readonly {
    readonly agent: string;
    readonly runs: number;
    readonly breaches: readonly { readonly run: string; readonly rule: string; readonly at: string }[];
  }[];
};

test("each rule of tests/settings.yaml is held over recorded runs, and a breach names run and visit", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  writeAgent(world, "others");
  const { initial, continuation, closure } = replies;
  const record = async (...list: readonly unknown[]) => {
    world.write("script.json", script(...list));
    const ran = await world.lockstep(["run", "notes", "--script", "script.json", "--topic", "tea", "--json"]);
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    return (JSON.parse(ran.stdout) as { readonly run: string }).run;
  };
  const short = await record(initial(), continuation(), closure());
  const long = await record(initial(), continuation("next"), continuation(), closure());
  const hold = async (settings: string, ...more: readonly string[]) => {
    world.write(".agent/notes/tests/settings.yaml", settings);
    return await world.lockstep(["test", "--recorded", ...more]);
  };

  const rows: readonly (readonly [settings: string, breaches: readonly string[]])[] = [
    ["before: { closure.note: continuation.note }", []],
    ["before: { initial.note: closure.note }", [`${long} initial.note@1`, `${short} initial.note@1`]],
    ['never: ["continuation.note next -> continuation.note"]', [`${long} continuation.note@1`]],
    ['never: ["closure.note closing -> initial.note"]', []],
    ["within: { visits: 3 }", [`${long} closure.note@1`]],
    ["within: { turns: 4 }", []],
  ];
  for (const [settings, breaches] of rows) {
    const ran = await hold(settings, "--json");
    const { ok, agents } = onlyDocument(ran) as unknown as Held;
    assert.deepEqual(
      agents.map(({ agent, runs }) => [agent, runs]),
      [["notes", 2]],
      settings,
    );
    assert.deepEqual(
      agents[0]!.breaches.map(({ run, at }) => `${run} ${at}`),
      breaches,
      settings,
    );
    assert.equal(ok, breaches.length === 0, settings);
    assert.equal(ran.code, ok ? 0 : 7, settings);
  }
  const { stdout } = await hold("within: { visits: 3 }");
  assert.match(stdout, /^notes: 2 recorded runs; 1 run broke a property$/m);
  const [, hint] = /^ +lockstep (why \S+ \S+)$/m.exec(stdout) ?? [];
  assert.equal(hint, `why ${long} closure.note@1`);
  const why = await world.lockstep(hint.split(" "));
  assert.equal(why.code, 0, why.stderr);

  const refused: readonly (readonly [settings: string, line: readonly string[], says: RegExp])[] = [
    ["coverage: { steps: 10 }", [], /nothing to hold over recorded runs/],
    ["within: { visits: 3 }", ["others"], /nothing to hold over recorded runs/],
    ["within: { visits: 3 }", ["--watch"], /--watch cannot be used with it/],
    ["within: { visits: 3 }", ["-t", "x"], /--test cannot be used with it/],
    ["within: { visits: 3 }", [".agent/notes/tests/first.yaml"], /names files/],
    ["within: { visit: 3 }", [], /visits/],
    ["before: { closure.nte: initial.note }", [], /There is no step "closure.nte"/],
  ];
  for (const [settings, line, says] of refused) {
    const ran = await hold(settings, ...line);
    assert.equal(ran.code, 2, ran.stdout + ran.stderr);
    assert.match(ran.stdout + ran.stderr, says);
  }
  assert.equal(onlyDocument(await hold("within: { visit: 3 }", "--json")).ok, false);
  assert.equal((await world.lockstep(["test", "--since", "1h"])).code, 2);
});
