import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { runProcess } from "../../../src/effects/process/process.ts";
import { createShell } from "../../../src/effects/process/shell.ts";
import type { CommandCheck, SuccessRule } from "../../../src/flow/flow.ts";
import type { JsonObject } from "../../../src/flow/json.ts";
import { stepWith } from "../../boundaries/step.ts";

const cwd = mkdtempSync(join(tmpdir(), "lockstep-shell-"));
after(() => rmSync(cwd, { recursive: true, force: true }));
writeFileSync(join(cwd, "not-executable"), "echo no");
chmodSync(join(cwd, "not-executable"), 0o644);

const shell = createShell({ cwd, env: { ...process.env, GITHUB_TOKEN: "canary" }, exec: runProcess });
const { signal } = new AbortController();

function checkOf(command: string, success: SuccessRule, more: Partial<CommandCheck> = {}): CommandCheck {
  return {
    kind: "command",
    name: "a-check",
    command,
    env: {},
    success,
    pattern: "a-pattern",
    description: "",
    extract: {},
    timeoutMs: 60_000,
    maxOutputBytes: 1024 * 1024,
    ...more,
  };
}

function textOf(value: unknown): string {
  assert.ok(typeof value === "string");
  return value;
}

const EMPTY: SuccessRule = { kind: "empty" };
const exit = (code: number): SuccessRule => ({ kind: "exit", code });
const contains = (text: string): SuccessRule => ({ kind: "contains", text });
const matches = (pattern: string): SuccessRule => ({ kind: "matches", pattern });

describe("success rules", () => {
  const cases: readonly [command: string, rule: SuccessRule, ok: boolean][] = [
    ["true", EMPTY, true],
    ["printf ' \\n\\t\\n'", EMPTY, true],
    ["echo x >&2", EMPTY, true],
    ["exit 1", EMPTY, true],
    ["grep -r needle .", EMPTY, true],
    ["exit 3", EMPTY, false],
    ["echo x >&2; exit 1", EMPTY, false],
    ["echo x; exit 1", EMPTY, false],
    ["git status --porcelain", EMPTY, false],
    ["echo x", EMPTY, false],
    ["kill -9 $$", EMPTY, false],
    ["true", exit(0), true],
    ["exit 3", exit(3), true],
    ["exit 3", exit(0), false],
    ["true", exit(3), false],
    ["echo all good", contains("good"), true],
    ["echo all good; exit 9", contains("good"), true],
    ["echo good >&2", contains("good"), false],
    ["echo bad", contains("good"), false],
    ["echo 12 passed", matches("^\\d+ passed$"), true],
    ["echo 12 failed", matches("^\\d+ passed$"), false],
    ["printf 'a\\nb\\n'", matches("a\\nb\\n$"), true],
    ["echo x", matches("("), false],
    ["echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", matches("(a+)+$"), false],
    ["echo x", matches("this.constructor.constructor('return process')()"), false],
  ];
  for (const [command, rule, ok] of cases) {
    test(`${command}, ${JSON.stringify(rule)} → ${ok}`, async () => {
      const result = await shell.check(checkOf(command, rule), signal);
      assert.equal(result.ok, ok);
      assert.equal(result.unrecoverable, undefined);
      assert.deepEqual([result.name, result.pattern], ["a-check", "a-pattern"]);
    });
  }
});

describe("what cannot be helped is said before the rule is asked", () => {
  const cases: readonly [command: string, rule: SuccessRule][] = [
    ["no-such-command-at-all", EMPTY],
    ["no-such-command-at-all", exit(127)],
    ["./not-executable", EMPTY],
    ["./not-executable", exit(126)],
    ["exit 126", exit(126)],
    ["exit 127", EMPTY],
    ["echo 'open: Permission denied' >&2", EMPTY],
    ["echo 'Error: EACCES: no' >&2; exit 0", exit(0)],
  ];
  for (const [command, rule] of cases) {
    test(`${command}, ${JSON.stringify(rule)}`, async () => {
      const result = await shell.check(checkOf(command, rule), signal);
      assert.deepEqual([result.ok, result.unrecoverable], [false, true]);
    });
  }

  test("the words on stdout are not an error", async () => {
    const result = await shell.check(checkOf("echo Permission denied", exit(0)), signal);
    assert.deepEqual([result.ok, result.unrecoverable], [true, undefined]);
  });
});

describe("a command that is stopped at its time limit has not passed", () => {
  // It ends with exit code 0 when it is asked to end, as a server with an orderly shutdown does.
  const orderly = "trap 'exit 0' TERM; echo ready; sleep 1000 & wait";
  for (const [command, rule] of [
    [orderly, exit(0)],
    [orderly, contains("ready")],
    ["trap 'exit 0' TERM; sleep 1000 & wait", EMPTY],
    ["sleep 1000", EMPTY],
  ] as const) {
    test(`${command}, ${rule.kind}`, async () => {
      const { ok, summary } = await shell.check(checkOf(command, rule, { timeoutMs: 500 }), signal);
      assert.equal(ok, false);
      assert.match(summary, /was stopped after 500 ms/);
    });
  }
});

