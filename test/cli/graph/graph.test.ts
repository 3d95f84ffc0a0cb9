import assert from "node:assert/strict";
import { test } from "node:test";
import { renderDot } from "../../../src/cli/graph/graph-dot.ts";
import { layOutGraph, type LayoutEdge, type LayoutNode } from "../../../src/tell/graph-layout.ts";
import { renderMermaid } from "../../../src/cli/graph/graph-mermaid.ts";
import { renderSvg } from "../../../src/cli/graph/graph-svg.ts";
import { renderText } from "../../../src/cli/graph/graph-text.ts";
import { createPaint, fit, widthOf } from "../../../src/cli/text/text.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { outlineOf } from "../../../src/tell/outline.ts";
import type { Problem } from "../../../src/flow/problem.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../../src/testing/flows.ts";
import { ESCAPE } from "../world.ts";

const plain = createPaint(false);
const checks = { tests: sketchCheck("tests", "npm test") };
const guard = {
  on: "closing",
  checks: [{ check: "tests", edition: sketchPrompt("Mend it.") }],
  onFailure: "retry",
  maxFailures: 3,
  back: { kind: "caller" },
} as const;

const problem = (step: string, severity: "error" | "warning" = "error"): Problem => ({
  code: "SR-TRANS-001",
  severity,
  file: "f.json",
  line: 1,
  column: 1,
  pointer: "",
  step,
  message: 'It leads to "nowhere".',
  why: "",
  fix: "",
  witness: [],
});

const small = sketchFlow(
  {
    plan: { edges: { next: "build", repeat: "plan" } },
    build: { edges: { next: "closure", escalate: "plan", lost: "nowhere" } },
    closure: { kind: "close", edges: { closing: null }, guard },
  },
  { checks },
);
const outline = outlineOf(small, [problem("build"), problem("plan", "warning")]);

test("the terminal shows boxes, ways, ends, checks and findings", () => {
  assert.equal(
    renderText(outline, 80, plain),
    `sketch · Sketch · 3 steps

╭ ▶ plan (work, routed by model) ──────────────╮◀───╮
│ ! 1 warning: SR-TRANS-001                    │    │
│   next   → build                             │────┼─╮
│   repeat ↻ itself                            │    │ │
╰──────────────────────────────────────────────╯    │ │
                                                    │ │
╭ build (work, routed by model) ───────────────╮◀───┼─┤
│ ✗ 1 error: SR-TRANS-001                      │    │ │
│   next     → closure                         │──╮ │ │
│   escalate ↑ plan                            │──┼─╯ │
│   lost     → nowhere (there is no such step) │  │   │
╰──────────────────────────────────────────────╯  │   │
                                                  │   │
╭ closure (closure, routed by model) ──────────╮◀─╯   │
│ checks before the end: tests                 │      │
│   closing ■ end                              │      │
│   closing ↩ build  [check failed]            │──────╯
╰──────────────────────────────────────────────╯

▶ the run begins here · ■ the run ends · ↩ after a failed check · ↑ back to an earlier step · abort ends the run from any step
! SR-TRANS-001 plan: It leads to "nowhere".
✗ SR-TRANS-001 build: It leads to "nowhere".`,
  );
});

test("on a narrow terminal lines give way to words, and boxes are cut", () => {
  const lines = renderText(outline, 44, plain).split("\n").slice(2, -4);
  assert.ok(
    lines.every((line) => widthOf(line) <= 44),
    lines.join("\n"),
  );
  assert.ok(lines.some((line) => line.includes("…")));
});

test("a Mermaid chart", () => {
  assert.equal(
    renderMermaid(outline),
    `flowchart TD
  start(( )) --> s0
  s0["plan<br/>work, routed by model<br/>! 1 warning: SR-TRANS-001"]
  s1["build<br/>work, routed by model<br/>✗ 1 error: SR-TRANS-001"]
  s2(["closure<br/>closure, routed by model<br/>checks: tests"])
  t0["nowhere (there is no such step)"]
  t1(("end"))
  s0 -->|"next"| s1
  s0 -->|"repeat"| s0
  s1 -->|"next"| s2
  s1 -->|"escalate"| s0
  s1 -->|"lost"| t0
  s2 -->|"closing"| t1
  s2 -.->|"closing #91;check failed#93;"| s1
  class s0 warning
  class s1 error
  class t0 error
  classDef error stroke:#c00,stroke-width:3px
  classDef warning stroke:#b80,stroke-width:3px
  classDef apart opacity:0.5`,
  );
});

