/** `lockstep studio` over real sockets: hostile requests, looking without a trace, live runs, damage, and its end. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createWorld, replies, script, writeAgent, type World } from "../cli/world.ts";
import { until } from "../until.ts";
import { DOCUMENTS, requestRows, sendRaw, textOf } from "./requests.ts";
import { serve } from "./served.ts";

const DONE = script(replies.initial(), replies.continuation(), replies.closure());

/** A project with the agent `notes`; `run` runs it once. */
function createProject(): World & { readonly run: (...flags: readonly string[]) => Promise<string> } {
  const world = createWorld();
  writeAgent(world, "notes");
  world.write("done.json", DONE);
  const run = async (...flags: readonly string[]) => {
    const args = ["run", "notes", "--topic", "tea", "--script", "done.json", "--json", ...flags];
    const ran = await world.lockstep(args);
    assert.equal(ran.code, 0, ran.stderr + ran.stdout);
    return (JSON.parse(ran.stdout) as { run: string }).run;
  };
  return Object.assign(world, { run });
}

/** Written out once more: a part that is lost opens the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'";

test("every hostile request is refused with its status, and no answer opens anything to another site", async () => {
  using world = createProject();
  await world.run();
  const studio = await serve(world, "--port", "0");
  const rows = requestRows(studio);
  assert.ok(rows.filter(({ status }) => status !== null).length >= 80);
  const unread: string[] = [];
  for (const row of rows) {
    const { status, headers, body } = await sendRaw(studio.port, textOf(row));
    assert.equal(status, row.status ?? 200, row.name);
    // Node's own parser refuses some of them before we see them.
    if (status === 400 && body === "" && headers.get("connection") === "close" && headers.size === 2) {
      unread.push(row.name);
      continue;
    }
    if (row.code !== null && row.method !== "HEAD")
      assert.equal((JSON.parse(body) as { code: string }).code, row.code, row.name);
    assert.equal(body.includes(studio.token), false, row.name);
    assert.deepEqual(
      [...headers.keys()].filter((name) => name.startsWith("access-control") || name === "set-cookie"),
      [],
      row.name,
    );
    assert.equal(headers.get("content-security-policy"), POLICY, row.name);
    assert.deepEqual(
      ["x-content-type-options", "referrer-policy", "cache-control", "cross-origin-resource-policy"].map(
        (name) => headers.get(name),
      ),
      ["nosniff", "no-referrer", "no-store", "same-origin"],
      row.name,
    );
  }
  assert.deepEqual(unread, ["target api/project"]);
  assert.equal(await studio.stop(), 0);
});

test("bytes that are not a request close the connection, and the server goes on", async () => {
  using world = createProject();
  const { port, get, stop, host, token } = await serve(world, "--port", "0");
  const head = `Host: ${host}\r\nAuthorization: Bearer ${token}\r\n`;
  for (const [name, bytes, statuses] of [
    ["not HTTP", "\0\0\0\0\r\n\r\n", [400]],
    ["TLS", Buffer.from("16030100", "hex"), [400]],
    ["an old version", "GET /api/project HTTP/0.9\r\n\r\n", [400]],
    ["a line folded into a header", `GET / HTTP/1.1\r\n${head} folded\r\n\r\n`, [400]],
    ["a line feed in the target", `GET /\n/x HTTP/1.1\r\n${head}\r\n`, [400]],
    ["a header that is too long", `GET / HTTP/1.1\r\n${head}X: ${"x".repeat(20_000)}\r\n\r\n`, [400, 431]],
    [
      "two lengths",
      `POST /api/runs HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
      [400],
    ],
    [
      "a length beside chunks",
      `POST /api/runs HTTP/1.1\r\n${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      [400],
    ],
    ["a tunnel", `CONNECT evil.example:443 HTTP/1.1\r\n${head}\r\n`, [0, 400, 405]],
  ] as const) {
    const { status } = await sendRaw(port, bytes);
    assert.ok((statuses as readonly number[]).includes(status), `${name}: ${status}`);
  }
  assert.equal((await get("project")).status, 200);
  await stop();
});

test("bodies of a POST are read up to their limit, and only as JSON objects", async () => {
  using world = createProject();
  const { port, host, token, stop } = await serve(world, "--port", "0");
  const head = (path: string) =>
    `POST /api/${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nOrigin: http://${host}\r\n` +
    "Content-Type: application/json\r\nConnection: close\r\n";
  const sized = (text: string | Buffer) =>
    Buffer.concat([Buffer.from(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n`), Buffer.from(text)]);
  const chunk = "x".repeat(65_536);
  const chunks = (times: number) =>
    `Transfer-Encoding: chunked\r\n\r\n${`10000\r\n${chunk}\r\n`.repeat(times)}0\r\n\r\n`;
  for (const [name, body, status, code] of [
    ["nothing", sized(""), 400, "BAD_BODY"],
    ["not JSON", sized("{"), 400, "BAD_BODY"],
    ["a list", sized("[]"), 400, "BAD_BODY"],
    ["null", sized("null"), 400, "BAD_BODY"],
    ["not UTF-8", sized(Buffer.from([0x7b, 0xff, 0x7d])), 400, "BAD_BODY"],
    ["chunks below the limit", chunks(15), 400, "BAD_BODY"],
    ["chunks above the limit", chunks(17), 413, "BODY_TOO_LARGE"],
    ["chunks far above the limit", chunks(160), 413, "BODY_TOO_LARGE"],
    ["far more than the limit", sized(chunk.repeat(160)), 413, "BODY_TOO_LARGE"],
    ["an agent that does not exist", sized('{"agent":"nobody","args":{}}'), 404, "AGENT_UNKNOWN"],
    ["a member that is a prototype", sized('{"__proto__":{"agent":"notes"}}'), 400, "USAGE"],
  ] as const) {
    const { status: given, body: said } = await sendRaw(
      port,
      Buffer.concat([Buffer.from(head("runs")), Buffer.from(body)]),
    );
    assert.deepEqual([given, (JSON.parse(said) as { code: string }).code], [status, code], name);
  }
  assert.equal((await sendRaw(port, `${head("nothing")}Content-Length: 2\r\n\r\n{}`)).status, 404);
  assert.equal((await sendRaw(port, `${head("project")}Content-Length: 2\r\n\r\n{}`)).status, 405);
  await stop();
});

test("a document is what the command prints, and a name that does not exist is said so", async () => {
  using world = createProject();
  const run = await world.run();
  const { get, stop } = await serve(world, "--port", "0");
  for (const [path, command] of [
    [`runs/${run}/why/closure.note@1`, ["why", run, "closure.note@1", "--json"]],
    [`runs/${run}/why`, ["why", run, "--json"]],
  ] as const) {
    const printed = JSON.parse((await world.lockstep(command)).stdout) as object;
    const { damage, visits, ...document } = (await get(path)).document;
    assert.deepEqual([document, damage], [printed, null]);
    assert.deepEqual(visits, [{ step: "closure.note", visit: 1, seq: visits[0].seq }]);
  }
  const shown = JSON.parse((await world.lockstep(["show", run, "--json"])).stdout) as object;
  const { document } = await get(`runs/${run}`);
  assert.deepEqual(document.shown, shown);
  assert.deepEqual([document.args, document.changes, document.damage], [{ topic: "tea" }, [], null]);
  const { path } = (document as { shown: { path: unknown[] } }).shown;
  for (const most of [0, 1, path.length + 1]) {
    const brief = (await get(`runs/${run}?path=${most}`)).document as { shown: object };
    assert.deepEqual(brief.shown, {
      ...(document.shown as object),
      path: most === 0 ? [] : path.slice(-most),
    });
  }
  const log = (await get(`runs/${run}/log`)).document;
  const lines = (await world.lockstep(["logs", run, "--json"])).stdout.trim().split("\n");
  assert.deepEqual(
    log.lines.map(({ message }: { message: string }) => message),
    lines.map((line) => (JSON.parse(line) as { message: string }).message),
  );
  const talk = (await get(`runs/${run}/talk`)).document;
  const said = (await world.lockstep(["logs", run, "--transcript", "--json"])).stdout.trim().split("\n");
  assert.equal(
    talk.conversations.reduce((sum: number, { count }: { count: number }) => sum + count, 0),
    said.length,
  );
  for (const [path, status, code] of [
    ["runs/none", 404, "RUN_UNKNOWN"],
    [`runs/${run}/why/nowhere`, 404, "STEP_UNKNOWN"],
    [`runs/${run}/at/9999`, 404, "ENTRY_UNKNOWN"],
    [`runs/${run}/at/x`, 400, "USAGE"],
    [`runs/${run}/log?level=loud`, 400, "USAGE"],
    ["runs?limit=-1", 400, "USAGE"],
    ["nothing", 404, "NOT_FOUND"],
    [`runs/${run}/frames/x`, 404, "NOT_FOUND"],
    ["runs/", 404, "NOT_FOUND"],
  ] as const) {
    const refused = await get(path);
    assert.deepEqual([refused.status, refused.document.code], [status, code], path);
  }
  await stop();
});

/** Names and times of everything in the project, without what SQLite keeps beside an open database. */
function traces(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => !/-(?:wal|shm)$/.test(name))
    .map((name) => {
      const { mtimeMs, size } = statSync(join(root, name));
      return statSync(join(root, name)).isDirectory() ? name : `${name} ${mtimeMs} ${size}`;
    })
    .toSorted();
}

