/** The folder that a run of an eval works in: a copy of a folder of the project, and its hidden files after the end. */
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { runProcess } from "../effects/process/process.ts";
import { RunnerError } from "../engine/ports.ts";
import type { TestGround } from "../flow/flow-test.ts";
import { programsFor } from "./world/programs.ts";

const PREFIX = "lockstep-eval-";

type Source = Extract<TestGround, { kind: "project" }>;

/** A new folder for one run; null: an empty one. The original is never changed. */
export async function copyProject(
  root: string,
  source: Source | null,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), PREFIX)));
  try {
    if (source === null) return folder;
    copyInto(join(root, source.folder), folder);
    if (source.git !== false) await makeRepository(folder, source.git, env);
    return folder;
  } catch (error) {
    removeCopy(folder);
    throw error;
  }
}

/** Only what `copyProject` made is removed: the path may come from a record. */
export function removeCopy(folder: string): void {
  if (isCopy(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Whether this is a copy that is there, and belongs to this user. */
export function isCopy(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  const isOurs = process.geteuid === undefined || found?.uid === process.geteuid();
  return (
    found?.isDirectory() === true &&
    isOurs &&
    basename(folder).startsWith(PREFIX) &&
    dirname(folder) === realpathSync.native(tmpdir())
  );
}

/**
 * Copies what is in one folder into another. A link that the run left in the way is removed and never followed: it could
 * lead to a file of the user.
 */
export function copyInto(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name)) continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    const there = lstatSync(target, { throwIfNoEntry: false });
    if (entry.isDirectory()) {
      if (there?.isDirectory() !== true) {
        rmSync(target, { force: true });
        mkdirSync(target);
      }
      copyInto(source, target);
      continue;
    }
    rmSync(target, { recursive: true, force: true });
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else if (entry.isFile()) {
      copyFileSync(source, target, constants.COPYFILE_EXCL);
      chmodSync(target, statSync(source).mode | 0o200);
    }
  }
}

/** Records of runs and of git would make the copy a part of the original. */
const LEFT_OUT: ReadonlySet<string> = new Set([".git", ".lockstep"]);

const WHO = {
  GIT_AUTHOR_NAME: "Lockstep",
  GIT_AUTHOR_EMAIL: "lockstep@localhost",
  GIT_COMMITTER_NAME: "Lockstep",
  GIT_COMMITTER_EMAIL: "lockstep@localhost",
  GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z",
  GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

async function makeRepository(
  folder: string,
  { commits, branch, dirty }: Exclude<Source["git"], false>,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const { git: program } = programsFor(env, [folder]);
  if (program === null)
    throw new RunnerError("WORKTREE_UNAVAILABLE", "A task makes a git repository, and git is not installed.");
  const git = async (...args: readonly string[]) => {
    const result = await runProcess({
      command: [program, ...args],
      cwd: folder,
      env: { PATH: env.PATH, ...WHO },
      timeoutMs: 60_000,
      maxOutputBytes: 64 * 1024,
      signal: new AbortController().signal,
    });
    if (result.exitCode !== 0)
      throw new RunnerError(
        "WORKTREE_UNAVAILABLE",
        `git ${args[0]} failed in ${folder}: ${result.stderr.trim()}`,
      );
  };
  await git("init", "-q", "-b", branch);
  await git("config", "user.name", WHO.GIT_AUTHOR_NAME);
  await git("config", "user.email", WHO.GIT_AUTHOR_EMAIL);
  for (let at = 1; at <= commits; at++) {
    if (at === commits && !dirty) await git("add", "-A");
    await git("commit", "-q", "--allow-empty", "-m", `Commit ${at}`);
  }
}
