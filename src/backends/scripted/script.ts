/** Script files: what a scripted model says, one reply per model response. YAML or JSON. */
import { manual } from "../../flow/manual.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { FaultKind } from "../../flow/event.ts";
import type { StepId } from "../../flow/flow.ts";
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";

export type ScriptReply = {
  readonly step?: StepId;
  /** Must occur in the system prompt or the messages of the request; `re:` begins a regular expression. */
  readonly saw?: readonly string[];
  readonly unseen?: readonly string[];
  readonly text?: string;
  readonly output?: Json;
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject; readonly id?: string }[];
  readonly error?: {
    readonly kind: FaultKind;
    readonly message?: string;
    readonly status?: number;
    readonly retryAfterMs?: number;
  };
};

/** Reads a script; SCRIPT_INVALID names the file, the reply and what is wrong with it. */
export async function parseScript(text: string, file: string): Promise<readonly ScriptReply[]> {
  const value = await parseText(text, file);
  const replies = Array.isArray(value) ? value : isObject(value) ? value.replies : undefined;
  if (!Array.isArray(replies)) throw invalid(file, "there is no list `replies`");
  return replies.map((reply: Json, index) => readReply(reply, `reply ${index + 1}`, file));
}

async function parseText(text: string, file: string): Promise<Json> {
  try {
    if (/^\s*[{[]/.test(text)) return JSON.parse(text) as Json;
    const { isScalar, LineCounter, parseDocument, visit } = await import("yaml");
    if (text.length > LONGEST_YAML)
      throw new Error(`it is longer than ${LONGEST_YAML} characters; write it as JSON`);
    const lineCounter = new LineCounter();
    const fail = (offset: number, what: string) => {
      const { line, col } = lineCounter.linePos(offset);
      throw new Error(`line ${line}, column ${col}: ${what}`);
    };
    // The parser would compare every key with every other one.
    const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false, lineCounter });
    const [fault] = document.errors;
    if (fault !== undefined) fail(fault.pos[0], fault.message.replace(/\.$/, ""));
    visit(document, {
      Map: (_, { items }) => {
        const names = new Set<unknown>();
        for (const { key } of items) {
          const name = isScalar(key) ? key.value : key;
          if (names.has(name))
            fail(isScalar(key) ? (key.range?.[0] ?? 0) : 0, `the key "${String(name)}" occurs twice`);
          names.add(name);
        }
      },
    });
    return document.toJS({ maxAliasCount: 100 }) as Json;
  } catch (error) {
    throw invalid(file, error instanceof Error ? error.message : String(error));
  }
}

const LONGEST_YAML = 1024 * 1024;
const KEYS = ["step", "saw", "unseen", "text", "output", "calls", "error"];
/** Every kind of failure that a reply may name. */
export const FAULTS: ReadonlySet<string> = new Set<FaultKind>([
  "auth",
  "rate-limit",
  "overloaded",
  "network",
  "bad-request",
  "process",
  "other",
]);

function readReply(reply: Json, which: string, file: string): ScriptReply {
  if (!isObject(reply)) throw invalid(file, `${which} is not a mapping`);
  const stranger = Object.keys(reply).find((key) => !KEYS.includes(key));
  if (stranger !== undefined)
    throw invalid(file, `${which} has the unknown key "${stranger}"; known are ${KEYS.join(", ")}`);
  const says = ["text", "output", "calls", "error"].filter((key) => reply[key] !== undefined);
  if (says.length === 0) throw invalid(file, `${which} says nothing: give it text, output, calls or error`);
  const { step, text, output, error } = reply;
  if (step !== undefined && typeof step !== "string") throw invalid(file, `${which}: step must be a step id`);
  if (text !== undefined && typeof text !== "string") throw invalid(file, `${which}: text must be a string`);
  return {
    ...(step === undefined ? {} : { step }),
    ...readWords(reply, "saw", which, file),
    ...readWords(reply, "unseen", which, file),
    ...(text === undefined ? {} : { text }),
    ...(output === undefined ? {} : { output }),
    ...(reply.calls === undefined ? {} : { calls: readCalls(reply.calls, which, file) }),
    ...(error === undefined ? {} : { error: readError(error, which, file) }),
  };
}

function readWords(reply: JsonObject, key: "saw" | "unseen", which: string, file: string) {
  const value = reply[key];
  if (value === undefined) return {};
  const words: readonly Json[] = Array.isArray(value) ? value : [value];
  if (!words.every((word) => typeof word === "string"))
    throw invalid(file, `${which}: ${key} must be a list of strings`);
  for (const word of words) {
    if (!word.startsWith("re:")) continue;
    const fault = regexFault(word.slice(3));
    if (fault !== null)
      throw invalid(file, `${which}: ${key} "${word}" is not a valid regular expression: ${fault}`);
  }
  return { [key]: words };
}

function regexFault(pattern: string): string | null {
  try {
    RegExp(pattern);
    return null;
  } catch (error) {
    return String(error);
  }
}

function readCalls(value: Json, which: string, file: string): NonNullable<ScriptReply["calls"]> {
  if (!Array.isArray(value)) throw invalid(file, `${which}: calls must be a list`);
  return value.map((call: Json) => {
    if (!isObject(call) || typeof call.name !== "string")
      throw invalid(file, `${which}: a call needs a name`);
    const input = call.input ?? {};
    if (!isObject(input)) throw invalid(file, `${which}: the input of ${call.name} must be a mapping`);
    return { name: call.name, input, ...(typeof call.id === "string" ? { id: call.id } : {}) };
  });
}

function readError(value: Json, which: string, file: string): NonNullable<ScriptReply["error"]> {
  if (!isObject(value) || typeof value.kind !== "string" || !FAULTS.has(value.kind)) {
    throw invalid(file, `${which}: error.kind must be one of ${[...FAULTS].join(", ")}`);
  }
  const { message, status, retryAfterMs } = value;
  return {
    kind: value.kind as FaultKind,
    ...(typeof message === "string" ? { message } : {}),
    ...(typeof status === "number" ? { status } : {}),
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
  };
}

function invalid(file: string, what: string): RunnerError {
  return new RunnerError(
    "SCRIPT_INVALID",
    `${file}: ${what}. The format is described in ${manual("scripts")}`,
  );
}
