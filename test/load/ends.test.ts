/** What a verdict becomes in a flow, and the checks before it ends the run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Changes, sha256 } from "./world.ts";
import { VALIDATION, flowWith } from "./loaded.ts";

const MODULE = "export default () => true;";
const polled = (config: object) => ({ type: "poll:state", config });
const STOPS: readonly (readonly [name: string, verdict: object, stop: object, visits: number])[] = [
  ["count:iteration by default", { type: "count:iteration" }, { kind: "visits", count: 10 }, 10],
  [
    "count:iteration as written",
    { type: "count:iteration", config: { maxIterations: 3 } },
    { kind: "visits", count: 3 },
    3,
  ],
  ["another type by default", { type: "detect:graph" }, { kind: "end" }, 20],
  ["another type as written", { type: "detect:graph", config: { maxIterations: 500 } }, { kind: "end" }, 500],
  ["count:check", { type: "count:check", config: { maxChecks: 7 } }, { kind: "checks", count: 7 }, 20],
  [
    "poll:state without a word",
    polled({}),
    { kind: "state", resource: { kind: "github-issue", want: "closed" } },
    20,
  ],
  [
    "poll:state of a project",
    polled({ resourceType: "github-project", targetState: { status: "Done" } }),
    { kind: "state", resource: { kind: "github-project", want: { status: "Done" } } },
    20,
  ],
  ...(
    [
      ["exists", { kind: "exists" }],
      ["absent", { kind: "absent" }],
      ["STATUS: ok", { kind: "contains", text: "STATUS: ok" }],
      ["re:^ok$", { kind: "matches", pattern: "^ok$" }],
    ] as const
  ).map(
    ([targetState, want]) =>
      [
        `poll:state of a file: ${targetState}`,
        polled({ resourceType: "file", path: "out/{uv-issue}.md", targetState }),
        { kind: "state", resource: { kind: "file", path: "out/{uv-issue}.md", want } },
        20,
      ] as const,
  ),
  [
    "poll:state of an address",
    polled({ resourceType: "api", url: "https://x.test/{uv-issue}?a=1", targetState: { a: [1] } }),
    {
      kind: "state",
      resource: { kind: "api", url: "https://x.test/{uv-issue}?a=1", want: { a: [1] } },
    },
    20,
  ],
  [
    "detect:keyword",
    { type: "detect:keyword", config: { verdictKeyword: "DONE", maxIterations: 9 } },
    { kind: "keyword", text: "DONE" },
    9,
  ],
  [
    "detect:structured",
    { type: "detect:structured", config: { signalType: "wrap-up" } },
    { kind: "signal", type: "wrap-up", fields: [] },
    20,
  ],
  [
    "detect:structured with fields that must be there",
    { type: "detect:structured", config: { signalType: "s", requiredFields: ["a", "b"] } },
    { kind: "signal", type: "s", fields: [{ name: "a" }, { name: "b" }] },
    20,
  ],
  [
    "detect:structured with fields that must be so",
    { type: "detect:structured", config: { signalType: "s", requiredFields: { a: 1, b: null } } },
    {
      kind: "signal",
      type: "s",
      fields: [
        { name: "a", value: 1 },
        { name: "b", value: null },
      ],
    },
    20,
  ],
  [
    "meta:composite of anything but a graph",
    {
      type: "meta:composite",
      config: {
        operator: "and",
        maxIterations: 30,
        conditions: [
          { type: "count:iteration" },
          { type: "keywordSignal", config: { verdictKeyword: "DONE" } },
          {
            type: "meta:composite",
            config: {
              operator: "first",
              conditions: [
                { type: "meta:custom", config: { handlerPath: "./lib/../verdict.mjs", settings: { a: 1 } } },
                { type: "count:check", config: { maxChecks: 2 } },
              ],
            },
          },
        ],
      },
    },
    {
      kind: "all",
      of: [
        { kind: "visits", count: 10 },
        { kind: "keyword", text: "DONE" },
        {
          kind: "any",
          of: [
            {
              kind: "module",
              module: { file: ".agent/iterator/verdict.mjs", digest: sha256(MODULE) },
              config: { handlerPath: "./lib/../verdict.mjs", settings: { a: 1 } },
            },
            { kind: "checks", count: 2 },
          ],
        },
      ],
    },
    30,
  ],
];

for (const [name, verdict, stop, visits] of STOPS) {
  test(`the end of a run: ${name}`, () => {
    const flow = flowWith({
      "agent /runner/verdict": verdict,
      "registry /entryStep": "initial.issue",
      "verdict.mjs": MODULE,
    });
    assert.deepEqual([flow.stop, flow.limits.visits], [stop, visits]);
    assert.match(flow.criteria, /^The work is done when .+\.$/);
  });
}

const COUNTED = {
  "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 4 } },
  "registry /entryStep": "initial.issue",
};
const LAST: readonly [name: string, changes: Changes, guarded: boolean, visits: number][] = [
  ["a closure's own entry", {}, false, 4],
  ["the customary entry", { "registry /validationSteps/closure.iteration": VALIDATION }, true, 6],
  [
    "the customary entry, with another number",
    {
      "registry /validationSteps/closure.iteration": {
        ...VALIDATION,
        onFailure: { action: "retry", maxAttempts: 5 },
      },
    },
    true,
    8,
  ],
  [
    "one that ends the run at the first failure",
    {
      "registry /validationSteps/closure.iteration": { ...VALIDATION, onFailure: { action: "abort" } },
    },
    true,
    4,
  ],
  ["the only entry, if it is no step's", { "registry /validationSteps": { other: VALIDATION } }, true, 6],
  [
    "none of several others",
    { "registry /validationSteps": { other: VALIDATION, another: VALIDATION } },
    false,
    4,
  ],
  [
    "none where only edges end a run",
    {
      "agent /runner/verdict": { type: "detect:graph", config: { maxIterations: 4 } },
      "registry /validationSteps": { "closure.graph": VALIDATION },
    },
    false,
    4,
  ],
];

for (const [name, changes, guarded, visits] of LAST) {
  test(`before the end by the verdict: ${name}`, () => {
    const flow = flowWith({ ...COUNTED, ...changes });
    assert.deepEqual([flow.stopGuard !== undefined, flow.limits.visits], [guarded, visits]);
    if (flow.stopGuard === undefined) return;
    assert.deepEqual(flow.stopGuard.back, { kind: "onward" });
    assert.deepEqual(Object.keys(flow.checks), ["git-clean"]);
    assert.equal(
      flow.stopGuard.checks[0]?.edition.file,
      ".agent/iterator/prompts/steps/retry/issue/f_failed_git-dirty.md",
    );
  });
}
