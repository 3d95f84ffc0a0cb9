/**
 * Bringing the working tree that has a branch checked out to the next commit of it: it gets there or stays as it was,
 * whatever is killed meanwhile.
 *
 * What is under way is written down before it begins, in `info`, where no command in a sandbox can write. The process that
 * merges next finds the note of one that died, and undoes what it had begun: a file is set back only if it is as one of the
 * commits has it, or is cut off or missing. So nothing that a person wrote is lost.
 */
import { randomUUID } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isObject } from "../../flow/json.ts";
import { CHECKOUT_MS, waitForGit, type Git } from "./git.ts";
import { branchOf, changesOf, rawChanges, tipOf, type FileVersion, type RawChange } from "./git-queries.ts";
import { findGitPlace, pointerIn } from "./git-place.ts";
import { copyIn, dropIndex, holdIndex, isLocked, isLockedBy, lockedWhy, putIndex } from "./index-lock.ts";
import { putFile } from "./put-file.ts";
import { removeRefLocks } from "./ref-locks.ts";
import { namedPaths, quoted } from "./words.ts";
import { errorText } from "../../flow/text/harmless.ts";

/** What is under way. */
type Note = {
  readonly run: string;
  readonly place: string;
  readonly from: string;
  readonly to: string;
  readonly token: string;
};

export type Moved = { readonly ok: true } | { readonly ok: false; readonly why: string };

/** Moves the branch and the working tree `place` that has it checked out. Called by one process at a time. */
export async function bringUpToDate(
  git: Git,
  { run, place, base, from, to }: Omit<Note, "token"> & { readonly base: string },
): Promise<Moved> {
  const found = findGitPlace(place);
  if (found === null) return refused(`${place} is not a working tree of git`);
  const { gitDir, common } = found;
  const obstacle = await obstacleIn(git, place, base, gitDir);
  if (obstacle !== null) return refused(obstacle);
  const note = { run, place, from, to, token: randomUUID() };
  try {
    writeNote(common, note);
    const held = holdIndex(gitDir, textOf(note));
    if ("why" in held) {
      removeNote(common);
      return refused(`${base} is checked out at ${place}, and its index is locked: ${held.why}`);
    }
    const flags = ["--ff-only", "--no-stat", "--no-autostash", "--quiet"];
    const how = { timeoutMs: CHECKOUT_MS, whole: true, puts: held.puts } as const;
    const answer = await git(place, ["merge", ...flags, to], how);
    if (answer.ok) {
      held.put();
      removeNote(common);
      return { ok: true };
    }
    const unfinished = await settle(git, common, note);
    if (unfinished !== null) return refused(unfinished);
    if ((await tipOf(git, place, "HEAD")) === to) return { ok: true };
    return refused(`git refuses to bring ${place} up to date: ${answer.why}`);
  } catch (error) {
    return refused(`${place} cannot be brought up to date: ${errorText(error)}`);
  }
}

/** Why it cannot be done now; null: nothing is in the way. */
async function obstacleIn(git: Git, place: string, base: string, gitDir: string): Promise<string | null> {
  const all = await changesOf(git, place, "no");
  if (all === null) return `git cannot read the status of ${place}`;
  // An agent may be run while its files are being written; those that the merge would change, git refuses by itself.
  const changes = all.filter(({ path }) => !path.split("/").includes(".agent"));
  const begun = UNFINISHED.find(([file]) => lstatSync(join(gitDir, file), { throwIfNoEntry: false }))?.[1];
  if (begun !== undefined) {
    const files = changes.length === 0 ? "" : ` (${namedPaths(changes)})`;
    return (
      `${base} is checked out at ${place}, where a ${begun} is not finished${files}; finish it, or give it up ` +
      `with: git -C ${quoted(place)} ${begun} --abort`
    );
  }
  if (changes.length === 0) return null;
  const are = changes.length === 1 ? "is" : "are";
  return (
    `${base} is checked out at ${place}, where ${namedPaths(changes)} ${are} not committed; ` +
    `commit or set aside with: git -C ${quoted(place)} stash`
  );
}

