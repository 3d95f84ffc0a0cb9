/** The one place that calls git for us: nothing that a repository could make git start is started, and nothing is thrown. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { withSettings } from "../../flow/machine/git-variables.ts";
import { NOT_INSTALLED, SHELL, type Programs } from "../../flow/machine/programs.ts";
import { findPlace, pointerIn, type GitPlace } from "./git-place.ts";
import { includedBy, overrule, parseSettings, type Overruled } from "./git-settings.ts";
import type { IndexFiles } from "./index-lock.ts";
import { firstLines } from "../process/output.ts";
import { quoted } from "./words.ts";
import { childEnv, endingOf, isFinished, type Env, type RunProcess } from "../process/process.ts";
import { pidsWith } from "../process/tree.ts";

/** Runs git in a folder. */
export type Git = (cwd: string, args: readonly string[], how?: How) => Promise<Answer>;

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
  /** It needs the network, or the repository's list of working trees: it is started outside of the sandbox. */
  readonly outside?: true;
  /** Each character of the answer is a byte. */
  readonly bytes?: true;
  /** It only tells settings, and starts nothing whatever they say. */
  readonly harmless?: true;
};

export type Answer =
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
      index = puts?.copy,
      outside: isOutside,
      harmless,
      bytes,
    } = how;
    const timeoutMs = asked ?? (harmless ? LISTING_MS : TIMEOUT_MS);
    const overruled = harmless ? NOTHING_TOLD : await overrules(cwd);
    if (overruled === null)
      return {
        ok: false,
        exit: null,
        out: "",
        why: `git cannot list the settings of the repository in ${cwd}`,
      };
    const told = {
      ...seen,
      ...withSettings({}, overruled.settings),
      ...overruled.env,
      ...(index !== undefined && { GIT_INDEX_FILE: index }),
      ...(lasting && run !== undefined && { [OF_RUN]: run }),
    };
    const stopping = { signal: whole ? never : signal, ...(lasting && { lasting }) };
    const output = { maxOutputBytes: MOST_BYTES, ...(bytes && { bytes }) };
    const around = { cwd, env: told, timeoutMs, ...output, ...stopping };
    const start = isOutside ? outside : exec;
    const called = gitCommand(program, args);
    const command = puts === undefined ? called : [...PUT, puts.copy, puts.index, puts.lock, ...called];
    const result = await start({ command, ...around, tame: true });
    const { stdout: out, stderr, exitCode, truncated } = result;
    if (isFinished(result) && exitCode === 0 && !truncated) return { ok: true, out };
    if (exitCode === 127) return { ok: false, exit: 127, out, why: "git is not installed" };
    if (truncated) return { ok: false, exit: null, out, why: "git had too much to say" };
    if (!isFinished(result))
      return { ok: false, exit: null, out, why: `git ${args[0]} ${endingOf(result, timeoutMs)}` };
    return { ok: false, exit: exitCode, out, why: wordsOf(stderr) || `git ${args[0]} failed` };
  };
}

/** Our own process may be gone when git has ended. */
const PUT: readonly string[] = [
  SHELL,
  "-c",
  'copy=$1 index=$2 lock=$3; shift 3; "$@" || exit; mv -f "$copy" "$index" && rm -f "$lock"',
  "sh",
];

