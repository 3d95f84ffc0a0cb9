/** Pull requests, what they change, and what checks say about them. */
import type { Json, JsonObject } from "../../flow/json.ts";
import type { GithubOutcome } from "./github-faults.ts";
import { labelsOf } from "./github-issues.ts";
import { valueAt, mapList, numberAt, textField } from "./github-read.ts";
import type { Pages, GithubWire } from "./github-wire.ts";

export type Pull = {
  readonly key: string;
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly state: "open" | "closed" | "merged";
  readonly draft: boolean;
  readonly author: string;
  readonly labels: readonly string[];
  /** The branch with the changes, its newest commit, and the branch they are for. */
  readonly head: string;
  readonly headSha: string;
  readonly base: string;
  readonly url: string;
  readonly updatedAt: string;
};

export type PullFilter = {
  readonly state?: "open" | "closed" | "all";
  readonly base?: string;
  readonly limit?: number;
};

export type NewPull = {
  readonly title: string;
  readonly body: string;
  /** The branch with the changes, which has to be on GitHub already, and the one they are for. */
  readonly head: string;
  readonly base: string;
  readonly draft?: boolean;
};

export type PullCheck = {
  readonly key: string;
  readonly name: string;
  readonly state: "passed" | "failed" | "pending" | "skipped";
  readonly detail: string;
  readonly url: string;
};

export type Pulls = {
  readonly pull: (number: number) => Promise<GithubOutcome<Pull>>;
  /** Newest first. */
  readonly pulls: (filter?: PullFilter) => Promise<GithubOutcome<Pages<Pull>>>;
  /** Those of a branch of this repository, newest first, whatever became of them. */
  readonly pullsOf: (head: string, base?: string) => Promise<GithubOutcome<readonly Pull[]>>;
  readonly diff: (number: number) => Promise<GithubOutcome<string>>;
  readonly checks: (number: number) => Promise<GithubOutcome<Pages<PullCheck>>>;
  readonly createPull: (pull: NewPull) => Promise<GithubOutcome<Pull>>;
};

export function createPulls(
  wire: GithubWire,
  { owner, repo }: { readonly owner: string; readonly repo: string },
): Pulls {
  const about = { owner, repo };
  const read = async (number: number) => {
    const params = { ...about, pull_number: number };
    return mapList(
      await wire.read({ what: `pull request ${number}`, route: `GET ${PULL}`, with: params }),
      pullOf,
    );
  };
  const list = (limit: number, filter: JsonObject) =>
    wire.readPages(
      { what: "list of pull requests", route: `GET ${PULLS}`, with: { ...about, ...filter } },
      limit,
      pullOf,
    );
  return {
    pull: read,
    pulls: ({ state = "open", base, limit = 30 } = {}) =>
      list(limit, { state, ...(base === undefined ? {} : { base }) }),
    pullsOf: async (head, base) => {
      const filter = { state: "all", head: `${owner}:${head}`, ...(base === undefined ? {} : { base }) };
      return mapList(await list(100, filter), ({ items }) => items.filter((pull) => pull.head === head));
    },
    diff: async (number) => {
      const params = { ...about, pull_number: number };
      const accept = "application/vnd.github.diff";
      const question = { what: `pull request ${number}`, route: `GET ${PULL}`, with: params, accept };
      return mapList(await wire.read(question), (text) => (typeof text === "string" ? text : ""));
    },
    checks: async (number) => {
      const pull = await read(number);
      if (!pull.ok) return pull;
      const what = `checks of pull request ${number}`;
      const params = { ...about, ref: pull.value.headSha };
      const runs = await wire.readPages(
        { what, route: `GET ${COMMIT}/check-runs`, with: params },
        MOST_CHECKS,
        checkOf,
        { listIn: "check_runs" },
      );
      if (!runs.ok) return runs;
      const statuses = await wire.readPages(
        { what, route: `GET ${COMMIT}/status`, with: params },
        MOST_CHECKS,
        statusOf,
        { listIn: "statuses" },
      );
      if (!statuses.ok) return statuses;
      const items = [...runs.value.items, ...statuses.value.items];
      return { ok: true, value: { items, more: runs.value.more || statuses.value.more } };
    },
    createPull: async ({ title, body, head, base, draft = false }) => {
      const params = { ...about, title, body, head, base, draft };
      return mapList(
        await wire.write({ what: "new pull request", route: `POST ${PULLS}`, with: params }),
        pullOf,
      );
    },
  };
}

const PULLS = "/repos/{owner}/{repo}/pulls";
const PULL = `${PULLS}/{pull_number}`;
const COMMIT = "/repos/{owner}/{repo}/commits/{ref}";
const MOST_CHECKS = 200;

function pullOf(json: Json): Pull {
  const number = numberAt(json, "number");
  const isMerged = textField(json, "merged_at") !== "";
  return {
    key: String(number),
    number,
    title: textField(json, "title"),
    body: textField(json, "body"),
    state: isMerged ? "merged" : textField(json, "state") === "closed" ? "closed" : "open",
    draft: valueAt(json, "draft") === true,
    author: textField(json, "user", "login"),
    labels: labelsOf(valueAt(json, "labels")),
    head: textField(json, "head", "ref"),
    headSha: textField(json, "head", "sha"),
    base: textField(json, "base", "ref"),
    url: textField(json, "html_url"),
    updatedAt: textField(json, "updated_at"),
  };
}

function checkOf(json: Json): PullCheck {
  const conclusion = textField(json, "conclusion");
  return {
    key: `run ${numberAt(json, "id")}`,
    name: textField(json, "name"),
    state: conclusion === "" ? "pending" : (STATES[conclusion] ?? "failed"),
    detail: conclusion || textField(json, "status"),
    url: textField(json, "html_url"),
  };
}

function statusOf(json: Json): PullCheck {
  const state = textField(json, "state");
  return {
    key: `status ${textField(json, "context")}`,
    name: textField(json, "context"),
    state: STATES[state] ?? "failed",
    detail: textField(json, "description") || state,
    url: textField(json, "target_url"),
  };
}

/** Whatever else GitHub calls it, it did not pass. */
const STATES: { readonly [word: string]: PullCheck["state"] } = {
  success: "passed",
  neutral: "skipped",
  skipped: "skipped",
  stale: "skipped",
  pending: "pending",
};
