/** Merging the branch of a run into the base branch of its remote, where no working tree of a person is involved. */
import { heldChanges, heldFor, isHeld } from "./control-changes.ts";
import type { Finalizing } from "./finalize.ts";
import { isAncestor, tipOf } from "./git-queries.ts";
import { applied, failedEffect, held, type Done } from "../actions/ledger.ts";
import { closingsIn } from "../actions/pull.ts";
import { troubleWith } from "./remote.ts";
import { namedPaths, quoted } from "./words.ts";

export async function mergeOnRemote(it: Finalizing): Promise<boolean> {
  const { git, ledger, worktree } = it;
  const { branch, base, home, commit, finalize } = worktree;
  const { remote } = finalize;
  return await ledger.act({
    kind: "merge",
    key: "merge",
    target: `${remote} ${base}`,
    detail: `merge ${branch} into ${base} of ${remote}`,
    find: async () => {
      const old = await fetchBase(it);
      const tip = await tipOf(git, home, `refs/heads/${branch}`);
      if (typeof old !== "string" || tip === null || tip === commit) return null;
      return (await isAncestor(git, home, tip, old)) ? `${branch} is in ${base} of ${remote}` : null;
    },
    perform: async () => {
      const closings = await closingsIn(it);
      if (closings.length > 0)
        return held(
          `not merged: its commits would close other issues on GitHub (${closings.slice(0, 10).join(", ")}); ${byHand(it)}`,
        );
      const trouble = await troubleWith(git, worktree);
      if (trouble !== null) return held(`not merged into ${base} of ${remote}: ${trouble}`);
      for (let round = 0; round < ROUNDS; round += 1) {
        const done = await mergeOnce(it);
        if (done !== "moved") return done;
      }
      return failedEffect(`${base} of ${remote} moved each time that ${branch} was to be merged into it`);
    },
  });
}

const ROUNDS = 5;
const REMOTE_MS = 5 * 60_000;

/** The tip of the base branch there, which is here then. */
async function fetchBase({ git, worktree }: Finalizing): Promise<string | Done> {
  const { base, home, finalize } = worktree;
  const { remote } = finalize;
  const tracking = `refs/remotes/${remote}/${base}`;
  const flags = ["--quiet", "--no-tags", "--no-write-fetch-head", "--upload-pack=git-upload-pack"];
  const how = { timeoutMs: REMOTE_MS, outside: true } as const;
  const fetched = await git(home, ["fetch", ...flags, remote, `+refs/heads/${base}:${tracking}`], how);
  if (!fetched.ok) return failedEffect(`not merged: ${base} of ${remote} cannot be fetched: ${fetched.why}`);
  return (await tipOf(git, home, tracking)) ?? failedEffect(`not merged: ${remote} has no branch ${base}`);
}

async function mergeOnce(it: Finalizing): Promise<Done | "moved"> {
  const { git, worktree, run, agent } = it;
  const { branch, base, home, finalize } = worktree;
  const { remote } = finalize;
  const old = await fetchBase(it);
  if (typeof old !== "string") return old;
  const tip = await tipOf(git, home, `refs/heads/${branch}`);
  if (tip === null) return failedEffect(`not merged: the branch "${branch}" is gone`);
  if (tip === worktree.commit) return applied("nothing to merge: the run has committed nothing");
  if (await isAncestor(git, home, tip, old)) return applied(`${branch} is in ${base} of ${remote}`);

  const flags = ["--write-tree", "-z", "--name-only", "--no-messages"];
  const merged = await git(home, ["merge-tree", ...flags, old, tip]);
  const [tree = "", ...conflicts] = merged.out.split("\0");
  const inConflict = conflicts.filter((name) => name !== "").map((path) => ({ path }));
  if (!merged.ok && merged.exit === 1 && inConflict.length > 0)
    return failedEffect(
      `not merged: ${base} of ${remote} and ${branch} are in conflict over ${namedPaths(inConflict)}; ${byHand(it)}`,
    );
  if (!merged.ok) return failedEffect(`not merged: ${merged.why}`);
  const changes = await heldChanges(git, home, old, tree);
  if (isHeld(changes))
    return held(heldFor(changes, "not merged", worktree, branch, { command: `git merge ${quoted(branch)}` }));
  const message = `Merge branch '${branch}' into ${base}\n\nRun ${run} of ${agent}.`;
  const made = await git(home, ["commit-tree", tree, "-p", old, "-p", tip, "-m", message]);
  if (!made.ok) return failedEffect(`not merged: ${made.why}`);
  const commit = made.out.trim();
  const ref = `refs/heads/${base}`;
  const pushing = ["--porcelain", "--no-verify", "--receive-pack=git-receive-pack"];
  const lease = `--force-with-lease=${ref}:${old}`;
  const how = { timeoutMs: REMOTE_MS, outside: true, lasting: true } as const;
  const pushed = await git(home, ["push", ...pushing, lease, remote, `${commit}:${ref}`], how);
  if (pushed.ok) return applied(`merged ${branch} into ${base} of ${remote} (${commit.slice(0, 10)})`);
  const reason = /^!\t[^\t]*\t(.*)$/m.exec(pushed.out)?.[1] ?? "";
  if (/stale info|fetch first|non-fast-forward|failed to update ref|cannot lock ref/.test(reason))
    return "moved";
  return failedEffect(
    `not merged: ${[reason, pushed.why].filter(Boolean).join(", ")}; the work is kept: ${byHand(it)}`,
  );
}

/** There is no folder on this machine that a person could go to. */
function byHand({ run, worktree: { branch } }: Finalizing): string {
  return `bring the branch home with: lockstep fleet fetch ${run} --as ${quoted(branch)}`;
}
