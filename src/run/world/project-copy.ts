/**
 * A copy of a folder of the project in the machine's temporary directory, for one test or for one run of an eval. What is
 * copied is never written to.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
  type Dirent,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createGit, type Git } from "../../effects/git/git.ts";
import { runProcess } from "../../effects/process/process.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { EvalTask } from "../../flow/flow-eval.ts";
import type { Expected, TestGround } from "../../flow/flow-test.ts";
import { isObject, type JsonObject } from "../../flow/json.ts";
import type { Observed } from "../../proof/observe.ts";
import { copiedOf, copyInto, WHOLE, type CopiedPart } from "./copy-tree.ts";
import { createFiles } from "./files.ts";
import { programsFor } from "./programs.ts";
import { makeFolder } from "../../journal/make-folder.ts";

export type CopySource = Extract<TestGround, { kind: "project" }>;

export type ProjectCopy = {
  readonly folder: string;
  /** For processes that see nothing of the user's environment but PATH. */
  readonly env: { readonly [name: string]: string };
  /** What a test or a task looks at, and nothing else: `files`, `changed`, `git`. */
  readonly left: (values: Expected["values"]) => Promise<Observed>;
};

/** The project that is copied, and the agent that it is copied for. */
export type CopiedProject = { readonly root: string; readonly agent: string };

