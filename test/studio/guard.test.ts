/** The guard of the studio alone: every row of the table of requests, and what it passes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeRequest, type GuardRules } from "../../src/studio/guard.ts";
import { requestRows } from "./requests.ts";

const place = { host: "127.0.0.1:21234", token: "t0ken_-".repeat(6) };
const rules: GuardRules = {
  token: place.token,
  hosts: [place.host, "localhost:21234"],
  isReadOnly: false,
};

for (const { name, method, target, headers, status, code } of requestRows(place))
  test(`${name}: ${status === null ? "passes" : `${status} ${code}`}`, () => {
    const judged = judgeRequest({ method, target, headers: headers.flat() }, rules);
    const refused = judged.kind === "refused" ? [judged.status, judged.code] : [null, null];
    assert.deepEqual(refused, [status, code]);
  });

const bearer = ["Host", place.host, "Authorization", `Bearer ${place.token}`];

test("what passes is given on decoded", () => {
  const target = "/api/runs/a%2Fb/why/caf%C3%A9@2?from=1&find=%3Cb%3E+x&empty=";
  assert.deepEqual(judgeRequest({ method: "GET", target, headers: bearer }, rules), {
    kind: "api",
    method: "GET",
    segments: ["runs", "a/b", "why", "café@2"],
    query: { from: "1", find: "<b> x", empty: "" },
  });
});

test("the page itself needs no token, and its paths are not judged further", () => {
  for (const [method, target, isHead] of [
    ["GET", "/", false],
    ["HEAD", "/runs/x/y@1", true],
    ["GET", "/apis", false],
  ] as const) {
    const judged = judgeRequest({ method, target, headers: ["host", place.host] }, rules);
    assert.deepEqual([judged.kind, judged.kind === "page" && judged.isHead], ["page", isHead]);
  }
  const elsewhere = judgeRequest({ method: "GET", target: "/", headers: ["Host", "evil.example"] }, rules);
  assert.equal(elsewhere.kind === "refused" && elsewhere.status, 421);
});

test("read only refuses every POST that would else pass, and no GET", () => {
  const readOnly = { ...rules, isReadOnly: true };
  const headers = [...bearer, "Origin", `http://${place.host}`, "Content-Type", "application/json"];
  const post = { method: "POST", target: "/api/runs", headers };
  assert.equal(judgeRequest(post, rules).kind, "api");
  const refused = judgeRequest(post, readOnly);
  assert.deepEqual(refused.kind === "refused" && [refused.status, refused.code], [405, "READ_ONLY"]);
  assert.equal(judgeRequest({ method: "GET", target: "/api/runs", headers: bearer }, readOnly).kind, "api");
});

test("a body of exactly the largest size passes", () => {
  const headers = [
    ...bearer,
    "Origin",
    `http://${place.host}`,
    "Content-Type",
    "application/json; charset=UTF-8",
  ];
  for (const [length, kind] of [
    ["1048576", "api"],
    ["1048577", "refused"],
    ["1e3", "refused"],
  ] as const) {
    const all = [...headers, "Content-Length", length];
    assert.equal(judgeRequest({ method: "POST", target: "/api/runs", headers: all }, rules).kind, kind);
  }
});
