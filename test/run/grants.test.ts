/** Tools beyond a stage's list: who is asked, what is recorded, and what the model hears. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Grant } from "../../src/flow/event.ts";
import type { ScriptReply } from "../../src/run/index.ts";
import { pathOf, runMachine, unanswered, type Ran, type Start } from "./stage-project.ts";

type Ask = NonNullable<NonNullable<Start["options"]>["ask"]>;

const write = (file: string) => ({ name: "Write", input: { file_path: file, content: "x" } });
const done: ScriptReply = { output: {} };
const calls = (...list: NonNullable<ScriptReply["calls"]>): ScriptReply => ({ calls: list });
const DENIED = ["ApprovalDenied", "Go on without it."];
const STAGES = { a: { allowedTools: ["Read"] } };
const isThere = (ran: Ran, file: string) => existsSync(join(ran.folder, file));

function grantsOf({ entries }: Ran): readonly Grant[] {
  return entries.flatMap(({ event }) =>
    event.type === "step.called" ? event.results.flatMap(({ grant }) => grant ?? []) : [],
  );
}

/** Answers as told, and keeps the questions. */
function answering(...answers: readonly (string | null)[]): { readonly ask: Ask; readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    ask: (question) => {
      heard.push(question);
      return Promise.resolve(answers[heard.length - 1] ?? null);
    },
  };
}

type Row = {
  readonly name: string;
  readonly options?: Start["options"];
  readonly isWritten: boolean;
  readonly by: Grant["by"];
};

const ROWS: readonly Row[] = [
  { name: "nobody is there", isWritten: false, by: "nobody" },
  { name: "--on-permission deny", options: { onPermission: "deny" }, isWritten: false, by: "nobody" },
  { name: "--on-permission allow", options: { onPermission: "allow" }, isWritten: true, by: "setting" },
  {
    name: "a person says allow",
    options: { ask: answering("allow").ask, onPermission: "deny" },
    isWritten: true,
    by: "person",
  },
  {
    name: "a person says deny",
    options: { ask: answering("deny").ask, onPermission: "allow" },
    isWritten: false,
    by: "person",
  },
  {
    name: "a person does not answer",
    options: { ask: answering(null).ask, onPermission: "allow" },
    isWritten: true,
    by: "setting",
  },
];

for (const { name, options = {}, isWritten, by } of ROWS) {
  test(`a tool outside of the list: ${name}`, async () => {
    const reply = { ...done, ...(isWritten ? { unseen: DENIED } : { saw: DENIED }) };
    const ran = await runMachine({ stages: STAGES, options, model: [calls(write("out.txt")), reply] });
    assert.deepEqual([ran.result.outcome, pathOf(ran.result)], ["completed", "a:ok"], ran.result.reason);
    assert.equal(isThere(ran, "out.txt"), isWritten);
    const argsDigest = createHash("sha256").update('{"content":"x","file_path":"out.txt"}').digest("hex");
    assert.deepEqual(grantsOf(ran), [{ by, decision: isWritten ? "approve" : "deny", argsDigest }]);
    assert.deepEqual(unanswered(ran.asked), []);
    const events = ran.entries.map(({ event }) => event);
    assert.deepEqual(
      events.flatMap((event) => (event.type === "step.told" ? [event.id] : [])),
      events.flatMap((event) => (event.type === "step.asked" ? [event.question.id] : [])),
    );
    const names = new Set((await ran.audit()).map((record) => record.name));
    assert.equal(names.has("GrantConsumed"), isWritten);
    assert.equal(names.has("ToolInvocationCancelled"), !isWritten);
    assert.equal(
      ran.result.warnings.some((warning) => /ApprovalDenied|You denied Write in step a\./.test(warning)),
      !isWritten,
    );
  });
}

test("a grant is for one call: the same call is asked about again", async () => {
  const { ask, heard } = answering("allow", "deny", "allow");
  const model = [calls(write("out.txt")), calls(write("out.txt")), calls(write("other.txt")), done];
  const ran = await runMachine({ stages: STAGES, options: { ask }, model });
  assert.equal(heard.length, 3);
  assert.match(heard[0]!, /Stage "a" wants to call Write.*out\.txt.*Allowed would be this one call\./s);
  assert.deepEqual(
    grantsOf(ran).map(({ decision }) => decision),
    ["approve", "deny", "approve"],
  );
  const [first, second, third] = grantsOf(ran).map(({ argsDigest }) => argsDigest);
  assert.equal(first, second);
  assert.notEqual(first, third);
});

