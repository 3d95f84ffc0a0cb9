/** Checks from end to end: the program in a real repository, with real tools, and a script that asserts what the model is told. */
import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createWorld, onlyDocument, replies, script, start, writeAgent, type World } from "./world.ts";
import { besidesUnconfined } from "../needs.ts";

const TSC = fileURLToPath(new URL("../../node_modules/.bin/tsc", import.meta.url));

type Judged = {
  readonly validator: object;
  readonly edition?: string;
  readonly onFailure?: object;
  readonly params?: object;
};

/** The agent of `init`, allowed to work, with one check before its end. */
function writeJudgedAgent(world: World, { validator, edition, onFailure, params }: Judged): void {
  writeAgent(world, "worker", {
    agent: (agent) => {
      const runner = agent.runner as { boundaries: object };
      runner.boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits" };
    },
    registry: (registry) => {
      registry.validators = { proof: { failurePattern: "unproven", ...validator } };
      registry.failurePatterns = { unproven: { description: "No proof", edition: "failed" } };
      registry.validationSteps = {
        "closure.note": {
          stepId: "closure.note",
          name: "Proof",
          c2: "retry",
          c3: "note",
          validationConditions: [{ validator: "proof", params }],
          onFailure,
        },
      };
    },
  });
  world.write(
    ".agent/worker/prompts/steps/retry/note/f_failed.md",
    edition ??
      `No proof: {{summary}}\n${"path" in validator ? "{{expectedPath}}" : "command" in validator ? "{{exitCode}}" : ""}\n`,
  );
}

async function git(world: World, ...args: readonly string[]): Promise<void> {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
  const { code, stderr } = await start("git", [...identity, ...args], world.root, { env: world.env });
  assert.equal(code, 0, stderr);
}

/** Everything there is, committed. */
async function commitAll(world: World): Promise<void> {
  world.write(".gitignore", "home/\n*.json\n");
  await git(world, "init", "-q", "-b", "main");
  await git(world, "config", "user.name", "t");
  await git(world, "config", "user.email", "t@example.invalid");
  await git(world, "add", "-A");
  await git(world, "commit", "-qm", "Start");
}

function run(world: World, ...list: readonly unknown[]) {
  world.write("script.json", script(...list));
  const args = ["run", "worker", "--topic", "t", "--script", "script.json", "--json"];
  // A compiler that lies below the folder for temporary files is not seen in a sandbox.
  if (TSC.startsWith(tmpdir())) args.push("--sandbox", "off");
  return world.lockstep(args, { env: { LOCKSTEP_TRUST: "all" } });
}

const calls = (...list: readonly object[]) => ({ step: "continuation.note", calls: list });
const write = (file_path: string, content: string) => ({ name: "Write", input: { file_path, content } });
const bash = (command: string) => ({ name: "Bash", input: { command } });

type Case = Judged & {
  readonly name: string;
  readonly spoil: readonly object[];
  readonly saw: readonly string[];
  readonly mend: readonly object[];
};

