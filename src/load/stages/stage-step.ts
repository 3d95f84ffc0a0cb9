/** A stage file as a step of a flow. */
import type { Carry, Move, SchemaSource, Step, Tools } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, isObject, type Json } from "../../flow/json.ts";
import { serverNamed } from "../../flow/mcp.ts";
import { MODE_BY_KIND } from "../../flow/settings.ts";
import { isFieldName, parseFieldPath, RESERVED_FIELDS } from "../../flow/text/placeholder.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import type { ToolNames } from "../rules/tools.ts";
import type { Finding } from "../rules/rule.ts";
import { interruptedOf } from "../agent/people.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { stepLimitsOf } from "../../flow/spending.ts";
import { draftFault, withDraft, type StageFile } from "./stage-file.ts";
import { nextOf, onFailOf, type MoveWorld } from "./stage-moves.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

/** The tools there are, and those that the agent may use at all: names and patterns. */
export type ToolWorld = ToolNames & {
  readonly allowed: readonly string[];
  /** Whose tools nobody knows before they are asked. */
  /** null: what declares them cannot be read, so any may be there. */
  readonly servers: ReadonlySet<string> | null;
};

/** What is missing or wrong was reported; a step is built all the same, to be shown. */
export function buildStage(file: StageFile, agent: AgentSource, tools: ToolWorld, world: MoveWorld): Step {
  const { source, id, body, document } = file;
  const next = nextOf(file, world);
  const onFail = onFailOf(file, world);
  const attempts = source.retryPolicy?.maxAttempts ?? 1;
  return {
    id,
    name: source.name ?? id,
    kind: "work",
    by: { kind: "model" },
    prompt: { file: document.file, text: body, tried: [document.file], variables: [], syntax: "stage" },
    transcript: "fresh",
    model: agent.runner.flow.defaultModel ?? DEFAULTS.model,
    tools: toolsOf(file, agent, tools, world),
    answer: {
      kind: "object",
      schema: schemaOf(file, "completionSchema"),
      channel: { kind: "tool", name: source.completionTool ?? "complete" },
      repairs: 0,
      miss: { kind: "label", label: "cap" },
    },
    decide: { by: "const", label: "ok" },
    ...(source.assert.length > 0 && {
      guard: {
        on: "ok",
        checks: source.assert.map((check) => ({ check, edition: NO_EDITION })),
        onFailure: "retry",
        maxFailures: attempts,
        back: { kind: "again" },
      },
    }),
    carry: [],
    needs: [],
    edges: {
      ok: next,
      skip: next,
      fail: onFail ?? failed("AGENT_VALIDATION_ABORT"),
      cap: onFail ?? failed("AGENT_TURN_LIMIT"),
    },
    turns: source.turnCap ?? 1,
    ...stepLimitsOf(source.limits),
    ...interruptedOf(source.ifInterrupted, agent.runner.ifInterrupted),
    stage: {
      attempts,
      backoff: source.retryPolicy?.backoff ?? "none",
      ...(source.gate !== undefined && { gate: source.gate }),
      unresolved: source.resolutionPolicy ?? "fail",
      ...(source.inputsSchema !== undefined && { inputs: schemaOf(file, "inputsSchema") }),
      output: carryOf(file, "output", world.findings),
      ...(source.share.size > 0 && { share: carryOf(file, "share", world.findings) }),
    },
  };
}

/** A failed check is told in general words: stages have no editions. */
const NO_EDITION = { file: null, text: "", tried: [], variables: [] };

function failed(code: string): Move {
  return { kind: "end", outcome: "failed", code };
}

function schemaOf({ source, document }: StageFile, key: "completionSchema" | "inputsSchema"): SchemaSource {
  const schema: Json | undefined = source[key];
  const name = `${document.file}#/${key}`;
  if (isObject(schema) && draftFault(schema) === null)
    return { kind: "schema", name, schema: withDraft(schema) };
  const code = key === "completionSchema" ? "StageCompletionSchemaInvalid" : "StageInputsInvalid";
  return { kind: "unresolved", name, code, why: `${key} is not a usable schema` };
}

