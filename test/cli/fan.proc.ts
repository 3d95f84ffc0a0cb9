/** A fan-out as a user sees it while it runs, and afterwards: three siblings, one that retries and one that takes its time. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Edge } from "../../src/tell/outline.ts";
import { createWorld, onlyDocument, type Ran } from "./world.ts";

const world = createWorld();
process.on("exit", () => world[Symbol.dispose]());
const env = { LOCKSTEP_TRUST: "all" };

const stage = (id: string, more: string) => `---
id: ${id}
name: ${id}
allowedTools: [Bash]
completionTool: done_with_it
completionSchema: { type: object, required: [n], properties: { n: { type: number } } }
turnCap: 4
retryPolicy: { maxAttempts: 3, backoff: none }
resolutionPolicy: fail
${more}---
Do ${id}.
`;
const STAGES = {
  start: "next: { parallel: [a1, a2, a3], join: end-it }\n",
  a1: "",
  a2: "assert: [second]\n",
  a3: "",
  "end-it": "",
};
for (const [id, more] of Object.entries(STAGES)) world.write(`.agent/fan/stages/${id}.md`, stage(id, more));
world.write(
  ".agent/fan/machine.yaml",
  `entry: start
checks:
  second: { type: command, command: "test -e tried || { touch tried; exit 1; }", successWhen: "exitCode:0", failurePattern: not-yet }
`,
);
const completed = (step: string) => ({ step, output: { n: 1 } });
const patience = {
  command: "for i in $(seq 1800); do test -e go && break; sleep 0.1; done",
  timeout: 300_000,
};
world.write(
  "script.json",
  JSON.stringify({
    replies: [
      completed("start"),
      completed("a1"),
      completed("a2"),
      completed("a2"),
      { step: "a3", calls: [{ name: "Bash", input: patience }] },
      completed("a3"),
      completed("end-it"),
    ],
  }),
);

type Path = readonly {
  step: string;
  to: string | null;
  label: string;
  place?: number;
  fork?: readonly string[];
}[];

test("a fan-out is shown as one, while it runs and afterwards", async () => {
  const seen: { runs?: Promise<Ran>; runsJson?: Promise<Ran>; show?: Promise<Ran>; showJson?: Promise<Ran> } =
    {};
  const ran = await world.lockstep(["run", "fan", "--script", "script.json"], {
    env,
    watch: (output) => {
      if (!/a1 #1 → [^]*a2 #1 → /.test(output) || seen.runs !== undefined) return;
      seen.runs = world.lockstep(["runs"]);
      seen.runsJson = world.lockstep(["runs", "--json"]);
      seen.show = world.lockstep(["show", "@last"]);
      seen.showJson = world.lockstep(["show", "@last", "--json"]);
      void Promise.allSettled(Object.values(seen)).then(() => writeFileSync(join(world.root, "go"), ""));
    },
  });
  assert.equal(ran.code, 0, ran.stderr);

  // The progress.
  assert.match(ran.stderr, /start #1 → ok → \(a1 ∥ a2 ∥ a3\), then end-it\n/);
  assert.match(ran.stderr, /a1 #1 → ok → end-it, after [^\n]*a3\n/);
  assert.match(ran.stderr, /a2 #1 ✗ second \(not-yet\), try 2\n[^]*a2 #1 → ok → end-it, after a3\n/);
  assert.match(ran.stderr, /a3 #1 → ok → end-it\n/);
  assert.match(ran.stderr, /path {6}start → \(a1 ∥ a2 ∥ a3\) → end-it → end\n/);

  // While a3 is working, and nobody else.
  assert.match((await seen.runs!).stdout, /fan +running +a3 /);
  const [summary] = onlyDocument(await seen.runsJson!).runs as readonly { step: string; steps: unknown }[];
  assert.deepEqual([summary!.step, summary!.steps], ["a3", ["a3"]]);
  assert.match((await seen.show!).stdout, /path {6}start → \(a1 ∥ a2 ∥ a3…\) → \(end-it\)\n/);
  const during = onlyDocument(await seen.showJson!);
  assert.deepEqual(during.underWay, [{ step: "a3", visit: 1, doing: "call" }]);

  // Afterwards.
  const after = onlyDocument(await world.lockstep(["show", "@last", "--json"]));
  const path = after.path as Path;
  assert.deepEqual(
    path.map(({ step, to, place, fork }) => [step, to, place ?? null, fork ?? null]),
    [
      ["start", "end-it", null, ["a1", "a2", "a3"]],
      ["a1", "end-it", 0, null],
      ["a2", "end-it", 1, null],
      ["a3", "end-it", 2, null],
      ["end-it", null, null, null],
    ],
  );
  assert.deepEqual(after.underWay, []);
  const shown = await world.lockstep(["show", "@last"]);
  assert.match(shown.stdout, /start #1 → ok → \(a1 ∥ a2 ∥ a3\), then end-it\n/);
  assert.match(shown.stdout, /a2 #1 ✗ second \(not-yet\)\n/);

  // The drawing agrees with the record.
  const drawn = onlyDocument(await world.lockstep(["graph", "fan", "--format", "json"]));
  const edges = drawn.edges as readonly Edge[];
  for (const { step, label, to } of path)
    assert.ok(
      edges.some(
        (edge) =>
          edge.from === step &&
          edge.label === label &&
          (to === null ? edge.to.kind === "end" : edge.to.kind === "step" && edge.to.step === to),
      ),
      `${step} → ${label} → ${to}`,
    );
});
