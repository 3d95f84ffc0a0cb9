/** What is looked at outside of a run: real files, a real server. */
import assert from "node:assert/strict";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { holds, mayFollow } from "../../../src/effects/look/look-address.ts";
import { matchesPattern } from "../../../src/effects/checks/match-pattern.ts";
import { createWatch } from "../../../src/effects/look/look.ts";
import type { Resource } from "../../../src/flow/flow.ts";
import type { Json, JsonObject } from "../../../src/flow/json.ts";

const outer = mkdtempSync(join(tmpdir(), "lockstep-watch-"));
const cwd = join(outer, "work");
const served: string[] = [];
let here = "";
let elsewhere = "";

const answers: { readonly [path: string]: (request: IncomingMessage, response: ServerResponse) => void } = {
  "/json": (_, response) => response.end('{"state":"done","at":{"by":"me","n":[1,2]},"more":1}'),
  "/word": (_, response) => response.end('"done"'),
  "/text": (_, response) => response.end("<html>"),
  "/500": (_, response) => response.writeHead(500).end('{"state":"done"}'),
  "/hang": () => undefined,
  "/slow-body": (_, response) => void response.write('{"state":'),
  "/huge": (_, response) => response.end(`"${"x".repeat(2 * 1024 * 1024)}"`),
  "/break": (request) => request.socket.destroy(),
  "/moved": (_, response) => response.writeHead(302, { location: "/json" }).end(),
  "/round": (_, response) => response.writeHead(302, { location: "/round" }).end(),
  "/away": (_, response) => response.writeHead(302, { location: `${elsewhere}/json` }).end(),
  "/file": (_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end(),
  "/items/a%2F..%2Fb%3Fx%23": (_, response) => response.end('{"state":"done"}'),
};
const servers = [0, 1].map((port) =>
  createServer((request, response) => {
    served.push(`${port}${request.url}`);
    const answer = answers[request.url ?? ""];
    if (answer === undefined) response.writeHead(404).end();
    else answer(request, response);
  }),
);

before(async () => {
  mkdirSync(join(cwd, "sub"), { recursive: true });
  writeFileSync(join(cwd, "note.md"), "first\nSTATUS: done\nlast\n");
  writeFileSync(join(cwd, "big.txt"), `${"x".repeat(1024 * 1024)}NEEDLE`);
  writeFileSync(join(cwd, "a b.txt"), "spaced");
  writeFileSync(join(outer, "secret.txt"), "STATUS: done");
  symlinkSync(join(outer, "secret.txt"), join(cwd, "link.txt"));
  symlinkSync(outer, join(cwd, "out"));
  symlinkSync("note.md", join(cwd, "inner.md"));
  symlinkSync("nowhere", join(cwd, "dangling"));
  linkSync(join(cwd, "note.md"), join(cwd, "sub", "hard.md"));
  for (const server of servers) {
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  }
  const [one, other] = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  [here, elsewhere] = [one!, other!];
});
after(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  rmSync(outer, { recursive: true, force: true });
});

/** Only what never answers is not waited for. */
function look(resource: Resource, args: JsonObject = {}, signal = new AbortController().signal) {
  const isHanging = resource.kind === "api" && /hang|slow/.test(resource.url);
  const github = async () => ({ ok: false, kind: "no-token", why: "There is no token." }) as const;
  const timeoutMs = isHanging ? 200 : 60_000;
  const watch = createWatch({ agent: "a", root: cwd, cwd, env: {}, timeoutMs, github });
  const glance = { run: "r", step: "s", iteration: 1, args, said: "", payload: {} };
  return watch.look({ kind: "state", resource }, glance, signal);
}

const exists = { kind: "exists" } as const;
const absent = { kind: "absent" } as const;
const contains = (text: string) => ({ kind: "contains", text }) as const;
const matches = (pattern: string) => ({ kind: "matches", pattern }) as const;

type FileRow = readonly [
  path: string,
  want: Extract<Resource, { kind: "file" }>["want"],
  met: boolean,
  says: RegExp,
  args?: JsonObject,
];
const FILES: readonly FileRow[] = [
  ["note.md", exists, true, /note\.md is there/],
  ["note.md", absent, false, /is there/],
  ["none.md", exists, false, /none\.md is not there/],
  ["none.md", absent, true, /is not there/],
  ["no/such/folder.md", absent, true, /is not there/],
  ["note.md/below", absent, true, /is not there/],
  ["sub", exists, true, /is there/],
  ["note.md", contains("STATUS: done"), true, /holds "STATUS: done"/],
  ["note.md", contains("status: done"), false, /does not hold/],
  ["note.md", matches("^first\\n"), true, /holds/],
  ["note.md", matches("^last"), false, /does not hold/],
  ["note.md", matches("(x+x+)+y"), false, /does not hold/],
  ["none.md", contains("x"), false, /is not there/],
  ["sub", contains("x"), false, /is not a file/],
  ["big.txt", contains("NEEDLE"), false, /only the first 1048576 bytes/],
  ["inner.md", contains("done"), true, /holds/],
  ["sub/hard.md", contains("done"), true, /holds/],
  ["dangling", exists, false, /is not there/],
  ["{uv-name}.txt", exists, true, /a b\.txt is there/, { name: "a b" }],
  ["{uv-name}/hard.md", exists, true, /is there/, { name: "sub" }],
  ["{uv-name}", exists, false, /no usable value for \{uv-name\}/],
  ["{uv-toString}", exists, false, /no usable value/],
  // Nothing outside is told of, not even that it is not there.
  ["../secret.txt", exists, false, /leads out of the working folder/],
  ["{uv-name}", exists, false, /leads out/, { name: "../secret.txt" }],
  ["{uv-name}", absent, false, /leads out/, { name: "/etc/none" }],
  ["link.txt", contains("done"), false, /a link leads out/],
  ["out/secret.txt", exists, false, /a link leads out/],
  ["out/none.txt", absent, false, /a link leads out/],
  ["a\0b", absent, false, /leads out/],
];