describe("the summary", () => {
  const cases: readonly [string, CommandCheck, string][] = [
    ["passed", checkOf("true", EMPTY), "`true` ended with exit code 0; expected no output."],
    [
      "failed",
      checkOf("echo ' M a.ts'; echo '?? b'", EMPTY),
      "`echo ' M a.ts'; echo '?? b'` ended with exit code 0; expected no output.\nM a.ts | ?? b",
    ],
    [
      "failed without output",
      checkOf("echo oh >&2; exit 2", EMPTY),
      "`echo oh >&2; exit 2` ended with exit code 2; expected exit code 0, or 1 with nothing on stderr.\noh",
    ],
    [
      "errors",
      checkOf("echo oh >&2; exit 2", exit(0)),
      "`echo oh >&2; exit 2` ended with exit code 2; expected exit code 0.\noh",
    ],
    [
      "pattern",
      checkOf("true", matches("(")),
      "`true` ended with exit code 0; expected output matching /(/ (the pattern is not a valid regular expression).",
    ],
    [
      "stopped",
      checkOf("sleep 1000", EMPTY, { timeoutMs: 50 }),
      "`sleep 1000` was stopped after 50 ms; expected no output.",
    ],
  ];
  for (const [name, check, expected] of cases) {
    test(name, async () => assert.equal((await shell.check(check, signal)).summary, expected));
  }

  test("is two lines at most, and short", async () => {
    const { summary } = await shell.check(
      checkOf("yes '\u001b[31mabcdefghij' | head -n 100000", EMPTY),
      signal,
    );
    assert.equal(summary.split("\n").length, 2);
    assert.ok(summary.length < 800);
    assert.ok(!summary.includes("\u001b"));
  });
});

describe("params", () => {
  test("hold what was extracted and, beside it, the raw facts", async () => {
    const extract = { listed: "formatFiles", stderr: "exitCode", nothing: "nonsense" };
    const { params, summary } = await shell.check(
      checkOf("echo ' a.ts'; echo err >&2; exit 4", EMPTY, { extract }),
      signal,
    );
    assert.deepEqual(params, {
      stdout: " a.ts\n",
      stderr: 4,
      exitCode: 4,
      command: "echo ' a.ts'; echo err >&2; exit 4",
      summary,
      listed: ["a.ts"],
      nothing: null,
    });
  });

  test("say what it means for git, tests and types, and leave what was extracted as it is", async () => {
    const extract = { changedFiles: "parseChangedFiles", rootCause: "exitCode" };
    const { params } = await shell.check(checkOf("echo ' M a.ts'", EMPTY, { extract }), signal);
    assert.deepEqual(params, {
      stdout: " M a.ts\n",
      stderr: "",
      exitCode: 0,
      command: "echo ' M a.ts'",
      changedFiles: ["a.ts"],
      summary: "1 file changed",
      severity: "warning",
      relatedFiles: ["a.ts"],
      rootCause: 0,
      suggestedAction: "Commit what belongs to the task, and remove or ignore the rest.",
    });
  });

  test("are capped", async () => {
    const { params } = await shell.check(checkOf("head -c 100000 /dev/zero | tr '\\0' x", EMPTY), signal);
    assert.match(textOf(params["stdout"]), /^x{4096}\n\[… 91808 bytes cut …\]\nx{4096}$/);
  });

  test("never touch a prototype", async () => {
    const extract = JSON.parse(
      '{ "__proto__": "stdout", "constructor": "stdout" }',
    ) as CommandCheck["extract"];
    const { params } = await shell.check(checkOf("echo x", EMPTY, { extract }), signal);
    assert.equal(Object.getPrototypeOf(params), Object.prototype);
    assert.equal(params["constructor"], "x\n");
  });
});

test("a check runs in the working directory and sees no secret", async () => {
  const { params } = await shell.check(checkOf("pwd -P; env", contains("no such line")), signal);
  assert.ok(textOf(params["stdout"]).includes("lockstep-shell-"));
  assert.doesNotMatch(textOf(params["stdout"]), /canary/);
});

/** The signal comes when the command says that it is ready for it. */
async function interruptedWhen<T>(file: string, use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const done = use(interrupt.signal);
  for (let left = 6000; left > 0 && !existsSync(join(cwd, file)); left -= 1) await sleep(10);
  assert.ok(existsSync(join(cwd, file)), "the command did not begin");
  interrupt.abort();
  return await done;
}

