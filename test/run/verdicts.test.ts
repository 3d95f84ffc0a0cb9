/** How a run ends by its verdict, through the public door: every type, with and without gates. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createMemoryJournal, run, type Entry, type ScriptReply } from "../../src/run/index.ts";
import { homeBeside, projectWith } from "./project.ts";
import { verdictAgent, type Verdict } from "./verdict-agents.ts";

const say = (text: string): ScriptReply => ({ text });
const next = (reason = "go on", more: object = {}): ScriptReply => ({
  output: { stepId: "x", next_action: { action: "next", reason }, ...more },
});
const write = (path: string, content: string): ScriptReply => ({
  calls: [{ name: "Write", input: { file_path: path, content } }],
});
/** So often that only a ceiling ends it. */
const many = (reply: ScriptReply): readonly ScriptReply[] => Array.from({ length: 60 }, () => reply);

/** What the server says, request by request; the last word stays. */
let words: string[] = [];
let asked = 0;
const server = createServer((_, response) => {
  asked += 1;
  const word = words.length > 1 ? words.shift()! : (words[0] ?? "");
  if (word === "500") response.writeHead(500).end();
  else response.end(word);
});
let address = "";
before(async () => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => void server.close());

async function go(
  form: "bare" | "gated",
  verdict: Verdict,
  script: readonly ScriptReply[],
  more: {
    readonly runner?: object;
    readonly parameters?: object;
    readonly args?: { readonly [name: string]: string | number };
  } = {},
) {
  const cwd = projectWith(verdictAgent(form, verdict, more));
  const entries: Entry[] = [];
  const result = await run({
    agent: "ender",
    cwd,
    journal: createMemoryJournal(),
    env: { PATH: process.env.PATH, HOME: homeBeside(), LOCKSTEP_TRUST: "all" },
    script,
    args: more.args ?? {},
    observe: (entry) => void entries.push(entry),
  });
  return { ...result, entries };
}

const file = (targetState: string, path = "out.txt") => ({ resourceType: "file", path, targetState });
const keyword = { type: "detect:keyword", config: { verdictKeyword: "ALL_DONE" } };
const signal = (requiredFields?: unknown) => ({
  type: "detect:structured",
  config: { signalType: "wrap-up", ...(requiredFields === undefined ? {} : { requiredFields }) },
});
const composite = (operator: string, ...conditions: object[]) => ({
  type: "meta:composite",
  config: { operator, conditions },
});

type Row = {
  readonly name: string;
  readonly form: "bare" | "gated";
  readonly verdict: Verdict;
  readonly script: readonly ScriptReply[];
  /** Visits after which it completes. */
  readonly iterations: number;
  readonly reason: RegExp;
};