test("looking leaves no trace: no state folder where there is none, and no change where there is one", async () => {
  using world = createProject();
  const before = traces(world.root);
  const empty = await serve(world, "--port", "0");
  for (const path of DOCUMENTS) await empty.get(path);
  const idle = await empty.listen();
  await idle.until(({ type }) => type === "hello", "a first word");
  assert.deepEqual((await empty.get("runs")).document, { v: 1, total: 0, runs: [], next: null, cursor: "" });
  assert.equal(await empty.stop(), 0);
  assert.deepEqual(traces(world.root), before);
  await world.run();
  const recorded = traces(world.root);
  const studio = await serve(world, "--port", "0");
  for (const path of DOCUMENTS) assert.equal((await studio.get(path)).status, 200);
  const heard = await studio.listen();
  await heard.until(({ type }) => type === "questions", "the number of open questions");
  await studio.stop();
  assert.deepEqual(traces(world.root), recorded);
});

test("a page hears of the first run, of its entries, of its removal, and of a journal that goes away", async () => {
  using world = createProject();
  const studio = await serve(world, "--port", "0");
  const first = await studio.listen();
  await first.until(({ type }) => type === "hello", "a first word");
  const run = await world.run();
  await first.until(({ type }) => type === "reset", "there is a journal now");
  assert.equal((await studio.get("runs")).document.total, 1);
  const second = await studio.listen(`run=${run}`);
  const heard = await second.until(({ type }) => type === "frames", "frames");
  const frames = heard.type === "frames" ? heard.frames : [];
  assert.deepEqual(frames, (await studio.get(`runs/${run}/frames`)).document.frames);
  const another = await world.run();
  await second.until(
    (message) =>
      message.type === "runs" &&
      message.runs.some((line) => line.run === another && line.state === "completed"),
    "the second run is complete",
  );
  assert.equal((await world.lockstep(["runs", "--prune", another, "--yes"])).code, 0);
  await second.until((message) => message.type === "gone" && message.runs.includes(another), "it is gone");
  assert.equal((await studio.get(`runs/${another}`)).status, 404);
  const state = join(world.root, ".lockstep");
  renameSync(state, `${state}-away`);
  await second.until(({ type }) => type === "reset", "the journal went away");
  assert.equal((await studio.get("runs")).document.total, 0);
  renameSync(`${state}-away`, state);
  await until(async () => (await studio.get("runs")).document.total === 1, "the journal is back");
  first.close();
  second.close();
  assert.equal(await studio.stop(), 0);
});

