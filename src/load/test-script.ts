/** The responses of a test: STEP LABEL, whole replies, or the path of a script file. */
import type { FaultKind } from "../flow/event.ts";
import { HEARD_PARTS, type HeardDigests, type TestReply } from "../flow/flow-test.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import {
  besideTest,
  reportTest,
  testFixture,
  testLabel,
  testStep,
  type TestReading,
} from "./test-reading.ts";
import { showValue } from "./text/shape.ts";
import type { TestSource } from "./text/tests-shape.ts";
import { readYaml } from "./text/yaml.ts";

export function testScript(
  reading: TestReading,
  { script }: TestSource,
  pointer: string,
): readonly TestReply[] {
  if (typeof script === "string") return scriptFile(reading, script, `${pointer}/script`);
  if (!Array.isArray(script)) return [];
  return (script as readonly Json[]).flatMap((reply, at) =>
    testReply(reading, reply, `${pointer}/script/${at}`),
  );
}

/** A script file, relative to the test file. */
function scriptFile(reading: TestReading, path: string, pointer: string): readonly TestReply[] {
  const text = testFixture(reading, path, pointer);
  if (text === null) return [];
  const file = besideTest(reading.document.file, path);
  const read = readYaml(file, text);
  const value = read.kind === "read" ? read.document.value : null;
  const replies = Array.isArray(value)
    ? (value as readonly Json[])
    : isObject(value)
      ? value.replies
      : undefined;
  if (read.kind !== "read" || !Array.isArray(replies)) {
    reportTest(
      reading,
      "TEST-FIXTURE",
      pointer,
      `${path} is not a script file: it has no list of replies.`,
      "Name a script file.",
    );
    return [];
  }
  const inFile: TestReading = { ...reading, document: read.document };
  const base = Array.isArray(value) ? "" : "/replies";
  return (replies as readonly Json[]).flatMap((reply, at) => testReply(inFile, reply, `${base}/${at}`));
}

/** What each key of a response holds. */
const REPLY_KEYS: {
  readonly [key: string]: { readonly form: string; readonly fits: (value: Json) => boolean };
} = {
  step: { form: "a step", fits: isText },
  label: { form: "a label", fits: isText },
  with: { form: "an object of paths and values", fits: isObject },
  times: { form: "a whole number from 1 on", fits: isCount },
  saw: { form: "a text or a list of texts", fits: isTexts },
  unseen: { form: "a text or a list of texts", fits: isTexts },
  text: { form: "a text", fits: isText },
  output: { form: "a value", fits: () => true },
  calls: { form: "a list of { name, input }", fits: (value) => Array.isArray(value) && value.every(isCall) },
  error: { form: "an object with kind", fits: isObject },
  usage: { form: "an object with in, out, usd or turns", fits: isObject },
  heard: { form: `an object of digests: ${HEARD_PARTS.join(", ")}`, fits: isHeard },
};

function isHeard(value: Json): boolean {
  const isPart = (name: string) => HEARD_PARTS.some((part) => part === name);
  return isObject(value) && Object.entries(value).every(([name, one]) => isPart(name) && isText(one));
}

function isText(value: Json): boolean {
  return typeof value === "string";
}

function isTexts(value: Json): boolean {
  return isText(value) || (Array.isArray(value) && value.every(isText));
}

function isCount(value: Json): boolean {
  return Number.isInteger(value) && Number(value) > 0;
}

function isCall(call: Json): boolean {
  return isObject(call) && isText(call.name ?? null) && (call.input === undefined || isObject(call.input));
}

const FAULTS: readonly string[] = [
  "auth",
  "rate-limit",
  "overloaded",
  "network",
  "bad-request",
  "process",
  "other",
];

function testReply(reading: TestReading, written: Json, pointer: string): readonly TestReply[] {
  const { line } = reading.document.place(pointer);
  if (typeof written === "string") {
    const [id = "", label, ...more] = written.trim().split(/\s+/);
    const step = testStep(reading, id, pointer);
    if (label === undefined || more.length > 0) {
      reportTest(
        reading,
        "TEST-KEY",
        pointer,
        `"${written}" is not a response: write STEP LABEL.`,
        'Write the step and its label, such as "initial.issue next".',
      );
      return [];
    }
    if (step !== null) testLabel(reading, step, label, pointer);
    return [{ line, step: id, label }];
  }
  if (!isObject(written)) {
    reportTest(
      reading,
      "TEST-KEY",
      pointer,
      `${showValue(written)} is not a response.`,
      "Write STEP LABEL, or an object with step and label.",
    );
    return [];
  }
  for (const [key, value] of Object.entries(written)) {
    const keys = Object.keys(REPLY_KEYS);
    const known = own(REPLY_KEYS, key);
    if (known?.fits(value)) continue;
    const [message, fix] =
      known === undefined
        ? [`"${key}" is not a key of a response.${didYouMean(key, keys)}`, `Use one of: ${keys.join(", ")}.`]
        : [`${showValue(value)} is not ${known.form}.`, `Write \`${key}\` as ${known.form}.`];
    reportTest(reading, "TEST-KEY", `${pointer}/${escapeSegment(key)}`, message, fix);
  }
  const { step: id, label, with: given, times, saw, unseen, text, output, calls, error } = written;
  const { usage, heard } = written;
  const step = typeof id === "string" ? testStep(reading, id, `${pointer}/step`) : null;
  if (typeof label === "string" && step !== null) testLabel(reading, step, label, `${pointer}/label`);
  if (
    label === undefined &&
    text === undefined &&
    output === undefined &&
    calls === undefined &&
    error === undefined
  )
    reportTest(
      reading,
      "TEST-KEY",
      pointer,
      "The response says nothing.",
      "Give it label, text, output, calls or error.",
    );
  if (isObject(error) && !FAULTS.some((kind) => kind === error.kind))
    reportTest(
      reading,
      "TEST-KEY",
      `${pointer}/error`,
      `${showValue(error.kind ?? null)} is not a kind of failure.`,
      `Use one of: ${FAULTS.join(", ")}.`,
    );
  return [
    {
      line,
      ...(typeof id === "string" && { step: id }),
      ...(typeof label === "string" && { label }),
      ...(isObject(given) && { with: given }),
      ...(typeof times === "number" && isCount(times) && { times }),
      ...(saw !== undefined && { saw: textsIn(saw) }),
      ...(unseen !== undefined && { unseen: textsIn(unseen) }),
      ...(typeof text === "string" && { text }),
      ...(output !== undefined && { output }),
      ...(Array.isArray(calls) && { calls: (calls as readonly Json[]).flatMap(callOf) }),
      ...(isObject(error) && { error: errorOf(error) }),
      ...(isObject(usage) && { usage: usage }),
      ...(heard !== undefined && isHeard(heard) && { heard: heard as HeardDigests }),
    },
  ];
}

function callOf(call: Json): NonNullable<TestReply["calls"]> {
  if (!isObject(call) || typeof call.name !== "string") return [];
  const { name, input, id } = call;
  return [{ name, input: isObject(input) ? input : {}, ...(typeof id === "string" && { id }) }];
}

function errorOf({ kind, message, status, retryAfterMs }: JsonObject): NonNullable<TestReply["error"]> {
  return {
    kind: kind as FaultKind,
    ...(typeof message === "string" && { message }),
    ...(typeof status === "number" && { status }),
    ...(typeof retryAfterMs === "number" && { retryAfterMs }),
  };
}

function textsIn(value: Json): readonly string[] {
  const all: readonly Json[] = Array.isArray(value) ? value : [value];
  return all.filter((one) => typeof one === "string");
}
