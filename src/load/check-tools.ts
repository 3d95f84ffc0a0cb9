/** Rules about the names of tools in allowedTools. */
import { MCP_PREFIX } from "../flow/mcp.ts";
import type { Document } from "./document.ts";
import { correctTo, type Finding } from "./finding.ts";
import { didYouMean, onlyNear } from "./suggest.ts";

export type ToolNames = {
  /** The tools of every run, in the order in which they are offered. */
  readonly offered: readonly string[];
  /** These, and names that some coding agents have for tools of their own. */
  readonly known: ReadonlySet<string>;
};

/** An entry that names no tool allows nothing, and the steps have one tool less than their author thinks. */
export function* checkToolNames(
  entries: readonly string[],
  { offered, known }: ToolNames,
  { document, pointer }: { readonly document: Document; readonly pointer: string },
): Generator<Finding> {
  for (const [index, entry] of entries.entries()) {
    const [, tool = entry, limit = ""] = /^([^(]*?)\s*(\(.*)$/s.exec(entry) ?? [];
    if (tool.startsWith(MCP_PREFIX) || (isName(tool, known) && (limit === "" || tool === "Bash"))) continue;
    const place = `${pointer}/${index}`;
    const near = onlyNear(tool, known);
    yield {
      code: "TOOL-UNKNOWN",
      document,
      pointer: place,
      message: isName(tool, known)
        ? `"${entry}" in allowedTools allows nothing: only commands of Bash can be limited in parentheses.`
        : `"${entry}" in allowedTools allows nothing: there is no tool "${tool}".${didYouMean(tool, known)}`,
      fix: `Write one of ${offered.join(", ")}; ${MCP_PREFIX}SERVER__TOOL for a tool of a server; Bash(git status) for one command.`,
      ...(near !== null && (limit === "" || near === "Bash") && correctTo(near + limit, document, place)),
    };
  }
}

/** A name, or a pattern with `*` that matches one. */
function isName(tool: string, known: ReadonlySet<string>): boolean {
  if (!tool.includes("*")) return known.has(tool);
  const parts = tool.split("*").map((part) => part.replaceAll(/[\\^$.+?()[\]{}|]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join(".*")}$`, "su");
  return [...known].some((name) => pattern.test(name));
}
