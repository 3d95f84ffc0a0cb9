/** What is on the stand-in of GitHub: one repository, its issues and pull requests, and the projects of its owner. */
import type { Json, JsonObject } from "../../flow/json.ts";

export type StoredComment = { id: number; author: string; body: string; createdAt: string };

export type StoredIssue = {
  number: number;
  title: string;
  body: string | null;
  state: "open" | "closed";
  stateReason: string | null;
  author: string;
  labels: string[];
  assignees: string[];
  comments: StoredComment[];
  createdAt: string;
  updatedAt: string;
};

export type StoredPull = StoredIssue & {
  head: string;
  base: string;
  sha: string;
  draft: boolean;
  mergedAt: string | null;
  diff: string;
  checks: { id: number; name: string; status: string; conclusion: string | null }[];
  statuses: { context: string; state: string; description: string }[];
};

export type StoredItem = {
  id: string;
  type: "ISSUE" | "PULL_REQUEST" | "DRAFT_ISSUE" | "REDACTED";
  number?: number;
  title?: string;
  isArchived?: boolean;
  fields?: { [name: string]: string | number };
};

export type StoredProject = { number: number; title: string; closed: boolean; items: StoredItem[] };

/** May be changed at any time, as if by somebody else. */
export type World = {
  readonly owner: string;
  readonly repo: string;
  readonly issues: Map<number, StoredIssue>;
  readonly pulls: Map<number, StoredPull>;
  readonly projects: Map<number, StoredProject>;
  /** The labels of the repository; one that is put on an issue and is not there is made. */
  readonly labels: Set<string>;
  /** Branches that a pull request can be made from. */
  readonly branches: Set<string>;
  /** The user of the token. */
  readonly me: string;
  readonly addIssue: (issue?: Partial<StoredIssue>) => StoredIssue;
  readonly addPull: (pull?: Partial<StoredPull>) => StoredPull;
  readonly addComment: (issue: StoredIssue, body: string, author?: string) => StoredComment;
  readonly addProject: (project?: Partial<StoredProject>) => StoredProject;
};

export function createWorld(owner: string, repo: string): World {
  let number = 0;
  let ticks = 0;
  const now = () => new Date(Date.UTC(2026, 0, 1) + ++ticks * 1000).toISOString().replace(".000", "");
  const fresh = (): StoredIssue => {
    const at = now();
    number += 1;
    return {
      number,
      title: `Issue ${number}`,
      body: null,
      state: "open",
      stateReason: null,
      author: "ann",
      labels: [],
      assignees: [],
      comments: [],
      createdAt: at,
      updatedAt: at,
    };
  };
  const world: World = {
    owner,
    repo,
    issues: new Map(),
    pulls: new Map(),
    projects: new Map(),
    labels: new Set(),
    branches: new Set(["main"]),
    me: "lockstep-bot",
    addIssue: (given = {}) => {
      const issue = { ...fresh(), ...given };
      world.issues.set(issue.number, issue);
      return issue;
    },
    addPull: (given = {}) => {
      const issue = fresh();
      const rest = { draft: false, mergedAt: null, diff: "", checks: [], statuses: [] };
      const sha = String(issue.number).padStart(40, "0");
      const pull = { ...issue, head: `branch-${issue.number}`, base: "main", sha, ...rest, ...given };
      world.pulls.set(pull.number, pull);
      world.branches.add(pull.head);
      return pull;
    },
    addComment: (issue, body, author = "ann") => {
      const comment = { id: 1000 + ++ticks, author, body, createdAt: now() };
      issue.comments.push(comment);
      issue.updatedAt = comment.createdAt;
      return comment;
    },
    addProject: (given = {}) => {
      const project = { number: world.projects.size + 1, title: "Plan", closed: false, items: [], ...given };
      world.projects.set(project.number, project);
      return project;
    },
  };
  return world;
}

// As GitHub writes them; what else it always says is filled in from its description.

export function issueJson(issue: StoredIssue, { owner, repo, pulls }: World): JsonObject {
  const { number, title, body, state, labels, assignees, author } = issue;
  const isPull = pulls.has(number);
  return {
    id: 5000 + number,
    number,
    title,
    body,
    state,
    state_reason: issue.stateReason,
    user: { login: author },
    labels: labels.map((name) => ({ name })),
    assignees: assignees.map((login) => ({ login })),
    comments: issue.comments.length,
    html_url: `https://github.test/${owner}/${repo}/${isPull ? "pull" : "issues"}/${number}`,
    created_at: issue.createdAt,
    updated_at: issue.updatedAt,
    ...(isPull ? { pull_request: {} } : {}),
  };
}

export function commentJson({ id, author, body, createdAt }: StoredComment): JsonObject {
  return {
    id,
    body,
    user: { login: author },
    created_at: createdAt,
    updated_at: createdAt,
    html_url: `https://github.test/comment/${id}`,
  };
}

export function pullJson(pull: StoredPull, world: World): JsonObject {
  const { number, head, base, sha, draft } = pull;
  const { owner, repo } = world;
  const { state_reason: _, pull_request: __, comments: ___, ...issue } = issueJson(pull, world);
  return {
    ...issue,
    html_url: `https://github.test/${owner}/${repo}/pull/${number}`,
    draft,
    merged: pull.mergedAt !== null,
    merged_at: pull.mergedAt,
    head: { ref: head, sha, label: `${owner}:${head}` },
    base: { ref: base, label: `${owner}:${base}` },
  };
}

export function projectJson({ number, title, closed }: StoredProject): JsonObject {
  return {
    id: `P${number}`,
    number,
    title,
    shortDescription: null,
    closed,
    url: `https://github.test/projects/${number}`,
  };
}

export function itemJson(item: StoredItem, world: World): JsonObject {
  const { id, type, number = 0, isArchived = false, fields = {} } = item;
  const values = Object.entries(fields).map(([name, value]): Json =>
    typeof value === "number" ? { number: value, field: { name } } : { name: value, field: { name } },
  );
  return {
    id,
    type,
    isArchived,
    fieldValues: { nodes: [{}, ...values] },
    content: contentOf(item, number, world),
  };
}

function contentOf({ type, title }: StoredItem, number: number, { owner, repo, issues, pulls }: World): Json {
  const found = issues.get(number) ?? pulls.get(number);
  if (type === "DRAFT_ISSUE") return { title: title ?? "" };
  if (type === "REDACTED" || found === undefined) return null;
  const state = found.state.toUpperCase();
  return {
    number,
    title: found.title,
    ...(type === "PULL_REQUEST" ? { pullState: state } : { state }),
    url: `https://github.test/${number}`,
    repository: { nameWithOwner: `${owner}/${repo}` },
  };
}
