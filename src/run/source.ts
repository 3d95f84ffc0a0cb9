/** Where the files of a run come from when any machine is to drive it: settled by the one who submits it. */
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { createHash } from "node:crypto";
import type { Git } from "../effects/git/git.ts";
import { branchOf, changesOf, tipOf } from "../effects/git/git-queries.ts";
import { findGitPlace } from "../effects/git/git-place.ts";
import { bundleTo, commitHeld, heldIn, SnapshotFailed } from "../effects/git/snapshot.ts";
import { namedPaths } from "../effects/git/words.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Remote, Source, Worktree } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { modulesIn } from "../flow/rules.ts";
import { shellWord, shownInLine } from "../flow/text/harmless.ts";
import { readRepositoryAddress } from "./source-address.ts";
import { gitFor, type WorktreeOptions, type WorktreeSurroundings } from "./world/worktree.ts";

/** `git`: a commit that the remote has. `bundle`: what is here, committed or not. `none`: no files. */
export type SourceKind = Source["kind"];

export type FoundSource = {
  readonly source: Source;
  /** The folder within the repository that the run works in; `.` is its top. */
  readonly within: string;
  /** The branch that the run begins from. */
  readonly base: string;
  /** What has to be stored before the run is recorded; its digest is in the source. */
  readonly bundle: Uint8Array | null;
};

const MOST_BUNDLE_BYTES = 16 * 1024 * 1024;

/** Refused where another machine could not have the same files; the refusal names the line that helps. */
export async function findSource(
  kind: SourceKind,
  cwd: string,
  { baseBranch, finalize }: WorktreeOptions,
  around: WorktreeSurroundings,
): Promise<FoundSource> {
  if (kind === "none") return { source: { kind }, within: ".", base: "main", bundle: null };
  const place = findGitPlace(cwd);
  if (place === null)
    throw refusal(
      `${cwd} is in no git repository, so its files cannot travel`,
      "run it with --no-files if it needs none",
    );
  const { top } = place;
  const git = gitFor(around, [top]);
  const within = relative(top, realpathSync.native(cwd)) || ".";
  const base = baseBranch ?? (await branchOf(git, top));
  if (base === null)
    throw refusal(
      `${top} is on no branch (HEAD is detached)`,
      "name the branch to start from with --base-branch",
    );
  const commit = await tipOf(git, top, `refs/heads/${base}`);
  if (commit === null)
    throw refusal(`There is no branch "${base}" with a commit in ${top}`, "create a first commit");
  const remote = await remoteOf(git, top, base, finalize?.remote);
  const about: About = { git, top, commit, base, remote };
  if (kind === "git") {
    if (baseBranch === undefined) await requireClean(git, top);
    const source = { kind, commit, branch: base, remote: await requireOnRemote(about) };
    return { source, within, base, bundle: null };
  }
  try {
    return { within, base, ...(await bundled(about, baseBranch === undefined)) };
  } catch (error) {
    if (!(error instanceof SnapshotFailed)) throw error;
    throw refusal(`git cannot pack the files of ${top}: ${error.message}`, "repair the repository");
  }
}

type About = {
  readonly git: Git;
  readonly top: string;
  readonly commit: string;
  readonly base: string;
  readonly remote: Remote | { readonly why: string };
};

async function requireClean(git: Git, top: string): Promise<void> {
  const changes = await changesOf(git, top, "all");
  if (changes === null) throw refusal(`git cannot read the status of ${top}`, "repair the repository");
  if (changes.length === 0) return;
  const are = changes.length === 1 ? "is" : "are";
  throw refusal(
    `${namedPaths(changes)} ${are} not committed, and a worker would not have that`,
    "commit and push it, or send the files as they are with --bundle",
  );
}

/** The remote that the branch follows, the one that results go to, `origin`, or the only one. */
async function remoteOf(
  git: Git,
  top: string,
  base: string,
  wanted: string | undefined,
): Promise<About["remote"]> {
  const followed = await git(top, ["config", "--get", `branch.${base}.remote`]);
  const listed = await git(top, ["remote"]);
  const names = listed.ok ? listed.out.split("\n").filter((name) => name !== "") : [];
  const among = [
    wanted,
    followed.ok ? followed.out.trim() : undefined,
    "origin",
    names.length === 1 ? names[0] : undefined,
  ];
  const name = among.find((one) => one !== undefined && names.includes(one));
  if (name === undefined) return { why: `${top} has no remote` };
  const url = await addressIn(git, top, name);
  const full =
    /^[a-z][a-z\d+.-]*:\/\//i.test(url) || /^[^/]*:/.test(url) ? url : `file://${resolve(top, url)}`;
  const read = readRepositoryAddress(full);
  if ("fault" in read) {
    const shown = read.fault.includes("password") ? "" : ` (${shownInLine(full, 200)})`;
    return { why: `the address of the remote "${name}"${shown} cannot be given to workers: ${read.fault}` };
  }
  return { name, url: read.url };
}

/**
 * As it is written: what `insteadOf` makes of it holds for this machine, and may hide that it is one of GitHub. A short
 * name that only `insteadOf` explains is not an address, and then what it stands for counts.
 */
async function addressIn(git: Git, top: string, name: string): Promise<string> {
  const first = async (...args: readonly string[]) => {
    const asked = await git(top, args);
    return asked.ok ? (asked.out.split("\n")[0] ?? "") : "";
  };
  const written = await first("config", "--get-all", `remote.${name}.url`);
  const isFull = /^(?:https|ssh|file):\/\/|^[^/:]*[@.][^/:]*:/i.test(written);
  return isFull ? written : await first("remote", "get-url", "--", name);
}

