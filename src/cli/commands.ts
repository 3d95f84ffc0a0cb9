/** Every command and its flags: what the parser, the help and the shell completions are made from. Loads nothing. */
import { manual } from "../flow/manual.ts";
import { oneOf, UsageError, type Flag, type Offer, type Values } from "./args.ts";
import type { CommandCall } from "./call.ts";

/** A command, as it is declared in the table below. */
type Declaration = {
  readonly summary: string;
  readonly words: readonly Word[];
  readonly flags: readonly Flag[];
  readonly details?: readonly string[];
  readonly examples: readonly string[];
  /** What `--json` prints when the command fails, where that is not a plain document. */
  readonly document?: "result" | "findings";
  /** The kind of the document of `--json`, of a command that reports what was done until a signal came. */
  readonly kind?: string;
  /** It looks at no project: the flags that say where one is change nothing. */
  readonly anywhere?: true;
  /** Agents add flags of their own, so the command reads its line by itself. */
  readonly takesParameters?: true;
};

export type CliCommand = Omit<Declaration, "document"> & {
  readonly name: CommandName;
  readonly document: "result" | "findings" | "plain";
  readonly load: () => Promise<(call: CommandCall) => Promise<number>>;
};

/** What a command takes besides flags. `is`: what a shell offers there. */
export type Word = {
  readonly name: string;
  readonly optional?: true;
  /** Of the last one there may be several. */
  readonly repeats?: true;
  /** Words that are listed here are all that it can be. */
  readonly is: Offer;
};

const GLOBAL = [
  { name: "json", help: "print exactly one JSON document on stdout, also on failure" },
  { name: "quiet", short: "q", help: "print errors only: no progress, no report" },
  { name: "verbose", short: "v", help: "show every answer, tool call and retry" },
  { name: "color", is: "yes-no", help: "use colours even without a terminal; --no-color: never" },
  { name: "cwd", short: "C", takes: "DIR", is: "path", offers: "folder", help: "work as if started in DIR" },
  {
    name: "state",
    takes: "DIR",
    is: "path",
    offers: "folder",
    help: "keep run state in DIR instead of .lockstep, or record runs on a server: postgres://HOST/DATABASE",
  },
  { name: "help", short: "h", help: "show help, or the help of one command" },
  { name: "version", help: "show the version" },
] as const satisfies readonly Flag[];
export const GLOBAL_FLAGS: readonly Flag[] = GLOBAL;

const SCRIPT = {
  name: "script",
  takes: "FILE",
  is: "path",
  offers: "file",
  help: "take answers from a script instead of a model (YAML or JSON)",
} as const satisfies Flag;
const MODEL = {
  name: "model",
  takes: "NAME",
  offers: "model",
  help: "the model for all steps: a name from your config, or provider/model",
} as const satisfies Flag;
const BACKEND = {
  name: "backend",
  takes: "ID",
  offers: "backend",
  help: "the backend that runs the model (default: ai-sdk)",
} as const satisfies Flag;
const EVENTS = { name: "events", help: "stream the journal as JSON lines on stdout" } as const satisfies Flag;
const TRUST = {
  name: "trust",
  takes: "DIGEST",
  help: "trust exactly the files with this digest from now on (see `lockstep trust show NAME`)",
} as const satisfies Flag;
const TRUST_JOURNAL = {
  name: "trust-journal",
  help: "trust run records that were not made here (a clone, a copy, an import)",
} as const satisfies Flag;
const ON_PERMISSION = {
  name: "on-permission",
  takes: "WHAT",
  is: "choice",
  offers: ["deny", "halt", "allow"],
  help: "deny, halt or allow: how to settle a permission question when no one can answer",
} as const satisfies Flag;
const EXPIRE = {
  name: "expire",
  yields: true,
  takes: "TIME",
  is: "duration",
  help: "how long a question may stay open, such as 30m, 24h or 7d",
} as const satisfies Flag;
/** How people take part. */
const PEOPLE = [
  ON_PERMISSION,
  {
    name: "wait",
    yields: true,
    help: "without a terminal, wait until someone answers with `lockstep answer`",
  },
  EXPIRE,
] as const satisfies readonly Flag[];
const SPENDING = [
  { name: "max-turns", takes: "N", is: "count", help: "stop after N model answers" },
  { name: "max-tokens", takes: "N", is: "count", help: "stop after N tokens, in and out" },
  { name: "max-cost", takes: "USD", is: "money", help: "stop after this many US dollars" },
  { name: "max-time", takes: "TIME", is: "duration", help: "stop after this time, such as 90s, 20m or 2h" },
  {
    name: "max",
    takes: "WHAT=N",
    offers: ["turns=", "tokens=", "costUsd=", "wallMs=", "soft="],
    repeats: true,
    help: "set any limit, also of one step: STEP.turns=20, STEP.perAttempt.wallMs=90s, soft=0.9",
  },
  {
    name: "allow-unmetered",
    help: "run even if a token or cost limit cannot be enforced because the model has no known price or reports no usage",
  },
] as const satisfies readonly Flag[];
const SANDBOX = {
  name: "sandbox",
  takes: "WHEN",
  is: "choice",
  offers: ["auto", "on", "off"],
  help: "auto: sandbox commands if possible; on: refuse to run without a sandbox; off: no sandbox",
} as const satisfies Flag;
const NETWORK = {
  name: "network",
  takes: "HOSTS",
  offers: ["none", "usual", "all"],
  help: "what sandboxed commands may connect to: none, usual (package registries), all, or HOST,HOST…",
} as const satisfies Flag;
const LOG = {
  name: "log",
  takes: "DIR",
  is: "path",
  offers: "folder",
  help: "write a log file to DIR, even if the agent does not configure one",
} as const satisfies Flag;
const SUMMARY = {
  name: "summary",
  yields: true,
  takes: "FILE",
  is: "path",
  offers: "file",
  help: "append a summary in Markdown to FILE (default: the file that GITHUB_STEP_SUMMARY names)",
} as const satisfies Flag;
const STRICT = { name: "strict", help: "treat warnings as errors" } as const satisfies Flag;

/** Where a run works, and where its work goes. */
const WORKTREE = [
  { name: "worktree", is: "yes-no", help: "work in a new git worktree; --no-worktree: in this folder" },
  { name: "branch", yields: true, takes: "NAME", help: "the branch of the worktree, which must be new" },
  {
    name: "base-branch",
    yields: true,
    takes: "NAME",
    help: "start from this branch, and merge into it (default: the current one)",
  },
  {
    name: "merge",
    is: "yes-no",
    help: "merge the branch when the run succeeds; --no-merge: keep it unmerged",
  },
  { name: "push", is: "yes-no", help: "push the result" },
  { name: "push-remote", takes: "NAME", help: "push to this remote" },
  { name: "create-pr", is: "yes-no", help: "push the branch and open a pull request instead of merging" },
  { name: "pr-target", takes: "NAME", help: "the target branch of the pull request" },
  {
    name: "dry-run",
    help: "do not merge, push, label, close or post anything; only report what would be done",
  },
] as const satisfies readonly Flag[];
/** One run for each of several issues. */
const ISSUES = [
  {
    name: "issues",
    yields: true,
    takes: "LIST",
    help: "start one run for each of these issues, such as 12,15,20-24",
  },
  {
    name: "label",
    yields: true,
    takes: "NAME",
    help: "start one run for each open GitHub issue with this label",
  },
  {
    name: "limit",
    yields: true,
    takes: "N",
    is: "count",
    most: 999,
    help: "with --label: at most N issues (default: 10)",
  },
] as const satisfies readonly Flag[];
const BATCH = [
  ...ISSUES,
  {
    name: "concurrency",
    yields: true,
    takes: "N",
    is: "count",
    most: 999,
    help: "how many runs of a batch run at once (default: 2 with worktrees, else 1)",
  },
] as const satisfies readonly Flag[];
const INPUT = {
  name: "input",
  yields: true,
  takes: "TEXT",
  repeats: true,
  help: "the text for {input_text} (- reads stdin); for stages NAME=VALUE or @FILE.json",
} as const satisfies Flag;
/** What a run can be started with, here or in a fleet. */
const STARTING = [
  SCRIPT,
  MODEL,
  BACKEND,
  INPUT,
  TRUST,
  ON_PERMISSION,
  EXPIRE,
  ...SPENDING,
  STRICT,
  ...WORKTREE,
  ...ISSUES,
] as const satisfies readonly Flag[];
export type StartFlags = Values<typeof STARTING>;
/** What a run can be given when it goes on. */
const GOING_ON = [
  SCRIPT,
  MODEL,
  BACKEND,
  EVENTS,
  TRUST,
  TRUST_JOURNAL,
  ...PEOPLE,
  SANDBOX,
  NETWORK,
  LOG,
  SUMMARY,
  ...SPENDING,
] as const satisfies readonly Flag[];
export type GlobalFlags = Values<typeof GLOBAL>;
export type DriveFlags = Values<typeof GOING_ON>;

