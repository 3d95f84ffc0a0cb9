/**
 * A project with a remote and a run in it that has done its work in a worktree and is about to end. It lies in one place
 * and is put back there from a copy for every chain of strikes, because git and the journal record absolute paths.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MAIN, start, type Ran } from "../cli/world.ts";
import type { StandIn } from "../github/stand-in.ts";
import { openJournal } from "../../src/run/index.ts";
import { agentFiles } from "../run/project.ts";
import type { Blow } from "./strike.ts";
import { makeHalts, type Halts, type Seen } from "./halts.ts";

export type Scenario = {
  readonly name: string;
  /** Flags of `run`. */
  readonly flags: readonly string[];
  /** Struck at from the first line of the run on, not at its end. */
  readonly isWhole?: true;
  /** In the user's checkout, before the run and after its work: `git` and the like. */
  readonly before?: string;
  readonly meanwhile?: string;
  /** What the agent writes into its worktree. Not given: nothing. */
  readonly work?: string;
  /** Another agent's issue on GitHub: it is labelled, and closed. */
  readonly github?: true;
  /** Uncommitted in the user's checkout at the end, as `git status --porcelain` says it. */
  readonly users?: readonly string[];
  /** The branches that the user's repository and the remote have in the end, with the number of commits on each. */
  readonly local: { readonly [branch: string]: number };
  readonly remote: { readonly [branch: string]: number };
  /** The branch that the user is on. */
  readonly on?: string;
  readonly effects: readonly string[];
  /** Whether the worktree is there in the end. */
  readonly kept?: true;
  /** In the sandbox, where only filters are struck at. */
  readonly isConfined?: true;
  /** Only these commands of git, "write" and "file" are struck at. */
  readonly at?: readonly string[];
  /** Only before it and at its first changes. */
  readonly isEarly?: true;
  readonly blows?: readonly Blow[];
  /** How many strikes it gets, compared with others. */
  readonly share?: number;
};

export type Struck = {
  readonly scenario: Scenario;
  readonly root: string;
  readonly home: string;
  readonly remote: string;
  readonly env: NodeJS.ProcessEnv;
  readonly halts: Halts;
  /** The first line that is struck at. */
  readonly begin: readonly string[];
  /** The line that goes on with the run; null: there is no run yet. */
  readonly resume: () => Promise<readonly string[] | null>;
  /** Everything is as it was before the first line. */
  readonly restore: () => Promise<void>;
  /** The real one, and it must succeed. */
  readonly git: (cwd: string, ...args: readonly string[]) => Promise<string>;
  /** Of a first line that nobody struck at. */
  readonly recorded: Seen;
};

const CONFIG = `[user]
	name = Somebody
	email = somebody@example.invalid
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
`;
const ADDRESS = "https://github.com/octo/demo.git";

