/** Connections that fail, by the code that Node gives: whether trying again can help, and what the user can do. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connectionTrouble, type Proxy } from "../../../src/backends/ai-sdk/connection.ts";

/** As fetch rejects: the reason is the cause. */
function failure(code: string, message = `it failed with ${code}`): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });
}

const FAR = "https://models.example/v1";
const NEAR = "http://localhost:8000/v1";

const ROWS: readonly (readonly [
  code: string,
  url: string,
  kind: string,
  hint: RegExp | undefined,
  waits: number | undefined,
  mayNeedProxy: boolean,
])[] = [
  ["ECONNREFUSED", FAR, "network", /Nothing accepts connections at models\.example: start/, undefined, true],
  ["ECONNREFUSED", NEAR, "network", /at localhost:8000: start/, 1000, false],
  ["ECONNREFUSED", "http://[::1]:8000", "network", /at \[::1\]:8000/, 1000, false],
  ["ECONNREFUSED", "http://127.9.9.9:1", "network", /at 127\.9\.9\.9:1/, 1000, false],
  ["ECONNREFUSED", "http://127.0.0.1.example", "network", /at 127\.0\.0\.1\.example/, undefined, true],
  ["ENOTFOUND", FAR, "network", /The name models\.example cannot be resolved/, undefined, true],
  ["EAI_AGAIN", FAR, "network", /cannot be resolved/, undefined, true],
  ["ENOTFOUND", NEAR, "network", /cannot be resolved/, undefined, false],
  ["ETIMEDOUT", FAR, "network", /models\.example does not answer/, undefined, true],
  ["UND_ERR_CONNECT_TIMEOUT", FAR, "network", /does not answer/, undefined, true],
  ["EHOSTUNREACH", NEAR, "network", /does not answer/, undefined, false],
  [
    "SELF_SIGNED_CERT_IN_CHAIN",
    FAR,
    "other",
    /The certificate of models\.example is not trusted: set NODE_EXTRA_CA_CERTS/,
    undefined,
    false,
  ],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", FAR, "other", /is not trusted/, undefined, false],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", FAR, "other", /is not trusted/, undefined, false],
  ["CERT_HAS_EXPIRED", FAR, "other", /is not valid: check the base address/, undefined, false],
  ["ERR_TLS_CERT_ALTNAME_INVALID", FAR, "other", /is not valid/, undefined, false],
  ["ERR_SSL_WRONG_VERSION_NUMBER", FAR, "other", /does not speak https/, undefined, false],
  ["EPROTO", FAR, "other", /does not speak https/, undefined, false],
  ["HPE_INVALID_CONSTANT", FAR, "other", /does not speak HTTP/, undefined, false],
  ["ECONNRESET", FAR, "network", undefined, undefined, false],
  ["UND_ERR_SOCKET", FAR, "network", undefined, undefined, false],
];

for (const [code, url, kind, hint, waits, mayNeedProxy] of ROWS) {
  test(`${code} at ${url}`, () => {
    const lost = connectionTrouble(failure(code), url);
    assert.ok(lost !== null);
    assert.equal(lost.words, `the connection failed: it failed with ${code}`);
    assert.deepEqual([lost.kind, lost.retryAfterMs, lost.isUnreached], [kind, waits, mayNeedProxy]);
    if (hint === undefined) assert.equal(lost.hint, undefined);
    else assert.match(lost.hint ?? "", hint);
  });
}

test("Ollama on this machine is started with a command", () => {
  const hint = (url: string, provider: "ollama" | "openai-compatible") =>
    connectionTrouble(failure("ECONNREFUSED"), url, provider)?.hint?.includes("(ollama serve)");
  assert.deepEqual(
    [hint(NEAR, "ollama"), hint(FAR, "ollama"), hint(NEAR, "openai-compatible")],
    [true, false, false],
  );
});

test("a name with two addresses fails with both", () => {
  const both = new AggregateError([
    failure("ECONNREFUSED", "::1").cause,
    failure("ECONNREFUSED", "127.0.0.1").cause,
  ]);
  const lost = connectionTrouble(new TypeError("fetch failed", { cause: both }), NEAR);
  assert.deepEqual([lost?.words, lost?.retryAfterMs], ["the connection failed: ::1", 1000]);
});

