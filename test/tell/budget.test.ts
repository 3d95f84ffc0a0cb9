import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend, TurnRequest, TurnResult } from "../../src/engine/ports.ts";
import { budgetLine, budgetOf } from "../../src/tell/budget.ts";
import type { Flow, StepGuard, Move, Step, StopRule } from "../../src/flow/flow.ts";
import { sketchCheck, sketchFlow, sketchPrompt, type StepSketch } from "../../src/testing/flows.ts";
import { play } from "../engine/played.ts";

/** A flow of sketches; some steps become questions about others. */
function flowOf(
  steps: { readonly [id: string]: StepSketch & { readonly aside?: string } },
  more: Partial<Flow> = {},
): Flow {
  const sketches = Object.fromEntries(
    Object.entries(steps).map(([id, { aside: _aside, ...sketch }]) => [id, sketch]),
  );
  const flow = sketchFlow(sketches, { checks: { proof: sketchCheck("proof", "true") }, ...more });
  return {
    ...flow,
    steps: Object.fromEntries(
      Object.entries(flow.steps).map(([id, step]): [string, Step] => {
        const aside = steps[id]?.aside;
        return [id, aside === undefined ? step : { ...step, aside }];
      }),
    ),
  };
}

function guard(maxFailures: number, back: StepGuard["back"] = { kind: "caller" }): StepGuard {
  const checks = [{ check: "proof", edition: sketchPrompt("Mend it.") }];
  return { on: "closing", checks, onFailure: "retry", maxFailures, back };
}

const QUESTION = {
  repairs: 0,
  miss: { kind: "label", label: "ng" },
} as const;

const goto = (step: string): Move => ({ kind: "goto", step });
const times = (max: number, move: Move, after: Move): Move => ({ kind: "times", max, move, after });

type Row = {
  readonly name: string;
  readonly flow: Flow;
  readonly answers: number | null;
  readonly visits: number | null;
  readonly line: RegExp;
  /** The worst that a hostile model achieves; the bound itself unless it is known to be loose. */
  readonly reached?: number;
};