export async function struckWorld(
  root: string,
  scenario: Scenario,
  cache: NodeJS.ProcessEnv,
  stand?: StandIn,
): Promise<Struck> {
  const [home, remote, copy] = [join(root, "project"), join(root, "remote.git"), `${root}-copy`];
  rmSync(root, { recursive: true, force: true });
  rmSync(copy, { recursive: true, force: true });
  for (const folder of ["user", "tmp", "project"]) mkdirSync(join(root, folder), { recursive: true });
  const halts = makeHalts(join(root, "halts"), scenario.github);
  const env: NodeJS.ProcessEnv = {
    ...cache,
    // In the sandbox the git that halts could not write down that it does.
    PATH: scenario.isConfined ? process.env.PATH : `${halts.bin}:${process.env.PATH}`,
    HOME: join(root, "user"),
    TMPDIR: join(root, "tmp"),
    GIT_CONFIG_NOSYSTEM: "1",
    LOCKSTEP_TRUST: "all",
    NODE_OPTIONS: `--import=${halts.preload}`,
    ...stand?.env,
  };
  const own = { ...env, PATH: process.env.PATH, REMOTE: remote };
  const done = async (cwd: string, program: string, ...args: readonly string[]) => {
    const ran = await start(program, args, cwd, { env: own });
    assert.equal(ran.code, 0, `${program} ${args.join(" ")}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout.trimEnd();
  };
  const lockstep = async (...args: readonly string[]): Promise<Ran> =>
    await start(process.execPath, [MAIN, ...args], home, { env });
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  put("user/.gitconfig", CONFIG);
  for (const [path, text] of Object.entries(agent(scenario))) put(`project/${path}`, text);
  for (let nth = 0; nth < 3; nth += 1) put(`project/files/${nth}.txt`, `${nth}\n`);
  put("working.json", JSON.stringify({ replies: working(scenario) }));
  put("closing.json", JSON.stringify({ replies: [CLOSING] }));
  put("whole.json", JSON.stringify({ replies: [...working(scenario), CLOSING] }));
  const address = scenario.github ? ADDRESS : remote;
  await done(
    home,
    "sh",
    "-ec",
    `git init -q --template=; git init -q --bare --template= "$REMOTE"
     git -C "$REMOTE" config core.logAllRefUpdates always
     git remote add origin ${address}; ${scenario.github ? `git config "url.$REMOTE.insteadOf" ${ADDRESS}` : ""}
     git add -A; git commit -qm start; git push -q origin main; git branch side; ${scenario.before ?? ""}`,
  );

  const issue = scenario.github ? ["--issue", "1"] : [];
  const sandbox = ["--sandbox", scenario.isConfined ? "on" : "off", "--json"];
  const run = ["run", "worker", ...issue, "--branch", "mine", ...scenario.flags, ...sandbox];
  const scripted = (name: string) => ["--script", join(root, `${name}.json`)];
  if (scenario.isWhole !== true) {
    halts.plan(null);
    const began = await lockstep(...run, ...scripted("working"));
    const { code } = JSON.parse(began.stdout) as { readonly code: string };
    assert.equal(code, "SCRIPT_EXHAUSTED", began.stdout + began.stderr);
  }
  if (scenario.meanwhile !== undefined) await done(home, "sh", "-ec", scenario.meanwhile);

  await done("/", "cp", "-a", root, copy);
  const restore = async () => {
    await done("/", "rm", "-rf", root);
    await done("/", "cp", "-a", copy, root);
    // Git knows files by their inodes, among others, and would have to read them again.
    const refresh = "git update-index -q --refresh || true";
    await done(
      home,
      "sh",
      "-c",
      `${refresh}; test ! -d .worktrees/mine || (cd .worktrees/mine && ${refresh})`,
    );
  };
  const resume = async () => {
    const id = await runIn(join(home, ".lockstep"));
    if (id === null) return null;
    const line = ["resume", id, ...sandbox];
    return scenario.isWhole ? line : [...line, ...scripted("closing")];
  };
  await restore();
  const begin = scenario.isWhole ? [...run, ...scripted("whole")] : (await resume())!;
  halts.plan("record");
  const ended = await lockstep(...begin);
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  const recorded = halts.seen();
  const git = async (cwd: string, ...args: readonly string[]) => await done(cwd, "git", ...args);
  return { scenario, root, home, remote, env, halts, begin, resume, restore, git, recorded };
}

/** The only run of a journal. */
async function runIn(state: string): Promise<string | null> {
  if (!existsSync(join(state, "runs.db"))) return null;
  const journal = await openJournal(state, { now: Date.now });
  try {
    const [row, ...others] = await journal.list();
    assert.deepEqual(others, []);
    return row?.id ?? null;
  } finally {
    await journal.close();
  }
}

const CLOSING = {
  step: "closure.work",
  output: { stepId: "closure.work", next_action: { action: "closing" } },
};

function working({ work }: Scenario): readonly object[] {
  const calls = [{ name: "Bash", input: { command: `set -e; ${work ?? "true"}` } }];
  const output = { stepId: "initial.work", next_action: { action: "handoff" } };
  return [
    { step: "initial.work", calls },
    { step: "initial.work", output },
  ];
}

function agent({ github }: Scenario): { readonly [path: string]: string } {
  return agentFiles(
    "worker",
    {
      "initial.work": {
        kind: "work",
        intents: ["handoff"],
        transitions: { handoff: { target: "closure.work" } },
      },
      "closure.work": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    },
    {
      ...(github && { agent: { parameters: { issue: { type: "number", cli: "--issue" } } } }),
      runner: {
        flow: { systemPromptPath: "prompts/system.md" },
        verdict: { type: "detect:graph", config: { maxIterations: 5 } },
        boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
        execution: { worktree: { enabled: true } },
        ...(github && { integrations: { github: GITHUB } }),
      },
    },
  );
}

const GITHUB = {
  labels: { completion: { add: ["done"], remove: ["todo"] } },
  defaultClosureAction: "label-and-close",
};

/** Files of git and of ours that only a process at work has. */
export function leftBehind({ root, home, remote }: Struck): readonly string[] {
  const all = [join(home, ".git"), remote, join(root, "tmp"), join(home, ".lockstep")].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).map(({ name, parentPath }) =>
      join(parentPath, name).slice(root.length + 1),
    ),
  );
  return all.filter(
    (path) =>
      path.startsWith("tmp/") ||
      (path.endsWith(".lock") && !path.endsWith("info/lockstep-merge.lock")) ||
      /\.git\/(?:worktrees\/|MERGE_HEAD|AUTO_MERGE|CHERRY_PICK_HEAD)/.test(path),
  );
}