const CASES: readonly Case[] = [
  {
    name: "a dirty working tree",
    validator: {
      type: "command",
      command: "git status --porcelain",
      successWhen: "empty",
      extractParams: { changedFiles: "parseChangedFiles", untrackedFiles: "parseUntrackedFiles" },
    },
    edition:
      "Not committed: {{#each changedFiles}}<{{this}}>{{/each}} new: {{#each untrackedFiles}}<{{this}}>{{/each}} ({{suggestedAction}})",
    spoil: [write("notes.txt", "changed\n"), write("new.txt", "new\n")],
    saw: ["Not committed: <notes.txt> new: <new.txt> (Commit what belongs to the task"],
    mend: [bash("git add -A && git commit -qm 'Add what belongs here'")],
  },
  {
    name: "a failing test",
    validator: {
      type: "command",
      command: 'node --test "${suite}"',
      successWhen: "exitCode:0",
      extractParams: { failedTests: "parseTestOutput" },
    },
    params: { suite: "sum.test.mjs" },
    edition: "{{summary}}\n{{#each failedTests}}- {{this.name}}: {{this.error}}\n{{/each}}",
    spoil: [
      write(
        "sum.test.mjs",
        'import { test } from "node:test";\nimport assert from "node:assert/strict";\ntest("one and one", () => assert.equal(1 + 1, 3));\ntest("nothing", () => {});\n',
      ),
    ],
    saw: ["1 test failed: one and one", "- one and one: ", "2 !== 3"],
    mend: [write("sum.test.mjs", 'import { test } from "node:test";\ntest("one and one", () => {});\n')],
  },
  {
    name: "a type error",
    validator: {
      type: "command",
      command: `${JSON.stringify(TSC)} --noEmit --pretty false a.ts`,
      successWhen: "exitCode:0",
      extractParams: { errors: "parseTypeErrors" },
    },
    edition:
      "{{summary}}: {{#each errors}}[{{this.file}}:{{this.line}} {{this.message}}]{{/each}} {{rootCause}}",
    spoil: [write("a.ts", "export const count: number = 1;\nexport const word: string = count;\n")],
    saw: ["1 error in 1 file: [a.ts:2 ", "Type 'number' is not assignable to type 'string'"],
    mend: [write("a.ts", "export const word: string = String(1);\n")],
  },
  {
    name: "a missing file",
    validator: { type: "file", path: "out/${name}.md" },
    params: { name: "report" },
    edition: "Missing: {{#each missingFiles}}<{{this}}>{{/each}} expected at {{expectedPath}}",
    spoil: [write("out/other.md", "x")],
    saw: ["Missing: <out/report.md> expected at out/report.md"],
    mend: [write("out/report.md", "x")],
  },
  {
    name: "a commit message without form",
    validator: { type: "semantic", semanticConfig: { checkType: "commit-message" } },
    edition: "{{commitMessage}} | {{#each problems}}{{this}}{{/each}} | {{expectedForm}}",
    spoil: [bash("git commit -q --allow-empty -m 'Did things'")],
    saw: ["Did things | the first line does not have the form", "| type(scope)!: subject"],
    mend: [bash("git commit -q --amend --allow-empty -m 'chore: do things'")],
  },
];

