/** The one place that calls git for us: nothing that a repository could make git start is started, and nothing is thrown. */
import { firstLines } from "./output.ts";
import { childEnv, endingOf, isFinished, type Env, type RunProcess } from "./process.ts";

/** Runs git in a folder. */
export type Git = (cwd: string, args: readonly string[], how?: How) => Promise<Answer>;

export type How = {
  readonly timeoutMs?: number;
  /** Somebody's files would be left half changed: it is not interrupted. */
  readonly whole?: true;
};

export type Answer =
  | { readonly ok: true; readonly out: string }
  /** `exit` is null when it did not come to its own end; `why` is what git said about it, on one line. */
  | { readonly ok: false; readonly exit: number | null; readonly out: string; readonly why: string };

export type GitOptions = {
  /** Ours; git sees what it needs to know the person and to reach a remote, and nothing else. */
  readonly env: Env;
  readonly exec: RunProcess;
  readonly signal: AbortSignal;
};

/**
 *     const git = createGit({ env: process.env, exec: runProcess, signal });
 *     const tip = await tipOf(git, "/my/project", "refs/heads/main");
 */
export function createGit({ env, exec, signal }: GitOptions): Git {
  const seen = { ...childEnv(env), ...personal(env), ...GIT_ENV };
  const never = new AbortController().signal;
  return async (cwd, args, { timeoutMs = TIMEOUT_MS, whole } = {}) => {
    const around = { cwd, env: seen, timeoutMs, maxOutputBytes: MOST_BYTES, signal: whole ? never : signal };
    const result = await exec({ command: gitCommand(args), ...around, tame: true });
    const { stdout: out, stderr, exitCode, truncated } = result;
    if (isFinished(result) && exitCode === 0 && !truncated) return { ok: true, out };
    if (exitCode === 127) return { ok: false, exit: 127, out, why: "git is not installed" };
    if (truncated) return { ok: false, exit: null, out, why: "git had too much to say" };
    if (!isFinished(result))
      return { ok: false, exit: null, out, why: `git ${args[0]} ${endingOf(result, timeoutMs)}` };
    return { ok: false, exit: exitCode, out, why: wordsOf(stderr) || `git ${args[0]} failed` };
  };
}

/** How git is called, also for questions that other files ask it. */
export function gitCommand(args: readonly string[]): readonly string[] {
  return ["git", "--no-pager", "--no-replace-objects", "--literal-pathspecs", ...QUIETLY, ...args];
}

/**
 * What a repository's own configuration could make git start, or wait for, is put out of use: hooks, monitors, editors,
 * other programs for differences and signatures, questions, and what git does beside what it was asked for.
 */
const QUIETLY: readonly string[] = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.askPass=",
  "core.editor=false",
  "credential.interactive=false",
  "diff.external=",
  "commit.gpgSign=false",
  "push.gpgSign=false",
  "merge.verifySignatures=false",
  "protocol.ext.allow=never",
  "submodule.recurse=false",
  "push.recurseSubmodules=no",
  "push.followTags=false",
  "gc.auto=0",
  "maintenance.auto=false",
  // Nor may it hide work from git when git is asked to remove only what holds none.
  "status.showUntrackedFiles=all",
].flatMap((setting) => ["-c", setting]);

export const GIT_ENV: Env = {
  GIT_ALLOW_PROTOCOL: "file:http:https:ssh",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "",
  LC_ALL: "C",
};

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
  return firstLines(plain.join("\n"));
}

// Questions, and their answers parsed.

