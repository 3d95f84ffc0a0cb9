/** The files of a run that travel with it: stored before an entry that may have changed them, and brought back elsewhere. */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../effects/git/git.ts";
import {
  bundleTo,
  commitHeld,
  heldIn,
  restoreHeld,
  SnapshotFailed,
  unbundle,
  type Held,
  type SnapshotPlace,
} from "../effects/git/snapshot.ts";
import { RunnerError, type Blobs, type Ports } from "../engine/ports.ts";
import type { Entry, Source, Tree } from "../flow/event.ts";
import { isFolder } from "./world/files.ts";

export type TreePlace = SnapshotPlace & {
  /** A folder of the run beside its files, for bundles on their way. */
  readonly folder: string;
};

export type TreeOptions = {
  readonly git: Git;
  readonly run: string;
  readonly place: TreePlace;
  readonly blobs: Blobs;
  /** The commit that everybody has: bundles hold what came after it. null: there is none. */
  readonly base: string | null;
  /** What is stored already. */
  readonly newest: Tree | null;
};

/** The newest files that a journal names; null: none yet, and the source has them. */
export function newestTree(entries: readonly Entry[]): Tree | null {
  return entries.findLast(({ tree }) => tree !== undefined)?.tree ?? null;
}

/** The commit that everybody has who has the source. */
export function sharedCommit(source: Source): string | null {
  if (source.kind === "none") return null;
  return source.kind === "bundle" ? (source.files ?? source.commit) : source.commit;
}

export type TravellingTree = {
  readonly snapshot: NonNullable<Ports["snapshot"]>;
  /** The commit of the snapshot that the working tree is at; null: of none, it is as the source has it. */
  readonly at: () => string | null;
};

/** `held`: what the working tree holds now, which is stored. */
export function createTree(options: TreeOptions, held: Held): TravellingTree {
  const { git, run, place, blobs, base } = options;
  const file = join(place.folder, "tree.bundle");
  let last = held;
  let at = options.newest?.commit ?? null;
  const take = async (): Promise<Tree | null> => {
    const now = await heldIn(git, place, last);
    if (now.tree === last.tree && now.head === last.head && now.on === last.on) {
      last = now;
      return null;
    }
    const commit = await commitHeld(git, place.top, now, run);
    await bundleTo(git, place.top, file, commit, base === null ? [] : [base]);
    const { size } = statSync(file);
    if (size > MOST_TREE_BYTES) throw tooLarge(run, size);
    const blob = await blobs.put(run, readFileSync(file));
    rmSync(file, { force: true });
    last = now;
    at = commit;
    return { commit, blob };
  };
  return {
    // The worktree is removed when the run has been finalized: nothing of it has to travel any more.
    snapshot: async () => (isFolder(place.top) ? await asUnavailable(take, run) : null),
    at: () => at,
  };
}

/** Of a run that goes on: its files are as the entry that names them left them, on the branch of that time or on this one. */
export async function restoreTree(
  { git, run, place, blobs }: TreeOptions,
  tree: Tree,
  branch?: string,
): Promise<void> {
  const file = join(place.folder, "restore.bundle");
  const bytes = await blobs.get(tree.blob);
  if (bytes === null)
    throw new RunnerError(
      "WORKTREE_UNAVAILABLE",
      `The files of run ${run} cannot be restored: the bundle ${tree.blob.slice(0, 12)} of commit ${tree.commit.slice(0, 12)} is missing or damaged.`,
    );
  await asUnavailable(async () => {
    writeFileSync(file, bytes);
    try {
      await unbundle(git, place.top, file, tree.commit);
      await restoreHeld(git, place, tree.commit, branch);
    } finally {
      rmSync(file, { force: true });
    }
  }, run);
}

export async function asUnavailable<T>(work: () => Promise<T>, run: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SnapshotFailed)) throw error;
    throw new RunnerError(
      "WORKTREE_UNAVAILABLE",
      `git cannot handle the files of run ${run}: ${error.message}.`,
    );
  }
}

/** What a run adds to the repository that it began with. */
const MOST_TREE_BYTES = 64 * 1024 * 1024;

function tooLarge(run: string, size: number): RunnerError {
  const mb = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MB`;
  return new RunnerError(
    "WORKTREE_UNAVAILABLE",
    `The files that run ${run} has made are ${mb(size)} when packed, and ${mb(MOST_TREE_BYTES)} at most travel with a run. ` +
      "Name what can be made again (builds, packages) in .gitignore.",
  );
}
