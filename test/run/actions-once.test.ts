/** What a run did for a model is not done again: after it died, in a fork, in a replay. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fork, type Journal } from "../../src/run/index.ts";
import { replay } from "../../src/story/replay.ts";
import { NOTE, bodies, closing, effectsOf, handoff, withActing, type Settings } from "./acting.ts";
import { dying } from "./breaking.ts";
import { ready } from "../ready.ts";

describe("a run that dies and is resumed does nothing twice, wherever it dies", () => {
  const SCRIPT = [
    handoff(
      NOTE,
      { ...NOTE, content: "two" },
      { ...NOTE, filename: "whole.md", mode: "write" },
      { type: "plan", content: "p" },
      { type: "comment", issueNumber: 1, content: "Hello" },
      { type: "issue", title: "Later" },
      { type: "issue-action", action: "blocked", body: "Stuck" },
      { type: "nothing" },
    ),
    closing(
      { ...NOTE, content: "three" },
      { type: "issue-action", action: "close", body: "Done" },
      { type: "done" },
    ),
  ];
  // The labels of the agent file would be changed by the run itself, too.
  const settings: Settings = { github: { labels: { size: "big" } } };

  /** `dies`: it dies once more, at this write after it was resumed. */
  for (const [when, dies] of [
    ["before", null],
    ["after", null],
    ["before", 2],
    ["before", 3],
  ] as const) {
    test(`${when} each write${dies === null ? "" : `, and again before write ${dies}`}`, async () => {
      let deaths = 0;
      for (let at = 1; ; at++) {
        let isOver = false;
        await withActing(settings, async ({ start, resume: again, journal, read, issue, stand }) => {
          const broken = await start(SCRIPT, { journal: dying(journal, at, when) });
          isOver = broken.outcome === "completed";
          if (!isOver && dies !== null) await again(broken, { journal: dying(journal, dies, "before") });
          const result = isOver ? broken : await again(broken);
          if (!isOver) deaths += 1;
          const place = `${when} write ${at}: ${JSON.stringify(result.effects)}`;
          assert.equal(result.outcome, "completed", `${place} ${result.reason}`);
          assert.equal(read("notes.md"), "one\ntwo\nthree\n", place);
          assert.equal(read("whole.md"), "one\n", place);
          assert.deepEqual(bodies(issue), ["Hello (signed)", "Stuck (signed)", "Done (signed)"], place);
          assert.deepEqual([stand.world.issues.size, issue.state], [3, "closed"], place);
          assert.equal(result.effects.length, 12, place);
          assert.ok(
            result.effects.every(({ state }) => state !== "intended" && state !== "failed"),
            place,
          );
        });
        if (isOver) break;
      }
      assert.ok(deaths > 20, `${deaths}`);
    });
  }

  test("half of an appended text is taken back before it is written again", async () => {
    await withActing({}, async ({ start, resume: again, journal, read, write }) => {
      write("notes.md", "zero\n");
      // Written: the start is not counted, the answer is 1, the intention 2.
      const broken = await start([handoff(NOTE), closing()], { journal: dying(journal, 3, "before") });
      assert.equal(read("notes.md"), "zero\none\n");
      write("notes.md", "zero\non");
      const result = await again(broken);
      assert.deepEqual([effectsOf(result), read("notes.md")], [["action:file:applied"], "zero\none\n"]);
    });
  });

  const MEANWHILE: readonly (readonly [string, string, string, string])[] = [
    ["somebody added something", "zero\none\nmore\n", "zero\none\nmore\n", "applied"],
    ["somebody added something before it was written", "zero\nmore\n", "zero\nmore\none\n", "applied"],
    ["somebody took away what was there before", "z", "z", "failed"],
  ];
  for (const [name, then, expected, state] of MEANWHILE) {
    test(`${name} while nobody drove the run`, async () => {
      await withActing({}, async ({ start, resume: again, journal, read, write }) => {
        write("notes.md", "zero\n");
        const broken = await start([handoff(NOTE), closing()], { journal: dying(journal, 3, "before") });
        write("notes.md", then);
        const result = await again(broken);
        assert.deepEqual(
          [result.outcome, effectsOf(result), read("notes.md")],
          ["completed", [`action:file:${state}`], expected],
        );
      });
    });
  }

  test("when GitHub cannot be asked whether it was done, it is not done again", async () => {
    await withActing({}, async ({ start, resume: again, journal, stand, issue }) => {
      const block = { type: "comment", issueNumber: 1, content: "Hello" };
      const broken = await start([handoff(block), closing()], { journal: dying(journal, 3, "before") });
      assert.equal(issue.comments.length, 1);
      stand.fault({ kind: "status", status: 403 }, { method: "GET" });
      const result = await again(broken);
      assert.deepEqual([issue.comments.length, effectsOf(result)], [1, ["action:github-comment:failed"]]);
    });
  });
});

/**
 * What is looked for in a list is found wherever it stands there: `before` and `meanwhile` are how many others there are
 * when it is made, and how many come until the run is resumed.
 */
