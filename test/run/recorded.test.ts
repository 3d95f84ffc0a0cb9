/**
 * Journals as earlier versions wrote them, wherever the form of rows, entries or flows has changed since: every part of
 * them, cut off after each entry, can be looked at, and decides as it did then.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Entry } from "../../src/flow/event.ts";
import { checkJournal } from "../../src/journal/sqlite/check.ts";
import { salvage } from "../../src/journal/sqlite/salvage.ts";
import { openSqliteJournal } from "../../src/journal/sqlite/sqlite.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import {
  createMemoryJournal,
  exportRun,
  listRuns,
  logs,
  replayRun,
  RunnerError,
  show,
  type Journal,
} from "../../src/run/index.ts";
import { foreseenOf } from "../../src/run/trust/foreign-state.ts";
import { particularsOf, readRun } from "../../src/run/records/runs.ts";
import { trustLines } from "../../src/run/trust/trust-lines.ts";
import { whyAll } from "../../src/tell/why.ts";

const RECORDED = fileURLToPath(new URL("../journal/recorded/", import.meta.url));

for (const name of readdirSync(RECORDED)) {
  test(`${name}: every beginning of every run can be looked at, and replays as it went`, () =>
    unpacked(name, async (directory) => {
      const journal = await open(directory);
      try {
        for (const row of await journal.list()) {
          const { flow, adopted, entries } = await readRun(journal, row.id);
          assert.ok((await trustLines(flow, false, () => ({ root: "/project", home: "/home" }))).length > 0);
          for (let length = 1; length <= entries.length; length++) {
            const part = createMemoryJournal();
            const about = { id: row.id, agent: row.agent, at: row.createdAt, digest: row.digest, flow };
            await (await part.create(about, entries.slice(0, length), adopted)).release();
            await look(part, row.id);
          }
        }
      } finally {
        await journal.close();
      }
    }));

  test(`${name}: is renewed in place when it may be written, and goes on with checksums`, () =>
    unpacked(name, async (directory) => {
      const file = join(directory, "runs.db");
      const before = readFileSync(file);
      const looking = await open(directory, () => new RunnerError("X", "only looked at"));
      const rows = await looking.list();
      const [newest] = rows;
      const entries = await looking.read(newest!.id);
      await looking.close();
      assert.deepEqual(readFileSync(file), before);

      const journal = await open(directory);
      assert.deepEqual(await journal.list(), rows);
      assert.deepEqual(await journal.read(newest!.id), entries);
      const handle = await journal.claim(newest!.id);
      await handle.append([
        { seq: entries.length + 1, at: 1, event: { type: "step.waited", step: "s", visit: 1, ms: 1 } },
      ]);
      await journal.close();
      using db = new DatabaseSync(file, { readOnly: true });
      const { version, sealed } = db
        .prepare(
          `SELECT (SELECT user_version FROM pragma_user_version) AS version,
                  (SELECT count(*) FROM event WHERE sum IS NOT NULL) AS sealed`,
        )
        .get() as { version: number; sealed: number };
      assert.deepEqual([version, sealed], [2, 1]);
      assert.deepEqual(checkJournal(directory)!.faults, []);
      assert.equal((await salvaged(directory)).length, rows.length);
      await (await open(directory)).close();
    }));
}

for (const [figure, harm] of [
  ["inputTokens", { inputTokens: -1_000_000 }],
  ["outputTokens", { outputTokens: -1_000_000 }],
  ["costUsd", { costUsd: -1_000 }],
] as const)
  test(`an amount below 0 that an earlier version recorded takes nothing away: ${figure}`, () =>
    unpacked("schema-1.db.gz", async (directory) => {
      const journal = await open(directory);
      const [row] = await journal.list();
      const { flow, entries } = await readRun(journal, row!.id);
      await journal.close();
      const usage = { turns: 1, inputTokens: 10, outputTokens: 5, costUsd: 1 };
      const answers = entries.filter(({ event }) => event.type === "step.answered").length;
      let place = 0;
      const priced: Entry[] = [];
      for (const entry of entries) {
        const { event } = entry;
        const isAnswer = event.type === "step.answered" && event.reply.kind === "said";
        if (isAnswer) place += 1;
        const spent = place === 2 ? { ...usage, ...harm } : usage;
        priced.push(
          isAnswer ? { ...entry, event: { ...event, reply: { ...event.reply, usage: spent } } } : entry,
        );
      }
      const changed = createMemoryJournal();
      const about = { id: row!.id, agent: row!.agent, at: 1, digest: row!.digest, flow };
      await (await changed.create(about, priced)).release();
      const result = await show(changed, row!.id);
      const figures = { ...result.usage, costUsd: result.costUsd ?? result.knownCostUsd };
      for (const [name, one] of Object.entries({ inputTokens: 10, outputTokens: 5, costUsd: 1 }))
        assert.equal(
          figures[name as keyof typeof figures],
          (answers - (name === figure ? 1 : 0)) * one,
          name,
        );
      const sum = result.steps.reduce((all, step) => all + step.inputTokens, 0);
      assert.equal(sum, figures.inputTokens);
      assert.equal((await particularsOf(changed, row!.id)).costUsd, figures.costUsd);
      assert.equal((await replayRun(changed, row!.id)).difference, null);
    }));

async function look(journal: Journal, run: string): Promise<void> {
  await listRuns(journal);
  await show(journal, run);
  const recorded = await readRun(journal, run);
  whyAll(recorded.flow, recorded.entries, recorded.adopted);
  foreseenOf(recorded);
  for await (const { message } of logs(journal, run)) assert.equal(typeof message, "string");
  assert.equal((await replayRun(journal, run)).difference, null);
  for (const redact of [false, true]) {
    const { bundle } = await exportRun(journal, run, { redact });
    parseBundle(JSON.stringify(bundle), "bundle.json");
  }
}

async function salvaged(directory: string): Promise<readonly string[]> {
  const out = `${directory}-salvaged`;
  const { runs } = salvage(directory, out);
  const journal = await open(out);
  for (const { run } of runs) await journal.read(run);
  await journal.close();
  return runs.flatMap(({ run, state }) => (state === "whole" ? [run] : []));
}

function open(directory: string, refuseWrites?: () => Error): Promise<Journal> {
  return openSqliteJournal({
    directory,
    now: () => 1,
    ownerId: "here",
    pid: 1,
    ...(refuseWrites !== undefined && { refuseWrites }),
  });
}

async function unpacked(name: string, body: (directory: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "lockstep-earlier-"));
  const directory = join(root, "state");
  try {
    mkdirSync(directory);
    writeFileSync(join(directory, "runs.db"), gunzipSync(readFileSync(join(RECORDED, name))));
    const db = new DatabaseSync(join(directory, "runs.db"));
    db.exec("PRAGMA journal_mode = WAL");
    db.close();
    await body(directory);
  } finally {
    rmSync(root, { recursive: true });
  }
}
