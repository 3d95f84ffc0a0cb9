/** A real repository with a real bare remote, and an agent in it that works with Bash as a script says. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import {
  createMemoryJournal,
  resume,
  run,
  type Journal,
  type Result,
  type RunOptions,
} from "../../src/run/index.ts";
import { agentFiles } from "./project.ts";

const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

export type Repository = {
  /** Everything is below this folder. */
  readonly temp: string;
  /** The working tree that runs are started in, on the branch main. */
  readonly home: string;
  readonly remote: string;
  readonly env: NodeJS.ProcessEnv;
  readonly journal: Journal;
  /** Runs git and gives what it prints; it must succeed. */
  readonly git: (cwd: string, ...args: readonly string[]) => string;
  /** Runs a line of shell; it must succeed. `$HOME_TREE` and `$REMOTE` are set. */
  readonly shell: (line: string, cwd?: string) => string;
  readonly write: (path: string, text: string) => void;
  readonly read: (path: string) => string | null;
  /** The agent does what the shell lines say, each in a tool call, and closes. */
  readonly run: (lines: readonly string[], options?: Partial<RunOptions>) => Promise<Result>;
  readonly resume: (result: Result, options?: Partial<RunOptions>) => Promise<Result>;
};

export const WORKER = "worker";

export function repository(
  options: {
    readonly name?: string;
    readonly execution?: object;
    /** With it the agent is about an issue. */
    readonly github?: object;
    readonly isRepository?: boolean;
  } = {},
): Repository {
  const temp = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-worktree-")));
  made.push(temp);
  const home = join(temp, options.name ?? "project");
  const remote = join(temp, "remote.git");
  const env: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    HOME: join(temp, "user"),
    GIT_CONFIG_NOSYSTEM: "1",
    HOME_TREE: home,
    REMOTE: remote,
  };
  const journal = createMemoryJournal();
  const shell = (line: string, cwd = home) => {
    const { status, stdout, stderr } = spawnSync("sh", ["-c", line], { cwd, env, encoding: "utf8" });
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout.trimEnd();
  };
  const git = (cwd: string, ...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync("git", ["-c", "core.fsmonitor=false", ...args], {
      cwd,
      env,
      encoding: "utf8",
    });
    assert.equal(status, 0, `git ${args.join(" ")}: ${stderr}`);
    return stdout.trimEnd();
  };
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  };
  mkdirSync(env.HOME!, { recursive: true });
  writeFileSync(
    join(env.HOME!, ".gitconfig"),
    '[user]\n\tname = Somebody\n\temail = somebody@example.invalid\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n',
  );
  const execution = options.execution ?? { worktree: { enabled: true } };
  for (const [path, text] of Object.entries(agent(execution, options.github))) write(path, text);
  write("a.txt", "one\n");
  if (options.isRepository !== false) {
    git(home, "init", "-q");
    git(temp, "init", "-q", "--bare", remote);
    git(home, "remote", "add", "origin", remote);
    git(home, "add", "-A");
    git(home, "commit", "-qm", "start");
    git(home, "push", "-q", "origin", "main");
  }
  const around = { journal, env: { ...env, LOCKSTEP_TRUST: "all" } };
  return {
    temp,
    home,
    remote,
    env,
    journal,
    git,
    shell,
    write,
    read: (path) => (existsSync(join(home, path)) ? readFileSync(join(home, path), "utf8") : null),
    run: async (lines, more = {}) =>
      await run({ agent: WORKER, cwd: home, ...around, script: replies(lines, env), ...more }),
    resume: async ({ run: id }, more = {}) => await resume({ run: id ?? "", cwd: home, ...around, ...more }),
  };
}

export function replies(lines: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const word = (text = "") => `'${text.replaceAll("'", "'\\''")}'`;
  const set = `HOME_TREE=${word(env.HOME_TREE)}; REMOTE=${word(env.REMOTE)}; set -e;`;
  return [
    ...lines.map((line) => ({
      step: "initial.work",
      calls: [{ name: "Bash", input: { command: `${set} ${line}` } }],
    })),
    { step: "initial.work", output: { stepId: "initial.work", next_action: { action: "handoff" } } },
    { step: "closure.work", output: { stepId: "closure.work", next_action: { action: "closing" } } },
  ];
}

function agent(execution: object, github?: object): { readonly [path: string]: string } {
  const free = { type: "object", additionalProperties: true };
  return agentFiles(
    WORKER,
    {
      "initial.work": {
        kind: "work",
        intents: ["handoff"],
        transitions: { handoff: { target: "closure.work" } },
      },
      "closure.work": {
        kind: "closure",
        intents: ["closing"],
        transitions: { closing: { target: null } },
        ...(github && { properties: { pr: free, issue: free, summary: { type: "string" } } }),
      },
    },
    {
      ...(github && { agent: { parameters: { issue: { type: "number", cli: "--issue" } } } }),
      runner: {
        flow: { systemPromptPath: "prompts/system.md" },
        verdict: { type: "detect:graph", config: { maxIterations: 5 } },
        boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
        execution,
        ...(github && { integrations: { github } }),
      },
    },
  );
}