/** The commit that a name stands for; null: none. */
export async function tipOf(git: Git, cwd: string, name: string): Promise<string | null> {
  const answer = await git(cwd, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  return answer.ok ? answer.out.trim() : null;
}

/** The branch that a working tree is on; null: on none. */
export async function branchOf(git: Git, cwd: string): Promise<string | null> {
  const answer = await git(cwd, ["symbolic-ref", "--quiet", "HEAD"]);
  return answer.ok ? answer.out.trim().replace(/^refs\/heads\//, "") : null;
}

export type Branch = {
  readonly name: string;
  readonly tip: string;
  /** The working tree that was asked in is on it. */
  readonly isCurrent: boolean;
  /** Only where branches were named. Of that commit: those with the same files have the same. */
  readonly tree: string;
  /** Only where branches were named. The working tree that has it checked out; null: none has. */
  readonly place: string | null;
};

/** Branches by name, in one question; without names, all of them. null: git cannot tell. */
export async function branchesOf(
  git: Git,
  cwd: string,
  names: readonly string[] = [],
): Promise<readonly Branch[] | null> {
  const isNamed = names.length > 0;
  const patterns = isNamed ? names.map((name) => `refs/heads/${name}`) : ["refs/heads"];
  // The tree is in the commit, and of all branches some commit may be missing that nobody needs.
  const more = isNamed ? ["%(tree)", "%(worktreepath)"] : ["", ""];
  const fields = ["%(refname)", "%(objectname)", "%(HEAD)", ...more];
  const answer = await askAgain(git, cwd, ["for-each-ref", `--format=${fields.join("%00")}%00`, ...patterns]);
  if (!answer.ok) return null;
  const facts = answer.out.split("\0");
  return Array.from({ length: Math.floor(facts.length / fields.length) }, (_, index) => {
    const [ref = "", tip = "", head = "", tree = "", place = ""] = facts.slice(index * fields.length);
    const name = ref.trimStart().replace(/^refs\/heads\//, "");
    return { name, tip, tree, place: place === "" ? null : place, isCurrent: head === "*" };
  });
}

/** The tip of a branch that `base` has all of; null: it has not, or there is no such branch. */
export async function mergedTip(git: Git, cwd: string, branch: string, base: string): Promise<string | null> {
  const among = ["--merged", `refs/heads/${base}`, `refs/heads/${branch}`];
  const answer = await git(cwd, ["for-each-ref", "--format=%(refname) %(objectname)", ...among]);
  const found = answer.out.split("\n").find((line) => line.startsWith(`refs/heads/${branch} `));
  return answer.ok ? (found?.split(" ")[1] ?? null) : null;
}

export async function isAncestor(git: Git, cwd: string, older: string, newer: string): Promise<boolean> {
  return (await git(cwd, ["merge-base", "--is-ancestor", older, newer])).ok;
}

/** Somebody may make or remove a worktree in this moment, and git gives up over a file of it that it finds half written. */
async function askAgain(git: Git, cwd: string, question: readonly string[]): Promise<Answer> {
  for (let left = TIMES; ; left -= 1) {
    const answer = await git(cwd, question);
    if (answer.ok || answer.exit === null || left === 1) return answer;
  }
}

const TIMES = 3;

export type Tree = { readonly path: string; readonly branch: string | null };

/** The working trees of a repository, also those whose folder is gone; null: git cannot tell. */
export async function treesOf(git: Git, cwd: string): Promise<readonly Tree[] | null> {
  const answer = await askAgain(git, cwd, ["worktree", "list", "--porcelain", "-z"]);
  if (!answer.ok) return null;
  return answer.out.split("\0\0").flatMap((text) => {
    const facts = text.split("\0");
    const value = (name: string) => facts.find((fact) => fact.startsWith(`${name} `))?.slice(name.length + 1);
    const path = value("worktree");
    if (path === undefined) return [];
    return [{ path, branch: value("branch")?.replace(/^refs\/heads\//, "") ?? null }];
  });
}

export type Change = {
  /** From the top of the working tree; a repository inside of it ends with a slash. */
  readonly path: string;
  readonly kind: "changed" | "untracked" | "unmerged";
};

/** What is not committed in a working tree; null: git cannot tell. What git ignores does not count. */
export async function changesOf(
  git: Git,
  cwd: string,
  untracked: "all" | "no",
): Promise<readonly Change[] | null> {
  const flags = ["--porcelain=v1", "-z", "--no-renames", `--untracked-files=${untracked}`];
  const submodules = untracked === "no" ? ["--ignore-submodules=dirty"] : [];
  const answer = await git(cwd, ["status", ...flags, ...submodules]);
  if (!answer.ok) return null;
  return answer.out.split("\0").flatMap((line): readonly Change[] => {
    if (line === "") return [];
    const [code, path] = [line.slice(0, 2), line.slice(3)];
    const kind = code === "??" ? "untracked" : UNMERGED.has(code) ? "unmerged" : "changed";
    return [{ path, kind }];
  });
}

const UNMERGED: ReadonlySet<string> = new Set("DD AU UD UA DU AA UU".split(" "));
