/** The agent's own flags on the command line. What a prompt was given is proven by the script's `saw`. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tree001 } from "../load/documents.ts";
import { stageFile } from "../run/stage-project.ts";
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
      wait: declare("boolean", "--wait", { default: true }),
      tags: declare("array", "--tag", { default: [] }),
      count: declare("number", "--count", { default: 1, validation: { min: 1, max: 9 } }),
      branch: declare("string", "--branch", { default: "none" }),
      label: declare("string", "--label", { default: "none" }),
      input: declare("string", "--input", { default: "none" }),
    };
  },
  registry: (registry) => {
    const steps = registry.steps as { readonly [id: string]: { uvVariables: string[] } };
    steps["initial.note"]!.uvVariables = ["topic", "wait", "tags", "count", "branch", "label", "input"];
  },
});
world.write(
  ".agent/many/prompts/steps/initial/note/f_default.md",
  "topic={uv-topic} wait={uv-wait} tags={uv-tags} count={uv-count} branch={uv-branch} label={uv-label} input={uv-input} end\n",
);

type Case = { readonly args: readonly string[]; readonly saw: string };

const cases: readonly Case[] = [
  {
    args: ["many", "--topic", "x"],
    saw: "topic=x wait=true tags=[] count=1 branch=none label=none input=none end",
  },
  { args: ["many", "--topic=x y", "--no-wait"], saw: "topic=x y wait=false" },
  { args: ["many", "--topic", "x", "--wait=no"], saw: "wait=false" },
  { args: ["many", "--topic", "x", "--tag", "a", "--tag=b"], saw: 'tags=["a","b"]' },
  { args: ["many", "--topic", "x", "--tag", "a"], saw: 'tags=["a"]' },
  { args: ["many", "--topic", "x", "--count", "3"], saw: "count=3" },
  { args: ["many", "--topic", "x", "--branch", "mine"], saw: "branch=mine" },
  { args: ["many", "--topic", "x", "--label", "mine"], saw: "label=mine" },
  { args: ["many", "--topic", "x", "--input", "elsewhere"], saw: "input=elsewhere" },
  { args: ["--topic", "x", "--count", "2", "many"], saw: "topic=x wait=true tags=[] count=2" },
  { args: ["--count", "2", "many", "--topic", "-5"], saw: "topic=-5" },
  { args: ["many", "--topic=--json"], saw: "topic=--json" },
];

describe(
  "declared parameters are flags, and win over built-in ones that are not reserved",
  { concurrency: 3 },
  () => {
    for (const [place, { args, saw }] of cases.entries()) {
      test(`run ${args.join(" ")}`, async () => {
        const file = `case-${place}.json`;
        world.write(
          file,
          script({ ...replies.initial(), saw: [saw] }, replies.continuation(), replies.closure()),
        );
        const ran = await world.lockstep(["run", ...args, "--script", file, "--json"]);
        assert.equal(onlyDocument(ran).outcome, "completed", ran.stderr);
        assert.equal(ran.code, 0);
      });
    }
  },
);

describe("what does not fit is refused with the flag's name", { concurrency: 3 }, () => {
  for (const [args, says] of [
    [["--topic", "x", "--count", "10"], /--count is 10, more than 9/],
    [["--topic", "x", "--count", "few"], /--count is "few", not a number/],
    [["--topic", "x", "--topic", "y"], /--topic is given more than once/],
    [["--topic", "x", "--wait=maybe"], /--wait is "maybe"/],
    [["--count", "1"], /"topic" is required.*--topic/],
  ] as const) {
    test(`run many ${args.join(" ")}`, async () => {
      const ran = await world.lockstep(["run", "many", ...args, "--json"]);
      assert.equal(ran.code, 2);
      assert.match(String(onlyDocument(ran).reason), says);
    });
  }
});

test("run NAME --help lists the parameters, and the flags under the names that are left", async () => {
  const ran = await world.lockstep(["run", "many", "--help"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^ {2}--topic STRING +The --topic \(string, required\)$/m);
  assert.match(ran.stdout, /^ {2}--wait, --no-wait +The --wait \(boolean, default true\)$/m);
  assert.match(ran.stdout, /^ {6}--ls-branch NAME/m);
});

test("check warns of parameters that take a built-in flag's place, where they are declared", async () => {
  const ran = await world.lockstep(["check", "many", "--json"]);
  const { problems } = onlyDocument(ran) as {
    readonly problems: readonly { code: string; line: number; message: string }[];
  };
  const taken = problems.filter((problem) => problem.code === "PARAM-BUILT-IN");
  assert.deepEqual(
    taken.map((problem) => /flag (--[\w-]+)/.exec(problem.message)?.[1]),
    ["--wait", "--branch", "--label", "--input"],
  );
  assert.ok(taken.every((problem) => problem.line > 1));
  assert.equal(ran.code, 0);
});

/** Every flag that a parameter cannot take, each given by the user in the way that would be lost. */
describe("a parameter cannot take a reserved flag", { concurrency: 3 }, () => {
  const forms = [
    ["sandbox", "--sandbox"],
    ["trust", "--trust"],
    ["dryRun", "--dry-run"],
    ["on_permission", "--on-permission"],
    ["max", "--max"],
    ["maxTurns", "--max-turns"],
    ["place", "--state"],
    ["cwd", "--cwd"],
    ["push", "--push"],
    ["mergeNot", "--no-merge"],
    ["twice", "--no-no-push"],
    ["out", "--json"],
    ["validate", "--validate"],
    ["behind", "--ls-sandbox"],
    ["behindOther", "--ls-topic"],
    ["help", "--help"],
  ] as const;
  writeAgent(world, "taking", {
    agent: (agent) => {
      const parameters = forms.map(
        ([name, cli]) => [name, declare("string", cli, { default: "none" })] as const,
      );
      agent.parameters = { topic: declare("string", "--topic"), ...Object.fromEntries(parameters) };
    },
  });

  test("check names each of them with its place and what to do", async () => {
    const ran = await world.lockstep(["check", "taking", "--json"]);
    assert.equal(ran.code, 2);
    const { problems } = onlyDocument(ran) as {
      readonly problems: readonly { [key: string]: string | number }[];
    };
    const reserved = problems.filter((problem) => problem.code === "PARAM-RESERVED");
    assert.deepEqual(
      reserved.map(({ message }) => /flag (--[\w-]+)/.exec(String(message))?.[1]),
      forms.map(([, cli]) => cli),
    );
    for (const { severity, file, line, fix } of reserved) {
      assert.deepEqual([severity, file], ["error", ".agent/taking/agent.json"]);
      assert.ok(Number(line) > 1);
      assert.match(String(fix), /another flag/);
    }
  });

  test("the user's flag keeps its meaning, and the run does not start", async () => {
    for (const flag of ["--sandbox=maybe", "--max-turns=1", "--push", "--dry-run", "--state=elsewhere"]) {
      const ran = await world.lockstep(["run", "taking", "--topic", "x", flag, "--json"]);
      assert.equal(ran.code, 2, flag);
      assert.match(String(onlyDocument(ran).code), /FLOW_INVALID|USAGE/, flag);
    }
  });

  test("the parameters of stages are held to the same", async () => {
    world.write(".agent/staged/stages/a.md", stageFile("a"));
    const properties = {
      dry_run: { type: "boolean" },
      topic: { type: "string" },
      branch: { type: "string" },
    };
    world.write(
      ".agent/staged/machine.yaml",
      JSON.stringify({ id: "staged", entry: "a", inputs: { type: "object", properties } }),
    );
    const { problems } = onlyDocument(await world.lockstep(["check", "staged", "--json"])) as {
      readonly problems: readonly { code: string; message: string; file: string }[];
    };
    const found = problems.filter(({ code }) => code === "PARAM-RESERVED" || code === "PARAM-BUILT-IN");
    assert.deepEqual(
      found.map(({ code, file }) => [code, file]),
      [
        ["PARAM-RESERVED", ".agent/staged/machine.yaml"],
        ["PARAM-BUILT-IN", ".agent/staged/machine.yaml"],
      ],
      JSON.stringify(problems),
    );
  });
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
