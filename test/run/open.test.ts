/** Opening a run: whether it begins, goes on or forks another, the same refuses it, and whatever was opened is closed. */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { test } from "node:test";
import { createScripted } from "../../src/backends/scripted/scripted.ts";
import { RunnerError, type Backend, type Journal } from "../../src/engine/ports.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { fork, resume, run, type DriveOptions, type Result } from "../../src/run/index.ts";
import { agentFiles, homeBeside, projectWith, PROVEN, stepTo } from "./project.ts";

const answer = (step: string, action: string) => ({ output: { stepId: step, next_action: { action } } });
const FIRST = answer("initial.a", "next");
const LAST = answer("closure.a", "closing");

/** A project whose agent runs a command, and a journal with a run that has its first step behind it. */
async function stoppedRun() {
  const steps = {
    "initial.a": stepTo("work", { next: "closure.a" }),
    "closure.a": stepTo("closure", { closing: null }),
  };
  const cwd = projectWith({ ...agentFiles("a", steps, { registry: PROVEN }), proof: "" });
  const journal = createMemoryJournal();
  const env = { PATH: process.env.PATH, HOME: homeBeside() };
  const trusted = { ...env, LOCKSTEP_TRUST: "all" };
  const begun = await run({ agent: "a", cwd, journal, env: trusted, sandbox: "off", script: [FIRST] });
  assert.equal(begun.code, "SCRIPT_EXHAUSTED", begun.reason);
  return { cwd, journal, env, trusted, id: begun.run! };
}

type Stopped = Awaited<ReturnType<typeof stoppedRun>>;

/** The three ways, each to its end by as many answers as it needs. */
const WAYS: {
  readonly [way: string]: {
    readonly answers: readonly object[];
    readonly open: (of: Stopped, options: DriveOptions) => Promise<Result>;
    /** What a refused one names: a run that is recorded. */
    readonly names: (of: Stopped) => string | null;
  };
} = {
  run: {
    answers: [FIRST, LAST],
    open: async (_, options) => await run({ agent: "a", ...options }),
    names: () => null,
  },
  resume: {
    answers: [LAST],
    open: async ({ id }, options) => await resume({ run: id, ...options }),
    names: ({ id }) => id,
  },
  fork: {
    answers: [LAST],
    open: async ({ id }, options) => await fork({ run: id, at: "closure.a", ...options }),
    names: () => null,
  },
};

/** A model that counts how often it is closed. */
function counted(answers: readonly object[], more: Partial<Backend> = {}) {
  const closed = { times: 0 };
  const close = () => {
    closed.times += 1;
    return Promise.resolve();
  };
  return { closed, backend: { ...createScripted(answers), close, ...more } satisfies Backend };
}

const refuseRelease = (journal: Journal): Journal => {
  const broken = () => Promise.reject(new Error("released twice"));
  return {
    ...journal,
    create: async (...about) => ({ ...(await journal.create(...about)), release: broken }),
    claim: async (...about) => ({ ...(await journal.claim(...about)), release: broken }),
  };
};

const SECRET = "sk-0123456789abcdefghij";

type Case = {
  readonly name: string;
  readonly code: string | null;
  readonly options?: (of: Stopped) => DriveOptions;
  readonly backend?: Partial<Backend>;
};

const CASES: readonly Case[] = [
  { name: "is driven to its end", code: null },
  {
    name: "is driven to its end by a journal that cannot release it",
    code: null,
    options: ({ journal }) => ({ journal: refuseRelease(journal) }),
  },
  { name: "is refused without trust", code: "NOT_TRUSTED", options: ({ env }) => ({ env }) },
  {
    name: "is refused without a sandbox that it must have",
    code: "SANDBOX_UNAVAILABLE",
    options: () => ({ sandbox: "on" }),
    backend: { unconfinable: true },
  },
  {
    name: "is refused by a limit that cannot be enforced",
    code: "LIMIT_UNMETERED",
    options: () => ({ spending: { costUsd: 1 } }),
    backend: { unpriced: (model) => model },
  },
  {
    name: "is refused where a step is named that is not there",
    code: "PARAMETERS_INVALID",
    options: () => ({ spending: { steps: { "closure.b": { turns: 1 } } } }),
  },
  {
    name: "is refused, and closing the model fails as well",
    code: "NOT_TRUSTED",
    options: ({ env }) => ({ env }),
    backend: { close: () => Promise.reject(new RunnerError("BACKEND_UNAVAILABLE", "It hangs.")) },
  },
];

