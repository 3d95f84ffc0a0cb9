/** Issues, their comments and their labels, as far as a run has to do with them. */
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import type { GithubOutcome } from "./github-faults.ts";
import { valueAt, listAt, mapList, numberAt, textField } from "./github-read.ts";
import type { Pages, GithubWire } from "./github-wire.ts";

export type Issue = {
  readonly key: string;
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly state: "open" | "closed";
  /** `completed`, `not_planned`, `duplicate`, `reopened`; empty: none was given. */
  readonly stateReason: string;
  readonly author: string;
  readonly labels: readonly string[];
  readonly assignees: readonly string[];
  /** How many there are. */
  readonly comments: number;
  readonly url: string;
  readonly updatedAt: string;
};

export type Comment = {
  readonly key: string;
  readonly id: number;
  readonly author: string;
  readonly body: string;
  readonly createdAt: string;
  readonly url: string;
};

export type IssueFilter = {
  readonly state?: "open" | "closed" | "all";
  /** Issues that have all of these. */
  readonly labels?: readonly string[];
  readonly limit?: number;
  readonly order?: "newest first" | "oldest first";
  /** Those that were made after the issue or pull request of this number. */
  readonly after?: number;
};

export type NewIssue = {
  readonly title: string;
  readonly body: string;
  readonly labels?: readonly string[];
  readonly assignees?: readonly string[];
};

export type CloseReason = "completed" | "not_planned" | "duplicate";

/** Characters of a body; GitHub takes no more. */
export const MOST_BODY = 65_536;

export type Issues = {
  readonly issue: (number: number) => Promise<GithubOutcome<Issue>>;
  /** Without pull requests. */
  readonly issues: (filter?: IssueFilter) => Promise<GithubOutcome<Pages<Issue>>>;
  /** Of the newest issue or pull request; 0: there is none. */
  readonly newestNumber: () => Promise<GithubOutcome<number>>;
  /** The latest, oldest first; no earlier ones than the page with the one that `until` finds. */
  readonly comments: (
    number: number,
    filter?: { readonly limit?: number; readonly until?: (comment: Comment) => boolean },
  ) => Promise<GithubOutcome<Pages<Comment>>>;
  readonly createIssue: (issue: NewIssue) => Promise<GithubOutcome<Issue>>;
  readonly closeIssue: (number: number, reason?: CloseReason) => Promise<GithubOutcome<Issue>>;
  readonly reopenIssue: (number: number) => Promise<GithubOutcome<Issue>>;
  readonly createComment: (number: number, body: string) => Promise<GithubOutcome<Comment>>;
  /** The labels that the issue has then. A label that the repository does not have is made by GitHub. */
  readonly addLabels: (
    number: number,
    labels: readonly string[],
  ) => Promise<GithubOutcome<readonly string[]>>;
  /** Whether it was there to be removed. */
  readonly removeLabel: (number: number, label: string) => Promise<GithubOutcome<boolean>>;
  /** These and no others. */
  readonly setLabels: (
    number: number,
    labels: readonly string[],
  ) => Promise<GithubOutcome<readonly string[]>>;
};

