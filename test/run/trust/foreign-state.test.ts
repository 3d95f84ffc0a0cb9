/** What comes from elsewhere, through the library: bundles of nonsense, folders of other users, records of state folders. */
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { jsonLine, shown, shownInLine } from "../../../src/flow/text/harmless.ts";
import { parseBundle, type Bundle } from "../../../src/run/records/bundle.ts";
import {
  answerQuestion,
  createMemoryJournal,
  fork,
  importRun,
  openExistingJournal,
  openJournal,
  pauseRun,
  resume,
  run,
  RunnerError,
  stopRun,
} from "../../../src/run/index.ts";
import { flowDigest } from "../../../src/run/load.ts";
import { systemClock } from "../../../src/run/world/clock.ts";
import { replayBundle } from "../../../src/run/records/bundle.ts";
import { requireSafeFolder } from "../../../src/run/world/safe-folder.ts";
import { stateForeign } from "../../../src/run/trust/foreign-state.ts";
import { forgetState, knownStates, stateStanding } from "../../../src/run/trust/state-folders.ts";
import { JOURNALS } from "../golden.ts";
import { agentFiles, projectWith, stepTo } from "../project.ts";

/** Whatever a file may hold. */
type Loose = ReturnType<typeof JSON.parse>;

const golden = readFileSync(join(JOURNALS, "gate.json"), "utf8");

/** The golden bundle with its flow changed, under the digest that the changed flow has. */
function withFlow(change: (flow: Loose) => unknown): string {
  const bundle = JSON.parse(golden);
  const flow = bundle.flows[bundle.run.flow];
  const changed = change(flow) ?? flow;
  const digest = typeof changed === "object" ? flowDigest(changed as never) : "x";
  bundle.flows = { [digest]: changed };
  bundle.run.flow = digest;
  bundle.entries[0].event.flow = digest;
  return JSON.stringify(bundle);
}

function withBundle(change: (bundle: Loose) => unknown): string {
  const bundle = JSON.parse(golden);
  return JSON.stringify(change(bundle) ?? bundle);
}

/** Objects are changed as JSON, so that `__proto__` is a member like any other. */
const member = (name: string, value: string) => JSON.parse(`{"${name}":${value}}`);

