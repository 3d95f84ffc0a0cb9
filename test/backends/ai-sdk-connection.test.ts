/** Connections that fail, by the code that Node gives: whether trying again can help, and what the user can do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectionTrouble } from "../../src/backends/ai-sdk-connection.ts";

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

test("what is not about a connection is left to others", () => {
  assert.equal(connectionTrouble(new Error("something else"), FAR), null);
  assert.equal(connectionTrouble("ECONNREFUSED", FAR), null);
  assert.equal(connectionTrouble(failure("invalid_api_key"), FAR), null);
});
