/**
 * The gate: whether a step may make a tool call. Pure, and closed unless a rule opens it.
 *
 * A tool must be listed in the step's `allowedTools`, be meant for steps of its kind, and be within reach of the step's
 * `permissionMode`; a Bash command must besides not write to GitHub behind the flow's back.
 */
import type { ToolCall } from "../../engine/ports.ts";
import type { Step } from "../../flow/flow.ts";
import { own } from "../../flow/json.ts";
import type { PermissionMode } from "../../flow/settings.ts";
import { evaluates } from "./builtins.ts";
import { matchesCommand, simpleCommands, writesToGitHub } from "./commands.ts";
import { matchesWildcard } from "./glob.ts";

export type Judgement =
  | { readonly allow: true }
  /** `asks`: nothing forbids it, but a person has to approve it. */
  | { readonly allow: false; readonly rule: GateRule; readonly reason: string; readonly asks?: true };

export type GateRule = "batch" | "kind" | "list" | "mode" | "command";

/**
 * `batch` names every call of the same response, this one included; null where that cannot be known. `readers` are tools
 * of servers that say of themselves that they only read: their word counts where the agent lists them by their names.
 */
export function judge(
  step: Step,
  call: ToolCall,
  batch: readonly string[] | null,
  readers: ReadonlySet<string> = NO_READERS,
): Judgement {
  const completion = completionTool(step);
  if (completion !== null && batch !== null && batch.length > 1 && batch.includes(completion)) {
    return deny(
      step,
      call.name,
      "batch",
      `${completion} must be the only tool call in its response; nothing of this response was run`,
    );
  }
  if (call.name === completion) return ALLOWED;
  const refused = refuseTool(step, call.name, readers);
  // What a person may approve must be free of every other objection.
  if (refused !== null && !asks(refused)) return refused;
  return refuseCommand(step, call) ?? refused ?? ALLOWED;
}

/** Whether some call of this tool could pass, where no one is asked: what is never allowed need not be offered. */
export function mayOffer(step: Step, name: string, readers: ReadonlySet<string> = NO_READERS): boolean {
  return refuseTool(step, name, readers) === null;
}

/** The same where a person can be asked. */
export function mayOfferAsking(step: Step, name: string, readers: ReadonlySet<string> = NO_READERS): boolean {
  const refused = refuseTool(step, name, readers);
  return refused === null || asks(refused);
}

function asks(judgement: Judgement): boolean {
  return !judgement.allow && judgement.asks === true;
}

/** All calls that a person allows who allows this one for the whole run: of a command, the very same one. */
export function patternOf({ name, input }: ToolCall): string {
  const command = own(input, "command");
  return name === "Bash" && typeof command === "string" ? `Bash(${command})` : name;
}

/** The forms that a command of the step may have; null: any. Only for a step that has Bash. */
export function commandForms({ tools }: Step): readonly string[] | null {
  const limits = tools.allow.filter((pattern) => lists(pattern, "Bash")).map(commandLimit);
  return limits.includes(null) ? null : limits.filter((limit) => limit !== null);
}

/** What a call of the tool can do to the world. */
export type ToolReach = "reads" | "notes" | "edits" | "acts" | "publishes";

/** null: a tool we know nothing about, such as one of an MCP server. */
export function reachOf(name: string): ToolReach | null {
  return REACH.get(name) ?? null;
}

const TOOLS: { readonly [reach in ToolReach]: string } = {
  reads: "Read Glob Grep LS NotebookRead WebFetch WebSearch Skill AskUserQuestion mcp__github__github_read",
  notes: "TodoWrite",
  edits: "Write Edit MultiEdit NotebookEdit",
  acts: "Bash Task",
  publishes:
    "githubIssueClose githubIssueUpdate githubIssueComment githubPrClose githubPrMerge githubPrUpdate " +
    "githubReleaseCreate githubReleasePublish",
};

const REACH: ReadonlyMap<string, ToolReach> = new Map(
  (Object.keys(TOOLS) as ToolReach[]).flatMap((reach) =>
    TOOLS[reach].split(" ").map((name) => [name, reach] as const),
  ),
);

/** The names of all tools that we know something about. */
export const TOOL_NAMES: ReadonlySet<string> = new Set(REACH.keys());

const WITHIN: { readonly [mode in PermissionMode]: readonly ToolReach[] } = {
  plan: ["reads"],
  default: ["reads", "notes"],
  acceptEdits: ["reads", "notes", "edits", "acts", "publishes"],
  bypassPermissions: ["reads", "notes", "edits", "acts", "publishes"],
};

const ALLOWED: Judgement = { allow: true };
const NO_READERS: ReadonlySet<string> = new Set();

