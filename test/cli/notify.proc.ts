/** Notices of a run: to a server and to a command of the user, through the command as people start it. */
import assert from "node:assert/strict";
import { readFileSync, existsSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { signatureOf } from "../../src/effects/notify.ts";
import type { Notice } from "../../src/tell/notice.ts";
import { createWorld, replies, script, writeAgent, type World } from "./world.ts";

type Delivery = { readonly headers: IncomingHttpHeaders; readonly body: string; readonly notice: Notice };

/** `answer`: the status for the delivery of this number; null: none ever. */
async function serve(answer: (number: number) => number | null) {
  const heard: Delivery[] = [];
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      heard.push({ headers: request.headers, body, notice: JSON.parse(body) as Notice });
      const status = answer(heard.length);
      if (status !== null) response.writeHead(status, { location: "/elsewhere" }).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { heard, url: `http://127.0.0.1:${port}/hook`, [Symbol.dispose]: close };
}

function configure(world: World, notify: object): void {
  world.writeHome(".config/lockstep/config.json", JSON.stringify({ notify }));
}

function writeNotes(world: World, mode = "plan"): void {
  writeAgent(world, "notes", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      steps["initial.note"]!.permissionMode = mode;
    },
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
  });
  const all = [replies.initial(), replies.continuation(), replies.closure()];
  const write = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
  world.write("all.json", mode === "default" ? script(write, ...all) : script(...all));
}

const RUN = ["run", "notes", "--topic", "t", "--script", "all.json"];

test("a server is notified of a question and of the end, each once and signed", async () => {
  using world = createWorld();
  using server = await serve(() => 204);
  writeNotes(world, "default");
  configure(world, { phone: { webhook: server.url, secretEnv: "HOOK_KEY" } });
  const env = { HOOK_KEY: "key of the hook" };
  const waiting = await world.lockstep([...RUN, "--on-permission", "halt"], { env });
  assert.equal(waiting.code, 5, waiting.stderr);
  assert.deepEqual(
    server.heard.map(({ notice }) => notice.kind),
    ["question"],
  );
  const { notice } = server.heard[0]!;
  assert.match(notice.text, /made\.txt/);
  assert.ok(notice.question?.choices.includes("allow"));
  const answered = await world.lockstep([...notice.command!.split(" ").slice(1), "allow"], { env });
  assert.equal(answered.code, 0, answered.stderr);
  assert.deepEqual(
    server.heard.map(({ notice: { kind, outcome } }) => [kind, outcome]),
    [
      ["question", undefined],
      ["end", "completed"],
    ],
  );
  for (const { headers, body, notice: of } of server.heard) {
    const [, seconds = ""] = /^t=(\d+),/.exec(String(headers["lockstep-signature"])) ?? [];
    assert.equal(headers["lockstep-signature"], signatureOf(env.HOOK_KEY, Number(seconds), body));
    assert.equal(headers["lockstep-delivery"], `${of.run}-${of.seq}-${of.kind}`);
  }
  const journal = await world.lockstep(["show", "@last", "--events"], { env });
  assert.ok(!journal.stdout.includes("key of the hook"));
});

describe("a delivery that fails", () => {
  const rows: readonly (readonly [
    about: string,
    answer: (n: number) => number | null,
    tries: number,
    warns: RegExp | null,
  ])[] = [
    ["is tried again after a passing fault", (n) => (n === 1 ? 503 : 200), 2, null],
    ["is tried again when there are too many", (n) => (n === 1 ? 429 : 200), 2, null],
    [
      "is not tried again where it is refused",
      () => 401,
      1,
      /could not be delivered: the server answered 401/,
    ],
    ["is not sent to another address", () => 307, 1, /could not be delivered/],
    ["does not hold the run if there is no answer", () => null, 1, /could not be delivered/],
  ];
  for (const [about, answer, tries, warns] of rows)
    test(about, async () => {
      using world = createWorld();
      using server = await serve(answer);
      writeNotes(world);
      configure(world, { phone: { webhook: server.url, on: ["end"] } });
      const ran = await world.lockstep(RUN);
      assert.equal(ran.code, 0, ran.stderr);
      assert.ok(server.heard.length >= tries, String(server.heard.length));
      assert.equal(new Set(server.heard.map(({ headers }) => headers["lockstep-delivery"])).size, 1);
      if (warns === null) assert.doesNotMatch(ran.stderr, /delivered/);
      else assert.match(ran.stderr, warns);
      assert.ok(!ran.stderr.includes(server.url), "the address is not repeated");
    });
  test("because nobody is there is reported, and the run completes", async () => {
    using world = createWorld();
    writeNotes(world);
    configure(world, { phone: { webhook: "http://127.0.0.1:9/hook" } });
    const ran = await world.lockstep(RUN);
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, /1 of the notices for "phone" could not be delivered/);
  });
});

