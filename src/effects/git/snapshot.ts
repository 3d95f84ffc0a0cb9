/** The files of a run as one commit: taken beside the index that the run itself uses, packed into a bundle, and brought back. */
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT_MS, type Git, type GitAnswer } from "./git.ts";
import { branchOf, headInFiles, tipOf } from "./git-queries.ts";

/** Where a run works. */
export type SnapshotPlace = {
  /** The top of the working tree. */
  readonly top: string;
  /** A file beside the working tree for an index of ours: it remembers which files did not change. */
  readonly index: string;
  /** Ignored files that belong to the run all the same, relative to the top. */
  readonly carry: readonly string[];
};

/** What a working tree holds; `head` is null before the first commit. */
export type Held = {
  readonly tree: string;
  readonly head: string | null;
  readonly on: string | null;
  /** The digest of our index: while it is the same, so is the tree. */
  readonly index: string;
};

/** A question to git failed, so the files are not known. */
export class SnapshotFailed extends Error {
  override readonly name = "SnapshotFailed";
}

/** `last`: what it held before, as this function gave it. It is given again where nothing is different. */
export async function heldIn(git: Git, place: SnapshotPlace, last: Held | null = null): Promise<Held> {
  const { top, index } = place;
  const { head, on } = await headOf(git, top, last);
  await addAll(git, place, head);
  if (last !== null && last.index === digestOf(index) && last.head === head && last.on === on) return last;
  const written = await git(top, ["write-tree"], { index });
  if (written.ok) return { tree: written.out.trim(), head, on, index: digestOf(index) };
  // The run has cleared objects that only our index names (`git gc --prune=now`): they are made again.
  rmSync(index, { force: true });
  await addAll(git, place, head);
  const again = must(await git(top, ["write-tree"], { index })).trim();
  return { tree: again, head, on, index: digestOf(index) };
}

async function addAll(git: Git, { top, index, carry }: SnapshotPlace, head: string | null): Promise<void> {
  if (!existsSync(index) && head !== null) must(await git(top, ["read-tree", head], { index }));
  // A file that cannot be read (a model may have made one) is left out; nothing else is.
  const added = await git(top, ["add", "--all", "--ignore-errors"], { index, timeoutMs: CHECKOUT_MS });
  if (
    !added.ok &&
    (added.exit === null || !/adding files failed|unable to index|Permission denied/.test(added.why))
  )
    throw new SnapshotFailed(added.why);
  for (const path of carry)
    if (lstatSync(join(top, path), { throwIfNoEntry: false }) !== undefined)
      must(await git(top, ["add", "--all", "--force", "--", path], { index, timeoutMs: CHECKOUT_MS }));
}

async function headOf(git: Git, top: string, last: Held | null): Promise<Pick<Held, "head" | "on">> {
  const said = last === null ? null : headInFiles(top);
  const isSame = said !== null && said.commit === last?.head;
  const head = isSame ? said.commit : await tipOf(git, top, "HEAD");
  const branch = isSame ? said.branch : await branchOf(git, top);
  return { head, on: branch === null ? null : `refs/heads/${branch}` };
}

function digestOf(index: string): string {
  return existsSync(index) ? createHash("sha256").update(readFileSync(index)).digest("hex") : "";
}

/** Written as the last line, so that a restored working tree is on the same branch. */
const ON = "On ";

/** The commit of these files, on top of what the run itself has committed. */
export async function commitHeld(
  git: Git,
  top: string,
  { tree, head, on }: Held,
  run: string,
): Promise<string> {
  const message = `Files of run ${run}\n\n${on === null ? "" : `${ON}${on}`}`;
  const parent = head === null ? [] : ["-p", head];
  return must(await git(top, [...OURS, "commit-tree", tree, ...parent, "-m", message])).trim();
}

/** Not the user's name: nobody wrote this commit. */
const OURS = ["-c", "user.name=Lockstep", "-c", "user.email=lockstep@localhost"];

/** Under which a bundle brings its commit. */
function refOf(commit: string): string {
  return `refs/lockstep/${commit}`;
}

/**
 * Writes what `commit` has and `known` has not, as a bundle of git. `git bundle` would need a name for the commit in the
 * repository, and three processes more.
 */