/** What git was asked to do in a working tree and waits with. A stash would be refused then. */
const UNFINISHED = [
  ["MERGE_HEAD", "merge"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
] as const;

// What a process that died has left half done.

export type Recovered =
  | { readonly kind: "nothing" }
  | { readonly kind: "recovered"; readonly place: string; readonly run: string }
  /** The note named a folder that is not a working tree of this repository. */
  | { readonly kind: "dropped" }
  | { readonly kind: "stuck"; readonly why: string };

/** Finishes or undoes it. Called by one process at a time, so that the one that wrote the note has ended. */
export async function recoverCheckout(
  git: Git,
  common: string,
  onWait: (text: string) => void,
): Promise<Recovered> {
  const note = readNote(common);
  if (note === null) return { kind: "nothing" };
  const { run, place } = note;
  if (!isPlaceOf(common, place)) {
    removeNote(common);
    return { kind: "dropped" };
  }
  const pid = await waitForGit(run, (one) => onWait(waitingText(run, one, place)));
  if (pid !== null)
    return { kind: "stuck", why: `git (process ${pid}) of run ${run} is still at work in ${place}` };
  try {
    removeRefLocks(place, await branchOf(git, place));
    const why = await settle(git, common, note);
    return why === null ? { kind: "recovered", place, run } : { kind: "stuck", why };
  } catch (error) {
    return { kind: "stuck", why: `${place} cannot be set back: ${errorText(error)}` };
  }
}

export function waitingText(run: string, pid: number, place: string): string {
  return `Waiting for git (process ${pid}) of run ${run}, which is still at work in ${place}.`;
}

/** With the git that was at work ended: the working tree is at the one commit or at the other. Gives why it is not; null: it is. */
async function settle(git: Git, common: string, note: Note): Promise<string | null> {
  const { place, from, to } = note;
  const { gitDir } = findGitPlace(place)!;
  const text = textOf(note);
  const isOurs = isLockedBy(gitDir, text);
  const isLeft = lstatSync(copyIn(gitDir), { throwIfNoEntry: false }) !== undefined;
  // Not interrupted: the index would stay locked.
  const steady: Git = async (cwd, args, how) => await git(cwd, args, { ...how, whole: true });
  const head = isOurs || isLeft ? await tipOf(steady, place, "HEAD") : null;
  if (isOurs && head === to) putIndex(gitDir, text);
  else if (isOurs || (isLeft && head === from)) {
    if (!isOurs && isLocked(gitDir)) return lockedWhy(gitDir);
    const held = holdIndex(gitDir, text);
    if ("why" in held) return held.why;
    const why = await undo(steady, place, copyIn(gitDir), { from, to });
    if (why !== null) return why;
  }
  // Else all of it was done, or somebody removed the lock and went on from there.
  dropIndex(gitDir, text);
  removeNote(common);
  return null;
}

function isPlaceOf(common: string, place: string): boolean {
  const found = findGitPlace(place);
  return found !== null && found.common === common && found.top === place;
}

type Ends = { readonly from: string; readonly to: string };

/** Sets every file that is different between the commits to what it was before. Gives why it cannot; null: it did. */
async function undo(git: Git, place: string, index: string, { from, to }: Ends): Promise<string | null> {
  const unknown = `git cannot tell what is half updated in ${place}`;
  const changes = await rawChanges(git, place, from, to);
  if (changes === null) return unknown;
  if (changes.length === 0) return null;
  // Small indexes of those files alone: the real one stays as it is.
  const files = { from: `${index}-from`, to: `${index}-to` };
  try {
    const old = await differing(
      git,
      place,
      files.from,
      changes.map(({ path, before }) => ({ path, ...before })),
    );
    const young = await differing(
      git,
      place,
      files.to,
      changes.map(({ path, after }) => ({ path, ...after })),
    );
    if (old === null || young === null) return unknown;
    const known = new Set(changes.map(({ path }) => path));
    // What a person wrote meanwhile stays, and is theirs to commit or set aside.
    const theirs: string[] = [];
    for (const change of changes)
      if (!(await isOurs(git, place, change, { old, young, known, from, to }))) theirs.push(change.path);
    for (let at = 0; at < theirs.length; at += AT_ONCE)
      for (const index of Object.values(files)) {
        const part = ["--force-remove", "--", ...theirs.slice(at, at + AT_ONCE)];
        if (!(await git(place, ["update-index", ...part], { index })).ok) return unknown;
      }
    const tree = await git(place, ["write-tree"], { index: files.from });
    if (!tree.ok) return unknown;
    const how = { timeoutMs: CHECKOUT_MS, index: files.to } as const;
    const back = await git(place, ["read-tree", "--reset", "-u", tree.out.trim()], how);
    return back.ok ? null : `${place} cannot be set back to ${from.slice(0, 10)}: ${back.why}`;
  } finally {
    for (const file of Object.values(files))
      for (const suffix of ["", ".lock"]) rmSync(`${file}${suffix}`, { force: true });
  }
}

function isNone({ mode }: FileVersion): boolean {
  return /^0+$/.test(mode);
}

/** The files of these that are not in the working tree as they are here; null: git cannot tell. */
async function differing(
  git: Git,
  place: string,
  index: string,
  versions: readonly (FileVersion & { readonly path: string })[],
): Promise<ReadonlySet<string> | null> {
  for (const suffix of ["", ".lock"]) rmSync(`${index}${suffix}`, { force: true });
  const there = versions.filter((version) => !isNone(version));
  for (let at = 0; at < there.length; at += AT_ONCE) {
    const part = there.slice(at, at + AT_ONCE).map(({ mode, blob, path }) => `${mode},${blob},${path}`);
    const args = part.flatMap((entry) => ["--cacheinfo", entry]);
    if (!(await git(place, ["update-index", "--add", ...args], { index })).ok) return null;
  }
  // Else a file that only has another time would count as different. It fails where one is really different.
  await git(place, ["update-index", "-q", "--refresh"], { index });
  const answer = await git(place, ["diff-files", "--name-only", "-z", "--ignore-submodules=all"], { index });
  if (!answer.ok) return null;
  const missing = versions.filter(isNone).map(({ path }) => path);
  return new Set([...answer.out.split("\0").filter((path) => path !== ""), ...missing]);
}

/** As many as a command line takes, however long their names are. */
const AT_ONCE = 200;

/** Which files are not as the one commit has them, and not as the other; `known`: all that are different between them. */
type Seen = Ends & {
  readonly old: ReadonlySet<string>;
  readonly young: ReadonlySet<string>;
  readonly known: ReadonlySet<string>;
};

/** Whether a file can only be what our git made of it: as one of the commits has it, missing, or cut off. */
async function isOurs(git: Git, place: string, change: RawChange, seen: Seen): Promise<boolean> {
  const { path, before, after } = change;
  const { old, young, known, from, to } = seen;
  const link = linkAbove(place, path);
  // A link that the new commit has in place of a folder is ours too, and what lies behind it is not looked at.
  if (link !== null) return known.has(link) && !young.has(link);
  if (!old.has(path) || !young.has(path)) return true;
  const full = join(place, path);
  const found = lstatSync(full, { throwIfNoEntry: false });
  if (found === undefined) return true;
  if (found.isDirectory()) return filesBelow(full).every((name) => known.has(`${path}/${name}`));
  if (!found.isFile()) return false;
  if (found.size === 0) return true;
  // A write that was cut off ends with a page; a shorter text of any other length is one that a person saved.
  if (found.size % PAGE !== 0) return false;
  const text = readFileSync(full, "latin1");
  for (const [version, commit] of [
    [after, to],
    [before, from],
  ] as const) {
    if (isNone(version)) continue;
    const whole = await git(place, ["cat-file", "--filters", `${commit}:${path}`], { bytes: true });
    if (whole.ok && whole.out.startsWith(text)) return true;
  }
  return false;
}

const PAGE = 4096;

/** The first folder on the way to a file that is a link; null: none is. */
function linkAbove(place: string, path: string): string | null {
  const parts = path.split("/").slice(0, -1);
  for (let length = 1; length <= parts.length; length += 1) {
    const folder = parts.slice(0, length).join("/");
    if (lstatSync(join(place, folder), { throwIfNoEntry: false })?.isSymbolicLink()) return folder;
  }
  return null;
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

// The note.

function noteFile(common: string): string {
  return join(common, "info", "lockstep-merge.json");
}

function textOf(note: Note): string {
  return `${JSON.stringify(note)}\n`;
}

function writeNote(common: string, note: Note): void {
  putFile(noteFile(common), textOf(note), 0o600);
}

function removeNote(common: string): void {
  rmSync(noteFile(common), { force: true });
}

/** null: there is none that we could have written. */
function readNote(common: string): Note | null {
  const file = noteFile(common);
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return null;
  try {
    const said: unknown = JSON.parse(pointerIn(file));
    if (!isObject(said)) return null;
    const { run, place, from, to, token } = said;
    const isText = (value: unknown): value is string => typeof value === "string";
    if (!isText(run) || !isText(place) || !isText(from) || !isText(to) || !isText(token)) return null;
    return COMMIT.test(from) && COMMIT.test(to) ? { run, place, from, to, token } : null;
  } catch {
    return null;
  }
}

/** Whether a process was killed, or is at work now, while it brought a working tree up to date; gives which. */
export function underWayIn(common: string): { readonly run: string; readonly place: string } | null {
  return readNote(common);
}

const COMMIT = /^[\da-f]{40,64}$/;

function refused(why: string): Moved {
  return { ok: false, why };
}