/** A new place for a test, which is removed when the copy is disposed of, or the process leaves before. */
export async function copyForTest(
  copied: CopiedProject,
  source: CopySource,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ProjectCopy & Disposable> {
  const place = realpathSync.native(mkdtempSync(join(tmpdir(), `${OF_TESTS}${process.pid}-`)));
  const atExit = () => removeTree(place);
  process.once("exit", atExit);
  const remove = () => {
    process.off("exit", atExit);
    removeTree(place);
  };
  try {
    return { ...(await fillCopy(copied, source, place, env, signal)), [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** The folder that a run of an eval works in. It is known before it is made, so that none is left behind unknown. */
export function folderForRun(run: string): string {
  return join(realpathSync.native(tmpdir()), `${OF_EVALS}${run}`, PROJECT);
}

/** null: a folder with nothing in it but `.agent`. */
export async function copyForRun(
  copied: CopiedProject,
  source: CopySource | null,
  folder: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ProjectCopy> {
  mkdirSync(dirname(folder), { mode: 0o700 });
  return await fillCopy(copied, source, dirname(folder), env, signal);
}

/** Whether this is a copy for a run that is there, and belongs to this user. */
export function isCopy(folder: string): boolean {
  const place = dirname(folder);
  const found = lstatSync(place, { throwIfNoEntry: false });
  const isOurs = process.geteuid === undefined || found?.uid === process.geteuid();
  return (
    found?.isDirectory() === true &&
    isOurs &&
    basename(folder) === PROJECT &&
    basename(place).startsWith(OF_EVALS) &&
    dirname(place) === realpathSync.native(tmpdir())
  );
}

/** Only what `copyForRun` made is removed: the path may come from a record. */
export function removeCopy(folder: string): void {
  if (isCopy(folder)) removeTree(dirname(folder));
}

const PROJECT = "project";
const OF_EVALS = "lockstep-eval-";
const OF_TESTS = `lockstep-test-${createHash("sha256").update(hostname()).digest("hex").slice(0, 8)}-`;

/** With the `.agent` of the project; one in the folder itself is left out. */
async function fillCopy(
  { root, agent }: CopiedProject,
  source: CopySource | null,
  place: string,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ProjectCopy> {
  const folder = join(place, PROJECT);
  const agents = join(folder, ".agent");
  const home = join(place, HOME);
  mkdirSync(home);
  makeFolder(agents);
  if (source !== null) await copyInto(join(root, source.folder), folder, PROJECT_PART, signal);
  await copyInto(join(root, ".agent"), agents, agentsPart(root, agent), signal);
  writeFileSync(join(home, ".gitconfig"), GIT_CONFIG);
  const copy = openCopy(root, source, folder, env);
  if (source !== null && source.git !== false) await makeRepository(gitFor(copy, root), folder, source.git);
  return copy;
}

const HOME = "home";

/** One that is there: what has changed in it is seen from what it was copied from. */
export function openCopy(
  root: string,
  source: CopySource | null,
  folder: string,
  env: NodeJS.ProcessEnv,
): ProjectCopy {
  const own = { PATH: env.PATH ?? "", HOME: join(dirname(folder), HOME) };
  return {
    folder,
    env: own,
    left: async ({ files, changed, git }) => ({
      ...(isObject(files) && { files: textsOf(folder, Object.keys(files)) }),
      ...(changed !== undefined && { changed: changedIn(folder, root, source) }),
      ...(git !== undefined &&
        source !== null &&
        source.git !== false && { git: await describeGit(gitFor({ folder, env: own }, root), folder) }),
    }),
  };
}

function textsOf(folder: string, paths: readonly string[]): JsonObject {
  const files = createFiles(folder);
  return Object.fromEntries(
    paths.flatMap((path) => {
      const read = files.read(path);
      return read.kind === "text" ? [[path, read.text]] : [];
    }),
  );
}

/** Of a project, and not of what is tested with it. */
const OWN: ReadonlySet<string> = new Set([".agent", ".lockstep", ".git"]);

const PROJECT_PART: CopiedPart = { isLeftOut: (path) => OWN.has(path) };

/** What judges a run is not shown to it. Links of other agents do not keep this one from being run. */
function agentsPart(root: string, agent: string): CopiedPart {
  return {
    isLeftOut: (path) => /^[^/]+\/(?:tests|evals)$/.test(path),
    within: root,
    isLinkLeftOut: (path) => path !== agent && !path.startsWith(`${agent}/`),
  };
}

/** Refuses a task that could not be copied, before anything is done for it. */
export function requireCopyable({ root, agent }: CopiedProject, { project, hidden }: EvalTask): void {
  const walks = [
    copiedOf(join(root, ".agent"), agentsPart(root, agent)),
    ...(project === null ? [] : [copiedOf(join(root, project.folder), PROJECT_PART)]),
    ...(hidden?.files == null ? [] : [copiedOf(join(root, hidden.files), WHOLE)]),
  ];
  for (const walk of walks) for (const _ of walk);
}

// Git.

const GIT_CONFIG = `[user]
  name = Lockstep Test
  email = test@lockstep.invalid
[commit]
  gpgsign = false
[init]
  defaultBranch = main
`;

function gitFor({ folder, env }: Pick<ProjectCopy, "folder" | "env">, root: string): Git {
  const signal = new AbortController().signal;
  return createGit({ env, programs: programsFor(env, [root, folder]), exec: runProcess, signal });
}

/** What a copy with `dirty` has that was not copied. */
const UNCOMMITTED = { name: "uncommitted.txt", text: "Not committed.\n" };

async function makeRepository(
  git: Git,
  folder: string,
  { commits, branch, dirty }: Exclude<CopySource["git"], false>,
): Promise<void> {
  const must = async (...args: readonly string[]) => {
    const answer = await git(folder, args);
    if (!answer.ok) throw new RunnerError("USAGE", `git ${args[0]} failed in the copy: ${answer.why}`);
  };
  await must("init", "--quiet", `--initial-branch=${branch}`);
  await must("config", "user.name", "Lockstep Test");
  await must("config", "user.email", "test@lockstep.invalid");
  await must("add", "--all");
  await must("commit", "--quiet", "--allow-empty", "--message=start");
  for (let count = 2; count <= commits; count += 1)
    await must("commit", "--quiet", "--allow-empty", `--message=commit ${count}`);
  if (dirty) writeFileSync(join(folder, UNCOMMITTED.name), UNCOMMITTED.text);
}

async function describeGit(git: Git, folder: string): Promise<JsonObject> {
  const out = async (...args: readonly string[]) => {
    const answer = await git(folder, args);
    return answer.ok ? answer.out.trim() : "";
  };
  return {
    clean: (await out("status", "--porcelain", "--", ".", ":!.lockstep")) === "",
    commits: Number(await out("rev-list", "--count", "HEAD")),
    last: await out("log", "-1", "--format=%s"),
    branch: await out("rev-parse", "--abbrev-ref", "HEAD"),
  };
}

// What has changed.

/** Files that are not as they were copied, added or gone; sorted. */
function changedIn(folder: string, root: string, source: CopySource | null): readonly string[] {
  const before = new Map(source === null ? [] : contentsOf(join(root, source.folder)));
  if (source !== null && source.git !== false && source.git.dirty)
    before.set(UNCOMMITTED.name, digestOf(UNCOMMITTED.text));
  const after = contentsOf(folder);
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name)).toSorted();
}

/** A digest of each file that belongs to the project. Folders that git is told to ignore as a whole, such as logs, do not. */
export function contentsOf(folder: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const walk = (below: string) => {
    const entries = attempt(() => readdirSync(join(folder, below), { withFileTypes: true }));
    if (typeof entries === "string") {
      // A top that is gone has no files.
      if (below !== "") found.set(below, entries);
      return;
    }
    if (below !== "" && entries.some(isIgnoringAll)) return;
    for (const entry of entries) {
      const name = join(below, entry.name);
      if (OWN.has(name)) continue;
      if (entry.isDirectory()) walk(name);
      else if (entry.isSymbolicLink())
        found.set(
          name,
          attempt(() => digestOf(readlinkSync(join(folder, name)))),
        );
      else found.set(name, entry.isFile() ? readDigest(join(folder, name)) : "");
    }
  };
  walk("");
  return found;
}

function isIgnoringAll(entry: Dirent): boolean {
  const read = () => readFileSync(join(entry.parentPath, entry.name), "utf8").trim();
  return entry.name === ".gitignore" && entry.isFile() && attempt(read) === "*";
}

function readDigest(path: string): string {
  return attempt(() => digestOf(readFileSync(path)));
}

/** What cannot be read, since a run removed it, locked it or made it too large, is not as it was. */
function attempt<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    return `not readable: ${(error as NodeJS.ErrnoException).code}`;
  }
}

function digestOf(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

// Removing.

/** What a run has made unwritable is made writable first. What still cannot be removed stays. */
function removeTree(place: string): void {
  const remove = () => rmSync(place, { recursive: true, force: true, maxRetries: 3 });
  try {
    remove();
  } catch {
    try {
      openFolders(place);
      remove();
    } catch {
      // The machine removes it from its temporary directory some time.
    }
  }
}

function openFolders(folder: string): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) openFolders(join(folder, entry.name));
}

/** Removes copies for tests of processes of this machine and user that are no more. */
export function removeLeftCopies(): void {
  const folder = tmpdir();
  for (const name of readdirSync(folder)) {
    const [, pid] = /^(\d+)-/.exec(name.startsWith(OF_TESTS) ? name.slice(OF_TESTS.length) : "") ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory() === true && found.uid === process.getuid?.()) removeTree(path);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
