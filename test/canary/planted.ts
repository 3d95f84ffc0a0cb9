/**
 * A project that plants a program wherever PATH, the working directory, git, npm or Node could make a careless process
 * start it. Each planted program writes down the mount namespace it runs in and then does what its name promises.
 */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { agentFiles, stepTo } from "../run/project.ts";
import { machineFiles } from "../run/stage-project.ts";

export type Planted = {
  readonly base: string;
  readonly home: string;
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  readonly write: (path: string, text: string) => void;
  /** Planted programs that ran, each with where: in our own mount namespace, or in another one. */
  readonly ran: () => readonly { readonly program: string; readonly outside: boolean }[];
  readonly [Symbol.dispose]: () => void;
};

/** What our own process could want to start, directly or through git. */
const NAMES = [
  "git gh sh bash dash node npm npx rg bwrap socat ssh gpg gpg2 git-lfs git-remote-https git-receive-pack",
  "git-upload-pack git-credential-evil env ps kill which uname less vi ssh-askpass evil",
].flatMap((names) => names.split(" "));

const FOLDERS = ["", "bin", "node_modules/.bin", "sub", ".agent/worker"];

const SYSTEM = "git sh bash node rg bwrap socat env".split(" ");

const LOG = "canaries.txt";

/** Not below a scratch folder: those are empty in a sandbox. */
export function plantedProject(): Planted {
  const base = realpathSync(mkdtempSync(join(homedir(), ".lockstep-canary-")));
  const [home, project, remote] = ["home", "project", "remote.git"].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ];
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text, { mode });
  };
  const git = (cwd: string, ...args: readonly string[]) =>
    execFileSync("git", ["-c", "init.defaultBranch=main", "-c", "core.fsmonitor=false", ...args], {
      cwd,
      env: { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, ".gitconfig"), "[user]\n\tname = Somebody\n\temail = somebody@example.invalid\n");

  for (const [path, text] of Object.entries(files())) write(path, text);
  git(base, "init", "-q", "--bare", remote);
  git(project, "init", "-q");
  git(project, "remote", "add", "origin", remote);
  git(project, "add", "-A");
  git(project, "commit", "-qm", "start");
  git(project, "push", "-q", "origin", "main");

  for (const folder of FOLDERS)
    for (const name of NAMES) write(join(folder, name), canary(name, project), 0o755);
  // What the system lacks may well be the user's own there.
  for (const name of SYSTEM) write(join("../home/.local/bin", name), canary(name, project), 0o755);
  plantNested(project, git, write);
  writeFileSync(
    join(project, ".git/config"),
    readFileSync(join(project, ".git/config"), "utf8") + gitConfig(project),
  );
  writeFileSync(join(project, ".git/info/attributes"), "notes.txt filter=x diff=x merge=x\n");
  for (const hook of HOOKS) write(`.git/hooks/${hook}`, canary("evil", project), 0o755);
  writeFileSync(join(project, ".git/info/exclude"), "/*\n!/notes*\n!/src\n!/sub\n");

  const folders = [
    "",
    ".",
    "bin",
    "node_modules/.bin",
    ...["bin", "node_modules/.bin"].map((path) => join(project, path)),
    join(home, ".local/bin"),
  ];
  const log = join(project, LOG);
  const ours = readlinkSync("/proc/self/ns/mnt");
  return {
    base,
    home,
    project,
    env: {
      PATH: [...folders, process.env.PATH].join(":"),
      HOME: home,
      GIT_CONFIG_NOSYSTEM: "1",
      LOCKSTEP_TRUST: "all",
      LOCKSTEP_PACKAGES: process.env.LOCKSTEP_PACKAGES,
      CI: "1",
    },
    write,
    ran: () =>
      (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []).map((line) => {
        const [program = "", namespace = ""] = line.split(" ");
        return { program, outside: namespace === ours };
      }),
    [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }),
  };
}

/** It works like the real one, so that what goes on inside of a sandbox goes on. */
function canary(name: string, project: string): string {
  const log = join(project, LOG);
  return [
    "#!/bin/sh",
    `echo "$0 $(/usr/bin/readlink /proc/self/ns/mnt)" >> '${log}' 2>/dev/null`,
    `for real in /usr/bin/${name} /bin/${name} /usr/lib/git-core/${name}; do test -x $real && exec $real "$@"; done`,
    ...(name === "node" ? [`exec '${process.execPath}' "$@"`] : []),
    "cat >/dev/null 2>&1 </dev/null; exit 0",
    "",
  ].join("\n");
}

const HOOKS =
  "post-checkout pre-commit commit-msg post-commit pre-push pre-merge-commit post-merge reference-transaction post-index-change".split(
    " ",
  );

/** Everything in a repository's own configuration that names a program. */
function gitConfig(project: string): string {
  const evil = join(project, "evil");
  return `
[core]
	fsmonitor = ${evil}
	hooksPath = ${join(project, ".git/hooks")}
	sshCommand = ${evil}
	gitProxy = ${evil}
	pager = ${evil}
	editor = ${evil}
	askPass = ${evil}
	alternateRefsCommand = ${evil}
[diff]
	external = ${evil}
[diff "x"]
	textconv = ${evil}
	command = ${evil}
[filter "x"]
	clean = ${evil} && cat
	smudge = ${evil} && cat
[merge "x"]
	driver = ${evil}
[credential]
	helper = !${evil}
[credential "https://github.com"]
	helper = !${evil}
[gpg]
	program = ${evil}
[gpg "ssh"]
	program = ${evil}
[commit]
	gpgSign = true
[user]
	signingKey = x
[remote "origin"]
	uploadpack = ${evil}
	receivepack = ${evil}
[sequence]
	editor = ${evil}
[alias]
	status = !${evil}
	x = !${evil}
[include]
	path = ../evil.gitconfig
[includeIf "gitdir:**"]
	path = ../evil.gitconfig
[submodule "sub"]
	path = sub
	url = ./sub
	active = true
	update = !${evil}
[uploadpack]
	packObjectsHook = ${evil}
[interactive]
	diffFilter = ${evil}
`;
}

