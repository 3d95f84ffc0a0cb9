/** GitHub in a test: what `github:` puts there, which requests fail, and what is there afterwards. */
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import { serveGithub, type ServedFault, type GithubStandIn, type When } from "./stand-in.ts";
import type { StoredIssue, World } from "./world.ts";

/** `{ repo, issue, issues, branches, faults }`. */
export async function githubOf(given: JsonObject): Promise<GithubStandIn> {
  const [owner = "octo", repo = "demo"] = typeof given.repo === "string" ? given.repo.split("/") : [];
  const stand = await serveGithub({ owner, repo });
  for (const issue of [...listIn(given.issues), ...listIn(given.issue)]) addIssue(stand.world, issue);
  for (const branch of listIn(given.branches))
    if (typeof branch === "string") stand.world.branches.add(branch);
  for (const fault of listIn(given.faults)) if (isObject(fault)) addFault(stand, fault);
  return stand;
}

function listIn(value: Json | undefined): readonly Json[] {
  return value === undefined || value === null
    ? []
    : Array.isArray(value)
      ? (value as readonly Json[])
      : [value];
}

function textsIn(value: Json | undefined): string[] {
  return listIn(value).filter((one) => typeof one === "string");
}

/** A number alone is an issue that says nothing. A comment is a text, or `{ author, body }`. */
function addIssue(world: World, given: Json): void {
  const { number, title, body, state, author, labels, assignees, comments } = isObject(given)
    ? given
    : { number: given };
  const issue: StoredIssue = world.addIssue({
    ...(typeof number === "number" && { number }),
    ...(typeof title === "string" && { title }),
    ...(typeof body === "string" && { body }),
    ...((state === "open" || state === "closed") && { state }),
    ...(typeof author === "string" && { author }),
    labels: textsIn(labels),
    assignees: textsIn(assignees),
  });
  for (const label of issue.labels) world.labels.add(label);
  for (const comment of listIn(comments)) {
    const { body: text, author: by } = isObject(comment) ? comment : { body: comment };
    if (typeof text === "string") world.addComment(issue, text, typeof by === "string" ? by : "ann");
  }
}

/**
 * `{ on: "POST /issues/12/labels", nth, times, status }`: the path holds these letters. `lost: answer`: the request has its
 * effect and the answer does not arrive; `lost: request`: it never arrives.
 */
function addFault(stand: GithubStandIn, { on, nth, times, status, lost }: JsonObject): void {
  const [first = "", ...rest] = typeof on === "string" ? on.trim().split(/\s+/) : [];
  const isMethod = /^[A-Z]+$/.test(first);
  const path = (isMethod ? rest : [first, ...rest]).join(" ");
  const when: When = {
    ...(isMethod && { method: first }),
    ...(path !== "" && { path: new RegExp(path.replaceAll(/[^\w/-]/g, String.raw`\$&`)) }),
    ...(typeof nth === "number" && { nth }),
    times: typeof times === "number" ? times : 1,
  };
  const fault: ServedFault =
    lost === "answer"
      ? { kind: "drop", after: true }
      : lost === "request"
        ? { kind: "drop" }
        : { kind: "status", status: typeof status === "number" ? status : 503 };
  stand.fault(fault, when);
}

/** What tests can expect: each issue and pull request by its number, and the requests that changed something. */
export function githubAfter({ world, log }: GithubStandIn): JsonObject {
  const issues = [...world.issues.values()].map(({ number, title, state, labels, comments }) => [
    String(number),
    { title, state, labels: [...labels], comments: comments.map(({ body }) => body) },
  ]);
  const pulls = [...world.pulls.values()].map(({ number, title, state, head, base, draft, labels }) => [
    String(number),
    { title, state, head, base, draft, labels: [...labels] },
  ]);
  const requests = log
    .filter(({ method, path }) => method !== "GET" && path !== "/graphql")
    .map(({ method, path, status }) => {
      const short = path.replace(`/repos/${world.owner}/${world.repo}`, "");
      return `${method} ${short} ${status === 0 ? "lost" : status}`;
    });
  return {
    issues: Object.fromEntries(issues) as JsonObject,
    pulls: Object.fromEntries(pulls) as JsonObject,
    requests,
  };
}