test("a journal that cannot be read is a sentence, and the page is served nevertheless", async () => {
  using world = createProject();
  mkdirSync(join(world.root, ".lockstep"));
  writeFileSync(
    join(world.root, ".lockstep/runs.db"),
    "this is not a database, and never was one".repeat(100),
  );
  const studio = await serve(world, "--port", "0");
  const { status, document } = await studio.get("runs");
  assert.deepEqual([status, document.code], [503, "JOURNAL_UNAVAILABLE"]);
  assert.match(document.reason, /runs\.db/);
  assert.equal((await studio.get("project")).status, 200);
  await studio.stop();
});

test("a driver that is killed is seen as interrupted, and a studio that is killed stops no run", async () => {
  using world = createProject();
  world.write("slow.json", script({ error: { kind: "rate-limit", retryAfterMs: 60_000 } }));
  const studio = await serve(world, "--port", "0");
  const heard = await studio.listen();
  const child = world.begin(["run", "notes", "--topic", "tea", "--script", "slow.json"]);
  // Of a run that ends before the stream has seen the journal, the page is told only to ask for everything again.
  await heard.until(({ type }) => type === "reset", "the page hears of the journal");
  await until(
    async () => (await studio.get("runs")).document.runs[0]?.facts?.lanes[0]?.doing === "wait",
    "it runs",
  );
  const { run, facts } = (await studio.get("runs")).document.runs[0];
  assert.deepEqual(
    facts.lanes.map(({ step, doing }: { step: string; doing: string }) => [step, doing]),
    [["initial.note", "wait"]],
  );
  const before = heard.messages.length;
  child.kill("SIGKILL");
  await until(
    () =>
      heard.messages
        .slice(before)
        .some(
          (message) =>
            message.type === "runs" &&
            message.runs.some((line) => line.run === run && line.state === "interrupted"),
        ),
    "the page hears of it",
  );
  const other = world.begin(["run", "notes", "--topic", "tea", "--script", "slow.json"]);
  await until(async () => (await studio.get("runs")).document.runs[0]?.state === "running", "another runs");
  studio.child.kill("SIGKILL");
  const next = await serve(world, "--port", "0");
  assert.equal((await next.get("runs")).document.runs[0].state, "running");
  assert.equal(other.exitCode, null);
  await next.stop();
});