describe(
  "what failed is told to the model, and the run completes once it is mended",
  { concurrency: 2 },
  () => {
    for (const { name, spoil, saw, mend, ...judged } of CASES) {
      test(name, async () => {
        using world = createWorld();
        writeJudgedAgent(world, judged);
        world.write("notes.txt", "notes\n");
        await commitAll(world);
        const ran = await run(
          world,
          replies.initial(),
          calls(...spoil),
          { ...replies.continuation(), unseen: saw },
          replies.closure(),
          { ...calls(...mend), saw },
          replies.continuation(),
          replies.closure(),
        );
        assert.equal(ran.code, 0, ran.stdout + ran.stderr);
        const result = onlyDocument(ran);
        const checks = result.checks as readonly { ok: boolean; attempt: number; pattern: string }[];
        assert.deepEqual(
          checks.map(({ ok, attempt, pattern }) => [ok, attempt, pattern]),
          [
            [false, 1, "unproven"],
            [true, 2, "unproven"],
          ],
        );
        const shown = await world.lockstep(["show", "@last"]);
        assert.match(shown.stdout, /closure\.note #1 → closing ✗ proof.* \(unproven\) → continuation\.note/);
        assert.match(shown.stdout, /checks +proof.*: ✗ unproven, ✓/);
        assert.match(shown.stdout, /✓ completed/);
      });
    }
  },
);

const missing = { type: "file", path: "out/report.md" };
const back = [replies.continuation(), replies.closure()] as const;

type Ending = Judged & {
  readonly name: string;
  readonly rounds: number;
  readonly exit: number;
  readonly code: string | null;
  readonly attempts: readonly boolean[];
  readonly reason: RegExp;
  readonly warning?: RegExp;
};

const ENDINGS: readonly Ending[] = [
  {
    name: "maxAttempts 2, never mended",
    validator: missing,
    onFailure: { action: "retry", maxAttempts: 2 },
    rounds: 1,
    exit: 6,
    code: "AGENT_VALIDATION_ABORT",
    attempts: [false, false],
    reason: /failure 2 of 2 allowed: `out\/report\.md` is not there/,
  },
  {
    name: "abort",
    validator: missing,
    onFailure: { action: "abort" },
    rounds: 0,
    exit: 6,
    code: "AGENT_VALIDATION_ABORT",
    attempts: [false],
    reason: /may not be retried/,
  },
  {
    name: "skip",
    validator: missing,
    onFailure: { action: "skip" },
    rounds: 0,
    exit: 0,
    code: null,
    attempts: [false],
    reason: /./,
    warning: /check "proof" failed and was skipped/,
  },
  ...(
    [
      ["a command that does not exist", "no-such-command-at-all", /exit code 127/],
      ["a command that may not run", "./locked.sh", /exit code 126/],
      ["a tool that may not read", "echo 'cat: x: Permission denied' >&2; exit 1", /Permission denied/],
      ["a tool that says EACCES", "node -e \"console.error('EACCES'); process.exit(1)\"", /EACCES/],
    ] as const
  ).map(([name, command, reason]): Ending => ({
    name: `${name}: nobody can mend it`,
    validator: { type: "command", command, successWhen: "exitCode:0" },
    onFailure: { action: "retry", maxAttempts: 3 },
    rounds: 0,
    exit: 6,
    code: "AGENT_VALIDATION_ABORT",
    attempts: [false],
    reason,
  })),
  {
    name: "skip does not pass over what nobody can mend",
    validator: { type: "command", command: "no-such-command-at-all", successWhen: "exitCode:0" },
    onFailure: { action: "skip" },
    rounds: 0,
    exit: 6,
    code: "AGENT_VALIDATION_ABORT",
    attempts: [false],
    reason: /exit code 127/,
  },
  {
    name: "an empty output of a command that failed does not pass",
    validator: { type: "command", command: "git status --porcelain", successWhen: "empty" },
    onFailure: { maxAttempts: 1 },
    rounds: 0,
    exit: 6,
    code: "AGENT_VALIDATION_ABORT",
    attempts: [false],
    reason: /`git status --porcelain` exited with 128|exit code 128/,
  },
];

describe("how a run ends by its checks", { concurrency: 2 }, () => {
  for (const { name, rounds, exit, code, attempts, reason, warning, ...judged } of ENDINGS) {
    test(name, async () => {
      using world = createWorld();
      writeJudgedAgent(world, judged);
      world.write("locked.sh", "echo no\n");
      chmodSync(join(world.root, "locked.sh"), 0o644);
      const again = Array.from({ length: rounds }, () => back).flat();
      const ran = await run(world, replies.initial(), ...back, ...again);
      const result = onlyDocument(ran);
      assert.deepEqual([ran.code, result.exitCode, result.code], [exit, exit, code], ran.stdout);
      assert.match(result.reason as string, reason);
      const checks = result.checks as readonly { ok: boolean; attempt: number; summary: string }[];
      assert.deepEqual(
        checks.map(({ ok }) => ok),
        attempts,
      );
      assert.deepEqual(
        checks.map(({ attempt }) => attempt),
        attempts.map((_, place) => place + 1),
      );
      assert.equal(result.iterations, 3 + 2 * rounds);
      const warnings = besidesUnconfined(result.warnings as readonly string[]).join("\n");
      if (warning === undefined) assert.equal(warnings, "");
      else assert.match(warnings, warning);
      const shown = await world.lockstep(["show", "@last"]);
      const marks = attempts.map((ok) => (ok ? "✓" : "✗ unproven")).join(", ");
      assert.ok(shown.stdout.includes(`proof: ${marks}\n`), shown.stdout);
      assert.match(shown.stdout, exit === 0 ? /✓ completed/ : /✗ failed AGENT_VALIDATION_ABORT/);
    });
  }
});
