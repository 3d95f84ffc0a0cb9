/** Every command and its flags: what the parser, the help and the shell completions are made from. Loads nothing. */
import { manual } from "../flow/manual.ts";
import { UsageError, type Flag, type Offer } from "./args.ts";
import type { Call } from "./call.ts";

export type Command = {
  readonly name: string;
  readonly summary: string;
  readonly words: readonly Word[];
  readonly flags: readonly Flag[];
  readonly details?: readonly string[];
  readonly examples: readonly string[];
  /** What `--json` prints when the command fails. */
  readonly document: "result" | "findings" | "plain";
  /** Agents add flags of their own, so the command reads its line by itself. */
  readonly takesParameters?: true;
  /** Does the work; the number is the exit code. */
  readonly load: () => Promise<(call: Call) => Promise<number>>;
};

/** What a command takes besides flags. `is`: what a shell offers there. */
export type Word = {
  readonly name: string;
  readonly optional?: true;
  /** Of the last one there may be several. */
  readonly repeats?: true;
  readonly is: Offer;
};

export const GLOBAL_FLAGS: readonly Flag[] = [
  { name: "json", reserved: true, help: "print exactly one JSON document on stdout, on failure too" },
  { name: "quiet", short: "q", reserved: true, help: "no progress and no report, errors only" },
  { name: "verbose", short: "v", reserved: true, help: "show every answer, tool call and retry" },
  { name: "color", reserved: true, help: "colours even off a terminal; --no-color for none" },
  {
    name: "cwd",
    short: "C",
    takes: "DIR",
    offers: "folder",
    reserved: true,
    help: "work as if started in DIR",
  },
  {
    name: "state",
    takes: "DIR",
    offers: "folder",
    reserved: true,
    help: "keep run state in DIR instead of .lockstep",
  },
  { name: "help", short: "h", reserved: true, help: "show help, also for a single command" },
  { name: "version", reserved: true, help: "show the version" },
];

const SCRIPT: Flag = {
  name: "script",
  takes: "FILE",
  offers: "file",
  reserved: true,
  help: "let a script answer instead of a model (YAML or JSON)",
};
const MODEL: Flag = {
  name: "model",
  takes: "NAME",
  offers: "model",
  reserved: true,
  help: "the model that all steps ask: a name of yours, or provider/model",
};
const BACKEND: Flag = {
  name: "backend",
  takes: "ID",
  offers: ["ai-sdk", "claude-agent", "acp"],
  reserved: true,
  help: "what drives the model: ai-sdk, unless you say otherwise",
};
const EVENTS: Flag = { name: "events", reserved: true, help: "stream the journal as JSON lines on stdout" };
const TRUST: Flag = {
  name: "trust",
  takes: "DIGEST",
  reserved: true,
  help: "trust exactly what has this digest, from now on (see `lockstep trust show NAME`)",
};
const TRUST_JOURNAL: Flag = {
  name: "trust-journal",
  reserved: true,
  help: "use a record of runs that you did not make here (a clone, a copy, an import) as your own",
};
const ON_PERMISSION: Flag = {
  name: "on-permission",
  takes: "WHAT",
  offers: ["deny", "halt", "allow"],
  reserved: true,
  help: "deny, halt or allow: what becomes of a question when nobody can be asked",
};
/** How people take part. */
const PEOPLE: readonly Flag[] = [
  ON_PERMISSION,
  {
    name: "wait",
    help: "when nobody is at the terminal, stay until somebody answers with `lockstep answer`",
  },
  {
    name: "expire",
    takes: "TIME",
    help: "leave a question open for so long at most, such as 30m, 24h or 7d",
  },
];
const SPENDING: readonly Flag[] = [
  { name: "max-turns", takes: "N", reserved: true, help: "stop after N answers of the model" },
  { name: "max-tokens", takes: "N", reserved: true, help: "stop after N tokens, in and out" },
  {
    name: "max-cost",
    takes: "USD",
    reserved: true,
    help: "stop after so many dollars",
  },
  { name: "max-time", takes: "TIME", reserved: true, help: "stop after so long, such as 90s, 20m or 2h" },
  {
    name: "max",
    takes: "WHAT=N",
    offers: ["turns=", "tokens=", "costUsd=", "wallMs=", "soft="],
    repeats: true,
    reserved: true,
    help: "any limit, also of a step: STEP.turns=20, STEP.perAttempt.wallMs=90s, soft=0.9",
  },
  {
    name: "allow-unmetered",
    reserved: true,
    help: "run although a limit on tokens or cost cannot be checked, as the model has no price or reports no usage",
  },
];
const SANDBOX: Flag = {
  name: "sandbox",
  takes: "WHEN",
  offers: ["auto", "on", "off"],
  reserved: true,
  help: "auto: confine commands wherever that is possible; on: or do not run; off: do not confine them",
};
const NETWORK: Flag = {
  name: "network",
  takes: "HOSTS",
  offers: ["none", "usual", "all"],
  reserved: true,
  help: "what confined commands may reach: none, usual (package registries), all, or HOST,HOST…",
};
const LOG: Flag = {
  name: "log",
  takes: "DIR",
  offers: "folder",
  reserved: true,
  help: "write a log file into DIR, also where the agent asks for none",
};
const STRICT: Flag = { name: "strict", reserved: true, help: "count warnings as errors" };