test("a graph for Graphviz", () => {
  assert.equal(
    renderDot(outline),
    `digraph "sketch" {
  rankdir=TB;
  node [shape=box, style=rounded, fontname="Helvetica"];
  edge [fontname="Helvetica", fontsize=10];
  start [shape=point, label=""];
  start -> s0;
  s0 [label="plan\\nwork, routed by model\\n! 1 warning: SR-TRANS-001", color="#b07000", penwidth=2];
  s1 [label="build\\nwork, routed by model\\n✗ 1 error: SR-TRANS-001", color="#cc0000", penwidth=2];
  s2 [label="closure\\nclosure, routed by model\\nchecks: tests", shape=box, peripheries=2];
  t0 [label="nowhere (there is no such step)", style=dashed, color="#cc0000"];
  t1 [label="end", shape=doublecircle];
  s0 -> s1 [label="next"];
  s0 -> s0 [label="repeat", constraint=false];
  s1 -> s2 [label="next"];
  s1 -> s0 [label="escalate", constraint=false];
  s1 -> t0 [label="lost"];
  s2 -> t1 [label="closing"];
  s2 -> s1 [label="closing [check failed]", style=dashed, color="#b07000", constraint=false];
}`,
  );
});

// Whatever a file holds, it stays text.

const HOSTILE = [
  'say "hi"',
  "a]; b[",
  "<script>alert(1)</script>",
  "&amp; <b>",
  "back\\slash\\N\\",
  "`md`",
  "#quot; #35;",
  "日本語のステップ",
  "emoji 🚀",
  "line\nbreak\ttab",
  `${ESCAPE}[2J${ESCAPE}]0;x\u0007`,
  "\u202Etfel",
  "half \ud800",
  "end",
  "--> |x|",
  "%% comment",
] as const;

function hostileFlow(word: string): Flow {
  const flow = sketchFlow({ [word]: { edges: { [word]: `${word} gone`, on: word } } });
  const step = flow.steps[word]!;
  return { ...flow, agent: word, title: `${word}!`, steps: { [word]: { ...step, name: `${word} name` } } };
}

