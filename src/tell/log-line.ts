/** A line of a log: what it holds, how it is written, and how much of a foreign text it takes in. */
import { escapedInLine, jsonLine } from "../flow/text/harmless.ts";
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
export type LogFacts = readonly [level: Level, message: string, metadata?: JsonObject, how?: "whole"];

/** What a model or a command said may be of any length; a line is not. */
export function toLine(timestamp: string, [level, told, metadata, how]: LogFacts): LogLine {
  const message = escapedInLine(told, LONGEST_MESSAGE);
  if (metadata === undefined) return { timestamp, level, message };
  return { timestamp, level, message, metadata: how === "whole" ? metadata : boundedObject(metadata) };
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
  if (isBounded(value)) return value;
  const members = Object.entries(value).slice(0, MOST_ITEMS);
  return Object.fromEntries(members.map(([key, member]) => [clipped(key), bounded(member)]));
}

function bounded(value: Json): Json {
  if (typeof value === "string") return clipped(value);
  if (isObject(value)) return boundedObject(value);
  return Array.isArray(value) ? value.slice(0, MOST_ITEMS).map((item: Json) => bounded(item)) : value;
}

/** Almost everything is: then nothing is copied. */
function isBounded(value: Json): boolean {
  if (typeof value === "string") return value.length <= LONGEST_TEXT;
  if (!isObject(value))
    return !Array.isArray(value) || (value.length <= MOST_ITEMS && value.every(isBounded));
  let members = 0;
  for (const key in value) {
    members += 1;
    if (members > MOST_ITEMS || key.length > LONGEST_TEXT || !isBounded(value[key]!)) return false;
  }
  return true;
}
