/** What Claude Code says during one query, and what that means to us. Pure: messages in, a result out. */
import { stripVTControlCharacters } from "node:util";
import type { TurnResult } from "../../engine/ports.ts";
import type { Fault, FaultKind, Usage } from "../../flow/event.ts";
import { figure, plainUsage } from "../../flow/figure.ts";
import { shown } from "../../flow/text/harmless.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { costOf, priceOf, type Tokens } from "../ai-sdk/prices.ts";
import { memberAt, countIn, listIn, numberIn, textIn } from "../untyped.ts";

/** The tool by which Claude Code takes a structured answer. */
export const ANSWER_TOOL = "StructuredOutput";

/** A query so far. */
export type ClaudeHeard = {
  /** Model responses that began. The figure in the result counts tool calls too. */
  readonly turns: number;
  /** What the last two responses said: a payload in prose stands in the first, before the one nudge it gets. */
  readonly texts: readonly string[];
  /** The payload offered last, good or bad. */
  readonly offered: Json | undefined;
  /** Why the provider refused, in the word that Claude Code has for it. */
  readonly trouble: string | null;
  /** What was used by each response so far, as it was streamed. */
  readonly used: readonly Used[];
  /** A retry that was announced: the wait that the provider asked for. */
  readonly retry: { readonly ms: number; readonly status: number | null; readonly trouble: string } | null;
  readonly result: JsonObject | null;
  /** The model that the newest response names. */
  readonly model?: string;
};

export const NOTHING: ClaudeHeard = {
  turns: 0,
  texts: [],
  offered: undefined,
  trouble: null,
  used: [],
  retry: null,
  result: null,
};

type Used = { readonly model: string; readonly tokens: Tokens };

/** Tokens and money of a session since it began; a resumed one goes on counting where it stood. */
export type Totals = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number | null;
};

export const NO_TOTALS: Totals = { inputTokens: 0, outputTokens: 0, costUsd: 0 };

export function hearClaude(heard: ClaudeHeard, message: JsonObject): ClaudeHeard {
  switch (message.type) {
    case "stream_event":
      return streamed(heard, memberAt(message, "event"));
    case "assistant":
      return typeof message.error === "string"
        ? { ...heard, trouble: message.error }
        : listen(
            namedIn(heard, memberAt(message, "message", "model")),
            memberAt(message, "message", "content"),
          );
    case "system": {
      if (message.subtype !== "api_retry") return heard;
      const { retry_delay_ms: ms, error_status: status, error } = message;
      const retry = { ms: numberIn(ms), status: statusOf(status), trouble: textIn(error) };
      return { ...heard, retry };
    }
    case "result":
      return { ...heard, result: message };
    default:
      return heard;
  }
}

function streamed(heard: ClaudeHeard, event: Json | undefined): ClaudeHeard {
  switch (memberAt(event, "type")) {
    case "message_start": {
      const count = (name: string) => countIn(memberAt(event, "message", "usage", name));
      const [cacheRead, cacheWrite] = [
        count("cache_read_input_tokens"),
        count("cache_creation_input_tokens"),
      ];
      const input = count("input_tokens") + cacheRead + cacheWrite;
      const tokens = { input, output: count("output_tokens"), cacheRead, cacheWrite };
      const used = [...heard.used, { model: textIn(memberAt(event, "message", "model")), tokens }];
      return { ...heard, turns: heard.turns + 1, texts: [...heard.texts.slice(-1), ""], used, retry: null };
    }
    case "message_delta": {
      const last = heard.used.at(-1);
      const output = countIn(memberAt(event, "usage", "output_tokens"));
      if (last === undefined || output === 0) return heard;
      return {
        ...heard,
        used: [...heard.used.slice(0, -1), { ...last, tokens: { ...last.tokens, output } }],
      };
    }
    default:
      return heard;
  }
}

