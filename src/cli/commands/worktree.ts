/** `lockstep worktree list|prune|repair` */
import type { Journal } from "../../run/index.ts";
import { findProject } from "../../run/world/project.ts";
import { stateStanding } from "../../run/trust/state-folders.ts";
import {
  listWorktrees,
  pruneWorktrees,
  repairWorktrees,
  type Pruned,
  type Repaired,
  type WorktreeRow,
} from "../../run/records/worktrees.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { withJournal, withOwnJournal } from "../journal.ts";
import { headed, shownInLine, type Paint } from "../text/text.ts";

export async function worktrees(call: CallOf<"worktree">): Promise<number> {
  const { words, screen, host } = call;
  const [verb] = words;
  if (verb === "list" && call.flags["dry-run"])
    throw new UsageError("--dry-run only works with prune and repair.");
  const { root } = findProject(call.cwd, call.stateDir);
  const dryRun = call.flags["dry-run"];
  const look = async (journal: Journal | null, stateDir: string): Promise<number> => {
    const isOurs = stateStanding(stateDir, host.env).kind !== "foreign";
    const around = { env: host.env, signal: host.interruption(), root, isOurs };
    const none = () => screen.tell(`No run recorded in ${stateDir} has a worktree.`);
    if (verb === "list") {
      const rows = journal === null ? [] : await listWorktrees(journal, around);
      if (call.flags.json) screen.document({ v: 1, worktrees: rows });
      else if (rows.length === 0) none();
      else screen.print(listing(rows, screen.out));
      return 0;
    }
    if (verb === "repair") {
      const repaired = await repairWorktrees(journal, around, { dryRun, now: Date.now() });
      if (call.flags.json) screen.document({ v: 1, dryRun, repaired });
      else if (repaired.length === 0) screen.tell("Nothing to repair.");
      else
        for (const { what, ...one } of repaired)
          screen.print(doneLine({ ...one, why: `${what}; ${one.why}` }, dryRun, screen.out));
      return 0;
    }
    const pruned = journal === null ? [] : await pruneWorktrees(journal, around, { dryRun });
    if (call.flags.json)
      screen.document({ v: 1, dryRun, worktrees: pruned.map(({ row, ...rest }) => ({ ...row, ...rest })) });
    else if (pruned.length === 0) none();
    else
      for (const { row, ...one } of pruned)
        screen.print(`${row.run}  ${doneLine({ ...one, path: row.path }, dryRun, screen.out)}`);
    return 0;
  };
  const isLooking = verb === "list" || dryRun;
  return await (isLooking ? withJournal(call, look) : withOwnJournal(call, null, look));
}

function listing(rows: readonly WorktreeRow[], paint: Paint): string {
  const cells = rows.map((row) => [
    row.run,
    row.state,
    `${shownInLine(row.branch, 60)} → ${shownInLine(row.base, 60)}`,
    standing(row),
    inIt(row),
    shownInLine(row.path, 400),
  ]);
  return headed(paint, [["RUN", "STATE", "BRANCH", "MERGED", "UNCOMMITTED", "PATH"], ...cells]).join("\n");
}

/** What is not committed is not on the branch, so that a branch without it counts for nothing. */
function standing({ merged, uncommitted, held }: WorktreeRow): string {
  if (merged === null) return "unknown";
  if (uncommitted !== null && uncommitted.length > 0) return held ? "held, uncommitted" : "uncommitted";
  if (held && !merged) return "held";
  return merged ? "merged" : "not merged";
}

function inIt({ exists, made, uncommitted }: WorktreeRow): string {
  if (!exists) return "folder gone";
  if (!made) return "half made";
  return uncommitted === null ? "unknown" : String(uncommitted.length);
}

type Done = { readonly done: Pruned["done"] | Repaired["done"]; readonly path: string; readonly why: string };

function doneLine({ done, path, why }: Done, dryRun: boolean, paint: Paint): string {
  const would = dryRun && done !== "kept" ? "would be " : "";
  const word = paint(done === "kept" ? "yellow" : "green", `${would}${done}`);
  return `${word}  ${shownInLine(path, 400)}  ${paint("dim", shownInLine(why, 300))}`;
}
