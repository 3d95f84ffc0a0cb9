/** No backend ever tries to reach anybody but the model it was given. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isolation, offline } from "./loopback.ts";

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const script = (text: string) => [process.execPath, "-e", text];

describe("an attempt to reach somebody elsewhere is seen", isolation, () => {
  const rows: readonly [name: string, text: string, isSeen: boolean][] = [
    ["by IPv4", `require("net").connect(80, "192.0.2.9").on("error", () => {})`, true],
    ["by IPv6", `require("net").connect(80, "2001:db8::1").on("error", () => {})`, true],
    [
      "by a packet",
      `const s = require("dgram").createSocket("udp4"); s.send("x", 9, "192.0.2.9", () => s.close())`,
      true,
    ],
    ["by a name", `fetch("http://example.invalid/").catch(() => {})`, true],
    [
      "and one on this machine is not",
      `require("http").createServer((_, r) => r.end()).listen(0, "127.0.0.1", function () {
        fetch("http://localhost:" + this.address().port).then(({ status }) => process.exit(status === 200 ? 0 : 1)); });`,
      false,
    ],
  ];
  for (const [name, text, isSeen] of rows) {
    test(name, () => {
      const { status, output, attempts } = offline(script(text));
      assert.equal(status, 0, output);
      assert.equal(attempts > 0, isSeen);
    });
  }
});

describe("with no network but loopback, nobody else is tried to be reached by", isolation, () => {
  // Those with programs of their own do the same by themselves: claude-agent.proc.ts, acp.proc.ts, end-to-end.proc.ts.
  for (const name of ["scripted/scripted.test.ts", "ai-sdk/ai-sdk.test.ts", "aimock.test.ts"]) {
    test(name, () => {
      const { status, output, attempts } = offline([process.execPath, "--test", file(name)]);
      assert.equal(status, 0, output);
      assert.match(output, /^ℹ pass [1-9]/m);
      assert.equal(attempts, 0);
    });
  }
});
