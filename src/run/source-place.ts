/** Where a run that travels works on this machine: its source is fetched into a mirror, its files are made as the record says. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, normalize } from "node:path";
import type { Git } from "../effects/git/git.ts";
import { tipOf } from "../effects/git/git-queries.ts";
import { addressesOf, remoteDigest } from "../effects/git/remote.ts";
import {
  heldIn,
  isAt,
  must,
  resetTo,
  restoreHeld,
  SnapshotFailed,
  unbundle,
} from "../effects/git/snapshot.ts";
import { makeWorktree, restoreWorktree } from "../effects/git/worktree.ts";
import { RunnerError, type Blobs, type Ports } from "../engine/ports.ts";
import type { Remote, Source, Tree, Worktree } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { isRunId } from "../flow/recorded.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import type { RecordedPast } from "./records/past.ts";
import { fetched, isDamage, mirrorOf, remoteFor, type MirrorOptions } from "./source-mirror.ts";
import {
  asUnavailable,
  sharedCommit,
  createTree,
  restoreTree,
  type TreeOptions,
  type TreePlace,
} from "./tree.ts";
import { isInsideProject, isThere, realPath } from "./world/files.ts";
import { gitFor } from "./world/worktree.ts";
import { makeFolder } from "../journal/make-folder.ts";

export type PlaceOptions = MirrorOptions & {
  /** The newest files that its journal names. */
  readonly newest: Tree | null;
  /** They are those of the run that it was forked from, which worked on another branch. */
  readonly isShared?: boolean;
  readonly flow: Flow;
  readonly blobs: Blobs;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
};

export type TravelPlace = {
  /** The folder with the agents: as the source has it. */
  readonly root: string;
  readonly cwd: string;
  readonly stateDir: string;
  /** The files were made anew: what makes them ready has to be run, and then this. Absent: they are ready. */
  readonly onPrepared?: () => void;
  readonly worktree?: Worktree;
  readonly snapshot: NonNullable<Ports["snapshot"]>;
  /** Nothing of the run is needed on this machine any more. */
  readonly remove: () => void;
};

/** Puts the files of a claimed run where this worker has them. */
export function travelling(
  about: Pick<PlaceOptions, "work" | "blobs" | "repositories" | "env" | "signal"> & {
    /** Hears of the place, to remove it when nothing of the run is needed here any more. */
    readonly onPlace?: (place: TravelPlace) => void;
  },
): (recorded: Pick<RecordedPast, "current" | "recalled">) => Promise<TravelPlace> {
  return async ({ recalled: { started, tree, treeAt }, current }) => {
    const isShared = started.forkedFrom !== undefined && treeAt <= started.forkedFrom.seq;
    const place = await openTravelPlace({ ...about, started, newest: tree, isShared, flow: current });
    about.onPlace?.(place);
    return place;
  };
}

/** Where logs and processes of a run are kept on this machine. */
export function stateIn(work: string, run: string): string {
  return join(work, "runs", isRunId(run) ? run : "unknown", "state");
}

/** WORKTREE_UNAVAILABLE where its files cannot be had here, REPOSITORY_FORBIDDEN where they must not be fetched. */
export async function openTravelPlace(options: PlaceOptions): Promise<TravelPlace> {
  const { work, started } = options;
  const { run } = started;
  const asked = askedOf(started);
  const folder = join(work, "runs", run);
  try {
    return await make(options, asked, folder);
  } catch (error) {
    if (!(error instanceof SnapshotFailed) || options.signal.aborted) throw error;
    // Whatever is damaged here can be had again.
    rmSync(folder, { recursive: true, force: true });
    const mirror = asked.remote === null ? null : mirrorOf(work, asked.remote);
    if (mirror !== null && isDamage(error.message, mirror)) rmSync(mirror, { recursive: true, force: true });
    return await asUnavailable(() => make(options, asked, folder), run);
  }
}

/** What a record asks this machine to fetch and make: everything in it is data that somebody else wrote. */
type Asked = {
  readonly source: Source;
  readonly within: string;
  readonly remote: Remote | null;
  readonly run: string;
};

function askedOf({ run, source, cwd, worktree }: PlaceOptions["started"]): Asked {
  const refuse = (what: string) =>
    new RunnerError(
      "WORKTREE_UNAVAILABLE",
      `The files of run ${shownInLine(run, 80)} cannot be fetched: its ${what}.`,
    );
  if (!isRunId(run)) throw refuse("id is not an id");
  if (source === undefined)
    throw refuse("record names a folder of the machine that it was started on, and no source");
  if (isAbsolute(cwd) || normalize(cwd) !== cwd || cwd.startsWith("..") || cwd.includes("\0"))
    throw refuse("folder does not lie within its files");
  const commits =
    source.kind === "none"
      ? []
      : [source.commit, ...(source.kind === "bundle" ? [source.files, source.needs] : [])];
  if (commits.some((one) => one !== undefined && !COMMIT.test(one))) throw refuse("commit is not a commit");
  if (source.kind === "bundle" && !DIGEST.test(source.blob)) throw refuse("bundle is not named by a digest");
  const remote = source.kind === "none" ? null : (source.remote ?? null);
  if (remote !== null && !REMOTE.test(remote.name)) throw refuse("remote has a name that git does not take");
  for (const name of [branchIn(source), ...(worktree === undefined ? [] : [worktree.branch, worktree.base])])
    if (!BRANCH.test(name)) throw refuse("branch has a name that git does not take");
  return { source, within: cwd, remote, run };
}