async function requireOnRemote({ git, top, commit, base, remote }: About): Promise<Remote> {
  if ("why" in remote)
    throw refusal(remote.why, "add a remote that workers can reach, or send the files with --bundle");
  const known = await git(top, [
    "for-each-ref",
    "--count=1",
    "--contains",
    commit,
    `refs/remotes/${remote.name}`,
  ]);
  if (known.ok && known.out.trim() !== "") return remote;
  const asked = await git(top, ["ls-remote", "--heads", "--", remote.name], { outside: true });
  if (asked.ok && asked.out.split("\n").some((line) => line.startsWith(commit))) return remote;
  const push = `git -C ${shellWord(top)} push ${shellWord(remote.name)} ${shellWord(base)}`;
  throw refusal(
    `The remote "${remote.name}" does not have the commit ${commit.slice(0, 10)} of ${base}`,
    `push it with \`${push}\`, or send it with --bundle`,
  );
}

/** All of its history where that is small; else what the remote does not have. */
async function bundled(
  about: About,
  isDirty: boolean,
): Promise<{ readonly source: Source; readonly bundle: Uint8Array }> {
  const { git, top, commit } = about;
  const remote = "why" in about.remote ? null : about.remote;
  const folder = mkdtempSync(join(tmpdir(), "lockstep-bundle-"));
  try {
    const held = isDirty ? await heldIn(git, { top, index: join(folder, "index"), carry: [] }) : null;
    const tree = await git(top, ["rev-parse", `${commit}^{tree}`]);
    const isChanged = held !== null && tree.ok && tree.out.trim() !== held.tree;
    const files = isChanged ? await commitHeld(git, top, held, "to be submitted") : null;
    const newest = files ?? commit;
    const needs = (await sizeOf(git, top, newest)) <= MOST_BUNDLE_BYTES ? null : await commonWith(about);
    const file = join(folder, "bundle");
    await bundleTo(git, top, file, newest, needs === null || needs === newest ? [] : [needs]);
    const { size } = statSync(file);
    if (size > MOST_BUNDLE_BYTES)
      throw refusal(
        `The files of ${top} are ${Math.ceil(size / 1024 / 1024)} MB as a bundle, and ${MOST_BUNDLE_BYTES / 1024 / 1024} MB at most are stored`,
        "commit and push them, and submit without --bundle",
      );
    const bundle = readFileSync(file);
    const blob = createHash("sha256").update(bundle).digest("hex");
    const source: Source = {
      kind: "bundle",
      blob,
      commit,
      branch: about.base,
      ...(files !== null && { files }),
      ...(remote !== null && { remote }),
      ...(needs !== null && { needs }),
    };
    return { source, bundle };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function sizeOf(git: Git, top: string, commit: string): Promise<number> {
  const answer = await git(top, ["rev-list", "--objects", "--disk-usage", commit]);
  return answer.ok ? Number(answer.out.trim()) : Number.POSITIVE_INFINITY;
}

/** The newest commit that the remote has too; null: the remote is not known. */
async function commonWith({ git, top, commit, remote }: About): Promise<string | null> {
  if ("why" in remote) return null;
  const tips = await git(top, ["for-each-ref", "--format=%(objectname)", `refs/remotes/${remote.name}`]);
  if (!tips.ok || tips.out.trim() === "") return null;
  const common = await git(top, ["merge-base", commit, ...tips.out.trim().split("\n")]);
  return common.ok ? common.out.trim() : null;
}

/** The place of a run that travels: a folder within its files, and a worktree whose paths are completed where it is driven. */
export type TravellingPlace = { readonly cwd: string; readonly worktree?: Worktree };

/** FLEET_NO_HOME where its result would stay on the machine that drove it last. */
export function travellingPlace(
  flow: Flow,
  options: WorktreeOptions,
  { source, within, base }: FoundSource,
  run: string,
): TravellingPlace {
  if (source.kind === "none" && modulesIn(flow).length > 0)
    throw refusal(
      `Agent "${flow.agent}" has code of its own (${modulesIn(flow)[0]?.file}), which needs its files`,
      "leave --no-files out",
    );
  if (!(options.worktree ?? flow.settings.worktree.enabled)) return { cwd: within };
  if (source.kind === "none")
    throw refusal(
      `Agent "${flow.agent}" works in a worktree, which needs files`,
      "leave --no-files out, or pass --no-worktree",
    );
  const finalize = { ...flow.settings.finalize, ...options.finalize };
  const { autoMerge, push, createPr } = finalize;
  if (autoMerge && !push && !createPr)
    throw new RunnerError(
      "FLEET_NO_HOME",
      `The result of "${flow.agent}" would be merged into the branch ${base} of a worker, where nobody finds it. To continue: ` +
        "pass --push to merge it into the remote, --create-pr to open a pull request, or --no-merge to fetch its branch with `lockstep fleet fetch`.",
    );
  if ((push || createPr) && source.remote === undefined)
    throw refusal("The result has to be pushed, and there is no remote that workers can reach", "add one");
  const remote = source.remote?.name ?? finalize.remote;
  const branch = options.branch ?? travellingBranch(flow.agent, run);
  const worktree = {
    path: "tree",
    home: "home",
    branch,
    base,
    commit: source.commit,
    onRemote: true,
  } as const;
  return { cwd: within, worktree: { ...worktree, finalize: { ...finalize, remote } } };
}

export function travellingBranch(agent: string, run: string): string {
  return `${agent}/${run.slice(0, 6)}`;
}

function refusal(what: string, fix: string): RunnerError {
  return new RunnerError("FLEET_NO_SOURCE", `${what}. To continue: ${fix}.`);
}
