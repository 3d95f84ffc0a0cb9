/** Does what is due outside of a run: what its answers ask for, and what becomes of its issue and its branch. */
import { beginningLabels, blockedLabels, closingOf } from "../effects/actions/closing.ts";
import { changeLabels, closeIssue, lookForGitHub } from "../effects/actions/issue.ts";
import { createLedger, type Ledger } from "../effects/actions/ledger.ts";
import { finalize } from "../effects/git/finalize.ts";
import type { ActPort } from "../engine/ports.ts";
import type { Report } from "../story/report.ts";
import type { Due } from "../flow/due.ts";
import type { EffectEvent, Worktree } from "../flow/event.ts";
import type { JsonObject } from "../flow/json.ts";
import type { Blocks } from "./act-blocks.ts";
import type { Driven } from "./drive-run.ts";
import { githubFor } from "./world/github.ts";
import { gitFor, worktreePlaces, type WorktreeSurroundings } from "./world/worktree.ts";

/** The run, and what it has recorded so far. */
export type Outside = Driven & WorktreeSurroundings & { readonly report: Pick<Report, "effects" | "dryRun"> };

export type Acting = { readonly act: ActPort; readonly close: () => Promise<void> };

export function createActing(outside: Outside): Acting {
  const { run, flow, worktree, around, options, report, redactor, signal } = outside;
  const { effects } = report;
  const settings = flow.settings.github;
  const home = worktree?.home ?? outside.cwd;
  const { enabled } = settings;
  const github = githubFor({ ...outside, enabled, cwd: home, onToken: redactor.learn });
  let blocks: Promise<Blocks> | null = null;
  const openBlocks = async () => (await import("./act-blocks.ts")).createBlocks(outside);

  return {
    /** In order; the first that could not be done is the last that is tried. */
    act: async ({ due, args }, record) => {
      for (const one of due) {
        const of = one.kind === "blocks" ? { step: one.step, visit: one.visit } : one.kind;
        const recordOf = (event: EffectEvent) =>
          record({ ...event, of, detail: redactor.text(event.detail) });
        if (!(await perform(one, args, recordOf))) return false;
      }
      return true;
    },
    close: async () => await (await blocks)?.close(),
  };

  async function perform(due: Due, args: JsonObject, record: Parameters<ActPort>[1]): Promise<boolean> {
    if (due.kind === "blocks") return await (await (blocks ??= openBlocks())).carryOut(due, args, record);
    const { dryRun } = report;
    const ledger = createLedger({ past: effects, record, dryRun, signal });
    if (due.kind === "publish") return await publish(due, worktree!, ledger);
    const it = { ledger, github, issue: due.issue, home };
    switch (due.kind) {
      case "begin":
        if (!dryRun && !(await lookForGitHub(it))) return false;
        return await changeLabels(it, "begin", beginningLabels(settings));
      case "close":
        return await closeIssue(it, "end", closingOf(settings, due.answer));
      case "blocked":
        // How the run failed is what counts: a label that could not be changed is reported beside it.
        return (
          (await changeLabels(it, "blocked", blockedLabels(settings))) ||
          effects.values().some(({ of, state }) => of === "blocked" && state === "failed")
        );
    }
  }

  async function publish({ answer, closing }: Due & { kind: "publish" }, tree: Worktree, ledger: Ledger) {
    const isClosed = closing !== null && closingOf(settings, closing.answer).action !== "label-only";
    const mentions = settings.mentions === true;
    const proposing = {
      github,
      answer,
      closes: isClosed ? closing.issue : null,
      mentions,
      redact: redactor.text,
    };
    // The run's own trees are git's to look at where the run's commands were: in its sandbox.
    const inside = around.git?.([tree.path, tree.home]);
    const git = gitFor(outside, worktreePlaces(tree), { run, ...(inside !== undefined && { inside }) });
    const onWait = (text: string) => options.notify?.(text);
    const about = { worktree: tree, copy: flow.settings.worktree.copy ?? [], run, agent: flow.agent };
    return await finalize({ ...about, git, ledger, proposing, onWait, signal });
  }
}