const rows: readonly Row[] = [
  {
    name: "a straight flow: its length, each answer repaired once, the first one forgiven",
    flow: flowOf({ a: { edges: { next: "b" } }, b: { edges: { closing: null } } }),
    answers: 6,
    visits: 3,
    line: /^6 answers \(the longest path through the flow\), 150 model calls including tool use$/,
  },
  {
    name: "a step that may take one response in an attempt is not repaired",
    flow: flowOf({
      a: { edges: { next: "b" }, limits: { perAttempt: { turns: 1 } } },
      b: { edges: { closing: null }, limits: { perAttempt: { turns: 1 } } },
    }),
    answers: 3,
    visits: 3,
    line: /^3 answers \(the longest path through the flow\)$/,
    // An answer that would be repaired ends the run instead.
    reached: 2,
  },
  {
    name: "steps that may take so many responses in all",
    flow: flowOf(
      {
        a: { edges: { next: "b" }, limits: { turns: 3 } },
        b: { edges: { next: "a" }, limits: { turns: 2 } },
      },
      { limits: { visits: 12 } },
    ),
    answers: 5,
    visits: 12,
    line: /^5 answers \(the limits of its steps on turns\)$/,
  },
  {
    name: "a run that may take so many responses",
    flow: flowOf({ a: { edges: { next: "a", closing: null } } }, { limits: { visits: 12, turns: 7 } }),
    answers: 7,
    visits: 12,
    line: /^7 answers \(the limit of 7 turns\)$/,
  },
  {
    name: "a circle: the ceiling on visits",
    flow: flowOf({ a: { edges: { next: "a", closing: null } } }, { limits: { visits: 12 } }),
    answers: 24,
    visits: 12,
    line: /^24 answers \(12 iterations × 2 tries\), 600 model calls including tool use$/,
  },
  {
    name: "the ceiling cuts a straight flow short",
    flow: flowOf(
      { a: { edges: { next: "b" } }, b: { edges: { next: "c" } }, c: { edges: { closing: null } } },
      { limits: { visits: 2 } },
    ),
    answers: 4,
    visits: 2,
    line: /\(2 iterations × 2 tries\)/,
  },
  {
    name: "a count that means success",
    flow: flowOf(
      { a: { edges: { done: "a" }, free: true } },
      { stop: { kind: "visits", count: 5 }, limits: { visits: 9 } },
    ),
    answers: 5,
    visits: 5,
    line: /^5 answers \(5 iterations\),/,
  },
  ...(
    [
      [
        "a count beside other conditions",
        {
          kind: "any",
          of: [
            { kind: "keyword", text: "never said" },
            { kind: "visits", count: 3 },
          ],
        },
        3,
      ],
      [
        "the least of several counts",
        {
          kind: "any",
          of: [
            { kind: "visits", count: 4 },
            { kind: "visits", count: 2 },
          ],
        },
        2,
      ],
      [
        "counts that must all be reached",
        {
          kind: "all",
          of: [
            { kind: "visits", count: 4 },
            { kind: "visits", count: 2 },
          ],
        },
        4,
      ],
      [
        "a count that something else has to go with",
        {
          kind: "all",
          of: [
            { kind: "keyword", text: "never said" },
            { kind: "visits", count: 3 },
          ],
        },
        9,
      ],
      ["status checks where every visit is one", { kind: "checks", count: 3 }, 3],
      ["a word that may never come", { kind: "keyword", text: "never said" }, 9],
      ["something outside", { kind: "state", resource: { kind: "github-issue", want: "closed" } }, 9],
    ] as const satisfies readonly (readonly [string, StopRule, number])[]
  ).map(([name, stop, most]): Row => ({
    name,
    flow: flowOf({ a: { edges: { done: "a" }, free: true } }, { stop, limits: { visits: 9 } }),
    answers: most,
    visits: most,
    line: new RegExp(`\\(${most} iterations\\)`),
  })),
  {
    name: "status checks are only visits of steps that check",
    flow: flowOf(
      {
        a: { edges: { next: "a", handoff: "close" }, answer: { repairs: 0 } },
        close: { kind: "close", edges: { repeat: "close", closing: null }, answer: { repairs: 0 } },
      },
      { stop: { kind: "checks", count: 2 }, limits: { visits: 6 } },
    ),
    answers: 6,
    visits: 6,
    line: /\(6 iterations\)/,
  },
  {
    name: "checks before an end by a count cost a visit for each failure but the last",
    flow: flowOf(
      { a: { edges: { done: "a" }, free: true } },
      {
        stop: { kind: "visits", count: 3 },
        stopGuard: { ...guard(3), back: { kind: "onward" } },
        limits: { visits: 5 },
      },
    ),
    answers: 5,
    visits: 5,
    line: /^5 answers \(3 iterations \+ 2 after failed checks\)/,
  },
  {
    name: "checks that end the run at the first failure cost none",
    flow: flowOf(
      { a: { edges: { done: "a" }, free: true } },
      {
        stop: { kind: "visits", count: 3 },
        stopGuard: { ...guard(3), onFailure: "abort", back: { kind: "onward" } },
        limits: { visits: 5 },
      },
    ),
    answers: 3,
    visits: 3,
    line: /\(3 iterations\)/,
  },
  {
    name: "a count of one, and a first answer that is forgiven",
    flow: flowOf(
      { a: { edges: { next: "a" }, answer: { repairs: 0 } } },
      { stop: { kind: "visits", count: 1 }, limits: { visits: 5 } },
    ),
    answers: 2,
    visits: 2,
    line: /\(2 iterations\)/,
  },
  {
    name: "a count that means success does not end what is being mended",
    flow: flowOf(
      {
        a: { edges: { next: "a", handoff: "close" }, answer: { repairs: 0 } },
        close: { kind: "close", edges: { closing: null }, guard: guard(3), answer: { repairs: 0 } },
      },
      { stop: { kind: "visits", count: 2 }, limits: { visits: 6 } },
    ),
    answers: 6,
    visits: 6,
    line: /\(6 iterations\)/,
  },
  {
    name: "only the step whose checks failed leads where they lead back to",
    flow: flowOf(
      {
        a: { edges: { next: "a", handoff: "close" }, answer: { repairs: 0 } },
        close: {
          kind: "close",
          edges: { closing: null },
          guard: guard(3, { kind: "goto", step: "fix" }),
          answer: { repairs: 0 },
        },
        fix: { edges: { next: "close" }, answer: { repairs: 1 } },
      },
      { stop: { kind: "visits", count: 2 }, limits: { visits: 6 } },
    ),
    answers: 8,
    visits: 6,
    line: /\(6 iterations on the most expensive path\)/,
  },
  {
    name: "failed checks lead back one time less than they may fail",
    flow: flowOf({
      a: { edges: { next: "b" } },
      b: { edges: { next: "close" } },
      close: { kind: "close", edges: { closing: null }, guard: guard(3) },
    }),
    answers: 16,
    visits: 8,
    line: /the longest path through the flow, going back 2 times after failed checks/,
  },
  {
    name: "failed checks that end the run lead nowhere",
    flow: flowOf({
      a: { edges: { next: "close" } },
      close: { kind: "close", edges: { closing: null }, guard: { ...guard(3), onFailure: "abort" } },
    }),
    answers: 6,
    visits: 3,
    line: /longest path through the flow\),/,
  },
  {
    name: "a dear step on a circle of cheap ones is not counted at every visit",
    flow: flowOf(
      { a: { edges: { next: "b" }, answer: { repairs: 3 } }, b: { edges: { done: "b" }, free: true } },
      { limits: { visits: 5 } },
    ),
    answers: 11,
    visits: 5,
    line: /5 iterations on the most expensive path/,
  },
  {
    name: "branches: the longest one counts",
    flow: flowOf({
      a: {
        edges: {
          next: {
            kind: "switch",
            on: ["size"],
            cases: { big: { kind: "goto", step: "b" } },
            otherwise: { kind: "goto", step: "c" },
          },
        },
        handoff: ["size"],
      },
      b: { edges: { next: "c" } },
      c: { edges: { closing: null } },
    }),
    answers: 8,
    visits: 4,
    line: /longest path/,
  },
  {
    name: "a fork: all its siblings, then the join",
    flow: flowOf({
      a: { edges: { next: { kind: "fork", steps: ["b", "c"], join: "d" } }, answer: { repairs: 0 } },
      b: { edges: { closing: null } },
      c: { edges: { closing: null } },
      d: { edges: { closing: null } },
    }),
    answers: 8,
    visits: 5,
    line: /longest path/,
  },
  {
    name: "a fork in one case of several",
    flow: flowOf({
      a: {
        edges: {
          next: {
            kind: "switch",
            on: ["k"],
            cases: { x: { kind: "fork", steps: ["b", "c"], join: "d" } },
            otherwise: goto("d"),
          },
        },
        answer: { repairs: 0 },
      },
      b: { edges: { closing: null } },
      c: { edges: { closing: null } },
      d: { edges: { closing: null } },
    }),
    answers: 8,
    visits: 5,
    line: /longest path/,
    reached: 4,
  },
  {
    name: "an edge that counts lets its step be repeated so often",
    flow: flowOf({
      a: {
        edges: {
          again: times(3, goto("a"), goto("b")),
        },
        answer: { repairs: 0 },
      },
      b: { edges: { closing: null } },
    }),
    answers: 7,
    visits: 6,
    line: /longest path/,
  },
  {
    name: "a question about a step is asked beside the counted visits",
    flow: flowOf(
      {
        work: { edges: { done: "check" }, free: true },
        check: { aside: "work", kind: "verify", edges: { ok: null, ng: "work" }, answer: QUESTION },
      },
      { limits: { visits: 4 } },
    ),
    answers: 8,
    visits: 8,
    line: /\(4 iterations × 2 answers\)/,
  },
  {
    name: "a question whose edge back counts",
    flow: flowOf(
      {
        work: { edges: { done: "check" }, free: true },
        check: {
          aside: "work",
          kind: "verify",
          answer: QUESTION,
          edges: {
            ok: null,
            ng: times(2, goto("work"), { kind: "end", outcome: "completed" }),
          },
        },
      },
      { limits: { visits: 100 } },
    ),
    answers: 6,
    visits: 6,
    line: /longest path/,
  },
  {
    name: "a command asks no model",
    flow: commanded(flowOf({ a: { edges: { done: "b" } }, b: { edges: { closing: null } } })),
    answers: 2,
    visits: 20,
    line: /^2 answers \(the longest path/,
    // A scenario runs no commands.
    reached: 0,
  },
];