const FIRES: readonly Row[] = [
  {
    name: "count:iteration",
    form: "bare",
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    script: [say("1"), say("2"), say("3")],
    iterations: 3,
    reason: /Completed 3\/3 iterations/,
  },
  {
    name: "count:iteration",
    form: "gated",
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    script: [next(), next(), next()],
    iterations: 3,
    reason: /Completed 3\/3 iterations/,
  },
  {
    name: "count:check: every visit",
    form: "bare",
    verdict: { type: "count:check", config: { maxChecks: 2 } },
    script: [say("1"), say("2")],
    iterations: 2,
    reason: /Completed 2\/2 status checks/,
  },
  {
    name: "count:check: visits of the closure",
    form: "gated",
    verdict: { type: "count:check", config: { maxChecks: 2 } },
    script: [
      next(),
      { output: { stepId: "x", next_action: { action: "handoff" } } },
      { output: { stepId: "x", next_action: { action: "repeat" } } },
      { output: { stepId: "x", next_action: { action: "repeat" } } },
    ],
    iterations: 4,
    reason: /Completed 2\/2 status checks/,
  },
  {
    name: "detect:keyword in the text",
    form: "bare",
    verdict: keyword,
    script: [say("all_done"), say("so: ALL_DONE.")],
    iterations: 2,
    reason: /The keyword ALL_DONE was given/,
  },
  {
    name: "detect:keyword in the answer",
    form: "gated",
    verdict: keyword,
    script: [next(), next("ALL_DONE")],
    iterations: 2,
    reason: /The keyword ALL_DONE was given/,
  },
  {
    name: "detect:structured: a block",
    form: "bare",
    verdict: signal(),
    script: [say("```json\n{}\n```"), say("done\n```wrap-up\n{}\n```\n")],
    iterations: 2,
    reason: /The signal wrap-up was given/,
  },
  {
    name: "detect:structured: not an example quoted in a longer fence, nor a block that was not closed",
    form: "bare",
    verdict: signal(),
    script: [
      say("I will end with:\n````markdown\n```wrap-up\n{}\n```\n````"),
      say("~~~text\n```wrap-up\n{}\n```\n~~~"),
      say("````\n```\n```wrap-up\n{}\n```\n````"),
      say("~~~\n```\n```wrap-up\n{}\n```\n~~~"),
      say("```wrap-up\n{}"),
      say("1. Done:\n\n     ```wrap-up\n     {}\n     ```"),
    ],
    iterations: 6,
    reason: /The signal wrap-up was given/,
  },
  {
    name: "detect:structured: a block between tildes",
    form: "bare",
    verdict: signal(),
    script: [say("~~~wrap-up\n```\n~~~")],
    iterations: 1,
    reason: /The signal wrap-up was given/,
  },
  {
    name: "detect:structured: fields that must be there",
    form: "bare",
    verdict: signal(["summary", "n"]),
    script: [say('```wrap-up\n{"summary":"x"}\n```'), say('```wrap-up\n{"summary":"x","n":null}\n```')],
    iterations: 2,
    reason: /wrap-up/,
  },
  {
    name: "detect:structured: fields that must be so",
    form: "bare",
    verdict: signal({ state: "ok", at: { n: 1 } }),
    script: [
      say('```wrap-up\n{"state":"ok","at":{"n":2}}\n```'),
      say('```wrap-up\n{"at":{"n":1},"state":"ok"}\n```'),
    ],
    iterations: 2,
    reason: /wrap-up/,
  },
  {
    name: "detect:structured in the answer",
    form: "gated",
    verdict: signal(["summary"]),
    script: [next("x", { signal: "wrap-up" }), next("x", { signal: "wrap-up", summary: "s" })],
    iterations: 2,
    reason: /wrap-up/,
  },
  {
    name: "poll:state: a file that is there",
    form: "bare",
    verdict: { type: "poll:state", config: file("exists") },
    script: [say("not yet"), write("out.txt", "x"), say("written")],
    iterations: 2,
    reason: /out\.txt is there/,
  },
  {
    name: "poll:state: what a file holds",
    form: "gated",
    verdict: { type: "poll:state", config: file("re:^STATUS: (?:done|ok)$") },
    script: [write("out.txt", "STATUS: no"), next(), write("out.txt", "STATUS: ok"), next()],
    iterations: 2,
    reason: /out\.txt holds/,
  },
  {
    name: "poll:state: a file that is gone",
    form: "bare",
    verdict: { type: "poll:state", config: file("absent") },
    script: [say("nothing to do")],
    iterations: 1,
    reason: /out\.txt is not there/,
  },
  ...(["and", "or", "first"] as const).map((operator): Row => ({
    name: `meta:composite ${operator}: a file and a keyword`,
    form: "bare",
    verdict: composite(operator, { type: "poll:state", config: file("exists") }, keyword),
    script: [write("out.txt", "x"), say("written"), say("ALL_DONE")],
    iterations: operator === "and" ? 2 : 1,
    reason: operator === "and" ? /out\.txt is there; The keyword ALL_DONE/ : /out\.txt is there/,
  })),
  {
    name: "meta:composite: one inside of another, and a count",
    form: "gated",
    verdict: composite(
      "or",
      { type: "count:iteration", config: { maxIterations: 4 } },
      composite("and", keyword, { type: "poll:state", config: file("exists") }),
    ),
    script: [next("ALL_DONE"), next(), next(), next()],
    iterations: 4,
    reason: /Completed 4\/4 iterations/,
  },
  {
    name: "detect:graph: the closing intent",
    form: "gated",
    verdict: { type: "detect:graph", config: {} },
    script: [
      next(),
      { output: { stepId: "x", next_action: { action: "handoff" } } },
      { output: { stepId: "x", next_action: { action: "closing" } } },
    ],
    iterations: 3,
    reason: /closure\.x/,
  },
  {
    name: "poll:state: closing still ends the run",
    form: "gated",
    verdict: { type: "poll:state", config: file("exists") },
    script: [
      next(),
      { output: { stepId: "x", next_action: { action: "handoff" } } },
      { output: { stepId: "x", next_action: { action: "closing" } } },
    ],
    iterations: 3,
    reason: /closure\.x/,
  },
];