describe("a proxy", () => {
  const at = (variable: string, more: Partial<Proxy> = {}): Proxy => ({
    variable,
    hostname: "proxy.example",
    port: 3128,
    hasLogin: false,
    ...more,
  });
  const SECURE = at("HTTPS_PROXY");
  const PLAIN = at("http_proxy", { hostname: "10.0.0.9", port: 80, hasLogin: true });
  const fails = (code: string, more: object, message?: string) =>
    new TypeError("fetch failed", { cause: Object.assign(failure(code, message).cause as Error, more) });
  const refuses = (status: number) =>
    failure("UND_ERR_ABORTED", `Proxy response (${status}) !== 200 when HTTP Tunneling`);
  const rows: readonly (readonly [
    name: string,
    error: Error,
    url: string,
    proxies: readonly Proxy[],
    kind: string,
    hint: RegExp,
  ])[] = [
    [
      "that is not there",
      fails("ECONNREFUSED", { address: "10.0.0.7", port: 3128 }),
      FAR,
      [PLAIN, SECURE],
      "other",
      /^The proxy in HTTPS_PROXY is proxy\.example:3128\. Nothing accepts connections there: start it, correct HTTPS_PROXY, or unset it\.$/,
    ],
    [
      "at the port of the server",
      fails("ECONNREFUSED", { address: "10.0.0.9", port: 80 }),
      "http://models.example/v1",
      [PLAIN],
      "other",
      /^The proxy in http_proxy is 10\.0\.0\.9:80\./,
    ],
    [
      "beside a server at the same port that is reached directly",
      fails("ECONNREFUSED", { address: "10.0.0.1", port: 80 }),
      "http://models.example/v1",
      [PLAIN],
      "network",
      /^Nothing accepts connections at models\.example/,
    ],
    [
      "beside a server at another port of its host",
      fails("ECONNREFUSED", { address: "10.0.0.9", port: 8000 }),
      "http://10.0.0.9:8000/v1",
      [PLAIN],
      "network",
      /^Nothing accepts connections at 10\.0\.0\.9:8000/,
    ],
    [
      "that is also the server",
      fails("ECONNREFUSED", { address: "10.0.0.9", port: 80 }),
      "http://10.0.0.9/v1",
      [PLAIN],
      "network",
      /^Nothing accepts connections at 10\.0\.0\.9/,
    ],
    [
      "without a name",
      fails("ENOTFOUND", { hostname: "proxy.example" }),
      FAR,
      [SECURE],
      "other",
      /^The proxy in HTTPS_PROXY .* Its name cannot be resolved/,
    ],
    [
      "whose name may be found later",
      fails("EAI_AGAIN", { hostname: "proxy.example" }),
      FAR,
      [SECURE],
      "network",
      /^The proxy in HTTPS_PROXY .* Its name cannot be resolved/,
    ],
    [
      "beside a server without a name",
      fails("ENOTFOUND", { hostname: "models.example" }),
      FAR,
      [SECURE],
      "network",
      /^The name models\.example/,
    ],
    [
      "that is silent",
      fails("UND_ERR_CONNECT_TIMEOUT", {}, "Connect Timeout Error (attempted address: proxy.example:3128)"),
      FAR,
      [SECURE],
      "network",
      /^The proxy in HTTPS_PROXY .* It does not answer/,
    ],
    [
      "that requires a login",
      refuses(407),
      FAR,
      [PLAIN, SECURE],
      "other",
      /^It requires a login: set HTTPS_PROXY to http:\/\/ and USER:PASSWORD@proxy\.example:3128 /,
    ],
    [
      "that refuses the login",
      refuses(407),
      "http://models.example",
      [SECURE, PLAIN],
      "other",
      /^It refuses the user name and password in http_proxy: correct them/,
    ],
    [
      "of a program",
      refuses(407),
      FAR,
      [],
      "other",
      /set HTTPS_PROXY to http:\/\/ and USER:PASSWORD@HOST:PORT /,
    ],
    [
      "that forbids the host",
      refuses(403),
      FAR,
      [PLAIN],
      "other",
      /^It does not connect to models\.example: ask/,
    ],
    [
      "that does not reach the host",
      refuses(502),
      FAR,
      [SECURE],
      "network",
      /^It does not connect to models/,
    ],
  ];
  for (const [name, error, url, proxies, kind, hint] of rows)
    test(name, () => {
      const lost = connectionTrouble(error, url, "openai-compatible", proxies);
      assert.equal(lost?.kind, kind);
      assert.match(lost.hint ?? "", hint);
      assert.match(
        lost.words,
        /^the connection failed: (?:the proxy(?: \S+ \(\w+\))? answers \d+$|it failed|Connect)/,
      );
    });
});

test("what is not about a connection is left to others", () => {
  assert.equal(connectionTrouble(new Error("something else"), FAR), null);
  assert.equal(connectionTrouble("ECONNREFUSED", FAR), null);
  assert.equal(connectionTrouble(failure("invalid_api_key"), FAR), null);
});
