/** Runs that wait for a word: the process is gone, the answer comes from another one, and the run goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "../world.ts";

const STAGE = (more: string) => `---
id: ask
name: Ask
allowedTools: []
completionTool: finish
completionSchema: { type: object }
retryPolicy: { maxAttempts: 2, backoff: none }
turnCap: 5
resolutionPolicy: ask
${more}---

Do it.
`;
const WRITES = `replies:
  - calls: [{ name: Write, input: { file_path: made.txt, content: hi } }]
  - output: {}
`;

for (const [choice, said] of [
  ["allow", /Wrote|Created|made\.txt/],
  ["deny", /the user said no/],
] as const) {
  test(`a tool outside of the list waits for somebody, and goes on with: ${choice}`, async () => {
    using world = createWorld();
    world.write(".agent/one/stages/ask.md", STAGE(""));
    world.write("script.yaml", WRITES);
    const ran = await world.lockstep([
      "run",
      "one",
      "--script",
      "script.yaml",
      "--on-permission",
      "halt",
      "--json",
    ]);
    assert.equal(ran.code, 5, ran.stderr);
    const { run, code, outcome } = JSON.parse(ran.stdout) as { run: string; code: string; outcome: string };
    assert.deepEqual([code, outcome], ["PermissionRequired", "waiting"]);

    const asked = await world.lockstep(["answer", run]);
    assert.match(asked.stdout, new RegExp(`wants to call Write[^]*lockstep answer ${run} \\w+ allow`));
    const nonsense = await world.lockstep(["answer", run, "perhaps"]);
    assert.match(nonsense.stderr, /"perhaps" is not one of the choices: allow, deny, stop\./);
    assert.equal(nonsense.code, 2);

    const answered = await world.lockstep(["answer", run, choice, "--json"]);
    assert.equal(answered.code, 0, answered.stdout + answered.stderr);
    const events = await world.lockstep(["show", run, "--events"]);
    assert.match(events.stdout, said);
    assert.match(events.stdout, /"grant":\{"by":"person"/);
    const over = await world.lockstep(["answer", run]);
    assert.equal(over.code, 2);
    assert.match(over.stderr, /waits for no answer/);
  });
}

for (const [choice, code] of [
  ["proceed", 0],
  ["skip", 0],
  ["fail", 1],
] as const) {
  test(`a gate that asks waits for somebody, and goes on with: ${choice}`, async () => {
    using world = createWorld();
    world.write(".agent/one/stages/ask.md", STAGE("gate: never\n"));
    world.write(
      ".agent/one/machine.yaml",
      "checks:\n  never: { type: command, command: 'false', successWhen: 'exitCode:0' }\n",
    );
    world.write("script.yaml", "replies:\n  - output: {}\n");
    const env = { LOCKSTEP_TRUST: "all" };
    const args = ["run", "one", "--script", "script.yaml", "--on-permission", "halt"];
    const ran = await world.lockstep(args, { env });
    assert.equal(ran.code, 5, ran.stderr);
    const answered = await world.lockstep(["answer", "@last", choice], { env });
    assert.equal(answered.code, code, answered.stderr);
  });
}