export function createIssues(
  wire: GithubWire,
  { owner, repo }: { readonly owner: string; readonly repo: string },
): Issues {
  const about = { owner, repo };
  const one = (number: number) => ({ ...about, issue_number: number });
  const patch = async (number: number, change: JsonObject) => {
    const question = {
      what: `issue ${number}`,
      route: `PATCH ${ISSUE}`,
      with: { ...one(number), ...change },
    };
    return mapList(await wire.write(question), issueOf);
  };
  return {
    issue: async (number) =>
      mapList(
        await wire.read({ what: `issue ${number}`, route: `GET ${ISSUE}`, with: one(number) }),
        issueOf,
      ),
    issues: ({ state = "open", labels = [], limit = 30, order = "newest first", after = 0 } = {}) => {
      const wanted = labels.length === 0 ? {} : { labels: labels.join(",") };
      const direction = order === "newest first" ? {} : { direction: "asc" };
      const question = { ...LIST, with: { ...about, state, ...wanted, ...direction } };
      const isNew = (item: JsonObject) => numberAt(item, "number") > after;
      return wire.readPages(
        question,
        limit,
        (item) => (isObject(item["pull_request"]) || !isNew(item) ? null : issueOf(item)),
        order === "newest first" ? { until: (item) => !isNew(item) } : {},
      );
    },
    newestNumber: async () => {
      const newest = await wire.read({ ...LIST, with: { ...about, state: "all", per_page: 1 } });
      return mapList(newest, (list) =>
        Array.isArray(list) ? numberAt((list[0] ?? null) as Json, "number") : 0,
      );
    },
    comments: (number, { limit = 100, until } = {}) =>
      wire.readLast(
        { what: `issue ${number}`, route: `GET ${ISSUE}/comments`, with: one(number) },
        limit,
        commentOf,
        until,
      ),
    createIssue: async ({ title, body, labels = [], assignees = [] }) => {
      const params = { ...about, title, body, labels, assignees };
      return mapList(await wire.write({ what: "new issue", route: `POST ${ISSUES}`, with: params }), issueOf);
    },
    closeIssue: (number, reason = "completed") => patch(number, { state: "closed", state_reason: reason }),
    reopenIssue: (number) => patch(number, { state: "open", state_reason: "reopened" }),
    createComment: async (number, body) => {
      const question = {
        what: `issue ${number}`,
        route: `POST ${ISSUE}/comments`,
        with: { ...one(number), body },
      };
      return mapList(await wire.write(question), commentOf);
    },
    addLabels: async (number, labels) => {
      const params = { ...one(number), labels };
      return mapList(
        await wire.write({ what: `issue ${number}`, route: `POST ${ISSUE}/labels`, with: params }),
        labelsOf,
      );
    },
    removeLabel: async (number, label) => {
      const params = { ...one(number), name: label };
      const what = `label "${label}" on issue ${number}`;
      const removed = await wire.write({ what, route: `DELETE ${ISSUE}/labels/{name}`, with: params });
      if (removed.ok) return { ok: true, value: true };
      if (removed.kind !== "not-found") return removed;
      // There is no such label on it, or no such issue: GitHub says the same of both.
      const issue = await wire.read({ what: `issue ${number}`, route: `GET ${ISSUE}`, with: one(number) });
      return issue.ok ? { ok: true, value: false } : issue;
    },
    setLabels: async (number, labels) => {
      const params = { ...one(number), labels };
      return mapList(
        await wire.write({ what: `issue ${number}`, route: `PUT ${ISSUE}/labels`, with: params }),
        labelsOf,
      );
    },
  };
}

const ISSUES = "/repos/{owner}/{repo}/issues";
const ISSUE = `${ISSUES}/{issue_number}`;
const LIST = { what: "list of issues", route: `GET ${ISSUES}` };

export function issueOf(json: Json): Issue {
  const number = numberAt(json, "number");
  return {
    key: String(number),
    number,
    title: textField(json, "title"),
    body: textField(json, "body"),
    state: textField(json, "state") === "closed" ? "closed" : "open",
    stateReason: textField(json, "state_reason"),
    author: textField(json, "user", "login"),
    labels: labelsOf(valueAt(json, "labels")),
    assignees: listAt(json, "assignees").map((user) => textField(user, "login")),
    comments: numberAt(json, "comments"),
    url: textField(json, "html_url"),
    updatedAt: textField(json, "updated_at"),
  };
}

function commentOf(json: Json): Comment {
  const id = numberAt(json, "id");
  return {
    key: String(id),
    id,
    author: textField(json, "user", "login"),
    body: textField(json, "body"),
    createdAt: textField(json, "created_at"),
    url: textField(json, "html_url"),
  };
}

/** A label is written as its name or as an object. */
export function labelsOf(json: Json): readonly string[] {
  const labels = Array.isArray(json) ? json : [];
  return labels.map((label) => (typeof label === "string" ? label : textField(label, "name")));
}
