/** What the stand-in of GitHub answers, and what a request changes on it. */
import { ITEMS, ITEMS_OF_ISSUE, PROJECT, PROJECTS } from "../../effects/github/github-projects.ts";
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import type { Asked } from "./stand-in.ts";
import {
  commentJson,
  issueJson,
  itemJson,
  projectJson,
  pullJson,
  type StoredIssue,
  type World,
} from "./world.ts";

/** `data` as far as it is known; `pages` are the numbers of other pages of the same list. */
export type ServedAnswer = {
  readonly status: number;
  readonly data: Json;
  readonly type?: string;
  readonly pages?: { readonly [rel in "prev" | "next" | "last" | "first"]?: number };
};

export function answerTo(world: World, asked: Asked, accept: string): ServedAnswer {
  const { method, path } = asked;
  if (path === "/graphql") return answerQuery(world, asked.body as JsonObject);
  const root = `/repos/${world.owner}/${world.repo}`;
  if (path !== root && !path.startsWith(`${root}/`)) return missing();
  const [, kind, name, part, last] = path.slice(root.length).split("/").map(decodeURIComponent);
  if (kind === undefined) return ok({ name: world.repo, default_branch: "main" });
  if (kind === "issues" && name === undefined)
    return method === "POST" ? createIssue(world, asked) : listIssues(world, asked);
  if (kind === "issues") return onIssue(world, asked, Number(name), part, last);
  if (kind === "pulls" && name === undefined)
    return method === "POST" ? createPull(world, asked) : listPulls(world, asked);
  if (kind === "pulls") return onePull(world, Number(name), accept);
  if (kind === "commits") return onCommit(world, asked, name ?? "", part);
  return missing();
}

function ok(data: Json, status = 200): ServedAnswer {
  return { status, data };
}

function missing(): ServedAnswer {
  return { status: 404, data: { message: "Not Found" } };
}

function invalid(message: string, resource: string, code = "custom"): ServedAnswer {
  return { status: 422, data: { message: "Validation Failed", errors: [{ resource, code, message }] } };
}

