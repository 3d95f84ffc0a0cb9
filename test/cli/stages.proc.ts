/** An agent made of stages, as every command meets it. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { printed } from "../load/documents.ts";
import { stageText, stageTree, REVIEW } from "../load/stage-world.ts";
import { createWorld, onlyDocument, writeAgent } from "./world.ts";

const world = createWorld();
process.on("exit", () => world[Symbol.dispose]());

/** Alone in its folder: no agent.json, no machine.yaml. */
world.write(".agent/planner/stages/plan.md", printed("004-plan.md"));
const inputs = {
  type: "object",
  required: ["task"],
  properties: {
    task: { type: "string", description: "What to do" },
    tries: { type: "integer" },
    about: { type: "object" },
  },
};
for (const [path, text] of Object.entries(stageTree({ machine: { entry: "plan", inputs } })))
  world.write(path, text);
world.write(
  ".agent/release/stages/plan.md",
  stageText({ ...REVIEW, id: "plan", next: "build", body: "Do {{ctx.task}}." }),
);
/** Everything wrong at once. */
world.write(".agent/wrong/stages/plan.md", printed("004-plan.md").replace("turnCap: 20", "turnCap: 0"));
world.write(
  ".agent/wrong/stages/work.md",
  printed("004-plan.md")
    .replace("id: plan", "id: work")
    .replace("items: { type: string }", "items: { type: strng }"),
);
world.write(".agent/wrong/machine.yaml", "entry: plan\nchecks: {}\njoinRule: maybe\n");
writeAgent(world, "both");
world.write(".agent/both/stages/plan.md", printed("004-plan.md"));

