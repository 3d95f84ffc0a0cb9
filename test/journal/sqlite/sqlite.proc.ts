/** The journal between real processes: killed, stopped, racing, out of room. */
import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { canMount, mounted } from "../../mounted.ts";
import { needs } from "../../needs.ts";
import type { Journal } from "../../../src/engine/ports.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { openSqliteJournal } from "../../../src/journal/sqlite/sqlite.ts";
import { type Answer, type OtherProcess, startProcess, waited } from "../other-process.ts";

describe("journal: sqlite between processes", () => {
  const mounting = needs(...canMount());

  it("frees the runs of a killed owner at once, with everything it was told is committed", () =>
    world(async ({ directory, start, open }) => {
      const owner = start();
      await driving(owner, "r1");
      for (const seq of [1, 2, 3]) well(await owner.tell({ do: "append", run: "r1", seq }));
      await owner.kill();

      const journal = await open();
      assert.equal((await journal.list())[0]?.owned, false);
      assert.equal(locks(directory).length, 1);
      const handle = await journal.claim("r1");
      assert.equal(handle.epoch, 2);
      assert.deepEqual(locks(directory), ["here.lock"]);
      await handle.append([waited(4)]);
      assert.deepEqual(
        (await journal.read("r1")).map(({ seq }) => seq),
        [1, 2, 3, 4],
      );
    }));

  it("loses nothing it has acknowledged, wherever the kill falls", () =>
    world(async ({ start, open }) => {
      for (const round of [1, 2, 3, 4, 5]) {
        const run = `r${round}`;
        const owner = start();
        await driving(owner, run);
        for (let seq = 1; seq <= round; seq++) well(await owner.tell({ do: "append", run, seq }));
        const unanswered = owner.tell({ do: "append", run, seq: round + 1, bytes: 100_000 });
        await Promise.allSettled([owner.kill(), unanswered]);

        const journal = await open();
        const seqs = (await journal.read(run)).map(({ seq }) => seq);
        assert.deepEqual(
          seqs,
          seqs.map((_, index) => index + 1),
        );
        assert.ok(seqs.length === round || seqs.length === round + 1, `${seqs.length} of ${round}`);
        await (await journal.claim(run)).append([waited(seqs.length + 1)]);
      }
    }));

  it("keeps the runs of an owner that is only stopped", () =>
    world(async ({ start, open }) => {
      const owner = start();
      await driving(owner, "r1");
      owner.signal("SIGSTOP");
      const journal = await open();
      assert.equal((await journal.list())[0]?.owned, true);
      await assert.rejects(journal.claim("r1"), {
        code: "RUN_OWNED_ELSEWHERE",
        message: new RegExp(`process ${owner.pid} `),
      });
      owner.signal("SIGCONT");
      well(await owner.tell({ do: "append", run: "r1", seq: 1 }));
      assert.equal((await journal.read("r1")).length, 1);
    }));

  it("takes nothing from an owner that wakes up after its run was taken over", () =>
    world(async ({ directory, start, open }) => {
      const owner = start();
      await driving(owner, "r1");
      owner.signal("SIGSTOP");
      for (const name of locks(directory)) rmSync(join(directory, "owners", name));
      const journal = await open();
      const handle = await journal.claim("r1");
      owner.signal("SIGCONT");
      const refused = await owner.tell({ do: "append", run: "r1", seq: 1 });
      assert.deepEqual({ ...refused, message: "" }, { ok: false, code: "RUN_OWNED_ELSEWHERE", message: "" });
      assert.deepEqual(await journal.read("r1"), []);
      await handle.append([waited(1)]);
      well(await owner.tell({ do: "close" }));
      assert.equal((await journal.list())[0]?.owned, true);
    }));

  it("is made once, whoever comes first", () =>
    world(async ({ start }) => {
      const processes = [1, 2, 3, 4, 5, 6].map(() => start());
      for (const answer of await all(processes, (one) => one.tell({ do: "open" }))) well(answer);
      const runs = processes.map((one) => [one, `r${one.pid}`] as const);
      for (const answer of await all(runs, ([one, run]) => one.tell({ do: "create", run }))) well(answer);
      for (const answer of await all(processes, (one) => one.tell({ do: "list" }))) {
        assert.equal((well(answer) as readonly unknown[]).length, processes.length);
      }
    }));

  it("gives a run to one of many that claim it at once", () =>
    world(async ({ start, open }) => {
      const handle = await (await open()).create({ ...NEW_RUN, id: "r1" });
      const processes = [1, 2, 3, 4, 5, 6].map(() => start());
      for (const answer of await all(processes, (one) => one.tell({ do: "open" }))) well(answer);
      await handle.release();
      while (processes.length > 0) {
        const answers = await all(processes, (one) => one.tell({ do: "claim", run: "r1" }));
        const outcomes = answers.map((answer) => (answer.ok ? "won" : answer.code));
        const won = outcomes.indexOf("won");
        assert.notEqual(won, -1);
        const refusals = outcomes.toSpliced(won, 1);
        assert.deepEqual(
          refusals,
          refusals.map(() => "RUN_OWNED_ELSEWHERE"),
        );
        const [winner] = processes.splice(won, 1);
        await winner?.kill();
      }
    }));

  it("goes on after a full disk, with nothing lost", mounting, () =>
    world(async ({ directory, start }) => {
      const owner = start(mounted(`mount -t tmpfs -o size=2m none "${directory}"`));
      await driving(owner, "r1");
      well(await owner.tell({ do: "append", run: "r1", seq: 1 }));
      well(await owner.tell({ do: "fill" }));
      for (const _ of [1, 2]) {
        const refused = await owner.tell({ do: "append", run: "r1", seq: 2, bytes: 100_000 });
        assert.ok(!refused.ok);
        assert.equal(refused.code, "JOURNAL_UNAVAILABLE");
        assert.match(refused.message, /runs\.db could not grow: the disk is full\. Make room and resume/);
      }
      assert.deepEqual(well(await owner.tell({ do: "read", run: "r1" })), [1]);
      well(await owner.tell({ do: "clear" }));
      well(await owner.tell({ do: "append", run: "r1", seq: 2, bytes: 100_000 }));
      assert.deepEqual(well(await owner.tell({ do: "read", run: "r1" })), [1, 2]);
      well(await owner.tell({ do: "close" }));
      well(await owner.tell({ do: "open" }));
      assert.deepEqual(well(await owner.tell({ do: "read", run: "r1" })), [1, 2]);
    }),
  );

  it(
    "goes on after the system refused a write, with nothing lost",
    needs(process.platform !== "win32", "Windows has no ulimit"),
    () =>
      world(async ({ start }) => {
        const owner = start(["sh", "-c", 'ulimit -f 500 && exec "$@"', "sh"]);
        await driving(owner, "r1");
        well(await owner.tell({ do: "append", run: "r1", seq: 1 }));
        for (const [bytes, file] of [
          [250_000, "runs\\.db"],
          [2_000_000, "artifacts/.*"],
        ] as const) {
          const refused = await owner.tell({ do: "append", run: "r1", seq: 2, bytes });
          assert.ok(!refused.ok);
          assert.equal(refused.code, "JOURNAL_UNAVAILABLE");
          assert.match(refused.message, new RegExp(`${file} could not be read or written: .* resume`));
        }
        well(await owner.tell({ do: "append", run: "r1", seq: 2 }));
        assert.deepEqual(well(await owner.tell({ do: "read", run: "r1" })), [1, 2]);
      }),
  );

  it("can be read where nothing may be written", mounting, () =>
    world(async ({ directory, start, open }) => {
      const journal = await open();
      await (await journal.create({ ...NEW_RUN, id: "r1" })).append([waited(1)]);
      await journal.close();
      const reader = start(mounted(readOnly(directory)));
      well(await reader.tell({ do: "open" }));
      assert.deepEqual(well(await reader.tell({ do: "read", run: "r1" })), [1]);
      assert.equal((well(await reader.tell({ do: "list" })) as readonly unknown[]).length, 1);
      for (const order of ["create", "claim"] as const) {
        const refused = await reader.tell({ do: order, run: order === "claim" ? "r1" : "r2" });
        assert.ok(!refused.ok);
        assert.equal(refused.code, "JOURNAL_UNAVAILABLE");
        assert.match(refused.message, /runs\.db cannot be written: it is read-only here\. Make/);
      }
    }),
  );

  it("can be read where nothing may be written while it is written elsewhere", mounting, () =>
    world(async ({ directory, start, open }) => {
      const handle = await (await open()).create({ ...NEW_RUN, id: "r1" });
      const reader = start(mounted(readOnly(directory)));
      well(await reader.tell({ do: "open" }));
      for (const seq of [1, 2, 3]) {
        await handle.append([waited(seq)]);
        assert.equal((well(await reader.tell({ do: "read", run: "r1" })) as readonly unknown[]).length, seq);
      }
      const [row] = well(await reader.tell({ do: "list" })) as [{ readonly owned: boolean }];
      assert.equal(row.owned, true);
    }),
  );

  it("says so where it may not be made", mounting, () =>
    world(async ({ directory, start }) => {
      const refused = await start(mounted(readOnly(directory))).tell({ do: "open" });
      assert.ok(!refused.ok);
      assert.equal(refused.code, "JOURNAL_UNAVAILABLE");
      assert.match(refused.message, /runs\.db cannot be written: it is read-only here\. Make/);
    }),
  );
});

