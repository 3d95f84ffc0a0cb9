import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import type { Journal, NewRun } from "../../../src/engine/ports.ts";
import type { Entry } from "../../../src/flow/event.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { LARGEST_ROW } from "../../../src/journal/sqlite/artifacts.ts";
import { openSqliteJournal } from "../../../src/journal/sqlite/sqlite.ts";
import { journalSuite } from "../../../src/testing/journal-suite.ts";

journalSuite("sqlite", async () => {
  const directory = await mkdtemp(join(tmpdir(), "lockstep-journal-"));
  let opened = 0;
  return {
    open: () =>
      openSqliteJournal({ directory, now: () => 1_000, ownerId: `owner-${(opened += 1)}`, pid: 4_711 }),
    remove: () => rm(directory, { recursive: true }),
  };
});

const UNUSABLE = [
  {
    what: "a file that is no database",
    put: (directory: string) => putFile(directory, "hello, I am a text and longer than a header ".repeat(20)),
    message: /runs\.db is not a database \(.*\)\. Rescue what can be read with: lockstep salvage/,
  },
  {
    what: "a damaged database",
    put(directory: string) {
      const file = putDatabase(directory, "CREATE TABLE cats (name)");
      writeFileSync(file, readFileSync(file).fill(0xff, 100));
      return file;
    },
    message: /runs\.db is damaged \(.*\)\. Restore .* lockstep salvage$/,
  },
  {
    what: "a database of something else",
    put: (directory: string) => putDatabase(directory, "CREATE TABLE cats (name); PRAGMA user_version = 1"),
    message: /runs\.db is a database of something else\. Move it away/,
  },
  {
    what: "a journal of a newer version",
    put: (directory: string) =>
      putDatabase(
        directory,
        "CREATE TABLE run (id); PRAGMA application_id = 1280262987; PRAGMA user_version = 3",
      ),
    message: /runs\.db was written by a newer Lockstep \(schema 3; this one knows 2\)\. Update/,
  },
  {
    what: "a file in place of the directory",
    put(directory: string) {
      writeFileSync(directory, "in the way");
      return directory;
    },
    message: /state\/runs\.db cannot be made: a file is where a folder should be\. Move it away/,
  },
];

