/** Addresses of the page: each leads to its screen and back, and nothing else does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hrefOf, parseRoute, parseVisit, type Route } from "../../../src/studio/page/route.ts";

const pairs: readonly [href: string, route: Route][] = [
  ["/runs", { at: "runs", state: "", agent: "", q: "" }],
  ["/runs?state=failed&agent=fixer&q=issue+7", { at: "runs", state: "failed", agent: "fixer", q: "issue 7" }],
  ["/runs/r1", { at: "run", run: "r1", tab: "way", visit: null, seq: null }],
  ["/runs/r1?at=87", { at: "run", run: "r1", tab: "way", visit: null, seq: 87 }],
  ["/runs/r1?at=0", { at: "run", run: "r1", tab: "way", visit: null, seq: 0 }],
  [
    "/runs/r1/closure.issue%402?at=87",
    { at: "run", run: "r1", tab: "way", visit: { step: "closure.issue", visit: 2 }, seq: 87 },
  ],
  [
    "/runs/r1/a%2Fb%40c%403",
    { at: "run", run: "r1", tab: "way", visit: { step: "a/b@c", visit: 3 }, seq: null },
  ],
  ["/runs/r1/log", { at: "run", run: "r1", tab: "log", visit: null, seq: null }],
  ["/runs/r1/effects?at=4", { at: "run", run: "r1", tab: "effects", visit: null, seq: 4 }],
  ["/runs/r1/document", { at: "run", run: "r1", tab: "document", visit: null, seq: null }],
  ["/runs/r1/talk", { at: "talk", run: "r1", of: null }],
  ["/runs/r1/talk?of=a%401", { at: "talk", run: "r1", of: "a@1" }],
  ["/runs/r1/a%401/why", { at: "why", run: "r1", visit: { step: "a", visit: 1 } }],
  ["/runs/r1/a%401/fork", { at: "fork", run: "r1", visit: { step: "a", visit: 1 } }],
  ["/effects", { at: "effects" }],
  ["/inbox", { at: "inbox" }],
  ["/flows", { at: "flows" }],
  ["/flows/fixer", { at: "flow", agent: "fixer", step: null }],
  ["/flows/fixer/initial.issue", { at: "flow", agent: "fixer", step: "initial.issue" }],
  ["/flows/fixer/start", { at: "start", agent: "fixer" }],
  ["/compare/r1/r2", { at: "compare", a: "r1", b: "r2" }],
  ["/whatif", { at: "whatif", agent: null }],
  ["/whatif/fixer", { at: "whatif", agent: "fixer" }],
  ["/figures", { at: "figures", agent: "", since: "", flow: "" }],
  ["/figures?agent=fixer&since=7d&flow=ab", { at: "figures", agent: "fixer", since: "7d", flow: "ab" }],
];
for (const [href, route] of pairs)
  test(`${href} leads to a screen and is the address of it`, () => {
    const [path = "", search = ""] = href.split("?");
    assert.deepEqual(parseRoute(path, search), route);
    assert.equal(hrefOf(route), href);
  });

test("the front door is the list of runs", () => {
  assert.deepEqual(parseRoute("/", ""), parseRoute("/runs", ""));
});

for (const path of [
  "/elsewhere",
  "/runs/r1/step",
  "/runs/r1/step@0",
  "/runs/r1/a@1/other",
  "/runs/r1/talk/more",
  "/runs/r1/a@1/why/more",
  "/runs/%E0%A4%A",
  "/compare/r1",
  "/compare/r1/r2/r3",
  "/flows/a/b/c",
  "/inbox/x",
  "/figures/x",
  "/whatif/a/b",
])
  test(`${path} is not an address of the page`, () => assert.equal(parseRoute(path, "").at, "unknown"));

for (const [text, at] of [
  ["?at=-1", null],
  ["?at=1.5", null],
  ["?at=12345678901", null],
  ["?at=7", 7],
] as const)
  test(`${text} selects ${at}`, () => {
    const route = parseRoute("/runs/r1", text);
    assert.equal(route.at === "run" && route.seq, at);
  });

for (const [text, visit] of [
  ["a@1", { step: "a", visit: 1 }],
  ["a@b@12", { step: "a@b", visit: 12 }],
  ["@1", null],
  ["a@", null],
  ["a@01", null],
  ["a", null],
] as const)
  test(`${text} names ${visit === null ? "no visit" : `visit ${visit.visit}`}`, () =>
    assert.deepEqual(parseVisit(text), visit));
