import assert from "node:assert/strict";
import { test } from "node:test";
import { afterRuns, forAgent, nextText, WHERE_NOTHING_IS } from "../../../src/cli/text/next-text.ts";
import { renderedMarkdown } from "../../../src/cli/text/rendered.ts";
import { createPaint } from "../../../src/cli/text/text.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import type { RunSummary } from "../../../src/run/index.ts";

function summary(
  run: string,
  agent: string,
  state: RunSummary["state"],
  code: string | null = null,
): RunSummary {
  const times = { createdAt: "", updatedAt: "" };
  return { run, agent, state, code, ...times, events: 1, step: null, steps: [] };
}

test("runs that need a person come first, and what is over is left out", () => {
  const runs = [
    summary("r1", "a", "running"),
    summary("r2", "a", "failed", "CHECKS_FAILED"),
    summary("r3", "b", "completed"),
    summary("r4", "b", "failed", "OLD"),
    summary("r5", "c", "interrupted"),
    summary("r6", "c", "paused"),
    summary("r7", "c", "waiting"),
  ];
  assert.deepEqual(afterRuns(runs), [
    { command: "lockstep answer r7", why: "a run of c waits for your answer" },
    { command: "lockstep continue r6", why: "a run of c is paused" },
    { command: "lockstep resume r5", why: "a run of c was interrupted" },
    { command: "lockstep show r1 --follow", why: "a run of a is running" },
    { command: "lockstep why r2", why: "a run of a failed (CHECKS_FAILED)" },
  ]);
  assert.deepEqual(afterRuns([summary("r1", "a", "damaged")]), [
    { command: "lockstep doctor", why: "a run of a cannot be read" },
  ]);
  assert.equal(afterRuns(Array.from({ length: 9 }, (_, n) => summary(`r${n}`, "a", "waiting"))).length, 5);
});

function flowWith(parameters: readonly object[]): Flow {
  return { description: "about\u001b[31m", parameters } as unknown as Flow;
}

test("an agent is suggested with the parameters that it needs", () => {
  const rows = [
    [{}, [], "lockstep run a"],
    [{ script: "s p.yaml" }, [], "lockstep run a --script 's p.yaml'"],
    [{}, [{ name: "issue", type: "number", flag: "--issue", required: true }], "lockstep run a --issue 1"],
    [{}, [{ name: "x", type: "string", flag: "--x", required: false }], "lockstep run a"],
    [
      {},
      [{ name: "mood", type: "string", flag: "--mood", required: true, validation: { enum: ["so so"] } }],
      "lockstep run a --mood 'so so'",
    ],
    [{}, [{ name: "on", type: "boolean", flag: "--on", required: true }], "lockstep run a --on true"],
    [{ canRun: false }, [], "lockstep check a"],
    [{ flow: null }, [], "lockstep check a"],
  ] as const;
  const usual = { agent: "a", canRun: true, hasTests: false, script: null };
  for (const [about, parameters, command] of rows) {
    const [first] = forAgent({ ...usual, flow: flowWith(parameters), ...about });
    assert.equal(first?.command, command);
    assert.doesNotMatch(first.why, /\p{Cc}/u);
  }
  const all = forAgent({ ...usual, flow: flowWith([]), hasTests: true });
  assert.deepEqual(
    all.map(({ command }) => command),
    ["lockstep run a", "lockstep test a"],
  );
});

test("the page names what is there, and the commands as the user types them", () => {
  const typed = (text: string) => text.replace("lockstep", "npx lockstep");
  const empty = nextText("/p", [], WHERE_NOTHING_IS, createPaint(false), typed, Infinity);
  assert.match(empty, /^There is no agent in \/p yet\.$/m);
  assert.match(empty, /npx lockstep init notes/);
  assert.doesNotMatch(empty, /studio/);
  const some = nextText(
    "/p",
    Array.from({ length: 9 }, (_, n) => `a${n}`),
    [],
    createPaint(false),
    typed,
    Infinity,
  );
  assert.match(some, /^9 agents in \/p: a0, .*a7, …$/m);
  assert.match(some, /npx lockstep studio/);
});

for (const [width, isWide] of [
  [39, false],
  [40, true],
  [Infinity, true],
] as const)
  test(`in ${width} columns ${isWide ? "a reason stands beside" : "every reason stands below"} its command`, () => {
    const one = { command: "lockstep init aa", why: "20 characters of it." };
    const text = nextText("/p", [], [one], createPaint(false), (line) => line, width);
    const [, , , first, second] = text.split("\n");
    assert.equal(first, isWide ? "  lockstep init aa  20 characters of it." : "  lockstep init aa");
    assert.equal(second, isWide ? "  lockstep help     all commands" : "      20 characters of it.");
  });

test("Markdown is rendered where there are colours, and stays as it is elsewhere", () => {
  const text = [
    "# Title #",
    "",
    "- **one** and `two`",
    "  * three",
    "> quoted",
    "```js",
    "# code",
    "```",
    "a*b",
  ];
  const painted = renderedMarkdown(text.join("\n"), (style, words) => `<${style}>${words}</>`);
  assert.deepEqual(painted.split("\n"), [
    "<bold>Title</>",
    "",
    "• <bold>one</> and <cyan>two</>",
    "  • three",
    "<dim>│ quoted</>",
    "<dim># code</>",
    "a*b",
  ]);
  assert.equal(renderedMarkdown(text.join("\n"), createPaint(false)), text.join("\n"));
  const open = "```\nnever closed";
  assert.equal(renderedMarkdown(open, createPaint(true)), open);
});
