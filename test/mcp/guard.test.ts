/** The guard of the server over HTTP: each of its rules decides somewhere. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeMcpRequest } from "../../src/mcp/guard.ts";

const token = "t0ken_-".repeat(6);
const rules = { token, hosts: ["127.0.0.1:4100", "localhost:4100"] };
const HEADERS = {
  Host: "127.0.0.1:4100",
  Authorization: `Bearer ${token}`,
  "Content-Type": "application/json",
};

type Row = readonly [
  name: string,
  change: {
    readonly method?: string;
    readonly target?: string;
    readonly [header: `${Uppercase<string>}${string}`]: string | null;
  },
  code: string | null,
];

const ROWS: readonly Row[] = [
  ["a call", {}, null],
  ["by the other name", { Host: "localhost:4100" }, null],
  ["from our own origin", { Origin: "http://127.0.0.1:4100" }, null],
  ["a stream", { method: "GET", "Content-Type": null }, null],
  ["the end of a session", { method: "DELETE" }, null],
  ["another method", { method: "PUT" }, "405 METHOD_NOT_ALLOWED"],
  ["a preflight", { method: "OPTIONS" }, "405 METHOD_NOT_ALLOWED"],
  ["no host", { Host: null }, "400 BAD_HOST"],
  ["another host", { Host: "evil.example:4100" }, "421 WRONG_HOST"],
  ["another port", { Host: "127.0.0.1:4101" }, "421 WRONG_HOST"],
  ["another origin", { Origin: "http://evil.example" }, "403 FOREIGN_ORIGIN"],
  ["a page without an origin", { Origin: "null" }, "403 FOREIGN_ORIGIN"],
  ["another site", { "Sec-Fetch-Site": "cross-site" }, "403 FOREIGN_SITE"],
  ["no token", { Authorization: null }, "401 TOKEN_NEEDED"],
  ["another token", { Authorization: `Bearer ${token.slice(0, -1)}x` }, "401 TOKEN_NEEDED"],
  ["a token of another scheme", { Authorization: `Basic ${token}` }, "401 TOKEN_NEEDED"],
  ["a token in the address", { target: `/mcp?token=${token}`, Authorization: null }, "401 TOKEN_NEEDED"],
  ["a query", { target: "/mcp?x=1" }, "404 NOT_FOUND"],
  ["another path", { target: "/" }, "404 NOT_FOUND"],
  ["an absolute target", { target: "http://127.0.0.1:4100/mcp" }, "400 BAD_TARGET"],
  ["a form", { "Content-Type": "text/plain" }, "415 WRONG_TYPE"],
  ["too large a body", { "Content-Length": "1048577" }, "413 BODY_TOO_LARGE"],
  ["a stream with a body", { method: "GET", "Content-Length": "5" }, "400 BODY_UNEXPECTED"],
];

for (const [name, { method = "POST", target = "/mcp", ...changed }, code] of ROWS)
  test(`${name}: ${code ?? "passes"}`, () => {
    const headers = Object.entries({ ...HEADERS, ...changed }).flatMap(([key, value]) =>
      value === null ? [] : [key, value],
    );
    const refused = judgeMcpRequest({ method, target, headers }, rules);
    assert.equal(refused === null ? null : `${refused.status} ${refused.code}`, code);
  });

test("a header that decides must not come twice", () => {
  const twice = [...Object.entries(HEADERS).flat(), "authorization", `Bearer ${token}`];
  assert.equal(
    judgeMcpRequest({ method: "POST", target: "/mcp", headers: twice }, rules)?.code,
    "BAD_HEADER",
  );
});
