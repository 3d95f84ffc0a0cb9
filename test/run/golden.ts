/**
 * The runs under test/fixtures/journals: one of every kind of flow, recorded once and replayed ever after.
 * `node test/run/golden.ts` records them anew; that is right only when a decision was meant to change.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createMemoryJournal,
  exportRun,
  fork,
  importRun,
  resume,
  run,
  type DriveOptions,
  type Journal,
  type Result,
  type ScriptReply,
} from "../../src/run/index.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { tree001, tree002 } from "../load/documents.ts";
import { agentFiles, writeFiles, type StepFile } from "./project.ts";

export const JOURNALS = fileURLToPath(new URL("../fixtures/journals/", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

type Golden = {
  /** Puts the agent there. */
  readonly prepare: (folder: string) => void;
  readonly agent: string;
  readonly args?: { readonly [name: string]: string };
  readonly script: readonly ScriptReply[] | string;
  readonly options?: Partial<DriveOptions>;
  /** What comes after the run, if anything: the last run of the journal is the one that is kept. */
  readonly then?: (around: { readonly journal: Journal; readonly cwd: string }) => Promise<Result>;
};

const says = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action, reason: `because of ${stepId}`, ...more } },
});
const step = (kind: StepFile["kind"], to: { readonly [intent: string]: string | null }): StepFile => ({
  kind,
  intents: Object.keys(to),
  transitions: Object.fromEntries(Object.entries(to).map(([intent, target]) => [intent, { target }])),
});
const STEPS = {
  "initial.a": step("work", { next: "continuation.a", repeat: "initial.a" }),
  "continuation.a": step("work", { next: "continuation.a", handoff: "closure.a" }),
  "closure.a": step("closure", { closing: null, repeat: "closure.a" }),
};
const HOOKS = `export default {
  plan: { setup: (ctx) => { ctx.extra = "seen by " + ctx.stageExecutionId; } },
  build: {
    setup: (ctx) => { ctx.count = ctx.upstream.length; },
    assert: (ctx) => (ctx.attempts.length < 2 ? { verdict: "retry", reason: "once more" } : "ok"),
    next: () => null,
  },
};
`;
const stage = (id: string, next: string) => `---
id: ${id}
name: ${id}
allowedTools: []
completionTool: done_${id}
completionSchema: { type: object, required: [what], properties: { what: { type: string } } }
retryPolicy: { maxAttempts: 2, backoff: none }
turnCap: 3
resolutionPolicy: fail
next: ${next}
---
Do {{ctx.task}}.
`;

