import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow, StepGuard, Move } from "../../src/flow/flow.ts";
import { outlineOf, type Edge } from "../../src/tell/outline.ts";
import type { Problem } from "../../src/flow/problem.ts";
import { sketchCheck, sketchFlow, sketchMachine, sketchPrompt } from "../../src/testing/flows.ts";

const goto = (step: string): Move => ({ kind: "goto", step });
const guard: StepGuard = {
  on: "closing",
  checks: [{ check: "proof", edition: sketchPrompt("Mend it.") }],
  onFailure: "retry",
  maxFailures: 3,
  back: { kind: "caller" },
};
const FAILED: Move = { kind: "end", outcome: "failed", code: "TOO_OFTEN", as: "fallback" };
const fork = (steps: readonly string[], join: string | null, policy?: "independent"): Move => ({
  kind: "fork",
  steps,
  join,
  ...(policy && { policy }),
});
const times = (max: number, move: Move, after: Move): Move => ({ kind: "times", max, move, after });
const checks = { proof: sketchCheck("proof", "true") };

/** `a -next[risk = high]-> b`, with `~` before the arrow's head where the edge closes a circle. */
function edgeText({ from, label, as, when, to, isLoop, kind }: Edge): string {
  const target =
    to.kind === "end" ? (to.outcome === "completed" ? "end" : to.code) : to.kind === "any" ? "any" : to.step;
  const word = as === null ? label : `${label}/${as}`;
  return `${from} -${word}${when.length === 0 ? "" : `[${when.join(", ")}]`}${isLoop ? "~" : "-"}> ${target} ${kind}`;
}

