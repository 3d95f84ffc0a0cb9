/**
 * What a server of tools says, in our words. Pure. Names, descriptions, schemas and results are the words of a stranger:
 * each is bounded, and none of them decides what may be done.
 */
import { shown, shownInLine } from "../../flow/text/harmless.ts";
import { isObject, own, type Json, type JsonObject, type JsonSchema } from "../../flow/json.ts";
import { toolNameOf } from "../../flow/mcp.ts";

export type ListedTool = {
  /** As the server calls it. */
  readonly tool: string;
  /** As everybody else does. It is `mcp__<server>__<tool>`, with `_` for what providers of models refuse. */
  readonly name: string;
  readonly description: string;
  readonly input: JsonSchema;
  /** It says that it changes nothing. */
  readonly reads: boolean;
};

/** The tools of a list that can be offered, and what a person should know about the others. */
export function readTools(
  server: string,
  listed: readonly unknown[],
): { readonly tools: readonly ListedTool[]; readonly notes: readonly string[] } {
  const named = listed.map((one) => ({ one, tool: isObject(one) ? own(one, "name") : undefined }));
  // A tool that is called so keeps its name, whatever others turn into.
  const taken = new Set(
    named.flatMap(({ tool }) => (typeof tool === "string" && PLAIN.test(tool) ? [tool] : [])),
  );
  const tools: ListedTool[] = [];
  const [nameless, tasks, long]: [number[], string[], string[]] = [[], [], []];
  for (const [place, { one, tool }] of named.entries()) {
    if (!isObject(one) || typeof tool !== "string" || tool === "") nameless.push(place);
    else if (tools.some((other) => other.tool === tool))
      throw new Error(`it has two tools called "${shownInLine(tool, 60)}"`);
    else if (needsTask(one)) tasks.push(tool);
    else {
      const name = toolNameOf(server, PLAIN.test(tool) ? tool : freeName(tool, taken));
      if (name.length > LONGEST_NAME) long.push(tool);
      else tools.push(readTool(server, tool, name, one));
    }
  }
  const all = (names: readonly string[]) =>
    shownInLine(names.slice(0, MOST_NAMED).join(", "), 300) +
    (names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "");
  const notes = [
    ...(nameless.length === 0
      ? []
      : [`has tools without a name, which are not offered (${nameless.length})`]),
    ...(long.length === 0
      ? []
      : [`has tools whose names are longer than models take, which are not offered: ${all(long)}`]),
    ...(tasks.length === 0
      ? []
      : [`has tools that only run as tasks, which Lockstep does not support: ${all(tasks)}`]),
  ];
  return { tools, notes: notes.map((note) => `the server "${server}" ${note}`) };
}

const MOST_NAMED = 10;
/** What every provider of models takes. */
const PLAIN = /^[A-Za-z0-9_-]+$/;

function freeName(tool: string, taken: Set<string>): string {
  const plain = tool.replaceAll(/[^A-Za-z0-9_-]/gu, "_");
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? plain : `${plain}_${n}`;
    if (taken.has(name)) continue;
    taken.add(name);
    return name;
  }
}

/** It answers with a task that would have to be asked about later. */
function needsTask(listed: JsonObject): boolean {
  const execution = own(listed, "execution");
  return isObject(execution) && own(execution, "taskSupport") === "required";
}

function readTool(server: string, tool: string, name: string, listed: JsonObject): ListedTool {
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

export type McpContent = { readonly kind: "done" | "failed"; readonly content: string };

/** The text of a result, that of resources in it too; what is not text is named. */
export function readResult(result: unknown): McpContent {
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
  const { type, text, data, resource } = part;
  if (type === "text") return typeof text === "string" ? text : "";
  const { uri, mimeType, text: inner, blob = data } = isObject(resource) ? resource : part;
  const words = [uri, mimeType].filter((word) => typeof word === "string");
  const kind = typeof type === "string" ? type : "part";
  if (type === "resource" && typeof inner === "string")
    return `${shownInLine(`[${[kind, ...words].join(", ")}; as the server gives it]`)}\n${inner}\n[end of the resource]`;
  const size = typeof blob === "string" ? [`${Math.floor((blob.length * 3) / 4)} bytes`] : [];
  return shownInLine(`[${[kind, ...words, ...size].join(", ")}; not shown]`);
}
