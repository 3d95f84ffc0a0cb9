/**
 * What a server of tools says, in our words. Pure. Names, descriptions, schemas and results are the words of a stranger:
 * each is bounded, and none of them decides what may be done.
 */
import { shown, shownInLine } from "../flow/harmless.ts";
import { isObject, own, type Json, type JsonObject, type JsonSchema } from "../flow/json.ts";
import { toolNameOf } from "../flow/mcp.ts";

export type ListedTool = {
  /** As the server calls it. */
  readonly tool: string;
  /** As everybody else does. */
  readonly name: string;
  readonly description: string;
  readonly input: JsonSchema;
  /** It says that it changes nothing. */
  readonly reads: boolean;
};

/** null: a tool that cannot be offered, because of its name. */
export function readTool(server: string, listed: unknown): ListedTool | null {
  if (!isObject(listed)) return null;
  const tool = own(listed, "name");
  if (typeof tool !== "string") return null;
  const name = toolNameOf(server, tool);
  if (!/^[A-Za-z0-9_-]+$/.test(tool) || name.length > LONGEST_NAME) return null;
  const said = own(listed, "description");
  const annotations = own(listed, "annotations");
  const input = own(listed, "inputSchema");
  return {
    tool,
    name,
    description: `Tool of the server "${server}", which says of it: ${describe(said)}`,
    input: isObject(input) ? boundedSchema(input) : ANYTHING,
    reads: isObject(annotations) && own(annotations, "readOnlyHint") === true,
  };
}

/** What every provider of models takes. */
const LONGEST_NAME = 64;
const LONGEST_DESCRIPTION = 2000;
const LARGEST_SCHEMA = 32 * 1024;
const DEEPEST_SCHEMA = 24;
const ANYTHING: JsonSchema = { type: "object" };

function describe(said: Json | undefined): string {
  if (typeof said !== "string" || said.trim() === "") return "nothing.";
  const text = shown(said.slice(0, LONGEST_DESCRIPTION));
  return said.length > LONGEST_DESCRIPTION ? `${text}…` : text;
}

/** Without what points elsewhere; a schema beyond all measure says nothing, and the server judges its input anyway. */
function boundedSchema(schema: JsonObject): JsonSchema {
  const own = withoutElsewhere(schema, 0);
  if (!isObject(own) || JSON.stringify(own).length > LARGEST_SCHEMA) return ANYTHING;
  return { ...own, type: "object" };
}

/** undefined: nested too deep. */
function withoutElsewhere(value: Json, depth: number): Json | undefined {
  if (depth > DEEPEST_SCHEMA) return undefined;
  if (Array.isArray(value)) {
    const members = (value as readonly Json[]).map((member) => withoutElsewhere(member, depth + 1));
    return members.every((member) => member !== undefined) ? members : undefined;
  }
  if (!isObject(value)) return value;
  const kept: [string, Json][] = [];
  for (const [key, member] of Object.entries(value)) {
    if (key === "$ref" && !(typeof member === "string" && member.startsWith("#"))) continue;
    if (key === "$schema" || key === "$id") continue;
    const inner = withoutElsewhere(member, depth + 1);
    if (inner === undefined) return undefined;
    kept.push([key, inner]);
  }
  return Object.fromEntries(kept);
}

export type Told = { readonly kind: "done" | "failed"; readonly content: string };

/** The text of a result; what is no text is named. */
export function readResult(result: unknown): Told {
  if (!isObject(result)) return { kind: "failed", content: "The server gave no result." };
  const content = own(result, "content");
  const parts = Array.isArray(content) ? (content as readonly Json[]).slice(0, MOST_PARTS).map(partText) : [];
  const structured = own(result, "structuredContent");
  if (parts.length === 0 && structured !== undefined) parts.push(JSON.stringify(structured));
  const text = parts.join("\n") || "(nothing)";
  return { kind: own(result, "isError") === true ? "failed" : "done", content: text };
}

const MOST_PARTS = 1000;

function partText(part: Json): string {
  if (!isObject(part)) return "[a part that cannot be read]";
  const { type, text, mimeType, data, uri, resource } = part;
  if (type === "text") return typeof text === "string" ? text : "";
  const about = isObject(resource) ? { uri: resource.uri, mimeType: resource.mimeType } : { uri, mimeType };
  const words = [about.uri, about.mimeType].filter((word) => typeof word === "string");
  const size = typeof data === "string" ? [`${Math.floor((data.length * 3) / 4)} bytes`] : [];
  const kind = typeof type === "string" ? type : "part";
  return shownInLine(`[${[kind, ...words, ...size].join(", ")}; not shown]`);
}