const COMMIT = /^(?:[\da-f]{40}|[\da-f]{64})$/;
const DIGEST = /^[\da-f]{64}$/;
const REMOTE = /^\w[\w.-]{0,99}$/;
const BRANCH = /^(?!.*(?:\.\.|\/\/|@\{|\.lock(?:\/|$)))[^\s~^:?*[\\\p{Cc}./-][^\s~^:?*[\\\p{Cc}]*$/u;

async function make(options: PlaceOptions, asked: Asked, folder: string): Promise<TravelPlace> {
  const { started, newest, isShared = false, flow, blobs, env, signal } = options;
  const { source, within, run } = asked;
  const remote = remoteFor(options, asked.remote);
  const [home, stateDir] = [join(folder, "home"), stateIn(options.work, run)];
  makeFolder(stateDir, { mode: 0o700 });
  const inFolder = (until: AbortSignal) =>
    gitFor({ env, signal: until }, [home, join(folder, "tree")], { run });
  const git = inFolder(signal);
  const base = started.worktree?.base ?? branchIn(source);
  let isNew = false;
  if (!(await isWhole(git, home, source))) {
    await makeHome(options, asked, git, folder);
    isNew = true;
  }
  await configure(git, home, remote);
  const worktree = await worktreeOf(git, started.worktree, { folder, home, remote });
  const top = worktree?.path ?? home;
  const branch = worktree?.branch ?? base;
  const homePlace = { top: home, index: join(folder, "home.index"), carry: [] };
  if (worktree !== undefined && source.kind !== "none") {
    await resetTo(git, homePlace, source.commit, base);
    const about = { run, cwd: join(top, within), copy: [] };
    isNew ||= !existsSync(worktree.path);
    await (existsSync(worktree.path)
      ? restoreWorktree(git, worktree, about, false)
      : makeAgain(git, worktree, about));
  }
  const place: TreePlace = {
    top,
    index: join(folder, "tree.index"),
    carry: flow.settings.place?.carry ?? [],
    folder,
  };
  const tree: TreeOptions = { git, run, place, blobs, base: sharedCommit(source), newest };
  // The worker that drove the run last still has its files.
  const unready = join(folder, "unready");
  if (isNew || !(await isRight(tree, source))) {
    // Until it was made ready, whatever is killed meanwhile.
    writeFileSync(unready, "");
    await restore(tree, source, branch, isShared && worktree !== undefined);
  }
  // What was done is recorded also while the run is being stopped.
  const steady = inFolder(new AbortController().signal);
  const held = await heldIn(steady, place);
  const cwd = join(top, within);
  requireWithin(home, join(home, within), run);
  requireWithin(top, cwd, run);
  makeFolder(cwd);
  const root = rootIn(home, within);
  return {
    root,
    cwd,
    stateDir,
    ...(existsSync(unready) && { onPrepared: () => rmSync(unready, { force: true }) }),
    ...(worktree !== undefined && { worktree }),
    snapshot: createTree({ ...tree, git: steady }, held).snapshot,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function branchIn(source: Source): string {
  return source.kind === "none" ? "main" : (source.branch ?? "main");
}

async function isWhole(git: Git, home: string, source: Source): Promise<boolean> {
  if (!existsSync(join(home, ".git", "HEAD"))) return false;
  return source.kind === "none" || (await tipOf(git, home, source.commit)) === source.commit;
}

/** A repository of the run alone: it shares the objects of the mirror, and nothing else. */
async function makeHome(options: PlaceOptions, asked: Asked, git: Git, folder: string): Promise<void> {
  const { source, remote } = asked;
  const home = join(folder, "home");
  const commit =
    source.kind === "git" ? source.commit : source.kind === "bundle" ? (source.needs ?? null) : null;
  const mirror = commit === null || remote === null ? null : await fetched(options, git, remote, commit);
  for (const name of ["home", "tree", "home.index", "tree.index"])
    rmSync(join(folder, name), { recursive: true, force: true });
  makeFolder(home);
  must(await git(home, ["init", "--quiet", "--initial-branch=main", "--template=", home]));
  if (mirror !== null) {
    makeFolder(join(home, ".git", "objects", "info"));
    writeFileSync(join(home, ".git", "objects", "info", "alternates"), `${join(mirror, "objects")}\n`);
  }
  if (source.kind === "bundle") await unpack(options, git, source, folder);
  if (source.kind !== "none" && (await tipOf(git, home, source.commit)) !== source.commit)
    throw new SnapshotFailed(`the commit ${source.commit} is not in what was fetched`);
}

async function unpack(
  { blobs, started: { run } }: PlaceOptions,
  git: Git,
  { blob, commit, files }: Source & { kind: "bundle" },
  folder: string,
): Promise<void> {
  const bytes = await blobs.get(blob);
  if (bytes === null)
    throw new RunnerError(
      "WORKTREE_UNAVAILABLE",
      `The bundle that run ${run} was submitted with is missing or damaged.`,
    );
  const file = join(folder, "source.bundle");
  writeFileSync(file, bytes);
  await unbundle(git, join(folder, "home"), file, files ?? commit);
  rmSync(file, { force: true });
}

/** Ours at every beginning: whatever the run wrote there before does not say where results go to. */
async function configure(git: Git, home: string, remote: Remote | null): Promise<void> {
  if (remote !== null) {
    must(await git(home, ["config", "--replace-all", `remote.${remote.name}.url`, remote.url]));
    must(
      await git(home, [
        "config",
        "--replace-all",
        `remote.${remote.name}.fetch`,
        `+refs/heads/*:refs/remotes/${remote.name}/*`,
      ]),
    );
    await git(home, ["config", "--unset-all", `remote.${remote.name}.pushurl`]);
  }
  if ((await git(home, ["var", "GIT_COMMITTER_IDENT"])).ok) return;
  must(await git(home, ["config", "user.name", "Lockstep"]));
  must(await git(home, ["config", "user.email", "lockstep@localhost"]));
}

/** With the paths of this machine. */
async function worktreeOf(
  git: Git,
  recorded: Worktree | undefined,
  {
    folder,
    home,
    remote,
  }: { readonly folder: string; readonly home: string; readonly remote: Remote | null },
): Promise<Worktree | undefined> {
  if (recorded === undefined) return undefined;
  const pushTo = remote === null ? null : remoteDigest(await addressesOf(git, home, remote.name));
  return {
    ...recorded,
    path: join(folder, "tree"),
    home,
    onRemote: true,
    ...(pushTo !== null && { pushTo }),
  };
}

async function makeAgain(
  git: Git,
  worktree: Worktree,
  about: Parameters<typeof makeWorktree>[2],
): Promise<void> {
  await git(worktree.home, ["worktree", "prune"]);
  if ((await tipOf(git, worktree.home, `refs/heads/${worktree.branch}`)) !== null)
    must(await git(worktree.home, ["update-ref", "-d", `refs/heads/${worktree.branch}`]));
  await makeWorktree(git, worktree, about);
}

/** Whether the files are those of the newest entry that names any, or of the source where none does. */
async function isRight({ git, place, newest }: TreeOptions, source: Source): Promise<boolean> {
  const held = await heldIn(git, place);
  if (newest !== null) return await isAt(git, place.top, held, newest.commit);
  if (source.kind === "none") return held.head === null && held.tree === EMPTY_TREE;
  if (source.kind === "bundle" && source.files !== undefined)
    return await isAt(git, place.top, held, source.files);
  const tree = await git(place.top, ["rev-parse", `${source.commit}^{tree}`]);
  return tree.ok && tree.out.trim() === held.tree && held.head === source.commit;
}

const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** `isMoved`: files that a journal names are on this branch as well, and not on the one that they were taken from. */
async function restore(
  options: TreeOptions,
  source: Source,
  branch: string,
  isMoved: boolean,
): Promise<void> {
  const { git, place, newest } = options;
  if (newest !== null) return await restoreTree(options, newest, isMoved ? branch : undefined);
  if (source.kind === "none") return void must(await git(place.top, ["clean", "-ffdq"]));
  await resetTo(git, place, source.commit, branch);
  if (source.kind === "bundle" && source.files !== undefined)
    await restoreHeld(git, place, source.files, branch);
}

/** The nearest folder with agents, within the files of the run. */
function rootIn(home: string, within: string): string {
  const start = join(home, within);
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".agent"))) return folder;
    if (folder === home || folder === dirname(folder)) return start;
  }
}

/** A link among the files of a run does not lead it elsewhere on this machine. */
function requireWithin(top: string, folder: string, run: string): void {
  let there = folder;
  while (!existsSync(there) && !isThere(there)) there = dirname(there);
  if (existsSync(there) && isInsideProject(realPath(top), realPath(there))) return;
  throw new RunnerError(
    "WORKTREE_UNAVAILABLE",
    `The folder of run ${run} does not lie within its files: a symbolic link leads out of them.`,
  );
}