const MALFORMED: { readonly [name: string]: string } = {
  "steps: constructor null": withFlow((flow) => void (flow.steps = { ...flow.steps, constructor: null })),
  "steps: __proto__": withFlow(
    (flow) => void (flow.steps = { ...flow.steps, ...member("__proto__x", "null") }),
  ),
  "only constructor": withFlow((flow) => void (flow.steps = member("constructor", "null"))),
  "steps: null": withFlow((flow) => void (flow.steps = null)),
  "steps: list": withFlow((flow) => void (flow.steps = [])),
  "a step that is a text": withFlow((flow) => void (flow.steps[Object.keys(flow.steps)[0]!] = "x")),
  "a step without parts": withFlow((flow) => {
    const [id] = Object.keys(flow.steps);
    flow.steps[id!] = { id };
  }),
  "a step with odd parts": withFlow((flow) => {
    const [id] = Object.keys(flow.steps);
    flow.steps[id!] = { ...flow.steps[id!], answer: 7, by: null, edges: "x", gate: [], prompt: null };
  }),
  "no entry": withFlow((flow) => void delete flow.entry),
  "an entry that is nowhere": withFlow((flow) => void (flow.entry = "nowhere")),
  "no settings": withFlow((flow) => void delete flow.settings),
  "settings without parts": withFlow((flow) => void (flow.settings = {})),
  "no checks": withFlow((flow) => void delete flow.checks),
  "checks: list of null": withFlow((flow) => void (flow.checks = [null])),
  "a check that is null": withFlow((flow) => void (flow.checks = { a: null })),
  "stop: null": withFlow((flow) => void (flow.stop = null)),
  "stop: nonsense": withFlow((flow) => void (flow.stop = { kind: "all", of: [null] })),
  "an empty flow": withFlow(() => ({})),
  "a flow that is null": withBundle((bundle) => void (bundle.flows[bundle.run.flow] = null)),
  "a flow that is a list": withFlow(() => []),
  "no entries": withBundle((bundle) => void (bundle.entries = [])),
  "entries: null": withBundle((bundle) => void (bundle.entries = null)),
  "an event without a type": withBundle((bundle) => void (bundle.entries[1].event = {})),
  "an event of another world": withBundle((bundle) => void (bundle.entries[1].event = { type: "toString" })),
  "started without parts": withBundle((bundle) => {
    const { type, run: id, flow } = bundle.entries[0].event;
    bundle.entries[0].event = { type, run: id, flow };
  }),
  "an answer of nothing": withBundle((bundle) => void (bundle.entries[1].event.reply = null)),
  "an answer of another kind": withBundle((bundle) => void (bundle.entries[1].event.reply = { kind: "x" })),
  "a step named __proto__": withBundle((bundle) => void (bundle.entries[1].event.step = "__proto__")),
  "an adoption of nothing": withBundle((bundle) => {
    bundle.entries.push({ seq: bundle.entries.length + 1, at: 1, event: { type: "run.adopted" } });
  }),
  "flows: null": withBundle((bundle) => void (bundle.flows = null)),
  "run: list": withBundle((bundle) => void (bundle.run = [])),
  "another flow beside": withBundle((bundle) => void (bundle.flows.more = null)),
  null: "null",
  "very deep": `{"v":1,"kind":"lockstep-run","run":{"id":"a","agent":"a","flow":"x","createdAt":1},"entries":[],"flows":{"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`,
};

for (const [name, text] of Object.entries(MALFORMED))
  test(`a bundle with ${name} is refused, or followed as far as it goes, and never a bug of ours`, async () => {
    const seen: string[] = [];
    for (const use of [
      (bundle: Bundle) => replayBundle(bundle),
      (bundle: Bundle) => importRun(createMemoryJournal(), bundle, { cwd: "/nowhere", now: 1 }),
    ]) {
      try {
        await use(parseBundle(text, "x.json"));
        seen.push("done");
      } catch (error) {
        assert.ok(error instanceof RunnerError, `${name}: ${error instanceof Error ? error.stack : ""}`);
        assert.equal(error.code, "EXPORT_INVALID", error.message);
        seen.push("refused");
      }
    }
    if (name.startsWith("steps: ")) assert.deepEqual(seen, ["refused", "refused"]);
  });

test("control: a whole bundle is replayed and imported", async () => {
  const bundle = parseBundle(golden, "gate.json");
  assert.equal((await replayBundle(bundle)).difference, null);
  await importRun(createMemoryJournal(), bundle, { cwd: "/nowhere", now: 1 });
});

test("what a foreign run would do is listed whole, and the same line once", () => {
  const does = [
    ...Array.from({ length: 40 }, (_, place) => `Bash: npm test -- ${place}`),
    ...Array.from({ length: 7 }, () => "Bash: make"),
    "Bash: rm -rf ./*",
  ];
  const run = { run: "a", agent: "b", cwd: "/c", does };
  const { message } = stateForeign({ stateDir: "/s", why: "it is not yours", run });
  for (const line of does.slice(0, 40)) assert.ok(message.includes(`\n  ${line}\n`), line);
  assert.ok(message.includes("\n  Bash: make (7 times)\n  Bash: rm -rf ./*\n"), message);
});

