/** The server over HTTP, asked by those who must not, who send too much, or who come in great numbers. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { describe, test } from "node:test";
import { createWorld } from "../cli/world.ts";
import { becomes, overHttp, skip, slow, writeNotes, type ServedMcp } from "./client.ts";

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

type Answer = {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
};

/** As it is written: `fetch` would not send such heads. */
async function ask(
  { port, token }: ServedMcp,
  { method = "POST", path = "/mcp", body, ...headers }: { readonly [name: string]: string | undefined },
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const given = {
    Authorization: `Bearer ${token}`,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    ...headers,
  };
  for (const [name, value] of Object.entries(given))
    if (value === undefined) delete given[name as keyof typeof given];
  const sent = request({ host: "127.0.0.1", port, method, path, headers: given }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (part: string) => (text += part));
    response.on("close", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
  });
  sent.on("error", reject);
  sent.end(method === "POST" ? body : undefined);
  return await promise;
}

function childrenOf(parent: number): readonly number[] {
  const listed = readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8");
  return listed.trim().split(" ").filter(Boolean).map(Number);
}

/** Empty where it has ended by now. */
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}

describe("over HTTP", { skip }, () => {
  test("who has no business here is refused before anything is read", async () => {
    using world = createWorld();
    writeNotes(world);
    const server = await overHttp(world);
    const body = JSON.stringify(INITIALIZE);
    for (const [change, status, code] of [
      [{ Host: `evil.example:${server.port}` }, 421, "WRONG_HOST"],
      [{ Origin: "https://evil.example" }, 403, "FOREIGN_ORIGIN"],
      [{ "Sec-Fetch-Site": "cross-site" }, 403, "FOREIGN_SITE"],
      [{ Authorization: "Bearer nothing" }, 401, "TOKEN_NEEDED"],
      [{ Authorization: "", path: `/mcp?token=${server.token}` }, 401, "TOKEN_NEEDED"],
      [{ path: "/../mcp" }, 404, "NOT_FOUND"],
      [{ method: "OPTIONS", Origin: "https://evil.example" }, 405, "METHOD_NOT_ALLOWED"],
      [{ "Content-Type": "text/plain" }, 415, "WRONG_TYPE"],
      [{ body: "{" }, 400, "BAD_BODY"],
      [{ body: '"text"' }, 400, "BAD_BODY"],
      [{ body: "x".repeat(1024 * 1024 + 1) }, 413, "BODY_TOO_LARGE"],
      [{ body: "x".repeat(1024 * 1024 + 1), "Transfer-Encoding": "chunked" }, 413, "BODY_TOO_LARGE"],
    ] as const) {
      const { text, headers, ...answer } = await ask(server, { body, ...change });
      assert.deepEqual(
        [answer.status, JSON.parse(text).code],
        [status, code],
        JSON.stringify(change).slice(0, 200),
      );
      assert.equal(headers["access-control-allow-origin"], undefined);
      assert.equal(headers["mcp-session-id"], undefined);
      assert.ok(!text.includes(server.token));
    }
    assert.equal((await ask(server, { body })).status, 200, "and the right one is answered");
  });

  test("a token of the user's own is used, and neither printed nor passed to runs; a short one is refused", async () => {
    using world = createWorld();
    writeNotes(world, {}, slow(60_000));
    const own = "my-own-token_".repeat(4);
    const server = await overHttp(world, { env: { LOCKSTEP_MCP_TOKEN: own } });
    assert.equal(server.made, null);
    await using client = await server.connect();
    const { structuredContent: begun } = await client.callTool({
      name: "notes",
      arguments: { topic: "tides", wait: 0 },
    });
    assert.equal(begun.outcome, "running");
    if (process.platform === "linux") {
      const seen = childrenOf(server.pid).map(environmentOf);
      assert.ok(seen.some((env) => env.includes("LOCKSTEP_TRUST=all")));
      assert.ok(seen.every((env) => !env.includes(own)));
    }
    await client.callTool({ name: "run_stop", arguments: { run: begun.run } });
    const env = { LOCKSTEP_PACKAGES: process.env.LOCKSTEP_PACKAGES, LOCKSTEP_MCP_TOKEN: "short" };
    const short = await world.lockstep(["mcp", "--http"], { env });
    assert.equal(short.code, 2);
    assert.match(short.stderr, /LOCKSTEP_MCP_TOKEN must have 32 to 200 letters[^\n]* openssl rand -hex 32/);
  });

  test("many sessions: the one that is idle for longest ends, and the others go on", async () => {
    using world = createWorld();
    writeNotes(world);
    const server = await overHttp(world);
    const body = JSON.stringify(INITIALIZE);
    const list = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    const status = async (id: string) => (await ask(server, { body: list, "Mcp-Session-Id": id })).status;
    const ids: string[] = [];
    for (let count = 0; count < 70; count += 1) {
      const { headers, status: begun } = await ask(server, { body });
      assert.equal(begun, 200);
      ids.push(String(headers["mcp-session-id"]));
      // The first one is used again before there is no room any more.
      if (count === 60) assert.equal(await status(ids[0]!), 200);
    }
    assert.equal(new Set(ids).size, 70);
    const left = [0, 1, 6, 7, 69].map(async (place) => await status(ids[place]!));
    assert.deepEqual(await Promise.all(left), [200, 404, 404, 200, 200]);
    const end = { method: "DELETE", "Mcp-Session-Id": ids[69]!, "Content-Type": undefined };
    assert.equal((await ask(server, end)).status, 200);
    assert.equal(await status(ids[69]!), 404);
    // What begins no session takes no place.
    assert.equal((await ask(server, { body: list })).status, 400);
    assert.equal(await status("made-up"), 404);
  });

  test("a session that ends while a call waits stops no run", async () => {
    using world = createWorld();
    writeNotes(world, {}, slow(2000));
    const server = await overHttp(world);
    const client = await server.connect();
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = client
      .callTool({ name: "notes", arguments: { topic: "tides" } }, { onprogress: () => resolve() })
      .catch(() => null);
    await promise;
    await client.endSession();
    await using other = await server.connect();
    const waited = { name: "run_wait", arguments: { run: "@last", wait: 120 } };
    assert.equal((await other.callTool(waited)).structuredContent.outcome, "completed");
    await client.close();
    await call;
  });

  test("a server that is ended lets its runs go on", async () => {
    using world = createWorld();
    writeNotes(world, {}, slow(2000));
    const server = await overHttp(world);
    const client = await server.connect({ era: "2026" });
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = client.callTool(
      { name: "notes", arguments: { topic: "tides" } },
      { onprogress: () => resolve() },
    );
    await promise;
    process.kill(server.pid, "SIGINT");
    const { structuredContent: left } = await call;
    assert.match(left.outcome, /^(?:running|completed)$/);
    await becomes(world, left.run, "completed");
    await client.close();
  });
});