/** A question to git was cut off by an interruption: its answer says nothing, and nothing may be concluded from it. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** The same git, which throws `Interrupted` in place of an answer that was cut off. */
export function unlessInterrupted(git: Git, signal: AbortSignal): Git {
  return async (cwd, args, how) => {
    const answer = await git(cwd, args, how);
    if (!answer.ok && answer.exit === null && signal.aborted) throw new Interrupted(answer.why);
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

// The settings of a repository, listed once and again when their files have changed. Listing starts nothing.

/** It reads a few small files; one that is a pipe would keep it waiting. */
const LISTING_MS = 5_000;
const LISTING = ["config", "--list", "--show-scope", "--show-origin", "-z"];

type Told = Pick<Overruled, "settings"> & { readonly env: Env };
type Listed = { readonly prints: string; readonly files: readonly string[]; readonly overruled: Overruled };

const NOTHING_TOLD: Told = { settings: [], env: {} };

function createOverrules(
  { env, onOverruled }: Pick<GitOptions, "env" | "onOverruled">,
  list: (cwd: string, args: readonly string[]) => Promise<string | null>,
): (cwd: string) => Promise<Told | null> {
  const told = new Set<string>();
  const proxy = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    .map((name) => env[name])
    .find(Boolean);

  return async (cwd) => {
    const place = findPlace(cwd);
    if (place === null) return NOTHING_TOLD;
    const { top, gitDir, common } = place;
    const files = [...settingFiles(place), ...ownFiles(env)];
    const key = JSON.stringify([files, proxy, ownSays(env)]);
    const known = LISTED.get(key);
    const isFresh = known !== undefined && known.prints === printsOf(known.files);
    const found = isFresh ? known : await look(top, files);
    if (found === null) return null;
    remember(key, found);
    const { overruled } = found;
    if (overruled.told.length > 0 && !told.has(common)) {
      told.add(common);
      onOverruled?.(overruled.told, top);
    }
    const { settings, elsewhere, fetches } = overruled;
    // Of a submodule it is where we are; anything else would have a merge write there.
    const isElsewhere = elsewhere !== null && gitDir === common && resolve(common, elsewhere) !== top;
    return {
      settings,
      env: {
        ...(isElsewhere && { GIT_WORK_TREE: top }),
        ...(fetches && { GIT_ALLOW_PROTOCOL: "none" }),
      },
    };
  };

  async function look(top: string, files: readonly string[]): Promise<Listed | null> {
    const before = printsOf(files);
    const out = await list(top, []);
    if (out === null) return null;
    const listed = parseSettings(out);
    const all = [...listed];
    const shown = new Set(listed.flatMap(({ file }) => (file === null ? [] : [resolve(top, file)])));
    const includes = new Map<string, string>();
    // What is included for another branch or working tree only is not in the list, and counts: git may come there.
    for (const setting of all) {
      const path = includedBy(setting);
      if (path === null || setting.file === null) continue;
      // Where git itself would look for such a file, only git knows.
      if (setting.key.startsWith("includeif.") && /^(?:~[^/]|%\(prefix\))/.test(path)) return null;
      const file = includedFile(resolve(top, setting.file), path, env);
      if (includes.has(file)) continue;
      if (includes.size >= MOST_INCLUDED) return null;
      const stamp = stampOf(file);
      includes.set(file, stamp);
      if (shown.has(file) || stamp === "-") continue;
      const more = await list(top, ["--no-includes", "--file", file]);
      if (more === null) return null;
      const { scope } = setting;
      all.push(...parseSettings(more).map(({ key, value }) => ({ scope, file, key, value })));
    }
    const prints = before + [...includes.values()].map((stamp) => `${stamp};`).join("");
    return { prints, files: [...files, ...includes.keys()], overruled: overrule(all, proxy) };
  }
}

const MOST_INCLUDED = 50;

/** For all runs of this process. */
const LISTED = new Map<string, Listed>();
const MOST_LISTED = 100;

function remember(key: string, found: Listed): void {
  LISTED.delete(key);
  LISTED.set(key, found);
  for (const oldest of [...LISTED.keys()].slice(0, Math.max(0, LISTED.size - MOST_LISTED)))
    LISTED.delete(oldest);
}

/** Those of the user and the system. */
function ownFiles({ HOME = homedir(), XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM }: Env) {
  const folder = XDG_CONFIG_HOME || join(HOME, ".config");
  const global = GIT_CONFIG_GLOBAL ?? join(HOME, ".gitconfig");
  return [global, join(folder, "git", "config"), GIT_CONFIG_SYSTEM ?? "/etc/gitconfig"];
}

function ownSays({ HOME, GIT_CONFIG_NOSYSTEM }: Env): readonly (string | undefined)[] {
  return [HOME, GIT_CONFIG_NOSYSTEM];
}

function settingFiles({ gitDir, common }: GitPlace): readonly string[] {
  const own = join(gitDir, "config.worktree");
  const files = [join(common, "config"), join(common, "config.worktree")];
  return gitDir === common || stampOf(own) === "-" ? files : [...files, own];
}

function includedFile(from: string, path: string, { HOME }: Env): string {
  const full = path.startsWith("~/") ? join(HOME ?? homedir(), path.slice(2)) : path;
  return resolve(dirname(from), full);
}

function printsOf(files: readonly string[]): string {
  return files.map((file) => `${stampOf(file)};`).join("");
}

function stampOf(file: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(":");
  } catch {
    return "-"; // it does not exist, or is not ours to see
  }
}

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

// Questions, and their answers parsed.

/** The commit that a name stands for; null: none. */
export async function tipOf(git: Git, cwd: string, name: string): Promise<string | null> {
  const answer = await git(cwd, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  return answer.ok ? answer.out.trim() : null;
}

/** The branch that a working tree is on; null: on none. */
export async function branchOf(git: Git, cwd: string): Promise<string | null> {
  const told = branchInHead(cwd);
  if (told !== null) return told;
  const answer = await git(cwd, ["symbolic-ref", "--quiet", "HEAD"]);
  return answer.ok ? answer.out.trim().replace(/^refs\/heads\//, "") : null;
}

/** As the file says it; null: git has to be asked. */
function branchInHead(cwd: string): string | null {
  const place = findPlace(cwd);
  try {
    const head = place === null ? "" : pointerIn(join(place.gitDir, "HEAD"));
    const name = /^ref: refs\/heads\/([^\s]+)\n$/.exec(head)?.[1] ?? null;
    // What stands there where branches are kept in another format.
    return name === ".invalid" ? null : name;
  } catch {
    return null;
  }
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

/** The tip of a branch that `base` has all of, and which is checked out nowhere, if that is wanted; null: there is none. */
export async function mergedTip(
  git: Git,
  cwd: string,
  branch: string,
  base: string,
  where: "anywhere" | "nowhere" = "anywhere",
): Promise<string | null> {
  const among = ["--merged", `refs/heads/${base}`, `refs/heads/${branch}`];
  const place = where === "nowhere" ? "%(worktreepath)" : "";
  const answer = await git(cwd, ["for-each-ref", `--format=%(refname) %(objectname) ${place}`, ...among]);
  const found = answer.out.split("\n").find((line) => line.startsWith(`refs/heads/${branch} `));
  const [, tip = null, ...checkedOut] = found?.split(" ") ?? [];
  return answer.ok && checkedOut.join("") === "" ? tip : null;
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
  readonly kind: "changed" | "deleted" | "untracked" | "unmerged";
};

/** What is not committed in a working tree; null: git cannot tell. What git ignores does not count. */
export async function changesOf(
  git: Git,
  cwd: string,
  untracked: "all" | "no",
): Promise<readonly Change[] | null> {
  // Else git would look into repositories inside of this one, and obey their settings.
  const flags = ["--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty"];
  const answer = await git(cwd, ["status", ...flags, `--untracked-files=${untracked}`]);
  if (!answer.ok) return null;
  return answer.out.split("\0").flatMap((line): readonly Change[] => {
    if (line === "") return [];
    const [code, path] = [line.slice(0, 2), line.slice(3)];
    if (code === " D") return [{ path, kind: "deleted" }];
    const kind = code === "??" ? "untracked" : UNMERGED.has(code) ? "unmerged" : "changed";
    return [{ path, kind }];
  });
}

const UNMERGED: ReadonlySet<string> = new Set("DD AU UD UA DU AA UU".split(" "));
