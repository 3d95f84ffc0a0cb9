/** GitHub, as plain functions: each is one question or one change, and whatever goes wrong comes back as a value. */
import type { Clock } from "../../engine/ports.ts";
import type { Json } from "../../flow/json.ts";
import type { Programs } from "../../flow/machine/programs.ts";
import { createGit, type Git } from "../git/git.ts";
import type { GithubOutcome } from "./github-faults.ts";
import { createIssues } from "./github-issues.ts";
import { createProjects } from "./github-projects.ts";
import { createPulls } from "./github-pulls.ts";
import { findGithubPlace, findToken, type GithubPlace } from "./github-where.ts";
import { createGithubWire, PATIENCE, type GithubPatience, type GithubWire } from "./github-wire.ts";
import type { Env, RunProcess } from "../process/process.ts";

export type { FailureKind, GithubOutcome } from "./github-faults.ts";
export type { Comment, Issue, NewIssue } from "./github-issues.ts";
export type { GithubProject, ProjectItem } from "./github-projects.ts";
export type { PullCheck, Pull } from "./github-pulls.ts";
export type { GithubPlace } from "./github-where.ts";
export type { Pages } from "./github-wire.ts";

/** Only which repository it is: no token is looked for. */
export async function findRepository(
  options: Pick<GitHubOptions, "env" | "exec" | "programs" | "cwd" | "signal">,
): Promise<GithubOutcome<GithubPlace>> {
  return await findGithubPlace({ ...options, git: createGit(options) });
}

export type GithubClient = ReturnType<typeof createIssues> &
  ReturnType<typeof createPulls> &
  ReturnType<typeof createProjects> & {
    readonly host: string;
    readonly owner: string;
    readonly repo: string;
    /** Who said which repository it is, and where the token is from: `GH_TOKEN`, `gh auth token`, … */
    readonly repositoryFrom: string;
    readonly tokenFrom: string;
    /** The same, interrupted by another signal. */
    readonly within: (signal: AbortSignal) => GithubClient;
    /** Whether it is there and may be seen. */
    readonly repository: () => Promise<GithubOutcome<Json>>;
  };

export type GitHubOptions = {
  /** The user's own environment: the repository, the address and the token are never taken from a file of the project. */
  readonly env: Env;
  readonly exec: RunProcess;
  readonly programs: Pick<Programs, "git" | "gh" | "path">;
  /** Where the repository is, if the environment does not name one. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly git?: Git;
  /** Which repository it is, where that was found out before. */
  readonly place?: GithubOutcome<GithubPlace>;
  readonly patience?: Partial<GithubPatience>;
  /** Hears the token before it is used, so that it can be kept out of everything that is written or shown. */
  readonly onToken?: (value: string) => void;
};

/**
 * Looks up which repository it is and with which token to speak; asks nothing of GitHub yet.
 *
 *     const github = await openGitHub({ env: process.env, exec: runProcess, programs, cwd, signal, clock });
 *     if (!github.ok) return github.why;
 *     const issue = await github.value.issue(12);
 */
export async function openGitHub(options: GitHubOptions): Promise<GithubOutcome<GithubClient>> {
  const { env, exec, programs, cwd, signal, clock } = options;
  const git = options.git ?? createGit({ env, programs, exec, signal });
  const around = { env, git, programs, exec, cwd, signal };
  const found = options.place ?? (await findGithubPlace(around));
  if (!found.ok) return found;
  const place = found.value;
  const token = await findToken(place, around);
  if (!token.ok) return token;
  options.onToken?.(token.value.value);
  const patience = { ...PATIENCE, ...options.patience };
  const wireFor = createGithubWire({ place, token: token.value, clock, patience });
  return { ok: true, value: speak(place, token.value.from, wireFor, signal) };
}

function speak(
  place: GithubPlace,
  tokenFrom: string,
  wireFor: (signal: AbortSignal) => GithubWire,
  signal: AbortSignal,
): GithubClient {
  const { host, owner, repo } = place;
  const wire = wireFor(signal);
  return {
    host,
    owner,
    repo,
    repositoryFrom: place.from,
    tokenFrom,
    within: (other) => speak(place, tokenFrom, wireFor, other),
    repository: () =>
      wire.read({ what: "repository", route: "GET /repos/{owner}/{repo}", with: { owner, repo } }),
    ...createIssues(wire, place),
    ...createPulls(wire, place),
    ...createProjects(wire, place),
  };
}
