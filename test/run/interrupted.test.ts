/** A query of a coding agent that is stopped: what it had cost counts, and nothing else of it does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  RunnerError,
  type Backend,
  type Journal,
  type RunHandle,
  type TurnResult,
} from "../../src/engine/ports.ts";
import type { Usage } from "../../src/flow/event.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { resume } from "../../src/run/resume.ts";
import { run } from "../../src/run/open.ts";
import { show } from "../../src/run/records/runs.ts";
import { dying } from "./breaking.ts";
import { agentFiles, projectWith, stepTo } from "./project.ts";

const SPENT: Usage = { turns: 3, inputTokens: 300, outputTokens: 30, costUsd: 0.25 };
const ANSWERED: Usage = { turns: 1, inputTokens: 100, outputTokens: 10, costUsd: 0.5 };
const CUT = { kind: "other", message: "The query was interrupted." } as const;

/** What is said of a run whose journal takes no more from this process. */
for (const [name, code, isTaken] of [
  ["is taken over", "RUN_OWNED_ELSEWHERE", true],
  ["cannot be written", "JOURNAL_UNAVAILABLE", false],
] as const) {
  test(`a run that ${name} ${isTaken ? "is not" : "is"} resumed from here`, async () => {
    const cwd = projectWith(agentFiles("t", { "closure.t": stepTo("closure", { closing: null }) }));
    const memory = createMemoryJournal();
    const journal: Journal = {
      ...memory,
      create: async (...about) => {
        const handle = await memory.create(...about);
        const append: RunHandle["append"] = async (...more) => {
          if (!isTaken) throw new RunnerError("JOURNAL_UNAVAILABLE", "There is no room.");
          await memory.claim(handle.run, { takeOver: true });
          await handle.append(...more);
        };
        return { ...handle, append };
      },
    };
    const script = [{ output: { stepId: "closure.t", next_action: { action: "closing" } } }];
    const result = await run({ agent: "t", cwd, journal, script, env: { LOCKSTEP_TRUST: "all" } });
    assert.deepEqual([result.code, result.resumable], [code, !isTaken], result.reason);
    assert.equal(/continue with: lockstep resume/.test(result.reason), !isTaken, result.reason);
  });
}

/** What a program that watches is shown must be in the record: it may act on it. */
for (const when of ["before", "after"] as const) {
  test(`nothing is observed that is not written, where a process dies ${when} a write`, async () => {
    const steps = {
      "initial.t": stepTo("work", { next: "closure.t" }),
      "closure.t": stepTo("closure", { closing: null }),
    };
    const cwd = projectWith(agentFiles("t", steps));
    const say = (stepId: string, action: string) => ({ output: { stepId, next_action: { action } } });
    const script = [say("initial.t", "next"), say("closure.t", "closing")];
    let seen: readonly number[] = [];
    for (const at of [1, 2, 3]) {
      const journal = createMemoryJournal();
      const observed: number[] = [];
      const observe = ({ seq }: { readonly seq: number }) => void observed.push(seq);
      const options = { agent: "t", cwd, script, observe, env: { LOCKSTEP_TRUST: "all" } };
      const { run: id } = await run({ ...options, journal: dying(journal, at, when) });
      await resume({ ...options, run: id!, journal: dying(journal, 1, when) });
      const written = new Set((await journal.read(id!)).map(({ seq }) => seq));
      assert.deepEqual(
        observed.filter((seq) => !written.has(seq)),
        [],
      );
      seen = observed;
    }
    assert.ok(seen.length > 1, "something was observed");
  });
}

/** Its first query waits for the signal, and then tells what it had cost; the next one answers. */
function agent(usage: Usage | undefined, begun: () => void): Backend {
  let queries = 0;
  return {
    spec: { id: "mine", options: null },
    run: async ({ signal }): Promise<TurnResult> => {
      queries += 1;
      if (queries > 1) {
        const output = { stepId: "closure.t", next_action: { action: "closing" } };
        return { kind: "reply", text: "", calls: [], output, usage: ANSWERED };
      }
      const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
      begun();
      await stopped;
      return { kind: "fault", fault: usage === undefined ? CUT : { ...CUT, usage } };
    },
  };
}

const cases: readonly [name: string, usage: Usage | undefined, expected: object][] = [
  ["that says what it had cost", SPENT, { turns: 4, inputTokens: 400, outputTokens: 40 }],
  ["that says nothing", undefined, { turns: 1, inputTokens: 100, outputTokens: 10 }],
];
for (const [name, usage, expected] of cases) {
  test(`a query ${name} is interrupted and asked again`, async () => {
    const cwd = projectWith(agentFiles("t", { "closure.t": stepTo("closure", { closing: null }) }));
    const journal = createMemoryJournal();
    const stop = new AbortController();
    const backend = agent(usage, () => stop.abort());
    const common = { cwd, journal, backend, env: { LOCKSTEP_TRUST: "all" } };
    const cut = await run({ agent: "t", ...common, signal: stop.signal });
    assert.deepEqual([cut.exitCode, cut.resumable], [130, true]);
    assert.equal(cut.usage.turns, usage?.turns ?? 0);
    assert.equal(cut.costUsd, usage?.costUsd ?? null);
    assert.equal(cut.steps[0]?.turns, usage?.turns ?? 0);

    const done = await resume({ run: cut.run!, ...common });
    assert.equal(done.exitCode, 0, done.reason);
    const { turns, inputTokens, outputTokens } = done.usage;
    assert.deepEqual({ turns, inputTokens, outputTokens }, expected);
    assert.equal(done.costUsd, usage === undefined ? 0.5 : 0.75);
    assert.deepEqual((await show(journal, cut.run!)).usage, done.usage, "and so says the journal");
  });
}

test("a query that the time of its step ends counts, too", async () => {
  const step = stepTo("closure", { closing: null }, { more: { limits: { wallMs: 50 } } });
  const cwd = projectWith(agentFiles("t", { "closure.t": step }));
  const journal = createMemoryJournal();
  const backend = agent(SPENT, () => undefined);
  const ended = await run({ agent: "t", cwd, journal, backend, env: { LOCKSTEP_TRUST: "all" } });
  assert.equal(ended.code, "BUDGET_EXHAUSTED", ended.reason);
  assert.deepEqual([ended.usage.turns, ended.costUsd, ended.steps[0]?.turns], [3, 0.25, 3]);
});
