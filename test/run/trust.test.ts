/** Commands of a project run only after somebody said so, for exactly these commands. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createScripted } from "../../src/backends/scripted.ts";
import { createMemoryJournal, resume, run, type ScriptReply } from "../../src/run/index.ts";
import type { TrustQuestion } from "../../src/run/trust.ts";
import { agentFiles, projectWith } from "./project.ts";

const steps = {
  "initial.a": { kind: "work", intents: ["handoff"], transitions: { handoff: { target: "closure.a" } } },
  "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
} as const;
const script: readonly ScriptReply[] = ["handoff", "closing"].map((action) => ({
  output: { stepId: "x", next_action: { action } },
}));

function project(command: string | object | null, params = {}): string {
  const ok =
    typeof command === "string" ? { type: "command", command, successWhen: "exitCode:0" } : { ...command };
  const checks = {
    validators: { ok: { ...ok, failurePattern: "bad" } },
    failurePatterns: { bad: { description: "bad", edition: "failed" } },
    validationSteps: {
      "closure.a": {
        stepId: "closure.a",
        name: "n",
        c2: "retry",
        c3: "a",
        validationConditions: [{ validator: "ok", params }],
      },
    },
  };
  return projectWith(agentFiles("trusting", steps, command === null ? {} : { registry: checks }));
}

function attempt(cwd: string, more: Partial<Parameters<typeof run>[0]> = {}) {
  const env = { PATH: process.env.PATH, HOME: cwd };
  return run({ agent: "trusting", cwd, journal: createMemoryJournal(), script, env, ...more });
}

test("a flow without commands needs no trust", async () => {
  assert.equal((await attempt(project(null))).outcome, "completed");
});

test("without trust nothing runs: exit 3, the commands and the digest are named", async () => {
  const cwd = project("touch ran");
  const result = await attempt(cwd);
  assert.deepEqual([result.code, result.exitCode, result.run], ["NOT_TRUSTED", 3, null]);
  assert.match(result.reason, /touch ran\n/);
  assert.match(result.reason, /--trust [0-9a-f]{16}/);
  assert.throws(() => readFileSync(join(cwd, "ran")));
});

test("the digest that was named trusts exactly these commands", async () => {
  const cwd = project("true");
  const digest = /--trust ([0-9a-f]+)/.exec((await attempt(cwd)).reason)![1]!;
  assert.equal((await attempt(cwd, { trust: { digest } })).outcome, "completed");
  assert.equal((await attempt(project("true # changed"), { trust: { digest } })).code, "NOT_TRUSTED");
});

test("trust is for the values of a command too", async () => {
  const [first, second] = ["a", "b"].map((suite) => project('test -n "${suite}"', { suite }));
  const reason = (await attempt(first!)).reason;
  assert.match(reason, /^ {2}suite="a" test -n "\$\{suite\}"$/m);
  const digest = /--trust ([0-9a-f]+)/.exec(reason)![1]!;
  assert.equal((await attempt(first!, { trust: { digest } })).outcome, "completed");
  assert.equal((await attempt(second!, { trust: { digest } })).code, "NOT_TRUSTED");
});

test("a check that runs nothing of the project needs no trust", async () => {
  const cwd = project({ type: "file", path: ".agent/trusting/agent.json" });
  assert.equal((await attempt(cwd)).outcome, "completed");
});

test("LOCKSTEP_TRUST=all trusts everything", async () => {
  const cwd = project("true");
  const env = { PATH: process.env.PATH, HOME: cwd, LOCKSTEP_TRUST: "all" };
  assert.equal((await attempt(cwd, { env })).outcome, "completed");
});

test("a changed command asks again, and shows what changed", async () => {
  const cwd = project("true # one");
  const questions: TrustQuestion[] = [];
  const confirm = (question: TrustQuestion) => {
    questions.push(question);
    return Promise.resolve(true);
  };
  await attempt(cwd, { trust: { confirm } });
  const file = join(cwd, ".agent/trusting/steps_registry.json");
  writeFileSync(file, readFileSync(file, "utf8").replace("# one", "# two"));
  assert.match((await attempt(cwd)).reason, /\n- true # one\n\+ true # two\n/);
  assert.equal((await attempt(cwd, { trust: { confirm } })).outcome, "completed");
  assert.deepEqual(
    questions.map(({ change }) => change),
    [null, { added: ["true # two"], removed: ["true # one"] }],
  );
  writeFileSync(file, readFileSync(file, "utf8").replace("# two", "# one"));
  assert.equal((await attempt(cwd)).outcome, "completed");
});

test("a store of digests alone is understood", async () => {
  const cwd = project("true");
  const digest = /--trust ([0-9a-f]+)/.exec((await attempt(cwd)).reason)![1]!;
  mkdirSync(join(cwd, ".config/lockstep"), { recursive: true });
  writeFileSync(join(cwd, ".config/lockstep/trust.json"), JSON.stringify({ [realpathSync(cwd)]: [digest] }));
  assert.equal((await attempt(cwd)).outcome, "completed");
});

test("a yes is remembered for this place and these commands; a no is not", async () => {
  const cwd = project("true");
  const asked: string[] = [];
  const confirm = (answer: boolean) => (question: { readonly commands: readonly string[] }) => {
    asked.push(question.commands.join());
    return Promise.resolve(answer);
  };
  assert.equal((await attempt(cwd, { trust: { confirm: confirm(false) } })).code, "NOT_TRUSTED");
  assert.equal((await attempt(cwd, { trust: { confirm: confirm(true) } })).outcome, "completed");
  assert.equal((await attempt(cwd, { trust: { confirm: confirm(false) } })).outcome, "completed");
  assert.deepEqual(asked, ["true", "true"]);
});

/** A model that tells how often it was closed. */
function counted(replies = script, more = {}) {
  const closed = { times: 0 };
  const close = () => {
    closed.times += 1;
    return Promise.resolve();
  };
  return { closed, backend: { ...createScripted(replies), ...more, close } };
}

test("a backend is closed once, whether the run is driven or refused", async () => {
  const cwd = project("true");
  const trust = { digest: /--trust ([0-9a-f]+)/.exec((await attempt(cwd)).reason)![1]! };
  const journal = createMemoryJournal();
  const cases = [
    ["driven", null, counted(), { trust }],
    ["not trusted", "NOT_TRUSTED", counted(), {}],
    [
      "not to be confined",
      "SANDBOX_UNAVAILABLE",
      counted(script, { unconfinable: true }),
      { trust, sandbox: "on" },
    ],
    ["without a place", "WORKTREE_UNAVAILABLE", counted(), { trust, worktree: true }],
    ["out of answers", "SCRIPT_EXHAUSTED", counted(script.slice(1)), { trust, journal }],
  ] as const;
  for (const [name, code, { backend, closed }, more] of cases) {
    const result = await attempt(cwd, { backend, ...more });
    assert.deepEqual([name, result.code, closed.times], [name, code, 1]);
  }
  const { backend, closed } = counted();
  const env = { PATH: process.env.PATH, HOME: cwd };
  const again = await resume({ run: "@last", cwd, journal, backend, env });
  assert.deepEqual([again.code, closed.times], ["NOT_TRUSTED", 1]);
});