export const GOLDEN: { readonly [name: string]: Golden } = {
  gate: {
    prepare: (folder) =>
      writeFiles(
        folder,
        agentFiles("a", {
          ...STEPS,
          "initial.a": {
            ...STEPS["initial.a"],
            gate: { handoffFields: ["plan"] },
            properties: { plan: { type: "string" } },
          },
        }),
      ),
    agent: "a",
    script: [
      says("initial.a", "repeat"),
      { step: "initial.a", output: { stepId: "initial.b", plan: "dig", next_action: { action: "NEXT" } } },
      { step: "continuation.a", text: "no object at all" },
      says("continuation.a", "next"),
      says("continuation.a", "handoff"),
      says("closure.a", "closing"),
    ],
  },
  noted: {
    prepare: (folder) => writeFiles(folder, agentFiles("a", STEPS)),
    agent: "a",
    script: [says("initial.a", "next"), says("continuation.a", "handoff"), says("closure.a", "closing")],
    then: async ({ journal, ...around }) => {
      await withNote(journal, "This one was shown to the customer.");
      return await resume({ run: "@last", journal, ...around });
    },
  },
  complete: {
    prepare: (folder) => writeFiles(folder, tree002()),
    agent: "issues",
    script: [
      says("initial.issue", "continue"),
      says("continuation.issue", "retry"),
      says("continuation.issue", "continue"),
      says("continuation.issue", "complete"),
      says("complete.issue", "complete"),
    ],
  },
  "check-prompts": {
    prepare: (folder) => writeFiles(folder, tree001()),
    agent: "code-improver",
    args: { topic: "the login" },
    script: ["s_a8f3:ng", "s_a8f3:ok", "s_b2c1:ng", "s_a8f3:ok", "s_b2c1:pass", "s_c9d4:true"].flatMap(
      (each) => {
        const [at = "", result = ""] = each.split(":");
        return [
          { step: at, text: `${at} is done` },
          { step: `${at}#check`, output: { result, message: `${at} is ${result}` } },
        ];
      },
    ),
  },
  "verdict-keyword": {
    prepare: (folder) =>
      cpSync(join(EXAMPLES, "04-verdict-types/.agent"), join(folder, ".agent"), { recursive: true }),
    agent: "spoken",
    script: "04-verdict-types/scripts/spoken.yaml",
  },
  "verdict-outside": {
    prepare: (folder) =>
      cpSync(join(EXAMPLES, "04-verdict-types/.agent"), join(folder, ".agent"), { recursive: true }),
    agent: "polled",
    args: { topic: "launch" },
    script: "04-verdict-types/scripts/polled.yaml",
  },
  stages: {
    prepare: (folder) => example(folder, "06-stage-machine"),
    agent: "ship",
    args: { task: "make the tests pass" },
    script: "06-stage-machine/script.yaml",
  },
  "stage-hooks": {
    prepare: (folder) =>
      writeFiles(folder, {
        ".agent/hooked/stages/plan.md": stage("plan", "build"),
        ".agent/hooked/stages/build.md": stage("build", "end"),
        ".agent/hooked/machine.yaml": "entry: plan\n",
        ".agent/hooked/hooks.mjs": HOOKS,
      }),
    agent: "hooked",
    args: { task: "the work" },
    script: [
      { step: "plan", output: { what: "planned" } },
      { step: "build", output: { what: "built" } },
      { step: "build", output: { what: "built again" } },
    ],
  },
  "closure-retry": {
    prepare: (folder) => example(folder, "03-checks-and-retries"),
    agent: "writer",
    args: { topic: "tides" },
    script: "03-checks-and-retries/script.yaml",
  },
  subprocess: {
    prepare: (folder) =>
      writeFiles(
        folder,
        agentFiles("a", {
          ...STEPS,
          "closure.a": {
            ...STEPS["closure.a"],
            intents: [],
            transitions: {},
            more: {
              structuredGate: undefined,
              transitions: undefined,
              outputSchemaRef: undefined,
              runner: {
                command: "sh",
                args: ["-c", 'test -f tried && echo "{}" || { touch tried; exit 1; }'],
              },
            },
          },
        }),
      ),
    agent: "a",
    script: [says("initial.a", "next"), says("continuation.a", "handoff")],
  },
  "rate-limit": {
    prepare: (folder) => writeFiles(folder, agentFiles("a", STEPS)),
    agent: "a",
    script: [
      says("initial.a", "next"),
      { error: { kind: "rate-limit", retryAfterMs: 20 } },
      says("continuation.a", "next"),
      ...Array.from({ length: 5 }, () => ({ error: { kind: "overloaded" as const } })),
      says("continuation.a", "handoff"),
      says("closure.a", "closing"),
    ],
    then: async (around) => await resume({ run: "@last", ...around }),
  },
  people: {
    prepare: (folder) =>
      writeFiles(folder, {
        ".agent/asked/stages/plan.md": stage("plan", "{ parallel: [left, right], join: build }"),
        ".agent/asked/stages/left.md": stage("left", "end"),
        ".agent/asked/stages/right.md": stage("right", "end"),
        ".agent/asked/stages/build.md": stage("build", "end"),
        ".agent/asked/machine.yaml": "entry: plan\n",
      }),
    agent: "asked",
    args: { task: "the work" },
    script: [
      { step: "plan", output: { what: "planned" } },
      { step: "left", calls: [{ name: "Write", input: { file_path: "left.txt", content: "l" } }] },
      { step: "right", calls: [{ name: "Bash", input: { command: "true" } }] },
      { step: "left", output: { what: "left" } },
      { step: "right", output: { what: "right" } },
      { step: "build", output: { what: "built" } },
    ],
    options: { onPermission: "halt" },
    // Two questions are open, nobody answers, and then a setting does.
    then: async (around) => {
      await resume({ run: "@last", ...around });
      return await resume({ run: "@last", onPermission: "allow", ...around });
    },
  },
  fork: {
    prepare: (folder) => writeFiles(folder, agentFiles("a", STEPS)),
    agent: "a",
    script: [
      says("initial.a", "next"),
      says("continuation.a", "handoff"),
      says("closure.a", "repeat"),
      says("closure.a", "closing"),
    ],
    then: async (around) =>
      await fork({
        run: "@last",
        at: "closure.a@1",
        edits: {
          output: { stepId: "closure.a", next_action: { action: "repeat", reason: "edited" } },
          handoff: { "initial.a": { plan: "edited" } },
          prompts: { "closure.a": { file: "edited.md", text: "Close it well." } },
        },
        ...around,
      }),
  },
};

/** As `lockstep note` does it. */
async function withNote(journal: Journal, text: string): Promise<void> {
  const [row] = await journal.list({ limit: 1 });
  const { id, last } = row!;
  const handle = await journal.claim(id);
  const { seq, at, event } = last!;
  const note = { seq: seq + 1, at: at + 60_000, moved: 60_000, event: { type: "run.noted", text } } as const;
  await handle.append([note, { seq: seq + 2, at: note.at, event }]);
  await handle.release();
}

function example(folder: string, name: string): void {
  cpSync(join(EXAMPLES, name, "project"), folder, { recursive: true });
  cpSync(join(EXAMPLES, name, ".agent"), join(folder, ".agent"), { recursive: true });
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Golden");
  git("config", "user.email", "golden@example.invalid");
  git("add", "-A");
  git("commit", "-qm", "start");
}

/** The text of the file; the same for everybody, whatever machine it is made on. */
async function record(
  name: string,
  { prepare, agent, args = {}, script, options, then }: Golden,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-golden-"));
  try {
    prepare(folder);
    const journal = createMemoryJournal();
    const clock = fakeClock();
    const replies =
      typeof script === "string"
        ? { script: { text: readFileSync(join(EXAMPLES, script), "utf8"), file: script } }
        : { script };
    const env = { ...process.env, LOCKSTEP_TRUST: "all" };
    const around = { cwd: folder, journal, clock, env };
    const result = await run({ agent, args, ...replies, ...around, ...options });
    const last = then === undefined ? result : await then(around);
    if (last.outcome !== "completed")
      throw new Error(`${name}: ${last.reason} ${JSON.stringify(last.problems)}`);
    const { bundle } = await exportRun(journal, "@last");
    const text = JSON.stringify(bundle).replaceAll(folder, "/project");
    const other = createMemoryJournal();
    await importRun(other, parseBundle(text, name), { as: name, cwd: "/project", now: 1_700_000_000_000 });
    return `${JSON.stringify((await exportRun(other, name)).bundle, null, 1)}\n`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  for (const [name, golden] of Object.entries(GOLDEN)) {
    writeFileSync(join(JOURNALS, `${name}.json`), await record(name, golden));
  }
}
