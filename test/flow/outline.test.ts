import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow, StepGuard, Move } from "../../src/flow/flow.ts";
import { outlineOf, type Edge } from "../../src/flow/outline.ts";
import type { Problem } from "../../src/flow/problem.ts";
import { sketchCheck, sketchFlow, text } from "../../src/testing/flows.ts";

const goto = (step: string): Move => ({ kind: "goto", step });
const guard: StepGuard = {
  on: "closing",
  checks: [{ check: "proof", edition: text("Mend it.") }],
  onFailure: "retry",
  maxFailures: 3,
  back: { kind: "caller" },
};
const FAILED: Move = { kind: "end", outcome: "failed", code: "TOO_OFTEN", as: "fallback" };
const times = (max: number, move: Move, after: Move): Move => ({ kind: "times", max, move, after });
const checks = { proof: sketchCheck("proof", "true") };

/** `a -next[risk = high]-> b`, with `~` before the arrow's head where the edge closes a circle. */
function told({ from, label, as, when, to, isLoop, kind }: Edge): string {
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
      "a -next-> d join",
      "b -closing-> end end",
      "c -closing-> end end",
      "d -closing-> end end",
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
    "or to itself, when no work step did",
    sketchFlow({ c: { edges: { closing: null }, guard } }, { checks }),
    ["c -closing-> end end", "c -closing[check failed]~> c back"],
  ],
];

for (const [name, flow, expected] of rows) {
  test(`outline: ${name}`, () => {
    const edges = outlineOf(flow).edges.filter((edge) => !edge.isTacit);
    assert.deepEqual(edges.map(told), expected);
  });
}

test("abort is on every step and tacit", () => {
  const { edges } = outlineOf(sketchFlow({ a: { edges: { closing: null } } }));
  assert.deepEqual(edges.filter((edge) => edge.isTacit).map(told), ["a -abort-> AGENT_ABORTED end"]);
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
