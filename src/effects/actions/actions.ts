/** From an action block to the acts it asks for, or to the reason why it asks for nothing that may be done. */
import { createHash } from "node:crypto";
import { shownInLine } from "../../flow/text/harmless.ts";
import { handlerOf, isBuiltIn, isOnGitHub } from "../../flow/handlers.ts";
import type { BlocksDue } from "../../flow/due.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import type { Action } from "../../flow/action-blocks.ts";
import {
  FILE,
  GITHUB_COMMENT,
  GITHUB_ISSUE,
  ISSUE_ACTION,
  readActionFields,
  toCount,
} from "./action-fields.ts";
import { fileAct } from "./action-file.ts";
import type { GroundPlace, Pins } from "../../flow/machine/ground.ts";
import { mayLabel } from "./closing.ts";
import { applied, type Act } from "./ledger.ts";
import type { GithubClient, GithubOutcome } from "../github/github.ts";
import type { ModuleHost } from "../modules/module-host.ts";

/** What there is to act with. */
export type ActionSurroundings = Pick<BlocksDue, "settings" | "mayWrite" | "completes"> & {
  readonly run: string;
  readonly agent: string;
  readonly cwd: string;
  readonly args: JsonObject;
  /** Where a path really leads, if it may be written. */
  readonly writing: (path: string) => GroundPlace;
  /** Holds the working directory while a file in it is written. */
  readonly pin: () => Pins;
  /** What a model sees of a text. */
  readonly tidy: (text: string) => string;
  readonly github: () => Promise<GithubOutcome<GithubClient>>;
  readonly passing: (key: string) => void;
  /** The process of the module that carries out this type. */
  readonly host: (type: string) => Promise<ModuleHost>;
  readonly signal: AbortSignal;
};

/** Where the block was found; `past` is what is known of an act from before. */
export type ActionPlace = {
  readonly key: string;
  readonly step: string;
  readonly visit: number;
  readonly index: number;
  readonly past: (key: string) => { readonly state: string; readonly detail: string } | null;
};

export type ActionRequest =
  | { readonly ok: true; readonly acts: readonly Act[] }
  | { readonly ok: false; readonly why: string };

export async function actsOf(
  action: Action,
  at: ActionPlace,
  world: ActionSurroundings,
): Promise<ActionRequest> {
  const handler = handlerOf(world.settings.actions, action.type);
  if (!isBuiltIn(handler)) return await byModule(action, at, world);
  if (isOnGitHub(handler) && !world.settings.github.enabled)
    return refuse(action, "runner.integrations.github.enabled is false");
  if (isOnGitHub(handler) && !world.mayWrite)
    return refuse(action, "permissionMode plan of its step changes nothing on GitHub");
  switch (handler) {
    case "builtin:log":
      return asked(noted("action:log", at.key, action));
    case "builtin:completion-signal":
      return asked(noted("action:completion-signal", at.key, action));
    case "builtin:file":
      return await toFile(action, at, world);
    case "builtin:github-issue":
      return await newIssue(action, at, world);
    case "builtin:github-comment":
      return await comment(action, at, world);
    case "builtin:issue-action":
      return await onIssue(action, at, world);
  }
}

function asked(...acts: readonly Act[]): ActionRequest {
  return { ok: true, acts };
}

function refuse({ type }: Action, why: string): ActionRequest {
  return { ok: false, why: `the block of the type "${type}" was not carried out: ${why}` };
}

/** That it was said is all there is to it. */
function noted(kind: string, key: string, { type, content, metadata }: Action): Act {
  const words = content === "" ? JSON.stringify(metadata) : content;
  const detail = `${type}: ${shownInLine(words, MOST_TOLD)}`;
  return { kind, key, target: type, detail, find: async () => null, perform: async () => applied(detail) };
}

const MOST_TOLD = 500;

async function byModule(action: Action, at: ActionPlace, world: ActionSurroundings): Promise<ActionRequest> {
  const { type } = action;
  const module = own(world.settings.actions.modules ?? {}, type);
  if (module === undefined) return refuse(action, "there is nothing that carries it out");
  const { key, step, visit, index } = at;
  const { run, agent, cwd, args, signal } = world;
  const wasBegun = at.past(key)?.state === "intended";
  const { moduleAct } = await import("./action-module.ts");
  return asked(
    moduleAct({
      key,
      action,
      file: module.file,
      host: () => world.host(type),
      context: { key: markOf(run, key), run, agent, step, visit, index, cwd, args },
      wasBegun,
      signal,
    }),
  );
}

async function toFile(
  action: Action,
  { key, past }: ActionPlace,
  { mayWrite, writing, pin, tidy }: ActionSurroundings,
): Promise<ActionRequest> {
  const read = readActionFields(FILE, action);
  if (!read.ok) return read;
  if (!mayWrite) return refuse(action, "permissionMode plan of its step changes no files");
  if (action.content === "") return refuse(action, "it has no content");
  const { filename = "output.md", mode = "append" } = read.fields;
  const place = writing(filename);
  if (place.kind === "refused") return refuse(action, place.why);
  const before = past(key);
  const { parts, shown } = place;
  const begun = before?.state === "intended" ? before.detail : null;
  return asked(await fileAct({ key, parts, pin, shown, content: action.content, mode, past: begun, tidy }));
}