describe("journal: sqlite alone", () => {
  it("makes the directory and the database, for the user only", { skip: windows() }, () =>
    world(async ({ directory, open }) => {
      await open("a");
      assert.equal(statSync(directory).mode & 0o777, 0o700);
      assert.equal(statSync(join(directory, "runs.db")).mode & 0o777, 0o600);
    }),
  );

  it("keeps a write-ahead log, and can give room back", () =>
    world(async ({ directory, open }) => {
      await open("a");
      using db = new DatabaseSync(join(directory, "runs.db"));
      assert.deepEqual({ ...db.prepare("PRAGMA journal_mode").get() }, { journal_mode: "wal" });
      assert.deepEqual({ ...db.prepare("PRAGMA auto_vacuum").get() }, { auto_vacuum: 2 });
    }));

  it("locks nothing as long as it only looks", () =>
    world(async ({ directory, open }) => {
      const writer = await open("writer");
      await writer.create(newRun("r1"));
      const reader = await open("reader");
      await reader.list();
      await reader.read("r1");
      await assert.rejects(reader.claim("r1"));
      assert.deepEqual(locks(directory), ["writer.lock"]);
      await writer.close();
      assert.deepEqual(locks(directory), []);
    }));

  it("commits what all runs offer in one turn in one transaction", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      const handles = await Promise.all(["r1", "r2", "r3"].map((id) => journal.create(newRun(id))));
      const before = commits(directory);
      await Promise.all(handles.map((handle) => handle.append([waited(1), waited(2)])));
      assert.equal(commits(directory) - before, 1);
    }));

  it("commits nothing for a turn in which everything was refused", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      const handle = await journal.create(newRun("r1"));
      const before = commits(directory);
      await Promise.allSettled([handle.append([waited(7)]), journal.claim("r1"), journal.claim("r2")]);
      assert.equal(commits(directory) - before, 0);
    }));

  it("commits the others when a flow cannot be written", () =>
    world(async ({ open }) => {
      const journal = await open("a");
      const handle = await journal.create(newRun("r1"));
      const endless: { self?: unknown } = {};
      endless.self = endless;
      const [appended, created] = await Promise.allSettled([
        handle.append([waited(1)]),
        journal.create({ ...newRun("r2"), digest: "d2", flow: endless as unknown as Flow }),
      ]);
      assert.deepEqual([appended.status, created.status], ["fulfilled", "rejected"]);
      assert.equal((await journal.list()).length, 1);
    }));

  for (const { what, harm, message } of [
    {
      what: "removed",
      harm: (directory: string) => rmSync(join(directory, "runs.db")),
      message: /runs\.db was removed or moved while the run was using it/,
    },
    {
      what: "removed with its folder",
      harm: (directory: string) => rmSync(directory, { recursive: true }),
      message: /runs\.db was removed or moved/,
    },
    {
      what: "moved with its folder",
      harm: (directory: string) => renameSync(directory, `${directory}-moved`),
      message: /If the file still exists elsewhere, put it back and resume/,
    },
    {
      what: "replaced by a copy",
      harm: (directory: string) => {
        copyFileSync(join(directory, "runs.db"), join(directory, "copy"));
        renameSync(join(directory, "copy"), join(directory, "runs.db"));
      },
      message: /runs\.db was replaced by another file/,
    },
    { what: "left where it is", harm: () => undefined, message: null },
  ]) {
    it(`notices at the next commit that its file was ${what}`, () =>
      world(async ({ directory, open }) => {
        const journal = await open("a");
        const handle = await journal.create(newRun("r1"));
        await handle.append([waited(1)]);
        harm(directory);
        const next = handle.append([waited(2)]);
        if (message === null) return await next;
        await assert.rejects(next, { code: "JOURNAL_UNAVAILABLE", message });
        await assert.rejects(journal.create(newRun("r2")), { code: "JOURNAL_UNAVAILABLE", message });
      }));
  }

  it("goes on when its folder is moved away and put back", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      const handle = await journal.create(newRun("r1"));
      renameSync(directory, `${directory}-moved`);
      await assert.rejects(handle.append([waited(1)]), { code: "JOURNAL_UNAVAILABLE" });
      renameSync(`${directory}-moved`, directory);
      await handle.append([waited(1)]);
      assert.equal((await journal.read("r1")).length, 1);
    }));

  for (const { what, harm, damaged } of [
    { what: "is not JSON", harm: "'{\"seq\":2,'", damaged: /entry 2 of run r1 is not JSON/ },
    {
      what: "names an artifact that is gone",
      harm: `'sha256:${"0".repeat(64)}:5'`,
      damaged: /it holds entry 2 of run r1/,
    },
  ]) {
    it(`lists the others when the newest entry of a run ${what}`, () =>
      world(async ({ directory, open }) => {
        const journal = await open("a");
        const [first, second] = await Promise.all(["r1", "r2"].map((id) => journal.create(newRun(id))));
        await Promise.all([first, second].map((handle) => handle!.append([waited(1), waited(2)])));
        await journal.close();
        const db = new DatabaseSync(join(directory, "runs.db"));
        db.exec(
          `UPDATE event SET body = ${harm}, sum = NULL WHERE seq = 2 AND run = (SELECT key FROM run WHERE id = 'r1')`,
        );
        db.close();
        const again = await open("b");
        const [sound, broken] = await again.list();
        assert.deepEqual([sound?.id, sound?.last?.seq, sound?.damaged], ["r2", 2, undefined]);
        assert.deepEqual([broken?.id, broken?.last, broken?.events], ["r1", null, 2]);
        assert.match(broken?.damaged ?? "", damaged);
        assert.deepEqual(await again.read("r1", 0, 1), [waited(1)]);
        await assert.rejects(again.read("r1"), { code: "JOURNAL_UNAVAILABLE", message: damaged });
        await again.remove("r1");
        assert.deepEqual(
          (await again.list()).map(({ id }) => id),
          ["r2"],
        );
      }));
  }

  for (const [what, harm, seq] of [
    ["its last entries", "seq >= 2", 2],
    ["all entries", "seq >= 1", 1],
    ["an entry in the middle", "seq = 2", 2],
  ] as const) {
    it(`keeps the proof that a run lost ${what} when it is claimed and released`, () =>
      world(async ({ directory, open }) => {
        const journal = await open("a");
        await (await journal.create(newRun("r1"), [waited(1), waited(2), waited(3)])).release();
        await journal.close();
        const db = new DatabaseSync(join(directory, "runs.db"));
        db.exec(`DELETE FROM event WHERE ${harm}`);
        db.close();
        const message = new RegExp(`entry ${seq} of run r1 is missing: .*: lockstep runs --prune r1$`);
        const refused = { code: "JOURNAL_UNAVAILABLE", message };
        for (const owner of ["b", "c"]) {
          const again = await open(owner);
          if (harm.includes(">")) await assert.rejects(again.claim("r1"), refused);
          else await (await again.claim("r1")).release();
          await again.close();
          const looking = await open(`${owner}2`);
          await assert.rejects(looking.read("r1"), refused);
          await looking.close();
        }
      }));
  }

  it("keeps the number of entries when a run is released that has lost some meanwhile", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      await (await journal.create(newRun("r1"), [waited(1), waited(2)])).release();
      const handle = await journal.claim("r1");
      const db = new DatabaseSync(join(directory, "runs.db"));
      db.exec("DELETE FROM event WHERE seq = 2");
      db.close();
      await handle.release();
      await assert.rejects(journal.read("r1"), /entry 2 of run r1 is missing/);
    }));

  for (const [what, harm] of [
    [
      "an id with control characters",
      String.raw`id = 'a' || char(27, 93) || '0;x' || char(7) || char(10) || '  next rm'`,
    ],
    ["an id with a NUL character", "id = 'r1' || char(0) || 'x'"],
    ["an id that a shell obeys", "id = '$(id)'"],
    ["an id that turns the direction of writing", "id = 'r1' || char(8238)"],
    ["an id that is a flag", "id = '-C'"],
    ["an id that is empty", "id = ''"],
    ["an id that is too long", "id = printf('%065d', 0)"],
    ["an agent with a line end", "agent = 'a' || char(10) || 'b'"],
    ["a time that is not a date", "created_at = 9e15"],
  ] as const) {
    it(`names a run by a plain name that has ${what}, and removes it by that name`, () =>
      world(async ({ directory, open }) => {
        const journal = await open("a");
        const handles = await Promise.all(["r1", "r2"].map((id) => journal.create(newRun(id), [waited(1)])));
        await Promise.all(handles.map((handle) => handle.release()));
        await journal.close();
        const db = new DatabaseSync(join(directory, "runs.db"));
        db.exec(`UPDATE run SET ${harm} WHERE id = 'r1'`);
        db.close();
        const again = await open("b");
        const [sound, odd] = await again.list();
        assert.deepEqual([sound?.id, sound?.damaged], ["r2", undefined]);
        const name = harm.startsWith("id") ? "damaged-1" : "r1";
        // Its time is the recorded one, or that of its newest entry.
        const time = harm.startsWith("created_at") ? waited(1).at : newRun("r1").at;
        assert.deepEqual([odd?.id, odd?.agent, odd?.last, odd?.createdAt], [name, "-", waited(1), time]);
        assert.match(
          odd?.damaged ?? "",
          new RegExp(`row of run ${name} is not valid .* changed from outside`),
        );
        assert.deepEqual(await again.list({ prefix: name }), [odd]);
        assert.deepEqual(await again.list({ before: "r2" }), [odd]);
        if (name !== "r1")
          for (const refused of [again.read(name), again.claim(name)])
            await assert.rejects(refused, { code: "JOURNAL_UNAVAILABLE", message: /damaged-1/ });
        assert.equal(typeof (await again.size(name)), "number");
        await again.remove(name);
        assert.deepEqual(
          (await again.list()).map(({ id }) => id),
          ["r2"],
        );
        // Only a run that is damaged has such a name.
        await assert.rejects(again.read("damaged-2"), { code: "RUN_UNKNOWN" });
      }));
  }

  const verdict = { outcome: "failed", code: "AGENT_ABORTED", reason: "r", step: null };
  const ending = (more: object) => ({
    seq: 2,
    at: 0,
    event: { type: "run.ended", verdict: { ...verdict, ...more } },
  });
  for (const [what, body, fault] of [
    ["control: an end", ending({}), null],
    ["control: an end without a code", ending({ outcome: "completed", code: null }), null],
    ["a code with control characters", ending({ code: "A\u001b]0;x\u0007" }), "code that is not a name"],
    ["a code of two lines", ending({ code: "A\nB" }), "code that is not a name"],
    ["a code that is not a text", ending({ code: 1 }), "code that is not a name"],
    ["an outcome that does not exist", ending({ outcome: "\u001b[2J" }), "outcome that does not exist"],
    ["an inherited outcome", ending({ outcome: "toString" }), "outcome that does not exist"],
    ["a reason that is not a text", ending({ reason: [] }), "verdict without a reason"],
    ["a step that is not a text", ending({ step: {} }), "verdict without a step"],
    ["no verdict", { seq: 2, at: 0, event: { type: "run.ended" } }, "has no verdict"],
    ["no event", { seq: 2, at: 0 }, "has no event"],
    ["no time", { ...ending({}), at: "now" }, "has no time"],
    ["a time that is not a date", { ...ending({}), at: 9e15 }, "has no time"],
    ["steps under way that are not texts", { ...ending({}), underWay: [1] }, "steps under way"],
    ["a decision without steps", { ...ending({}), led: { to: 1 } }, "decision without steps"],
    [
      "an event with an odd step",
      { seq: 2, at: 0, event: { type: "x", step: 1 } },
      "step that is not a text",
    ],
  ] as const) {
    it(`reads only entries that Lockstep can have made: ${what}`, () =>
      world(async ({ directory, open }) => {
        const journal = await open("a");
        await journal.create(newRun("r1"), [waited(1), waited(2)]);
        await journal.close();
        const db = new DatabaseSync(join(directory, "runs.db"));
        db.prepare("UPDATE event SET body = ?, sum = NULL WHERE seq = 2").run(JSON.stringify(body));
        db.close();
        const again = await open("b");
        const [row] = await again.list();
        assert.equal(row?.damaged === undefined, fault === null);
        if (fault === null) return assert.equal((await again.read("r1")).length, 2);
        const message = new RegExp(`entry 2 of run r1 .*${fault}.*changed from outside`);
        assert.match(row?.damaged ?? "", message);
        await assert.rejects(again.read("r1"), { code: "JOURNAL_UNAVAILABLE", message });
      }));
  }

  it("tells who holds a run, since when, and what to do", () =>
    world(async ({ open }) => {
      const first = await open("first", { pid: 11 });
      const second = await open("second", { pid: 22 });
      await first.create(newRun("r1"));
      await assert.rejects(second.claim("r1"), {
        code: "RUN_OWNED_ELSEWHERE",
        message: /Run r1 .* process 11 \(since 1970-01-01T00:00:01\.000Z\).* stop it, and try again/,
      });
      await assert.rejects(first.claim("r1"), { code: "RUN_OWNED_ELSEWHERE", message: /by this process/ });
    }));

  for (const [name, owner, says] of [
    [
      "another namespace",
      "first_in_2_box-1",
      /driven by a process in another container on this machine \(since/,
    ],
    [
      "another machine",
      "first_in_1_web",
      /another machine or in another container \(host name "web"\) \(since/,
    ],
    ["another machine and namespace", "first_in_2_web", /host name "web".* number there is 11, .* another/],
    ["the same place", "first_in_1_box-1", /driven by process 11 \(since/],
    ["an earlier version", "first", /driven by process 11 \(since/],
  ] as const)
    it(`names a holder in ${name} so that no other process is taken for it`, () =>
      world(async ({ open }) => {
        const first = await open(owner, { pid: 11 });
        const second = await open("second_in_1_box-1", { pid: 22 });
        await first.create(newRun("r1"));
        await assert.rejects(second.claim("r1"), { code: "RUN_OWNED_ELSEWHERE", message: says });
      }));

  it("fences a living owner whose lock file was deleted, and only in the run that was taken", () =>
    world(async ({ directory, open }) => {
      const robbed = await open("robbed", { pid: 11 });
      const [taken, kept] = [await robbed.create(newRun("taken")), await robbed.create(newRun("kept"))];
      rmSync(join(directory, "owners", "robbed.lock"));
      const fresh = await (await open("fresh", { pid: 22 })).claim("taken");
      assert.equal(fresh.epoch, 2);
      const [refused, appended] = await Promise.allSettled([
        taken.append([waited(1)]),
        kept.append([waited(1)]),
      ]);
      assert.equal(appended.status, "fulfilled");
      assert.ok(refused.status === "rejected");
      assert.equal(refused.reason.code, "RUN_OWNED_ELSEWHERE");
      assert.match(refused.reason.message, /taken .* process 22 /);
      assert.deepEqual(await robbed.read("taken"), []);
      assert.deepEqual(await robbed.read("kept"), [waited(1)]);
    }));

  it("clears away the lock files that dead owners left, and no living one's", () =>
    world(async ({ directory, open }) => {
      const living = await open("living");
      await living.create(newRun("r1"));
      leaveLock(directory, "dead");
      assert.deepEqual(locks(directory), ["dead.lock", "living.lock"]);
      await (await open("next")).create(newRun("r2"));
      assert.deepEqual(locks(directory), ["living.lock", "next.lock"]);
    }));

  it("lists as driven only what a living owner drives", () =>
    world(async ({ directory, open }) => {
      const journal = await open("living");
      for (const id of ["first", "second", "third"]) await journal.create(newRun(id), [waited(1)]);
      leaveLock(directory, "dead");
      using db = new DatabaseSync(join(directory, "runs.db"));
      db.exec(
        "UPDATE run SET owner = 'dead' WHERE id = 'third'; UPDATE run SET owner = 'gone' WHERE id = 'first'",
      );
      const driven = async (limit?: number) =>
        (await journal.list({ owned: true, ...(limit !== undefined && { limit }) })).map(({ id }) => id);
      assert.deepEqual([await driven(), await driven(1), await driven(0)], [["second"], ["second"], []]);
    }));

  it("clears away the lock file of a dead owner when its run is claimed", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      await (await journal.create(newRun("r1"))).release();
      leaveLock(directory, "dead");
      using db = new DatabaseSync(join(directory, "runs.db"));
      db.exec("UPDATE run SET owner = 'dead'");
      assert.equal((await journal.list())[0]?.owned, false);
      assert.deepEqual(locks(directory), ["a.lock", "dead.lock"]);
      assert.equal((await journal.claim("r1")).epoch, 2);
      assert.deepEqual(locks(directory), ["a.lock"]);
    }));

  it("refuses an owner id that is in use", () =>
    world(async ({ open }) => {
      await (await open("same")).create(newRun("r1"));
      await assert.rejects((await open("same")).create(newRun("r2")), {
        code: "JOURNAL_UNAVAILABLE",
        message: /same\.lock .* held by another process/,
      });
    }));

  it("says which run holds an entry that was changed from outside", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      await (await journal.create(newRun("r1"))).append([waited(1)]);
      using db = new DatabaseSync(join(directory, "runs.db"));
      db.exec("UPDATE event SET body = '{' WHERE seq = 1");
      await assert.rejects(journal.read("r1"), {
        code: "JOURNAL_UNAVAILABLE",
        message: /runs\.db: entry 1 of run r1/,
      });
    }));

  for (const { what, put, message } of UNUSABLE) {
    it(`refuses ${what} in words, and leaves it as it is`, () =>
      world(async ({ directory, open }) => {
        const file = put(directory);
        const before = readFileSync(file);
        await assert.rejects(open("a"), { name: "RunnerError", code: "JOURNAL_UNAVAILABLE", message });
        assert.deepEqual(readFileSync(file), before);
      }));
  }

  it("gives the room of removed runs back when it is closed", () =>
    world(async ({ directory, open }) => {
      const first = await open("first");
      const text = "x".repeat(250_000);
      const noted = (seq: number) => ({ ...waited(seq), note: text }) as Entry;
      const large = [noted(1), noted(2), noted(3), noted(4)];
      const handle = await first.create(newRun("large"), large);
      await (await first.create(newRun("small"), [waited(1)])).release();
      await handle.release();
      await first.close();
      const file = join(directory, "runs.db");
      assert.ok(statSync(file).size > 4 * text.length);
      const second = await open("second");
      await second.remove("large");
      await second.close();
      assert.ok(statSync(file).size < 100_000, String(statSync(file).size));
      const third = await open("third");
      assert.deepEqual(
        (await third.list()).map(({ id }) => id),
        ["small"],
      );
    }));
});

