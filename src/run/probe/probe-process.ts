/** What Lockstep's own process could be made to do: start the wrong program, obey a repository, hang, leak a secret. */
import { realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { isInside } from "../../boundaries/gate/paths.ts";
import { createRedactor } from "../../boundaries/redact/redact.ts";
import { heldChanges } from "../../effects/git/control-changes.ts";
import { createGit } from "../../effects/git/git.ts";
import { changesOf, tipOf } from "../../effects/git/git-queries.ts";
import { childEnv, runProcess, type Env } from "../../effects/process/process.ts";
import { readPattern, TooManySteps, withinSteps } from "../../flow/text/pattern.ts";
import { PROGRAM_NAMES, SHELL, type Programs } from "../../flow/machine/programs.ts";
import type { Surroundings } from "../boundary.ts";
import { readTextFile } from "../world/files.ts";
import { programOf, waitingPlant } from "./probe-planted.ts";
import {
  advisory,
  enforced,
  judgedRow,
  newName,
  scratchFolder,
  untried,
  type ProbeScene,
  type ProbeRow,
  type Trial,
} from "./probe-table.ts";
import { programsFor } from "../world/programs.ts";
import { secretsOf } from "../world/secrets.ts";
import { makeFolder } from "../../journal/make-folder.ts";

export const PROCESS_TRIALS: readonly Trial[] = [
  { limit: "programs that Lockstep starts are not the project's", attempt: tryPrograms },
  { limit: "a planted program is not started", attempt: tryPlantedProgram },
  {
    limit: "git does not obey a repository inside of the project",
    attempt: async (scene) => await tryGit(scene, NESTED, "nested"),
  },
  {
    limit: "git does not obey files that only look like a repository",
    attempt: async (scene) => await tryGit(scene, BARE, "bare"),
  },
  {
    limit: "git does not start what the repository's settings name",
    attempt: async (scene) => await tryGit(scene, SETTINGS, "own"),
  },
  { limit: "a merge that changes agents, records or hooks is held", attempt: tryMerge },
  { limit: "inherited descriptors lead nowhere in a command", attempt: tryDescriptors },
  { limit: "a hostile pattern ends in counted steps", attempt: tryPattern },
  { limit: "a pipe in the place of a file is not waited for", attempt: tryPipe },
  { limit: "a secret is taken out of streamed text", attempt: trySecret },
];

/** Each with its path, and whether anybody else could have put it there. */
function tryPrograms({ around }: ProbeScene): ProbeRow {
  const { env, cwd, project } = around;
  const found = programsFor(env, [project.root, cwd]);
  const named = PROGRAM_NAMES.flatMap((name) => found[name] ?? []);
  const all = [...named, SHELL, process.execPath];
  const paths = all.join(", ");
  const own = [project.root, cwd].map((folder) => realpathSync.native(folder));
  const wrong = all.flatMap((path) => {
    const real = realpathSync.native(path);
    if (!isAbsolute(path)) return [`${path} is not absolute`];
    if (own.some((folder) => isInside(folder, path) || isInside(folder, real)))
      return [`${path} lies in the project`];
    const open = [real, dirname(real)].find((one) => isOpenToAll(one));
    return open === undefined ? [] : [`everybody on this machine can write ${open}`];
  });
  if (wrong.length > 0) return advisory(`${wrong.join("; ")} (${paths})`);
  return enforced(paths);
}

function isOpenToAll(path: string): boolean {
  const { mode } = statSync(path);
  const isSticky = (mode & 0o1000) !== 0;
  return (mode & 0o002) !== 0 && !isSticky;
}

/** First on the PATH, in a project and in `node_modules/.bin`. */
function tryPlantedProgram({ around }: ProbeScene): ProbeRow {
  using project = scratchFolder();
  using other = scratchFolder();
  const folders = [join(project.path, "tools"), join(other.path, "node_modules", ".bin")];
  for (const folder of folders) {
    makeFolder(folder);
    for (const name of PROGRAM_NAMES) writeFileSync(join(folder, name), "#!/bin/sh\n", { mode: 0o755 });
  }
  const PATH = [...folders, "tools", around.env.PATH ?? ""].join(":");
  const found = programsFor({ ...around.env, PATH }, [project.path]);
  const through = [...PROGRAM_NAMES.flatMap((name) => found[name] ?? []), ...found.path.split(":")].filter(
    (path) => folders.some((folder) => isInside(folder, path)) || !isAbsolute(path),
  );
  return judgedRow(through, "one in the project and one in node_modules/.bin were passed over");
}

/** Shell lines that make a trap in an empty folder: a git that obeys it writes the file `fired`. */
const MINE = "-c user.name=p -c user.email=p@localhost -c commit.gpgSign=false -c core.hooksPath=/dev/null";
const NESTED = `git init -q nested && cd nested && git init -q sub && cd sub && echo text > file && git add file
git ${MINE} commit -qm x && cd .. && git add sub 2>/dev/null && git ${MINE} commit -qm x && cd sub
git config filter.x.clean ': > "$FIRED"; cat' && echo '* filter=x' > .git/info/attributes && touch -d 2001-01-01 file`;
const BARE = `git init -q --bare bare && cd bare && git config core.bare false && git config core.worktree .
git config core.fsmonitor ': > "$FIRED"; false'`;
const SETTINGS = `git init -q own && cd own && echo text > file && git add file && git ${MINE} commit -qm x
git config core.fsmonitor ': > "$FIRED"; false' && git config filter.x.clean ': > "$FIRED"; cat'
echo '* filter=x' > .git/info/attributes && touch -d 2001-01-01 file`;

/** Our own git looks at it, as it does when a run ends; then a plain one, to see that the trap works at all. */
async function tryGit({ around }: ProbeScene, trap: string, name: string): Promise<ProbeRow> {
  const { env, cwd, project } = around;
  using scratch = scratchFolder();
  const programs = programsFor(env, [scratch.path, cwd, project.root]);
  if (programs.git === null) return untried("git is not installed");
  const fired = join(scratch.path, "fired");
  const seen = { ...plainEnv(around, programs), FIRED: fired };
  const how = { ...waitingPlant(around), cwd: scratch.path, env: seen };
  const made = await runProcess({ command: `set -e\n${trap}`, ...how });
  if (made.exitCode !== 0) return untried(`the trap cannot be made (${made.stderr.trim().slice(0, 200)})`);
  const place = join(scratch.path, name);
  const signal = new AbortController().signal;
  // The trap writes to a file that only this environment names: it is given to our git as well.
  const exec: typeof runProcess = (options) =>
    runProcess({ ...options, env: { ...options.env, FIRED: fired } });
  await changesOf(createGit({ env, programs, exec, signal }), place, "all");
  if (statSync(fired, { throwIfNoEntry: false }) !== undefined) return advisory("git started what it named");
  await runProcess({ command: [programs.git, "status"], ...how, cwd: place });
  const isLive = statSync(fired, { throwIfNoEntry: false }) !== undefined;
  return isLive
    ? enforced("a plain `git status` starts the program, ours does not")
    : enforced("ours does not start the program; nor does a plain `git status` of this version");
}

/** Git with no settings but those of the trap, and a PATH on which nothing of the project is. */
function plainEnv({ env }: Surroundings, { path }: Programs): Env {
  const { GIT_CONFIG_COUNT: _, ...plain } = childEnv(env);
  return {
    ...plain,
    PATH: path,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
  };
}

/** Two commits of which the second one changes what is obeyed later. */
const MERGE = `git init -q merge && cd merge && echo a > file && git add file && git ${MINE} commit -qm x
mkdir -p .agent/a sub/.LockStep node_modules/.bin && echo b > file
for path in .agent/a/agent.json sub/.LockStep/id node_modules/.bin/git; do echo > $path; git add -f $path; done
git add file && git ${MINE} commit -qm x`;

async function tryMerge({ around }: ProbeScene): Promise<ProbeRow> {
  using scratch = scratchFolder();
  const programs = programsFor(around.env, [scratch.path, around.cwd, around.project.root]);
  if (programs.git === null) return untried("git is not installed");
  const how = { ...waitingPlant(around), cwd: scratch.path, env: plainEnv(around, programs) };
  const made = await runProcess({ command: `set -e\n${MERGE}`, ...how });
  const place = join(scratch.path, "merge");
  const git = createGit({ env: around.env, programs, exec: runProcess, signal: how.signal });
  const [from, to] = [await tipOf(git, place, "HEAD~1"), await tipOf(git, place, "HEAD")];
  if (made.exitCode !== 0 || from === null || to === null) return untried("no commits can be made");
  const held = (await heldChanges(git, place, from, to))?.files ?? [];
  const hostile = [".agent/a/agent.json", "node_modules/.bin/git", "sub/.LockStep/id"];
  const through = hostile.filter((path) => !held.includes(path));
  return judgedRow(through, `${hostile.join(", ")} would be held for a person`);
}

/** What a command finds behind its numbers above 2. */
async function tryDescriptors({ around, ground, sandbox }: ProbeScene): Promise<ProbeRow> {
  const isIdle = !sandbox.confined && !sandbox.starts;
  const exec = ground === null || isIdle ? runProcess : ground.exec;
  const list = "for f in /proc/self/fd/*; do case $f in */[012]) ;; *) readlink $f;; esac; done";
  const listed = await exec({
    command: `test -d /proc/self/fd && { ${list}; echo end; }`,
    ...waitingPlant(around),
    cwd: around.cwd,
  });
  const found = listed.stdout.trim().split("\n");
  if (found.pop() !== "end") return untried("the descriptors of a command cannot be listed on this system");
  // The folder that is being listed, and the script where the shell reads one.
  const open = found.filter((path) => path !== "/dev/null" && !/^\/proc\/\d+\/fd$/.test(path));
  const inherited = found.length - open.length;
  const more = inherited === 0 ? "this process was started with none" : `${inherited} lead to /dev/null`;
  return judgedRow(open, `a command has 0, 1 and 2; ${more}`);
}

/** The classic one, for which the engine of the language takes twice the time with each character. */
function tryPattern(): ProbeRow {
  const read = readPattern("^(?:a+)+$");
  if (read.kind === "refused") return enforced(`it is refused: ${read.why}`);
  const text = `${"a".repeat(24)}b`;
  const counted = (steps: number): boolean | null => {
    try {
      return withinSteps(steps, () => read.matcher.test(text));
    } catch (error) {
      if (error instanceof TooManySteps) return null;
      throw error;
    }
  };
  const through = [
    ...(counted(5) === null ? [] : ["a match that is allowed 5 steps takes more"]),
    ...(counted(100_000) === false ? [] : ["a text of 25 characters takes more than 100,000 steps"]),
  ];
  return judgedRow(
    through,
    "^(?:a+)+$ is decided in less than 100,000 steps, and stops where they are used up",
  );
}

async function tryPipe({ around }: ProbeScene): Promise<ProbeRow> {
  using scratch = scratchFolder();
  const mkfifo = programOf("mkfifo", around);
  if (mkfifo === null) return untried("mkfifo is not installed");
  const pipe = join(scratch.path, "agent.json");
  const made = await runProcess({ command: [mkfifo, pipe], ...waitingPlant(around) });
  if (made.exitCode !== 0) return untried("no pipe can be made");
  try {
    readTextFile(pipe);
    return advisory("it was read");
  } catch (error) {
    return enforced(`it is refused: ${(error as Error).message}`);
  }
}

/** Cut in two wherever that can be. */
function trySecret({ around, flow }: ProbeScene): ProbeRow {
  const redactor = createRedactor(() => secretsOf({ env: around.env, cwd: around.cwd }, flow));
  const secret = `${newName()}-${newName()}`;
  redactor.learn(secret);
  const through = Array.from(secret, (_, cut) => cut).filter((cut) => {
    const stream = redactor.stream();
    const parts = [`see ${secret.slice(0, cut)}`, `${secret.slice(cut)} there`];
    const shown = parts.map((part) => stream.write(part)).join("") + stream.end();
    return shown !== "see [redacted] there";
  });
  return judgedRow(
    through.map((cut) => `a secret that is cut at ${cut}`),
    `tried with one of ${secret.length} characters, cut at every place`,
  );
}