describe("a file", () => {
  for (const [path, want, met, says, args] of FILES) {
    test(`${JSON.stringify(path)} ${JSON.stringify(want)} ${JSON.stringify(args ?? {})}`, async () => {
      const sight = await look({ kind: "file", path, want }, args);
      assert.equal(sight.met, met, sight.what);
      assert.match(sight.what, says);
    });
  }
});

/** Written apart, so that no tool takes the address for a secret. */
const WORD = "word";

type ApiRow = readonly [path: string, want: Json, met: boolean, says: RegExp, args?: JsonObject];
const ADDRESSES: readonly ApiRow[] = [
  ["/json", { state: "done" }, true, /answers with \{"state":"done"\}/],
  ["/json", { state: "open" }, false, /does not answer with/],
  ["/json", { at: { by: "me", n: [1, 2] } }, true, /answers with/],
  ["/json", { at: { n: [1] } }, false, /does not/],
  ["/json", { none: null }, false, /does not/],
  ["/word", "done", true, /answers with "done"/],
  ["/json", "done", false, /does not/],
  ["/text", { state: "done" }, false, /answered with no JSON: <html>/],
  ["/500", { state: "done" }, false, /answered 500/],
  ["/nowhere", {}, false, /answered 404/],
  ["/hang", {}, false, /nothing came within 200 ms/],
  ["/slow-body", {}, false, /nothing came within 200 ms/],
  ["/huge", {}, false, /longer than 1048576 bytes/],
  ["/break", {}, false, /was not read/],
  ["/moved", { state: "done" }, true, /answers with/],
  ["/round", {}, false, /leads on more than 5 times/],
  ["/away", { state: "done" }, false, /leads on to http:\/\/127\.0\.0\.1:\d+, which is not followed/],
  ["/file", {}, false, /not followed/],
  ["/items/{uv-id}", { state: "done" }, true, /answers with/, { id: "a/../b?x#" }],
  ["/items/{uv-id}", {}, false, /no usable value/, { id: ".." }],
  ["/items/{uv-id}", {}, false, /no usable value/],
];

describe("an address", () => {
  for (const [path, want, met, says, args] of ADDRESSES) {
    test(`${path} ${JSON.stringify(want)} ${JSON.stringify(args ?? {})}`, async () => {
      const sight = await look({ kind: "api", url: here + path, want }, args);
      assert.equal(sight.met, met, sight.what);
      assert.match(sight.what, says);
    });
  }

  const steps: readonly (readonly [from: string, to: string, isFollowed: boolean])[] = [
    ["https://a.org/x", "https://a.org/y", true],
    ["https://a.org/x", "https://a.org:443/y", true],
    ["http://a.org/x", "http://a.org/y?z#t", true],
    ["https://a.org/x", "http://a.org/y", false],
    ["http://a.org/x", "https://a.org/y", false],
    ["https://a.org/x", "https://a.org:444/y", false],
    ["https://a.org/x", "https://b.a.org/y", false],
    ["https://a.org/x", "https://a.org.evil.org/y", false],
    ["https://a.org/x", `https://me:${WORD}@a.org/y`, false],
    ["https://a.org/x", "file:///etc/passwd", false],
    ["https://a.org/x", "data:application/json,{}", false],
  ];
  for (const [from, to, isFollowed] of steps)
    test(`${from} to ${to}`, () => assert.equal(mayFollow(new URL(from), new URL(to)), isFollowed));

  test("that nobody listens at is not met, and says why", async () => {
    const sight = await look({ kind: "api", url: "http://127.0.0.1:9/x", want: {} });
    assert.deepEqual([sight.met, /was not read: .+/.test(sight.what)], [false, true]);
  });

  test("of another host is never asked on the way", () => {
    assert.deepEqual(
      served.filter((path) => path.startsWith("1")),
      [],
    );
  });

  test("is left alone once the run is stopped", async () => {
    const stop = new AbortController();
    const looking = look({ kind: "api", url: `${here}/hang`, want: {} }, {}, stop.signal);
    stop.abort();
    assert.equal((await looking).met, false);
  });
});

const SUBSETS: readonly [found: Json, want: Json, is: boolean][] = [
  [{ a: 1, b: 2 }, {}, true],
  [{ a: { b: 1, c: 2 } }, { a: { c: 2 } }, true],
  [{ a: 1 }, { a: "1" }, false],
  [[1, 2], [1, 2], true],
  [[{ a: 1, b: 2 }], [{ a: 1 }], false],
  [null, null, true],
  [[], {}, false],
  [{}, { toString: 1 }, false],
];

for (const [found, want, is] of SUBSETS) {
  test(`${JSON.stringify(found)} ${is ? "holds" : "does not hold"} ${JSON.stringify(want)}`, () => {
    assert.equal(holds(found, want), is);
  });
}

const PATTERNS: readonly [pattern: string, text: string, ok: boolean][] = [
  ["a.c", "xabc", true],
  ["^b", "abc", false],
  ["(x+x+)+y$", "x".repeat(60), false],
  ["(", "(", false],
];

for (const [pattern, text, ok] of PATTERNS) {
  test(`/${pattern}/ ${ok ? "is" : "is not"} found, in bounded time`, async () => {
    assert.equal((await matchesPattern(pattern, text)).ok, ok);
  });
}
