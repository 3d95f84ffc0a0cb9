/** hooks.mjs for real: a module of the project, in a process of its own, at every point of a stage's life. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { run } from "../../src/run/index.ts";
import { homeBeside, projectWith } from "./project.ts";
import { machineFiles, pathOf, prove, runMachine, type Start } from "./stage-project.ts";
import { until } from "../until.ts";
import { HOOK_TABLES, hooks, isThere } from "./stage-rows/hooks.ts";
import { done } from "./stage-rows/row.ts";

for (const [title, rows] of Object.entries(HOOK_TABLES)) {
  describe(title.toLowerCase().replace("_", " "), { concurrency: 2 }, () => {
    for (const row of rows) test(row.name, async () => await prove(row));
  });
}

/** Leaves a file as soon as it is loaded. */
const TELLTALE = `import { writeFileSync } from "node:fs"; writeFileSync("loaded", "");
export default { a: { checkGate: () => "proceed" } };\n`;

test("without trust nothing of the module is loaded", async () => {
  const env = { ...process.env, LOCKSTEP_TRUST: "" };
  const ran = await runMachine({ stages: { a: {} }, hooks: TELLTALE, options: { env }, model: [done()] });
  const { result } = ran;
  assert.deepEqual([result.code, result.exitCode, ran.asked.length], ["NOT_TRUSTED", 3, 0]);
  assert.match(result.reason, /node \.agent\/m\/hooks\.mjs \(sha256 /);
  assert.ok(!isThere(ran, "loaded"));
});

test("trust is for what the module held: after a change it is asked for again", async () => {
  const folder = projectWith(machineFiles({ stages: { a: {} }, hooks: TELLTALE }));
  const env = { ...process.env, LOCKSTEP_TRUST: "", XDG_CONFIG_HOME: homeBeside() };
  const start = async (confirm: boolean) => {
    const asking = { confirm: () => Promise.resolve(confirm) };
    return await run({ agent: "m", cwd: folder, env, script: [done()], trust: asking });
  };
  assert.equal((await start(true)).exitCode, 0);
  assert.equal((await start(false)).exitCode, 0, "it was kept");
  writeFileSync(join(folder, ".agent/m/hooks.mjs"), `${TELLTALE}// and more\n`);
  assert.deepEqual([(await start(false)).code, (await start(false)).exitCode], ["NOT_TRUSTED", 3]);
});

test("a module that has changed since the run began is not run: the run waits until it is put back", async () => {
  const text = hooks(`a: { exit: () => "one" }, b: { setup: (ctx) => { ctx.seen = "the same"; } }`);
  const ran = await runMachine({
    stages: { a: { next: "b" }, b: { body: "{{ctx.seen}}" } },
    hooks: text,
    model: [],
  } satisfies Start);
  assert.equal(ran.result.code, "SCRIPT_EXHAUSTED");
  const file = join(ran.folder, ".agent/m/hooks.mjs");
  writeFileSync(file, `import { writeFileSync } from "node:fs"; writeFileSync("loaded", "");\n${text}`);
  const changed = await ran.again([done()]);
  const { code, outcome, exitCode, reason } = changed.result;
  assert.deepEqual([code, outcome, exitCode], ["MODULE_CHANGED", "waiting", 5], reason);
  assert.match(reason, /hooks\.mjs is no longer what it was.*Put it back/s);
  assert.ok(!isThere(ran, "loaded"));
  writeFileSync(file, text);
  const whole = await ran.again([done({}, { saw: ["the same"] })]);
  assert.deepEqual(
    [whole.result.outcome, pathOf(whole.result)],
    ["completed", "a:ok b:ok"],
    whole.result.reason,
  );
});

test("a run that is stopped while a hook hangs ends at once, and can be resumed", async () => {
  const stop = new AbortController();
  const ran = await runMachine({
    stages: { a: {} },
    hooks: `import { existsSync, writeFileSync } from "node:fs";
      export default { a: { exit: () => { if (existsSync("twice")) return "done";
        writeFileSync("twice", ""); return new Promise(() => setInterval(() => {}, 1000)); } } };`,
    options: { signal: stop.signal },
    watch: (folder) =>
      void until(() => existsSync(join(folder, "twice")), "the hook hangs").then(() => stop.abort()),
    model: [done()],
  });
  assert.deepEqual([ran.result.outcome, ran.result.exitCode], ["interrupted", 130], ran.result.reason);
  const whole = await ran.again([]);
  assert.deepEqual([whole.result.outcome, whole.result.handoff.a!.output], ["completed", "done"]);
  assert.equal(whole.asked.length, 0, "what was answered is not asked again");
});
