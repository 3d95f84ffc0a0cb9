/** `lockstep runs --prune`: what may go is shown, asked about, and removed. */
import type { Journal } from "../../run/index.ts";
import {
  leftovers,
  named,
  prunable,
  prune,
  removeLeftovers,
  worktreesOf,
  type LeftWorktree,
} from "../../run/records/prune.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { isYes } from "../conduct.ts";
import { age, count, shellWord, shownInLine, size, table } from "../text/text.ts";

const USUAL_AGE = 30 * 86_400_000;

export async function pruneRuns(
  call: CallOf<"runs">,
  journal: Journal | null,
  stateDir: string,
): Promise<number> {
  const { screen } = call;
  const now = Date.now();
  const { keep } = call.flags;
  const olderThanMs = call.flags["older-than"] ?? (keep === undefined ? USUAL_AGE : 0);
  const options = { olderThanMs, now, stateDir, ...(keep !== undefined && { keep }) };
  const dryRun = call.flags["dry-run"];
  const runs =
    journal === null
      ? []
      : call.words.length > 0
        ? await named(journal, call.words, stateDir)
        : await prunable(journal, options);
  const bytes = runs.reduce((sum, run) => sum + run.bytes, 0);
  if (!call.flags.json && runs.length > 0) {
    const rows = runs.map(({ run, agent, state, updatedAt, bytes: own }) => [
      run,
      shownInLine(agent, 40),
      state,
      age(now - Date.parse(updatedAt)),
      size(own),
    ]);
    screen.print(table(rows).join("\n"));
  }
  const worktrees = journal === null ? [] : await worktreesOf(journal, runs);
  if (!call.flags.json) tellWorktrees(call, worktrees);
  const what = `${count(runs.length, "run")}, ${size(bytes)}`;
  if (dryRun || runs.length === 0 || journal === null) {
    const look = dryRun ? leftovers : removeLeftovers;
    const left = journal === null ? [] : await look(journal, stateDir);
    // Also after a prune that was killed.
    if (!dryRun) await journal?.tidy();
    if (call.flags.json) screen.document({ v: 1, dryRun, runs, bytes, worktrees, leftovers: left.length });
    else screen.tell(runs.length === 0 ? "Nothing to remove." : `Would remove ${what}.`);
    tellLeft(call, left, dryRun);
    return 0;
  }
  if (!call.flags.yes && !(await isConfirmed(call, what))) {
    screen.complain("Nothing was removed.");
    return 1;
  }
  const gone = await prune(journal, runs, stateDir, (done) =>
    screen.status(`removed ${done} of ${count(runs.length, "run")}`),
  );
  screen.status(null);
  const left = await removeLeftovers(journal, stateDir);
  const freed = gone.reduce((sum, run) => sum + run.bytes, 0);
  if (call.flags.json)
    screen.document({ v: 1, dryRun, runs: gone, bytes: freed, worktrees, leftovers: left.length });
  else screen.tell(`Removed ${count(gone.length, "run")}, ${size(freed)}.`);
  tellLeft(call, left, dryRun);
  return 0;
}

/** Said before they are asked about: afterwards only git knows them. */
function tellWorktrees({ screen }: CallOf<"runs">, worktrees: readonly LeftWorktree[]): void {
  for (const { run, path, home } of worktrees.slice(0, MOST_WORKTREES)) {
    const [at, of] = [path, home].map((folder) => shellWord(shownInLine(folder, 400)));
    screen.complain(
      `The worktree of run ${run} is kept. Inspect it with: git -C ${at} status\n` +
        `  and remove it with: git -C ${of} worktree remove ${at}`,
    );
  }
  const more = worktrees.length - MOST_WORKTREES;
  if (more > 0) screen.complain(`${count(more, "more worktree")} of these runs are kept: git worktree list`);
}

const MOST_WORKTREES = 10;

/** Files that a prune which was killed did not come to. */
function tellLeft({ screen, flags }: CallOf<"runs">, left: readonly string[], dryRun: boolean): void {
  if (left.length === 0 || flags.json) return;
  screen.tell(
    `${dryRun ? "Would remove" : "Removed"} files that ${count(left.length, "removed run")} had left.`,
  );
}

async function isConfirmed(call: CallOf<"runs">, what: string): Promise<boolean> {
  if (!call.screen.isAnswering)
    throw new UsageError(
      `Cannot ask for confirmation to remove ${what} without a terminal: pass --yes, or preview with --dry-run.`,
    );
  return await isYes(call, `Remove ${what} for good?`, call.host.stopped());
}