// On GitHub.

async function newIssue(action: Action, at: ActionPlace, world: ActionSurroundings): Promise<ActionRequest> {
  const read = readActionFields(GITHUB_ISSUE, action);
  if (!read.ok) return read;
  const { title, labels = [], assignee, rationale, dueDate, priority } = read.fields;
  const { content } = action;
  if (title === undefined && content.trim() === "") return refuse(action, "it has neither title nor content");
  const stranger = labels.find((label) => !mayLabel(label, world.settings.github));
  if (stranger !== undefined) return refuse(action, strange(stranger));
  const about = { Rationale: rationale, Due: dueDate, Priority: priority };
  const rows = Object.entries(about).flatMap(([name, text]) =>
    text === undefined ? [] : [`**${name}:** ${text}`],
  );
  const body = [content, ...rows].filter((part) => part !== "").join("\n\n");
  const { issueAct } = await import("./action-github.ts");
  return asked(
    issueAct(onGitHub(at.key, world), {
      title: title ?? shownInLine(content.trim().slice(0, TITLE_FROM_CONTENT).trimEnd(), TITLE_FROM_CONTENT),
      body,
      labels,
      ...(assignee !== undefined && { assignees: [assignee] }),
    }),
  );
}

const TITLE_FROM_CONTENT = 50;

async function comment(
  action: Action,
  { key }: ActionPlace,
  world: ActionSurroundings,
): Promise<ActionRequest> {
  const read = readActionFields(GITHUB_COMMENT, action);
  if (!read.ok) return read;
  const { issueNumber } = read.fields;
  if (issueNumber === undefined) return refuse(action, `"issueNumber" is missing`);
  if (action.content.trim() === "") return refuse(action, "it has no content");
  const foreign = foreignIssue(issueNumber, world);
  if (foreign !== null) return refuse(action, foreign);
  const { commentAct } = await import("./action-github.ts");
  return asked(commentAct("action:github-comment", onGitHub(key, world), issueNumber, action.content));
}

async function onIssue(
  action: Action,
  { key }: ActionPlace,
  world: ActionSurroundings,
): Promise<ActionRequest> {
  const read = readActionFields(ISSUE_ACTION, action);
  if (!read.ok) return read;
  const { action: what, label, body = action.content } = read.fields;
  const issue = read.fields.issue ?? ownIssue(world);
  if (what === undefined) return refuse(action, `"action" is missing`);
  if (issue === null) return refuse(action, `"issue" is missing`);
  const foreign = foreignIssue(issue, world);
  if (foreign !== null) return refuse(action, foreign);
  if (label !== undefined && !mayLabel(label, world.settings.github)) return refuse(action, strange(label));
  if (what === "close" && !world.completes) return refuse(action, NOT_CLOSING);
  const { github } = world.settings;
  const closes = what === "close" && github.defaultClosureAction !== "label-only";
  const changes = what === "close" && github.defaultClosureAction !== "close" ? github.completion : NO_LABELS;
  const blocked = what === "blocked" ? own(github.labels, "blocked") : undefined;
  const added = new Set([label, blocked, ...changes.add].filter((name) => name !== undefined));
  const on = (part: string) => onGitHub(`${key}/${part}`, world);
  const { changeAct, commentAct } = await import("./action-github.ts");
  const { adding, closing, removing } = await import("./issue.ts");
  const acts = [
    ...(body.trim() === "" ? [] : [commentAct("action:issue-action", on("comment"), issue, body)]),
    ...[...added].map((name) => changeAct(on(`label ${name}`), adding(issue, [name]))),
    ...changes.remove.map((name) => changeAct(on(`unlabel ${name}`), removing(issue, name))),
    ...(closes ? [changeAct(on("close"), closing(issue))] : []),
  ];
  return acts.length === 0
    ? refuse(action, `"${what}" without a body or a label does nothing`)
    : asked(...acts);
}

const NOT_CLOSING =
  'an issue is closed only by the answer of a closure that completes the run, after its checks; "progress" comments without closing';
const NO_LABELS = { add: [], remove: [] } as const;

function onGitHub(key: string, world: ActionSurroundings) {
  const { run, github, passing, settings } = world;
  const own = { issue: ownIssue(world), mentions: settings.github.mentions === true };
  return { key, mark: markOf(run, key), github, passing, own };
}

/** Meaningless to readers (a hash). */
function markOf(run: string, key: string): string {
  return createHash("sha256").update(`${run}\0${key}`).digest("hex").slice(0, 32);
}

function ownIssue({ args }: ActionSurroundings): number | null {
  return toCount(own(args, "issue"));
}

/** What the model read may ask it to act on any issue: only the run's own is accepted. */
function foreignIssue(issue: number, world: ActionSurroundings): string | null {
  const mine = ownIssue(world);
  if (issue === mine || world.settings.actions.otherIssues === true) return null;
  const which = mine === null ? "has no issue of its own" : `is about issue #${mine}`;
  return `it acts on issue #${issue}, and the run ${which}; runner.actions.otherIssues would allow it`;
}

function strange(label: string): string {
  return `the label "${shownInLine(label, 60)}" is not among those in runner.integrations.github.labels and answerLabels`;
}