test("in a batch everything is approved before anything runs, in order", async () => {
  const { ask, heard } = answering("allow", "deny");
  const batch = [
    write("one.txt"),
    { name: "Read", input: { file_path: "one.txt" } },
    { name: "Bash", input: { command: "touch two.txt" } },
  ];
  const ran = await runMachine({ stages: STAGES, options: { ask }, model: [calls(...batch), done] });
  assert.deepEqual(
    heard.map((question) => /call (\w+)/.exec(question)?.[1]),
    ["Write", "Bash"],
  );
  assert.deepEqual([isThere(ran, "one.txt"), isThere(ran, "two.txt")], [true, false]);
  assert.deepEqual(unanswered(ran.asked), []);
});

for (const [then, decision] of [
  ["allow", "approve"],
  ["deny", "deny"],
] as const) {
  test(`--on-permission halt: the run waits with nothing of the batch run, and a resume with ${then} goes on`, async () => {
    const ran = await runMachine({
      stages: { a: { allowedTools: ["Edit"] } },
      files: { "in.txt": "before" },
      options: { onPermission: "halt" },
      model: [
        calls(
          { name: "Edit", input: { file_path: "in.txt", old_string: "before", new_string: "after" } },
          write("out.txt"),
        ),
      ],
    });
    const { result } = ran;
    assert.deepEqual([result.outcome, result.code, result.exitCode], ["waiting", "PermissionRequired", 5]);
    assert.match(result.reason, /lockstep answer \S+ \S+ allow$/);
    assert.deepEqual([result.resumable, isThere(ran, "out.txt")], [true, false]);
    assert.ok(ran.entries.every(({ event }) => event.type !== "step.called"));

    const still = await ran.again([], { onPermission: "halt" });
    assert.equal(still.result.exitCode, 5);
    const whole = await ran.again([done], { onPermission: then });
    assert.deepEqual([whole.result.outcome, whole.asked.length], ["completed", 1], whole.result.reason);
    assert.equal(isThere(ran, "out.txt"), then === "allow");
    assert.deepEqual(
      grantsOf(whole).map((grant) => grant.decision),
      [decision],
    );
  });
}

test("a grant does not lift the permission mode", async () => {
  const ran = await runMachine({
    stages: STAGES,
    agent: { runner: { boundaries: { permissionMode: "plan" } } },
    options: { onPermission: "allow" },
    model: [calls(write("out.txt")), { ...done, saw: ["plan allows read-only tools only"] }],
  });
  assert.deepEqual([ran.result.outcome, isThere(ran, "out.txt")], ["completed", false]);
});

test("siblings that ask at the same time are asked about one after the other", async () => {
  let open = 0;
  let most = 0;
  const heard: string[] = [];
  const ask: Ask = async (question) => {
    heard.push(/Stage "(\w)"/.exec(question)![1]!);
    open += 1;
    most = Math.max(most, open);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    open -= 1;
    return "allow";
  };
  const of = (step: string, reply: ScriptReply): ScriptReply => ({ ...reply, step });
  const ran = await runMachine({
    stages: { s: { next: { parallel: ["a", "b", "c"], join: "meet" } }, a: {}, b: {}, c: {}, meet: {} },
    options: { ask },
    model: [
      of("s", done),
      ...["a", "b", "c"].flatMap((step) => [of(step, calls(write(`${step}.txt`))), of(step, done)]),
      of("meet", done),
    ],
  });
  assert.deepEqual([ran.result.outcome, most], ["completed", 1], ran.result.reason);
  assert.deepEqual(heard.toSorted(), ["a", "b", "c"]);
  assert.ok(["a.txt", "b.txt", "c.txt"].every((file) => isThere(ran, file)));
});

test("a sibling that is given up is not asked about any more", async () => {
  const heard: string[] = [];
  let answer: (word: string | null) => void = () => undefined;
  const ask: Ask = async (question, _choices, signal) => {
    heard.push(question);
    // Nobody answers until the run gives up.
    return await new Promise((resolve) => {
      answer = resolve;
      signal.addEventListener("abort", () => answer(null));
    });
  };
  const of = (step: string, reply: ScriptReply): ScriptReply => ({ ...reply, step });
  const ran = await runMachine({
    stages: {
      s: { next: { parallel: ["a", "b", "c"], join: "meet" } },
      a: {},
      b: {},
      c: { turnCap: 2 },
      meet: {},
    },
    options: { ask },
    model: [
      of("s", done),
      of("a", calls(write("a.txt"))),
      of("b", calls(write("b.txt"))),
      of("c", { text: "hm" }),
      of("c", { text: "hm" }),
    ],
  });
  assert.equal(ran.result.code, "ParallelSiblingFailure", ran.result.reason);
  assert.ok(heard.length <= 1);
  assert.ok(!isThere(ran, "a.txt") && !isThere(ran, "b.txt"));
});
