/** GitHub as one run sees it: which repository it is, is settled before the first step; it is spoken to when it is needed. */
import { GITHUB_READ, type AskGitHub } from "../../boundaries/tools/github.ts";
import { mayOfferAsking } from "../../boundaries/gate/gate.ts";
import type { GithubClient, GithubOutcome, GithubPlace } from "../../effects/github/github.ts";
import { runProcess } from "../../effects/process/process.ts";
import type { Clock } from "../../engine/ports.ts";
import { outsideOf } from "../../engine/decide/stop.ts";
import type { Event, Worktree } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import type { DriveOptions } from "../options.ts";
import { programsFor } from "./programs.ts";
import { surroundings } from "./workplace.ts";

export type GitHubOf = () => Promise<GithubOutcome<GithubClient>>;

/** Which repository a run speaks of; null: it cannot speak to GitHub at all. */
export type Pinned = GithubOutcome<GithubPlace> | null;

/** As it is recorded: found in a remote of the repository that the run was started in. */
export type RecordedGithub = Extract<Event, { type: "run.started" }>["repository"];

/**
 * Whatever a run writes later on changes nothing about it. What the user's environment says counts before what was
 * recorded, and that before what the repository says now.
 */
export function pinRepository(
  flows: readonly Flow[],
  place: { readonly cwd: string; readonly worktree?: Worktree },
  options: Pick<DriveOptions, "env" | "signal">,
  recorded?: RecordedGithub,
): Promise<Pinned> | null {
  const isProposed = place.worktree?.finalize.createPr === true;
  if (!flows.some((flow) => mayUseGitHub(flow, isProposed))) return null;
  return lookUp(place.worktree?.home ?? place.cwd, surroundings(options), recorded);
}

async function lookUp(
  cwd: string,
  { env, signal }: Pick<GitHubAround, "env" | "signal">,
  recorded: RecordedGithub,
): Promise<Pinned> {
  const { isNamedInEnv, placeAt } = await import("../../effects/github/github-where.ts");
  if (recorded !== undefined && !isNamedInEnv(env)) return { ok: true, value: placeAt(recorded, env) };
  const { findRepository } = await import("../../effects/github/github.ts");
  return await findRepository({ env, cwd, signal, programs: programsFor(env, [cwd]), exec: runProcess });
}

/** What is recorded of it. The process that resumes the run reads names from its own environment. */
export function toRecord(pinned: Pinned): Pick<Extract<Event, { type: "run.started" }>, "repository"> {
  if (pinned === null || !pinned.ok || !pinned.value.from.startsWith("the remote ")) return {};
  const { host, owner, repo, from } = pinned.value;
  return { repository: { host, owner, repo, from } };
}

/** Whether any part of the flow could ask GitHub for something. */
function mayUseGitHub({ settings, steps, stop }: Flow, isProposed: boolean): boolean {
  const { github, actions } = settings;
  if (!github.enabled) return false;
  if (github.asked === true || actions.enabled || isProposed) return true;
  if (outsideOf(stop).some((rule) => rule.kind === "state" && rule.resource.kind.startsWith("github-")))
    return true;
  return Object.values(steps).some((step) => mayOfferAsking(step, GITHUB_READ));
}

export type GitHubAround = {
  /** `runner.integrations.github.enabled`. */
  readonly enabled: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly repository: Pinned;
  readonly onToken: (value: string) => void;
};

/** A run that never asks loads nothing of it. The token is the user's: nothing of a project says where it is. */
export function githubFor({ enabled, repository, ...around }: GitHubAround): GitHubOf {
  let opened: Promise<GithubOutcome<GithubClient>> | null = null;
  const open = async (): Promise<GithubOutcome<GithubClient>> => {
    if (!enabled) return { ok: false, kind: "forbidden", why: SWITCHED_OFF };
    if (repository === null) return { ok: false, kind: "no-repository", why: NOT_SETTLED };
    const { openGitHub } = await import("../../effects/github/github.ts");
    const programs = programsFor(around.env, [around.cwd]);
    return await openGitHub({ ...around, programs, place: repository, exec: runProcess });
  };
  return () => (opened ??= open());
}

const NOT_SETTLED = "This flow does not use GitHub, so no repository was looked up when the run started.";

const SWITCHED_OFF =
  "GitHub is disabled for this agent: set runner.integrations.github.enabled to true in agent.json.";

/** For the tool that reads GitHub. */
export function askerOf(github: GitHubOf): AskGitHub {
  return async (question, signal) => {
    const opened = await github();
    if (!opened.ok) return opened;
    const { tellGitHub } = await import("../../effects/github/github-text.ts");
    return await tellGitHub(opened.value.within(signal), question);
  };
}

/** Whether GitHub could be spoken to from here, in words for a person; `online` asks it. */
export async function surveyGitHub(
  env: NodeJS.ProcessEnv,
  cwd: string,
  online: boolean,
): Promise<GithubOutcome<string>> {
  const signal = new AbortController().signal;
  const clock: Clock = { now: Date.now, sleep: () => Promise.resolve() };
  const { openGitHub } = await import("../../effects/github/github.ts");
  const patience = { waitMs: 0, retries: 0, requestMs: 10_000 };
  const programs = programsFor(env, [cwd]);
  const opened = await openGitHub({ env, cwd, programs, clock, signal, patience, exec: runProcess });
  if (!opened.ok) return opened;
  const { host, owner, repo, repositoryFrom, tokenFrom, repository } = opened.value;
  const about = `${host}/${owner}/${repo} (${repositoryFrom}), token from ${tokenFrom}`;
  if (!online) return { ok: true, value: `${about}, not asked (--online)` };
  const found = await repository();
  return found.ok ? { ok: true, value: `${about}, answers` } : found;
}