test("folders of other users are not taken for a project, as with git's safe.directory", () => {
  const folder = projectWith({ ".agent/a/agent.json": "{}" });
  const owner = process.geteuid!() || 12_345;
  // Root can give files away; anybody else is the stranger under another number.
  if (process.geteuid!() === 0) chownSync(join(folder, ".agent"), owner, owner);
  const config = projectWith({ "config.json": "{}" });
  const isSafe = (as: number, env: NodeJS.ProcessEnv = {}) => {
    try {
      requireSafeFolder(folder, ".agent", env, config, as);
      return true;
    } catch (error) {
      assert.ok(error instanceof RunnerError && error.code === "FOLDER_UNSAFE");
      assert.match(error.message, /safeFolders/);
      return false;
    }
  };
  assert.equal(isSafe(owner), true);
  assert.equal(isSafe(owner + 1), false);
  assert.equal(isSafe(0), true, "root works in the folder of a user");
  chmodSync(folder, 0o1777);
  assert.equal(isSafe(0), false, "but not with what anybody can leave in a shared one");
  assert.equal(isSafe(0, { SUDO_UID: String(owner) }), true);
  assert.equal(isSafe(owner), true);
  for (const [list, isAllowed] of [
    [[folder], true],
    [[`${folder}/`], true],
    [["*"], true],
    [[join(folder, "below")], false],
    [[7, null], false],
    ["*", false],
  ] as const) {
    writeFileSync(join(config, "config.json"), JSON.stringify({ safeFolders: list }));
    assert.equal(isSafe(owner + 1), isAllowed, JSON.stringify(list));
  }
});

test("what turns the direction of writing is spelled out, the Arabic letter mark too", () => {
  for (const mark of [
    "\u061c",
    "\u200e",
    "\u200f",
    "\u202a",
    "\u202e",
    "\u2066",
    "\u2069",
    "\u009b",
    "\u0085",
  ]) {
    assert.ok(!shown(`a${mark}b`).includes(mark));
    assert.ok(!shownInLine(`a${mark}b`).includes(mark));
    assert.ok(!jsonLine({ a: mark }).includes(mark));
    assert.deepEqual(JSON.parse(jsonLine({ a: mark })), { a: mark });
  }
});

const STEPS = {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null }),
};
const answer = (step: string, action: string) => ({
  step,
  output: { stepId: step, next_action: { action } },
});

/** Commands need trust of their own where nothing confines them. */
const READING = { boundaries: { allowedTools: ["Read"], permissionMode: "acceptEdits" } };

/** A project with a run that stopped after its first step, and the folder of its user. */
async function stopped(): Promise<{ readonly cwd: string; readonly env: NodeJS.ProcessEnv }> {
  const cwd = realpathSync(projectWith(agentFiles("a", STEPS, { runner: READING })));
  const env = { PATH: process.env.PATH, HOME: projectWith({}) };
  const result = await run({ agent: "a", cwd, env, script: [answer("initial.a", "next")] });
  assert.equal(result.code, "SCRIPT_EXHAUSTED", result.reason);
  return { cwd, env };
}

const REST = [answer("closure.a", "closing")];