/** How a person who wrote the flow knows the rule. */
const RULE_NAMES: { readonly [rule in GateRule]: string } = {
  batch: "the sole-call rule",
  kind: "the step kind",
  list: "allowedTools",
  mode: "permissionMode",
  command: "the blocked commands",
};

function completionTool({ answer }: Step): string | null {
  return answer.kind === "object" && answer.channel.kind === "tool" ? answer.channel.name : null;
}

function refuseTool(step: Step, name: string, readers: ReadonlySet<string>): Judgement | null {
  const { allow, mode } = step.tools;
  const reach = reachOf(name) ?? (readers.has(name) && allow.includes(name) ? "reads" : null);
  if (reach === "publishes" && step.kind !== "close") {
    return deny(step, name, "kind", `only a closing step may use it, and this is a ${step.kind} step`);
  }
  if (!allow.some((pattern) => lists(pattern, name))) {
    return deny(step, name, "list", `it is not listed; listed are: ${allow.join(", ") || "no tools"}`);
  }
  if (reach !== null && WITHIN[mode].includes(reach)) return null;
  switch (mode) {
    case "plan":
      return deny(step, name, "mode", "plan allows read-only tools only");
    case "default":
      return {
        ...deny(step, name, "mode", "default needs a person to approve it, and nobody is there to ask"),
        asks: true,
      };
    case "acceptEdits": {
      // `*` speaks for the tools we know; a stranger must be called by its name.
      const isNamed = allow.some((pattern) => !/^\**$/.test(pattern) && lists(pattern, name));
      return isNamed
        ? null
        : deny(step, name, "mode", 'acceptEdits needs an unknown tool listed by name, not by "*"');
    }
    case "bypassPermissions":
      return null;
  }
}

function refuseCommand(step: Step, { name, input }: ToolCall): Judgement | null {
  if (name !== "Bash") return null;
  const command = own(input, "command");
  if (typeof command !== "string") return deny(step, name, "command", '"command" must be a string');
  const blocked = writesToGitHub(command);
  if (blocked !== null) {
    const instead =
      step.kind === "close"
        ? "answer with the closing intent, and the run does it"
        : "the run does it at its boundary, when the flow closes";
    return deny(step, name, "command", `${blocked} is not for a command to do; ${instead}`);
  }
  const patterns = step.tools.allow.filter((pattern) => lists(pattern, name));
  const limits = patterns.map(commandLimit).filter((limit) => limit !== null);
  if (limits.length < patterns.length) return null;
  const listed = patterns.join(", ");
  const parts = simpleCommands(command);
  if (parts === null) {
    return deny(
      step,
      name,
      "list",
      `only plain commands can be compared with ${listed}, and this is more than that`,
    );
  }
  if (parts.length === 0) return deny(step, name, "list", "there is no command in it");
  const stranger = parts.find((part) => !limits.some((limit) => matchesCommand(limit, part)));
  if (stranger === undefined) {
    const evaluated = parts.map(evaluates).find((why) => why !== null);
    return evaluated === undefined ? null : deny(step, name, "list", evaluated);
  }
  return deny(step, name, "list", `${JSON.stringify(stranger)} is not covered by ${listed}`);
}

/** A pattern is `*`, a name, a name with `*` in it, or `Bash(…)`: commands of a certain form. */
function lists(pattern: string, name: string): boolean {
  const { tool, limit } = parsePattern(pattern);
  // What may stand in parentheses behind other tools is not understood yet, so it opens nothing.
  if (limit !== null && tool !== "Bash") return false;
  return matchesWildcard(tool, name);
}

/** null: any command. */
function commandLimit(pattern: string): string | null {
  const { limit } = parsePattern(pattern);
  return limit === "*" || limit === ":*" ? null : limit;
}

type Parsed = { readonly tool: string; readonly limit: string | null };

/** The same patterns are asked for every call of every run. */
function parsePattern(pattern: string): Parsed {
  const known = parsed.get(pattern);
  if (known !== undefined) return known;
  if (parsed.size >= MOST_PARSED) parsed.clear();
  const read = readPattern(pattern);
  parsed.set(pattern, read);
  return read;
}

const parsed = new Map<string, Parsed>();
const MOST_PARSED = 1000;

function readPattern(pattern: string): Parsed {
  const open = pattern.indexOf("(");
  if (open === -1 || !pattern.endsWith(")")) return { tool: pattern.trim(), limit: null };
  return { tool: pattern.slice(0, open).trim(), limit: pattern.slice(open + 1, -1).trim() };
}

function deny(step: Step, name: string, rule: GateRule, why: string): Judgement & { allow: false } {
  const tool = name.length > 80 ? `${name.slice(0, 80)}…` : name;
  return {
    allow: false,
    rule,
    reason: `${tool} is denied in step "${step.id}" by ${RULE_NAMES[rule]}: ${why}.`,
  };
}