export async function bundleTo(
  git: Git,
  top: string,
  file: string,
  commit: string,
  known: readonly string[],
): Promise<void> {
  const version = commit.length === 40 ? ["# v2 git bundle"] : ["# v3 git bundle", "@object-format=sha256"];
  const needs = known.map((one) => `-${one}`);
  writeFileSync(file, [...version, ...needs, `${commit} ${refOf(commit)}`, "", ""].join("\n"));
  const input = [commit, ...known.map((one) => `^${one}`)].join("\n");
  const packed = await git(top, PACK, { pipes: { input, output: file }, timeoutMs: CHECKOUT_MS });
  if (!packed.ok) rmSync(file, { force: true });
  must(packed);
}

const PACK = ["pack-objects", "--quiet", "--stdout", "--revs", "--thin", "--delta-base-offset"];

/** Reads a bundle into the repository of `top`. Refused where it does not bring that commit. */
export async function unbundle(git: Git, top: string, file: string, commit: string): Promise<void> {
  const ref = refOf(commit);
  const flags = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
  must(await git(top, [...CHECKED, "fetch", ...flags, file, `+${ref}:${ref}`], { timeoutMs: CHECKOUT_MS }));
  if ((await tipOf(git, top, ref)) !== commit)
    throw new SnapshotFailed(`the bundle does not hold the commit ${commit}`);
}

/** Takes away the name that it was brought under, once something else names it. */
export async function forgetBundled(git: Git, top: string, commit: string): Promise<void> {
  await git(top, ["update-ref", "-d", refOf(commit)]);
}

/** What others made is checked before it is believed. */
export const CHECKED = ["-c", "fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true"];

/** Whether a working tree is as the commit of a snapshot says. */
export async function isAt(git: Git, top: string, { tree, head }: Held, snapshot: string): Promise<boolean> {
  const asked = await git(top, ["log", "-1", "--format=%T %P", snapshot, "--"]);
  const [itsTree, itsHead = null] = asked.ok ? asked.out.trim().split(" ") : [];
  return asked.ok && itsTree === tree && itsHead === head;
}

/**
 * Makes the working tree what the commit of a snapshot says: its files, the commit and the branch that the run was at, or
 * this branch.
 */
export async function restoreHeld(
  git: Git,
  place: SnapshotPlace,
  commit: string,
  branch?: string,
): Promise<void> {
  const { top, index } = place;
  const how = { timeoutMs: CHECKOUT_MS, whole: true } as const;
  const message = must(await git(top, ["log", "-1", "--format=%P%n%B", commit]));
  const [parents = "", ...lines] = message.split("\n");
  const said = lines.findLast((line) => line.startsWith(ON))?.slice(ON.length) ?? null;
  const on = branch === undefined ? said : `refs/heads/${branch}`;
  const head = parents.split(" ")[0] || null;
  rmSync(index, { force: true });
  must(await git(top, ["clean", "-ffdq"], how));
  must(await git(top, ["read-tree", "--reset", "-u", commit], how));
  if (on !== null) {
    must(await git(top, ["check-ref-format", on]));
    must(await git(top, ["symbolic-ref", "HEAD", on]));
  }
  must(
    await (head === null
      ? git(top, ["update-ref", "-d", "HEAD"], how)
      : git(top, ["update-ref", ...(on === null ? ["--no-deref"] : []), "HEAD", head], how)),
  );
  // What the run had not committed is not committed again, and nothing is staged.
  must(await git(top, head === null ? ["read-tree", "--empty"] : ["read-tree", head], how));
}

/** The working tree as a commit has it, on this branch, whatever it held before. */
export async function resetTo(git: Git, place: SnapshotPlace, commit: string, branch: string): Promise<void> {
  const { top, index } = place;
  const how = { timeoutMs: CHECKOUT_MS, whole: true } as const;
  rmSync(index, { force: true });
  must(await git(top, ["clean", "-ffdq"], how));
  must(await git(top, ["checkout", "--quiet", "--force", "-B", branch, commit, "--"], how));
}

export function must(answer: GitAnswer): string {
  if (answer.ok) return answer.out;
  throw new SnapshotFailed(answer.why);
}