test("the library obeys only what its user made: the option beside trust is the yes", async () => {
  const { cwd, env } = await stopped();
  const other = realpathSync(projectWith({}));
  cpSync(cwd, other, { recursive: true });
  const stateDir = join(other, ".lockstep");
  // As a program that has just been started: nothing is known but what is recorded.
  assert.equal(stateStanding(stateDir, env).kind, "foreign");
  const refused = [
    await resume({ run: "@last", cwd: other, env, script: REST }),
    await resume({ run: "@last", cwd: other, env, script: REST, trustJournal: false }),
    await resume({ run: "@last", cwd: other, env, script: REST, trustJournal: () => Promise.resolve(false) }),
    await fork({ run: "@last", at: "initial.a", cwd: other, env, script: REST }),
    await run({ agent: "a", cwd: other, env, script: REST }),
  ];
  assert.deepEqual(
    refused.map(({ code }) => code),
    refused.map(() => "STATE_FOREIGN"),
  );
  await assert.rejects(openJournal(stateDir, systemClock, { env }), { code: "STATE_FOREIGN" });
  const looked = await openExistingJournal(stateDir, systemClock, { env });
  assert.ok(looked !== null);
  try {
    const id = (await looked.list())[0]!.id;
    await assert.rejects(looked.claim(id), { code: "STATE_FOREIGN" });
    await assert.rejects(looked.remove(id), { code: "STATE_FOREIGN" });
    for (const steer of [pauseRun, stopRun])
      await assert.rejects(steer(looked, stateDir, id, systemClock, env), { code: "STATE_FOREIGN" });
    const question = { id: "q", choices: ["allow"], free: false, expiresAt: null } as never;
    const asked = { run: id } as never;
    await assert.rejects(answerQuestion(stateDir, asked, question, "allow", 1, env), {
      code: "STATE_FOREIGN",
    });
  } finally {
    await looked.close();
  }
  assert.ok(!readdirSync(stateDir).some((name) => name === "answers" || name === "control"));
  const heard: string[] = [];
  const placed = await resume({
    run: "@last",
    cwd: other,
    env,
    script: REST,
    trustJournal: (question) => {
      heard.push(question.why, ...(question.run?.does ?? []));
      return Promise.resolve(true);
    },
  });
  assert.deepEqual(heard.length, 2);
  // Accepted, and still it says that it works in the folder it was copied from: the yes has no effect.
  assert.equal(placed.code, "PLACE_FOREIGN", placed.reason);
  assert.equal(stateStanding(stateDir, env).kind, "foreign");
  const own = await resume({ run: "@last", cwd, env, script: REST });
  assert.equal(own.outcome, "completed", "the one it was copied from stays its user's own");
});

test("a project that is moved and moved back is still its user's own, whatever was refused on the way", async () => {
  const { cwd, env } = await stopped();
  const moved = `${cwd}-moved`;
  renameSync(cwd, moved);
  for (const run of ["@last", "nosuch"]) {
    const refused = await resume({ run, cwd: moved, env, script: REST, trustJournal: true });
    assert.equal(refused.code, run === "@last" ? "PLACE_FOREIGN" : "RUN_UNKNOWN", refused.reason);
  }
  renameSync(moved, cwd);
  const result = await resume({ run: "@last", cwd, env, script: REST });
  assert.equal(result.outcome, "completed", result.reason);
});

test("what is known can be listed and forgotten", async () => {
  const { cwd, env } = await stopped();
  const stateDir = join(cwd, ".lockstep");
  const [known, ...more] = knownStates(env);
  assert.deepEqual([known?.path, known?.how, more.length], [stateDir, "made", 0]);
  assert.equal(forgetState(env, "/nowhere"), 0);
  assert.equal(forgetState(env, stateDir), 1);
  assert.deepEqual([knownStates(env), stateStanding(stateDir, env).kind], [[], "foreign"]);
  const yes = await resume({ run: "@last", cwd, env, script: REST, trustJournal: true });
  assert.equal(yes.outcome, "completed", yes.reason);
  assert.equal(knownStates(env)[0]?.how, "accepted");
  assert.equal(forgetState(env, knownStates(env)[0]!.id), 1);
});

test("another user's home folder knows nothing of it, and damaged records are no yes", async () => {
  const { cwd, env } = await stopped();
  const moved = `${cwd}-elsewhere`;
  renameSync(cwd, moved);
  mkdirSync(cwd);
  cpSync(moved, cwd, { recursive: true });
  const states = join(env.HOME!, ".config/lockstep/states");
  const [name] = readdirSync(states);
  const record = readFileSync(join(states, name!), "utf8");
  for (const text of [
    "",
    "null",
    "[]",
    "{",
    record.replace(/"id":"\w+"/, '"id":"other"'),
    record.replace(/"path":"/, '"path":"/x'),
  ]) {
    writeFileSync(join(states, name!), text);
    assert.equal(stateStanding(join(moved, ".lockstep"), env).kind, "foreign", text);
  }
});