test("24 pages hear the stream at once, and there is room again when one leaves", async () => {
  using world = createProject();
  await world.run();
  const studio = await serve(world, "--port", "0");
  const pages = await Promise.all(Array.from({ length: 23 }, async () => await studio.listen()));
  // Its window is full as soon as nobody reads.
  const slow = connect({ port: studio.port, host: "127.0.0.1" });
  slow.write(
    `GET /api/stream HTTP/1.1\r\nHost: ${studio.host}\r\nAuthorization: Bearer ${studio.token}\r\n\r\n`,
  );
  await new Promise((resolve) => slow.once("readable", resolve));
  const refused = await studio.get("stream");
  assert.deepEqual([refused.status, refused.document.code], [503, "TOO_MANY_STREAMS"]);
  slow.destroy();
  pages[0]!.close();
  await until(async () => {
    const answer = await fetch(`${studio.origin}/api/stream`, {
      headers: { authorization: `Bearer ${studio.token}` },
    });
    await answer.body?.cancel();
    return answer.status === 200;
  }, "there is room again");
  assert.equal(await studio.stop(), 0);
  await until(() => pages.every(({ isOver }) => isOver()), "all streams have ended");
});

test("read only, other addresses and other names: what the command says, and which requests are refused", async () => {
  using world = createProject();
  await world.run();
  for (const [flags, pattern] of [
    [["--host", "0.0.0.0"], /--name/],
    [["--host", "192.0.2.1"], /--name/],
    [["--name", "a b"], /--name takes a host name/],
    [["--port", "70000"], /--port/],
  ] as const) {
    const ran = await world.lockstep(["studio", ...flags]);
    assert.equal(ran.code, 2, flags.join(" "));
    assert.match(ran.stderr, pattern);
  }
  const readOnly = await serve(world, "--port", "0", "--read-only");
  assert.match((await readOnly.get("project")).document.readOnly.why, /--read-only/);
  const refused = await readOnly.post("runs", {});
  assert.deepEqual([refused.status, refused.document.code], [405, "READ_ONLY"]);
  await readOnly.stop();
  const far = await serve(world, "--port", "0", "--host", "0.0.0.0", "--name", "Box.Example");
  await until(() => /not encrypted.*ssh -L/s.test(far.stderr()), "a warning");
  assert.equal(new URL(far.url).hostname, "box.example");
  const named = { host: `box.example:${far.port}`, token: far.token };
  const head = (host: string) =>
    `GET /api/project HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${far.token}\r\nConnection: close\r\n\r\n`;
  assert.equal((await sendRaw(far.port, head(named.host))).status, 200);
  assert.equal((await sendRaw(far.port, head(`other.example:${far.port}`))).status, 421);
  assert.equal((await far.post("runs", {})).document.code, "READ_ONLY");
  await far.stop();
});

const PASSWORD = "kept-to-myself";

test("runs that a server records are asked of it, and its password is not shown", async () => {
  using world = createProject();
  const studio = await serve(world, "--port", "0", {
    LOCKSTEP_STATE: `postgres://me:${PASSWORD}@127.0.0.1:1/runs`,
  });
  for (const path of ["runs", "runs/@last", "questions"]) {
    const { status, document } = await studio.get(path);
    assert.notEqual(status, 200, path);
    assert.match(document.reason, /\S/);
    assert.equal(JSON.stringify(document).includes(PASSWORD), false, path);
  }
  const { status, document } = await studio.get("project");
  assert.equal(status, 200);
  assert.equal(JSON.stringify(document).includes(PASSWORD), false);
  await studio.stop();
});

