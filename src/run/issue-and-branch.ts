/** What is due outside as a run goes: to its issue as it begins, to its branch and its issue as it ends. */
import type { Redactor } from "../boundaries/redact/redact.ts";
import { beginningLabels, blockedLabels, closingOf } from "../effects/actions/closing.ts";
import { changeLabels, closeIssue, lookForGitHub, type OnIssue } from "../effects/actions/issue.ts";
import { createLedger, type Ledger } from "../effects/actions/ledger.ts";
import type { RunProcess } from "../effects/process/process.ts";
import type { Drive } from "../engine/drive/drive.ts";
import type { Clock } from "../engine/ports.ts";
import type { Report } from "../story/report.ts";
import type { State } from "../engine/decide/state.ts";
import type { EffectEvent, Worktree } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { own, type JsonObject } from "../flow/json.ts";
import { githubFor, type GitHubOf, type Pinned } from "./world/github.ts";
import { finalizing, type WorktreeSurroundings } from "./world/worktree.ts";

export type Attend = NonNullable<Drive["attend"]>;

export type Outward = WorktreeSurroundings & {
  readonly flow: Flow;
  readonly run: string;
  readonly cwd: string;
  readonly worktree?: Worktree;
  readonly report: Report;
  readonly clock: Clock;
  readonly repository: Pinned;
  /** How git is started over the trees of the run, where it is confined. */
  readonly inside?: RunProcess;
  readonly redactor: Redactor;
  readonly notify: (text: string) => void;
};

/** All of it, one after the other; the first that could not be done is the last that is tried. */
export function outward(about: Outward): Attend {
  const all = attendants(about);
  return async (state, record) => {
    const tell = (event: EffectEvent) => record({ ...event, detail: about.redactor.text(event.detail) });
    for (const attend of all) if (!(await attend(state, tell))) return false;
    return true;
  };
}

/** An issue counts as done when the work is where it was to go, so that comes before. */
function attendants(about: Outward): readonly Attend[] {
  const { flow, worktree, report } = about;
  const { enabled } = flow.settings.github;
  const home = worktree?.home ?? about.cwd;
  const github = githubFor({ ...about, enabled, cwd: home, onToken: about.redactor.learn });
  const ledgerFor = (record: Parameters<Attend>[1]) =>
    createLedger({ past: report.effects, record, dryRun: report.dryRun, signal: about.signal });
  const proposing = (state: State) => {
    const answer = state.last?.payload ?? null;
    const mentions = flow.settings.github.mentions === true;
    return { github, answer, closes: closedIssue(flow, state), mentions, redact: about.redactor.text };
  };
  const ofIssue = isWriting(flow.settings.github) ? onIssue(about, github, ledgerFor) : null;
  return [
    ...(ofIssue === null ? [] : [ofIssue.begin]),
    ...(worktree === undefined ? [] : [finalizing({ ...about, worktree, ledgerFor, proposing })]),
    ...(ofIssue === null ? [] : [ofIssue.end]),
  ];
}

function onIssue(
  about: Outward,
  github: GitHubOf,
  ledgerFor: (record: Parameters<Attend>[1]) => Ledger,
): { readonly begin: Attend; readonly end: Attend } {
  const { flow, cwd, worktree, report } = about;
  const settings = flow.settings.github;
  const on = (state: State, record: Parameters<Attend>[1]): OnIssue | null => {
    const issue = issueIn(state.args);
    return issue === null ? null : { ledger: ledgerFor(record), github, issue, home: worktree?.home ?? cwd };
  };
  let hasBegun = false;
  return {
    begin: async (state, record) => {
      if (hasBegun || state.pending[0]?.type === "end") return true;
      const it = on(state, record);
      if (it !== null && !report.dryRun && !(await lookForGitHub(it))) return false;
      hasBegun = it === null || (await changeLabels(it, "begin", beginningLabels(settings)));
      return hasBegun;
    },
    end: async (state, record) => {
      const [next] = state.pending;
      // What waits for somebody, or can go on once a trouble has passed, has not ended.
      if (next?.type !== "end" || state.halted.length > 0) return true;
      const it = on(state, record);
      if (it === null) return true;
      if (next.verdict.outcome === "completed")
        return await closeIssue(it, "end", closingOf(settings, closingAnswer(flow, state)));
      // How the run failed is what counts: a label that could not be changed is told beside it.
      return (
        (await changeLabels(it, "blocked", blockedLabels(settings))) || hasFailed(report, "issue.blocked.")
      );
    },
  };
}

function hasFailed({ effects }: Report, prefix: string): boolean {
  return [...effects].some(([key, { state }]) => key.startsWith(prefix) && state === "failed");
}

function isWriting({ enabled, asked }: Flow["settings"]["github"]): boolean {
  return enabled && asked === true;
}

/** The issue that the end of this run closes; null: none. */
function closedIssue(flow: Flow, state: State): number | null {
  const { github } = flow.settings;
  if (!isWriting(github) || closingOf(github, closingAnswer(flow, state)).action === "label-only")
    return null;
  return issueIn(state.args);
}

/** What a closure ended the run with. Where a verdict ended it, nobody was asked what is to become of the issue. */
function closingAnswer({ steps }: Flow, { last, verdict }: State): JsonObject | null {
  if (last === null || last.step !== verdict?.step) return null;
  const step = own(steps, last.step);
  const leadsOn = own(step?.edges ?? {}, last.label)?.kind === "goto";
  return step?.kind === "close" && !leadsOn ? last.payload : null;
}

function issueIn(args: JsonObject): number | null {
  const issue = Number(own(args, "issue") ?? 0);
  return Number.isSafeInteger(issue) && issue > 0 ? issue : null;
}
