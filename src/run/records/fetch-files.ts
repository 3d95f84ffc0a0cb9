/** The files of a run that a fleet drove, brought home as a branch of the repository that somebody stands in. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findGitPlace } from "../../effects/git/git-place.ts";
import type { Git } from "../../effects/git/git.ts";
import { tipOf } from "../../effects/git/git-queries.ts";
import { forgetBundled, SnapshotFailed, unbundle } from "../../effects/git/snapshot.ts";
import { RunnerError, type Blobs, type Journal } from "../../engine/ports.ts";
import type { Source } from "../../flow/event.ts";
import { shellWord, shownInLine } from "../../flow/text/harmless.ts";
import { newestTree } from "../tree.ts";
import { gitFor, type WorktreeSurroundings } from "../world/worktree.ts";
import { readRun } from "./runs.ts";

export type FetchedFiles = {
  readonly run: string;
  readonly branch: string;
  readonly commit: string;
  /** What the run began with; null: with no files. */
  readonly base: string | null;
  /** Files that the run had not committed: the last commit of the branch has them. */
  readonly uncommitted: boolean;
};

/** Makes a branch, which must be new or at the same commit already. Nothing else of the repository changes. */
export async function fetchFiles(
  journal: Journal,
  ref: string,
  { cwd, as }: { readonly cwd: string; readonly as?: string },
  around: WorktreeSurroundings,
): Promise<FetchedFiles> {
  const { row, entries } = await readRun(journal, ref);
  const run = row.id;
  const started = entries[0]?.event;
  const source = started?.type === "run.started" ? started.source : undefined;
  if (source === undefined || started?.type !== "run.started" || journal.blobs === undefined)
    throw refusal(
      `The files of run ${run} did not travel: they are in the folder that it was started in`,
      "look there",
    );
  const top = findGitPlace(cwd)?.top;
  if (top === undefined)
    throw refusal(`${cwd} is in no git repository`, "type it in a clone of the repository of the run");
  const git = gitFor(around, [top]);
  const branch = as ?? started.worktree?.branch ?? `lockstep/${run}`;
  if (!(await git(top, ["check-ref-format", "--branch", branch])).ok || branch.startsWith("-"))
    throw refusal(
      `"${shownInLine(branch, 100)}" cannot be the name of a branch`,
      "choose another one with --as",
    );
  const tree = newestTree(entries);
  const base = await beginning({ git, top, blobs: journal.blobs, run }, source, tree !== null);
  let commit = base;
  let uncommitted = false;
  if (tree !== null) {
    await bring({ git, top, blobs: journal.blobs, run }, tree.blob, tree.commit);
    const asked = await git(top, ["log", "-1", "--format=%T %P", tree.commit, "--"]);
    const [files, parent] = asked.ok ? asked.out.trim().split(" ") : [];
    const committed = parent === undefined ? null : await git(top, ["rev-parse", `${parent}^{tree}`]);
    uncommitted = committed === null || !committed.ok || committed.out.trim() !== files;
    commit = uncommitted ? tree.commit : parent!;
  }
  if (commit === null) throw refusal(`Run ${run} has made no files`, "look at it with `lockstep show`");
  const old = await tipOf(git, top, `refs/heads/${branch}`);
  if (old !== null && old !== commit)
    throw refusal(`The branch "${branch}" exists and is at another commit`, "choose another name with --as");
  const made = await git(top, ["update-ref", "-m", `lockstep: run ${run}`, `refs/heads/${branch}`, commit]);
  if (tree !== null) await forgetBundled(git, top, tree.commit);
  if (!made.ok) throw refusal(`git cannot make the branch ${branch}: ${made.why}`, "repair the repository");
  return { run, branch, commit, base, uncommitted };
}

type Place = { readonly git: Git; readonly top: string; readonly blobs: Blobs; readonly run: string };

/** What the run began with, which is in this repository then. */
async function beginning(place: Place, source: Source, isFollowed: boolean): Promise<string | null> {
  if (source.kind === "none") return null;
  const { git, top, run } = place;
  const has = async (commit: string) => (await tipOf(git, top, commit)) === commit;
  if (source.kind === "bundle") {
    const newest = source.files ?? source.commit;
    if (!(await has(newest))) {
      if (source.needs !== undefined && !(await has(source.needs))) throw missing(run, source.needs, top);
      await bring(place, source.blob, newest);
      if (!isFollowed) return newest;
    }
    return isFollowed ? source.commit : newest;
  }
  if (!(await has(source.commit))) throw missing(run, source.commit, top);
  return source.commit;
}

/** A record does not say from where this repository fetches. */
function missing(run: string, commit: string, top: string): RunnerError {
  return refusal(
    `Run ${run} began at the commit ${commit.slice(0, 10)}, which is not in ${top}`,
    `fetch it with \`git -C ${shellWord(top)} fetch\`, or type it in a clone of the repository of the run`,
  );
}

async function bring({ git, top, blobs, run }: Place, blob: string, commit: string): Promise<void> {
  const bytes = await blobs.get(blob);
  if (bytes === null)
    throw refusal(`The stored files of run ${run} are missing or damaged`, "they were pruned");
  const folder = mkdtempSync(join(tmpdir(), "lockstep-fetch-"));
  try {
    const file = join(folder, "bundle");
    writeFileSync(file, bytes);
    await unbundle(git, top, file, commit);
  } catch (error) {
    if (!(error instanceof SnapshotFailed)) throw error;
    throw refusal(
      `git cannot read the stored files of run ${run}: ${shownInLine(error.message, 300)}`,
      "fetch, and repeat it",
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function refusal(what: string, fix: string): RunnerError {
  return new RunnerError("FLEET_NO_SOURCE", `${what}. To continue: ${fix}.`);
}