const rows: readonly [name: string, flow: Flow, edges: readonly string[]][] = [
  [
    "a straight flow",
    sketchFlow({ a: { edges: { next: "b" } }, b: { edges: { closing: null } } }),
    ["a -next-> b goto", "b -closing-> end end"],
  ],
  [
    "circles are cut where they close",
    sketchFlow({ a: { edges: { next: "b", repeat: "a" } }, b: { edges: { back: "a" } } }),
    ["a -next-> b goto", "a -repeat~> a goto", "b -back~> a goto"],
  ],
  [
    "switches, with the value that chooses",
    sketchFlow({
      a: {
        edges: {
          next: {
            kind: "switch",
            on: ["risk"],
            cases: { high: goto("b"), low: goto("gone") },
            otherwise: goto("a"),
          },
        },
      },
      b: { edges: {} },
    }),
    ["a -next[risk = high]-> b switch", "a -next[risk = low]-> gone switch", "a -next[otherwise]~> a switch"],
  ],
  [
    "counted edges, and the label that the path tells",
    sketchFlow({
      a: {
        edges: {
          ng: times(2, { kind: "goto", step: "a", as: "retry" }, FAILED),
        },
      },
    }),
    ["a -ng/retry[up to 2 times]~> a goto", "a -ng/fallback[afterwards]-> TOO_OFTEN end"],
  ],
  [
    "forks and joins",
    sketchFlow({
      a: { edges: { next: { kind: "fork", steps: ["b", "c"], join: "d" } } },
      b: { edges: { closing: null } },
      c: { edges: { closing: null } },
      d: { edges: { closing: null } },
    }),
    [
      "a -next-> b fork",
      "a -next-> c fork",
      "b -closing-> d join",
      "c -closing-> d join",
      "d -closing-> end end",
    ],
  ],
  [
    "a fork without a join: the run ends when its siblings are done",
    sketchMachine({ a: { next: fork(["b", "c"], null) }, b: {}, c: {} }),
    ["a -ok-> b fork", "a -ok-> c fork", "b -ok-> end join", "c -ok-> end join"],
  ],
  [
    "siblings of an independent fork lead to the join whatever becomes of them",
    sketchMachine({
      a: { next: fork(["b", "c"], "d", "independent") },
      b: { onFail: "e" },
      c: { rules: { gate: "proof", unresolved: "skip" } },
      d: {},
      e: {},
    }),
    [
      "a -ok-> b fork",
      "a -ok-> c fork",
      ...["ok", "fail", "cap"].map((label) => `b -${label}-> d join`),
      ...["ok", "skip", "fail", "cap"].map((label) => `c -${label}-> d join`),
      "d -ok-> end end",
      "e -ok-> end end",
    ],
  ],
  [
    "a failed sibling's own way ends the group, and so the run",
    sketchMachine({
      a: { next: fork(["b", "c"], "d") },
      b: { onFail: "e" },
      c: { rules: { gate: "proof", unresolved: "skip" } },
      d: {},
      e: {},
    }),
    [
      "a -ok-> b fork",
      "a -ok-> c fork",
      "b -ok-> d join",
      "b -fail-> e goto",
      "b -cap-> e goto",
      "c -ok-> d join",
      "c -skip-> ParallelSiblingFailure end",
      "d -ok-> end end",
      "e -ok-> ParallelSiblingFailure end",
    ],
  ],
  [
    "a stage that is a sibling of two forks, and comes alone as well",
    sketchMachine({
      a: {
        next: { kind: "switch", on: ["x"], cases: { "1": fork(["s", "t"], "b") }, otherwise: goto("s") },
      },
      b: { next: fork(["s", "u"], "c") },
      c: {},
      s: {},
      t: {},
      u: {},
    }),
    [
      "a -ok[x = 1]-> s fork",
      "a -ok[x = 1]-> t fork",
      "a -ok[otherwise]-> s switch",
      "b -ok~> s fork",
      "b -ok-> u fork",
      "c -ok-> end end",
      "s -ok[started by a]-> b join",
      "s -ok-> end end",
      "s -ok[started by b]-> c join",
      "t -ok-> b join",
      "u -ok-> c join",
    ],
  ],
  [
    "a fork among siblings, which check refuses, meets at its own join and then at the outer one",
    sketchMachine({
      a: { next: fork(["b", "c"], "d") },
      b: { next: fork(["e", "f"], "g") },
      c: {},
      d: {},
      e: {},
      f: {},
      g: {},
    }),
    [
      "a -ok-> b fork",
      "a -ok-> c fork",
      "b -ok-> e fork",
      "b -ok-> f fork",
      "c -ok-> d join",
      "d -ok-> end end",
      "e -ok-> g join",
      "f -ok-> g join",
      "g -ok-> d join",
    ],
  ],
  [
    "a fork that nothing leads to is drawn like any other",
    sketchMachine({ z: {}, a: { next: fork(["b", "c"], "d") }, b: {}, c: {}, d: {} }),
    [
      "z -ok-> end end",
      "a -ok-> b fork",
      "a -ok-> c fork",
      "b -ok-> d join",
      "c -ok-> d join",
      "d -ok-> end end",
    ],
  ],
  [
    "a stage that is a sibling of two forks of one step, which meet at different stages",
    sketchMachine({
      a: {
        next: {
          kind: "switch",
          on: ["x"],
          cases: { "1": fork(["s", "t"], "b"), "2": fork(["s", "t"], "c") },
          otherwise: goto("b"),
        },
      },
      b: {},
      c: {},
      s: {},
      t: {},
    }),
    [
      "a -ok[x = 1]-> s fork",
      "a -ok[x = 1]-> t fork",
      "a -ok[x = 2]-> s fork",
      "a -ok[x = 2]-> t fork",
      "a -ok[otherwise]-> b switch",
      "b -ok-> end end",
      "c -ok-> end end",
      "s -ok[started by a]-> b join",
      "s -ok[started by a]-> c join",
      "t -ok[started by a]-> b join",
      "t -ok[started by a]-> c join",
    ],
  ],
  [
    "a sibling of an independent fork that goes on meets the others at the end of its way",
    sketchMachine({
      a: { next: fork(["b", "c"], "d", "independent") },
      b: { next: goto("e") },
      c: {},
      d: {},
      e: {},
    }),
    [
      "a -ok-> b fork",
      "a -ok-> c fork",
      "b -ok-> e goto",
      "b -fail-> d join",
      "b -cap-> d join",
      "c -ok-> d join",
      "c -fail-> d join",
      "c -cap-> d join",
      "d -ok-> end end",
      "e -ok-> d join",
      "e -fail-> d join",
      "e -cap-> d join",
    ],
  ],
  [
    "what holds for a counted edge within a switch, from the outside in",
    sketchFlow({
      a: {
        edges: {
          next: {
            kind: "switch",
            on: ["x"],
            cases: { y: times(2, goto("b"), goto("c")) },
            otherwise: goto("c"),
          },
        },
      },
      b: { edges: {} },
      c: { edges: {} },
    }),
    [
      "a -next[x = y, up to 2 times]-> b switch",
      "a -next[x = y, afterwards]-> c switch",
      "a -next[otherwise]-> c switch",
    ],
  ],
  [
    "a jump to a few steps, and one to many",
    sketchFlow({
      a: { edges: { jump: { kind: "jump", field: ["to"], among: ["a", "b"], otherwise: goto("b") } } },
      b: { edges: { jump: { kind: "jump", field: ["to"], among: ["a", "b", "c", "d", "e"] } } },
      c: { edges: {} },
    }),
    ["a -jump~> a jump", "a -jump-> b jump", "a -jump[no target named]-> b goto", "b -jump-> any jump"],
  ],
  [
    "a failed check leads back to whoever led to it",
    sketchFlow(
      { a: { edges: { next: "c" } }, b: { edges: { next: "c" } }, c: { edges: { closing: null }, guard } },
      { checks },
    ),
    [
      "a -next-> c goto",
      "b -next-> c goto",
      "c -closing-> end end",
      "c -closing[check failed, came from a]~> a back",
      "c -closing[check failed, came from b]~> b back",
    ],
  ],
  [
    "or to itself too, when a step led to it that does no work",
    sketchFlow(
      {
        a: { edges: { next: "v", skip: "c" } },
        v: { kind: "verify", edges: { next: "c" } },
        c: { edges: { closing: null }, guard },
      },
      { checks },
    ),
    [
      "a -next-> v goto",
      "a -skip-> c goto",
      "v -next-> c goto",
      "c -closing-> end end",
      "c -closing[check failed, came from a]~> a back",
      "c -closing[check failed]~> c back",
    ],
  ],
  [
    "or to itself, when no work step did",
    sketchFlow({ c: { edges: { closing: null }, guard } }, { checks }),
    ["c -closing-> end end", "c -closing[check failed]~> c back"],
  ],
];

