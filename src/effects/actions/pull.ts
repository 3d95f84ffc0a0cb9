/** Proposing the branch of a run as a pull request. */
import { shownInLine } from "../../flow/text/harmless.ts";
import { readPath, type JsonObject } from "../../flow/json.ts";
import type { Finalizing } from "../git/finalize.ts";
import type { GithubClient, GithubOutcome } from "../github/github.ts";
import { foreignClosings, quietText } from "../github/github-outgoing.ts";
import { parseRepository } from "../github/github-where.ts";
import { applied, failedEffect, held, type Done } from "./ledger.ts";
import { quoted } from "../git/words.ts";

export type Proposing = {
  /** Opened when it is needed first. */
  readonly github: () => Promise<GithubOutcome<GithubClient>>;
  /** What the model ended the run with. */
  readonly answer: JsonObject | null;
  /** The issue that is closed with the run. */
  readonly closes: number | null;
  /** Whether its texts may mention people. */
  readonly mentions: boolean;
  readonly redact: (text: string) => string;
};

/** `why`: it is not to be opened now, and nothing is to be looked for. */
export async function proposePull(it: Finalizing, why: string | null = null): Promise<boolean> {
  const { ledger, worktree } = it;
  const { branch, base, finalize } = worktree;
  const target = finalize.prTarget ?? base;
  return await ledger.act({
    kind: "pull-request",
    key: KEY,
    target,
    detail: `open a pull request of ${branch} into ${target}`,
    find: async () => {
      if (why !== null) return null;
      const github = await reach(it);
      const there = github.ok ? await lookUp(github.value, branch) : null;
      return there?.ok ? there.value : null;
    },
    perform: async () => (why === null ? await propose(it, target) : held(why)),
  });
}

const KEY = "pull-request";

async function propose(it: Finalizing, target: string): Promise<Done> {
  const { branch, home } = it.worktree;
  const github = await reach(it);
  if (!github.ok) {
    const words = ["gh", "pr", "create", "--base", target, "--head", branch, "--fill"].map(quoted).join(" ");
    const why = `no pull request was opened: ${github.why} By hand: cd ${quoted(home)} && ${words}`;
    return { state: "held", detail: why };
  }
  const there = await lookUp(github.value, branch);
  if (!there.ok) return failedEffect(`no pull request was opened: ${there.why}`);
  if (there.value !== null) return applied(there.value);
  const made = await github.value.createPull({
    ...(await wordsFor(it, github.value)),
    head: branch,
    base: target,
  });
  if (made.ok) {
    const closings = listed(await closingsIn(it));
    const closing = closings === "" ? "" : `; merged, its commits would close other issues: ${closings}`;
    return applied(`opened pull request #${made.value.number}: ${made.value.url}${closing}`);
  }
  return failedEffect(`no pull request of ${branch} into ${target} was opened: ${made.why}`);
}

/** The branch was made for the run: a pull request of it is the one, no matter who opened it or how it ended. */
async function lookUp(github: GithubClient, branch: string): Promise<GithubOutcome<string | null>> {
  const pulls = await github.pullsOf(branch);
  if (!pulls.ok) return pulls;
  const [pull] = pulls.value;
  const value = pull === undefined ? null : `there is pull request #${pull.number} of ${branch}: ${pull.url}`;
  return { ok: true, value };
}

/** GitHub, if it has the branch: that is, if what was pushed to is the repository that it speaks of. */
async function reach({ git, worktree, proposing }: Finalizing): Promise<GithubOutcome<GithubClient>> {
  const { home, finalize } = worktree;
  const { remote } = finalize;
  const github = await proposing.github();
  if (!github.ok) return github;
  const { host, owner, repo } = github.value;
  // As it is written, and as git makes it out by its own rules.
  const places = [
    await git(home, ["config", "--get", `remote.${remote}.pushurl`]),
    await git(home, ["config", "--get", `remote.${remote}.url`]),
    await git(home, ["remote", "get-url", "--push", "--", remote]),
  ];
  const isThere = places.some((place) => {
    const named = place.ok ? parseRepository(place.out.trim(), null) : null;
    return (
      named !== null && named.host === host && isSameName(`${named.owner}/${named.repo}`, `${owner}/${repo}`)
    );
  });
  if (isThere) return github;
  const why = `the remote ${remote}, which has the branch, is not ${owner}/${repo} on ${host}.`;
  return { ok: false, kind: "no-repository", why };
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** What the commits of the run say that closes other issues than its own. They are the model's, and stay as they are. */
export async function closingsIn({ git, worktree, proposing }: Finalizing): Promise<readonly string[]> {
  const { branch, commit, home } = worktree;
  const log = await git(home, [
    "log",
    "--reverse",
    "--format=%h%x00%B%x00",
    `${commit}..refs/heads/${branch}`,
  ]);
  if (!log.ok) return [];
  const parts = log.out.split("\0");
  return parts.flatMap((message, place) => {
    if (place % 2 === 0) return [];
    const closings = foreignClosings(message, { issue: proposing.closes, owner: "", repo: "" });
    return closings.map(
      ({ said }) => `${parts[place - 1]?.trim() ?? ""} says ${JSON.stringify(shownInLine(said, 120))}`,
    );
  });
}

function listed(closings: readonly string[]): string {
  const more = closings.length - MOST_LISTED;
  return [...closings.slice(0, MOST_LISTED), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

const MOST_LISTED = 10;

/** As the model says it, or as its commits do. The last line is invisible: it names the run of the pull request. */
async function wordsFor(
  it: Finalizing,
  { owner, repo }: GithubClient,
): Promise<{ readonly title: string; readonly body: string }> {
  const { git, worktree, run, agent, proposing } = it;
  const { branch, commit, home } = worktree;
  const log = await git(home, ["log", "--reverse", "--format=%s", `${commit}..refs/heads/${branch}`]);
  const subjects = log.ok ? log.out.split("\n").filter((line) => line !== "") : [];
  const { answer, closes, redact, mentions } = proposing;
  const quiet = (text: string) => quietText(redact(text), { issue: closes, owner, repo, mentions });
  const said = (...path: readonly string[]) => {
    const text = readPath(answer ?? {}, path);
    return typeof text === "string" && text.trim() !== "" ? text.trim() : null;
  };
  const title = said("pr", "title") ?? subjects[0] ?? `Work of ${agent}`;
  const text = said("pr", "body") ?? said("summary") ?? subjects.map((subject) => `- ${subject}`).join("\n");
  const parts = [
    // A comment that is opened and not closed would swallow what follows.
    quiet(text).replaceAll("<!--", "&lt;!--").slice(0, LONGEST_BODY),
    ...(closes === null ? [] : [`Closes #${closes}`]),
    ...(await closingNote(it, quiet)),
    `<!-- lockstep ${run} ${KEY} -->`,
  ];
  return {
    title: quiet(title).replaceAll(/\s+/g, " ").slice(0, LONGEST_TITLE),
    body: parts.filter((part) => part !== "").join("\n\n"),
  };
}

async function closingNote(it: Finalizing, quiet: (text: string) => string): Promise<readonly string[]> {
  const closings = listed(await closingsIn(it));
  return closings === ""
    ? []
    : [quiet(`Note: merging this closes other issues, by the words of its commits: ${closings}.`)];
}

const LONGEST_TITLE = 200;
const LONGEST_BODY = 60_000;