/** What XML allows in a document: tags that are closed, escaped text, and no characters that it forbids. */
function assertXml(svg: string): void {
  assert.doesNotMatch(svg.replaceAll(/[\n\t]/g, ""), /[\p{Cc}\ufffe\uffff]/u);
  assert.ok(svg.isWellFormed());
  const open: string[] = [];
  const rest = svg.replaceAll(
    /<(\/?)([a-z]+)((?:\s+[\w:-]+="[^"<&]*(?:&(?:amp|lt|gt|quot);[^"<&]*)*")*)\s*(\/?)>/g,
    (_, closing: string, name: string, _attributes: string, single: string) => {
      if (closing !== "") assert.equal(open.pop(), name);
      else if (single === "") open.push(name);
      return "";
    },
  );
  assert.deepEqual(open, []);
  assert.doesNotMatch(rest.replaceAll(/&(?:amp|lt|gt|quot);/g, ""), /[<>&]/);
}

for (const word of HOSTILE) {
  test(`drawings take ${JSON.stringify(word)} as text`, () => {
    const drawn = outlineOf(hostileFlow(word), [problem(word)]);
    const svg = renderSvg(drawn);
    assertXml(svg);
    assert.ok(!svg.includes("<script"));

    for (const line of renderMermaid(drawn).split("\n")) {
      const quotes = line.match(/"[^"]*"/g) ?? [];
      for (const quote of quotes) assert.doesNotMatch(quote.replaceAll("<br/>", ""), /[<>`|[\]{}]/);
      assert.match(
        line.replaceAll(/"[^"]*"/g, "Q"),
        /^(?:flowchart TD|  [\w#().:;,[\]{}|Q\s-]+>?[\w\s().|Q#:,[\]{}-]*)$/,
      );
    }

    for (const line of renderDot(drawn).split("\n")) {
      const outside = line.replaceAll(/"(?:[^"\\]|\\.)*"/g, "Q");
      assert.match(outside, /^(?:digraph Q \{|\}|  [\w\s=,>[\]-]*Q?[\w\s=,Q[\]>-]*;)$/);
    }

    const terminal = renderText(drawn, 100, plain);
    assert.ok(!terminal.includes(ESCAPE));
    assert.ok(!terminal.includes("\u202E"));
    const boxes = terminal.split("\n").filter((line) => /^[╭│╰]/.test(line));
    assert.ok(boxes.length >= 4);
    const edges = boxes.map((line) =>
      widthOf(line.slice(0, Math.max(line.lastIndexOf("╮"), line.lastIndexOf("│"), line.lastIndexOf("╯")))),
    );
    assert.equal(new Set(edges).size, 1, terminal);
  });
}

test("a text is measured and cut in cells", () => {
  const rows: readonly [string, number][] = [
    ["abc", 3],
    ["日本", 4],
    ["🚀", 2],
    ["e\u0301", 1],
    ["", 0],
    ["│─", 2],
  ];
  for (const [word, cells] of rows) assert.equal(widthOf(word), cells, word);
  assert.equal(fit("ab", 4), "ab  ");
  assert.equal(fit("日本語", 4), "日… ");
  assert.equal(fit("abcdef", 4), "abc…");
});

// The picture.

const big = sketchFlow(
  {
    "initial.plan": { edges: { next: "research", repeat: "initial.plan" } },
    research: {
      edges: { next: "design", jump: { kind: "jump", field: ["to"], among: ["design", "build", "docs"] } },
    },
    design: {
      handoff: ["risk"],
      edges: {
        next: {
          kind: "switch",
          on: ["risk"],
          cases: { high: { kind: "goto", step: "security" }, low: { kind: "goto", step: "build" } },
          otherwise: { kind: "goto", step: "review" },
        },
      },
    },
    security: { kind: "verify", edges: { next: "build", escalate: "design" } },
    build: {
      edges: { next: { kind: "fork", steps: ["test", "docs", "perf"], join: "merge" }, repeat: "build" },
    },
    test: { edges: { closing: null, repeat: "build" } },
    docs: { edges: { closing: null } },
    perf: { edges: { closing: null } },
    merge: { edges: { next: "review", repeat: "fix" } },
    fix: { edges: { next: "merge" } },
    review: { kind: "verify", edges: { next: "closure.release", repeat: "design", escalate: "nowhere" } },
    "closure.release": { kind: "close", edges: { closing: null, repeat: "closure.release" }, guard },
  },
  { checks },
);

test("the picture of twelve steps with circles: nothing lies on anything else", () => {
  const drawn = outlineOf(big);
  const svg = renderSvg(drawn);
  assertXml(svg);
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!.map(Number);
  const boxes = [
    ...svg.matchAll(/<rect class="[^"]+" x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"/g),
  ];
  const labels = [
    ...svg.matchAll(/<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)" fill="#fff"/g),
  ];
  const all = [...boxes, ...labels].map(
    (match) => match.slice(1, 5).map(Number) as [number, number, number, number],
  );
  // Twelve steps, the end, and a name that is no step.
  assert.equal(boxes.length, 14);
  assert.ok(labels.length >= 18);
  assertApart(all);
  for (const [x, y, w, h] of all) assert.ok(x >= 0 && y >= 0 && x + w <= width! && y + h <= height!);
});

test("layouts of random graphs: nothing lies on anything else", () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  for (let round = 0; round < 60; round += 1) {
    const nodes: LayoutNode[] = Array.from({ length: 1 + random(14) }, (_, at) => ({
      key: String(at),
      width: 40 + random(200),
      height: 20 + random(60),
      rank: random(6),
      beside: random(3) * 30,
    }));
    const edges: LayoutEdge[] = Array.from({ length: random(25) }, () => ({
      from: String(random(nodes.length)),
      to: String(random(nodes.length)),
      width: 20 + random(80),
      height: 15,
    })).filter(({ from, to }) => from !== to);
    const layout = layOutGraph(nodes, edges);
    const boxes = nodes.map(({ key, width, height, beside }) => {
      const { x, y } = layout.nodes.get(key)!;
      return [x - width / 2, y - height / 2, width + beside, height] as const;
    });
    const labels = edges.map(({ width, height }, at) => {
      const { x, y } = layout.edges[at]!.label;
      return [x - width / 2, y - height / 2, width, height] as const;
    });
    assertApart([...boxes, ...labels]);
    for (const { points } of layout.edges) {
      for (const { x, y } of points) assert.ok(Number.isFinite(x) && Number.isFinite(y));
    }
  }
});

type Rect = readonly [x: number, y: number, width: number, height: number];

function assertApart(rects: readonly Rect[]): void {
  for (const [at, [x, y, w, h]] of rects.entries()) {
    for (const [x2, y2, w2, h2] of rects.slice(at + 1)) {
      const isApart = x + w <= x2 + 0.2 || x2 + w2 <= x + 0.2 || y + h <= y2 + 0.2 || y2 + h2 <= y + 0.2;
      assert.ok(isApart, `${[x, y, w, h].join()} and ${[x2, y2, w2, h2].join()} overlap`);
    }
  }
}

test("a flow without steps and one of a thousand can be drawn in every format", () => {
  const many = Object.fromEntries(
    Array.from({ length: 1000 }, (_, at) => [
      `s${at}`,
      { edges: { next: `s${(at * 7 + 1) % 1000}`, back: `s${at}` } },
    ]),
  );
  for (const flow of [sketchFlow({}), sketchFlow(many)]) {
    const drawn = outlineOf(flow);
    for (const render of [
      renderMermaid,
      renderDot,
      renderSvg,
      (one: typeof drawn) => renderText(one, 100, plain),
    ]) {
      assert.ok(render(drawn).length > 10);
    }
  }
});
