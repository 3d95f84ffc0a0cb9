/** Every command and its flags: what the parser, the help and the shell completions are made from. Loads nothing. */
import { UsageError, type Flag } from "./args.ts";
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

/** What a command is told beside flags. `is` tells a shell what to offer. */
export type Word = {
  readonly name: string;
  readonly optional?: true;
  readonly is: "agent" | "run" | "shell" | "command" | "new" | "step" | "worktrees";
};

export const GLOBAL_FLAGS: readonly Flag[] = [
  { name: "json", help: "print exactly one JSON document on stdout, on failure too" },
  { name: "quiet", short: "q", help: "no progress and no report, errors only" },
  { name: "verbose", short: "v", help: "show every answer, tool call and retry" },
  { name: "color", help: "colours even off a terminal; --no-color for none" },
  { name: "cwd", short: "C", takes: "DIR", help: "work as if started in DIR" },
  { name: "state", takes: "DIR", help: "keep run state in DIR instead of .lockstep" },
  { name: "help", short: "h", help: "show help, also for a single command" },
  { name: "version", help: "show the version" },
];

const SCRIPT: Flag = {
  name: "script",
  takes: "FILE",
  help: "let a script answer instead of a model (YAML or JSON)",
};
const MODEL: Flag = {
  name: "model",
  takes: "NAME",
  help: "the model that all steps ask: a name of yours, or provider/model",
};
const BACKEND: Flag = {
  name: "backend",
  takes: "ID",
  help: "what drives the model: ai-sdk, unless you say otherwise",
};
const EVENTS: Flag = { name: "events", help: "stream the journal as JSON lines on stdout" };
const TRUST: Flag = {
  name: "trust",
  takes: "DIGEST",
  help: "allow exactly the commands that have this digest",
};
const ON_PERMISSION: Flag = {
  name: "on-permission",
  takes: "WHAT",
  help: "deny, halt or allow: what becomes of a question when nobody can be asked",
};
const SPENDING: readonly Flag[] = [
  { name: "max-turns", takes: "N", help: "stop after N answers of the model" },
  { name: "max-tokens", takes: "N", help: "stop after N tokens, in and out" },
  { name: "max-cost", takes: "USD", help: "stop after so many dollars, as far as prices are known" },
  { name: "max-time", takes: "TIME", help: "stop after so long, such as 90s, 20m or 2h" },
];
const SANDBOX: Flag = {
  name: "sandbox",
  takes: "WHEN",
  help: "on, off or auto: confine commands always, never, or when the agent asks for it",
};
const LOG: Flag = {
  name: "log",
  takes: "DIR",
  help: "write a log file into DIR, also where the agent asks for none",
};
const STRICT: Flag = { name: "strict", help: "count warnings as errors" };

