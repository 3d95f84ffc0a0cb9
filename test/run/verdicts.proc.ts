/** Ends by the verdict that start processes: checks before the end, and modules of the project. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createMemoryJournal, resume, run, type Entry, type ScriptReply } from "../../src/run/index.ts";
import { homeBeside, projectWith } from "./project.ts";
import { checkedBy, verdictAgent, type Verdict } from "./verdict-agents.ts";

const say = (text: string, saw?: readonly string[]): ScriptReply => ({ text, ...(saw && { saw }) });
const next = (reason: string, saw?: readonly string[]): ScriptReply => ({
  output: { stepId: "x", next_action: { action: "next", reason } },
  ...(saw && { saw }),
});
const write = (path: string, content: string, saw?: readonly string[]): ScriptReply => ({
  calls: [{ name: "Write", input: { file_path: path, content } }],
  ...(saw && { saw }),
});

async function go(
  form: "bare" | "gated",
  verdict: Verdict,
  script: readonly ScriptReply[],
  more: Parameters<typeof verdictAgent>[2] & {
    readonly trust?: string;
    readonly args?: { readonly n: number };
  } = {},
) {
  const cwd = projectWith(verdictAgent(form, verdict, more));
  const entries: Entry[] = [];
  const result = await run({
    agent: "ender",
    cwd,
    journal: createMemoryJournal(),
    env: { PATH: process.env.PATH, HOME: homeBeside(), LOCKSTEP_TRUST: more.trust ?? "all" },
    script,
    args: more.args ?? {},
    observe: (entry) => void entries.push(entry),
  });
  const sights = entries.flatMap(({ event }) => (event.type === "step.looked" ? event.sights : []));
  return { ...result, cwd, sights };
}

const PROOF = "test -f proof || { echo no proof yet >&2; exit 1; }";
const MISSING = ["The proof is missing", "no proof yet"];
const keyword = { type: "detect:keyword", config: { verdictKeyword: "ALL_DONE" } };

type Row = {
  readonly name: string;
  readonly form: "bare" | "gated";
  readonly verdict: Verdict;
  readonly key: string;
  readonly onFailure?: object;
  readonly script: readonly ScriptReply[];
  readonly expect: readonly [code: string | null, exitCode: number, iterations: number];
};

const CHECKED: readonly Row[] = [
  {
    name: "the checks pass at once",
    form: "bare",
    verdict: keyword,
    key: "closure.keyword",
    script: [write("proof", "x"), say("ALL_DONE")],
    expect: [null, 0, 1],
  },
  {
    name: "the keyword is given too early: the failure reaches the model, which mends it",
    form: "bare",
    verdict: keyword,
    key: "closure.keyword",
    script: [say("ALL_DONE"), write("proof", "x", MISSING), say("mended"), say("ALL_DONE")],
    expect: [null, 0, 3],
  },
  {
    name: "the same among gates",
    form: "gated",
    verdict: keyword,
    key: "closure.keyword",
    script: [next("ALL_DONE"), write("proof", "x", MISSING), next("ALL_DONE")],
    expect: [null, 0, 2],
  },
  {
    name: "a count leaves room to mend",
    form: "bare",
    verdict: { type: "count:iteration", config: { maxIterations: 2 } },
    key: "closure.iteration",
    script: [say("1"), say("2"), say("3", MISSING), write("proof", "x", MISSING), say("4")],
    expect: [null, 0, 4],
  },
  {
    name: "a count among gates leaves room to mend",
    form: "gated",
    verdict: { type: "count:iteration", config: { maxIterations: 1 } },
    key: "closure.iteration",
    script: [next("1"), write("proof", "x", MISSING), next("2")],
    expect: [null, 0, 2],
  },
  {
    name: "checks that never pass",
    form: "bare",
    verdict: { type: "count:iteration", config: { maxIterations: 1 } },
    key: "closure.iteration",
    script: [say("1"), say("2", MISSING), say("3", MISSING)],
    expect: ["AGENT_VALIDATION_ABORT", 6, 3],
  },
  {
    name: "abort ends at the first failure",
    form: "bare",
    verdict: { type: "count:iteration", config: { maxIterations: 2 } },
    key: "closure.iteration",
    onFailure: { action: "abort" },
    script: [say("1"), say("2")],
    expect: ["AGENT_VALIDATION_ABORT", 6, 2],
  },
  {
    name: "skip passes over a failure",
    form: "bare",
    verdict: keyword,
    key: "closure.keyword",
    onFailure: { action: "skip" },
    script: [say("ALL_DONE")],
    expect: [null, 0, 1],
  },
  {
    name: "the only entry there is",
    form: "bare",
    verdict: { type: "poll:state", config: { resourceType: "file", path: "out", targetState: "exists" } },
    key: "closure.mine",
    script: [write("out", "x"), say("1"), write("proof", "x", MISSING), say("2")],
    expect: [null, 0, 2],
  },
  {
    name: "an entry of a composite",
    form: "bare",
    verdict: {
      type: "meta:composite",
      config: {
        operator: "and",
        conditions: [
          keyword,
          { type: "poll:state", config: { resourceType: "file", path: "out", targetState: "exists" } },
        ],
      },
    },
    key: "closure.composite",
    script: [write("out", "x"), say("ALL_DONE"), write("proof", "x", MISSING), say("ALL_DONE")],
    expect: [null, 0, 2],
  },
];

for (const { name, form, verdict, key, onFailure, script, expect } of CHECKED) {
  test(`${form}, ${verdict.type}: ${name}`, async () => {
    const result = await go(form, verdict, script, checkedBy(key, PROOF, onFailure));
    assert.deepEqual([result.code, result.exitCode, result.iterations], expect, result.reason);
  });
}

// Modules.

const custom = (settings?: object): Verdict => ({
  type: "meta:custom",
  config: { handlerPath: "verdict.mjs", maxIterations: 4, ...(settings && { settings }) },
});
const HANDLER = `export default (definition, args) => {
  const { settings } = definition.runner.verdict.config;
  let iteration = 0, last = null;
  return {
    setCurrentIteration: (n) => { iteration = n; },
    setCurrentSummary: (summary) => { last = summary; },
    isFinished: async () => iteration >= args.n && last.assistantResponses[0] === settings.word,
    getVerdictDescription: () => definition.name + " at " + iteration,
  };
};`;

const MODULES: readonly {
  readonly name: string;
  readonly module: string;
  readonly says: readonly string[];
  readonly iterations: number;
  readonly code?: string;
  readonly sight: RegExp;
}[] = [
  { name: "a handler", module: HANDLER, says: ["ok", "no", "ok"], iterations: 3, sight: /^ender at 3$/ },
  {
    name: "a plain function of what is at hand",
    module: "export default (definition, args, now) => now.iteration === args.n",
    says: ["a", "b"],
    iterations: 2,
    sight: /verdict\.mjs says that the run is over/,
  },
  {
    name: "an answer with its reason",
    module:
      "export default async (d, a, now) => ({ finished: now.stepId === 'continuation.x', reason: now.stepId })",
    says: ["a", "b"],
    iterations: 2,
    sight: /^continuation\.x$/,
  },
  ...(
    [
      ["a module that throws", "export default () => { throw new Error('no luck') }", /HOOK_THREW: no luck/],
      ["a module that fails to load", "throw new Error('no'); export default 1", /MODULE_BROKEN/],
      ["a module without a default export", "export const x = 1", /AC-VERDICT-006: Its default export/],
      ["a module that says neither yes nor no", "export default () => 'yes'", /AC-VERDICT-007/],
      ["a handler that says neither", "export default () => ({ isFinished: () => 1 })", /AC-VERDICT-007/],
      ["a module that crashes", "export default () => process.exit(1)", /HOOK_CRASHED: .* exited with 1/],
      [
        "a module that changes its arguments",
        "export default (d, args) => { args.n = 9; return true }",
        /ContextMutationForbidden/,
      ],
    ] as const
  ).map(([name, module, sight]) => ({
    name,
    module,
    says: ["a", "b", "c", "d"],
    iterations: 4,
    code: "AGENT_MAX_ITERATIONS",
    sight,
  })),
];

for (const { name, module, says, iterations, code = null, sight } of MODULES) {
  test(`meta:custom: ${name}`, async () => {
    const result = await go(
      "bare",
      custom({ word: "ok" }),
      says.map((text) => say(text)),
      {
        files: { "verdict.mjs": module },
        parameters: { n: { type: "number", cli: "--n", description: "x", default: 2 } },
      },
    );
    assert.deepEqual([result.code, result.iterations], [code, iterations], result.reason);
    assert.match(result.sights.at(-1)!.what, sight);
  });
}

test("meta:custom among gates, as one condition of a composite", async () => {
  const verdict = {
    type: "meta:composite",
    config: {
      operator: "and",
      conditions: [keyword, { type: "meta:custom", config: { handlerPath: "v.mjs" } }],
    },
  };
  const result = await go("gated", verdict, [next("no"), next("ALL_DONE")], {
    files: {
      "v.mjs": "export default (d, a, now) => now.structuredOutput.next_action.reason === 'ALL_DONE'",
    },
  });
  assert.deepEqual([result.outcome, result.iterations], ["completed", 2], result.reason);
});

test("a module is not loaded without trust", async () => {
  const files = {
    "verdict.mjs":
      "import { writeFileSync } from 'node:fs'; writeFileSync('ran', ''); export default () => true",
  };
  const result = await go("bare", custom(), [say("x")], { files, trust: "" });
  assert.deepEqual([result.code, result.exitCode], ["NOT_TRUSTED", 3]);
  assert.match(result.reason, /node \.agent\/ender\/verdict\.mjs \(sha256 [0-9a-f]{64}\)/);
  assert.equal(existsSync(join(result.cwd, "ran")), false);
});

test("a resumed run looks again, with the module as it was", async () => {
  const cwd = projectWith(
    verdictAgent("bare", custom(), {
      files: { "verdict.mjs": "export default (d, a, now) => now.iteration === 3" },
    }),
  );
  const journal = createMemoryJournal();
  const env = { PATH: process.env.PATH, HOME: homeBeside(), LOCKSTEP_TRUST: "all" };
  const stop = new AbortController();
  const first = await run({
    agent: "ender",
    cwd,
    journal,
    env,
    script: [say("1"), say("2"), say("3")],
    signal: stop.signal,
    observe: ({ event }) => {
      if (event.type === "step.looked") stop.abort();
    },
  });
  assert.equal(first.outcome, "interrupted");
  const result = await resume({ run: first.run!, cwd, journal, env });
  assert.deepEqual([result.outcome, result.iterations], ["completed", 3], result.reason);
});
