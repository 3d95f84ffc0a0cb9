/** The backend `command`: a real program for each request. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createCommandModel, type CommandModelOptions } from "../../../src/backends/command/command.ts";
import { createAgentProcesses } from "../../../src/effects/process/agent-processes.ts";
import type { TurnRequest } from "../../../src/engine/ports.ts";
import { createMemoryJournal } from "../../../src/journal/memory.ts";
import { run } from "../../../src/run/open.ts";
import { backendSuite, request } from "../../../src/testing/backend-suite.ts";
import { agentFiles, stepTo, writeFiles } from "../../run/project.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-command-test-")));
after(() => rmSync(base, { recursive: true, force: true }));

const program = fileURLToPath(new URL("../command-program.ts", import.meta.url));
const PATH = process.env.PATH;

function repliesFile(replies: readonly object[]): string {
  const file = join(mkdtempSync(join(base, "r-")), "replies.json");
  writeFileSync(file, JSON.stringify(replies));
  return file;
}

function modelOf(options: Partial<CommandModelOptions>) {
  const processes = createAgentProcesses("lockstep-command-", base);
  return createCommandModel({ command: "/bin/sh", env: { PATH }, timeoutMs: 120_000, processes, ...options });
}

backendSuite("command", (replies) =>
  Promise.resolve(modelOf({ command: process.execPath, args: [program, repliesFile(replies)] })),
);

/** One request to a program that is this line of a shell. */
async function ask(
  line: string,
  options: Partial<CommandModelOptions> = {},
  more: Partial<TurnRequest> = {},
) {
  const backend = modelOf({ args: ["-c", line], ...options });
  try {
    return await backend.turn!(request(more));
  } finally {
    await backend.close!();
  }
}

const failures: readonly [
  name: string,
  line: string,
  kind: "process" | "network",
  message: RegExp,
  options?: Partial<CommandModelOptions>,
][] = [
  [
    "an exit code",
    `echo '{"text":"x"}'; printf 'no \\033[31mkey\\007' >&2; exit 3`,
    "process",
    /ended \(3\)\nIt printed:\n {2}\| no key\\x07$/,
  ],
  ["a signal", "kill -9 $$", "process", /ended \(SIGKILL\)$/],
  ["prose", "echo 'Hello\u001b[31m there'", "process", /answer is not one JSON document: Hello.* there/],
  ["two documents", `echo '{"text":"a"}{"text":"b"}'`, "process", /is not one JSON document/],
  ["nothing", ":", "process", /is not one JSON document/],
  ["a list", "echo '[]'", "process", /answer is not a mapping: \[\]/],
  ["an unknown key", `echo '{"answer":1}'`, "process", /unknown key "answer"; known are text, output/],
  ["a key of scripts", `echo '{"text":"x","saw":["y"]}'`, "process", /unknown key "saw"/],
  ["no answer", `echo '{"usage":{}}'`, "process", /answer says nothing/],
  ["a call without a name", `echo '{"calls":[{}]}'`, "process", /a call needs a name/],
  ["an error of no kind", `echo '{"error":{"kind":"mood"}}'`, "process", /error\.kind must be one of auth/],
  [
    "silence",
    "echo hm >&2; sleep 600",
    "network",
    /not answered for 2 s\nIt printed:\n {2}\| hm$/,
    { timeoutMs: 2000 },
  ],
  ["an endless output", "yes", "process", /printed more than 8388608 bytes/],
  ["a missing program", "", "process", /could not be started: .*ENOENT/, { command: "/nowhere/model" }],
];
for (const [name, line, kind, message, options] of failures)
  test(`${name} is a fault`, async () => {
    const result = await ask(line, options);
    assert.equal(result.kind, "fault", JSON.stringify(result));
    if (result.kind !== "fault") return;
    assert.equal(result.fault.kind, kind);
    assert.match(result.fault.message, message);
  });

test("an error that the program reports keeps to one line", async () => {
  const answer = JSON.stringify({ error: { kind: "auth", message: "sign in\nlockstep: done" } });
  const result = await ask(`printf %s '${answer}'`);
  assert.ok(result.kind === "fault");
  assert.equal(result.fault.kind, "auth");
  assert.match(result.fault.message, /^The program reports: sign in.*lockstep: done$/);
});

test("it is sent the request, as structured data and as one text", async () => {
  const echo = "process.stdin.pipe(process.stdout)";
  const wrap = `printf '{"output":'; "$0" -e '${echo}'; printf '}'`;
  const schema = { type: "object", required: ["a"] };
  const messages: TurnRequest["messages"] = [
    { role: "user", text: "Do it." },
    { role: "assistant", text: "", calls: [], output: { half: "way" } },
    { role: "user", text: "Once more." },
  ];
  const more = { messages, output: { schema, channel: { kind: "output" } } } as const;
  const result = await ask("", { args: ["-c", wrap, process.execPath] }, more);
  assert.ok(result.kind === "reply", JSON.stringify(result));
  assert.deepEqual(result.output, {
    v: 1,
    step: "s",
    model: "opus",
    system: "You are a test.",
    prompt: 'Do it.\n\n{"half":"way"}\n\nOnce more.',
    schema,
    messages,
    tools: [],
  });
  assert.deepEqual(result.by, { provider: "command", model: "opus" });
});

test("the user's model comes before that of the step, and free text has no schema", async () => {
  const { output: _, ...plain } = request();
  const backend = modelOf({ args: ["-c", "printf '{\"output\":'; cat; printf '}'"], model: "mine" });
  const result = await backend.turn!(plain);
  await backend.close!();
  assert.ok(result.kind === "reply");
  const { model, schema } = result.output as { model: string; schema: unknown };
  assert.deepEqual(
    { model, schema, spec: backend.spec.options },
    {
      model: "mine",
      schema: null,
      spec: { model: "mine" },
    },
  );
});

