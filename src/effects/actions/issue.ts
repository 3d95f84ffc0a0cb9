/** What a run does to its issue, one act for each request: labels as it begins and as it ends, and closing. */
import { shownInLine } from "../../flow/text/harmless.ts";
import { isSameLabel, type Closing, type Labels } from "./closing.ts";
import type { GithubClient, Issue, GithubOutcome } from "../github/github.ts";
import { applied, failedEffect, type Act, type Done, type Ledger } from "./ledger.ts";
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
 * Changes labels; `name` tells this change from others of the run. false: something failed, or was interrupted. It can be
 * called again, and goes on where it stopped: what was done once is not done again, also if somebody has undone it.
 */
export async function changeLabels(it: OnIssue, name: string, { add, remove }: Labels): Promise<boolean> {
  if (add.length > 0 && !(await it.ledger.act(adding(it, name, add)))) return false;
  for (const label of remove) if (!(await it.ledger.act(removing(it, name, label)))) return false;
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
  return action === "label-only" || (await it.ledger.act(closing(it, name)));
}

/** Whether all that would be done to the issue can be done; if not, that is told before anything else is begun. */
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

function adding(it: OnIssue, name: string, labels: readonly string[]): Act {
  const what = `the label${labels.length === 1 ? "" : "s"} ${listed(labels)}`;
  const missing = ({ labels: has }: Issue) => labels.filter((label) => !includes(has, label));
  return {
    ...about(it, "label", `${name}.add`),
    detail: `add ${what} to issue #${it.issue}`,
    find: async () => await found(it, (issue) => missing(issue).length === 0, `has ${what}`),
    perform: async () => {
      const command = ["edit", it.issue, ...labels.flatMap((label) => ["--add-label", label])];
      return await change(
        it,
        command,
        `${what} ${were(labels)} not added to issue #${it.issue}`,
        async (github, issue) => {
          if (missing(issue).length === 0) return applied(`issue #${it.issue} had ${what} already`);
          const added = await github.addLabels(it.issue, missing(issue));
          return added.ok ? applied(`added ${what} to issue #${it.issue}`) : added;
        },
      );
    },
  };
}

function removing(it: OnIssue, name: string, label: string): Act {
  const what = `the label ${listed([label])}`;
  const isGone = ({ labels }: Issue) => !includes(labels, label);
  return {
    ...about(it, "label", `${name}.remove ${label}`),
    detail: `remove ${what} from issue #${it.issue}`,
    find: async () => await found(it, isGone, `is without ${what}`),
    perform: async () =>
      await change(
        it,
        ["edit", it.issue, "--remove-label", label],
        `${what} was not removed from issue #${it.issue}`,
        async (github, issue) => {
          if (isGone(issue)) return applied(`issue #${it.issue} was without ${what} already`);
          const removed = await github.removeLabel(it.issue, label);
          return removed.ok ? applied(`removed ${what} from issue #${it.issue}`) : removed;
        },
      ),
  };
}

function closing(it: OnIssue, name: string): Act {
  const isClosed = ({ state }: Issue) => state === "closed";
  return {
    ...about(it, "close", `${name}.close`),
    detail: `close issue #${it.issue}`,
    find: async () => await found(it, isClosed, "is closed"),
    perform: async () =>
      await change(it, ["close", it.issue], `issue #${it.issue} was not closed`, async (github, issue) => {
        // Somebody was faster: why they closed it is for them to say.
        if (isClosed(issue)) return applied(`issue #${it.issue} was closed already`);
        const closed = await github.closeIssue(it.issue);
        return closed.ok ? applied(`closed issue #${it.issue}`) : closed;
      }),
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

/** Looks at the issue and does what is left to be done. Without GitHub it is for a person to do. */
async function change(
  it: OnIssue,
  command: readonly (string | number)[],
  not: string,
  act: (github: GithubClient, issue: Issue) => Promise<Done | Extract<GithubOutcome<never>, { ok: false }>>,
): Promise<Done> {
  const github = await it.github();
  if (!github.ok) {
    const words = ["gh", "issue", ...command].map((word) => quoted(String(word))).join(" ");
    return held(`${not}: ${github.why} By hand: cd ${quoted(it.home)} && ${words}`);
  }
  const issue = await github.value.issue(it.issue);
  const done = issue.ok ? await act(github.value, issue.value) : issue;
  return "ok" in done ? failedEffect(`${not}: ${done.why}`) : done;
}

async function found(it: OnIssue, isSo: (issue: Issue) => boolean, what: string): Promise<string | null> {
  const github = await it.github();
  const issue = github.ok ? await github.value.issue(it.issue) : github;
  return issue.ok && isSo(issue.value) ? `issue #${it.issue} ${what}` : null;
}

function held(detail: string): Done {
  return { state: "held", detail };
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
