/** Rules about the names of tools in allowedTools. */
import { MCP_PREFIX } from "../../flow/mcp.ts";
import { atPart, type LoadedFlow } from "./loaded.ts";
import { warning, type Codes, type Rules, type Tell } from "./rule.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export type ToolNames = {
  /** The tools of every run, in the order in which they are offered. */
  readonly offered: readonly string[];
  /** These, and names that some coding agents have for tools of their own. */
  readonly known: ReadonlySet<string>;
};

export const rules: Rules = { all: [checkToolNames] };

export const codes = {
  "TOOL-UNKNOWN": warning(
    "unknown tool",
    "An unknown tool name allows nothing, so steps have fewer tools than the list suggests.",
  ),
} satisfies Codes;

/**
 * An entry that names no tool allows nothing, and the steps have one tool less than their author thinks. `--fix` leaves it
 * alone: what a model may use is not widened by a guess.
 */
function checkToolNames(loaded: LoadedFlow, tell: Tell): void {
  const { offered, known } = loaded.tools;
  for (const [index, entry] of loaded.agent.runner.boundaries.allowedTools.entries()) {
    const open = entry.indexOf("(");
    const [tool, limit] = open === -1 ? [entry, ""] : [entry.slice(0, open).trimEnd(), entry.slice(open)];
    if (tool.startsWith(MCP_PREFIX) || (isName(tool, known) && (limit === "" || tool === "Bash"))) continue;
    tell({
      code: "TOOL-UNKNOWN",
      ...atPart(loaded, "settings", "runner", "boundaries", "allowedTools", String(index)),
      message: isName(tool, known)
        ? `"${entry}" in allowedTools allows nothing: only Bash takes a command in parentheses.`
        : `"${entry}" in allowedTools allows nothing: there is no tool "${tool}".${didYouMean(tool, known)}`,
      fix: `Write one of ${offered.join(", ")}; ${MCP_PREFIX}SERVER__TOOL for a tool of a server; Bash(git status) for one command.`,
    });
  }
}

/** A name, or a pattern with `*` that matches one. */
function isName(tool: string, known: ReadonlySet<string>): boolean {
  return known.has(tool) || [...known].some((name) => matchesName(tool, name));
}

/** Whether a name is this one, or fits its `*`. */
export function matchesName(tool: string, name: string): boolean {
  return tool.includes("*") ? matches(tool.split("*"), name) : tool === name;
}

/** Part by part from the left, so that no pattern takes long. */
function matches([first = "", ...rest]: readonly string[], name: string): boolean {
  if (!name.startsWith(first)) return false;
  const last = rest.at(-1) ?? "";
  let at = first.length;
  for (const part of rest.slice(0, -1)) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
