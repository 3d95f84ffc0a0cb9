/** What a service says when it refuses: read from whatever shape its answer has, as plain words and names. */
import { isObject, own, parseJson, type Json, type JsonObject } from "../../flow/json.ts";

export type ErrorWords = {
  /** Its own words; null: it gave none. */
  readonly words: string | null;
  /** Machine-readable names of the error, such as `insufficient_quota`. */
  readonly names: readonly string[];
  /** A status that is given inside of the body. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly isPage?: true;
};

const NOTHING: ErrorWords = { words: null, names: [] };

/** Of a body as it came over the wire. */
export function readBody(body: string): ErrorWords {
  const text = body.slice(0, LONGEST_READ).trim();
  if (text === "") return NOTHING;
  if (PAGE.test(withoutPreamble(text.slice(0, LONGEST_PREAMBLE))))
    return { words: pageWords(text), names: [], isPage: true };
  const value = parseJson(text) ?? lastEvent(text);
  return value === undefined ? { words: text, names: [] } : readValue(value);
}

/** Of a body, or an event, that was parsed already. */
export function readValue(value: Json): ErrorWords {
  const words = wordsIn(value, 0);
  const status = statusIn(value);
  const retryAfterMs = delayIn(value);
  return {
    words: words === "" ? null : words,
    names: namesIn(value),
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** Whether a document that came in the place of a stream reports an error. */
export function reportsError(value: Json): boolean {
  const first = Array.isArray(value) ? value[0] : value;
  if (!isObject(first) || ANSWERS.some((key) => Array.isArray(own(first, key)))) return false;
  return ERRORS.some((key) => own(first, key) !== undefined && own(first, key) !== null);
}

/** Members that an answer of some provider has, and members that only an error has. */
const ANSWERS = ["choices", "content", "output", "candidates"];
const ERRORS = ["error", "errors", "detail", "message", "msg", "error_message"];

const LONGEST_READ = 256 * 1024;
const DEEPEST = 6;

const PAGE = /^<(?:!doctype\s+html|html|head|body|title|div|h1|center)\b/i;
const LONGEST_PREAMBLE = 4 * 1024;

/** Without the XML declaration and the comments that may stand before a page. */
function withoutPreamble(text: string): string {
  let at = text.startsWith("<?xml") ? pastMark(text, ">", 0) : 0;
  while (text.startsWith("<!--", at)) at = pastMark(text, "-->", at + "<!--".length);
  return text.slice(at);
}

/** Where the text goes on after the next mark and the blanks behind it; at its end where there is no such mark. */
function pastMark(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  if (found === -1) return text.length;
  let at = found + mark.length;
  while (at < text.length && text[at]!.trim() === "") at += 1;
  return at;
}

function pageWords(page: string): string {
  const title = /<title[^<>]*>([^<]{1,300})/i.exec(page)?.[1]?.trim();
  return `the answer is an HTML page${title ? ` ("${title}")` : ""}, probably a login or proxy page`;
}

/** Some report an error as an event of the stream that they were asked for. */
function lastEvent(text: string): Json | undefined {
  const data = [...text.matchAll(/^data: ?(\{.*)$/gm)].map((match) => parseJson(match[1]!));
  return data.findLast((value) => value !== undefined);
}

/**
 * OpenAI's and Anthropic's `error.message`, Google's list of those, `error` as text (LM Studio, TGI, Ollama), `detail` as
 * text or as a list (FastAPI, vLLM, SGLang), `message` (old vLLM, gateways), and what others make of it.
 */
function wordsIn(value: Json | undefined, depth: number): string {
  if (depth > DEEPEST || value === undefined || value === null) return "";
  if (typeof value === "string") return inner(value, depth);
  if (Array.isArray(value)) {
    const all = value.slice(0, 5).map((one) => wordsIn(one, depth + 1));
    return all.filter((words) => words !== "").join("; ");
  }
  if (!isObject(value)) return "";
  const error = own(value, "error");
  const first = PLAIN.map((key) => wordsIn(own(value, key), depth + 1)).find((words) => words !== "") ?? "";
  if (isObject(error) || Array.isArray(error)) return wordsIn(error, depth + 1) || first;
  const short = typeof error === "string" ? inner(error, depth) : "";
  const both = [short, first].filter((words) => words !== "");
  const words =
    short !== "" && (first.includes(short) || short.includes(first)) ? longest(both) : both.join(": ");
  return `${placeIn(value)}${words}${causeIn(value, words, depth)}`;
}

const PLAIN = [
  "message",
  "Message",
  "detail",
  "details",
  "msg",
  "error_description",
  "error_message",
  "errors",
  "reason",
  "title",
];

/** A text may hold JSON once more: gateways pass on what they got. */
function inner(text: string, depth: number): string {
  const value = /^\s*[[{]/.test(text) ? parseJson(text) : undefined;
  return (value === undefined ? "" : wordsIn(value, depth + 1)) || text.trim();
}

function longest(texts: readonly string[]): string {
  return texts.toSorted((a, b) => b.length - a.length)[0] ?? "";
}

/** FastAPI says where: `{ "loc": ["body", "messages"], "msg": "field required" }`. */
function placeIn(value: JsonObject): string {
  const loc = own(value, "loc");
  return Array.isArray(loc) ? `${loc.filter((part) => typeof part !== "object").join(".")}: ` : "";
}

/** OpenRouter puts what the provider behind it said beside its own words. */
function causeIn(value: JsonObject, words: string, depth: number): string {
  const metadata = own(value, "metadata");
  const raw = isObject(metadata) ? wordsIn(own(metadata, "raw"), depth + 1) : "";
  return raw === "" || words.includes(raw) ? "" : ` (${raw})`;
}

function namesIn(value: Json, depth = 0): readonly string[] {
  if (depth > DEEPEST) return [];
  if (Array.isArray(value)) return value.slice(0, 5).flatMap((one) => namesIn(one, depth + 1));
  if (!isObject(value)) return [];
  const here = ["code", "type", "status", "error_type", "reason"].map((key) => own(value, key));
  const below = ["error", "details"].flatMap((key) => namesIn(own(value, key) ?? null, depth + 1));
  return [...here.filter((name) => typeof name === "string"), ...below];
}

function statusIn(value: Json): number | undefined {
  const first = Array.isArray(value) ? value[0] : value;
  if (!isObject(first)) return undefined;
  const error = own(first, "error");
  const inner = isObject(error) ? [own(error, "code"), own(error, "status")] : [];
  const codes = [...inner, own(first, "code"), own(first, "status"), own(first, "statusCode")];
  return codes.map(Number).find((code) => Number.isInteger(code) && code >= 400 && code < 600);
}

/** Google's RetryInfo: `"retryDelay": "17s"`. */
function delayIn(value: Json | undefined, depth = 0): number | undefined {
  if (depth > DEEPEST || value === undefined) return undefined;
  if (Array.isArray(value))
    return value.map((one) => delayIn(one, depth + 1)).find((delay) => delay !== undefined);
  if (!isObject(value)) return undefined;
  const delay = own(value, "retryDelay");
  const [, seconds] = typeof delay === "string" ? (/^(\d{1,9}(?:\.\d+)?)s$/.exec(delay) ?? []) : [];
  if (seconds !== undefined) return Math.ceil(Number(seconds) * 1000);
  return delayIn(own(value, "error"), depth + 1) ?? delayIn(own(value, "details"), depth + 1);
}
