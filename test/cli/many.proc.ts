/** A journal of thousands of runs, through the real command: replayed, removed, and used by others meanwhile. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import { openSqliteJournal } from "../../src/journal/sqlite/sqlite.ts";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "./world.ts";

const COPIES = 2_000;
const RUN = ["run", "notes", "--topic", "tides", "--script", "replies.json", "--json"];

test("thousands of runs are replayed one by one, and removed beside runs that go on", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("replies.json", script(replies.initial(), replies.continuation(), replies.closure()));
  const first = onlyDocument(await world.lockstep(RUN)).run as string;
  await copy(world, first);

  const replayed = await world.lockstep(["replay", "--all"]);
  assert.equal(replayed.code, 0, replayed.stderr);
  const lines = replayed.stdout.trim().split("\n");
  assert.equal(lines.length, COPIES + 1);
  assert.ok(lines.every((line) => line.startsWith("✓ same")));

  const over = new AbortController();
  const pruning = world
    .lockstep(["runs", "--prune", "--older-than", "1h", "--yes", "--json"])
    .finally(() => over.abort());
  const beside: unknown[] = [];
  do {
    const ran = await world.lockstep(RUN);
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    beside.push(onlyDocument(ran).run);
  } while (!over.signal.aborted && beside.length < 50);
  const pruned = await pruning;
  assert.equal(pruned.code, 0, pruned.stderr);
  assert.equal((onlyDocument(pruned).runs as unknown[]).length, COPIES);
  const { runs, total } = onlyDocument(await world.lockstep(["runs", "--json", "--limit", "100"]));
  assert.deepEqual(
    (runs as { readonly run: string }[]).map(({ run }) => run),
    [first, ...beside].toReversed(),
  );
  assert.equal(total, beside.length + 1);
});

/** In large groups, and made two hours before: a run that is started while they are removed is never old enough. */
async function copy(world: World, first: string): Promise<void> {
  const directory = join(world.root, ".lockstep");
  const journal = await openSqliteJournal({ directory, now: Date.now, ownerId: "copies", pid: process.pid });
  const [row] = await journal.rows([first]);
  const [started, ...rest] = await journal.read(first);
  const flow = (await journal.flow(row!.digest))!;
  const { event } = started!;
  assert.ok(event.type === "run.started");
  const handles = await Promise.all(
    Array.from({ length: COPIES }, (_, index) => {
      const id = `copy-${index}`;
      const about = { id, agent: row!.agent, at: row!.createdAt - EARLIER_MS, digest: row!.digest, flow };
      return journal.create(about, [
        { ...earlier(started!), event: { ...event, run: id } },
        ...rest.map(earlier),
      ]);
    }),
  );
  await Promise.all(handles.map((handle) => handle.release()));
  await journal.close();
}

const EARLIER_MS = 2 * 60 * 60 * 1000;

function earlier(entry: Entry): Entry {
  return { ...entry, at: entry.at - EARLIER_MS };
}