/** Of a query that was stopped before it reported its figures; null: no response had begun. */
export function usageSoFar({ turns, used }: ClaudeHeard): Usage | null {
  if (turns === 0) return null;
  const costs = used.map(({ model, tokens }) => costOf(priceOf("anthropic", model), tokens));
  return plainUsage({
    turns,
    inputTokens: used.reduce((sum, { tokens }) => sum + tokens.input, 0),
    outputTokens: used.reduce((sum, { tokens }) => sum + tokens.output, 0),
    costUsd: costs.reduce((sum, cost) => (sum === null || cost === null ? null : sum + cost), 0),
  });
}

/** A wait worth handing on. A short one is Claude Code's own pause before its one retry, and not the provider's wish. */
export function asksToWait({ retry }: ClaudeHeard): boolean {
  return retry !== null && retry.ms >= 1000;
}

/** What Claude Code says by itself is by a model named in angle brackets. */
function namedIn(heard: ClaudeHeard, model: Json | undefined): ClaudeHeard {
  return typeof model === "string" && /^[^<]/.test(model) ? { ...heard, model } : heard;
}

function listen(heard: ClaudeHeard, content: Json | undefined): ClaudeHeard {
  let { texts, offered } = heard;
  for (const block of listIn(content)) {
    if (!isObject(block)) continue;
    if (block.type === "text") texts = [...texts.slice(0, -1), (texts.at(-1) ?? "") + textIn(block.text)];
    if (block.type === "tool_use" && block.name === ANSWER_TOOL) offered = block.input;
  }
  return { ...heard, texts, offered };
}

/** How the query is to be read. */
export type ClaudeReading = {
  /** Whether a structured answer was asked for. */
  readonly structured: boolean;
  /** What the session had used up before. */
  readonly before: Totals;
  /** What the iterator threw. An error result is thrown too, after it was given: then the result counts. */
  readonly thrown: string | null;
  /** What the program wrote to stderr. */
  readonly printed?: string;
};

export function toClaudeResult(heard: ClaudeHeard, reading: ClaudeReading): TurnResult {
  const { result } = heard;
  if (result === null || (result.is_error === true && !isEnough(result))) {
    const fault = toFault(heard, reading);
    const spent = result === null ? usageSoFar(heard) : toUsage(heard, result, reading.before).usage;
    const isFree =
      spent === null || (spent.unknown === undefined && spent.inputTokens + spent.outputTokens === 0);
    return { kind: "fault", fault: isFree ? fault : { ...fault, usage: spent } };
  }
  const { usage, totals } = toUsage(heard, result, reading.before);
  const session = textIn(result.session_id);
  const output = result.structured_output ?? (isExhausted(result) ? heard.offered : undefined);
  const text = reading.structured
    ? heard.texts.filter((said) => said !== "").join("\n\n")
    : textIn(result.result);
  return {
    kind: "reply",
    text,
    calls: [],
    ...(output === undefined ? {} : { output }),
    usage,
    session,
    ...(result.subtype === "error_max_turns" ? { capped: true } : {}),
    mark: { session, totals },
  };
}

/** Errors in name only: the model answered, if not well, and the engine knows what to do about that. */
function isEnough(result: JsonObject): boolean {
  return result.subtype === "error_max_turns" || isExhausted(result);
}

/** Five payloads that did not fit: the last of them is handed on, so that its faults are reported in our words. */
function isExhausted(result: JsonObject): boolean {
  return result.subtype === "error_max_structured_output_retries";
}

// Figures.