const HERE = {
  name: "here",
  help: "continue a run of a fleet in this process instead of on a worker",
} as const satisfies Flag;
const OF_FLEET = "A run that was submitted to a fleet is continued by one of its workers.";
const ADOPT = {
  name: "adopt",
  help: "continue with the current files of the agent, if the run is compatible with them",
} as const satisfies Flag;
/** The parts of `lockstep bench`, by the names that `--part` takes. */
export const PARTS = [
  "memory",
  "durable",
  "growth",
  "concurrency",
  "many",
  "agents",
  "resume",
  "load",
  "cold",
  "stages",
  "http",
  "gate",
  "replay",
  "journal",
  "life",
  "batch",
  "studio",
  "sandbox",
  "proof",
  "fleet",
] as const;
export type BenchPart = (typeof PARTS)[number];
/** How a model misbehaves under `lockstep fuzz`. */
export const FUZZ_PERSONAS = [
  "plain",
  "random",
  "nearly",
  "eager",
  "stubborn",
  "chatty",
  "truncated",
  "refusing",
  "lost",
  "huge",
  "grabbing",
  "flaky",
  "injected",
] as const;
/** What `init` can create: the folders of templates/ that hold an agent. */
export const TEMPLATES = [
  "steps",
  "stages",
  "fix-issue",
  "review-loop",
  "implement-plan",
  "triage",
  "upgrade-dependencies",
  "write-docs",
] as const;
export type AgentTemplate = (typeof TEMPLATES)[number];

/** The files of schemas/, each without its ending. */
export const SCHEMA_KINDS = [
  "agent",
  "steps_registry",
  "machine",
  "stage",
  "script",
  "tests",
  "config",
] as const;
const OUT = {
  name: "out",
  short: "o",
  takes: "FILE",
  is: "path",
  offers: "file",
  help: "write to FILE",
} as const satisfies Flag;

const AGENT = { name: "NAME", is: "agent" } as const satisfies Word;
const RUN = { name: "RUN", is: "run" } as const satisfies Word;
const RUN_IDS = "RUN is a run id, a unique prefix of one, @last or @failed.";
const RUN_OR_FILE = { name: "RUN|FILE", is: "run" } as const satisfies Word;
const FILE_TOO =
  "A name that ends in .json is a file written by `lockstep export` or kept by `lockstep test`.";

