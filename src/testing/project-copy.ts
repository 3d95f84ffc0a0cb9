/** A copy of a project for one test, in the machine's temporary directory. The folder that is copied is never written to. */
import { createHash } from "node:crypto";
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { createGit, type Git } from "../effects/git/git.ts";
import { runProcess } from "../effects/process/process.ts";
import { RunnerError } from "../engine/ports.ts";
import type { TestGround } from "../flow/flow-test.ts";
import type { JsonObject } from "../flow/json.ts";
import { isInsideProject } from "../run/world/files.ts";
import { programsFor } from "../run/world/programs.ts";

export type ProjectCopy = Disposable & {
  readonly folder: string;
  readonly env: { readonly [name: string]: string };
  /** Files that are not as they were copied, added or gone; sorted. */
  readonly changed: () => readonly string[];
  /** null: it is not a repository. */
  readonly git: () => Promise<JsonObject | null>;
};

type Fixture = Extract<TestGround, { kind: "project" }>;

/** With the `.agent` of the project that is tested; one in the folder itself is left out. */
export async function copyForTest(
  root: string,
  { folder: fixture, git: wanted }: Fixture,
  env: NodeJS.ProcessEnv,
): Promise<ProjectCopy> {
  const place = realpathSync.native(mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`)));
  const remove = () => rmSync(place, { recursive: true, force: true, maxRetries: 3 });
  try {
    const folder = join(place, "project");
    const home = join(place, "home");
    mkdirSync(home);
    copyFolder(join(root, fixture), folder, (name) => !OWN.has(name));
    copyFolder(join(root, ".agent"), join(folder, ".agent"), () => true);
    for (const agent of readdirSync(join(folder, ".agent")))
      rmSync(join(folder, ".agent", agent, "tests"), { recursive: true, force: true });
    writeFileSync(join(home, ".gitconfig"), GIT_CONFIG);
    const own = { PATH: env.PATH ?? "", HOME: home };
    const git = createGit({
      env: own,
      programs: programsFor(own, []),
      exec: runProcess,
      signal: new AbortController().signal,
    });
    if (wanted !== false) await makeRepository(git, folder, wanted);
    const before = contentsOf(folder);
    return {
      folder,
      env: own,
      changed: () => differing(before, contentsOf(folder)),
      git: () => (wanted === false ? Promise.resolve(null) : describeGit(git, folder)),
      [Symbol.dispose]: remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Of a project, and not of what is tested with it. */
const OWN = new Set([".agent", ".lockstep", ".git"]);

const GIT_CONFIG = `[user]
  name = Lockstep Test
  email = test@lockstep.invalid
[commit]
  gpgsign = false
[init]
  defaultBranch = main
`;

/** Links that lead out of the folder would let a test change what they lead to. */
function copyFolder(from: string, to: string, takes: (name: string) => boolean): void {
  const top = resolve(from);
  cpSync(top, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => {
      const way = relative(top, path);
      if (way !== "" && dirname(way) === "." && !takes(way)) return false;
      if (lstatSync(path).isSymbolicLink()) {
        const target = readlinkSync(path);
        if (target.startsWith("/") || !isInsideProject(top, resolve(dirname(path), target)))
          throw new RunnerError(
            "USAGE",
            `${path} is a link that leads out of ${from}: a test cannot use it.`,
          );
      }
      return true;
    },
  });
}

async function makeRepository(
  git: Git,
  folder: string,
  { commits, branch, dirty }: Exclude<Fixture["git"], false>,
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
  if (dirty) writeFileSync(join(folder, "uncommitted.txt"), "Not committed.\n");
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

type Contents = ReadonlyMap<string, string>;

/** A digest of each file that belongs to the project. Folders that git is told to ignore as a whole, such as logs, do not. */
function contentsOf(folder: string): Contents {
  const found = new Map<string, string>();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const ignored = entries.flatMap(({ name, parentPath }) =>
    name === ".gitignore" && readFileSync(join(parentPath, name), "utf8").trim() === "*"
      ? [`${parentPath}/`]
      : [],
  );
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path);
    if (OWN.has(name.split("/")[0]!) || entry.isDirectory()) continue;
    if (ignored.some((place) => path.startsWith(place))) continue;
    const text = entry.isFile() ? readFileSync(path) : entry.isSymbolicLink() ? readlinkSync(path) : "";
    found.set(name, createHash("sha256").update(text).digest("hex"));
  }
  return found;
}

function differing(before: Contents, after: Contents): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name)).toSorted();
}

// What killed runs left behind.

const PREFIX = `lockstep-test-${createHash("sha256").update(hostname()).digest("hex").slice(0, 8)}-`;

/** Removes copies of processes of this machine and user that are no more. */
export function removeLeftCopies(): void {
  const folder = tmpdir();
  for (const name of readdirSync(folder)) {
    const [, pid] = /^(\d+)-/.exec(name.startsWith(PREFIX) ? name.slice(PREFIX.length) : "") ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) continue;
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // It is tried again by the next run.
    }
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