/** Where a run works, and where its work goes. */
const WORKTREE: readonly Flag[] = [
  {
    name: "worktree",
    reserved: true,
    help: "work in a git worktree made for the run; --no-worktree: in this folder",
  },
  { name: "branch", takes: "NAME", help: "the branch of the worktree, which must be new" },
  {
    name: "base-branch",
    takes: "NAME",
    reserved: true,
    help: "begin from this branch, and merge into it (the current one)",
  },
  { name: "merge", reserved: true, help: "merge the branch when the run is complete; --no-merge: leave it" },
  { name: "push", reserved: true, help: "push the result" },
  { name: "push-remote", takes: "NAME", reserved: true, help: "push to this remote" },
  {
    name: "create-pr",
    reserved: true,
    help: "push the branch and open a pull request instead of merging it",
  },
  { name: "pr-target", takes: "NAME", reserved: true, help: "the branch that the pull request is for" },
  {
    name: "dry-run",
    reserved: true,
    help: "merge, push, label, close and post nothing: only say what would be done",
  },
];
/** One run for each of several issues. */
const BATCH: readonly Flag[] = [
  { name: "issues", takes: "LIST", help: "one run for each of these issues, such as 12,15,20-24" },
  { name: "label", takes: "NAME", help: "one run for each open issue that has this label on GitHub" },
  { name: "limit", takes: "N", help: "with --label: at most so many issues (10)" },
  {
    name: "concurrency",
    takes: "N",
    help: "so many runs of a batch at the same time (2 with worktrees, else 1)",
  },
];
/** What a run can be given when it goes on. */
const GOING_ON: readonly Flag[] = [
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
  ...SPENDING,
];
const ADOPT: Flag = {
  name: "adopt",
  help: "go on with the flow that the files hold now, if the run is compatible with it",
};
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
  "sandbox",
] as const;
export type Part = (typeof PARTS)[number];
const OUT: Flag = { name: "out", short: "o", takes: "FILE", offers: "file", help: "write to FILE" };

const AGENT: Word = { name: "NAME", is: "agent" };
const RUN: Word = { name: "RUN", is: "run" };
const RUN_IDS = "RUN is a run id, a unique beginning of one, @last or @failed.";

