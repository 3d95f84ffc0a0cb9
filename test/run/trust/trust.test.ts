/** Commands of a project run only after somebody said so, for exactly these commands. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createScripted } from "../../../src/backends/scripted/scripted.ts";
import { createMemoryJournal, resume, run, type ScriptReply } from "../../../src/run/index.ts";
import { trustDigest, openTrust, type Trusted } from "../../../src/run/trust/trust-store.ts";
import type { TrustQuestion } from "../../../src/run/trust/trust.ts";
import { agentFiles, homeBeside, projectWith } from "../project.ts";

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
  // Without Bash, which needs trust of its own where nothing confines it.
  const runner = { boundaries: { allowedTools: ["Read", "Write"], permissionMode: "acceptEdits" } };
  const parts = command === null ? { runner } : { runner, registry: checks };
  return projectWith(agentFiles("trusting", steps, parts));
}

/** Beside the project, so that its commands can be confined. */
function homeOf(cwd: string): string {
  const home = homes.get(cwd) ?? homeBeside();
  homes.set(cwd, home);
  return home;
}

const homes = new Map<string, string>();

async function attempt(cwd: string, more: Partial<Parameters<typeof run>[0]> = {}) {
  const env = { PATH: process.env.PATH, HOME: homeOf(cwd) };
  const { trust = {} } = more;
  const { confirm } = trust;
  const asking = confirm && { confirm: (question: TrustQuestion) => confirm(asConfined(question)) };
  const about = { agent: "trusting", cwd, journal: createMemoryJournal(), script, env };
  const result = await run({ ...about, ...more, trust: { ...trust, ...asking } });
  return { ...result, reason: withoutPermissions(result.reason) };
}

/** Where nothing confines commands, each line says so: it is not what these tests are about. */
function withoutPermissions(text: string): string {
  return text.replaceAll("with your permissions: ", "");
}

function asConfined({ commands, change, ...question }: TrustQuestion): TrustQuestion {
  const plain = (lines: readonly string[]) => lines.map(withoutPermissions);
  const changed = change && { added: plain(change.added), removed: plain(change.removed) };
  return { ...question, commands: plain(commands), change: changed };
}

test("a flow without commands needs no trust", async () => {
  assert.equal((await attempt(project(null))).outcome, "completed");
});