function paged<T>(
  all: readonly T[],
  { query }: Asked,
  write: (item: T) => Json,
): ServedAnswer & { data: Json[] } {
  const size = Math.min(Number(query["per_page"] ?? 30), 100);
  const page = Number(query["page"] ?? 1);
  const last = Math.ceil(all.length / size);
  const data = all.slice((page - 1) * size, page * size).map(write);
  const before = page > 1 ? { prev: Math.min(page - 1, last), first: 1 } : {};
  const after = page < last ? { next: page + 1, last } : {};
  return { status: 200, data, pages: { ...before, ...after } };
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function listIssues(world: World, asked: Asked): ServedAnswer {
  const { state = "open", labels = "", since = "", direction = "desc" } = asked.query;
  const wanted = labels.split(",").filter((label) => label !== "");
  const all = [...world.issues.values(), ...world.pulls.values()]
    .filter((issue) => state === "all" || issue.state === state)
    .filter((issue) => wanted.every((label) => issue.labels.some((other) => isSame(label, other))))
    .filter((issue) => issue.updatedAt >= since)
    .toSorted((a, b) => (direction === "asc" ? a.number - b.number : b.number - a.number));
  return paged(all, asked, (issue) => issueJson(issue, world));
}

function createIssue(world: World, { body }: Asked): ServedAnswer {
  const { title, body: text, labels = [], assignees = [] } = body as JsonObject;
  if (typeof title !== "string" || title === "") return invalid("title is missing", "Issue", "missing_field");
  if (title.length > 256) return invalid("title is too long (maximum is 256 characters)", "Issue");
  if (isTooLong(text)) return invalid(TOO_LONG, "Issue");
  const issue = world.addIssue({ title, body: text as string, author: world.me });
  putLabels(world, issue, labels as string[]);
  issue.assignees.push(...(assignees as string[]));
  return ok(issueJson(issue, world), 201);
}

const FULL = "Commenting is disabled on issues with more than 2500 comments";
const TOO_LONG = "body is too long (maximum is 65536 characters)";

function isTooLong(text: Json | undefined): boolean {
  return typeof text === "string" && text.length > 65_536;
}

/** Letters are the same in both cases: the label that the repository has is the one that the issue gets. */
function putLabels(world: World, issue: StoredIssue, labels: readonly string[]): void {
  for (const label of labels) {
    const known = [...world.labels, ...issue.labels].find((other) => isSame(label, other)) ?? label;
    world.labels.add(known);
    if (!issue.labels.includes(known)) issue.labels.push(known);
  }
}

function onIssue(world: World, asked: Asked, number: number, part?: string, label?: string): ServedAnswer {
  const issue = world.issues.get(number) ?? world.pulls.get(number);
  if (issue === undefined) return missing();
  const { method, body } = asked;
  const given = isObject(body) ? body : {};
  if (part === "comments") return onComments(world, asked, issue);
  if (part === "labels") {
    if (method === "DELETE") {
      if (label === undefined || !issue.labels.some((other) => isSame(label, other)))
        return { status: 404, data: { message: "Label does not exist" } };
      issue.labels = issue.labels.filter((other) => !isSame(label, other));
    } else {
      if (method === "PUT") issue.labels = [];
      putLabels(world, issue, (given["labels"] ?? []) as string[]);
    }
    return ok(issue.labels.map((name) => ({ name })));
  }
  if (method === "PATCH") {
    const { state, state_reason: reason, title, body: text, labels } = given;
    if (isTooLong(text)) return invalid(TOO_LONG, "Issue");
    if (state === "open" || state === "closed") {
      issue.stateReason =
        state === "open" ? (issue.state === "open" ? null : "reopened") : ((reason ?? "completed") as string);
      issue.state = state;
    }
    if (typeof title === "string") issue.title = title;
    if (typeof text === "string") issue.body = text;
    if (Array.isArray(labels)) {
      issue.labels = [];
      putLabels(world, issue, labels as string[]);
    }
  }
  return ok(issueJson(issue, world));
}

function onComments(world: World, asked: Asked, issue: StoredIssue): ServedAnswer {
  const { since = "" } = asked.query;
  if (asked.method === "GET")
    return paged(
      issue.comments.filter((comment) => comment.createdAt >= since),
      asked,
      commentJson,
    );
  const text = (asked.body as JsonObject)["body"];
  if (isTooLong(text)) return invalid(TOO_LONG, "IssueComment");
  if (issue.comments.length >= 2500) return { status: 403, data: { message: FULL } };
  return ok(commentJson(world.addComment(issue, text as string, world.me)), 201);
}

function listPulls(world: World, asked: Asked): ServedAnswer {
  const { state = "open", head, base } = asked.query;
  const all = [...world.pulls.values()]
    .filter((pull) => state === "all" || pull.state === state)
    .filter((pull) => head === undefined || head === `${world.owner}:${pull.head}`)
    .filter((pull) => base === undefined || base === pull.base)
    .toSorted((a, b) => b.number - a.number);
  return paged(all, asked, (pull) => pullJson(pull, world));
}

function createPull(world: World, { body }: Asked): ServedAnswer {
  const { title, body: text, head, base, draft } = body as { [name: string]: string };
  if (isTooLong(text)) return invalid(TOO_LONG, "PullRequest");
  if (!world.branches.has(head!)) return invalid("", "PullRequest", "invalid");
  const open = [...world.pulls.values()].find(
    (pull) => pull.state === "open" && pull.head === head && pull.base === base,
  );
  if (open !== undefined)
    return invalid(`A pull request already exists for ${world.owner}:${head}.`, "PullRequest");
  const pull = world.addPull({
    title: title!,
    body: text!,
    head: head!,
    base: base!,
    author: world.me,
    draft: Boolean(draft),
  });
  return ok(pullJson(pull, world), 201);
}

function onePull(world: World, number: number, accept: string): ServedAnswer {
  const pull = world.pulls.get(number);
  if (pull === undefined) return missing();
  if (!accept.includes("diff")) return ok(pullJson(pull, world));
  return { status: 200, data: pull.diff, type: "application/vnd.github.diff; charset=utf-8" };
}

function onCommit(world: World, asked: Asked, sha: string, part?: string): ServedAnswer {
  const pull = [...world.pulls.values()].find((other) => other.sha === sha);
  const checks = pull?.checks ?? [];
  const statuses = pull?.statuses ?? [];
  if (part === "check-runs") {
    const { data, ...rest } = paged(checks, asked, (check) => ({
      ...check,
      head_sha: sha,
      pull_requests: [],
    }));
    return { ...rest, data: { total_count: checks.length, check_runs: data } };
  }
  const { data, ...rest } = paged(statuses, asked, (status) => ({ ...status }));
  return { ...rest, data: { sha, total_count: statuses.length, statuses: data } };
}

/** Exactly the queries that are asked. */
function answerQuery(world: World, { query, variables }: JsonObject): ServedAnswer {
  const { owner, number, first, after } = variables as { [name: string]: Json };
  if (first !== undefined && !(Number(first) >= 1 && Number(first) <= 100)) {
    const message = `Requesting ${Number(first)} records exceeds the \`first\` limit of 100 records.`;
    return ok({ data: null, errors: [{ type: "EXCESSIVE_PAGINATION", message }] });
  }
  if (owner !== world.owner) return ok({ data: { repositoryOwner: null } });
  if (query === PROJECTS) {
    const projectsV2 = nodesOf([...world.projects.values()].map(projectJson), Number(first), after);
    return ok({ data: { repositoryOwner: { projectsV2 } } });
  }
  if (query === ITEMS_OF_ISSUE) return itemsOfIssue(world, Number(number), Number(first), after);
  const project = world.projects.get(Number(number));
  if (project === undefined) {
    const message = `Could not resolve to a ProjectV2 with the number ${Number(number)}.`;
    return ok({ data: { repositoryOwner: { projectV2: null } }, errors: [{ type: "NOT_FOUND", message }] });
  }
  if (query === PROJECT) return ok({ data: { repositoryOwner: { projectV2: projectJson(project) } } });
  if (query !== ITEMS)
    return ok({ data: null, errors: [{ message: "The stand-in does not know this query." }] });
  const items = nodesOf(
    project.items.map((item) => itemJson(item, world)),
    Number(first),
    after,
  );
  return ok({ data: { repositoryOwner: { projectV2: { items } } } });
}

function itemsOfIssue(world: World, number: number, first: number, after: Json | undefined): ServedAnswer {
  if (!world.issues.has(number)) {
    const message = `Could not resolve to an Issue with the number of ${number}.`;
    return ok({ data: { repository: { issue: null } }, errors: [{ type: "NOT_FOUND", message }] });
  }
  const all = [...world.projects.values()].flatMap((project) =>
    project.items
      .filter((item) => item.number === number && item.isArchived !== true)
      .map((item) => Object.assign({ project: { number: project.number } }, itemJson(item, world))),
  );
  return ok({ data: { repository: { issue: { projectItems: nodesOf(all, first, after) } } } });
}

function nodesOf(all: readonly Json[], first: number, after: Json | undefined): Json {
  const start = typeof after === "string" ? Number(after) : 0;
  const end = start + first;
  return {
    nodes: all.slice(start, end),
    pageInfo: { hasNextPage: end < all.length, endCursor: String(end) },
  };
}