/** The first step is a command's. */
function commanded(flow: Flow): Flow {
  const { a, ...others } = flow.steps;
  const by = { kind: "command", command: "true", args: [], timeoutMs: 1 } as const;
  return { ...flow, steps: { a: { ...a!, by, answer: { kind: "text" } }, ...others } };
}

for (const { name, flow, answers, visits, line } of rows) {
  test(`budget: ${name}`, () => {
    const budget = budgetOf(flow);
    assert.equal(budget.answers.most, answers);
    assert.equal(budget.visits.most, visits);
    assert.match(budgetLine(budget), line);
  });
}

test("a question that is asked round and round has no limit, and the budget says so", () => {
  const flow = flowOf({
    work: { edges: { done: "check" }, free: true },
    check: { aside: "work", edges: { again: "check", ok: null }, answer: QUESTION },
  });
  const budget = budgetOf(flow);
  assert.equal(budget.answers.most, null);
  assert.match(budgetLine(budget), /^no upper bound \(questions about a step form a loop/);
});

// Hostile models: seeded ones that misfit, repeat and fail checks as they please, and one that takes the dearest way.

for (const { name, flow, answers, reached } of rows) {
  if (reached === 0) continue;
  test(`no run goes beyond its budget, and some run reaches it: ${name}`, async () => {
    const worst = await worstRun(flow, 400);
    assert.ok(worst <= answers!, `${worst} answers, but the budget says ${answers}`);
    assert.equal(worst, reached ?? answers);
  });
}

test("a model that calls tools without end stays within the responses", async () => {
  const flow = flowOf(
    {
      a: { edges: { next: "b" }, turns: 4 },
      b: { edges: { next: "a", closing: null }, turns: 3, tool: "finish" },
    },
    { limits: { visits: 6 } },
  );
  const most = budgetOf(flow).responses.most!;
  assert.equal(most, 22);
  for (let seed = 1; seed <= 100; seed += 1) {
    const random = randomFrom(seed);
    const { asked } = await play({
      flow,
      model: hostile(flow, (request, labels) => {
        const { turn, step } = request.asker;
        const isLast = turn === flow.steps[step]!.turns || random() < 0.1;
        return isLast ? settle(request, labels[0]!) : callTool(random() < 0.3);
      }),
    });
    assert.ok(asked.length <= most);
  }
});

async function worstRun(flow: Flow, tries: number): Promise<number> {
  let worst = 0;
  for (let seed = 1; seed <= tries; seed += 1) {
    const random = randomFrom(seed);
    // How much of a nuisance this one is.
    const [spite, failing] = [seed % 3 === 0 ? 1 : random(), seed % 2 === 0 ? 1 : random()];
    const spoilt = new Set<string>();
    const model = hostile(flow, (request, labels) => {
      const { step, visit } = request.asker;
      const { answer } = flow.steps[step]!;
      const repairs = answer.kind === "object" ? answer.repairs : 0;
      const isFatal = request.asker.turn > repairs && spoilt.size > 0;
      if (!isFatal && random() < spite) {
        if (request.asker.turn > repairs) spoilt.add(`${step}@${visit}`);
        return { kind: "reply", text: "no", calls: [], usage: USAGE };
      }
      const favourite = labels[seed % labels.length]!;
      return settle(request, random() < 0.8 ? favourite : labels[Math.floor(random() * labels.length)]!);
    });
    const checks = Array.from({ length: 40 }, () => [{ ok: random() >= failing, summary: "red" }]);
    const { asked } = await play({ flow, model, checks });
    worst = Math.max(worst, asked.length);
  }
  return worst;
}

type Say = (request: TurnRequest, labels: readonly string[]) => TurnResult;

/** A model that knows the flow it is in; it never aborts, since that ends a run early. */
function hostile(flow: Flow, say: Say): Backend {
  return {
    spec: { id: "hostile", options: null },
    turn: (request) => {
      const { decide } = flow.steps[request.asker.step]!;
      const labels = decide.by === "field" ? decide.allow : ["done"];
      const size = ["big", "small"][request.asker.turn % 2]!;
      const result = say(request, labels);
      if (result.kind !== "reply" || result.output === undefined) return Promise.resolve(result);
      return Promise.resolve({ ...result, output: { size, ...result.output } });
    },
  };
}

const USAGE = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };

function settle(request: TurnRequest, label: string): TurnResult {
  const output = { next_action: { action: label } };
  const { output: wanted } = request;
  if (wanted?.channel.kind !== "tool") return { kind: "reply", text: "", calls: [], output, usage: USAGE };
  const calls = [{ id: "c", name: wanted.channel.name, input: output }];
  return { kind: "reply", text: "", calls, usage: USAGE };
}

function callTool(silent: boolean): TurnResult {
  const calls = silent ? [] : [{ id: "c", name: "Read", input: {} }];
  return { kind: "reply", text: "…", calls, usage: USAGE };
}

function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}