for (const [way, { answers, open, names }] of Object.entries(WAYS))
  for (const { name, code, options, backend: more } of CASES)
    test(`${way} ${name}`, async () => {
      const of = await stoppedRun();
      const before = await of.journal.count();
      const { closed, backend } = counted(answers, more);
      const { cwd, journal, trusted: env } = of;
      const given = { cwd, journal, env, sandbox: "off", backend, ...options?.(of) } as const;
      const result = await open(of, given);
      assert.equal(result.code, code, result.reason);
      assert.equal(closed.times, more?.close === undefined ? 1 : 0, "the model is closed once");
      const isNew = way !== "resume" && code === null;
      assert.equal(await journal.count(), before + (isNew ? 1 : 0), "a refused run leaves nothing behind");
      if (code !== null) assert.deepEqual([result.run, result.agent], [names(of), "a"]);
      // Nothing holds the run that was resumed, or refused.
      if (code !== null) assert.equal((await of.journal.rows([of.id]))[0]?.owned, false);
    });

test("a model is closed before its run is let go, so that nothing of it goes on beside the next owner", async () => {
  for (const [way, { answers, open }] of Object.entries(WAYS)) {
    const of = await stoppedRun();
    const order: string[] = [];
    const noted = <T extends { readonly release: () => Promise<void> }>(handle: T): T => ({
      ...handle,
      release: async () => {
        order.push("released");
        await handle.release();
      },
    });
    const journal: Journal = {
      ...of.journal,
      create: async (...about) => noted(await of.journal.create(...about)),
      claim: async (...about) => noted(await of.journal.claim(...about)),
    };
    const close = () => Promise.resolve(void order.push("closed"));
    const backend = { ...createScripted(answers), close };
    const result = await open(of, { cwd: of.cwd, journal, env: of.trusted, sandbox: "off", backend });
    assert.equal(result.code, null, result.reason);
    assert.deepEqual(order, ["closed", "released"], way);
  }
});

test("what refuses a run is told without secrets, however it was opened", async () => {
  const of = await stoppedRun();
  const { cwd, journal, trusted } = of;
  const env = { ...trusted, API_KEY: SECRET };
  const spending = { steps: { [SECRET]: { turns: 1 } } };
  for (const [way, { open }] of Object.entries(WAYS)) {
    const result = await open(of, { cwd, journal, env, sandbox: "off", script: [LAST], spending });
    assert.equal(result.code, "PARAMETERS_INVALID", result.reason);
    assert.ok(!result.reason.includes(SECRET), `${way}: ${result.reason}`);
  }
  // Refused before there is anything to resume.
  const refused = await fork({ run: of.id, at: SECRET, cwd, journal, env });
  assert.equal(refused.code, "STEP_UNKNOWN", refused.reason);
  assert.ok(!refused.reason.includes(SECRET), refused.reason);
});

test("one refusal names both yeses that a new run needs, and no yes that was given", async () => {
  const { cwd: first, env, trusted } = await stoppedRun();
  const made = await run({ agent: "a", cwd: first, env: trusted, sandbox: "off", script: [FIRST] });
  assert.equal(made.code, "SCRIPT_EXHAUSTED", made.reason);
  // A copy of the project brings a record along that nobody made there.
  const cwd = projectWith({});
  cpSync(first, cwd, { recursive: true });
  for (const [more, isNamed] of [
    [{}, true],
    [{ trustJournal: true }, false],
  ] as const) {
    const { code, reason } = await run({ agent: "a", cwd, env, sandbox: "off", script: [FIRST], ...more });
    assert.deepEqual([code, reason.includes("--trust-journal")], ["NOT_TRUSTED", isNamed], reason);
  }
});
