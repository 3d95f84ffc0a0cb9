/** Whether an issue or a project on GitHub is as a stop rule wants it. */
import type { Sight } from "../../flow/event.ts";
import type { Resource } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import type { GithubClient, Issue, GithubOutcome, ProjectItem } from "../github/github.ts";

type OnGitHub = Extract<Resource, { kind: "github-issue" | "github-project" }>;

/** Whatever goes wrong, the state was not seen, and so it is not the one that is wanted. */
export async function lookAtGitHub(
  { kind, want }: OnGitHub,
  args: JsonObject,
  github: GithubClient,
): Promise<Sight> {
  const issue = numberOf(own(args, "issue"));
  if (kind === "github-issue") {
    if (issue === null) return notLookedAt("issue", "there is no number in the argument issue");
    return sightOf(await github.issue(issue), `issue ${issue}`, (found) => ({
      met: isIssue(found, want),
      what: `issue ${issue} is ${issueWords(found)}`,
    }));
  }
  const project = numberOf(own(args, "project"));
  if (project === null) return notLookedAt("project", "there is no number in the argument project");
  if (issue !== null) return await lookAtItem(project, issue, want, github);
  if (isWord(want, "open") || isWord(want, "closed")) {
    return sightOf(await github.project(project), `project ${project}`, ({ closed }) => ({
      met: closed === isWord(want, "closed"),
      what: `project ${project} is ${closed ? "closed" : "open"}`,
    }));
  }
  return sightOf(await github.projectItems(project, MOST_ITEMS), `project ${project}`, ({ items, more }) => {
    const left = items.filter((item) => !isItem(item, want)).length;
    const met = items.length > 0 && left === 0 && !more;
    if (met) return { met, what: `all ${items.length} items of project ${project} are as wanted` };
    if (more && left === 0) {
      const what = `project ${project} has more than the ${items.length} items that were looked at, which are as wanted`;
      return { met, what };
    }
    return { met, what: `${left} of ${items.length} items of project ${project} are not as wanted yet` };
  });
}

const MOST_ITEMS = 5000;

async function lookAtItem(project: number, issue: number, want: Json, github: GithubClient): Promise<Sight> {
  return sightOf(await github.projectItem(project, issue), `project ${project}`, (item) => {
    if (item === null) return { met: false, what: `issue ${issue} is not on project ${project}` };
    const fields = Object.entries(item.fields).map(([name, value]) => `${name}: ${value}`);
    const words = [item.state, ...fields].join(", ");
    return { met: isItem(item, want), what: `issue ${issue} on project ${project} is ${words}` };
  });
}

function sightOf<T>(outcome: GithubOutcome<T>, what: string, see: (value: T) => Sight): Sight {
  return outcome.ok ? see(outcome.value) : notLookedAt(what, outcome.why);
}

export function notLookedAt(what: string, why: string): Sight {
  return { met: false, what: `the ${what} on GitHub was not looked at: ${why}` };
}

function issueWords({ state, stateReason, labels }: Issue): string {
  const reason = stateReason === "" ? "" : ` (${stateReason})`;
  return `${state}${reason}${labels.length === 0 ? "" : `, with the labels ${labels.join(", ")}`}`;
}

/** `closed`, or why it is: `completed`; or every member of an object, where lists name what must be among others. */
function isIssue({ state, stateReason, labels, assignees }: Issue, want: Json): boolean {
  if (!isObject(want)) return isWord(want, state) || isWord(want, stateReason);
  const facts: { readonly [name: string]: string | readonly string[] } = {
    state,
    state_reason: stateReason,
    labels,
    assignees,
  };
  return Object.entries(want).every(([name, value]) => {
    const fact = own(facts, name === "stateReason" ? "state_reason" : name);
    if (fact === undefined) return false;
    if (typeof fact === "string") return isWord(value, fact);
    return listOf(value).every((wanted) => fact.some((one) => isWord(wanted, one)));
  });
}

/** A word is the item's Status, or the state of its issue; an object names fields, however they are spelled. */
function isItem({ state, fields }: ProjectItem, want: Json): boolean {
  const field = (name: string) => Object.entries(fields).find(([known]) => isWord(name, known))?.[1];
  if (!isObject(want)) return isWord(want, field("status") ?? "") || isWord(want, state);
  return Object.entries(want).every(([name, value]) =>
    isWord(value, field(name) ?? (name === "state" ? state : "")),
  );
}

/** People write `Closed`, `closed` and `not planned`. */
function isWord(want: Json, word: string): boolean {
  if (typeof want !== "string" && typeof want !== "number") return false;
  return word !== "" && plain(String(want)) === plain(word);
}

function plain(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, " ");
}

function listOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : [value];
}

/** An argument is a number, or is written like one. */
function numberOf(value: Json | undefined): number | null {
  const number = typeof value === "string" ? Number(/^\s*#?(\d{1,9})\s*$/.exec(value)?.[1] ?? 0) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : null;
}