/** What the parser, the help and the shell completions are made from. */
const DECLARED = {
  run: {
    summary: "run an agent to its end",
    words: [AGENT],
    flags: [
      SCRIPT,
      MODEL,
      BACKEND,
      INPUT,
      EVENTS,
      TRUST,
      TRUST_JOURNAL,
      ...PEOPLE,
      ...SPENDING,
      SANDBOX,
      NETWORK,
      LOG,
      SUMMARY,
      STRICT,
      ...WORKTREE,
      ...BATCH,
      { name: "validate", help: "only check the agent, as `lockstep check` does" },
    ],
    details: [
      "The agent's parameters are also flags: `lockstep run NAME --help` lists them.",
      "A parameter cannot redefine flags for safety, limits, locations and output. If it has the name of another",
      "flag, use that flag as --ls-<flag>.",
      "The project's commands run only after you trust them: answer yes when asked, or pass --trust DIGEST;",
      "on a disposable machine, set LOCKSTEP_TRUST=all to trust everything.",
      "runner.execution in agent.json decides what happens to the result; the flags from --worktree on override it.",
      "--issues and --label start one run per issue; a failed run does not stop the others.",
      'The last line on stdout is {"outcome":"success","result":…}, or has the outcome "failed", "waiting" or "paused".',
    ],
    examples: [
      "lockstep run iterator --issue 12",
      "lockstep run iterator --issue 12 --model sonnet",
      "lockstep run notes --topic tides --script .agent/notes/script.yaml",
      "git diff | lockstep run reviewer --script replies.yaml --json",
      "lockstep run iterator --issue 12 --worktree --no-merge",
      "lockstep run iterator --issues 12,15,20 --concurrency 3",
      "lockstep run release --input task='bump the version' --input @context.json",
    ],
    document: "result",
    takesParameters: true,
  },
  resume: {
    summary: "resume a run where it stopped",
    words: [RUN],
    flags: [
      ...GOING_ON,
      ADOPT,
      {
        name: "from",
        takes: "STEP[@VISIT]",
        offers: "step",
        help: "resume just before that visit, as a new run that shares the earlier history",
      },
      { name: "invalidate", takes: "STEP", offers: "step", help: "the same, from the first visit of STEP" },
      { name: "take-over", help: "take over from a process that hangs; it can no longer record anything" },
      HERE,
    ],
    details: [
      RUN_IDS,
      "Completed steps do not run again. If the run reached a limit, raise that limit.",
      "The run keeps its model unless you pass --model.",
      "If the agent's files have changed, the differences are listed, and the run continues with its recorded flow.",
      "A batch name (batch-…) resumes the whole batch: finished runs are kept, the others continue or start.",
      OF_FLEET,
    ],
    examples: [
      "lockstep resume @last",
      "lockstep resume batch-3f9",
      "lockstep resume 3f9 --script more.yaml",
      "lockstep resume @failed --model openai/gpt-6.1-sol",
      "lockstep resume 3f9 --adopt",
      "lockstep resume 3f9 --from continuation.issue@2",
      "lockstep resume 3f9 --take-over",
    ],
    document: "result",
  },
  answer: {
    summary: "answer a question of a run, and let the run continue",
    words: [
      RUN,
      { name: "QUESTION", is: "question", optional: true },
      { name: "CHOICE", is: "question", optional: true },
    ],
    flags: [
      { name: "text", takes: "TEXT", help: "answer with free text, if the question allows it" },
      {
        name: "resume",
        is: "yes-no",
        help: "resume the run at once (default); --no-resume: only record the answer",
      },
      ...GOING_ON,
    ],
    details: [
      RUN_IDS,
      "Without an answer, the open questions are listed. QUESTION is a question id; it is only needed if several are",
      "open. A process that waits for the answer continues by itself; otherwise the run continues here.",
      "A run waits when it was started with --on-permission halt, or with --wait.",
    ],
    examples: [
      "lockstep answer @last",
      "lockstep answer 3f9 allow",
      "lockstep answer 3f9 q0k3x9a deny",
      "lockstep answer 3f9 --text 'Use the second one' --no-resume",
    ],
    document: "result",
  },
  pause: {
    summary: "pause a run after its current work, until it is continued",
    words: [RUN],
    flags: [TRUST_JOURNAL],
    details: [
      RUN_IDS,
      "The process that runs it finishes and records the current answer or tool calls, and exits with 5.",
      "`resume` refuses a paused run; use `continue`. A run without a process is marked as paused.",
    ],
    examples: ["lockstep pause @last"],
  },
  stop: {
    summary: "stop a run in another process, like Ctrl-C there",
    words: [RUN],
    flags: [TRUST_JOURNAL],
    details: [RUN_IDS, "Current work is discarded, completed work is kept, and `resume` continues the run."],
    examples: ["lockstep stop @last"],
  },
  note: {
    summary: "write a note on a run that has ended",
    words: [RUN, { name: "TEXT", is: "new" }],
    flags: [TRUST_JOURNAL],
    details: [
      RUN_IDS,
      "The note is recorded in the journal of the run: show, why and logs print it, and `export` takes it along",
      "(hidden with --redact). It changes nothing else: outcome, times and path of the run stay as they were.",
    ],
    examples: ["lockstep note @last 'Released as 1.4.0'", "lockstep note @failed 'The API was down'"],
  },
  continue: {
    summary: "continue a run, even if it was paused",
    words: [RUN],
    flags: [...GOING_ON, HERE],
    details: [RUN_IDS, OF_FLEET],
    examples: ["lockstep continue @last"],
    document: "result",
  },
  check: {
    summary: "find problems in an agent before it runs",
    words: [{ ...AGENT, optional: true }],
    flags: [
      STRICT,
      { name: "fix", help: "apply the fixes that are unambiguous, and check again" },
      { name: "dry-run", help: "with --fix: only show what would be fixed" },
      { name: "sarif", help: "print the findings as SARIF 2.1.0, for code hosts and editors" },
      {
        name: "format",
        takes: "FORMAT",
        is: "choice",
        offers: ["text", "json", "sarif", "github"],
        help: "how the findings are printed: github prints annotations for GitHub Actions",
      },
      {
        name: "max-turns",
        takes: "N",
        is: "count",
        least: 0,
        help: "fail if a run could take more than N model answers",
      },
      { name: "watch", help: "check again whenever a file of the agent changes, until Ctrl-C" },
    ],
    details: [
      "Without NAME, all agents of the project are checked. No command runs and no model is called.",
      "--fix edits JSON files in place and keeps their formatting. It does not write prompts or create steps:",
      "you have to write a missing continuation.X yourself.",
    ],
    examples: [
      "lockstep check",
      "lockstep check iterator --strict",
      "lockstep check iterator --fix --dry-run",
      "lockstep check --sarif > lockstep.sarif",
      "lockstep check --format github",
    ],
    document: "findings",
  },
  test: {
    kind: "lockstep-tests",
    summary: "run the tests of agents: .agent/NAME/tests/*.yaml",
    words: [{ name: "NAME|FILE", optional: true, repeats: true, is: "agent" }],
    flags: [
      {
        name: "test",
        short: "t",
        takes: "PATTERN",
        help: "only tests whose names match this regular expression",
      },
      { name: "last-failed", help: "only tests that failed when they were last run" },
      { name: "bail", takes: "N", is: "count", help: "stop after N failures" },
      { name: "shard", takes: "I/N", help: "only the I-th of N parts of the tests" },
      { name: "list", help: "list the tests instead of running them" },
      { name: "cut", help: "run each test again from every prefix of its journal: the end must be the same" },
      { name: "update", help: "rewrite the snapshots that differ, and remove those without a test" },
      { name: "memory", help: "leave out tests on copies of a project, which run commands and need trust" },
      {
        name: "jobs",
        takes: "N",
        is: "count",
        help: "run N tests on copies of a project at once (default 2)",
      },
      TRUST,
      SANDBOX,
      { name: "watch", help: "test again whenever a file of the agents changes, until Ctrl-C" },
      {
        name: "reporter",
        takes: "NAME[=FILE]",
        offers: ["pretty", "tap", "junit", "json", "github"],
        repeats: true,
        help: "pretty, tap, junit, json or github; on stdout, or in FILE",
      },
      {
        name: "stale",
        help: "list recorded tests whose responses were given to other words than are said now",
      },
      { name: "coverage", help: "show what the tests cover of the flow, and what they do not" },
      {
        name: "coverage-file",
        takes: "FILE",
        is: "path",
        offers: "file",
        repeats: true,
        help: "write the coverage to FILE: .html, .json, or .info (lcov)",
      },
      { name: "generate", help: "make tests for everything that no test covers, and print them" },
      { name: "covers", takes: "ID", help: "with --generate: only for elements whose names begin with ID" },
      { name: "write", help: "with --generate: write the tests to .agent/NAME/tests/generated.yaml" },
      {
        name: "recorded",
        help: "instead of running tests: hold before, never and within of tests/settings.yaml over recorded runs",
      },
      {
        name: "since",
        takes: "TIME",
        is: "duration",
        help: "with --recorded: only runs of the last 24h or 30d",
      },
    ],
    details: [
      "No model is called. Tests run in memory: no command runs, and no trust is needed. FILE names test files; patterns work.",
      "A test with `project: FOLDER` runs on a copy of that folder, with real tools and checks: it needs trust, as a run does.",
      "The run of a failed test is kept in .lockstep/tests; `why`, `show`, `logs` and `replay` read it.",
      "The exit code is 7 if a test failed, and 2 if a test file is wrong or there are no tests.",
      "tests/settings.yaml sets the least coverage: with --coverage the exit code is 7 if it is missed.",
      "--generate --write replaces only tests that still say `generated: true`.",
    ],
    examples: [
      "lockstep test",
      "lockstep test iterator -t closing",
      "lockstep test --last-failed --bail 1",
      "lockstep test --reporter pretty --reporter junit=report.xml",
      "lockstep test iterator --coverage --coverage-file coverage.html",
      "lockstep test iterator --generate --write",
      "lockstep test iterator --recorded --since 30d",
    ],
  },
  coverage: {
    kind: "lockstep-coverage",
    summary: "compare what tests and recorded runs have shown of an agent's flow",
    words: [AGENT],
    flags: [
      { name: "tests", help: "only the tests" },
      { name: "runs", help: "only the recorded runs" },
      { name: "since", takes: "TIME", is: "duration", help: "only runs of the last 30m, 24h or 30d" },
      { ...OUT, help: "with --tests or --runs: write it to FILE, as .html, .json or .info (lcov)" },
    ],
    details: [
      "Tests run in memory; recorded runs are only read. No model is asked and no command is run.",
      "What runs have shown and tests have not is the list of tests to write first.",
    ],
    examples: [
      "lockstep coverage iterator",
      "lockstep coverage iterator --runs --since 30d",
      "lockstep coverage iterator --runs --out coverage.html",
    ],
  },
  eval: {
    kind: "lockstep-eval",
    summary: "measure how often models get the tasks of an agent done: .agent/NAME/evals/*.yaml",
    words: [AGENT],
    flags: [
      {
        name: "runs",
        takes: "N",
        is: "count",
        most: 1000,
        help: "how often each model does each task (default: 10)",
      },
      { name: "models", takes: "A,B", offers: "model", help: "the models, compared with the first one" },
      {
        name: "budget",
        takes: "USD",
        is: "money",
        help: "what all runs together may cost, such as 5usd; needed unless there is a script",
      },
      { ...SCRIPT, repeats: true, help: "take answers from scripts, in turn, instead of models" },
      { name: "task", short: "t", takes: "PATTERN", help: "only tasks whose names match" },
      {
        name: "jobs",
        takes: "N",
        is: "count",
        most: 64,
        help: "how many runs are under way at once (default: 1)",
      },
      {
        name: "baseline",
        takes: "FILE",
        is: "path",
        offers: "file",
        help: "an earlier report (--json): exit 7 if a model is surely worse than in it",
      },
      { name: "resume", takes: "EVAL", help: "continue an eval that was interrupted or ran out of budget" },
      TRUST,
      TRUST_JOURNAL,
      SANDBOX,
      NETWORK,
    ],
    details: [
      "Each run works in a copy of its own and is recorded: `lockstep why RUN` explains it. Nothing is merged, pushed or",
      "posted. Hidden checks of a task see their files only after the run has ended.",
      "Before each run an amount is set aside and is its limit; a run that does not fit into the budget is not begun.",
      "The exit code is 7 if a least rate was surely missed, and 3 if more than a fifth of a model's runs were errors of the",
      `machinery. See ${manual("evaluating")}.`,
    ],
    examples: [
      "lockstep eval fixer --runs 20 --models sonnet,haiku --budget 5usd",
      "lockstep eval fixer --runs 4 --script .agent/fixer/script.yaml",
      "lockstep eval fixer --runs 20 --models haiku --budget 2usd --baseline main.json --json",
      "lockstep eval fixer --resume eval-3f9 --budget 8usd",
    ],
  },
  mutate: {
    kind: "lockstep-mutation",
    summary: "change a flow in small ways and report which changes its tests notice",
    words: [AGENT],
    flags: [
      { name: "min", takes: "PERCENT", is: "count", help: "exit with 7 if the score is below this" },
      {
        name: "class",
        takes: "CLASS",
        is: "choice",
        offers: ["gates", "routes", "contract", "words", "reach"],
        repeats: true,
        help: "only changes of this class: gates, routes, contract, words or reach",
      },
      { name: "write", help: "add the tests that would notice the rest to tests/generated.yaml" },
    ],
    details: [
      "Each change that no test notices is listed; --verbose adds the shortest test found that would notice it.",
      "Everything runs in memory, as in `lockstep test`: no model is asked and no trust is needed.",
      "The score is killed / (killed + survived + not covered). What `lockstep check` reports is not counted.",
    ],
    examples: ["lockstep mutate iterator", "lockstep mutate iterator --class gates --min 90"],
  },
  fuzz: {
    kind: "lockstep-fuzz",
    summary: "run an agent against a hostile model, and report what breaks",
    words: [AGENT],
    flags: [
      { name: "runs", takes: "N", is: "count", help: "how many runs (default 1000)" },
      { name: "for", takes: "TIME", is: "duration", help: "as many runs as fit into TIME, such as 30s" },
      {
        name: "seed",
        takes: "N",
        is: "count",
        least: 0,
        help: "which runs: the same seed gives the same runs (1)",
      },
      {
        name: "persona",
        takes: "NAME",
        is: "choice",
        offers: FUZZ_PERSONAS,
        repeats: true,
        help: "how the model misbehaves; every way if not given",
      },
      { name: "save", help: "write each case that was found to .agent/NAME/tests/fuzz-*.yaml" },
      {
        name: "fail-on",
        takes: "WHAT",
        is: "choice",
        offers: ["weakness"],
        help: "weakness: the exit code is 7 for weaknesses too, not only for broken properties",
      },
    ],
    details: [
      "Runs are in memory: no model is asked, no command is run, and no trust is needed. Nothing is written without --save.",
      "The exit code is 7 if a property is broken: one that holds for every flow, or one of tests/settings.yaml.",
      `The properties and the personas: ${manual("fuzzing")}`,
    ],
    examples: [
      "lockstep fuzz iterator",
      "lockstep fuzz iterator --for 30s --seed 7",
      "lockstep fuzz iterator --persona eager --persona nearly --save",
    ],
  },
  honesty: {
    kind: "lockstep-honesty",
    summary: "how often a claim to be done agreed with the checks, over recorded runs",
    words: [AGENT],
    flags: [
      { name: "since", takes: "TIME", is: "duration", help: "only runs of the last 24h, 30d or so" },
      {
        name: "by",
        takes: "WHAT",
        is: "choice",
        offers: ["model", "step", "check", "week", "flow"],
        help: "one row for each model, step, check, week or version of the flow",
      },
    ],
    details: [
      "A claim is a visit whose answer led to checks. No model is asked and nothing is run.",
      "Rates are given with their counts and a 95 % interval. A check that never failed is named.",
    ],
    examples: ["lockstep honesty iterator", "lockstep honesty iterator --since 30d --by model"],
  },
  graph: {
    summary: "draw the flow of an agent and mark the findings of check",
    words: [AGENT],
    flags: [
      {
        name: "format",
        takes: "FORMAT",
        is: "choice",
        offers: ["text", "mermaid", "dot", "svg", "json"],
        help: "text, mermaid, dot, svg or json (default: from the name of --out, or text)",
      },
      { ...OUT, help: "write the drawing to FILE" },
      {
        name: "coverage",
        takes: "WHAT",
        offers: ["tests", "runs"],
        help: "draw coverage: of tests, of recorded runs, or of a coverage FILE.json",
      },
    ],
    examples: [
      "lockstep graph iterator",
      "lockstep graph iterator --out flow.svg",
      "lockstep graph iterator --coverage tests",
    ],
    document: "findings",
  },
  explain: {
    summary: "show the effective settings of an agent or a step, and where each is set",
    words: [AGENT, { name: "STEP", optional: true, is: "step" }],
    flags: [
      { name: "boundary", help: "show instead what it may access on this machine: tools, commands, sandbox" },
      SANDBOX,
      NETWORK,
    ],
    details: ["Every value is shown with its file and line, or as a default."],
    examples: [
      "lockstep explain iterator",
      "lockstep explain iterator closure.issue",
      "lockstep explain iterator --boundary",
    ],
    document: "findings",
  },
  probe: {
    summary: "test the boundaries of an agent on this machine",
    words: [AGENT, { name: "STEP", optional: true, is: "step" }],
    flags: [SANDBOX, NETWORK],
    details: [
      "Makes harmless attempts in the sandbox of a run, with its tools, and on Lockstep's own process.",
      "Each boundary is reported as enforced, or as advisory: nothing enforces it, or it cannot be tested here.",
      "The exit code is 3 if a required sandbox cannot be opened. The project's commands do not run.",
    ],
    examples: ["lockstep probe iterator", "lockstep probe iterator --sandbox on --json"],
  },
  migrate: {
    summary: "convert files of an older format to the current one",
    words: [AGENT],
    flags: [{ name: "write", help: "write the files (default: only show the differences)" }],
    details: ["What cannot be converted is listed. A migrated flow takes the same path as before."],
    examples: ["lockstep migrate iterator", "lockstep migrate iterator --write"],
  },
  runs: {
    summary: "list the recorded runs, newest first",
    words: [{ ...RUN, repeats: true, optional: true }],
    flags: [
      { name: "limit", takes: "N", is: "count", help: "list at most N runs (default: 20)" },
      { name: "max", takes: "N", is: "count", help: "the same as --limit" },
      { name: "watch", help: "refresh the list whenever something changes, until Ctrl-C" },
      { name: "prune", help: "remove old runs (default: older than 30 days)" },
      {
        name: "older-than",
        takes: "AGE",
        is: "duration",
        least: 0,
        help: "with --prune: runs unchanged for AGE, such as 90s, 12h, 30d or 8w",
      },
      { name: "keep", takes: "N", is: "count", least: 0, help: "with --prune: all but the newest N" },
      { name: "dry-run", help: "with --prune: only show what would be removed" },
      { name: "yes", short: "y", help: "with --prune: do not ask for confirmation" },
      TRUST_JOURNAL,
    ],
    details: [
      "SIZE is the size of the recorded entries. An active run is never removed.",
      "With --prune, RUN names the runs to remove, whatever their age and even if they are damaged.",
    ],
    examples: [
      "lockstep runs",
      "lockstep runs --limit 100 --json",
      "lockstep runs --watch",
      "lockstep runs --prune --older-than 30d --keep 50 --dry-run",
      "lockstep runs --prune 3f9",
    ],
  },
  show: {
    summary: "show how a run went",
    words: [RUN_OR_FILE],
    flags: [
      { ...EVENTS, help: "print its journal as JSON lines" },
      { name: "audit", help: "print the history of its stages: phases, outcomes, grants, transitions" },
      { name: "result", help: "print only the result of the run; exit 1 if there is none" },
      { name: "follow", short: "f", help: "follow the run in another process until it ends" },
    ],
    details: [RUN_IDS, FILE_TOO, "The exit code is 0 even if the run failed."],
    examples: [
      "lockstep show @last",
      "lockstep show @last --result",
      "lockstep show @failed --json",
      "lockstep show @last -f",
    ],
    document: "result",
  },
  effects: {
    summary: "list the external effects of a run: branches, remotes, issues, pull requests",
    words: [RUN],
    flags: [],
    details: [
      RUN_IDS,
      "applied: done. held: not done; the detail says how to do it by hand. failed: resume tries again.",
      "intended: the outcome is unknown; resume checks before it acts.",
    ],
    examples: ["lockstep effects @last", "lockstep effects @last --json"],
  },
  logs: {
    summary: "print the log of a run, or its whole conversation",
    words: [RUN_OR_FILE],
    flags: [
      { name: "follow", short: "f", help: "keep printing until the run ends" },
      {
        name: "level",
        takes: "LEVEL",
        is: "choice",
        offers: ["debug", "info", "warn", "error"],
        help: "the minimum level: debug, info, warn or error (default: info)",
      },
      { name: "transcript", help: "print the conversation with the model, including tool calls and results" },
    ],
    details: [
      RUN_IDS,
      FILE_TOO,
      "The log comes from the journal, so every run has one, even if no log file was written.",
      "With --json each line is one JSON object. --verbose means --level debug without truncation.",
    ],
    examples: [
      "lockstep logs @last",
      "lockstep logs @last -f --level warn",
      "lockstep logs 3f9 --transcript",
    ],
  },
  why: {
    summary: "explain why a visit of a run took its path",
    words: [RUN_OR_FILE, { name: "STEP[@VISIT]", optional: true, is: "step" }],
    flags: [
      { name: "all", help: "explain every visit of the run" },
      { name: "full", help: "do not truncate anything, and show the schemas" },
    ],
    details: [
      RUN_IDS,
      FILE_TOO,
      "Without STEP: the last decision, or the visit in which the run ended. Without VISIT: the last visit of the step.",
      "The explanation comes from the journal and the flow recorded in it, not from the current files.",
    ],
    examples: [
      "lockstep why @last",
      "lockstep why @failed closure.issue",
      "lockstep why 3f9 closure.issue@2 --json",
    ],
  },
  worktree: {
    summary:
      "list the worktrees that runs have left, remove those with no unsaved work, or repair interrupted ones",
    words: [{ name: "list|prune|repair", is: ["list", "prune", "repair"] }],
    flags: [{ name: "dry-run", help: "with prune and repair: only show what would be done" }, TRUST_JOURNAL],
    details: [
      "prune removes worktrees of ended runs without uncommitted work. It also removes the branch, but only",
      "if the base branch contains all of its commits.",
      "repair cleans up after a killed process: worktree records that git cannot read, a worktree that is",
      "half removed, and a working tree that a merge half updated. Commits and uncommitted work stay.",
    ],
    examples: ["lockstep worktree list", "lockstep worktree prune --dry-run", "lockstep worktree repair"],
  },
  "fleet init": {
    summary: "prepare a PostgreSQL server for runs and their workers",
    words: [],
    flags: [],
    details: [
      "Makes the tables of runs and of the queue in the database that --state or LOCKSTEP_STATE names, or brings them up to date.",
      "It is harmless when repeated. No other command makes or changes tables.",
      `Passwords come from PGPASSFILE or from LOCKSTEP_STATE, never from the command line. See ${manual("fleet")}.`,
    ],
    examples: ["lockstep fleet init --state postgres://localhost/runs"],
  },
  "fleet limit": {
    summary: "limit what all workers of a fleet may ask and spend",
    words: [
      { name: "NAME", is: "new", optional: true },
      { name: "AMOUNT/PERIOD", is: "new", optional: true },
    ],
    flags: [
      { name: "group", takes: "NAME", help: "the budget of the runs of one group" },
      { name: "burst", takes: "N", is: "count", help: "how many requests or tokens may come at once" },
    ],
    details: [
      "NAME is PROVIDER/MODEL.requests, PROVIDER/MODEL.tokens or costUsd; PERIOD is s, min, hour or day.",
      "Calls beyond a rate wait; a budget that is spent ends runs with exit code 4 until its period begins anew.",
      "AMOUNT/PERIOD none removes the limit. Without NAME, all limits are shown with what is left of them.",
    ],
    examples: [
      "lockstep fleet limit",
      "lockstep fleet limit openai/gpt-6.1-sol.tokens 400000/min",
      "lockstep fleet limit costUsd 200/day",
      "lockstep fleet limit costUsd 20/day --group nightly",
      "lockstep fleet limit costUsd none",
    ],
  },
  "fleet worker": {
    summary: "drive the runs of a fleet until it is stopped",
    words: [],
    flags: [
      {
        name: "concurrency",
        takes: "N",
        is: "count",
        most: 999,
        help: "how many runs at once (default: fleet.concurrency of your config, else 10)",
      },
      { name: "queue", takes: "NAME", repeats: true, help: "take runs from this queue (default: runs)" },
      {
        name: "within",
        takes: "TIME",
        is: "duration",
        help: "how long runs may take to yield when the worker is stopped (default: 30m)",
      },
      { name: "name", takes: "TEXT", help: "what `lockstep fleet ps` calls it (default: host and process)" },
      { name: "work", takes: "DIR", is: "path", offers: "folder", help: "keep the files of runs in DIR" },
      { name: "events", help: "print what it does as JSON lines on stdout" },
      SCRIPT,
      SANDBOX,
      NETWORK,
    ],
    details: [
      "The first Ctrl-C or SIGTERM drains it: runs yield at their next step, and other workers go on with them.",
      "The second one ends it at once; others have its runs when its lease is over.",
      `Its settings are "fleet" in your config.json. See ${manual("fleet")}.`,
    ],
    examples: ["lockstep fleet worker --concurrency 20", "lockstep fleet worker --queue runs --queue urgent"],
  },
  "fleet ps": {
    summary: "list the workers of a fleet",
    words: [],
    flags: [
      { name: "self", help: "only those of this machine; exit 1 if none of them shows a sign of life" },
    ],
    examples: ["lockstep fleet ps", "lockstep fleet ps --self --quiet"],
  },
  "fleet status": {
    summary: "count the runs that wait for workers, by queue and group",
    words: [],
    flags: [{ name: "check", help: "exit 1 if a person should look into it" }],
    details: [
      "READY could be driven now, LATER wait for a moment, WAITING for a person. POISONED are left alone by workers.",
    ],
    examples: ["lockstep fleet status", "lockstep fleet status --check --json"],
  },
  "fleet drain": {
    summary: "let workers give back their runs and end",
    words: [{ name: "WORKER", optional: true, repeats: true, is: "new" }],
    flags: [
      { name: "all", help: "all workers" },
      {
        name: "within",
        takes: "TIME",
        is: "duration",
        help: "stop what has not yielded by then (default: 30m)",
      },
    ],
    details: ["A worker is named as `lockstep fleet ps` does."],
    examples: ["lockstep fleet drain host-1234", "lockstep fleet drain --all --within 10m"],
  },
  "fleet retry": {
    summary: "let workers try a poisoned run again",
    words: [{ name: "RUN", repeats: true, is: "run" }],
    flags: [],
    details: [
      RUN_IDS,
      "A run is poisoned after three attempts in a row that got nowhere. `lockstep show RUN` says why.",
    ],
    examples: ["lockstep fleet retry 3f9"],
  },
  "fleet submit": {
    summary: "record a run and hand it to the workers of a fleet",
    words: [AGENT],
    flags: [
      ...STARTING,
      {
        name: "queue",
        yields: true,
        takes: "NAME",
        help: "the queue that workers take it from (default: runs)",
      },
      {
        name: "group",
        yields: true,
        takes: "NAME",
        help: "runs of a group share its slots (default: the repository)",
      },
      {
        name: "priority",
        yields: true,
        takes: "N",
        help: "from -1000 to 1000; higher ones first (default: 0)",
      },
      {
        name: "not-before",
        yields: true,
        takes: "TIME",
        help: "begin no earlier than this: a time such as 2030-01-31T02:00, or from now on: 90m, 8h",
      },
      {
        name: "key",
        yields: true,
        takes: "TEXT",
        help: "the same key is the same run: repeating the command submits nothing twice",
      },
      { name: "bundle", help: "send the files as they are here, committed or not (16 MB at most)" },
      { name: "files", is: "yes-no", help: "--no-files: the run works in an empty folder" },
      { name: "follow", short: "f", help: "wait until it ends; the exit code is that of the run" },
    ],
    details: [
      "Takes what `run` takes, and the agent's parameters. The agent is loaded, checked and trusted here, and pinned as it",
      "is now. A run that cannot start is refused before anything is recorded.",
      "Its files are those of the current commit, which the remote must have; --bundle sends files that are not there.",
      "Models, keys and sandbox are those of the worker. Nothing of the environment here is sent.",
      `See ${manual("fleet")}.`,
    ],
    examples: [
      "lockstep fleet submit iterator --issue 12",
      "lockstep fleet submit iterator --issues 12,15,20-24 --group nightly --priority -5 --key nightly-42",
      "lockstep fleet submit notes --topic tides --no-files --follow",
    ],
    takesParameters: true,
  },
  "fleet fetch": {
    summary: "bring the files of a run home, as a branch of this repository",
    words: [{ name: "RUN", is: "run" }],
    flags: [{ name: "as", takes: "BRANCH", help: "the name of the branch, which must be new" }],
    details: [
      RUN_IDS,
      "Works for every run that was submitted with files, also for one that failed or still runs.",
      "What the run had not committed is in the last commit of the branch.",
    ],
    examples: ["lockstep fleet fetch 3f9", "lockstep fleet fetch @failed --as look-at-it"],
  },
  "fleet prune": {
    summary: "remove old runs of a fleet, with their letters and files",
    words: [],
    flags: [
      {
        name: "older-than",
        takes: "AGE",
        is: "duration",
        least: 0,
        help: "runs unchanged for AGE, such as 12h, 30d or 8w (default: 30d)",
      },
      { name: "dry-run", help: "only count what would be removed" },
      { name: "yes", short: "y", help: "do not ask for confirmation" },
    ],
    details: ["A run that a worker drives, or that waits for one, stays."],
    examples: ["lockstep fleet prune --older-than 30d --dry-run", "lockstep fleet prune --yes"],
  },
  replay: {
    summary: "recompute every decision of a run and compare it with the record",
    words: [{ name: "RUN|FILE", repeats: true, optional: true, is: "run" }],
    flags: [{ name: "all", help: "every recorded run" }],
    details: [
      RUN_IDS,
      FILE_TOO,
      "No model is called and no command runs. The exit code is 1 if a decision differs.",
    ],
    examples: [
      "lockstep replay @last",
      "lockstep replay --all --json",
      "lockstep replay test/journals/*.json",
    ],
  },
  fork: {
    summary: "start a new run from an earlier visit of a run",
    words: [RUN],
    flags: [
      {
        name: "at",
        takes: "STEP[@VISIT]",
        offers: "step",
        help: "the first visit that is not shared; without VISIT: the last one",
      },
      {
        name: "edit",
        takes: "WHAT=FILE",
        offers: ["output=", "handoff=", "prompt=", "model="],
        repeats: true,
        help: "output=FILE, handoff=FILE, prompt=STEP:FILE or model=STEP:NAME",
      },
      ADOPT,
      ...GOING_ON,
    ],
    details: [
      RUN_IDS,
      "The original run does not change. A fork of a run with a worktree gets its own; otherwise it works in the same folder, where files from later visits are still there.",
    ],
    examples: [
      "lockstep fork @last --at closure.issue@1",
      "lockstep fork 3f9 --at initial.issue --edit output=better.json",
      "lockstep fork 3f9 --at closure.issue --edit prompt=closure.issue:new.md --edit model=closure.issue:haiku",
    ],
    document: "result",
  },
  diff: {
    summary: "show where two runs diverge",
    words: [RUN, RUN],
    flags: [],
    details: [RUN_IDS, "The exit code is 0 even if the runs differ."],
    examples: ["lockstep diff 3f9 @last", "lockstep diff 3f9 8bc --json"],
  },
  whatif: {
    summary: "show which recorded runs would take a different path with the current files",
    words: [{ ...RUN, repeats: true, optional: true }],
    flags: [
      { name: "agent", takes: "NAME", offers: "agent", help: "the agent whose files are tried" },
      { name: "check", help: "exit 1 if a run would take a different path" },
    ],
    details: [
      "Without RUN: every recorded run of the agent. Recorded answers, check results and lookups are replayed through the",
      "current files; no model is called and no command runs. A run cannot be followed beyond what was recorded.",
    ],
    examples: ["lockstep whatif --agent iterator", "lockstep whatif --agent iterator @failed --json"],
  },
  export: {
    summary: "write a run to one file that replays anywhere",
    words: [RUN],
    flags: [
      { name: "redact", help: "remove texts of people and models, as far as the run still replays" },
      { name: "test", help: "write a test of the flow that goes the way of the run" },
      { name: "script", help: "write the answers of the run for `lockstep run --script`" },
      { ...OUT, help: "write to FILE instead of stdout" },
    ],
    details: [
      RUN_IDS,
      "--test writes answers, checks, tools, hooks and people as tables, and the path and the end as expectations. With --out",
      "it also writes FILE.heard.md, what the answers were given to: `lockstep test --stale` shows what has changed since.",
      "An exported run always contains the whole flow with its prompts and schemas, even with --redact.",
    ],
    examples: [
      "lockstep export @last -o run.json",
      "lockstep export @failed --redact -o run.json",
      "lockstep export @last --test -o .agent/iterator/tests/recorded.yaml",
    ],
  },
  import: {
    summary: "import an exported run into this project",
    words: [{ name: "FILE", is: "file" }],
    flags: [{ name: "as", takes: "ID", help: "give it this id instead of its own" }, TRUST_JOURNAL],
    examples: ["lockstep import run.json", "lockstep import run.json --as theirs"],
  },
  trust: {
    summary: "show what an agent needs your trust for, give it, list what you trust, or revoke trust",
    words: [
      { name: "show|add|list|revoke", is: ["show", "add", "list", "revoke"] },
      { name: "NAME|DIGEST|DIR", optional: true, is: "agent" },
    ],
    flags: [
      { name: "all", help: "with revoke: revoke all trust" },
      { name: "trust", takes: "DIGEST", help: "with add: trust exactly the files with this digest" },
      SANDBOX,
    ],
    details: [
      "show NAME prints everything that the agent's files make Lockstep do, its digest, and whether you trust it;",
      "the exit code is 3 if a run would need your trust first. add NAME asks for that trust on a terminal, or takes",
      "--trust DIGEST, and runs nothing. revoke takes an agent of this project, a digest, the folder of a project,",
      "or a state folder (.lockstep), which is then read-only until you accept it again.",
      "list also shows your state folders. revoke --all keeps those that your own runs created.",
      "Trust is stored in lockstep/trust/ and lockstep/states/ in your config folder.",
    ],
    examples: [
      "lockstep trust show iterator",
      "lockstep trust add iterator",
      "lockstep trust list --json",
      "lockstep trust revoke iterator",
      "lockstep trust revoke --all",
    ],
  },
  studio: {
    summary: "serve a local web page that shows the runs of the project and lets you steer them",
    words: [],
    flags: [
      {
        name: "port",
        takes: "N",
        is: "count",
        least: 0,
        most: 65_535,
        help: "listen on this port; 0: any free one (default: derived from the folder)",
      },
      { name: "open", help: "open the page in your browser" },
      { name: "read-only", help: "show everything, start and change nothing" },
      {
        name: "host",
        takes: "ADDR",
        help: "listen on this address instead of 127.0.0.1; read-only unless it is loopback, and needs --name",
      },
      { name: "name", takes: "HOST[:PORT]", help: "answer requests to this host name too" },
    ],
    details: [
      "Prints the address with its token, and serves until Ctrl-C. Runs that were started from the page go on after that.",
      `Everything that the page does is a command that it shows (${manual("studio")}).`,
    ],
    examples: ["lockstep studio --open", "lockstep studio --read-only", "lockstep studio --port 0 --json"],
  },
  mcp: {
    summary: "serve the agents of the project as tools to Claude Code, Cursor and other MCP clients",
    words: [],
    flags: [
      { name: "http", help: "serve streamable HTTP on 127.0.0.1 with a token, instead of stdin and stdout" },
      {
        name: "port",
        takes: "N",
        is: "count",
        least: 0,
        most: 65_535,
        help: "with --http: listen on this port (default: any free one)",
      },
      {
        name: "reply-within",
        takes: "TIME",
        is: "duration",
        help: "answer a call after this time although its run goes on (default: 45s)",
      },
      SCRIPT,
      MODEL,
      BACKEND,
      ON_PERMISSION,
      SANDBOX,
      NETWORK,
      ...SPENDING,
    ],
    details: [
      "Every agent that you trust is a tool; other tools wait for runs, show them, and answer their questions.",
      "A run is driven by a process of its own: it goes on when the client or this server ends.",
      "The flags from --script on hold for every run that a client starts; no client can go beyond them.",
      `Lines to paste for Claude Code, Cursor, VS Code and Claude Desktop: ${manual("mcp-server")}`,
      "It needs @modelcontextprotocol/server beside Lockstep. With --http the token is LOCKSTEP_MCP_TOKEN, or else another",
      "one at every start, which is printed.",
    ],
    examples: [
      "lockstep mcp --reply-within 1h",
      "lockstep mcp --max-cost 5 --model sonnet",
      "lockstep mcp --http --port 4100",
    ],
  },
  next: {
    summary: "show what can be done next in this folder",
    words: [],
    flags: [],
    details: ["The same as `lockstep` alone on a terminal."],
    examples: ["lockstep next", "lockstep next --json"],
  },
  list: {
    summary: "list the agents of the project",
    words: [],
    flags: [],
    examples: ["lockstep list", "lockstep list --json"],
  },
  init: {
    summary:
      "create an agent that passes check and runs without an API key: a small one, or a ready-made flow",
    words: [{ name: "NAME", is: "new", optional: true }],
    flags: [
      {
        name: "template",
        takes: "T",
        offers: TEMPLATES,
        help: "what to create; --template help lists the ready-made flows (default: steps; on a terminal you are asked)",
      },
      {
        name: "stages",
        help: "create a stage machine instead of a steps registry; the same as --template stages",
      },
      {
        name: "check",
        takes: "COMMAND",
        help: "the command whose exit code decides whether work is good, for templates that run one (default: found from the files of the project)",
      },
    ],
    details: [
      "Creates .agent/NAME/. Existing files are never overwritten.",
      `The templates are described in ${manual("templates")}.`,
    ],
    examples: [
      "lockstep init notes",
      "lockstep init notes --stages",
      "lockstep init --template help",
      "lockstep init fixer --template fix-issue",
      "lockstep init fixer --template fix-issue --check 'make test'",
    ],
  },
  schema: {
    summary: "print the JSON Schema of a kind of file, or list the kinds",
    words: [{ name: "KIND", optional: true, is: SCHEMA_KINDS }],
    flags: [{ name: "write", help: "copy all schemas to .agent/.schemas/ of this project, for editors" }],
    details: [
      "Editors complete and check files with it. `lockstep init` writes the lines that name the schemas: those of the",
      "package in node_modules, else the copies in .agent/.schemas/. After an update of Lockstep, --write refreshes the",
      "copies. A schema describes what the installed version reads.",
    ],
    examples: ["lockstep schema", "lockstep schema agent > agent.schema.json", "lockstep schema --write"],
  },
  models: {
    summary: "list the model names, what each stands for, and whether it is available",
    words: [],
    flags: [],
    details: [
      `Define your own names in lockstep/config.json in your config folder (${manual("models")}). No model is called.`,
    ],
    examples: ["lockstep models", "lockstep models --json"],
  },
  doctor: {
    summary: "check that everything Lockstep needs is installed",
    words: [],
    flags: [
      { name: "online", help: "also check that the model APIs can be reached" },
      {
        name: "journal",
        help: "check the stored runs instead: every page, entry, flow and file; nothing is changed",
      },
    ],
    examples: [
      "lockstep doctor",
      "lockstep doctor --online",
      "lockstep doctor --journal",
      "lockstep doctor --json",
    ],
  },
  salvage: {
    summary: "recover what is readable from damaged run records into a new state folder",
    words: [],
    flags: [
      {
        ...OUT,
        takes: "DIR",
        offers: "folder",
        help: "write into DIR, which must be new or empty (.lockstep-salvaged)",
      },
    ],
    details: [
      "The damaged folder is only read. Each run is whole, partial (readable up to some entry, not resumable) or lost.",
      "The two commands that put the new folder in place are printed. The exit code is 1 if anything is lost.",
    ],
    examples: ["lockstep salvage", "lockstep salvage --out rescued --json"],
  },
  bench: {
    summary: "run the benchmarks on this machine and compare them with their limits",
    words: [],
    flags: [
      { name: "check", help: "exit 1 if a figure exceeds its limit" },
      { name: "part", takes: "PART", is: "choice", offers: PARTS, help: `only one of ${PARTS.join(", ")}` },
    ],
    examples: ["lockstep bench", "lockstep bench --check --json"],
    anywhere: true,
  },
  completion: {
    summary: "print a completion script for your shell",
    words: [{ name: "bash|zsh|fish|powershell", is: ["bash", "zsh", "fish", "powershell"] }],
    flags: [],
    details: [
      "It completes commands, flags and their values, agents and their parameters, steps and runs.",
      "In zsh the folder must be in fpath before compinit runs: fpath=(~/.zfunc $fpath).",
    ],
    examples: [
      "lockstep completion bash > ~/.local/share/bash-completion/completions/lockstep",
      "lockstep completion zsh > ~/.zfunc/_lockstep",
      "lockstep completion fish > ~/.config/fish/completions/lockstep.fish",
      "lockstep completion powershell > lockstep.ps1",
    ],
    anywhere: true,
  },
  help: {
    summary: "show help, for all or for one command",
    words: [
      { name: "COMMAND", optional: true, is: "command" },
      { name: "VERB", optional: true, is: "new" },
    ],
    flags: [],
    examples: ["lockstep help run", "lockstep help fleet init"],
    anywhere: true,
  },
} as const satisfies { readonly [name: string]: Declaration };