/** Within what the agent may use. Where that is limited to certain commands, so is the stage. */
function toolsOf(
  file: StageFile,
  { runner }: AgentSource,
  { offered, known, allowed, servers }: ToolWorld,
  { findings }: MoveWorld,
): Tools {
  const { id, document, source } = file;
  const { allowedTools = [], completionTool = "" } = source;
  const at = { document, steps: [id] };
  if (known.has(completionTool) || completionTool.startsWith("mcp__")) {
    findings.push({
      code: "CompletionToolReserved",
      ...at,
      pointer: "/completionTool",
      message: `The completion tool of the stage "${id}" is named "${completionTool}", which is the name of another tool.`,
      fix: `Give it a name of its own, such as submit_${id.replaceAll("-", "_")}.`,
    });
  }
  const allow = allowedTools.flatMap((tool, index) => {
    const server = tool.includes("*") ? null : serverNamed(tool);
    const isThere = offered.includes(tool) || (server !== null && (servers?.has(server) ?? true));
    const patterns = allowed.includes("*") ? [tool] : allowed.filter((pattern) => covers(pattern, tool));
    if (!isThere || patterns.length === 0) {
      const why = isThere
        ? `"${tool}" is not among runner.boundaries.allowedTools of the agent`
        : tool === completionTool
          ? `"${tool}" is its completion tool, which is always available and must not be listed`
          : server !== null
            ? `"${tool}" is a tool of the server "${server}", which mcpServers does not declare`
            : known.has(tool)
              ? `"${tool}" is a tool of some coding agents; Lockstep does not have it`
              : `there is no tool "${tool}".${didYouMean(tool, offered)}`;
      findings.push({
        code: "StageToolUnknown",
        ...at,
        pointer: `/allowedTools/${index}`,
        message: `The stage "${id}" allows a tool that it cannot have: ${why.replace(/\.$/, "")}${why.endsWith("?") ? "" : "."}`,
        fix: `Write exact names of these: ${offered.join(", ")}; or mcp__SERVER__TOOL for a tool of a server.`,
      });
    }
    return patterns.map((pattern) => (pattern.includes("(") ? pattern : tool));
  });
  return { allow: [...new Set(allow)], mode: runner.boundaries.permissionMode ?? MODE_BY_KIND.work };
}

/** `Read`, `Bash(git *)` and `mcp__*` as the agent's list has them. */
function covers(pattern: string, tool: string): boolean {
  const [name = ""] = pattern.split("(");
  const parts = name.trim().split("*");
  return parts.length === 1
    ? parts[0] === tool
    : tool.startsWith(parts[0]!) && tool.endsWith(parts.at(-1)!) && parts.length === 2;
}

/** What the stage leaves behind under names of its own: beside its payload, or in the context of the machine. */
function carryOf(
  { source, document, id }: StageFile,
  where: "output" | "share",
  findings: Finding[],
): readonly Carry[] {
  return [...source[where]].flatMap(([key, written]) => {
    const path = parseFieldPath(written);
    const isFree = where === "output" || !RESERVED_FIELDS.has(key);
    const isName = isFieldName(key) && !FORBIDDEN_NAMES.has(key) && isFree;
    if (isName && path?.[0] === "parsed") return [{ key, path }];
    findings.push({
      code: "StageDefinitionInvalid",
      document,
      steps: [id],
      pointer: `/${where}/${escapeSegment(key)}`,
      message: isName
        ? `"${written}" in ${where} of the stage "${id}" is not a path that begins with parsed.`
        : `"${key}" in ${where} of the stage "${id}" is ${isFree ? "not a name that a placeholder can read" : "reserved for the runtime"}.`,
      fix: isName ? `Write a path into the payload, such as parsed.${key}.` : "Rename it.",
    });
    return [];
  });
}
