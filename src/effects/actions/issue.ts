/** What a run does to its issue, one act for each request: labels as it begins and as it ends, and closing. */
import { shownInLine } from "../../flow/text/harmless.ts";
import { isSameLabel, type Closing, type Labels } from "./closing.ts";
import type { GithubClient, Issue, GithubOutcome } from "../github/github.ts";
import { applied, failedEffect, held, type Act, type Ledger } from "./ledger.ts";
import { quoted } from "../git/words.ts";

export type OnIssue = {
  readonly ledger: Ledger;
  /** Opened when it is needed first. */
  readonly github: () => Promise<GithubOutcome<GithubClient>>;
  readonly issue: number;
  /** Where a person would type what the run cannot do itself. */
  readonly home: string;
};

/**
 * Changes labels; `name` distinguishes this change from others of the run. false: something failed, or was interrupted. It can be
 * called again, and goes on where it stopped: what was done once is not done again, also if somebody has undone it.
 */
export async function changeLabels(it: OnIssue, name: string, { add, remove }: Labels): Promise<boolean> {
  if (add.length > 0 && !(await it.ledger.act(actOf(it, `${name}.add`, adding(it.issue, add))))) return false;
  for (const label of remove)
    if (!(await it.ledger.act(actOf(it, `${name}.remove ${label}`, removing(it.issue, label))))) return false;
  return true;
}

/** Labels first: a closed issue then has its final labels. */
export async function closeIssue(
  it: OnIssue,
  name: string,
  { action, labels, refused, strange }: Closing,
): Promise<boolean> {
  if (refused > 0 && !(await it.ledger.act(refusing(it, `${name}.refused`, unusable(refused))))) return false;
  if (strange.length > 0 && !(await it.ledger.act(refusing(it, `${name}.strange`, unopened(strange)))))
    return false;
  if (!(await changeLabels(it, name, labels))) return false;
  return action === "label-only" || (await it.ledger.act(actOf(it, `${name}.close`, closing(it.issue))));
}

/** Whether all that would be done to the issue can be done; if not, that is reported before anything else is begun. */
export async function lookForGitHub(it: OnIssue): Promise<boolean> {
  const github = await it.github();
  if (github.ok) return true;
  return await it.ledger.act({
    ...about(it, "github", "github"),
    detail: `look for the repository and a token`,
    find: async () => null,
    perform: async () => held(`nothing will be changed on GitHub, only reported: ${github.why}`),
  });
}

/** A change of an issue, for every part that asks for one. */
export type IssueChange = {
  readonly issue: number;
  readonly kind: "label" | "close";
  /** What is about to be done. */
  readonly detail: string;
  readonly isMade: (issue: Issue) => boolean;
  /** What to say of it: it is so, it was done, it was not done. */
  readonly is: string;
  readonly done: string;
  readonly not: string;
  /** What comes after `gh issue`. */
  readonly byHand: readonly string[];
  /** `seen`: the issue as it is, if it was looked at. */
  readonly make: (github: GithubClient, seen?: Issue) => Promise<GithubOutcome<unknown>>;
};

export function adding(issue: number, labels: readonly string[]): IssueChange {
  const what = `the label${labels.length === 1 ? "" : "s"} ${listed(labels)}`;
  const missing = (seen?: Issue) => labels.filter((label) => !includes(seen?.labels ?? [], label));
  return {
    issue,
    kind: "label",
    detail: `add ${what} to issue #${issue}`,
    isMade: (seen) => missing(seen).length === 0,
    is: `issue #${issue} has ${what}`,
    done: `added ${what} to issue #${issue}`,
    not: `${what} ${were(labels)} not added to issue #${issue}`,
    byHand: ["edit", String(issue), ...labels.flatMap((label) => ["--add-label", label])],
    make: async (github, seen) => await github.addLabels(issue, missing(seen)),
  };
}

export function removing(issue: number, label: string): IssueChange {
  const what = `the label ${listed([label])}`;
  return {
    issue,
    kind: "label",
    detail: `remove ${what} from issue #${issue}`,
    isMade: ({ labels }) => !includes(labels, label),
    is: `issue #${issue} is without ${what}`,
    done: `removed ${what} from issue #${issue}`,
    not: `${what} was not removed from issue #${issue}`,
    byHand: ["edit", String(issue), "--remove-label", label],
    make: async (github) => await github.removeLabel(issue, label),
  };
}

export function closing(issue: number): IssueChange {
  return {
    issue,
    kind: "close",
    detail: `close issue #${issue}`,
    isMade: ({ state }) => state === "closed",
    is: `issue #${issue} is closed`,
    done: `closed issue #${issue}`,
    not: `issue #${issue} was not closed`,
    byHand: ["close", String(issue)],
    make: async (github) => await github.closeIssue(issue),
  };
}

/** Looks at the issue and does what is left to be done. Without GitHub it is for a person to do. */
function actOf(it: OnIssue, key: string, change: IssueChange): Act {
  const { issue, kind, detail, isMade, is, done, not, byHand, make } = change;
  return {
    ...about(it, kind, key),
    detail,
    find: async () => {
      const github = await it.github();
      const seen = github.ok ? await github.value.issue(issue) : github;
      return seen.ok && isMade(seen.value) ? is : null;
    },
    perform: async () => {
      const github = await it.github();
      if (!github.ok) {
        const words = ["gh", "issue", ...byHand].map(quoted).join(" ");
        return held(`${not}: ${github.why} By hand: cd ${quoted(it.home)} && ${words}`);
      }
      const seen = await github.value.issue(issue);
      // A person was faster: why they closed it is for them to say.
      if (seen.ok && isMade(seen.value)) return applied(`${is} already`);
      const made = seen.ok ? await make(github.value, seen.value) : seen;
      return made.ok ? applied(done) : failedEffect(`${not}: ${made.why}`);
    },
  };
}

function unusable(refused: number): string {
  return `${refused} of the answered labels cannot be taken: too many, too long, or no labels`;
}

function unopened(labels: readonly string[]): string {
  const which = `the answered label${labels.length === 1 ? "" : "s"} ${shownInLine(listed(labels), 400)}`;
  return `${which} ${were(labels)} not used: the agent file does not name ${labels.length === 1 ? "it" : "them"} in runner.integrations.github.labels or answerLabels`;
}

function refusing(it: OnIssue, key: string, detail: string): Act {
  return {
    ...about(it, "label", key),
    detail,
    find: async () => null,
    perform: async () => held(detail),
  };
}

function about({ issue }: OnIssue, kind: string, key: string): Pick<Act, "kind" | "key" | "target"> {
  return { kind, key: `issue.${key}`, target: `issue #${issue}` };
}

function includes(labels: readonly string[], label: string): boolean {
  return labels.some((other) => isSameLabel(other, label));
}

function listed(labels: readonly string[]): string {
  return labels.map((label) => JSON.stringify(label)).join(", ");
}

function were(labels: readonly string[]): string {
  return labels.length === 1 ? "was" : "were";
}
