/** Proposing the branch of a run as a pull request. */
import { readPath, type JsonObject } from "../flow/json.ts";
import type { Finalizing } from "./finalize.ts";
import type { GitHub, Outcome } from "./github.ts";
import { parseRepository } from "./github-where.ts";
import { applied, failed, held, type Done } from "./ledger.ts";
import { quoted } from "./worktree.ts";

export type Proposing = {
  /** Opened when it is needed first. */
  readonly github: () => Promise<Outcome<GitHub>>;
  /** What the model ended the run with. */
  readonly answer: JsonObject | null;
  /** The issue that is closed with the run. */
  readonly closes: number | null;
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
  if (!there.ok) return failed(`no pull request was opened: ${there.why}`);
  if (there.value !== null) return applied(there.value);
  const made = await github.value.createPull({ ...(await wordsFor(it)), head: branch, base: target });
  if (made.ok) return applied(`opened pull request #${made.value.number}: ${made.value.url}`);
  return failed(`no pull request of ${branch} into ${target} was opened: ${made.why}`);
}

/** The branch was made for the run: a pull request of it is the one, whoever opened it and whatever became of it. */
async function lookUp(github: GitHub, branch: string): Promise<Outcome<string | null>> {
  const pulls = await github.pullsOf(branch);
  if (!pulls.ok) return pulls;
  const [pull] = pulls.value;
  const value = pull === undefined ? null : `there is pull request #${pull.number} of ${branch}: ${pull.url}`;
  return { ok: true, value };
}

/** GitHub, if it has the branch: that is, if what was pushed to is the repository that it speaks of. */
async function reach({ git, worktree, proposing }: Finalizing): Promise<Outcome<GitHub>> {
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

/** As the model says it, or as its commits do. The last line is not seen: it tells whose pull request it is. */
async function wordsFor(it: Finalizing): Promise<{ readonly title: string; readonly body: string }> {
  const { git, worktree, run, agent, proposing } = it;
  const { branch, commit, home } = worktree;
  const log = await git(home, ["log", "--reverse", "--format=%s", `${commit}..refs/heads/${branch}`]);
  const subjects = log.ok ? log.out.split("\n").filter((line) => line !== "") : [];
  const { answer, closes, redact } = proposing;
  const said = (...path: readonly string[]) => {
    const text = readPath(answer ?? {}, path);
    return typeof text === "string" && text.trim() !== "" ? text.trim() : null;
  };
  const title = said("pr", "title") ?? subjects[0] ?? `Work of ${agent}`;
  const text = said("pr", "body") ?? said("summary") ?? subjects.map((subject) => `- ${subject}`).join("\n");
  const parts = [
    // A comment that is opened and not closed would swallow what follows.
    redact(text).replaceAll("<!--", "&lt;!--").slice(0, LONGEST_BODY),
    ...(closes === null ? [] : [`Closes #${closes}`]),
    `<!-- lockstep ${run} ${KEY} -->`,
  ];
  return {
    title: redact(title).replaceAll(/\s+/g, " ").slice(0, LONGEST_TITLE),
    body: parts.filter((part) => part !== "").join("\n\n"),
  };
}

const LONGEST_TITLE = 200;
const LONGEST_BODY = 60_000;
