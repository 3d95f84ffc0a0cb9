/** A line of a log: what it holds, how it is written, and how much of a foreign text it takes in. */
import { escapedInLine, jsonLine } from "../flow/harmless.ts";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

export type LogLine = {
  /** ISO 8601, in UTC. */
  readonly timestamp: string;
  readonly level: Level;
  /** One line, whatever it tells of. */
  readonly message: string;
  readonly metadata?: JsonObject;
};

/** A line before it has its time. `whole`: nothing in its metadata is cut. */
export type Told = readonly [level: Level, message: string, metadata?: JsonObject, how?: "whole"];

/** What a model or a command said may be of any length; a line is not. */
export function toLine(at: number, [level, message, metadata, how]: Told): LogLine {
  return {
    timestamp: new Date(at).toISOString(),
    level,
    message: escapedInLine(message, LONGEST_MESSAGE),
    ...(metadata !== undefined && { metadata: how === "whole" ? metadata : boundedObject(metadata) }),
  };
}

/** As it stands in a file. */
export function formatLine(line: LogLine, format: "jsonl" | "text"): string {
  if (format === "jsonl") return jsonLine(line);
  const { timestamp, level, message, metadata } = line;
  const rest = metadata === undefined ? "" : ` ${jsonLine(metadata)}`;
  return `[${timestamp}] [${level.toUpperCase()}] ${message}${rest}`;
}

const LONGEST_MESSAGE = 2000;
const LONGEST_TEXT = 2000;
const MOST_ITEMS = 100;

function clipped(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}… (${text.length} characters)` : text;
}

function boundedObject(value: JsonObject): JsonObject {
  const members = Object.entries(value).slice(0, MOST_ITEMS);
  return Object.fromEntries(members.map(([key, member]) => [clipped(key), bounded(member)]));
}

function bounded(value: Json): Json {
  if (typeof value === "string") return clipped(value);
  if (isObject(value)) return boundedObject(value);
  return Array.isArray(value) ? value.slice(0, MOST_ITEMS).map((item: Json) => bounded(item)) : value;
}
