/** What `doctor --online` concludes from the answer of a model server, and which addresses NO_PROXY lists. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { isSpared } from "../../../src/run/world/proxy.ts";
import { reachModel } from "../../../src/run/world/service-reach.ts";
import { projectWith } from "../project.ts";

const KEY = "sk-a-key-that-is-secret";
const PAGE = "<!doctype html><title>Sign in</title>";
const LIST = JSON.stringify({ data: [{ id: "m" }] });
const error = (message: string) => JSON.stringify({ error: { message } });

const ROWS: readonly (readonly [
  status: number,
  body: string,
  apiKeyEnv: string | null,
  detail: RegExp,
  fix: RegExp | null,
])[] = [
  [200, LIST, null, /\/models answers 200$/, null],
  [200, `{"data":[${"0,".repeat(200_000)}0]}`, null, /answers 200$/, null],
  [200, PAGE, null, /answers 200: the answer is an HTML page \("Sign in"\)/, /base address .*log in/],
  [200, "hello", null, /answers 200, but not with a list of models: hello$/, /server of another kind/],
  [200, "", null, /answers 200, but not with a list of models$/, /server of another kind/],
  [200, error("no"), null, /answers 200, but not with a list of models: no$/, /server of another kind/],
  [
    302,
    "",
    null,
    /answers 302, a redirect, which is not followed$/,
    /set the base address to where it leads/,
  ],
  [400, error("API key not valid"), "K", /answers 400: API key not valid$/, /base address .* and the key/],
  [400, error(`bad ${KEY}`), "K", /answers 400: bad \*\*\*$/, /and the key/],
  // What is that short is a word rather than a secret.
  [400, error("Bearer of bad news"), "K", /answers 400: Bearer of bad news$/, /and the key/],
  [
    401,
    error("no"),
    null,
    /requires a key \(401\)$/,
    /^add "apiKeyEnv": "NAME" to it in \/.*config\.json, and set the variable NAME/,
  ],
  [401, error("no"), "K", /refuses the key \(401\)$/, /^set K to a valid key$/],
  [403, PAGE, "K", /refuses the key \(403\)$/, /^set K to a valid key$/],
  [404, error("no"), null, /answers 404: a server is there, .* not confirmed$/, /can still work: try a run$/],
  [404, PAGE, null, /answers 404: the answer is an HTML page/, /log in/],
  [405, "", null, /answers 405: a server is there/, /can still work/],
  [422, error("odd"), null, /answers 422: odd$/, /base address/],
  [429, error("slow down"), null, /answers 429: slow down$/, /^wait, or check the limits/],
  [500, error("broken"), null, /answers 500: broken$/, /status page/],
  [503, PAGE, null, /answers 503: the answer is an HTML page/, /status page/],
];

test("only a list of models is ok; every other answer is reported with a fix", async () => {
  let answer: (typeof ROWS)[number] = ROWS[0]!;
  const server = createServer((_, response) => response.writeHead(answer[0]).end(answer[1]));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    for (const row of ROWS) {
      answer = row;
      const [status, body, apiKeyEnv, detail, fix] = row;
      const entry = { provider: "openai-compatible", model: "m", baseUrl, ...(apiKeyEnv && { apiKeyEnv }) };
      const config = JSON.stringify({ models: { here: entry } });
      const env = { XDG_CONFIG_HOME: projectWith({ "lockstep/config.json": config }), K: KEY };
      const reached = await reachModel("here", env, new Map());
      const about = `${status} ${body.slice(0, 60)}`;
      assert.match(reached.detail, detail, about);
      assert.equal(reached.ok, fix === null, about);
      if (!reached.ok) assert.match(reached.fix, fix!, about);
    }
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

test("models of a service share a request, unless they send other keys or headers", async () => {
  const seen: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    seen.push(headers.authorization ?? headers["x-team"]?.toString());
    response.end(LIST);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const entry = { provider: "openai-compatible", model: "m", baseUrl };
    const models = {
      first: { ...entry, apiKeyEnv: "K" },
      second: { ...entry, apiKeyEnv: "K", model: "n" },
      other: { ...entry, apiKeyEnv: "L" },
      team: { ...entry, headers: { "x-team": "${L}" } },
    };
    const config = JSON.stringify({ models });
    const env = { XDG_CONFIG_HOME: projectWith({ "lockstep/config.json": config }), K: "k1", L: "l1" };
    const asked = new Map();
    for (const name of Object.keys(models)) assert.ok((await reachModel(name, env, asked)).ok);
    assert.deepEqual(seen, ["Bearer k1", "Bearer l1", "l1"]);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

test("NO_PROXY lists hosts, with those below them, for one port or all", () => {
  const rows: readonly (readonly [list: string, url: string, isListed: boolean])[] = [
    ["", "https://a.example/v1", false],
    ["*", "https://a.example/v1", true],
    ["a.example", "https://a.example/v1", true],
    ["b.example, A.example", "https://a.example/v1", true],
    [".example", "https://a.example/v1", true],
    ["*.example", "https://a.example/v1", true],
    ["ample", "https://a.example/v1", false],
    ["a.example:443", "https://a.example/v1", true],
    ["a.example:443", "http://a.example/v1", false],
    ["a.example:8000", "http://a.example:8000/v1", true],
    ["a.example", "not an address", false],
  ];
  for (const [list, url, isListed] of rows)
    assert.deepEqual(
      [isSpared(url, { NO_PROXY: list }), isSpared(url, { no_proxy: list, NO_PROXY: "none.example" })],
      list === "" ? [isListed, false] : [isListed, isListed],
      `${list} ${url}`,
    );
});
