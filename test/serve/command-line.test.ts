/** The lines of the commands that a server runs: which words they have, and that none of them can be anything else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { builtIn, parametersOf, toFlags } from "../../src/cli/agent.ts";
import { parseLine } from "../../src/cli/args.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { load } from "../../src/run/load.ts";
import {
  judgeArguments,
  lineText,
  runLine,
  type Startable,
  type StartRequest,
} from "../../src/serve/command-line.ts";
import { agentFiles, projectWith, stepTo } from "../run/project.ts";
import { machineFiles } from "../run/stage-project.ts";

const startable = (flow: Flow): Startable => ({ flow, parameters: parametersOf(flow) });

async function loaded(name: string, files: { readonly [path: string]: string }): Promise<Startable> {
  const { flow, problems } = await load(name, { cwd: projectWith(files) });
  assert.ok(flow !== null, JSON.stringify(problems));
  return startable(flow);
}

const STEPS = {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null }),
};
const about = { description: "d", required: false };
const registry = await loaded(
  "a",
  agentFiles("a", STEPS, {
    agent: {
      parameters: {
        topic: { type: "string", ...about, cli: "--topic" },
        many: { type: "number", ...about, cli: "--many" },
        loud: { type: "boolean", ...about, cli: "--loud" },
        tags: { type: "array", ...about, cli: "--tags" },
        // A name that a flag of the command yields.
        input: { type: "string", ...about, cli: "--input" },
      },
    },
  }),
);
const stages = await loaded("m", machineFiles({ stages: { s: { next: null } } }));

const rows: readonly [asked: Partial<StartRequest>, words: readonly string[]][] = [
  [{}, ["--on-permission=halt"]],
  [{ onPermission: "deny" }, ["--on-permission=deny"]],
  [{ args: { topic: "-x --trust-journal" } }, ["--topic=-x --trust-journal", "--on-permission=halt"]],
  [{ args: { topic: "" } }, ["--topic=", "--on-permission=halt"]],
  [{ args: { many: -3 } }, ["--many=-3", "--on-permission=halt"]],
  [{ args: { loud: true } }, ["--loud", "--on-permission=halt"]],
  [{ args: { loud: false } }, ["--loud=false", "--on-permission=halt"]],
  [{ args: { tags: ["a", "-b"] } }, ["--tags=a", "--tags=-b", "--on-permission=halt"]],
  [{ args: { tags: [] } }, ["--on-permission=halt"]],
  [{ args: { input: "i" } }, ["--input=i", "--on-permission=halt"]],
  [{ input: "piped" }, ["--ls-input", "-", "--on-permission=halt"]],
  [{ model: "--sandbox=off" }, ["--model=--sandbox=off", "--on-permission=halt"]],
  [{ script: "s.yaml" }, ["--script=s.yaml", "--on-permission=halt"]],
  [
    { limits: { turns: 3, tokens: 4, costUsd: 0.5, wallMs: 90, "closure.a.turns": 2 } },
    [
      "--max-turns=3",
      "--max-tokens=4",
      "--max-cost=0.5",
      "--max-time=90ms",
      "--max=closure.a.turns=2",
      "--on-permission=halt",
    ],
  ],
  [{ worktree: true, dryRun: true }, ["--worktree", "--dry-run", "--on-permission=halt"]],
  [{ worktree: false, dryRun: false }, ["--no-worktree", "--on-permission=halt"]],
  [{ trust: "ab" }, ["--on-permission=halt", "--trust=ab"]],
];

for (const [asked, words] of rows)
  test(`run ${JSON.stringify(asked)}`, () => {
    const line = runLine(registry, { agent: "a", args: {}, ...asked });
    assert.deepEqual(line.words, ["run", "a", ...words]);
    assert.equal(line.input, asked.input);
    // The parser of the command reads each value as one value.
    const { words: plain } = parseLine(line.words, {
      flags: builtIn(),
      declared: toFlags(registry.parameters),
    });
    assert.deepEqual(plain, ["run", "a"]);
  });

test("fields that a stage takes freely are given with --input", () => {
  const { words } = runLine(stages, { agent: "m", args: { task: "a=b", list: [1, { x: 2 }] } });
  assert.deepEqual(words, [
    "run",
    "m",
    "--input=task=a=b",
    '--input=list=[1,{"x":2}]',
    "--on-permission=halt",
  ]);
  assert.equal(runLine(stages, { agent: "m", args: {}, input: "text" }).input, undefined);
});

for (const [name, isFine] of [
  ["task", true],
  ["stageExecutionId", false],
  ["upstream", false],
  ["__proto__", false],
  ["constructor", false],
  ["@file.json", false],
  ["a=b", false],
  ["", false],
] as const)
  test(`stages ${isFine ? "take" : "do not take"} a field named ${JSON.stringify(name)}`, () => {
    const given = JSON.parse(`{${JSON.stringify(name)}: "x"}`) as { [name: string]: string };
    assert.equal(judgeArguments(stages, given).errors.length, isFine ? 0 : 1);
  });

for (const [words, text] of [
  [["run", "a"], "lockstep run a"],
  [["run", "a", "--topic=it's"], `lockstep run a --topic='it'\\''s'`],
  [["run", "a b", "--loud"], "lockstep run 'a b' --loud"],
  [["run", "a", "--topic=$(x) `y` ;z"], "lockstep run a --topic='$(x) `y` ;z'"],
  [["run", "a", "--topic=two\nlines"], "lockstep run a --topic='two\nlines'"],
  // What a reader cannot see, nobody is to paste.
  [["run", "a", "--topic=\u001b[2J"], ""],
  [["run", "a", "--topic=\u202egnp.exe"], ""],
  [["run", "\u0007"], ""],
] as const)
  test(`shown as ${JSON.stringify(text)}`, () => assert.equal(lineText("lockstep", { words }), text));

test("what is piped in is shown in the line", () => {
  assert.equal(
    lineText("npx lockstep", { words: ["run", "a", "--input", "-"], input: "some text" }),
    "npx lockstep run a --input 'some text'",
  );
});
