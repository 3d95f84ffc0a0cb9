/** logs, --log and the table of show, through the real command. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  createWorld,
  ESCAPE,
  onlyDocument,
  replies,
  script,
  writeAgent,
  writeCheckedAgent,
} from "../world.ts";

const RUN = ["run", "notes", "--topic", "tides", "--script", "replies.json"];
const STRAIGHT = script(
  replies.initial(),
  replies.continuation(),
  replies.closure("closing", `red ${ESCAPE}[31m\nline`),
);

test("the log of a run that wrote none, by level, as JSON lines, and the whole conversation", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("replies.json", STRAIGHT);
  assert.equal((await world.lockstep(RUN)).code, 0);
  assert.ok(!existsSync(join(world.root, "logs")));

  const plain = await world.lockstep(["logs", "@last"]);
  assert.equal(plain.code, 0, plain.stderr);
  assert.match(plain.stdout, /^\d\d:\d\d:\d\d\.\d{3} info  Run started: notes \{"run":"/);
  assert.match(plain.stdout, /info  \[StepFlow\] Routing decision: initial\.note -> continuation\.note \{/);
  assert.ok(!plain.stdout.includes(ESCAPE));
  assert.ok(
    plain.stdout
      .trimEnd()
      .split("\n")
      .every((line) => /^\d\d:\d\d:\d\d\.\d{3} (?:info|warn|error) /.test(line)),
  );

  const verbose = await world.lockstep(["logs", "@last", "--verbose"]);
  assert.match(verbose.stdout, / debug Response of \w+: initial\.note \{/);

  const json = await world.lockstep(["logs", "@last", "--json", "--level", "debug"]);
  const lines = json.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { level: string; message: string });
  assert.ok(lines.some(({ level }) => level === "debug"));
  assert.match(lines.at(-1)!.message, /red \\x1b\[31m\\nline$/);
  const severe = await world.lockstep(["logs", "@last", "--level", "error"]);
  assert.deepEqual([severe.code, severe.stdout], [0, ""]);

  const transcript = await world.lockstep(["logs", "@last", "--transcript"]);
  assert.match(transcript.stdout, /^── system · initial\.note #1 · turn 1 · /);
  assert.match(transcript.stdout, /^── user · closure\.note #1 · turn 1 · /m);
  assert.ok(!transcript.stdout.includes(ESCAPE));
  const said = await world.lockstep(["logs", "@last", "--transcript", "--json"]);
  const roles = said.stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { role: string }).role);
  assert.deepEqual(roles, ["system", "user", "assistant", "user", "assistant", "user", "assistant"]);

  const shown = await world.lockstep(["show", "@last"]);
  assert.match(
    shown.stdout,
    /^ {2}STEP +VISITS +TURNS +TOKENS IN +OUT +TIME +COST\n {2}initial\.note +1 +1 +0 +0 +\d+ ms +-$/m,
  );
  const { steps } = onlyDocument(await world.lockstep(["show", "@last", "--json"]));
  assert.deepEqual(
    (steps as readonly { step: string }[]).map(({ step }) => step),
    ["initial.note", "continuation.note", "closure.note"],
  );
});

test("what cannot be printed is refused", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const none = await world.lockstep(["logs", "@last"]);
  assert.deepEqual([none.code, none.stdout], [2, ""]);
  world.write("replies.json", STRAIGHT);
  await world.lockstep(RUN);
  const refused: readonly [words: readonly string[], reason: RegExp][] = [
    [["nothing"], /There is no run "nothing"/],
    [["@last", "--level", "loud"], /--level needs debug, info, warn or error, not "loud"/],
    [["@last", "--level", "warn", "--transcript"], /a transcript has no levels/],
    [[], /logs needs RUN/],
  ];
  for (const [words, reason] of refused) {
    const ran = await world.lockstep(["logs", ...words]);
    assert.deepEqual([ran.code, ran.stdout], [2, ""], words.join(" "));
    assert.match(ran.stderr, reason);
  }
});

test("a run is followed by another process until it has ended", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "while [ ! -f go ]; do sleep 0.05; done");
  world.write("replies.json", STRAIGHT);
  const env = { LOCKSTEP_TRUST: "all" };
  let follower: ReturnType<typeof world.lockstep> | null = null;
  const follow = () =>
    world.lockstep(["logs", "@last", "-f", "--json"], {
      watch: (output) => {
        if (output.includes("[CompletionLoop] Enter")) writeFileSync(join(world.root, "go"), "");
      },
    });
  const ran = await world.lockstep(RUN, {
    env,
    watch: (output) => {
      if (output.includes("continuation.note #1")) follower ??= follow();
    },
  });
  assert.equal(ran.code, 0, ran.stderr);
  const followed = await (follower as ReturnType<typeof world.lockstep> | null);
  assert.equal(followed?.code, 0, followed?.stderr);
  const last = followed.stdout.trimEnd().split("\n").at(-1)!;
  assert.match((JSON.parse(last) as { message: string }).message, /^Agent completed/);
});

test("--log writes a file below the folder that the command works in", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("replies.json", STRAIGHT);
  const ran = await world.lockstep([...RUN, "--log", "out/logs"]);
  assert.equal(ran.code, 0, ran.stderr);
  const files = readdirSync(join(world.root, "out/logs")).filter((name) => name !== ".gitignore");
  assert.equal(files.length, 1);
  assert.match(files[0]!, /^notes-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z-[0-9a-z]{10}\.jsonl$/);
});

test("a collector that never answers does not keep the command", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("replies.json", STRAIGHT);
  let asked = 0;
  const silent = createServer(() => void (asked += 1));
  await new Promise<void>((resolve) => void silent.listen(0, "127.0.0.1", resolve));
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` };
  const ran = await world.lockstep([...RUN, "--json"], { env });
  silent.closeAllConnections();
  silent.close();
  const { success, warnings } = onlyDocument(ran);
  assert.deepEqual([asked, ran.code, success], [1, 0, true]);
  assert.match(
    String(warnings),
    /7 spans could not be sent to http:\/\/127\.0\.0\.1:\d+: it did not answer in time/,
  );
});
