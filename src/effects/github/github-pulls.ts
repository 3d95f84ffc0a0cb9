/** Pull requests, what they change, and what checks say about them. */
import type { Json, JsonObject } from "../../flow/json.ts";
import type { GithubOutcome } from "./github-faults.ts";
import { labelsOf } from "./github-issues.ts";
import { valueAt, mapList, numberAt, textField } from "./github-read.ts";
import type { GithubRepository } from "./github-where.ts";
import type { Pages, GithubWire } from "./github-wire.ts";

export type Pull = ReturnType<typeof pullOf>;

export type PullFilter = {
  readonly state?: "open" | "closed" | "all";
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

export function createPulls(wire: GithubWire, { owner, repo }: Pick<GithubRepository, "owner" | "repo">) {
  const about = { owner, repo };
  const one = (number: number) => ({
    what: `pull request ${number}`,
    route: `GET ${PULL}`,
    with: { ...about, pull_number: number },
  });
  const pull = async (number: number) => mapList(await wire.read(one(number)), pullOf);
  const list = (limit: number, filter: JsonObject) =>
    wire.readPages(
      { what: "list of pull requests", route: `GET ${PULLS}`, with: { ...about, ...filter } },
      limit,
      pullOf,
    );
  return {
    pull,
    /** Newest first. */
    pulls: ({ state = "open", limit = 30 }: PullFilter = {}) => list(limit, { state }),
    /** Those of a branch of this repository, newest first, whatever became of them. */
    pullsOf: async (head: string) => {
      const filter = { state: "all", head: `${owner}:${head}` };
      return mapList(await list(100, filter), ({ items }) => items.filter((one) => one.head === head));
    },
    diff: async (number: number) =>
      mapList(await wire.read({ ...one(number), accept: "application/vnd.github.diff" }), (text) =>
        typeof text === "string" ? text : "",
      ),
    checks: async (number: number): Promise<GithubOutcome<Pages<PullCheck>>> => {
      const found = await pull(number);
      if (!found.ok) return found;
      const of = (part: string, listIn: string, parse: (json: Json) => PullCheck) =>
        wire.readPages(
          {
            what: `checks of pull request ${number}`,
            route: `GET ${COMMIT}/${part}`,
            with: { ...about, ref: found.value.headSha },
          },
          MOST_CHECKS,
          parse,
          { listIn },
        );
      const runs = await of("check-runs", "check_runs", checkOf);
      if (!runs.ok) return runs;
      return mapList(await of("status", "statuses", statusOf), ({ items, more }) => ({
        items: [...runs.value.items, ...items],
        more: runs.value.more || more,
      }));
    },
    createPull: async ({ title, body, head, base, draft = false }: NewPull) => {
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

function pullOf(json: Json) {
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
    /** The branch with the changes, its newest commit, and the branch they are for. */
    head: textField(json, "head", "ref"),
    headSha: textField(json, "head", "sha"),
    base: textField(json, "base", "ref"),
    url: textField(json, "html_url"),
    updatedAt: textField(json, "updated_at"),
  } as const;
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