/** A repository in the working tree as a gitlink, and the files of a bare one in a plain folder. */
function plantNested(
  project: string,
  git: (cwd: string, ...args: readonly string[]) => unknown,
  write: Planted["write"],
): void {
  const evil = join(project, "evil");
  git(join(project, "sub"), "init", "-q");
  write("sub/file.txt", "x\n");
  git(join(project, "sub"), "add", "file.txt");
  git(join(project, "sub"), "commit", "-qm", "nested");
  git(project, "add", "sub");
  git(project, "commit", "-qm", "A nested repository");
  write(
    "sub/.git/config",
    `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ${evil}\n[filter "x"]\n\tclean = ${evil} && cat\n`,
  );
  write("sub/.gitattributes", "* filter=x\n");
  write("sub/file.txt", "changed\n");
  write("tools/HEAD", "ref: refs/heads/main\n");
  write(
    "tools/config",
    `[core]\n\tworktree = .\n\tfsmonitor = ${evil}\n\tsshCommand = ${evil}\n[filter "x"]\n\tsmudge = ${evil}\n`,
  );
  write("tools/objects/keep", "");
  write("tools/refs/keep", "");
  write("evil.gitconfig", `[core]\n\tfsmonitor = ${evil}\n\tsshCommand = ${evil}\n`);
}

/** Enough files that a search asks ripgrep. */
const MANY = 600;

function files(): { readonly [path: string]: string } {
  const steps = {
    "initial.work": { ...stepTo("work", { next: "continuation.work" }) },
    "continuation.work": {
      ...stepTo("work", { handoff: "closure.work" }),
    },
    "closure.work": stepTo("closure", { closing: null }),
  };
  const registry = {
    validators: {
      proof: {
        type: "command",
        command: "git status --porcelain >/dev/null; node --version",
        successWhen: "exitCode:0",
        failurePattern: "bad",
      },
    },
    failurePatterns: { bad: { description: "bad", edition: "failed", params: [] } },
    validationSteps: {
      "closure.work": {
        stepId: "closure.work",
        name: "Proof",
        c2: "retry",
        c3: "work",
        validationConditions: [{ validator: "proof" }],
        onFailure: { action: "retry", maxAttempts: 2 },
      },
    },
  };
  const boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits" };
  const flow = { systemPromptPath: "prompts/system.md" };
  const verdict = { type: "detect:graph", config: { maxIterations: 9 } };
  const acting = { enabled: true, types: ["plan"], outputFormat: "json", handlers: { plan: "./plan.mjs" } };
  const source = Array.from({ length: MANY }, (_, n) => [`src/file${n}.txt`, `line ${n}\n`] as const);
  const command = {
    runner: {
      command: "sh",
      args: [
        "-c",
        'git log -1 --format=%s >/dev/null; node --version >/dev/null; echo \'{"stepId":"closure.work","next_action":{"action":"closing"}}\'',
      ],
    },
  };
  const commanded = {
    "initial.work": stepTo("work", { handoff: "closure.work" }),
    "closure.work": { ...stepTo("closure", { closing: null }), more: command },
  };
  return {
    ...Object.fromEntries(source),
    "notes.txt": "one\n",
    ".npmrc": "script-shell=./bin/sh\nnode-options=--import ./evil.mjs\n",
    "package.json": '{"name":"planted","imports":{"#x":"./evil.mjs"},"scripts":{"prepare":"./evil"}}',
    ".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tupdate = !./evil\n',
    ".gitattributes": "notes.txt filter=x diff=x merge=x\n",
    ...agentFiles("worker", steps, {
      registry,
      runner: { flow, verdict, boundaries, execution: { worktree: { enabled: true } }, actions: acting },
    }),
    ".agent/worker/plan.mjs":
      'import { execFileSync } from "node:child_process";\nexport default () => { execFileSync("git", ["--version"]); return "planned"; };\n',
    ".agent/worker/prompts/steps/retry/work/f_failed.md": "Again.\n",
    ...agentFiles("commander", commanded, { runner: { flow, verdict, boundaries } }),
    ...agentFiles(
      "judge",
      { "initial.work": stepTo("work", { next: "initial.work" }) },
      {
        runner: {
          flow,
          boundaries,
          verdict: { type: "meta:custom", config: { handlerPath: "verdict.mjs", maxIterations: 3 } },
        },
      },
    ),
    ".agent/judge/verdict.mjs":
      'import { execFileSync } from "node:child_process";\nexport default () => { execFileSync("git", ["--version"]); return { finished: true, reason: "enough" }; };\n',
    ...agentFiles(
      "asker",
      { "closure.work": stepTo("closure", { closing: null }) },
      {
        runner: { flow, verdict, boundaries, integrations: { github: { enabled: true } } },
      },
    ),
    ...machineFiles({
      stages: { a: {} },
      hooks:
        'import { execFileSync } from "node:child_process";\nexport default { a: { setup: () => { execFileSync("git", ["--version"]); } } };\n',
    }),
  };
}
