/** Everything that the files of an agent could make this machine do, one line each: what a user is asked to trust. */
import { commandForms, mayOffer, mayOfferAsking } from "../../boundaries/gate/gate.ts";
import { isOutside, TRUSTED_HOSTS, type SandboxPlaces } from "../../boundaries/sandbox/policy.ts";
import { openedLabels } from "../../effects/actions/closing.ts";
import type { CommandCheck, Flow } from "../../flow/flow.ts";
import { shellWord } from "../../flow/text/harmless.ts";
import { handlerOf, isOnGitHub, namesIssue } from "../../flow/handlers.ts";
import { own } from "../../flow/json.ts";
import type { McpServer } from "../../flow/mcp.ts";
import { modulesIn, partsOf } from "../../flow/rules.ts";
import {
  WORKTREE_ROOT,
  type Actions,
  type Finalize,
  type GitHub,
  type Settings,
} from "../../flow/settings.ts";
import { IN_WORKTREE } from "./trust-store.ts";

/** Sorted, each once. `confined`: the commands of the run are in a sandbox. */
export async function trustLines(
  flow: Flow,
  confined: boolean,
  places: () => Pick<SandboxPlaces, "root" | "home">,
): Promise<readonly string[]> {
  const plain = plainLines(flow, confined);
  const modules = modulesIn(flow);
  const { asked, filesystem } = flow.settings.boundaries.sandbox;
  const opens = asked === true && filesystem.allowedPaths.length > 0 && startsCommands(flow);
  if (modules.length === 0 && !opens) return plain;
  const { root } = places();
  const folders = opens ? filesystem.allowedPaths.filter((path) => isOutside(path, places())) : [];
  const lines = [
    ...plain,
    ...folders.map((path) => `commands may write ${word(path)}, outside of the project`),
  ];
  if (modules.length > 0) {
    const { importLines } = await import("./trust-imports.ts");
    for (const { file } of modules)
      lines.push(...importLines(root, file).map((line) => `node ${word(file)} loads ${line}`));
  }
  return distinct(lines);
}

/** What follows from the flow alone. It does not change, so it is worked out once. */
function plainLines(flow: Flow, confined: boolean): readonly string[] {
  const known = listed.get(flow) ?? new Map<boolean, readonly string[]>();
  listed.set(flow, known);
  const before = known.get(confined);
  if (before !== undefined) return before;
  const { settings } = flow;
  const servers = Object.entries(settings.mcpServers ?? {});
  const lines = distinct([
    ...[
      ...commandsOf(flow).map((line) => `$ ${line}`),
      ...modulesIn(flow).map(({ file, digest }) => `node ${word(file)} (sha256 ${digest})`),
      ...servers.filter(([, { kind }]) => kind !== "http").map(serverLine),
      // A yes to what is confined is not a yes to the same without a sandbox.
    ].map((line) => (confined ? line : `with your permissions: ${line}`)),
    ...addresses(flow),
    ...servers.filter(([, { kind }]) => kind === "http").map(serverLine),
    ...Object.values(flow.steps).flatMap(({ id, by, tools }) =>
      by.kind === "model" && tools.mode === "bypassPermissions"
        ? [`permissionMode bypassPermissions in step ${word(id)}`]
        : [],
    ),
    ...(confined ? [] : freeCommands(flow)),
    ...(startsCommands(flow) ? networkLines(settings) : []),
    ...worktreeLines(settings),
    ...githubLines(settings),
  ]);
  known.set(confined, lines);
  return lines;
}

const listed = new WeakMap<Flow, Map<boolean, readonly string[]>>();

function commandsOf({ checks, steps, settings: { place } }: Flow): readonly string[] {
  return [
    ...(place?.prepare === undefined ? [] : [place.prepare]),
    ...Object.values(checks).flatMap((check) => (check.kind === "command" ? [withValues(check)] : [])),
    ...Object.values(steps).flatMap(({ by }) =>
      by.kind === "command" ? [asShellLine(by.command, by.args)] : [],
    ),
  ];
}

function addresses({ stop }: Flow): readonly string[] {
  return partsOf(stop).flatMap((part) =>
    part.kind === "state" && part.resource.kind === "api" ? [`GET ${part.resource.url}`] : [],
  );
}

/** With the variables of yours that it is given. */
function serverLine([name, server]: readonly [string, McpServer]): string {
  const values = (all: { readonly [name: string]: string }) =>
    Object.entries(all).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const what =
    server.kind === "http"
      ? ["POST", word(server.url), ...values(server.headers)]
      : [...values(server.env), ...[server.command, ...server.args].map(word)];
  return `mcp ${name}: ${what.join(" ")}`;
}

/** Commands of the model that run without a question, where no sandbox confines them. */
function freeCommands({ steps }: Flow): readonly string[] {
  return Object.values(steps).flatMap((step) => {
    if (step.by.kind !== "model" || !mayOffer(step, "Bash")) return [];
    const forms = commandForms(step);
    const which = forms === null ? "any command" : `commands of the form ${forms.map(quoted).join(", ")}`;
    return [`${which}, with your permissions, in step ${word(step.id)}`];
  });
}

