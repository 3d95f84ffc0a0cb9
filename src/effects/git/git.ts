/** The one place that calls git for us: nothing that a repository could make git start is started, and nothing is thrown. */
import { setTimeout as sleep } from "node:timers/promises";
import { withSettings } from "../../flow/machine/git-variables.ts";
import { NOT_INSTALLED, SHELL, type Programs } from "../../flow/machine/programs.ts";
import { createOverrules, NOTHING_OVERRULED, stampOf } from "./git-overrules.ts";
import type { IndexFiles } from "./index-lock.ts";
import { firstLines } from "../process/output.ts";
import { quoted } from "./words.ts";
import { childEnv, endingOf, isFinished, type Env, type RunProcess } from "../process/process.ts";
import { pidsWith } from "../process/tree.ts";

/** Runs git in a folder. */
export type Git = (cwd: string, args: readonly string[], how?: How) => Promise<GitAnswer>;

export type How = {
  readonly timeoutMs?: number;
  /** Files would be left half changed: it is not interrupted, and goes on to its end when our process ends before it. */
  readonly whole?: true;
  /** It is interrupted with us, and goes on to its end when our process is killed. */
  readonly lasting?: true;
  /** The file that stands in for the index of the working tree. */
  readonly index?: string;
  /** The same, and what git is started by moves it to the place of the index when git has succeeded, and removes the lock. */
  readonly puts?: IndexFiles;
  /** With `puts`: what git is asked after that, when it has succeeded. */
  readonly next?: readonly string[];
  /** What it reads, and the file that its output is added to. */
  readonly pipes?: { readonly input: string; readonly output: string };
  /** It needs the network, or the repository's list of working trees: it is started outside of the sandbox. */
  readonly outside?: true;
  /** Each character of the answer is a byte. */
  readonly bytes?: true;
  /** It only reads settings, and starts nothing whatever they say. */
  readonly harmless?: true;
  /** What it succeeds with depends on git, its settings and the environment alone: it is asked again when they change. */
  readonly settled?: true;
};

export type GitAnswer =
  | { readonly ok: true; readonly out: string }
  /** `exit` is null when it did not come to its own end; `why` is what git said about it, on one line. */
  | { readonly ok: false; readonly exit: number | null; readonly out: string; readonly why: string };

export type GitOptions = {
  /** Ours; git sees what it needs to know the person and to reach a remote, and nothing else. */
  readonly env: Env;
  readonly programs: Pick<Programs, "git" | "path">;
  readonly exec: RunProcess;
  /** How git is started that a sandbox would keep from its work; `exec`, unless there is one. */
  readonly outside?: RunProcess;
  readonly signal: AbortSignal;
  /** Whose git it is: `waitForGit` finds those that outlived their process by it. */
  readonly run?: string;
  /** Hears which settings of a repository are not obeyed, once for each repository. */
  readonly onOverruled?: (keys: readonly string[], top: string) => void;
};

/**
 *     const git = createGit({ env: process.env, programs, exec: runProcess, signal });
 *     const tip = await tipOf(git, "/my/project", "refs/heads/main");
 */
export function createGit(options: GitOptions): Git {
  const { env, programs, exec, outside = exec, signal, run } = options;
  const seen = { ...childEnv(env), ...personal(env), ...GIT_ENV, PATH: programs.path };
  const program = programs.git ?? NOT_INSTALLED;
  const never = new AbortController().signal;
  const overrules = createOverrules(options, async (cwd, args) => {
    const around = {
      cwd,
      env: seen,
      timeoutMs: LISTING_MS,
      maxOutputBytes: MOST_BYTES,
      signal,
      tame: true,
    } as const;
    // Outside: a sandbox may hide a file of settings that git then obeys where it is started without one.
    const result = await outside({ command: gitCommand(program, [...LISTING, ...args]), ...around });
    return isFinished(result) && result.exitCode === 0 && !result.truncated ? result.stdout : null;
  });
  return async (cwd, args, how = {}) => {
    const {
      timeoutMs: asked,
      whole,
      lasting = whole,
      puts,
      next,
      pipes,
      index = puts?.copy,
      outside: isOutside,
      harmless,
      settled,
      bytes,
    } = how;
    const timeoutMs = asked ?? (harmless ? LISTING_MS : TIMEOUT_MS);
    const overruled = harmless ? NOTHING_OVERRULED : await overrules(cwd);
    if (overruled === null)
      return {
        ok: false,
        exit: null,
        out: "",
        why: `git cannot list the settings of the repository in ${cwd}`,
      };
    const question = settled ? JSON.stringify([program, stampOf(program), cwd, args, seen]) : "";
    const known = overruled.answers?.get(question);
    if (known !== undefined) return { ok: true, out: known };
    const variables = {
      ...seen,
      ...withSettings({}, overruled.settings),
      ...overruled.env,
      ...(index !== undefined && { GIT_INDEX_FILE: index }),
      ...(lasting && run !== undefined && { [OF_RUN]: run }),
    };
    const stopping = { signal: whole ? never : signal, ...(lasting && { lasting }) };
    const output = { maxOutputBytes: MOST_BYTES, ...(bytes && { bytes }) };
    const around = { cwd, env: variables, timeoutMs, ...output, ...stopping };
    const start = isOutside ? outside : exec;
    const called = gitCommand(program, args);
    const command =
      puts !== undefined
        ? putting(puts, next === undefined ? [called] : [called, gitCommand(program, next)])
        : pipes !== undefined
          ? [...PIPE, pipes.input, pipes.output, ...called]
          : called;
    const result = await start({ command, ...around, tame: true });
    const { stdout: out, stderr, exitCode, truncated } = result;
    if (isFinished(result) && exitCode === 0 && !truncated) {
      if (settled) overruled.answers?.set(question, out);
      return { ok: true, out };
    }
    if (exitCode === 127) return { ok: false, exit: 127, out, why: "git is not installed" };
    if (truncated) return { ok: false, exit: null, out, why: "git had too much to say" };
    if (!isFinished(result))
      return { ok: false, exit: null, out, why: `git ${args[0]} ${endingOf(result, timeoutMs)}` };
    return { ok: false, exit: exitCode, out, why: wordsOf(stderr) || `git ${args[0]} failed` };
  };
}

