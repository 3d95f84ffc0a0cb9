/** The agent's own flags on the command line. What a prompt was given is proven by the script's `saw`. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tree001 } from "../load/documents.ts";
import { createWorld, onlyDocument, replies, script, writeAgent } from "./world.ts";

const world = createWorld();
process.on("exit", () => world[Symbol.dispose]());

const declare = (type: string, cli: string, more: object = {}) => ({
  type,
  cli,
  description: `The ${cli}`,
  ...more,
});
writeAgent(world, "many", {
  agent: (agent) => {
    agent.parameters = {
      topic: declare("string", "--topic", { required: true }),
      dryRun: declare("boolean", "--dry-run", { default: true }),
      tags: declare("array", "--tag", { default: [] }),
      count: declare("number", "--count", { default: 1, validation: { min: 1, max: 9 } }),
      json: declare("string", "--json", { default: "none" }),
      script: declare("string", "--script", { default: "none" }),
      cwd: declare("string", "--cwd", { default: "none" }),
    };
  },
  registry: (registry) => {
    const steps = registry.steps as { readonly [id: string]: { uvVariables: string[] } };
    steps["initial.note"]!.uvVariables = ["topic", "dryRun", "tags", "count", "json", "script", "cwd"];
  },
});
world.write(
  ".agent/many/prompts/steps/initial/note/f_default.md",
  "topic={uv-topic} dry={uv-dryRun} tags={uv-tags} count={uv-count} json={uv-json} script={uv-script} cwd={uv-cwd} end\n",
);

type Case = { readonly args: readonly string[]; readonly saw: string };

const cases: readonly Case[] = [
  {
    args: ["many", "--topic", "x"],
    saw: "topic=x dry=true tags=[] count=1 json=none script=none cwd=none end",
  },
  { args: ["many", "--topic=x y", "--no-dry-run"], saw: "topic=x y dry=false" },
  { args: ["many", "--topic", "x", "--dry-run=no"], saw: "dry=false" },
  { args: ["many", "--topic", "x", "--tag", "a", "--tag=b"], saw: 'tags=["a","b"]' },
  { args: ["many", "--topic", "x", "--tag", "a"], saw: 'tags=["a"]' },
  { args: ["many", "--topic", "x", "--count", "3"], saw: "count=3" },
  { args: ["many", "--topic", "x", "--json", "mine"], saw: "json=mine" },
  { args: ["many", "--topic", "x", "--script", "mine"], saw: "script=mine" },
  { args: ["many", "--topic", "x", "--cwd", "elsewhere"], saw: "cwd=elsewhere" },
  { args: ["--topic", "x", "--count", "2", "many"], saw: "topic=x dry=true tags=[] count=2" },
  { args: ["--count", "2", "many", "--topic", "-5"], saw: "topic=-5" },
  { args: ["many", "--topic=--json"], saw: "topic=--json" },
];

describe("declared parameters are flags, and win over built-in ones", { concurrency: 3 }, () => {
  for (const [place, { args, saw }] of cases.entries()) {
    test(`run ${args.join(" ")}`, async () => {
      const file = `case-${place}.json`;
      world.write(
        file,
        script({ ...replies.initial(), saw: [saw] }, replies.continuation(), replies.closure()),
      );
      const ran = await world.lockstep(["run", ...args, "--ls-script", file, "--ls-json"]);
      assert.equal(onlyDocument(ran).outcome, "completed", ran.stderr);
      assert.equal(ran.code, 0);
    });
  }
});

describe("what does not fit is refused with the flag's name", { concurrency: 3 }, () => {
  for (const [args, says] of [
    [["--topic", "x", "--count", "10"], /--count is 10, more than 9/],
    [["--topic", "x", "--count", "few"], /--count is "few", not a number/],
    [["--topic", "x", "--topic", "y"], /--topic is given more than once/],
    [["--topic", "x", "--dry-run=maybe"], /--dry-run is "maybe"/],
    [["--count", "1"], /"topic" is required.*--topic/],
  ] as const) {
    test(`run many ${args.join(" ")}`, async () => {
      const ran = await world.lockstep(["run", "many", ...args, "--ls-json"]);
      assert.equal(ran.code, 2);
      assert.match(String(onlyDocument(ran).reason), says);
    });
  }
});

test("run NAME --help lists the parameters, and the flags under the names that are left", async () => {
  const ran = await world.lockstep(["run", "many", "--help"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^ {2}--topic STRING +The --topic \(string, required\)$/m);
  assert.match(ran.stdout, /^ {2}--dry-run, --no-dry-run +The --dry-run \(boolean, default true\)$/m);
  assert.match(ran.stdout, /^ {6}--ls-script FILE/m);
});

test("check warns of parameters that take a built-in flag's place, where they are declared", async () => {
  const ran = await world.lockstep(["check", "many", "--json"]);
  const { problems } = onlyDocument(ran) as {
    readonly problems: readonly { code: string; line: number; message: string }[];
  };
  const taken = problems.filter((problem) => problem.code === "PARAM-BUILT-IN");
  assert.deepEqual(
    taken.map((problem) => /flag (--[\w-]+)/.exec(problem.message)?.[1]),
    ["--dry-run", "--json", "--script", "--cwd"],
  );
  assert.ok(taken.every((problem) => problem.line > 1));
  assert.equal(ran.code, 0);
});

describe("an agent of a form without parameters", { concurrency: 3 }, () => {
  for (const [path, text] of Object.entries(tree001())) world.write(path, text);
  const file = "open.json";
  const ok = [{ text: "done" }, { output: { result: "ok" } }];
  world.write(
    file,
    JSON.stringify({ replies: [{ ...ok[0], saw: ["Analyze: the login,"] }, ok[1], ...ok, ...ok] }),
  );

  test("takes what its prompts read", async () => {
    const ran = await world.lockstep(["run", "code-improver", "--topic", "the login", "--script", file]);
    assert.equal(ran.code, 0, ran.stderr);
  });
  test("shows it in its help, and takes nothing else", async () => {
    const help = await world.lockstep(["run", "code-improver", "--help"]);
    assert.match(help.stdout, /--topic/);
    const wrong = await world.lockstep(["run", "code-improver", "--topci", "x", "--script", file]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /--topic/);
  });
});