describe("journal: sqlite, entries too large for a row", () => {
  const large = (seq: number, letter = "x") =>
    ({ ...waited(seq), note: letter.repeat(LARGEST_ROW) }) as Entry;
  const written = (directory: string) =>
    existsSync(join(directory, "artifacts"))
      ? readdirSync(join(directory, "artifacts"), { recursive: true, withFileTypes: true })
          .filter((found) => found.isFile())
          .map((found) => join(found.parentPath, found.name))
      : [];

  it("makes a file for them, for the user only, and none for the others", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      const handle = await journal.create(newRun("r1"));
      const spare = LARGEST_ROW - JSON.stringify({ ...waited(1), note: "" }).length;
      const fits = { ...waited(1), note: "x".repeat(spare) } as Entry;
      await handle.append([fits]);
      assert.deepEqual(written(directory), []);
      await handle.append([{ ...fits, seq: 2, note: "x".repeat(spare + 1) } as Entry]);
      const [file = "", ...others] = written(directory);
      assert.deepEqual(others, []);
      assert.match(file, /artifacts\/([0-9a-f]{2})\/\1[0-9a-f]{62}$/);
      if (!windows()) assert.equal(statSync(file).mode & 0o777, 0o600);
      const digest = createHash("sha256").update(readFileSync(file)).digest("hex");
      assert.ok(file.endsWith(digest));
      assert.ok(statSync(join(directory, "runs.db-wal")).size < 2 * LARGEST_ROW);
    }));

  it("writes what two journals hold once, and keeps it until neither needs it", () =>
    world(async ({ directory, open }) => {
      const [first, second] = [await open("first"), await open("second")];
      const handles = await Promise.all([
        first.create(newRun("r1"), [large(1)]),
        second.create(newRun("r2"), [large(1)]),
      ]);
      assert.equal(written(directory).length, 1);
      for (const handle of handles) await handle.release();
      await first.remove("r1");
      await first.close();
      assert.deepEqual(await second.read("r2"), [large(1)]);
      await second.remove("r2");
      await second.close();
      assert.deepEqual(written(directory), []);
    }));

  it("clears away what processes left that died before they could name it", () =>
    world(async ({ directory, open }) => {
      const first = await open("first");
      await (await first.create(newRun("r1"), [large(1)])).release();
      await (await first.create(newRun("r2"), [large(1, "y")])).release();
      const [kept = ""] = written(directory);
      writeFileSync(`${kept}.dead`, "half");
      await first.remove("r2");
      await first.close();
      assert.equal(written(directory).length, 1);
      assert.deepEqual(await (await open("second")).read("r1"), [large(1)]);
    }));

  for (const [what, harm] of [
    ["is gone", (file: string) => rmSync(file)],
    ["was changed", (file: string) => writeFileSync(file, readFileSync(file, "utf8").replace("x", "y"))],
    ["was changed", (file: string) => writeFileSync(file, "")],
  ] as const) {
    it(`says which entry of which run is lost when its file ${what}`, () =>
      world(async ({ directory, open }) => {
        const journal = await open("a");
        await (await journal.create(newRun("r1"), [waited(1), large(2), waited(3)])).release();
        const [file = ""] = written(directory);
        harm(file);
        const refused = {
          code: "JOURNAL_UNAVAILABLE",
          message: `${file} ${what}: it holds entry 2 of run r1, which cannot be read without it. Restore the file from a copy, keep what comes before with "lockstep export r1", or remove the run with: lockstep runs --prune r1`,
        };
        await assert.rejects(journal.read("r1"), refused);
        assert.deepEqual(await journal.read("r1", 2), [waited(3)]);
        assert.equal((await journal.list()).length, 1);
      }));
  }

  it("refuses the whole append when the file cannot be written, and takes it later", () =>
    world(async ({ directory, open }) => {
      const journal = await open("a");
      const [handle, other] = [await journal.create(newRun("r1")), await journal.create(newRun("r2"))];
      writeFileSync(join(directory, "artifacts"), "in the way");
      const [refused, appended] = await Promise.allSettled([
        handle.append([waited(1), large(2)]),
        other.append([waited(1)]),
      ]);
      assert.deepEqual([refused.status, appended.status], ["rejected", "fulfilled"]);
      assert.ok(refused.status === "rejected" && refused.reason.code === "JOURNAL_UNAVAILABLE");
      assert.deepEqual(await journal.read("r1"), []);
      rmSync(join(directory, "artifacts"));
      await handle.append([waited(1), large(2)]);
      assert.deepEqual(await journal.read("r1"), [waited(1), large(2)]);
    }));
});

