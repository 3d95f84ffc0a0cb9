/** Script files: what a scripted model says, one reply per model response. YAML or JSON. */
import { manual } from "../../flow/manual.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { FaultKind } from "../../flow/event.ts";
import type { StepId } from "../../flow/flow.ts";
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import { errorText } from "../../flow/text/harmless.ts";

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

/** A reply of a test, which may say what it took. */
export type MeteredReply = ScriptReply & {
  readonly usage?: {
    readonly in?: number;
    readonly out?: number;
    readonly usd?: number;
    readonly turns?: number;
  };
};

/** Reads a script; SCRIPT_INVALID names the file, the reply and what is wrong with it. */
export async function parseScript(text: string, file: string): Promise<readonly ScriptReply[]> {
  const value = await parseText(text, file);
  const replies = Array.isArray(value) ? value : isObject(value) ? value.replies : undefined;
  if (!Array.isArray(replies)) throw invalid(file, "there is no list `replies`");
  return replies.map((reply: Json, index) =>
    readReply(reply, KEYS, (what) => invalid(file, `reply ${index + 1}${what}`)),
  );
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
    throw invalid(file, errorText(error));
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

/** What is wrong with a reply, behind the words that name it. */
export type ReplyFault = (what: string) => Error;

/** `keys`: those that the reply may have. */
export function readReply(reply: unknown, keys: readonly string[], fail: ReplyFault): ScriptReply {
  if (!isObject(reply)) throw fail(" is not a mapping");
  const stranger = Object.keys(reply).find((key) => !keys.includes(key));
  if (stranger !== undefined) throw fail(` has the unknown key "${stranger}"; known are ${keys.join(", ")}`);
  const says = ["text", "output", "calls", "error"].filter((key) => reply[key] !== undefined);
  if (says.length === 0) throw fail(" says nothing: give it text, output, calls or error");
  const { step, saw, unseen, text, output, calls, error } = reply;
  if (step !== undefined && typeof step !== "string") throw fail(": step must be a step id");
  if (text !== undefined && typeof text !== "string") throw fail(": text must be a string");
  return {
    ...(step !== undefined && { step }),
    ...(saw !== undefined && { saw: readWords(saw, "saw", fail) }),
    ...(unseen !== undefined && { unseen: readWords(unseen, "unseen", fail) }),
    ...(text !== undefined && { text }),
    ...(output !== undefined && { output }),
    ...(calls !== undefined && { calls: readCalls(calls, fail) }),
    ...(error !== undefined && { error: readError(error, fail) }),
  };
}

function readWords(value: Json, key: "saw" | "unseen", fail: ReplyFault): readonly string[] {
  const words: readonly Json[] = Array.isArray(value) ? value : [value];
  if (!words.every((word) => typeof word === "string")) throw fail(`: ${key} must be a list of strings`);
  for (const word of words) {
    if (!word.startsWith("re:")) continue;
    try {
      RegExp(word.slice(3));
    } catch (error) {
      throw fail(`: ${key} "${word}" is not a valid regular expression: ${String(error)}`);
    }
  }
  return words;
}

function readCalls(value: Json, fail: ReplyFault): NonNullable<ScriptReply["calls"]> {
  if (!Array.isArray(value)) throw fail(": calls must be a list");
  return value.map((call: Json) => {
    if (!isObject(call) || typeof call.name !== "string") throw fail(": a call needs a name");
    const { name, id } = call;
    const input = call.input ?? {};
    if (!isObject(input)) throw fail(`: the input of ${name} must be a mapping`);
    return { name, input, ...(typeof id === "string" && { id }) };
  });
}

function readError(value: Json, fail: ReplyFault): NonNullable<ScriptReply["error"]> {
  if (!isObject(value) || typeof value.kind !== "string" || !FAULTS.has(value.kind))
    throw fail(`: error.kind must be one of ${[...FAULTS].join(", ")}`);
  const { message, status, retryAfterMs } = value;
  return {
    kind: value.kind as FaultKind,
    ...(typeof message === "string" && { message }),
    ...(typeof status === "number" && { status }),
    ...(typeof retryAfterMs === "number" && { retryAfterMs }),
  };
}

function invalid(file: string, what: string): RunnerError {
  return new RunnerError(
    "SCRIPT_INVALID",
    `${file}: ${what}. The format is described in ${manual("scripts")}`,
  );
}