type World = {
  readonly directory: string;
  readonly start: (wrap?: readonly string[]) => OtherProcess;
  /** A journal in this process, with the owner id `here`. */
  readonly open: () => Promise<Journal>;
};

async function world(body: (world: World) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "lockstep-journal-"));
  const started: OtherProcess[] = [];
  const opened: Journal[] = [];
  try {
    await body({
      directory,
      start(wrap) {
        const other = startProcess(directory, wrap);
        started.push(other);
        return other;
      },
      async open() {
        for (const journal of opened.splice(0)) await journal.close();
        opened.push(await openSqliteJournal({ directory, now: Date.now, ownerId: "here", pid: process.pid }));
        return opened[0] as Journal;
      },
    });
  } finally {
    for (const other of started) await other.kill();
    for (const journal of opened) await journal.close();
    await rm(directory, { recursive: true });
  }
}

const NEW_RUN = { agent: "agent", at: 1, digest: "d1", flow: { ir: 1 } as unknown as Flow };

async function driving(owner: OtherProcess, run: string): Promise<void> {
  well(await owner.tell({ do: "open" }));
  well(await owner.tell({ do: "create", run }));
}

function well(answer: Answer): unknown {
  assert.ok(answer.ok, answer.ok ? "" : `${answer.code}: ${answer.message}`);
  return answer.value;
}

function all<T>(list: readonly T[], tell: (one: T) => Promise<Answer>): Promise<readonly Answer[]> {
  return Promise.all(list.map(tell));
}

function locks(directory: string): readonly string[] {
  return readdirSync(join(directory, "owners"));
}

function readOnly(directory: string): string {
  return `mount --bind "${directory}" "${directory}" && mount -o remount,bind,ro "${directory}"`;
}
