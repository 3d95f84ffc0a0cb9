/** The acts of blocks on GitHub. Comments and issues carry the key of their act unseen, and are looked for before they are repeated. */
import { shownInLine } from "../../flow/text/harmless.ts";
import type { IssueChange } from "./issue.ts";
import type { FailureKind, GithubClient, NewIssue, GithubOutcome } from "../github/github.ts";
import { quietText, type Own } from "../github/github-outgoing.ts";
import { mapList } from "../github/github-read.ts";
import { applied, failedEffect, type Act, type Done } from "./ledger.ts";

export type OnGitHub = {
  readonly key: string;
  /** The same for every attempt of this run at this act, and for no other act anywhere. */
  readonly mark: string;
  readonly github: () => Promise<GithubOutcome<GithubClient>>;
  /** Hears that trying again may help. */
  readonly passing: (key: string) => void;
  /** What texts may say. */
  readonly own: Pick<Own, "issue" | "mentions">;
};

type Found = { readonly detail: string } | null;

/** What GitHub cannot be asked for now is not done either: it may have been done before. */
function act(
  kind: string,
  { key, github, passing }: OnGitHub,
  target: string,
  detail: string,
  find: (github: GithubClient, newest: number | undefined) => Promise<GithubOutcome<Found>>,
  perform: (github: GithubClient) => Promise<GithubOutcome<string>>,
  newest?: (github: GithubClient) => Promise<GithubOutcome<number>>,
): Act {
  let unasked: Done | null = null;
  const refuse = ({ kind: fault, why }: { readonly kind: FailureKind; readonly why: string }): Done => {
    if (PASSING.has(fault)) passing(key);
    return failedEffect(`could not ${detail}: ${why}`);
  };
  return {
    kind,
    key,
    target,
    detail,
    ...(newest !== undefined && {
      newest: async () => {
        const opened = await github();
        const known = opened.ok ? await newest(opened.value) : opened;
        if (!known.ok) unasked = refuse(known);
        return known.ok ? known.value : undefined;
      },
    }),
    find: async (number) => {
      const opened = await github();
      const found = opened.ok ? await find(opened.value, number) : opened;
      if (!found.ok) unasked = refuse(found);
      return found.ok ? (found.value?.detail ?? null) : null;
    },
    perform: async () => {
      if (unasked !== null) return unasked;
      const opened = await github();
      const done = opened.ok ? await perform(opened.value) : opened;
      return done.ok ? applied(done.value) : refuse(done);
    },
  };
}

const PASSING: ReadonlySet<FailureKind> = new Set(["limited", "server", "network", "timeout", "unreadable"]);

export function commentAct(kind: string, on: OnGitHub, issue: number, body: string): Act {
  const isIt = ({ body: text }: { readonly body: string }) => text.includes(on.mark);
  return act(
    kind,
    on,
    `issue #${issue}`,
    `comment on issue #${issue}: ${shownInLine(body, 80)}`,
    async (github) =>
      look(
        await github.comments(issue, { limit: Number.POSITIVE_INFINITY, until: isIt }),
        isIt,
        `issue #${issue} has so many comments that they were not all read, and the comment may be among them: look at the issue.`,
      ),
    async (github) =>
      mapList(
        await github.createComment(issue, signed(quiet(body, on, github), on.mark)),
        ({ url }) => `commented on issue #${issue}: ${url}`,
      ),
  );
}

export function issueAct(on: OnGitHub, issue: NewIssue): Act {
  return act(
    "action:github-issue",
    on,
    "issues",
    `open an issue: ${shownInLine(issue.title, 80)}`,
    async (github, newest) =>
      look(
        await github.issues({
          state: "all",
          ...(newest === undefined ? { limit: MOST_UNNUMBERED } : { limit: MOST_ISSUES, after: newest }),
        }),
        ({ body }) => body.includes(on.mark),
        newest === undefined
          ? null
          : `more than ${MOST_ISSUES} issues were opened after #${newest}, and the issue may be among them: look for its title there.`,
      ),
    async (github) => {
      const title = quiet(issue.title, on, github);
      const body = signed(quiet(issue.body, on, github), on.mark);
      const made = await github.createIssue({ ...issue, title, body });
      return mapList(made, ({ number, url }) => `opened issue #${number}: ${url}`);
    },
    (github) => github.newestNumber(),
  );
}

/** Closing is due when the work is where it was to go. */
export function changeAct(on: OnGitHub, { issue, kind, detail, isMade, is, make }: IssueChange): Act {
  const changing = act(
    "action:issue-action",
    on,
    `issue #${issue}`,
    detail,
    async (github) => {
      return mapList(await github.issue(issue), (seen) => (isMade(seen) ? { detail: is } : null));
    },
    async (github) => mapList(await make(github), () => is),
  );
  return kind === "close" ? { ...changing, last: true } : changing;
}

/** How many issues are read to find one that may have been opened. */
const MOST_ISSUES = 2000;
/** The same for an attempt that was recorded without a number: by an earlier version, or when GitHub did not answer. */
const MOST_UNNUMBERED = 200;

function quiet(text: string, { own }: OnGitHub, { owner, repo }: GithubClient): string {
  return quietText(text, { ...own, owner, repo });
}

function signed(body: string, mark: string): string {
  return `${body}\n\n<!-- lockstep ${mark} -->`;
}

/** `unread`: why nothing is done when it is not among those that were read, and not all were. */
function look<T extends { readonly url: string }>(
  listed: GithubOutcome<{ readonly items: readonly T[]; readonly more: boolean }>,
  isIt: (item: T) => boolean,
  unread: string | null,
): GithubOutcome<Found> {
  if (!listed.ok) return listed;
  const found = listed.value.items.find(isIt);
  if (found === undefined && listed.value.more && unread !== null)
    return { ok: false, kind: "conflict", why: unread };
  return { ok: true, value: found === undefined ? null : { detail: `it is there: ${found.url}` } };
}