for (const [name, flow, expected] of rows) {
  test(`outline: ${name}`, () => {
    const edges = outlineOf(flow).edges.filter((edge) => !edge.isTacit);
    assert.deepEqual(edges.map(edgeText), expected);
  });
}

test("abort is on every step and tacit", () => {
  const { edges } = outlineOf(sketchFlow({ a: { edges: { closing: null } } }));
  assert.deepEqual(edges.filter((edge) => edge.isTacit).map(edgeText), ["a -abort-> AGENT_ABORTED end"]);
});

test("nodes are told by rank, the reached ones first, each with what was found about it", () => {
  const flow = sketchFlow(
    {
      a: { edges: { next: "c", skip: "d" } },
      stray: { edges: { next: "d" } },
      d: { edges: { closing: null }, kind: "close", guard },
      c: {
        edges: { next: "d", far: { kind: "jump", field: ["to"], among: ["a", "c", "d", "e", "wide"] } },
        kind: "verify",
      },
      wide: { edges: {}, free: true },
    },
    { checks },
  );
  const problem = { code: "X", severity: "error", step: "c" } as Problem;
  const { nodes } = outlineOf(flow, [problem, { ...problem, step: null }]);
  assert.deepEqual(
    nodes.map(({ id, rank, isReached, routedBy, checks: names, findings }) => [
      id,
      rank,
      isReached,
      routedBy,
      names.join(),
      findings.length,
    ]),
    [
      ["a", 0, true, "model", "", 0],
      ["wide", 0, true, "runtime", "", 0],
      ["c", 1, true, "model", "", 1],
      ["d", 2, true, "model", "proof", 0],
      ["stray", 0, false, "model", "", 0],
    ],
  );
});

test("a flow without its entry, and one without steps, have outlines too", () => {
  assert.deepEqual(outlineOf(sketchFlow({})).nodes, []);
  const { nodes } = outlineOf(sketchFlow({ a: { edges: {} } }, { entry: "gone" }));
  assert.deepEqual(
    nodes.map(({ id, isReached }) => [id, isReached]),
    [["a", false]],
  );
});

test("a flow of ten thousand steps in a row is surveyed without a deep stack", () => {
  const steps = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, at) => [`s${at}`, { edges: { next: `s${at + 1}` } }]),
  );
  assert.equal(outlineOf(sketchFlow(steps)).nodes.at(-1)?.rank, 9999);
});