test("--open gives the browser a file that only the user can read, and no address on a command line", async () => {
  using world = createProject();
  const tools = mkdtempSync(join(tmpdir(), "lockstep-opener-"));
  const said = join(tools, "said");
  const opener = join(tools, process.platform === "darwin" ? "open" : "xdg-open");
  writeFileSync(
    opener,
    `#!/bin/sh\nf="\${1#file://}"\nls -ld "$f" > ${said}-1\ncat "$f" >> ${said}-1\necho "$@" >> ${said}-1\nmv ${said}-1 ${said}\n`,
    {
      mode: 0o755,
    },
  );
  const studio = await serve(world, "--port", "0", "--open", { PATH: `${tools}:${world.env.PATH}` });
  await until(() => existsSync(said), "the browser is started");
  const [listed = "", page = "", line = ""] = readFileSync(said, "utf8").split("\n");
  assert.match(listed, /^-rw-------/);
  assert.ok(page.includes(`url=${studio.url}"`));
  assert.equal(line.includes(studio.token), false);
  const file = fileURLToPath(line.trim());
  assert.equal(await studio.stop(), 0);
  assert.equal(existsSync(file), false);
  rmSync(tools, { recursive: true, force: true });
});

test("a run with a damaged entry is shown up to it, and the others are shown whole", async () => {
  using world = createProject();
  const broken = await world.run();
  const whole = await world.run();
  const db = new DatabaseSync(join(world.root, ".lockstep/runs.db"));
  const { changes } = db
    .prepare("UPDATE event SET body = '{' WHERE seq = 3 AND run = (SELECT key FROM run WHERE id = ?)")
    .run(broken);
  db.close();
  assert.equal(changes, 1);
  const studio = await serve(world, "--port", "0");
  const shown = (await studio.get(`runs/${broken}`)).document;
  assert.deepEqual([shown.shown.outcome, shown.damage.seq], ["damaged", 3]);
  // The list says so too: the newest entry of the run, which is whole, says that it completed.
  const rows = (await studio.get("runs")).document.runs as {
    run: string;
    state: string;
    code: string | null;
  }[];
  const stateOf = (run: string) =>
    rows.filter((row) => row.run === run).map(({ state, code }) => [state, code]);
  assert.deepEqual(stateOf(broken), [["damaged", "JOURNAL_UNAVAILABLE"]]);
  assert.deepEqual([shown.row.state, stateOf(whole)], ["damaged", [["completed", null]]]);
  const frames = (await studio.get(`runs/${broken}/frames`)).document;
  assert.deepEqual([frames.frames.length, frames.isAll, frames.damage.seq], [2, true, 3]);
  for (const path of ["log", "talk", "effects", "at/2"])
    assert.equal((await studio.get(`runs/${broken}/${path}`)).status, 200, path);
  assert.equal((await studio.get(`runs/${broken}/why/closure.note`)).document.code, "JOURNAL_UNAVAILABLE");
  const list = (await studio.get("runs")).document.runs;
  assert.deepEqual(
    list.map(({ run }: { run: string }) => run),
    [whole, broken],
  );
  assert.equal((await studio.get(`runs/${whole}`)).document.damage, null);
  await studio.stop();
});

test("two studios of one project have two ports and two tokens, and the port of a folder stays", async () => {
  using world = createProject();
  const first = await serve(world);
  const second = await serve(world);
  assert.notEqual(first.port, second.port);
  assert.ok(first.port >= 21_000 && first.port < 29_000);
  const crossed = await fetch(`${second.origin}/api/project`, {
    headers: { authorization: `Bearer ${first.token}` },
  });
  assert.equal(crossed.status, 401);
  await first.stop();
  const taken = await world.lockstep(["studio", "--port", String(second.port)]);
  assert.notEqual(taken.code, 0);
  assert.match(taken.stderr, /Choose another port with --port N/);
  const again = await serve(world);
  assert.equal(again.port, first.port);
  assert.notEqual(again.token, first.token);
  await again.stop();
  await second.stop();
  assert.equal(existsSync(join(world.root, ".lockstep")), false);
  rmSync(world.root, { recursive: true, force: true });
});