export type CommandName = keyof typeof DECLARED;

/** A call of this command: only the flags that it declares can be read. */
export type CallOf<Name extends CommandName> = CommandCall<Values<(typeof DECLARED)[Name]["flags"]>>;

/** Where the code of each command is; the number that it gives is the exit code. */
const CODE: { readonly [Name in CommandName]: () => Promise<(call: CallOf<Name>) => Promise<number>> } = {
  run: async () => (await import("./commands/run.ts")).runAgent,
  resume: async () => (await import("./commands/resume.ts")).resumeRun,
  answer: async () => (await import("./commands/answer.ts")).answerRun,
  pause: async () => (await import("./commands/steer.ts")).pause,
  stop: async () => (await import("./commands/steer.ts")).stop,
  note: async () => (await import("./commands/note.ts")).writeNote,
  continue: async () => (await import("./commands/steer.ts")).goOn,
  check: async () => (await import("./commands/check.ts")).checkAgents,
  test: async () => (await import("./commands/test.ts")).testAgents,
  fuzz: async () => (await import("./commands/fuzz.ts")).fuzzAgent,
  coverage: async () => (await import("./commands/coverage.ts")).showCoverage,
  eval: async () => (await import("./commands/eval.ts")).evaluate,
  mutate: async () => (await import("./commands/mutate.ts")).mutateAgent,
  honesty: async () => (await import("./commands/honesty.ts")).showHonesty,
  graph: async () => (await import("./graph/graph.ts")).drawGraph,
  explain: async () => (await import("./commands/explain.ts")).explain,
  probe: async () => (await import("./commands/probe.ts")).probeAgent,
  migrate: async () => (await import("./commands/migrate.ts")).migrateFiles,
  runs: async () => (await import("./commands/runs.ts")).listRecorded,
  show: async () => (await import("./commands/show.ts")).showRun,
  effects: async () => (await import("./commands/effects.ts")).listEffects,
  logs: async () => (await import("./commands/logs.ts")).printLogs,
  why: async () => (await import("./commands/why.ts")).whyRun,
  worktree: async () => (await import("./commands/worktree.ts")).worktrees,
  "fleet submit": async () => (await import("./fleet/submit.ts")).fleetSubmit,
  "fleet init": async () => (await import("./fleet/init.ts")).fleetInit,
  "fleet limit": async () => (await import("./fleet/limit.ts")).fleetLimit,
  "fleet worker": async () => (await import("./fleet/worker.ts")).fleetWorker,
  "fleet ps": async () => (await import("./fleet/ps.ts")).fleetPs,
  "fleet status": async () => (await import("./fleet/status.ts")).fleetStatus,
  "fleet drain": async () => (await import("./fleet/drain.ts")).fleetDrain,
  "fleet retry": async () => (await import("./fleet/retry.ts")).fleetRetry,
  "fleet fetch": async () => (await import("./fleet/fetch.ts")).fleetFetch,
  "fleet prune": async () => (await import("./fleet/prune.ts")).fleetPrune,
  replay: async () => (await import("./commands/replay.ts")).replayRuns,
  fork: async () => (await import("./commands/fork.ts")).forkRun,
  diff: async () => (await import("./commands/diff.ts")).diffRuns,
  whatif: async () => (await import("./commands/whatif.ts")).whatIfRuns,
  export: async () => (await import("./commands/export.ts")).exportToFile,
  import: async () => (await import("./commands/export.ts")).importFromFile,
  trust: async () => (await import("./commands/trust.ts")).trust,
  studio: async () => (await import("./commands/studio.ts")).serveStudio,
  mcp: async () => (await import("./commands/mcp.ts")).serveMcp,
  next: async () => (await import("./commands/next.ts")).showNext,
  list: async () => (await import("./commands/list.ts")).listProject,
  init: async () => (await import("./commands/init.ts")).initAgent,
  schema: async () => (await import("./commands/schema.ts")).printSchema,
  models: async () => (await import("./commands/models.ts")).listModels,
  doctor: async () => (await import("./commands/doctor.ts")).examine,
  salvage: async () => (await import("./commands/salvage.ts")).salvageRuns,
  bench: async () => (await import("./commands/bench.ts")).bench,
  completion: async () => (await import("./commands/completion.ts")).printCompletion,
  help: async () => (await import("./help.ts")).printHelp,
};

