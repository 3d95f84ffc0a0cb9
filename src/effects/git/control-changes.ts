/**
 * What a run changed that is not merged or pushed without a person: files that Lockstep, git or npm obey, and submodules,
 * whose new commits only the user's own copy has.
 */
import { join } from "node:path";
import { isControlPath } from "../../flow/machine/control.ts";
import type { Worktree } from "../../flow/event.ts";
import type { Git } from "./git.ts";
import { listBranches, rawChanges, type FileVersion, type RawChange } from "./git-queries.ts";
import { isOwnTree, LINK } from "./submodules.ts";
import { namedPaths, quoted } from "./words.ts";

export type HeldChanges = {
  /** The files that are obeyed. */
  readonly files: readonly string[];
  readonly submodules: readonly Moved[];
};

/** A submodule and its commits; null: it is not there. */
type Moved = { readonly path: string; readonly from: string | null; readonly to: string | null };

/** What is different between two commits or trees and needs a person's look. null: git cannot tell. */
export async function heldChanges(
  git: Git,
  home: string,
  from: string,
  to: string,
): Promise<HeldChanges | null> {
  const changes = await rawChanges(git, home, from, to);
  return changes === null ? null : heldAmong(changes);
}

export function heldAmong(changes: readonly RawChange[]): HeldChanges {
  const commitOf = ({ mode, blob }: FileVersion) => (mode === LINK ? blob : null);
  return {
    files: changes.map(({ path }) => path).filter(isControlPath),
    submodules: changes
      .map(({ path, before, after }) => ({ path, from: commitOf(before), to: commitOf(after) }))
      .filter((one) => one.from !== null || one.to !== null),
  };
}

/** The same for what a branch has and its base has not. */
export async function heldChangesOn(
  git: Git,
  { home, base, commit }: Worktree,
  branch: string,
): Promise<HeldChanges | null> {
  const branches = await listBranches(git, home, [branch]);
  if (branches === null) return null;
  const tip = branches.find(({ name }) => name === branch)?.tip;
  if (tip === undefined) return NOTHING_HELD;
  // Of the base itself, what it has got since the run began; of a branch, what a pull request of it would show.
  const answer = branch === base ? null : await git(home, ["merge-base", `refs/heads/${base}`, tip]);
  const from = answer === null ? commit : answer.ok ? answer.out.trim() : commit;
  const found = await heldChanges(git, home, from, tip);
  // Submodules of the base were moved by somebody else: what the run moved was not merged.
  return found === null || branch !== base ? found : { ...found, submodules: [] };
}

const NOTHING_HELD: HeldChanges = { files: [], submodules: [] };

export function isHeld(held: HeldChanges | null): boolean {
  return held === null || held.files.length + held.submodules.length > 0;
}

/** What is done by hand: `first` in each submodule, then `command`, then `last`. */
export type ByHand = {
  readonly command: string;
  readonly first?: (folder: string, moved: Moved) => string;
  readonly last?: (paths: readonly string[]) => string;
};

/** Why it is held, with what to look at and how to do it by hand. */
export function heldFor(
  held: HeldChanges | null,
  what: string,
  { home, path: tree, commit }: Worktree,
  branch: string,
  { command, first, last }: ByHand,
): string {
  if (held === null) return `${what}: git cannot list what ${branch} changes; by hand: ${command}`;
  const { files, submodules } = held;
  const at = `git -C ${quoted(home)}`;
  const shown = files.slice(0, MOST_SHOWN).map(quoted).join(" ");
  const moved = submodules.map(({ path, to }) => `${path} to ${to === null ? "nothing" : to.slice(0, 10)}`);
  const there = submodules.filter((one) => one.to !== null);
  // A repository that the run has put there is nowhere else.
  const own = there.filter(({ path }) => isOwnTree(join(home, path)));
  const reasons = [
    ...(files.length === 0
      ? []
      : [
          `${branch} changes ${namedPaths(files.map((path) => ({ path })))}, which Lockstep or git would obey`,
        ]),
    ...(submodules.length === 0
      ? []
      : [`${branch} moves submodules, whose commits others may not have (${moved.join(", ")})`]),
  ];
  const looks = [
    ...(files.length === 0 ? [] : [`${at} diff ${commit.slice(0, 10)} ${quoted(branch)} -- ${shown}`]),
    ...there.map(({ path, from, to }) => {
      const range = from === null ? to!.slice(0, 10) : `${from.slice(0, 10)}..${to!.slice(0, 10)}`;
      const folder = own.some((one) => one.path === path) ? home : tree;
      return `git -C ${quoted(join(folder, path))} log -p ${range}`;
    }),
  ];
  const commands = [
    ...(first === undefined ? [] : own.map((one) => first(join(home, one.path), one))),
    command,
    ...(last === undefined || own.length === 0 ? [] : [last(own.map(({ path }) => path))]),
  ];
  return `${what}: ${reasons.join("; ")}. Look at it with: ${looks.join("; ")}; then by hand: ${commands.join(" && ")}`;
}

const MOST_SHOWN = 5;