describe("an agent made of stages", { concurrency: 2 }, () => {
  test("is what init --stages writes: it passes check, is drawn, and runs as it says", async () => {
    using fresh = createWorld();
    const made = await fresh.lockstep(["init", "notes", "--stages"]);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^\.agent\/notes\/stages\/1-plan\.md$/m);
    const run = 'lockstep run notes --topic "tides" --script .agent/notes/script.yaml';
    assert.ok(made.stdout.includes(`  lockstep check notes\n  lockstep test notes\n  ${run}\n`));
    assert.equal((await fresh.lockstep(["test", "notes"])).code, 0);
    assert.match((await fresh.lockstep(["init", "notes", "--stages"])).stderr, /is there already/);

    const checked = await fresh.lockstep(["check", "notes", "--strict"]);
    assert.deepEqual([checked.code, checked.stdout], [0, "✓ notes: no problems (3 steps)\n"]);
    const drawn = await fresh.lockstep(["graph", "notes"]);
    assert.match(drawn.stdout, /parsed\.approved = true/);

    const args = ["--topic", "tides", "--script", ".agent/notes/script.yaml", "--json"];
    const ran = onlyDocument(await fresh.lockstep(["run", "notes", ...args]));
    assert.deepEqual([ran.outcome, ran.warnings], ["completed", []], String(ran.reason));
    const path = ran.path as readonly { step: string; visit: number }[];
    assert.deepEqual(
      path.map(({ step, visit }) => `${step}@${visit}`),
      ["plan@1", "draft@1", "review@1", "draft@2", "review@2"],
    );
    const audit = await fresh.lockstep(["show", "@last", "--audit"]);
    assert.match(audit.stdout, /StageParseError/);
    const { stdout } = await fresh.lockstep(["why", "@last", "draft@1"]);
    assert.match(stdout, /must NOT have fewer than 20 characters/);
  });

  test("waits for a permission with exit 5, and goes on when it is resumed with one", async () => {
    using fresh = createWorld();
    fresh.write(".agent/planner/stages/plan.md", printed("004-plan.md"));
    const wish = [{ name: "Write", input: { file_path: "plan.txt", content: "first" } }];
    const plan = { summary: "s", steps: ["one"] };
    fresh.write("script.json", JSON.stringify({ replies: [{ calls: wish }, { output: plan }] }));
    const run = ["run", "planner", "--input", "task=t", "--script", "script.json", "--on-permission", "halt"];
    const waiting = await fresh.lockstep(run);
    assert.deepEqual([waiting.code, waiting.stdout], [5, '{"outcome":"waiting"}\n'], waiting.stderr);
    assert.match(waiting.stderr, /PermissionRequired[^]*wants to call Write[^]*lockstep answer/);
    assert.match((await fresh.lockstep(["runs"])).stdout, /waiting/);
    assert.ok(!existsSync(join(fresh.root, "plan.txt")));
    const resumed = await fresh.lockstep(["resume", "@last", "--on-permission", "allow"]);
    assert.equal(resumed.code, 0, resumed.stderr);
    assert.ok(existsSync(join(fresh.root, "plan.txt")));
    assert.match((await fresh.lockstep(["show", "@last", "--audit"])).stdout, /GrantConsumed/);
  });

  test("is listed, and known to doctor", async () => {
    const { stdout } = await world.lockstep(["list"]);
    assert.match(stdout, /^planner +ok/m);
    assert.match(stdout, /^release +ok +--task \[--tries\] \[--about\]/m);
    assert.match(stdout, /^wrong +cannot run/m);
    const doctor = await world.lockstep(["doctor"]);
    assert.match(doctor.stdout, /agent planner +no problems/);
  });

  test("is checked, with code, place and frame", async () => {
    const good = await world.lockstep(["check", "planner"]);
    assert.deepEqual([good.code, good.stdout], [0, "✓ planner: no problems (1 step)\n"]);
    const bad = await world.lockstep(["check", "wrong"]);
    assert.equal(bad.code, 2);
    assert.match(bad.stdout, /stages\/plan\.md:17:1 {2}error {2}StageTurnCapTooLow/);
    assert.match(bad.stdout, /> 17 \| turnCap: 0\n/);
    assert.match(bad.stdout, /why {2}Validation: /);
    // What follows from an error comes after all of them.
    assert.match(bad.stdout, /error {2}StageCompletionSchemaInvalid\n[^]*warning {2}FLOW-UNREACHABLE\n/);
    assert.doesNotMatch(bad.stdout, /warning {2}FLOW-UNREACHABLE\n[^]* error {2}/);
    const document = onlyDocument(await world.lockstep(["check", "wrong", "--json"]));
    const problems = document.problems as readonly {
      code: string;
      file: string;
      pointer: string;
      line: number;
    }[];
    assert.deepEqual(
      problems.map(
        ({ code, file, pointer, line }) => `${code} ${file.slice(".agent/wrong/".length)} ${pointer} ${line}`,
      ),
      [
        "StageDefinitionInvalid machine.yaml /joinRule 3",
        "StageTurnCapTooLow stages/plan.md /turnCap 17",
        "FLOW-UNREACHABLE stages/work.md /id 2",
        "StageCompletionSchemaInvalid stages/work.md /completionSchema/properties/steps/items/type 13",
      ],
    );
  });

  test("is told as SARIF, and --fix leaves YAML alone", async () => {
    const { stdout, code } = await world.lockstep(["check", "wrong", "--sarif"]);
    const { runs } = JSON.parse(stdout) as { runs: readonly { results: readonly { ruleId: string }[] }[] };
    assert.equal(code, 2);
    assert.ok(runs[0]!.results.some(({ ruleId }) => ruleId === "StageTurnCapTooLow"));
    const fixed = await world.lockstep(["check", "wrong", "--fix", "--dry-run"]);
    assert.match(fixed.stdout, /^Nothing can be fixed automatically/);
  });

  test("is held to a budget, told where the limit is written", async () => {
    assert.equal((await world.lockstep(["check", "planner", "--max-turns", "40"])).code, 0);
    const { code, stdout } = await world.lockstep(["check", "planner", "--max-turns", "39"]);
    assert.equal(code, 2);
    assert.match(stdout, /planner\/machine\.yaml:1:1 {2}error {2}BUDGET-TURNS\n.*40 model answers/);
  });

  test("is drawn and explained", async () => {
    const graph = onlyDocument(await world.lockstep(["graph", "release", "--json"]));
    assert.equal(graph.dialect, "stage");
    const nodes = graph.nodes as readonly { id: string; routedBy: string }[];
    assert.deepEqual(
      nodes.map(({ routedBy }) => routedBy),
      ["runtime", "runtime", "runtime"],
    );
    const { stdout } = await world.lockstep(["explain", "release", "plan"]);
    assert.match(stdout, /\{\{ctx\.task\}\} +the parameter --task/);
    assert.match((await world.lockstep(["migrate", "release"])).stdout, /already has the current format/);
  });

  test("tells its inputs as flags, and checks what is given before it runs", async () => {
    const help = await world.lockstep(["run", "release", "--help"]);
    assert.match(help.stdout, /--task STRING +What to do \(string, required\)/);
    assert.match(help.stdout, /--about OBJECT/);
    const refusals: readonly [args: readonly string[], says: RegExp][] = [
      [[], /"task" is required/],
      [["--input", "task"], /NAME=VALUE or @FILE\.json/],
      [["--input", "task=x", "--task", "y"], /both with --task and with --input/],
      [["--input", "task=x", "--input", "task=y"], /--task is given more than once/],
      [["--input", "task=x", "--input", "tries=many"], /--tries is "many", not a number/],
      [["--input", "task=x", "--input", "other=1"], /no parameter "other"/],
      [["--input", "upstream=1"], /the runtime sets it/],
      [["--input", "@none.json"], /@none\.json cannot be read/],
      [["--input", "@list.json"], /must contain a JSON object/],
    ];
    world.write("list.json", "[]");
    for (const [args, says] of refusals) {
      const { code, stderr } = await world.lockstep(["run", "release", ...args]);
      assert.equal(code, 2, args.join(" "));
      assert.match(stderr, says);
    }
    world.write("fields.json", '\uFEFF{"about":{"a":[1]},"tries":2}');
    const ran = await world.lockstep(["run", "release", "--input", "task=x", "--input", "@fields.json"]);
    assert.match(ran.stderr, /NO_BACKEND/);
  });

  test("cannot be both stages and a registry", async () => {
    const { code, stdout } = await world.lockstep(["check", "both"]);
    assert.equal(code, 2);
    assert.match(
      stdout,
      /both\/steps_registry\.json:1:1 {2}error {2}DIALECT\n {2}\.agent\/both contains two flows/,
    );
  });

  test("is offered by the shell", async () => {
    const { stdout } = await world.lockstep(["__complete", "--", "run", ""]);
    const names = stdout.split("\n").slice(1, -1);
    assert.deepEqual(
      names.map((line) => line.split("\t")[0]),
      ["both", "planner", "release", "wrong"],
    );
  });
});