for (const { name, form, verdict, script, iterations, reason } of FIRES) {
  test(`${form}, ${name}: completed after ${iterations}`, async () => {
    const result = await go(form, verdict, script);
    assert.deepEqual(
      [result.outcome, result.exitCode, result.iterations],
      ["completed", 0, iterations],
      result.reason,
    );
    assert.match(result.reason, reason);
  });
}

const NEVER: readonly [name: string, verdict: Verdict, reply?: ScriptReply][] = [
  ["detect:keyword", keyword, say("nothing")],
  ["detect:structured", signal()],
  ["poll:state of a file", { type: "poll:state", config: file("exists") }],
  ["poll:state of a path that leads out", { type: "poll:state", config: file("exists", "{uv-where}") }],
  ["poll:state of an issue", { type: "poll:state", config: {} }],
  ["meta:composite", composite("and", keyword, { type: "poll:state", config: file("absent") })],
];

for (const form of ["bare", "gated"] as const) {
  for (const [name, verdict, reply] of NEVER) {
    test(`${form}, ${name} that never fires: stopped at the ceiling, exit 4`, async () => {
      const config = { maxIterations: 5, ...verdict.config };
      const parameters = {
        issue: { type: "number", cli: "--issue", description: "x", default: 1 },
        where: { type: "string", cli: "--where", description: "x", default: "../x" },
      };
      const script = many(form === "gated" ? next("no") : (reply ?? say("no")));
      const result = await go(form, { ...verdict, config }, script, { parameters });
      assert.deepEqual(
        [result.code, result.exitCode, result.iterations],
        ["AGENT_MAX_ITERATIONS", 4, 5],
        result.reason,
      );
    });
  }
}

test("the ceiling is 20 where none is written", async () => {
  const result = await go("bare", keyword, many(say("no")));
  assert.deepEqual([result.code, result.iterations], ["AGENT_MAX_ITERATIONS", 20]);
});

const API: readonly [name: string, answers: readonly string[], iterations: number][] = [
  ["once the state is reached", ['{"state":"open"}', '{"state":"done","by":1}'], 2],
  ["after an answer that was none", ["500", "<html>", '{"state":"done"}'], 3],
];

for (const [name, answers, iterations] of API) {
  test(`poll:state of an address: completed ${name}`, async () => {
    words = [...answers];
    const config = { resourceType: "api", url: `${address}/items/{uv-item}`, targetState: { state: "done" } };
    const parameters = { item: { type: "string", cli: "--item", description: "x", required: true } };
    const result = await go("bare", { type: "poll:state", config }, many(say("work")), {
      parameters,
      args: { item: "a/b" },
    });
    assert.deepEqual([result.outcome, result.iterations], ["completed", iterations], result.reason);
    const looks = result.entries.flatMap(({ event }) => (event.type === "step.looked" ? event.sights : []));
    assert.deepEqual(
      looks.map(({ met }) => met),
      [...Array.from({ length: iterations - 1 }, () => false), true],
    );
    assert.match(looks[0]!.what, /items\/a%2Fb/);
  });
}