describe("a run that died after GitHub had done something finds it again", () => {
  const COMMENT = { type: "comment", issueNumber: 1, content: "Hello" };
  const ISSUE = { type: "issue", title: "Later", content: "Hello" };
  const BODY = { type: "issue-action", action: "progress", body: "Hello" };
  const YEARS = 10 * 365 * 24 * 3600_000;
  type Row = readonly [
    block: object,
    before: number,
    meanwhile: number,
    ahead?: number,
    dies?: "before" | "after",
  ];
  const ROWS: readonly Row[] = [
    [COMMENT, 0, 0],
    [COMMENT, 50, 0],
    [COMMENT, 1100, 0],
    [COMMENT, 1100, 250],
    [COMMENT, 0, 1100],
    [COMMENT, 2499, 0],
    [BODY, 1100, 5],
    [COMMENT, 1100, 0, YEARS],
    [COMMENT, 1100, 0, -YEARS],
    [COMMENT, 1100, 0, 0, "after"],
    [ISSUE, 0, 0],
    [ISSUE, 250, 0],
    [ISSUE, 0, 350],
    [ISSUE, 300, 1100],
    [ISSUE, 10, 350, YEARS],
    [ISSUE, 10, 350, -YEARS],
    [ISSUE, 10, 350, 0, "after"],
  ];
  for (const [block, before, meanwhile, ahead = 0, dies = "before"] of ROWS) {
    const what = "content" in block && "title" in block ? "issue" : "comment";
    const clock = ahead === 0 ? "" : `, with a clock that is ${ahead > 0 ? "ahead" : "behind"}`;
    const when = dies === "before" ? "" : ", not made yet";
    test(`${what} of ${block === BODY ? "issue-action" : what}, ${before} before, ${meanwhile} after it${clock}${when}`, async () => {
      await withActing({}, async ({ start, resume: again, journal, stand, issue, writes }) => {
        const others = (count: number) => {
          for (let index = 0; index < count; index += 1) {
            if (what === "comment") stand.world.addComment(issue, `number ${index}`);
            else if (index % 3 === 0) stand.world.addPull();
            else stand.world.addIssue();
          }
        };
        const time = { now: () => Date.now() + ahead, sleep: async () => {} };
        others(before);
        // The answer is write 1, the intention 2, the outcome 3.
        const at = dies === "before" ? 3 : 2;
        const broken = await start([handoff(block), closing()], {
          journal: dying(journal, at, dies),
          clock: time,
        });
        const made = writes.length;
        others(meanwhile);
        const result = await again(broken, { clock: time });
        assert.deepEqual([made, writes.length], [dies === "before" ? 1 : 0, 1], writes.join(", "));
        assert.deepEqual(
          [result.outcome, result.effects.map(({ state }) => state)],
          ["completed", ["applied"]],
        );
      });
    });
  }

  test("an issue that an earlier version began is looked for among the newest", async () => {
    await withActing({}, async ({ start, resume: again, journal, stand, writes }) => {
      const old: Journal = {
        ...dying(journal, 3, "before"),
        create: async (...run) => {
          const handle = await dying(journal, 3, "before").create(...run);
          const without = <T extends { readonly event: object }>(entry: T): T => {
            const { newest: _, ...event } = entry.event as { newest?: number };
            return { ...entry, event };
          };
          return { ...handle, append: (more, adopted) => handle.append(more.map(without), adopted) };
        },
      };
      const broken = await start([handoff(ISSUE), closing()], { journal: old });
      for (let index = 0; index < 150; index += 1) stand.world.addIssue();
      const result = await again(broken);
      assert.deepEqual([writes.length, effectsOf(result)], [1, ["action:github-issue:applied"]]);
    });
  });

  test("where too many issues were opened since to tell, none is opened again", async () => {
    await withActing({}, async ({ start, resume: again, journal, stand, writes }) => {
      const broken = await start([handoff(ISSUE), closing()], { journal: dying(journal, 3, "before") });
      for (let index = 0; index < 2001; index += 1) stand.world.addIssue();
      const result = await again(broken);
      assert.deepEqual([writes.length, effectsOf(result)], [1, ["action:github-issue:failed"]]);
      assert.match(
        result.warnings.join(),
        /more than 2000 issues were opened after #2, .* look for its title there/,
      );
    });
  });

  test("an issue is not opened while GitHub cannot be asked for the newest", async () => {
    await withActing({}, async ({ start, stand, writes }) => {
      stand.fault({ kind: "status", status: 403 }, { method: "GET", path: /\/issues$/, nth: 1, times: 1 });
      const result = await start([handoff(ISSUE), closing()]);
      assert.deepEqual([writes.length, effectsOf(result)], [0, ["action:github-issue:failed"]]);
    });
  });
});

test("a fork does not do again what the run did whose past it shares", async () => {
  await withActing({}, async ({ start, cwd, journal, read }) => {
    const first = await start([handoff(NOTE), closing({ ...NOTE, content: "two" })]);
    assert.equal(read("notes.md"), "one\ntwo\n");
    const script = [closing({ ...NOTE, content: "other" })];
    const forked = await fork({
      run: first.run!,
      at: "closure.work",
      cwd,
      journal,
      script,
      env: { LOCKSTEP_TRUST: "all" },
    });
    assert.equal(forked.outcome, "completed", forked.reason);
    assert.equal(read("notes.md"), "one\ntwo\nother\n");
  });
});

test("replay comes to the same decisions with acts between them", async () => {
  await withActing({}, async ({ start, journal }) => {
    const { run: id } = await start([handoff(NOTE, { type: "nothing" }), closing(NOTE)]);
    const entries = await journal.read(id!);
    const flow = (await journal.flow((await journal.list())[0]!.digest))!;
    assert.equal(replay(ready(flow), entries).difference, null);
  });
});