export const COMMANDS: readonly CliCommand[] = (Object.keys(DECLARED) as readonly CommandName[]).map(
  (name) => {
    const declared: Declaration = DECLARED[name];
    // A call holds the flags of the command that it was created for.
    const load = CODE[name] as CliCommand["load"];
    return Object.assign({ name, document: "plain" as const, load }, declared);
  },
);

/** `verb`: the word that follows, which is part of some names. */
export function commandNamed(word: string, verb = ""): CliCommand {
  const command = COMMANDS.find(({ name }) => name === word || name === `${word} ${verb}`);
  if (command !== undefined) return command;
  const verbs = commandsOf(word).map(({ name }) => name.slice(word.length + 1));
  if (verbs.length > 0) {
    const given = verb === "" ? "." : `, not "${verb}".`;
    throw new UsageError(`${word} needs ${oneOf(verbs)}${given}`, { word: verb, candidates: verbs });
  }
  const candidates = [...new Set(COMMANDS.map(({ name }) => name.split(" ")[0]!))];
  throw new UsageError(`There is no command "${word}".`, { word, candidates, isCommand: true });
}

/** Those whose name begins with this word: `fleet init` and its like. */
export function commandsOf(word: string): readonly CliCommand[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${word} `));
}

/** The flags of all commands, each once: enough to tell on a line which words are flags' values. */
export function everyFlag(): readonly Flag[] {
  const known = new Map<string, Flag>();
  for (const flags of [GLOBAL_FLAGS, ...COMMANDS.map((command) => command.flags)])
    for (const flag of flags) if (!known.has(flag.name)) known.set(flag.name, flag);
  return [...known.values()];
}
