/** Refusals that are known by their words or names: what kind each is, and what the user can do about it. */
import type { FaultKind } from "../../flow/event.ts";
import type { ProviderId } from "./providers.ts";

export type Reason = {
  readonly words: string;
  readonly names: readonly string[];
  readonly status: number | undefined;
  readonly provider: ProviderId;
  readonly model: string;
  readonly baseUrl?: string;
  /** The variable that the key was read from. */
  readonly keyEnv?: string;
};

/** `says` is tried on the names and the words of the service. The first row that fits holds. */
export type KnownRefusal = {
  readonly says: RegExp;
  readonly when?: (reason: Reason) => boolean;
  readonly kind?: FaultKind;
  readonly hint?: (reason: Reason) => string | null;
};

/** The service looked at the request and does not want it; a failure of its own is waited out. */
const isRefusal = ({ status }: Reason) =>
  status === undefined || (status >= 400 && status < 500) || status === 500;

export const KNOWN: readonly KnownRefusal[] = [
  {
    says: /credit balance is too low|\binsufficient_quota\b|insufficient (?:balance|credits?|funds)|\bbilling_(?:error|hard_limit_reached|not_active)\b/i,
    when: isRefusal,
    kind: "auth",
    hint: ({ keyEnv }) =>
      `Add credit to the account of the key${keyEnv === undefined ? "" : ` in ${keyEnv}`}, or use another model.`,
  },
  {
    says: /\bAPI_KEY_INVALID\b|\bAPI key not valid\b|\bAPI key expired\b|\binvalid_api_key\b|\bauthentication_error\b/i,
    when: isRefusal,
    kind: "auth",
    hint: ({ keyEnv }) => (keyEnv === undefined ? null : `The key is the value of ${keyEnv}.`),
  },
  {
    says: /does not support (?:tools|tool use|tool calling|function calling)|--enable-auto-tool-choice|support tool use|tools are not supported/i,
    when: isRefusal,
    kind: "bad-request",
    hint: () =>
      'If the model cannot call tools, add "toolCalling": false to it under "models" in your config.json.',
  },
  {
    says: /context_length_exceeded|exceed_context_size|maximum context length|context (?:window|size|length)|prompt is too long|input token count|too many (?:input )?tokens/i,
    when: (reason) => isRefusal(reason) && reason.status !== 429,
    kind: "bad-request",
    hint: () =>
      "The conversation is too long for this model: use one with a larger context window, or let the step read less.",
  },
  {
    says: /request too large/i,
    when: ({ status }) => status === 429,
    kind: "bad-request",
    hint: () =>
      "A single request is above the limit of this account: use another model, or let the step read less.",
  },
  {
    says: /model.{0,200}(?:not found|does not exist|not exist)|model_not_found|unknown model|no such model|not_found_error/i,
    when: ({ status }) => status === 400 || status === 404,
    kind: "bad-request",
    hint: (reason) => modelHint(reason),
  },
  {
    says: /property keys should match|input_schema|invalid.{0,40}(?:schema|function_declarations)|invalid_function_parameters/i,
    when: ({ status }) => status === 400,
    kind: "bad-request",
    hint: () =>
      "The parameters of a tool are described in a way that this provider refuses: leave that tool out of the step's allowedTools.",
  },
  { says: /\boverloaded(?:_error)?\b/i, when: ({ status }) => status === undefined, kind: "overloaded" },
];

/** A name from a project's files goes into a command only where a shell takes it for one word. */
function modelHint({ provider, model }: Reason): string {
  if (provider === "ollama" && /^\w[\w./:-]*$/.test(model))
    return `Get the model first: ollama pull ${model}`;
  return "Check the name of the model; the provider lists those that it serves.";
}