test("what is outside is only looked at when it decides anything", async () => {
  words = ['{"state":"done"}'];
  const api = {
    type: "poll:state",
    config: { resourceType: "api", url: `${address}/x`, targetState: { state: "done" } },
  };
  const rows: readonly (readonly [Verdict, words: readonly string[], reason: RegExp, looks: number])[] = [
    [composite("and", keyword, api), ["no", "no", "ALL_DONE"], /ALL_DONE/, 1],
    [composite("and", api, keyword), ["no", "no", "ALL_DONE"], /ALL_DONE/, 1],
    [composite("or", keyword, api), ["ALL_DONE"], /ALL_DONE/, 0],
    [composite("or", api, keyword), ["ALL_DONE"], /ALL_DONE/, 0],
    [composite("first", api, keyword), ["ALL_DONE"], /ALL_DONE/, 0],
    [composite("or", composite("and", api, keyword), keyword), ["no", "ALL_DONE"], /ALL_DONE/, 0],
    [composite("or", keyword, api), ["no"], /\/x/, 1],
  ];
  for (const [verdict, said, reason, looks] of rows) {
    asked = 0;
    const result = await go("bare", verdict, said.map(say));
    const about = `${JSON.stringify(verdict)} ${result.reason}`;
    assert.deepEqual([result.outcome, result.iterations, asked], ["completed", said.length, looks], about);
    assert.match(result.completionReason ?? "", reason, about);
  }
});

test("an address is not asked without trust", async () => {
  asked = 0;
  const config = { resourceType: "api", url: `${address}/x`, targetState: {} };
  const cwd = projectWith(verdictAgent("bare", { type: "poll:state", config }));
  const result = await run({
    agent: "ender",
    cwd,
    journal: createMemoryJournal(),
    env: { PATH: process.env.PATH, HOME: homeBeside() },
    script: many(say("work")),
  });
  assert.deepEqual([result.code, result.exitCode, asked], ["NOT_TRUSTED", 3, 0]);
  assert.match(result.reason, new RegExp(`GET ${address}/x`));
});

const CRITERIA: readonly [verdict: Verdict, says: RegExp, runner?: object][] = [
  [{ type: "count:iteration", config: { maxIterations: 1 } }, /when one iteration is over\./],
  [{ type: "count:check", config: { maxChecks: 2 } }, /when 2 status checks are over\./],
  [keyword, /when it is verified and you have written ALL_DONE\./],
  [
    signal({ state: "ok" }),
    /a fenced code block of the type wrap-up that holds a JSON object with the field state = "ok"\./,
  ],
  [{ type: "poll:state", config: file("STATUS: ok") }, /when the file out\.txt contains "STATUS: ok"\./],
  [
    composite(
      "or",
      composite("and", keyword, { type: "count:check", config: { maxChecks: 1 } }),
      signal(["n"]),
    ),
    /when one of these holds: \(all of these hold: it is verified and you have written ALL_DONE; one status check is over\); you have given .* with the field n\./,
  ],
  [{ type: "poll:state", config: {} }, /when the issue is closed\./],
  [
    { type: "poll:state", config: {} },
    /when what the issue asks for is done \(leave the issue itself open\)\./,
    { integrations: { github: { defaultClosureAction: "label-only" } } },
  ],
  [
    composite("or", { type: "poll:state", config: {} }, keyword),
    /when one of these holds: what the issue asks for is done \(leave the issue itself open\); it is/,
    { integrations: { github: { defaultClosureAction: "label-only" } } },
  ],
];

for (const [verdict, says, runner = {}] of CRITERIA) {
  test(`the model is told: ${says.source}`, async () => {
    const parameters = { issue: { type: "number", cli: "--issue", description: "x", default: 1 } };
    const config = { maxIterations: 1, ...verdict.config };
    const script = [{ ...next("no"), saw: [`re:${says.source}`] }];
    const result = await go("gated", { ...verdict, config }, script, { parameters, runner });
    assert.notEqual(result.code, "SCRIPT_MISMATCH", result.reason);
  });
}