/** Where a run works, and where its work goes. */
const WORKTREE: readonly Flag[] = [
  { name: "worktree", help: "work in a git worktree made for the run; --no-worktree: in this folder" },
  { name: "branch", takes: "NAME", help: "the branch of the worktree, which must be new" },
  { name: "base-branch", takes: "NAME", help: "begin from this branch, and merge into it (the current one)" },
  { name: "merge", help: "merge the branch when the run is complete; --no-merge: leave it" },
  { name: "push", help: "push the result" },
  { name: "push-remote", takes: "NAME", help: "push to this remote" },
  { name: "create-pr", help: "push the branch for a pull request instead of merging it" },
  { name: "pr-target", takes: "NAME", help: "the branch that the pull request is for" },
  { name: "dry-run", help: "merge and push nothing: only say what would be done" },
];

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
      ON_PERMISSION,
      ...SPENDING,
      SANDBOX,
      LOG,
      STRICT,
      ...WORKTREE,
      { name: "validate", help: "only check the agent, as `lockstep check` does" },
    ],
    details: [
      "The parameters that the agent declares are flags too: `lockstep run NAME --help` lists them.",
      "Where a parameter has the name of a flag above, the flag is there as --ls-<flag>.",
      "Commands of the project run only once they are trusted: say yes when asked, or pass --trust DIGEST;",
      "on a throw-away machine LOCKSTEP_TRUST=all in the environment trusts everything.",
      "What becomes of the work is told by runner.execution of agent.json, or by the flags from --worktree on.",
      'The last line on stdout is {"outcome":"success"} or {"outcome":"failed"}.',
    ],
    examples: [
      "lockstep run iterator --issue 12",
      "lockstep run iterator --issue 12 --model sonnet",
      "lockstep run notes --topic tides --script .agent/notes/script.yaml",
      "git diff | lockstep run reviewer --script replies.yaml --json",
      "lockstep run iterator --issue 12 --worktree --no-merge",
      "lockstep run release --input task='bump the version' --input @context.json",
    ],
    document: "result",
    takesParameters: true,
    load: async () => (await import("./run.ts")).runAgent,
  },
  {
    name: "resume",
    summary: "go on with a run where it stopped",
    words: [RUN],
    flags: [SCRIPT, MODEL, BACKEND, EVENTS, TRUST, ON_PERMISSION, SANDBOX, LOG, ...SPENDING],
    details: [
      RUN_IDS,
      "Steps that were committed are not run again. A limit that was reached has to be raised.",
      "The model is the one the run began with, unless another is named.",
    ],
    examples: [
      "lockstep resume @last",
      "lockstep resume 3f9 --script more.yaml",
      "lockstep resume @failed --model openai/gpt-6.1-sol",
    ],
    document: "result",
    load: async () => (await import("./resume.ts")).resumeRun,
  },
  {
    name: "answer",
    summary: "answer a run that waits for a word, and let it go on",
    words: [RUN, { name: "CHOICE", is: "new", optional: true }],
    flags: [SCRIPT, EVENTS, TRUST, ON_PERMISSION, ...SPENDING],
    details: [
      RUN_IDS,
      "Without CHOICE the question is shown. A run waits when it was started with --on-permission halt.",
    ],
    examples: ["lockstep answer @last", "lockstep answer 3f9 allow"],
    document: "result",
    load: async () => (await import("./answer.ts")).answerRun,
  },
  {
    name: "check",
    summary: "find what is wrong with an agent before it runs",
    words: [{ ...AGENT, optional: true }],
    flags: [
      STRICT,
      { name: "fix", help: "mend what has one right answer, and check again" },
      { name: "dry-run", help: "with --fix: only say what would be mended" },
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
    load: async () => (await import("./check.ts")).checkAgents,
  },
  {
    name: "graph",
    summary: "draw the flow of an agent, with what check found marked on it",
    words: [AGENT],
    flags: [
      {
        name: "format",
        takes: "FORMAT",
        help: "text, mermaid, dot, svg or json; by default as --out is called, or text",
      },
      { name: "out", takes: "FILE", help: "write the drawing to FILE" },
    ],
    examples: ["lockstep graph iterator", "lockstep graph iterator --out flow.svg"],
    document: "findings",
    load: async () => (await import("./graph.ts")).drawGraph,
  },
  {
    name: "explain",
    summary: "tell what holds for an agent or a step, and where it was said",
    words: [AGENT, { name: "STEP", optional: true, is: "step" }],
    flags: [
      { name: "boundary", help: "tell instead what it may touch on this machine: tools, commands, sandbox" },
      SANDBOX,
    ],
    details: ["Every value comes with the file and line it was written at, or as a default."],
    examples: [
      "lockstep explain iterator",
      "lockstep explain iterator closure.issue",
      "lockstep explain iterator --boundary",
    ],
    document: "findings",
    load: async () => (await import("./explain.ts")).explain,
  },
  {
    name: "probe",
    summary: "put the limits of an agent to the test on this machine",
    words: [AGENT, { name: "STEP", optional: true, is: "step" }],
    flags: [SANDBOX],
    details: [
      "Small attempts are made in the sandbox that a run would have; each limit is told as enforced, or as advisory.",
      "The exit code is 3 when a sandbox is wanted and cannot be opened. Commands of the project are not run.",
    ],
    examples: ["lockstep probe iterator", "lockstep probe iterator --sandbox on --json"],
    document: "plain",
    load: async () => (await import("./probe.ts")).probeAgent,
  },
  {
    name: "migrate",
    summary: "rewrite the files of an older form in the current one",
    words: [AGENT],
    flags: [{ name: "write", help: "write the files; otherwise only the differences are shown" }],
    details: ["What cannot be carried over is listed. A migrated flow takes the same way as before."],
    examples: ["lockstep migrate iterator", "lockstep migrate iterator --write"],
    document: "plain",
    load: async () => (await import("./migrate.ts")).migrateFiles,
  },
  {
    name: "runs",
    summary: "list the recorded runs, newest first",
    words: [],
    flags: [{ name: "limit", takes: "N", help: "list at most N runs (20)" }],
    examples: ["lockstep runs", "lockstep runs --limit 100 --json"],
    document: "plain",
    load: async () => (await import("./runs.ts")).listRecorded,
  },
  {
    name: "show",
    summary: "show how a run went",
    words: [RUN],
    flags: [
      { ...EVENTS, help: "print its journal as JSON lines instead" },
      { name: "audit", help: "print the life of its stages: phases, outcomes, grants, transitions" },
    ],
    details: [RUN_IDS, "Showing a failed run is no failure: the exit code is 0."],
    examples: ["lockstep show @last", "lockstep show @failed --json"],
    document: "result",
    load: async () => (await import("./show.ts")).showRun,
  },
  {
    name: "logs",
    summary: "print the log of a run, or its whole conversation",
    words: [RUN],
    flags: [
      { name: "follow", short: "f", help: "go on printing until the run has ended" },
      { name: "level", takes: "LEVEL", help: "debug, info, warn or error, and whatever is worse (info)" },
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
    load: async () => (await import("./logs.ts")).printLogs,
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
    load: async () => (await import("./why.ts")).whyRun,
  },
  {
    name: "worktree",
    summary: "list the worktrees that runs have left, or remove those that nothing is lost with",
    words: [{ name: "list|prune", is: "worktrees" }],
    flags: [{ name: "dry-run", help: "with prune: only say what would be removed" }],
    details: [
      "prune removes the worktrees of ended runs in which everything is committed. A branch goes with its worktree only",
      "when the branch it was made from has all of it.",
    ],
    examples: ["lockstep worktree list", "lockstep worktree prune --dry-run"],
    document: "plain",
    load: async () => (await import("./worktree.ts")).worktrees,
  },
  {
    name: "list",
    summary: "list the agents of the project",
    words: [],
    flags: [],
    examples: ["lockstep list", "lockstep list --json"],
    document: "plain",
    load: async () => (await import("./list.ts")).listProject,
  },
  {
    name: "init",
    summary: "write a small agent that passes check and runs without a key",
    words: [{ name: "NAME", is: "new" }],
    flags: [{ name: "stages", help: "write a machine of stages instead of a registry of steps" }],
    details: ["Writes .agent/NAME/. Nothing that is there already is overwritten."],
    examples: ["lockstep init notes", "lockstep init notes --stages"],
    document: "plain",
    load: async () => (await import("./init.ts")).initAgent,
  },
  {
    name: "models",
    summary: "list the names of models: what each means, and whether it can be asked",
    words: [],
    flags: [],
    details: [
      "Names are given a meaning in lockstep/config.json in your config folder (docs/models.md). Nothing is asked.",
    ],
    examples: ["lockstep models", "lockstep models --json"],
    document: "plain",
    load: async () => (await import("./models.ts")).listModels,
  },
  {
    name: "doctor",
    summary: "see whether everything needed is here",
    words: [],
    flags: [{ name: "online", help: "also see whether the models' services can be reached" }],
    examples: ["lockstep doctor", "lockstep doctor --online", "lockstep doctor --json"],
    document: "plain",
    load: async () => (await import("./doctor.ts")).examine,
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
        help: "only memory, durable, growth, concurrency, resume, load, cold, stages, http or gate",
      },
    ],
    examples: ["lockstep bench", "lockstep bench --check --json"],
    document: "plain",
    load: async () => (await import("./bench.ts")).bench,
  },
  {
    name: "completion",
    summary: "print a script that completes commands in your shell",
    words: [{ name: "bash|zsh|fish", is: "shell" }],
    flags: [],
    examples: [
      "lockstep completion bash > ~/.local/share/bash-completion/completions/lockstep",
      "lockstep completion fish > ~/.config/fish/completions/lockstep.fish",
    ],
    document: "plain",
    load: async () => (await import("./completion.ts")).printCompletion,
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
