/** GitHub as one run sees it: looked up when it is first needed, and once. */
import type { AskGitHub } from "../boundaries/github.ts";
import type { GitHub, Outcome } from "../effects/github.ts";
import { runProcess } from "../effects/process.ts";
import type { Clock } from "../engine/ports.ts";

export type GitHubOf = () => Promise<Outcome<GitHub>>;

export type GitHubAround = {
  /** `runner.integrations.github.enabled`. */
  readonly enabled: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onToken: (value: string) => void;
};

/** A run that never asks loads nothing of it. */
export function githubFor({ enabled, ...around }: GitHubAround): GitHubOf {
  let opened: Promise<Outcome<GitHub>> | null = null;
  const open = async (): Promise<Outcome<GitHub>> => {
    if (!enabled) return { ok: false, kind: "forbidden", why: SWITCHED_OFF };
    const { openGitHub } = await import("../effects/github.ts");
    return await openGitHub({ ...around, exec: runProcess });
  };
  return () => (opened ??= open());
}

const SWITCHED_OFF =
  "GitHub is switched off for this agent: set runner.integrations.github.enabled to true in agent.json.";

/** For the tool that reads GitHub. */
export function askerOf(github: GitHubOf): AskGitHub {
  return async (question, signal) => {
    const opened = await github();
    if (!opened.ok) return opened;
    const { tellGitHub } = await import("../effects/github-tell.ts");
    return await tellGitHub(opened.value.within(signal), question);
  };
}

/** Whether GitHub could be spoken to from here, in words for a person; `online` asks it. */
export async function surveyGitHub(
  env: NodeJS.ProcessEnv,
  cwd: string,
  online: boolean,
): Promise<Outcome<string>> {
  const signal = new AbortController().signal;
  const clock: Clock = { now: Date.now, sleep: () => Promise.resolve() };
  const { openGitHub } = await import("../effects/github.ts");
  const patience = { waitMs: 0, retries: 0, requestMs: 10_000 };
  const opened = await openGitHub({ env, cwd, clock, signal, patience, exec: runProcess });
  if (!opened.ok) return opened;
  const { host, owner, repo, repositoryFrom, tokenFrom, repository } = opened.value;
  const about = `${host}/${owner}/${repo} (${repositoryFrom}), token from ${tokenFrom}`;
  if (!online) return { ok: true, value: `${about}, not asked (--online)` };
  const found = await repository();
  return found.ok ? { ok: true, value: `${about}, answers` } : found;
}