function toUsage(
  { turns }: ClaudeHeard,
  { modelUsage, total_cost_usd: cost }: JsonObject,
  before: Totals,
): { readonly usage: Usage; readonly totals: Totals } {
  const models = isObject(modelUsage) ? Object.values(modelUsage).filter((one) => isObject(one)) : [];
  const sum = (...names: readonly string[]) =>
    models.reduce((total, one) => total + names.reduce((part, name) => part + countIn(one[name]), 0), 0);
  // A model without a known price is priced like another one: that is a guess and not a cost.
  const isPriced = models.every((one) => one.costBasis !== "unknown");
  const now: Totals = {
    inputTokens: sum("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
    outputTokens: sum("outputTokens"),
    costUsd: isPriced ? figure(cost) : null,
  };
  const since = (amount: number, then: number) => Math.max(0, amount - then);
  const usage: Usage = {
    turns,
    inputTokens: since(now.inputTokens, before.inputTokens),
    outputTokens: since(now.outputTokens, before.outputTokens),
    costUsd: now.costUsd === null || before.costUsd === null ? null : since(now.costUsd, before.costUsd),
  };
  const totals: Totals = {
    inputTokens: figure(now.inputTokens) ?? before.inputTokens,
    outputTokens: figure(now.outputTokens) ?? before.outputTokens,
    costUsd: now.costUsd,
  };
  return { usage: plainUsage(usage), totals };
}

/** What marks of earlier replies tell of their sessions. */
export function readMarks(marks: readonly Json[]): ReadonlyMap<string, Totals> {
  return new Map(
    marks.flatMap((mark) => {
      const session = memberAt(mark, "session");
      const totals = memberAt(mark, "totals");
      return typeof session === "string" && isObject(totals) ? [[session, totals as Totals] as const] : [];
    }),
  );
}

// Faults.

function toFault(heard: ClaudeHeard, { thrown, printed = "" }: ClaudeReading): Fault {
  const { result, trouble, retry } = heard;
  if (result === null && retry !== null && asksToWait(heard)) {
    const kind = kindOf(retry.status, retry.trouble);
    const message = `The provider asks to wait ${Math.ceil(retry.ms / 1000)} s (${retry.trouble}).`;
    return { kind, message, ...withStatus(retry.status), retryAfterMs: retry.ms };
  }
  if (result === null) {
    const last = shown(stripVTControlCharacters(printed).trim());
    const reason = thrown ?? "Claude Code ended without a result.";
    const message = last === "" || reason.includes(last) ? reason : `${reason}\nIt printed:\n${last}`;
    return { kind: /--json-schema is not a valid/.test(message) ? "bad-request" : "process", message };
  }
  const errors = listIn(result.errors).map(textIn);
  const message = textIn(result.result) || errors.join("; ") || thrown || textIn(result.subtype);
  const status = statusOf(result.api_error_status);
  if (result.terminal_reason !== "api_error" && status === null) return { kind: "process", message };
  // It tries once more after a wait of up to a minute. Without that, it was asked for a longer one.
  if (retry === null && status === 429) return longWait(status, message);
  return { kind: kindOf(status, trouble ?? ""), message, ...withStatus(status) };
}

/** Asking again soon would be in vain: the run stops, and is resumed by hand. */
function longWait(status: number, said: string): Fault {
  const why = "The provider wants a wait of more than a minute; Claude Code does not say how long.";
  return {
    kind: "other",
    code: "AGENT_RATE_LIMIT",
    status,
    message: `${said}. ${why} Resume the run later.`,
  };
}

function kindOf(status: number | null, trouble: string): FaultKind {
  if (status === null) return own(KIND_BY_TROUBLE, trouble) ?? "network";
  if (status === 401 || status === 402 || status === 403) return "auth";
  if (status === 429) return "rate-limit";
  if (status === 408) return "network";
  return status >= 500 ? "overloaded" : "bad-request";
}

/** Where there was no answer from the provider at all: what is not named here was the line. */
const KIND_BY_TROUBLE: { readonly [trouble: string]: FaultKind } = {
  authentication_failed: "auth",
  oauth_org_not_allowed: "auth",
  account_on_hold: "auth",
  verification_required: "auth",
  billing_error: "auth",
  cloud_credential_error: "auth",
  rate_limit: "rate-limit",
  overloaded: "overloaded",
  invalid_request: "bad-request",
  model_not_found: "bad-request",
  max_output_tokens: "other",
};

function withStatus(status: number | null): { readonly status?: number } {
  return status === null ? {} : { status };
}

function statusOf(value: Json | undefined): number | null {
  return typeof value === "number" ? value : null;
}