type World = {
  /** Not there yet. */
  readonly directory: string;
  readonly open: (ownerId: string, about?: { readonly pid: number }) => Promise<Journal>;
};

async function world(body: (world: World) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "lockstep-journal-"));
  const directory = join(root, "state");
  const opened: Journal[] = [];
  try {
    await body({
      directory,
      async open(ownerId, { pid } = { pid: 4_711 }) {
        const journal = await openSqliteJournal({ directory, now: () => 1_000, ownerId, pid });
        opened.push(journal);
        return journal;
      },
    });
  } finally {
    for (const journal of opened) await journal.close();
    await rm(root, { recursive: true });
  }
}

function putFile(directory: string, text: string): string {
  mkdirSync(directory);
  const file = join(directory, "runs.db");
  writeFileSync(file, text);
  return file;
}

function putDatabase(directory: string, sql: string): string {
  const file = putFile(directory, "");
  using db = new DatabaseSync(file);
  db.exec(sql);
  return file;
}

/** What a killed owner leaves: its file, with nobody holding it. */
function leaveLock(directory: string, owner: string): void {
  mkdirSync(join(directory, "owners"), { recursive: true });
  writeFileSync(join(directory, "owners", `${owner}.lock`), "");
}

function locks(directory: string): readonly string[] {
  const folder = join(directory, "owners");
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}

/** Transactions in the write-ahead log: the frames that end one carry the size of the database. */
function commits(directory: string): number {
  const log = readFileSync(join(directory, "runs.db-wal"));
  const [header, frame] = [32, 24 + log.readUInt32BE(8)];
  let count = 0;
  for (let at = header; at < log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) count += 1;
  return count;
}

function newRun(id: string): NewRun {
  return { id, agent: "agent", at: 1_000, digest: "d1", flow: { ir: 1 } as unknown as Flow };
}

function waited(seq: number): Entry {
  return { seq, at: 1_000 + seq, event: { type: "step.waited", step: "s", visit: seq, ms: 5 } };
}

function windows(): string | false {
  return process.platform === "win32" && "Windows has no such permissions";
}
