/** Projects of the owner of a repository, and the items on them. GitHub offers these only in GraphQL. */
import type { Json } from "../../flow/json.ts";
import type { GithubOutcome } from "./github-faults.ts";
import { valueAt, listAt, mapList, numberAt, textField } from "./github-read.ts";
import type { GithubRepository } from "./github-where.ts";
import type { Pages, GithubWire } from "./github-wire.ts";

export type GithubProject = ReturnType<typeof projectOf>;

export type ProjectItem = {
  readonly id: string;
  readonly kind: "issue" | "pull request" | "draft" | "unknown";
  readonly title: string;
  /** Of a draft, and of what the token may not see: 0. */
  readonly number: number;
  /** `OWNER/NAME` of the repository of the issue or pull request. */
  readonly repository: string;
  /** In lower case: `open`, `closed`, `merged`. */
  readonly state: string;
  readonly url: string;
  /** By the names that the project gives them: Status, Priority, … */
  readonly fields: { readonly [name: string]: string };
};

export function createProjects(wire: GithubWire, { owner, repo }: Pick<GithubRepository, "owner" | "repo">) {
  return {
    projects: (limit = 30) =>
      follow(limit, projectOf, (first, after) =>
        wire.graph(`projects of ${owner}`, PROJECTS, { owner, first, after }, [...OWNER, "projectsV2"]),
      ),
    project: async (number: number) =>
      mapList(
        await wire.graph(`project ${number}`, PROJECT, { owner, number }, [...OWNER, "projectV2"]),
        projectOf,
      ),
    /** Without those that were put into the archive. */
    projectItems: (number: number, limit = 100) =>
      follow(limit, itemOf, (first, after) =>
        wire.graph(`project ${number}`, ITEMS, { owner, number, first, after }, [
          ...OWNER,
          "projectV2",
          "items",
        ]),
      ),
    /** That of an issue of the repository; null: it is not on this project. */
    projectItem: async (number: number, issue: number) => {
      const root = ["repository", "issue", "projectItems"];
      const found = await follow(
        PAGE,
        (node) => (numberAt(node, "project", "number") === number ? itemOf(node) : null),
        (first, after) =>
          wire.graph(`issue ${issue}`, ITEMS_OF_ISSUE, { owner, repo, number: issue, first, after }, root),
      );
      return mapList(found, ({ items: [item = null] }) => item);
    },
  };
}

/** Page after page, up to a limit; a cursor that was there before ends it. */
async function follow<T>(
  limit: number,
  parse: (node: Json) => T | null,
  ask: (first: number, after: string | null) => Promise<GithubOutcome<Json>>,
): Promise<GithubOutcome<Pages<T>>> {
  const items: T[] = [];
  const seen = new Set<string | null>([null]);
  const ids = new Set<string>();
  let after: string | null = null;
  for (;;) {
    const page: GithubOutcome<Json> = await ask(Math.min(limit, PAGE), after);
    if (!page.ok) return page;
    for (const node of listAt(page.value, "nodes")) {
      const id = textField(node, "id");
      const item = ids.has(id) ? null : parse(node);
      ids.add(id);
      if (item !== null) items.push(item);
    }
    after =
      valueAt(page.value, "pageInfo", "hasNextPage") === true
        ? textField(page.value, "pageInfo", "endCursor")
        : null;
    const isLast = seen.has(after);
    if (isLast || items.length >= limit || seen.size > MOST_PAGES)
      return { ok: true, value: { items: items.slice(0, limit), more: !isLast || items.length > limit } };
    seen.add(after);
  }
}

const PAGE = 100;
const MOST_PAGES = 50;

function projectOf(json: Json) {
  return {
    number: numberAt(json, "number"),
    title: textField(json, "title"),
    description: textField(json, "shortDescription"),
    closed: valueAt(json, "closed") === true,
    url: textField(json, "url"),
  } as const;
}

function itemOf(json: Json): ProjectItem | null {
  if (valueAt(json, "isArchived") === true) return null;
  const content = valueAt(json, "content");
  return {
    id: textField(json, "id"),
    kind: KINDS[textField(json, "type")] ?? "unknown",
    title: textField(content, "title"),
    number: numberAt(content, "number"),
    repository: textField(content, "repository", "nameWithOwner"),
    state: (textField(content, "state") || textField(content, "pullState")).toLowerCase(),
    url: textField(content, "url"),
    fields: Object.fromEntries(listAt(json, "fieldValues", "nodes").flatMap(fieldOf)),
  };
}

const KINDS: { readonly [type: string]: ProjectItem["kind"] } = {
  ISSUE: "issue",
  PULL_REQUEST: "pull request",
  DRAFT_ISSUE: "draft",
};

/** A field of a kind that is not asked for comes without a name. */
function fieldOf(json: Json): readonly (readonly [string, string])[] {
  const name = textField(json, "field", "name");
  const value = ["name", "text", "number", "date", "title"]
    .map((key) => valueAt(json, key))
    .find((found) => typeof found === "string" || typeof found === "number");
  return name === "" || value === undefined ? [] : [[name, String(value)]];
}

/** A user or an organisation: both own projects. */
function ofOwner(variables: string, fields: string): string {
  return `query($owner: String!${variables}) { repositoryOwner(login: $owner) { ... on ProjectV2Owner { ${fields} } } }`;
}

const OWNER = ["repositoryOwner"];
const FACTS = "id number title shortDescription closed url";
const PAGE_INFO = "pageInfo { hasNextPage endCursor }";
const FIELD = "field { ... on ProjectV2FieldCommon { name } }";
const CONTENT = "number title url repository { nameWithOwner }";

export const PROJECTS = ofOwner(
  ", $first: Int!, $after: String",
  `projectsV2(first: $first, after: $after) { nodes { ${FACTS} } ${PAGE_INFO} }`,
);
export const PROJECT = ofOwner(", $number: Int!", `projectV2(number: $number) { ${FACTS} }`);
const ITEM = `id type isArchived
    fieldValues(first: 100) { nodes {
      ... on ProjectV2ItemFieldSingleSelectValue { name ${FIELD} }
      ... on ProjectV2ItemFieldTextValue { text ${FIELD} }
      ... on ProjectV2ItemFieldNumberValue { number ${FIELD} }
      ... on ProjectV2ItemFieldDateValue { date ${FIELD} }
      ... on ProjectV2ItemFieldIterationValue { title ${FIELD} }
    } }
    content {
      ... on Issue { state ${CONTENT} }
      ... on PullRequest { pullState: state ${CONTENT} }
      ... on DraftIssue { title }
    }`;

export const ITEMS = ofOwner(
  ", $number: Int!, $first: Int!, $after: String",
  `projectV2(number: $number) { items(first: $first, after: $after) { nodes { ${ITEM} } ${PAGE_INFO} } }`,
);
export const ITEMS_OF_ISSUE = `query($owner: String!, $repo: String!, $number: Int!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $repo) { issue(number: $number) {
    projectItems(first: $first, after: $after, includeArchived: false) { nodes { project { number } ${ITEM} } ${PAGE_INFO} }
  } }
}`;