test("it sees the usual environment and what is passed on, and starts in a folder of its own", async () => {
  const env = { PATH, OPENAI_API_KEY: "a", MODEL_KEY: "b" };
  const line = `printf '{"text":"%s|%s|%s"}' "$OPENAI_API_KEY" "$MODEL_KEY" "$PWD"`;
  const result = await ask(line, { env, pass: ["MODEL_KEY"] });
  assert.ok(result.kind === "reply");
  const [other, passed, folder] = result.text.split("|");
  assert.deepEqual([other, passed], ["", "b"]);
  assert.match(folder!, /lockstep-command-/);
});

const figures: readonly [name: string, usage: string, expected: object][] = [
  [
    "all",
    '{"inputTokens":5,"outputTokens":2,"costUsd":0.5}',
    { inputTokens: 5, outputTokens: 2, costUsd: 0.5 },
  ],
  ["none", "{}", { inputTokens: 0, outputTokens: 0, costUsd: null }],
  [
    "tokens below 0",
    '{"inputTokens":-5,"outputTokens":2,"costUsd":1}',
    { inputTokens: 0, outputTokens: 2, costUsd: 1, unknown: ["tokens"] },
  ],
  [
    "a cost that is a text",
    '{"inputTokens":5,"outputTokens":2,"costUsd":"1"}',
    { inputTokens: 5, outputTokens: 2, costUsd: null, unknown: ["costUsd"] },
  ],
];
for (const [name, usage, expected] of figures)
  test(`usage: ${name}`, async () => {
    const result = await ask(`echo '{"text":"x","usage":${usage}}'`);
    assert.ok(result.kind === "reply");
    assert.deepEqual(result.usage, { turns: 1, ...expected });
  });

test("a program that reads nothing may answer a long request", async () => {
  const messages = [{ role: "user", text: "x".repeat(4 * 1024 * 1024) }] as const;
  const result = await ask(`echo '{"text":"short"}'`, {}, { messages });
  assert.equal(result.kind === "reply" && result.text, "short");
});

test("what the program started ends with it", async () => {
  const backend = modelOf({ args: ["-c", `sleep 600 & printf '{"text":"%s"}' $!`] });
  const result = await backend.turn!(request());
  const isLeft = result.kind === "reply" && isAlive(result.text);
  await backend.close!();
  assert.match(result.kind === "reply" ? result.text : "", /^\d+$/);
  assert.equal(isLeft, false);
});

function isAlive(pid: string): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

test("a request that is aborted ends the program", async () => {
  const stop = new AbortController();
  const asked = ask("sleep 600", {}, { signal: stop.signal });
  setTimeout(() => stop.abort(), 50);
  const result = await asked;
  assert.equal(result.kind === "fault" && result.fault.message, "The query was interrupted.");
});

// Through the door of the library: what the user's own config.json says.

const output = { stepId: "closure.t", next_action: { action: "closing" } };

async function runWith(config: object, more: { readonly path?: (cwd: string) => string } = {}) {
  const home = mkdtempSync(join(base, "h-"));
  const cwd = mkdtempSync(join(base, "p-"));
  const steps = { "closure.t": stepTo("closure", { closing: null }) };
  writeFiles(cwd, { ...agentFiles("t", steps), "bin/model": '#!/bin/sh\necho \'{"text":"planted"}\'\n' });
  chmodSync(join(cwd, "bin/model"), 0o755);
  writeFiles(home, { "lockstep/config.json": JSON.stringify(config) });
  const path = more.path === undefined ? PATH : `${more.path(cwd)}:${PATH}`;
  const env = { PATH: path, HOME: home, XDG_CONFIG_HOME: home, LOCKSTEP_TRUST: "all" };
  return await run({ agent: "t", cwd, env, journal: createMemoryJournal(), use: "command" });
}

test("a run asks the program of the user's config.json", async () => {
  const usage = { inputTokens: 3, outputTokens: 1, costUsd: 0.25 };
  const args = [
    program,
    repliesFile([
      { output: { stepId: "closure.t" }, usage },
      { output, usage },
    ]),
  ];
  const done = await runWith({ command: { command: process.execPath, args } });
  assert.equal(done.exitCode, 0, done.reason);
  assert.deepEqual(done.usage, { turns: 2, inputTokens: 6, outputTokens: 2 });
  assert.equal(done.costUsd, 0.5);
});

const refused: readonly [name: string, config: object, message: RegExp, inProject?: true][] = [
  ["no entry", {}, /names: \{ "command": \{ "command": "…" \} \}\. See .*models/],
  [
    "a program of the project",
    { command: { command: "model" } },
    /program "model" of "command".*not found/,
    true,
  ],
  [
    "a path below the project",
    { command: { command: "bin/model" } },
    /not found: name it by its absolute path/,
  ],
  [
    "no time",
    { command: { command: "sh", timeoutMs: 0 } },
    /command\.timeoutMs must be a whole number above 0/,
  ],
  ["no program", { command: {} }, /command\.command must be a text: The program/],
  [
    "a setting of the other backend",
    { acp: { command: "sh", timeoutMs: 5 } },
    /acp: unknown key "timeoutMs"/,
  ],
];
for (const [name, config, message, inProject] of refused)
  test(`${name} is refused before the run`, async () => {
    const path = inProject === undefined ? {} : { path: (cwd: string) => join(cwd, "bin") };
    const { exitCode, reason } = await runWith(config, path);
    assert.equal(exitCode, 3);
    assert.match(reason, message);
  });