export const COMMANDS: readonly Command[] = [
  {
    name: "run",
    summary: "run an agent to its end",
    words: [AGENT],
    flags: [
      SCRIPT,
      MODEL,
      BACKEND,
      {
        name: "input",
        takes: "TEXT",
        repeats: true,
        help: "what prompts read as {input_text}, - reads stdin; for stages NAME=VALUE or @FILE.json",
      },
      EVENTS,
      TRUST,
      TRUST_JOURNAL,
      ...PEOPLE,
      ...SPENDING,
      SANDBOX,
      NETWORK,
      LOG,
      STRICT,
      ...WORKTREE,
      ...BATCH,
      { name: "validate", reserved: true, help: "only check the agent, as `lockstep check` does" },
    ],
    details: [
      "The parameters that the agent declares are flags too: `lockstep run NAME --help` lists them.",
      "Flags about safety, limits, places and output cannot be taken by a parameter. Where one has the name of another",
      "flag, that flag is there as --ls-<flag>.",
      "Commands of the project run only once they are trusted: say yes when asked, or pass --trust DIGEST;",
      "on a throw-away machine LOCKSTEP_TRUST=all in the environment trusts everything.",
      "What becomes of the work is told by runner.execution of agent.json, or by the flags from --worktree on.",
      "With --issues or --label there is one run for each issue; one that fails does not stop the others.",
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
    load: async () => (await import("./commands/run.ts")).runAgent,
  },
  {
    name: "resume",
    summary: "go on with a run where it stopped",
    words: [RUN],
    flags: [
      ...GOING_ON,
      ADOPT,
      {
        name: "from",
        takes: "STEP[@VISIT]",
        offers: "step",
        help: "go on from just before that visit, as a new run that shares the past before it",
      },
      { name: "invalidate", takes: "STEP", offers: "step", help: "the same, from the first visit of STEP" },
      { name: "take-over", help: "also if a process drives it: one that hangs. It can record nothing more" },
    ],
    details: [
      RUN_IDS,
      "Steps that were committed are not run again. A limit that was reached has to be raised.",
      "The model is the one the run began with, unless another is named.",
      "Where the files of the agent have changed since, the differences are told, and the run goes on with its own flow.",
      "The name of a batch (batch-…) stands for all its runs: those that ended are kept, the others go on or begin.",
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
    load: async () => (await import("./commands/resume.ts")).resumeRun,
  },
  {
    name: "answer",
    summary: "answer a question of a run, and let the run go on",
    words: [
      RUN,
      { name: "QUESTION", is: "question", optional: true },
      { name: "CHOICE", is: "question", optional: true },
    ],
    flags: [
      { name: "text", takes: "TEXT", help: "answer in words of your own, where the question takes them" },
      { name: "resume", help: "go on with the run at once, as it does; --no-resume: only leave the answer" },
      ...GOING_ON,
    ],
    details: [
      RUN_IDS,
      "Without an answer the open questions are shown. QUESTION is the id of one, and only needed where several are",
      "open. A process that waits for the answer goes on by itself; otherwise the run goes on here.",
      "A run waits when it was started with --on-permission halt, or with --wait.",
    ],
    examples: [
      "lockstep answer @last",
      "lockstep answer 3f9 allow",
      "lockstep answer 3f9 q0k3x9a deny",
      "lockstep answer 3f9 --text 'Use the second one' --no-resume",
    ],
    document: "result",
    load: async () => (await import("./commands/answer.ts")).answerRun,
  },
  {
    name: "pause",
    summary: "let a run rest after what is under way, until it is continued",
    words: [RUN],
    flags: [TRUST_JOURNAL],
    details: [
      RUN_IDS,
      "Whatever process drives the run finishes and records the answer or the tools that are under way, and exits with 5.",
      "`resume` refuses a paused run; `continue` goes on with it. A run that nobody drives is marked as paused.",
    ],
    examples: ["lockstep pause @last"],
    document: "plain",
    load: async () => (await import("./commands/steer.ts")).pause,
  },
  {
    name: "stop",
    summary: "stop a run that another process drives, as Ctrl-C there would",
    words: [RUN],
    flags: [TRUST_JOURNAL],
    details: [RUN_IDS, "What is under way is given up; what was committed is kept, and `resume` goes on."],
    examples: ["lockstep stop @last"],
    document: "plain",
    load: async () => (await import("./commands/steer.ts")).stop,
  },
  {
    name: "continue",
    summary: "go on with a run, also if it was paused",
    words: [RUN],
    flags: GOING_ON,
    details: [RUN_IDS],
    examples: ["lockstep continue @last"],
    document: "result",
    load: async () => (await import("./commands/steer.ts")).goOn,
  },
  {
    name: "check",
    summary: "find what is wrong with an agent before it runs",
    words: [{ ...AGENT, optional: true }],
    flags: [
      STRICT,
      { name: "fix", help: "mend what has one right answer, and check again" },
      { name: "dry-run", help: "with --fix: only say what would be fixed" },
      { name: "sarif", help: "print the findings as SARIF 2.1.0, for code hosts and editors" },
      { name: "max-turns", takes: "N", help: "fail when a run could take more than N answers of the model" },
      { name: "watch", help: "check again whenever a file of the agent changes, until Ctrl-C" },
    ],
    details: [
      "Without NAME all agents of the project are checked. Nothing is run and no model is asked.",
      "--fix changes JSON files at the place and leaves the rest as written. It writes no prompts and makes no",
      "steps: a missing continuation.X has to be written by somebody who knows what it is for.",
    ],
    examples: [
      "lockstep check",
      "lockstep check iterator --strict",
      "lockstep check iterator --fix --dry-run",
      "lockstep check --sarif > lockstep.sarif",
    ],
    document: "findings",
    load: async () => (await import("./commands/check.ts")).checkAgents,
  },
  {
    name: "graph",
    summary: "draw the flow of an agent, with what check found marked on it",
    words: [AGENT],
    flags: [
      {
        name: "format",
        takes: "FORMAT",
        offers: ["text", "mermaid", "dot", "svg", "json"],
        help: "text, mermaid, dot, svg or json; by default as --out is called, or text",
      },
      { ...OUT, help: "write the drawing to FILE" },
    ],
    examples: ["lockstep graph iterator", "lockstep graph iterator --out flow.svg"],
    document: "findings",
    load: async () => (await import("./graph/graph.ts")).drawGraph,
  },
  {
    name: "explain",
    summary: "tell what holds for an agent or a step, and where it was said",
    words: [AGENT, { name: "STEP", optional: true, is: "step" }],
    flags: [
      { name: "boundary", help: "tell instead what it may touch on this machine: tools, commands, sandbox" },
      SANDBOX,
      NETWORK,
    ],
    details: ["Every value comes with the file and line it was written at, or as a default."],
    examples: [
      "lockstep explain iterator",
      "lockstep explain iterator closure.issue",
      "lockstep explain iterator --boundary",
    ],
    document: "findings",
    load: async () => (await import("./commands/explain.ts")).explain,
  },
  {
    name: "probe",
    summary: "put the limits of an agent to the test on this machine",
    words: [AGENT, { name: "STEP", optional: true, is: "step" }],
    flags: [SANDBOX, NETWORK],
    details: [
      "Harmless attempts are made in the sandbox that a run would have, with its tools, and on Lockstep's own process.",
      "Each limit is reported as enforced, or as advisory: nothing would stop it, or it cannot be tried here.",
      "The exit code is 3 when a sandbox is wanted and cannot be opened. Commands of the project are not run.",
    ],
    examples: ["lockstep probe iterator", "lockstep probe iterator --sandbox on --json"],
    document: "plain",
    load: async () => (await import("./commands/probe.ts")).probeAgent,
  },
  {
    name: "migrate",
    summary: "rewrite the files of an older form in the current one",
    words: [AGENT],
    flags: [{ name: "write", help: "write the files; otherwise only the differences are shown" }],
    details: ["What cannot be carried over is listed. A migrated flow takes the same way as before."],
    examples: ["lockstep migrate iterator", "lockstep migrate iterator --write"],
    document: "plain",
    load: async () => (await import("./commands/migrate.ts")).migrateFiles,
  },
  {
    name: "runs",
    summary: "list the recorded runs, newest first",
    words: [{ ...RUN, repeats: true, optional: true }],
    flags: [
      { name: "limit", takes: "N", help: "list at most N runs (20)" },
      { name: "max", takes: "N", help: "the same as --limit" },
      { name: "watch", help: "list again whenever something changes, until Ctrl-C" },
      {
        name: "prune",
        help: "remove old runs: those older than 30 days, unless the flags below say otherwise",
      },
      {
        name: "older-than",
        takes: "AGE",
        help: "with --prune: runs untouched for AGE, such as 90s, 12h, 30d or 8w",
      },
      { name: "keep", takes: "N", help: "with --prune: all but the newest N" },
      { name: "dry-run", help: "with --prune: only say what would be removed" },
      { name: "yes", short: "y", help: "with --prune: do not ask" },
      TRUST_JOURNAL,
    ],
    details: [
      "SIZE is that of the recorded entries. A run that is being driven is never removed.",
      "With --prune, RUN names the runs to remove, whatever their age: also damaged ones.",
    ],
    examples: [
      "lockstep runs",
      "lockstep runs --limit 100 --json",
      "lockstep runs --watch",
      "lockstep runs --prune --older-than 30d --keep 50 --dry-run",
      "lockstep runs --prune 3f9",
    ],
    document: "plain",
    load: async () => (await import("./commands/runs.ts")).listRecorded,
  },
  {
    name: "show",
    summary: "show how a run went",
    words: [RUN],
    flags: [
      { ...EVENTS, help: "print its journal as JSON lines instead" },
      { name: "audit", help: "print the life of its stages: phases, outcomes, grants, transitions" },
      { name: "result", help: "print only what the run made; exit 1 where there is nothing" },
      {
        name: "follow",
        short: "f",
        help: "show what happens while another process drives the run, until it ends",
      },
    ],
    details: [RUN_IDS, "Showing a failed run is no failure: the exit code is 0."],
    examples: [
      "lockstep show @last",
      "lockstep show @last --result",
      "lockstep show @failed --json",
      "lockstep show @last -f",
    ],
    document: "result",
    load: async () => (await import("./commands/show.ts")).showRun,
  },
  {
    name: "effects",
    summary: "list what a run did to the world: branches, remotes, issues, pull requests",
    words: [RUN],
    flags: [],
    details: [
      RUN_IDS,
      "applied: it was done. held: it was not, and the detail tells how to do it by hand. failed: resume tries again.",
      "intended: nobody has heard how it went; resume looks before it does anything.",
    ],
    examples: ["lockstep effects @last", "lockstep effects @last --json"],
    document: "plain",
    load: async () => (await import("./commands/effects.ts")).listEffects,
  },
  {
    name: "logs",
    summary: "print the log of a run, or its whole conversation",
    words: [RUN],
    flags: [
      { name: "follow", short: "f", help: "go on printing until the run has ended" },
      {
        name: "level",
        takes: "LEVEL",
        offers: ["debug", "info", "warn", "error"],
        help: "debug, info, warn or error, and whatever is worse (info)",
      },
      {
        name: "transcript",
        help: "print what was said to the model and by it, tool calls and results included",
      },
    ],
    details: [
      RUN_IDS,
      "It is made from the journal, so there is one for every run, whether or not a log file was written.",
      "With --json each line is one JSON object. --verbose is --level debug, with nothing cut short.",
    ],
    examples: [
      "lockstep logs @last",
      "lockstep logs @last -f --level warn",
      "lockstep logs 3f9 --transcript",
    ],
    document: "plain",
    load: async () => (await import("./commands/logs.ts")).printLogs,
  },
  {
    name: "why",
    summary: "tell why a visit of a run went the way it did",
    words: [RUN, { name: "STEP[@VISIT]", optional: true, is: "step" }],
    flags: [
      { name: "all", help: "every visit of the run, one after the other" },
      { name: "full", help: "cut nothing short, and show the schemas" },
    ],
    details: [
      RUN_IDS,
      "Without STEP it is the last decision, or the visit that the run ended in; without VISIT the last one of the step.",
      "Everything is worked out again from the journal and the flow that is pinned in it, whatever the files say by now.",
    ],
    examples: [
      "lockstep why @last",
      "lockstep why @failed closure.issue",
      "lockstep why 3f9 closure.issue@2 --json",
    ],
    document: "plain",
    load: async () => (await import("./commands/why.ts")).whyRun,
  },
  {
    name: "worktree",
    summary:
      "list the worktrees that runs have left, remove those with no unsaved work, or repair what was killed",
    words: [{ name: "list|prune|repair", is: ["list", "prune", "repair"] }],
    flags: [{ name: "dry-run", help: "with prune and repair: only say what would be done" }, TRUST_JOURNAL],
    details: [
      "prune removes the worktrees of ended runs in which everything is committed. A branch goes with its worktree only",
      "when the branch it was made from has all of it.",
      "repair puts right what a killed process left half done: records of worktrees that git cannot read, a worktree that is",
      "half removed, and a working tree that was half updated by a merge. Commits and uncommitted work stay.",
    ],
    examples: ["lockstep worktree list", "lockstep worktree prune --dry-run", "lockstep worktree repair"],
    document: "plain",
    load: async () => (await import("./commands/worktree.ts")).worktrees,
  },
  {
    name: "replay",
    summary: "work out every decision of a run again and compare it with the record",
    words: [{ name: "RUN|FILE", repeats: true, optional: true, is: "run" }],
    flags: [{ name: "all", help: "every recorded run" }],
    details: [
      RUN_IDS,
      "A word that ends in .json is a file that `lockstep export` wrote.",
      "No model is asked and no command is run. The exit code is 1 where a decision comes out another way.",
    ],
    examples: [
      "lockstep replay @last",
      "lockstep replay --all --json",
      "lockstep replay test/journals/*.json",
    ],
    document: "plain",
    load: async () => (await import("./commands/replay.ts")).replayRuns,
  },
  {
    name: "fork",
    summary: "go on from an earlier visit of a run, as a new run",
    words: [RUN],
    flags: [
      {
        name: "at",
        takes: "STEP[@VISIT]",
        offers: "step",
        help: "the first visit that is not shared; without VISIT the last one",
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
      "The original stays as it is. So does the working directory: files that later visits wrote are still there.",
    ],
    examples: [
      "lockstep fork @last --at closure.issue@1",
      "lockstep fork 3f9 --at initial.issue --edit output=better.json",
      "lockstep fork 3f9 --at closure.issue --edit prompt=closure.issue:new.md --edit model=closure.issue:haiku",
    ],
    document: "result",
    load: async () => (await import("./commands/fork.ts")).forkRun,
  },
  {
    name: "diff",
    summary: "tell where two runs part ways",
    words: [RUN, RUN],
    flags: [],
    details: [RUN_IDS, "The first difference comes first. Differences are no failure: the exit code is 0."],
    examples: ["lockstep diff 3f9 @last", "lockstep diff 3f9 8bc --json"],
    document: "plain",
    load: async () => (await import("./commands/diff.ts")).diffRuns,
  },
  {
    name: "whatif",
    summary: "show which recorded runs would take a different path with the current files",
    words: [{ ...RUN, repeats: true, optional: true }],
    flags: [
      { name: "agent", takes: "NAME", offers: "agent", help: "the agent whose files are tried" },
      { name: "check", help: "exit 1 when a run would go another way" },
    ],
    details: [
      "Without RUN it is every recorded run of the agent. What was answered, checked and seen then is given to the",
      "flow of the files; no model is asked and no command is run. Where nothing is recorded a run cannot be followed.",
    ],
    examples: ["lockstep whatif --agent iterator", "lockstep whatif --agent iterator @failed --json"],
    document: "plain",
    load: async () => (await import("./commands/whatif.ts")).whatIfRuns,
  },
  {
    name: "export",
    summary: "write a run to one file that replays anywhere",
    words: [RUN],
    flags: [
      { name: "redact", help: "take out what people and models said, as far as the run still replays" },
      { ...OUT, help: "write to FILE instead of stdout" },
    ],
    details: [RUN_IDS, "The flow goes along whole, prompts and schemas included, redacted or not."],
    examples: ["lockstep export @last -o run.json", "lockstep export @failed --redact -o run.json"],
    document: "plain",
    load: async () => (await import("./commands/export.ts")).exportToFile,
  },
  {
    name: "import",
    summary: "make an exported run one of this project",
    words: [{ name: "FILE", is: "file" }],
    flags: [{ name: "as", takes: "ID", help: "give it this id instead of its own" }, TRUST_JOURNAL],
    examples: ["lockstep import run.json", "lockstep import run.json --as theirs"],
    document: "plain",
    load: async () => (await import("./commands/export.ts")).importFromFile,
  },
  {
    name: "trust",
    summary: "show what an agent needs your trust for, list what you trust, or take it back",
    words: [
      { name: "show|list|revoke", is: ["show", "list", "revoke"] },
      { name: "NAME|DIGEST|DIR", optional: true, is: "agent" },
    ],
    flags: [{ name: "all", help: "with revoke: trust nothing any more" }, SANDBOX],
    details: [
      "show NAME prints everything that the files of the agent make Lockstep do, with its digest and whether you trust it;",
      "the exit code is 3 where a run would need your yes first. revoke takes an agent of this project, a digest, the",
      "folder of a project, or a state folder (.lockstep), which then can only be looked at until you accept it again.",
      "list also shows the state folders that are known as yours. --all keeps those that your own runs made.",
      "All of it is kept in lockstep/trust/ and lockstep/states/ in your config folder.",
    ],
    examples: [
      "lockstep trust show iterator",
      "lockstep trust list --json",
      "lockstep trust revoke iterator",
      "lockstep trust revoke --all",
    ],
    document: "plain",
    load: async () => (await import("./commands/trust.ts")).trust,
  },
  {
    name: "list",
    summary: "list the agents of the project",
    words: [],
    flags: [],
    examples: ["lockstep list", "lockstep list --json"],
    document: "plain",
    load: async () => (await import("./commands/list.ts")).listProject,
  },
  {
    name: "init",
    summary: "write a small agent that passes check and runs without a key",
    words: [{ name: "NAME", is: "new" }],
    flags: [{ name: "stages", help: "write a machine of stages instead of a registry of steps" }],
    details: ["Writes .agent/NAME/. Nothing that is there already is overwritten."],
    examples: ["lockstep init notes", "lockstep init notes --stages"],
    document: "plain",
    load: async () => (await import("./commands/init.ts")).initAgent,
  },
  {
    name: "models",
    summary: "list the names of models: what each means, and whether it can be asked",
    words: [],
    flags: [],
    details: [
      `Give names a meaning in lockstep/config.json in your config folder (${manual("models")}). No model is asked.`,
    ],
    examples: ["lockstep models", "lockstep models --json"],
    document: "plain",
    load: async () => (await import("./commands/models.ts")).listModels,
  },
  {
    name: "doctor",
    summary: "see whether everything needed is here",
    words: [],
    flags: [
      { name: "online", help: "also see whether the models' services can be reached" },
      {
        name: "journal",
        help: "check the whole record of runs instead: every page, entry, flow and file of it; nothing is changed",
      },
    ],
    examples: [
      "lockstep doctor",
      "lockstep doctor --online",
      "lockstep doctor --journal",
      "lockstep doctor --json",
    ],
    document: "plain",
    load: async () => (await import("./commands/doctor.ts")).examine,
  },
  {
    name: "salvage",
    summary: "write what can be read of a damaged record of runs into a new state folder",
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
      "The damaged record is only read. Each run is whole, partial (it can be read up to an entry, and not resumed) or lost.",
      "The two commands that put the new folder in place are printed. The exit code is 1 where something is lost.",
    ],
    examples: ["lockstep salvage", "lockstep salvage --out rescued --json"],
    document: "plain",
    load: async () => (await import("./commands/salvage.ts")).salvageRuns,
  },
  {
    name: "bench",
    summary: "measure this machine against the promised figures",
    words: [],
    flags: [
      { name: "check", help: "exit 1 when a figure is out of its limit" },
      {
        name: "part",
        takes: "PART",
        offers: PARTS,
        help: `only one of ${PARTS.join(", ")}`,
      },
    ],
    examples: ["lockstep bench", "lockstep bench --check --json"],
    document: "plain",
    load: async () => (await import("./commands/bench.ts")).bench,
  },
  {
    name: "completion",
    summary: "print a script that completes commands in your shell",
    words: [{ name: "bash|zsh|fish", is: ["bash", "zsh", "fish"] }],
    flags: [],
    details: [
      "Commands, flags and their values, agents with their parameters, steps and runs are completed.",
      "In zsh the folder must be in fpath before compinit runs: fpath=(~/.zfunc $fpath).",
    ],
    examples: [
      "lockstep completion bash > ~/.local/share/bash-completion/completions/lockstep",
      "lockstep completion zsh > ~/.zfunc/_lockstep",
      "lockstep completion fish > ~/.config/fish/completions/lockstep.fish",
    ],
    document: "plain",
    load: async () => (await import("./commands/completion.ts")).printCompletion,
  },
  {
    name: "help",
    summary: "show help, for all or for one command",
    words: [{ name: "COMMAND", optional: true, is: "command" }],
    flags: [],
    examples: ["lockstep help run"],
    document: "plain",
    load: async () => (await import("./help.ts")).printHelp,
  },
];

export function commandNamed(word: string): Command {
  const command = COMMANDS.find((other) => other.name === word);
  if (command !== undefined) return command;
  const candidates = COMMANDS.map((other) => other.name);
  throw new UsageError(`There is no command "${word}".`, { word, candidates });
}

/** The flags of all commands, each once: enough to tell on a line which words are flags' values. */
export function everyFlag(): readonly Flag[] {
  const all = [...GLOBAL_FLAGS, ...COMMANDS.flatMap((command) => command.flags)];
  return all.filter((flag, place) => all.findIndex((other) => other.name === flag.name) === place);
}