/** Our own process may be gone when git has ended. The shell is told only at which places the words of a command are. */
function putting(
  { copy, index, lock }: IndexFiles,
  commands: readonly (readonly string[])[],
): readonly string[] {
  let place = 3;
  const calls = commands.map((words) => words.map(() => `"\${${(place += 1)}}"`).join(" "));
  const script = `${calls.join(" && ")} || exit; mv -f "$1" "$2" && exec rm -f "$3"`;
  return [SHELL, "-c", script, "sh", copy, index, lock, ...commands.flat()];
}

/** Takes the place of the shell, so that it is one process. */
const PIPE: readonly string[] = [
  SHELL,
  "-c",
  'input=$1 output=$2; shift 2; exec "$@" >>"$output" <<END\n$input\nEND\n',
  "sh",
];

/** A question to git was cut off by an interruption: its answer says nothing, and nothing may be concluded from it. */
export class GitInterrupted extends Error {
  override readonly name = "Interrupted";
}

/** The same git, which throws `Interrupted` in place of an answer that was cut off. */
export function unlessInterrupted(git: Git, signal: AbortSignal): Git {
  return async (cwd, args, how) => {
    const answer = await git(cwd, args, how);
    if (!answer.ok && answer.exit === null && signal.aborted) throw new GitInterrupted(answer.why);
    return answer;
  };
}

/** The variable by which the git of a run is found. */
const OF_RUN = "LOCKSTEP_GIT_OF";

/**
 * Waits for a git that goes on although the process of the run has ended. Gives the id of one that is still at work after
 * that time; null: there is none, or the system cannot tell.
 */
export async function waitForGit(
  run: string,
  onWait: (pid: number) => void,
  longestMs = CHECKOUT_MS,
): Promise<number | null> {
  const find = () => pidsWith(OF_RUN, run)[0] ?? null;
  const first = find();
  if (first !== null) onWait(first);
  for (let waited = 0, pid = first; pid !== null; waited += WAIT_MS, pid = find()) {
    if (waited >= longestMs) return pid;
    await sleep(WAIT_MS);
  }
  return null;
}

const WAIT_MS = 50;

/** How git is called, also for questions that other files ask it. */
export function gitCommand(program: string, args: readonly string[]): readonly string[] {
  return [program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", ...QUIETLY, ...args];
}

/**
 * What no repository is to choose: hooks, monitors, editors, other programs for differences and signatures, questions, and
 * what git does beside what it was asked for. Nor is a folder a repository that only looks like one.
 */
const QUIETLY: readonly string[] = [
  "safe.bareRepository=explicit",
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.askPass=",
  "core.editor=false",
  "credential.interactive=false",
  "diff.external=",
  "diff.ignoreSubmodules=dirty",
  "log.showSignature=false",
  "commit.gpgSign=false",
  "push.gpgSign=false",
  "merge.verifySignatures=false",
  "protocol.ext.allow=never",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  "push.recurseSubmodules=no",
  "push.followTags=false",
  "gc.auto=0",
  "maintenance.auto=false",
  // Nor may it hide work from git when git is asked to remove only what holds none.
  "status.showUntrackedFiles=all",
  "status.submoduleSummary=false",
].flatMap((setting) => ["-c", setting]);

export const GIT_ENV: Env = {
  GIT_ALLOW_PROTOCOL: "file:http:https:ssh",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "",
  LC_ALL: "C",
};

/** It reads a few small files; one that is a pipe would keep it waiting. */
const LISTING_MS = 5_000;
const LISTING = ["config", "--list", "--show-scope", "--show-origin", "-z"];

/** Who the person is, and how their machine reaches a remote. Nothing that points git at another repository. */
function personal(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([name]) => PERSONAL.has(name)));
}

const PERSONAL: ReadonlySet<string> = new Set(
  [
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL",
    "XDG_CONFIG_HOME GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM",
    "SSH_AUTH_SOCK GIT_SSH GIT_SSH_COMMAND GIT_SSL_CAINFO SSL_CERT_FILE SSL_CERT_DIR",
    "http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY",
  ].flatMap((names) => names.split(" ")),
);

const TIMEOUT_MS = 2 * 60_000;
/** Of what writes all files of a working tree. */
export const CHECKOUT_MS = 15 * 60_000;
const MOST_BYTES = 16 * 1024 * 1024;

/** What git or the other side said, without the advice that is meant for somebody at a terminal. */
function wordsOf(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("hint:"));
  const plain = lines.map((line) => line.replace(/^(?:fatal|error|warning): /, "").trim());
  const words = firstLines(plain.join("\n"));
  const lock = /Unable to create '(.+\.lock)': File exists/.exec(stderr)?.[1];
  return lock === undefined
    ? words
    : `${words}; if no git is at work there, remove it with: rm ${quoted(lock)}`;
}
