/** What the words of an answer may do on GitHub, and what they may not: closing, steps that only read, texts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { closing, effectsOf, handoff, reply, withActing, type Settings } from "./acting.ts";

const CLOSE = { type: "issue-action", action: "close", body: "Done" };
const COMMENT = { type: "comment", issueNumber: 1, content: "Hello" };

describe("an issue is closed by the answer that completes the run, and by no other", () => {
  const cases: {
    readonly [name: string]: readonly [Settings, readonly ReturnType<typeof reply>[], string, number];
  } = {
    "a closure": [{}, [handoff(), closing(CLOSE)], "closed", 1],
    "a closure whose checks held": [
      { proof: "proof", files: { proof: "x" } },
      [handoff(), closing(CLOSE)],
      "closed",
      1,
    ],
    "a closure whose checks did not hold": [
      { proof: "proof" },
      [handoff(), closing(CLOSE), handoff(), closing(CLOSE), handoff(), closing(CLOSE)],
      "open",
      0,
    ],
    "a closure that goes back to work": [
      {},
      [handoff(), reply("closure.work", "repeat", CLOSE), handoff(), closing()],
      "open",
      0,
    ],
    "a work step": [{}, [handoff(CLOSE), closing()], "open", 0],
    "a work step in plan mode": [{ mode: "plan" }, [handoff(CLOSE), closing()], "open", 0],
    "a work step, where a count ends the run": [
      {
        verdict: { type: "count:iteration", config: { maxIterations: 1 } },
        github: { defaultClosureAction: "label-only" },
      },
      [handoff(CLOSE)],
      "open",
      0,
    ],
    "the same block twice, once too early": [{}, [handoff(CLOSE), closing(CLOSE)], "closed", 1],
  };
  for (const [name, [settings, script, state, comments]] of Object.entries(cases)) {
    test(name, async () => {
      await withActing(settings, async ({ start, issue }) => {
        const result = await start(script);
        assert.deepEqual(
          [issue.state, issue.comments.length],
          [state, comments],
          JSON.stringify(result.effects),
        );
        const refused = result.effects.filter(({ kind }) => kind === "action:refused");
        assert.ok(
          refused.every(({ detail, state: held }) => held === "held" && /closed only by|plan/.test(detail)),
        );
      });
    });
  }
});

describe("a step in plan mode does nothing on GitHub", () => {
  const blocks = {
    "a comment": COMMENT,
    "an issue": { type: "issue", title: "Later" },
    progress: { type: "issue-action", action: "progress", body: "Half" },
    "a label": { type: "issue-action", action: "progress", label: "ready" },
    blocked: { type: "issue-action", action: "blocked", body: "x" },
  };
  for (const [name, block] of Object.entries(blocks)) {
    for (const mode of ["plan", "acceptEdits"]) {
      test(`${name}, ${mode}`, async () => {
        await withActing({ mode, github: { labels: { a: "ready" } } }, async ({ start, writes }) => {
          const result = await start([handoff(block), closing()]);
          assert.equal(result.outcome, "completed", result.reason);
          const expected = mode === "plan" ? ["action:refused:held"] : [];
          assert.deepEqual(
            effectsOf(result).filter((effect) => effect.startsWith("action:refused")),
            expected,
          );
          assert.equal(writes.length === 0, mode === "plan", writes.join());
          if (mode === "plan")
            assert.match(result.warnings.join("\n"), /permissionMode plan .* changes nothing on GitHub/);
        });
      });
    }
  }
  test("and still tells what is only told", async () => {
    await withActing({ mode: "plan" }, async ({ start }) => {
      const result = await start([handoff({ type: "plan", content: "first" }, { type: "done" }), closing()]);
      assert.deepEqual(effectsOf(result), ["action:log:applied", "action:completion-signal:applied"]);
    });
  });
});

test("texts of blocks close nothing and call nobody, unless the agent file allows that", async () => {
  const words = "Closes #99, fixes #1. @ann\n/approve";
  for (const mentions of [false, true]) {
    await withActing({ github: { mentions } }, async ({ start, issue, stand }) => {
      await start([
        handoff({ ...COMMENT, content: words }, { type: "issue", title: "Fixes #99", content: words }),
        closing(),
      ]);
      const quiet = mentions
        ? "Closes #\u200b99, fixes #1. @ann\n/approve"
        : "Closes #\u200b99, fixes #1. @\u200bann\n\u200b/approve";
      assert.ok(issue.comments[0]!.body.startsWith(`${quiet}\n`), issue.comments[0]!.body);
      const made = stand.world.issues.get(3)!;
      assert.deepEqual([made.title, made.body!.startsWith(`${quiet}\n`)], ["Fixes #\u200b99", true]);
    });
  }
});
