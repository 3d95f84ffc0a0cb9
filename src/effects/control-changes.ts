/** What a run changed of the files that Lockstep, git or npm obey. Such a change is not merged or pushed without a person. */
import { isControlPath } from "../flow/control.ts";
import type { Worktree } from "../flow/event.ts";
import { branchesOf, type Git } from "./git.ts";
import { named, quoted } from "./worktree.ts";

/** The control paths that are different between two commits or trees. null: git cannot tell. */
export async function controlChanges(
  git: Git,
  home: string,
  from: string,
  to: string,
): Promise<readonly string[] | null> {
  // Plumbing: no setting of a repository has a say, and no other program is asked about differences.
  const answer = await git(home, ["diff-tree", "-r", "-z", "--no-renames", "--name-only", from, to, "--"]);
  return answer.ok ? answer.out.split("\0").filter((path) => path !== "" && isControlPath(path)) : null;
}

/** The same for what a branch has and its base has not. */
export async function controlChangesOn(
  git: Git,
  { home, base, commit }: Worktree,
  branch: string,
): Promise<readonly string[] | null> {
  const branches = await branchesOf(git, home, [branch]);
  if (branches === null) return null;
  const tip = branches.find(({ name }) => name === branch)?.tip;
  if (tip === undefined) return [];
  // Of the base itself, what it has got since the run began; of a branch, what a pull request of it would show.
  const answer = branch === base ? null : await git(home, ["merge-base", `refs/heads/${base}`, tip]);
  const from = answer === null ? commit : answer.ok ? answer.out.trim() : commit;
  return await controlChanges(git, home, from, tip);
}

/** Why it is held, with what to look at and how to do it by hand. */
export function heldFor(
  paths: readonly string[] | null,
  what: string,
  { home, commit }: Worktree,
  branch: string,
  byHand: string,
): string {
  if (paths === null) return `${what}: git cannot list what ${branch} changes; by hand: ${byHand}`;
  const list = named(paths.map((path) => ({ path })));
  const look = `git -C ${quoted(home)} diff ${commit.slice(0, 10)} ${quoted(branch)} -- ${paths
    .slice(0, MOST_SHOWN)
    .map(quoted)
    .join(" ")}`;
  return `${what}: ${branch} changes ${list}, which Lockstep or git would obey. Look at it with: ${look}; then by hand: ${byHand}`;
}

const MOST_SHOWN = 5;