test("without trust nothing runs: exit 3, the commands and the digest are named", async () => {
  const cwd = project("touch ran");
  const result = await attempt(cwd);
  assert.deepEqual([result.code, result.exitCode, result.run], ["NOT_TRUSTED", 3, null]);
  assert.match(result.reason, /touch ran\n/);
  assert.match(result.reason, /--trust [0-9a-f]{64},/);
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
  assert.match(reason, /^ {2}\$ export suite=a; test -n "\$\{suite\}"$/m);
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
  assert.match((await attempt(cwd)).reason, /\n- \$ true # one\n\+ \$ true # two\n/);
  assert.equal((await attempt(cwd, { trust: { confirm } })).outcome, "completed");
  assert.deepEqual(
    questions.map(({ change }) => change),
    [null, { added: ["$ true # two"], removed: ["$ true # one"] }],
  );
  writeFileSync(file, readFileSync(file, "utf8").replace("# two", "# one"));
  assert.equal((await attempt(cwd)).outcome, "completed");
});

/** The store as an older version wrote it: the first 16 digits, in one file. */
function oldStore(cwd: string, ...entries: readonly unknown[]): void {
  mkdirSync(join(homeOf(cwd), ".config/lockstep"), { recursive: true });
  writeFileSync(
    join(homeOf(cwd), ".config/lockstep/trust.json"),
    JSON.stringify({ [realpathSync(cwd)]: entries }),
  );
}

const short = (lines: readonly string[]) =>
  createHash("sha256").update(JSON.stringify(lines)).digest("hex").slice(0, 16);

test("an entry of an older version counts for nothing, and shows what changed", async () => {
  const cwd = project("touch ran");
  oldStore(cwd, short(["touch ran"]), {
    digest: short(["touch ran"]),
    agent: "trusting",
    commands: ["true"],
  });
  const result = await attempt(cwd);
  assert.equal(result.code, "NOT_TRUSTED");
  assert.match(result.reason, /\n- \$ true\n\+ \$ touch ran\n/);
  assert.throws(() => readFileSync(join(cwd, "ran")));
});

test("an entry of an older version with the same lines asks again, and does not say that anything changed", async () => {
  const cwd = project("touch ran");
  const asked: TrustQuestion[] = [];
  const confirm = (question: TrustQuestion) => {
    asked.push(question);
    return Promise.resolve(false);
  };
  const env = { PATH: process.env.PATH, HOME: homeOf(cwd) };
  const about = { agent: "trusting", cwd, journal: createMemoryJournal(), script, env, trust: { confirm } };
  await run(about);
  const { commands } = asked[0]!;
  oldStore(cwd, { digest: short(commands), agent: "trusting", commands });
  const refused = await run(about);
  assert.deepEqual([refused.code, asked.map(({ change }) => change)], ["NOT_TRUSTED", [null, null]]);
  assert.doesNotMatch(refused.reason, /changed/);
});

test("what is refused off a terminal says what changed, and why it matters", async () => {
  const cwd = project("true # one");
  const fresh = (await attempt(cwd)).reason;
  assert.match(fresh, /decide what Lockstep does with your permissions/);
  assert.doesNotMatch(fresh, /added, - removed/);
  await attempt(cwd, { trust: { confirm: () => Promise.resolve(true) } });
  const file = join(cwd, ".agent/trusting/steps_registry.json");
  writeFileSync(file, readFileSync(file, "utf8").replace("# one", "# two"));
  assert.match((await attempt(cwd)).reason, /\+ added, - removed\.[^]*\n- \$ true # one\n\+ \$ true # two\n/);
});

test("less than what was trusted is trusted, unless what is gone was the worktree", () => {
  const root = "/p";
  const entry = (lines: readonly string[], more: Partial<Trusted> = {}): Trusted => {
    const agent = more.agent ?? "a";
    return { root, agent, lines, digest: trustDigest(agent, lines), at: "2026-01-01", ...more };
  };
  const A = "$ true";
  const B = "commands may reach x";
  const tree = "git: makes a worktree and a branch for each run";
  const cases: readonly (readonly [
    name: string,
    kept: Trusted,
    wanted: readonly string[],
    covered: boolean,
  ])[] = [
    ["the same", entry([A, B]), [A, B], true],
    ["one less", entry([A, B]), [A], true],
    ["one more", entry([A]), [A, B], false],
    ["another", entry([A, B]), ["$ false"], false],
    ["of another agent", entry([A, B], { agent: "b" }), [A], false],
    ["in another project", entry([A, B], { root: "/q" }), [A], false],
    ["a digest of something else", entry([A, B], { digest: trustDigest("a", [A]) }), [A, B], false],
    ["less, and the worktree stays", entry([A, B, tree]), [A, tree], true],
    ["only the worktree is gone", entry([A, tree]), [A], false],
  ];
  for (const [name, kept, lines, covered] of cases) {
    const store = openTrust({ HOME: homeBeside() })!;
    store.add(kept);
    const wanted = { root, agent: "a", digest: trustDigest("a", lines), lines };
    assert.equal(store.covering(wanted) !== null, covered, name);
  }
});

test("what is taken back is not trusted any more, and all else still is", () => {
  const home = homeBeside();
  mkdirSync(join(home, ".config/lockstep"), { recursive: true });
  const old = ["$ one", "$ two"].map((line) => ({ digest: short([line]), agent: "a", commands: [line] }));
  writeFileSync(join(home, ".config/lockstep/trust.json"), JSON.stringify({ "/p": old }));
  const store = openTrust({ HOME: home })!;
  for (const lines of [["$ true"], ["$ false"]])
    store.add({ root: "/p", agent: "a", lines, digest: trustDigest("a", lines), at: "2026-01-01" });
  const kept = () =>
    store
      .list()
      .map(({ lines }) => lines.join())
      .toSorted();
  assert.deepEqual(kept(), ["$ false", "$ one", "$ true", "$ two"]);
  const take = (line: string) => store.remove(store.list().find(({ lines }) => lines[0] === line)!);
  for (const [line, left] of [
    ["$ true", ["$ false", "$ one", "$ two"]],
    ["$ one", ["$ false", "$ two"]],
    ["$ two", ["$ false"]],
    ["$ false", []],
  ] as const) {
    take(line);
    assert.deepEqual(kept(), left);
  }
});

test("a digest that is given must be right, also where it is not needed", async () => {
  const cwd = project("true");
  const digest = /--trust ([0-9a-f]+)/.exec((await attempt(cwd)).reason)![1]!;
  assert.equal((await attempt(cwd, { trust: { digest } })).outcome, "completed");
  const wrong = "deadbeef".repeat(8);
  const env = { PATH: process.env.PATH, HOME: homeOf(cwd), LOCKSTEP_TRUST: "all" };
  for (const [given, more, code] of [
    [digest, {}, null],
    [digest, { env }, null],
    [wrong, {}, "NOT_TRUSTED"],
    [wrong, { env }, "NOT_TRUSTED"],
    ["deadbeef", {}, "NOT_TRUSTED"],
  ] as const) {
    const result = await attempt(cwd, { ...more, trust: { digest: given } });
    assert.equal(result.code, code, given);
    if (code !== null)
      assert.match(result.reason, new RegExp(`--trust ${given} is not the digest of these files`));
  }
});

/** The one file of the store, changed. */
function forge(cwd: string, change: (entry: { [key: string]: unknown }) => void): void {
  const folder = join(homeOf(cwd), ".config/lockstep/trust");
  const [name = ""] = readdirSync(folder);
  const entry = JSON.parse(readFileSync(join(folder, name), "utf8")) as { [key: string]: unknown };
  change(entry);
  writeFileSync(join(folder, name), JSON.stringify(entry));
}

test("the lines that were trusted are compared themselves, not their digest alone", async () => {
  for (const [change, code] of [
    [() => undefined, null],
    [(entry: { [key: string]: unknown }) => (entry.lines = ["$ true # harmless"]), "NOT_TRUSTED"],
    [(entry: { [key: string]: unknown }) => (entry.agent = "other"), "NOT_TRUSTED"],
    [(entry: { [key: string]: unknown }) => (entry.root = "/elsewhere"), "NOT_TRUSTED"],
    [(entry: { [key: string]: unknown }) => (entry.digest = "0".repeat(64)), "NOT_TRUSTED"],
  ] as const) {
    const cwd = project("true");
    await attempt(cwd, { trust: { confirm: () => Promise.resolve(true) } });
    forge(cwd, change);
    assert.equal((await attempt(cwd)).code, code);
  }
});

test("a digest is given whole or by its first 32 digits, and nothing shorter", async () => {
  const whole = /--trust ([0-9a-f]{64}),/.exec((await attempt(project("true"))).reason)![1]!;
  const wrong = whole.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  for (const [digest, code] of [
    [whole, null],
    [whole.toUpperCase(), null],
    [whole.slice(0, 32), null],
    [whole.slice(0, 31), "NOT_TRUSTED"],
    [whole.slice(0, 16), "NOT_TRUSTED"],
    ["", "NOT_TRUSTED"],
    [wrong, "NOT_TRUSTED"],
    [`${whole}0`, "NOT_TRUSTED"],
  ] as const)
    assert.equal((await attempt(project("true"), { trust: { digest } })).code, code, digest);
});

test("a digest that was given and a yes at the terminal are both recorded", async () => {
  const digest = /--trust ([0-9a-f]{64}),/.exec((await attempt(project("true"))).reason)![1]!;
  for (const trust of [{ digest }, { confirm: () => Promise.resolve(true) }]) {
    const cwd = project("true");
    const heard: string[] = [];
    const notify = (text: string) => void heard.push(text);
    assert.equal((await attempt(cwd, { trust, notify })).outcome, "completed");
    assert.match(heard.join(), /is trusted here from now on\. To undo this: lockstep trust revoke trusting/);
    assert.equal((await attempt(cwd)).outcome, "completed");
    const [name = ""] = readdirSync(join(homeOf(cwd), ".config/lockstep/trust"));
    assert.equal(statSync(join(homeOf(cwd), ".config/lockstep/trust", name)).mode & 0o777, 0o600);
  }
});

test("where a yes cannot be recorded it is for this run, and that is told", async () => {
  const cwd = project("true");
  writeFileSync(join(cwd, "file"), "");
  const heard: string[] = [];
  const options = {
    trust: { confirm: () => Promise.resolve(true) },
    notify: (text: string) => void heard.push(text),
  };
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: join(cwd, "file") };
  assert.equal((await attempt(cwd, { ...options, env })).outcome, "completed");
  assert.match(heard.join(), /trusted for this run only/);
  assert.equal((await attempt(cwd, { env })).code, "NOT_TRUSTED");
});

test("a damaged record names its file and the fix", async () => {
  const cwd = project("true");
  await attempt(cwd, { trust: { confirm: () => Promise.resolve(true) } });
  const folder = join(homeOf(cwd), ".config/lockstep/trust");
  const [name = ""] = readdirSync(folder);
  for (const text of ["{", "[]", "{}", '{"root":1}']) {
    writeFileSync(join(folder, name), text);
    const result = await attempt(cwd);
    assert.equal(result.code, "NOT_TRUSTED");
    assert.ok(result.reason.includes(name), result.reason);
    assert.match(result.reason, /Remove that file, and you are asked again/);
  }
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
  assert.deepEqual(asked, ["$ true", "$ true"]);
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
    ["not trusted", "NOT_TRUSTED", counted(), { env: { PATH: process.env.PATH, HOME: "/nowhere" } }],
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
  const env = { PATH: process.env.PATH, HOME: homeOf(cwd) };
  rmSync(join(homeOf(cwd), ".config"), { recursive: true });
  const again = await resume({ run: "@last", cwd, journal, backend, env });
  assert.deepEqual([again.code, closed.times], ["NOT_TRUSTED", 1]);
});