test("a command gets the text as an argument that no shell reads, and the document", async () => {
  using world = createWorld();
  writeNotes(world);
  const program =
    'require("fs").writeFileSync("told.json", JSON.stringify([process.argv.slice(1), process.env.LOCKSTEP_NOTICE, process.env.OTHER_KEY]))';
  configure(world, { me: { command: [process.execPath, "-e", program, "{kind}", "{run}", "{text} $(x)"] } });
  const ran = await world.lockstep(RUN, { env: { OTHER_KEY: "secret" } });
  assert.equal(ran.code, 0, ran.stderr);
  type Told = readonly [readonly string[], string, string | null];
  const [args, document, key] = JSON.parse(readFileSync(join(world.root, "told.json"), "utf8")) as Told;
  const notice = JSON.parse(document) as Notice;
  assert.deepEqual(args, ["end", notice.run, `${notice.text} $(x)`]);
  assert.equal(notice.outcome, "completed");
  assert.equal(key, null);
});

test("a text that is long or begins with a dash reaches a command whole enough, and as a word", async () => {
  using world = createWorld();
  writeNotes(world);
  const long = `--file=/etc/passwd ${"漢".repeat(60_000)}`;
  const all = [replies.initial(), replies.continuation(), replies.closure("closing", long)];
  world.write("all.json", script(...all));
  const program =
    'require("fs").writeFileSync("told.json", JSON.stringify([process.argv.slice(1), JSON.parse(process.env.LOCKSTEP_NOTICE)]))';
  configure(world, { me: { command: [process.execPath, "-e", program, "--", "{text}"] } });
  const ran = await world.lockstep(RUN);
  assert.equal(ran.code, 0, ran.stderr);
  assert.doesNotMatch(ran.stderr, /delivered/);
  const [args, notice] = JSON.parse(readFileSync(join(world.root, "told.json"), "utf8")) as [
    string[],
    Notice,
  ];
  assert.ok(notice.text.length > 1000);
  assert.ok(args.every((arg) => !arg.startsWith("-")));
});

test("a command that fails or does not exist is reported, and the run completes", async () => {
  using world = createWorld();
  writeNotes(world);
  configure(world, { a: { command: ["/nowhere/program"] }, b: { command: ["false"] } });
  const ran = await world.lockstep(RUN);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /notices for "a" could not be delivered: \/nowhere\/program does not exist/);
  assert.match(ran.stderr, /notices for "b" could not be delivered: false ended with 1/);
});

test("kinds that a target does not want are not sent, and files of the project name no target", async () => {
  using world = createWorld();
  using server = await serve(() => 200);
  writeNotes(world);
  world.write(".lockstep/config.json", JSON.stringify({ notify: { x: { webhook: server.url } } }));
  world.write("config.json", JSON.stringify({ notify: { x: { command: ["touch", "owned"] } } }));
  configure(world, { phone: { webhook: server.url, on: ["question", "limit"] } });
  const ran = await world.lockstep(RUN);
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(server.heard, []);
  assert.ok(!existsSync(join(world.root, "owned")));
});

test("a limit that is near is a notice", async () => {
  using world = createWorld();
  using server = await serve(() => 200);
  writeNotes(world);
  configure(world, { phone: { webhook: server.url, on: ["limit"] } });
  const ran = await world.lockstep([...RUN, "--max-turns", "3", "--max", "soft=0.5"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(
    server.heard.map(({ notice: { kind, limit } }) => [kind, limit]),
    [["limit", "run.turns"]],
  );
});

test("a summary is appended to a regular file only: a pipe would wait for its reader", async () => {
  using world = createWorld();
  writeNotes(world);
  assert.equal(spawnSync("mkfifo", [join(world.root, "pipe")]).status, 0);
  const refused = await world.lockstep([...RUN, "--summary", "pipe"]);
  assert.equal(refused.code, 3, refused.stderr);
  assert.match(refused.stderr, /pipe is not a regular file/);
  const ran = await world.lockstep(RUN, { env: { GITHUB_STEP_SUMMARY: join(world.root, "pipe") } });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /The summary cannot be written/);
});

describe("targets that are not valid are refused before the run", () => {
  const rows: readonly (readonly [target: object, fault: RegExp])[] = [
    [{}, /must have a webhook or a command/],
    [{ webhook: "https://a.example", command: ["x"] }, /and not both/],
    [{ webhook: "http://a.example/x" }, /must be an https address/],
    [{ webhook: "ftp://localhost/x" }, /must be an https address/],
    [{ command: [] }, /must begin with a program/],
    [{ command: ["x"], secretEnv: "A" }, /secretEnv is for a webhook/],
    [{ webhook: "https://a.example", pass: ["A"] }, /pass is for a command/],
    [{ command: ["x"], pass: ["OPENAI_API_KEY"] }, /must not contain OPENAI_API_KEY/],
    [{ webhook: "https://a.example", on: [] }, /must name a kind/],
    [{ webhook: "https://a.example", on: ["start"] }, /notify\.phone\.on must be a list/],
    [{ webhok: "https://a.example" }, /unknown key "webhok"/],
  ];
  test("each with the place and the reason", async () => {
    using world = createWorld();
    writeNotes(world);
    for (const [target, fault] of rows) {
      configure(world, { phone: target });
      const ran = await world.lockstep(RUN);
      assert.equal(ran.code, 3, JSON.stringify(target) + ran.stderr);
      assert.match(ran.stderr, fault);
    }
  });
});
