/** Issues, their comments and their labels, as far as a run has to do with them. */
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import type { GithubOutcome } from "./github-faults.ts";
import { valueAt, listAt, mapList, numberAt, textField } from "./github-read.ts";
import type { GithubRepository } from "./github-where.ts";
import type { GithubWire } from "./github-wire.ts";

export type Issue = ReturnType<typeof issueOf>;
export type Comment = ReturnType<typeof commentOf>;

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

type CommentFilter = { readonly limit?: number; readonly until?: (comment: Comment) => boolean };

export function createIssues(wire: GithubWire, { owner, repo }: Pick<GithubRepository, "owner" | "repo">) {
  const about = { owner, repo };
  const on = (number: number, method: string, below = "", more: JsonObject = {}) => ({
    what: `issue ${number}`,
    route: `${method} ${ISSUE}${below}`,
    with: { ...about, issue_number: number, ...more },
  });
  return {
    issue: async (number: number) => mapList(await wire.read(on(number, "GET")), issueOf),
    /** Without pull requests. */
    issues: (filter: IssueFilter = {}) => {
      const { state = "open", labels = [], limit = 30, order = "newest first", after = 0 } = filter;
      const wanted = labels.length === 0 ? {} : { labels: labels.join(",") };
      const direction = order === "newest first" ? {} : { direction: "asc" };
      const isNew = (item: JsonObject) => numberAt(item, "number") > after;
      return wire.readPages(
        { ...LIST, with: { ...about, state, ...wanted, ...direction } },
        limit,
        (item) => (isObject(item["pull_request"]) || !isNew(item) ? null : issueOf(item)),
        order === "newest first" ? { until: (item) => !isNew(item) } : {},
      );
    },
    /** Of the newest issue or pull request; 0: there is none. */
    newestNumber: async () => {
      const newest = await wire.read({ ...LIST, with: { ...about, state: "all", per_page: 1 } });
      return mapList(newest, (list) =>
        Array.isArray(list) ? numberAt((list[0] ?? null) as Json, "number") : 0,
      );
    },
    /** The latest, oldest first; no earlier ones than the page with the one that `until` finds. */
    comments: (number: number, { limit = 100, until }: CommentFilter = {}) =>
      wire.readLast(on(number, "GET", "/comments"), limit, commentOf, until),
    createIssue: async ({ title, body, labels = [], assignees = [] }: NewIssue) => {
      const params = { ...about, title, body, labels, assignees };
      return mapList(await wire.write({ what: "new issue", route: `POST ${ISSUES}`, with: params }), issueOf);
    },
    closeIssue: async (number: number) =>
      mapList(
        await wire.write(on(number, "PATCH", "", { state: "closed", state_reason: "completed" })),
        issueOf,
      ),
    createComment: async (number: number, body: string) =>
      mapList(await wire.write(on(number, "POST", "/comments", { body })), commentOf),
    /** The labels that the issue has then. A label that the repository does not have is made by GitHub. */
    addLabels: async (number: number, labels: readonly string[]) =>
      mapList(await wire.write(on(number, "POST", "/labels", { labels })), labelsOf),
    /** Whether it was there to be removed. */
    removeLabel: async (number: number, label: string): Promise<GithubOutcome<boolean>> => {
      const what = `label "${label}" on issue ${number}`;
      const removed = await wire.write({ ...on(number, "DELETE", "/labels/{name}", { name: label }), what });
      if (removed.ok) return { ok: true, value: true };
      if (removed.kind !== "not-found") return removed;
      // There is no such label on it, or no such issue: GitHub says the same of both.
      return mapList(await wire.read(on(number, "GET")), () => false);
    },
  };
}

const ISSUES = "/repos/{owner}/{repo}/issues";
const ISSUE = `${ISSUES}/{issue_number}`;
const LIST = { what: "list of issues", route: `GET ${ISSUES}` };

function issueOf(json: Json) {
  const number = numberAt(json, "number");
  return {
    key: String(number),
    number,
    title: textField(json, "title"),
    body: textField(json, "body"),
    state: textField(json, "state") === "closed" ? "closed" : "open",
    /** `completed`, `not_planned`, `duplicate`, `reopened`; empty: none was given. */
    stateReason: textField(json, "state_reason"),
    author: textField(json, "user", "login"),
    labels: labelsOf(valueAt(json, "labels")),
    assignees: listAt(json, "assignees").map((user) => textField(user, "login")),
    /** How many there are. */
    comments: numberAt(json, "comments"),
    url: textField(json, "html_url"),
    updatedAt: textField(json, "updated_at"),
  } as const;
}

function commentOf(json: Json) {
  const id = numberAt(json, "id");
  return {
    key: String(id),
    id,
    author: textField(json, "user", "login"),
    body: textField(json, "body"),
    createdAt: textField(json, "created_at"),
    url: textField(json, "html_url"),
  } as const;
}

/** A label is written as its name or as an object. */
export function labelsOf(json: Json): readonly string[] {
  const labels = Array.isArray(json) ? json : [];
  return labels.map((label) => (typeof label === "string" ? label : textField(label, "name")));
}