describe("what is interrupted has not passed", () => {
  // It goes in order: the exit code alone would pass.
  const orderly = (name: string) => `trap 'exit 0' TERM; touch ${name}; sleep 1000 & wait`;
  for (const [name, command, rule] of [
    ["dies", "touch dies; sleep 1000", EMPTY],
    ["quiet", orderly("quiet"), EMPTY],
    ["zero", orderly("zero"), exit(0)],
    ["said", `echo ready; ${orderly("said")}`, contains("ready")],
  ] as const) {
    test(`a check: ${command}`, async () => {
      const result = await interruptedWhen(name, (cut) => shell.check(checkOf(command, rule), cut));
      assert.equal(result.ok, false);
      assert.match(result.summary, /was interrupted/);
    });
  }

  test("a step performed by a command", async () => {
    const by = {
      kind: "command",
      command: "bash",
      args: ["-c", orderly("step")],
      timeoutMs: 60_000,
    } as const;
    const result = await interruptedWhen("step", (cut) => shell.perform(stepWith({ by }), {}, cut));
    assert.deepEqual([result.kind, result.kind === "fault" && result.fault.kind], ["fault", "process"]);
  });
});

describe("a step performed by a command", () => {
  const perform = (command: string, args: readonly string[], values: JsonObject = {}, timeoutMs = 60_000) =>
    shell.perform(stepWith({ by: { kind: "command", command, args, timeoutMs } }), values, signal);

  const outputs: readonly [string, string, unknown][] = [
    ["an object", '{"next_action":{"action":"closing"}}', { next_action: { action: "closing" } }],
    ["an object with space around it", '\n {"a":1} \n', { a: 1 }],
    ["a list", "[1]", { raw: "[1]" }],
    ["a number", "1", { raw: "1" }],
    ["prose", "all done", { raw: "all done" }],
    ["nothing", "", { raw: "" }],
    ["half an object", '{"a":', { raw: '{"a":' }],
  ];
  for (const [name, stdout, expected] of outputs) {
    test(`answers with ${name}`, async () => {
      const result = await perform("printf", ["%s", stdout]);
      assert.ok(result.kind === "reply");
      assert.deepEqual([result.output, result.text, result.calls], [expected, stdout, []]);
      assert.deepEqual(result.usage, { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 });
    });
  }

  const values = {
    issue: 12,
    name: "a b; $(touch pwned) `touch pwned` $&",
    flag: true,
    deep: { x: "y" },
    "a.b": "dotted",
    none: null,
  };
  const templates: readonly [string, string, string][] = [
    ["a number", "${context.issue}", "12"],
    ["part of an argument", "--issue=${context.issue}!", "--issue=12!"],
    ["text, whatever is in it", "${context.name}", values.name],
    ["two in one", "${context.issue}-${context.flag}", "12-true"],
    ["an object", "${context.deep}", '{"x":"y"}'],
    ["a member of an object", "${context.deep.x}", "y"],
    ["a name with a dot", "${context.a.b}", "dotted"],
    ["no template", "$HOME ${HOME} $(id) {context.issue}", "$HOME ${HOME} $(id) {context.issue}"],
  ];
  for (const [name, arg, expected] of templates) {
    test(`gets ${name} as one argument`, async () => {
      const result = await perform("printf", ["[%s]", arg], values);
      assert.ok(result.kind === "reply");
      assert.equal(result.text, `[${expected}]`);
      assert.equal(existsSync(join(cwd, "pwned")), false);
    });
  }

  const faults: readonly [string, Parameters<typeof perform>, RegExp][] = [
    [
      "a value is missing",
      ["true", ["${context.missing}"]],
      /Step "work.issue": no value for \$\{context\.missing\}/,
    ],
    ["a value is null", ["true", ["${context.none}"], values], /no value for \$\{context\.none\}/],
    ["a value is inherited", ["true", ["${context.constructor}"], values], /no value/],
    [
      "it fails",
      ["sh", ["-c", "echo much; echo the reason >&2; exit 3"]],
      /`sh` ended with exit code 3: the reason/,
    ],
    ["it does not exist", ["no-such-command-at-all", []], /exit code 127: cannot start/],
    ["it takes too long", ["sleep", ["1000"], {}, 50], /was stopped after 50 ms/],
    [
      "it takes too long and ends in order",
      ["bash", ["-c", "trap 'exit 0' TERM; echo '{}'; sleep 1000 & wait"], {}, 1000],
      /was stopped after 1000 ms/,
    ],
    ["it is killed", ["sh", ["-c", "kill -9 $$"]], /was ended by SIGKILL/],
  ];
  for (const [name, args, expected] of faults) {
    test(`is a fault when ${name}`, async () => {
      const result = await perform(...args);
      assert.ok(result.kind === "fault");
      assert.equal(result.fault.kind, "process");
      assert.match(result.fault.message, expected);
    });
  }

  test("is not asked of a step that a model performs", async () => {
    await assert.rejects(shell.perform(stepWith({}), {}, signal), /performed by a model/);
  });
});