/** Whether anything could ever be started in a sandbox. */
function startsCommands(flow: Flow): boolean {
  const { mcpServers = {} } = flow.settings;
  return (
    commandsOf(flow).length > 0 ||
    modulesIn(flow).length > 0 ||
    Object.values(mcpServers).some(({ kind }) => kind === "stdio") ||
    Object.values(flow.steps).some((step) => step.by.kind === "model" && mayOfferAsking(step, "Bash"))
  );
}

function networkLines({ boundaries: { sandbox } }: Settings): readonly string[] {
  const { asked, network } = sandbox;
  if (asked !== true || network.mode === "none") return [];
  const named = network.trustedDomains.map((host) => `commands may reach ${host}`);
  const isUsual = network.mode === "trusted" && (network.asked === true || named.length > 0);
  return [...named, ...(isUsual ? [`commands may reach ${TRUSTED_HOSTS.join(", ")}`] : [])];
}

/** What is unusual counts also where the file itself asks for no worktree: a flag may. */
function worktreeLines({ worktree, finalize }: Settings): readonly string[] {
  // Recorded flows of earlier versions have no copies.
  const { enabled, root, copy }: Partial<Settings["worktree"]> = worktree;
  return [
    ...(enabled ? [IN_WORKTREE] : []),
    ...(root === undefined || root === WORKTREE_ROOT ? [] : [`git: keeps worktrees in ${word(root)}`]),
    ...(copy ?? []).map((path) => `git: copies ${word(path)} into the worktree`),
    ...outcomes(finalize, enabled),
  ];
}

function outcomes(
  { autoMerge, push, createPr, remote, prTarget }: Finalize,
  isOwn: boolean,
): readonly string[] {
  const target = prTarget === null ? "the branch it began from" : word(prTarget);
  return [
    ...(isOwn && autoMerge && !createPr ? ["git: merges the work into the branch it began from"] : []),
    ...(push || createPr ? [`git: pushes to ${word(remote)}`] : []),
    ...(createPr ? [`GitHub: opens a pull request for ${target}`] : []),
  ];
}

/** Acts in the user's name. */
function githubLines({ github, actions }: Settings): readonly string[] {
  if (!github.enabled) return [];
  const lines = [...(github.asked === true ? issueLines(github) : []), ...blockLines(actions, github)];
  return github.mentions === true
    ? [...lines, "GitHub: texts of answers may mention people and give commands to bots"]
    : lines;
}

/** Those that an answer may use, in quotes. */
function openLabels(github: GitHub): readonly string[] {
  return distinct(openedLabels(github)).map(quoted);
}

function issueLines(github: GitHub): readonly string[] {
  const { labels, completion, defaultClosureAction } = github;
  const open = openLabels(github).join(", ");
  const progress = own(labels, "inProgress") ?? "";
  const blocked = own(labels, "blocked") ?? "";
  const label = (verb: string, name: string, when: string) =>
    name === "" ? [] : [`GitHub: ${verb} the label ${quoted(name)} ${when}`];
  return [
    ...label("adds", progress, "when a run begins"),
    ...label("removes", progress, "when a run ends"),
    ...label("adds", blocked, "when a run fails"),
    ...completion.add.flatMap((name) => label("adds", name, "when a run is complete")),
    ...completion.remove.flatMap((name) => label("removes", name, "when a run is complete")),
    `GitHub: closes or labels the issue of a complete run (${defaultClosureAction}, unless the closing answer says otherwise)`,
    ...(open === "" ? [] : [`GitHub: adds and removes labels that a closing answer names, of ${open}`]),
  ];
}

/** What answers can ask for. */
function blockLines({ enabled, types, handlers, otherIssues }: Actions, github: GitHub): readonly string[] {
  if (!enabled) return [];
  const labels = openLabels(github).join(", ");
  return types.flatMap((type) => {
    const handler = handlerOf({ handlers }, type);
    if (!isOnGitHub(handler)) return [];
    const issue = otherIssues === true && namesIssue(handler) ? "any issue" : "the run's issue";
    const acts: { readonly [handler: string]: string } = {
      "builtin:github-issue": "open issues",
      "builtin:github-comment": `comment on ${issue}`,
      "builtin:issue-action": `comment on, label and close ${issue}`,
    };
    const suffix = labels === "" || handler === "builtin:github-comment" ? "" : `, with the labels ${labels}`;
    return [`GitHub: blocks of the type ${quoted(type)} ${acts[handler] ?? "act"}${suffix}`];
  });
}

/** A line that a shell runs, after the values that all of it is given: read by a shell, it does just that. */
function withValues({ env, command }: CommandCheck): string {
  const values = Object.entries(env ?? {}).map(([name, value]) => shellWord(`${name}=${value}`));
  return values.length === 0 ? command : `export ${values.join(" ")}; ${command}`;
}

/** A program that is started without a shell, as the line by which a shell would start it: nothing in it is expanded. */
function asShellLine(program: string, args: readonly string[]): string {
  // A shell takes A=1 in the first place for a value; as a path it is a program.
  const first = program.includes("=") ? `'${program.replaceAll("'", `'\\''`)}'` : shellWord(program);
  return [first, ...args.map(shellWord)].join(" ");
}

/** So that two arguments never look like one. */
function word(text: string): string {
  return /^[\w@%+=:,./${}~-]+$/.test(text) ? text : JSON.stringify(text);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function distinct(lines: readonly string[]): readonly string[] {
  return [...new Set(lines)].toSorted();
}
