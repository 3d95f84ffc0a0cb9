/** The responses of a test: STEP LABEL, whole replies, or the path of a script file. */
import type { FaultKind } from "../flow/event.ts";
import type { TestReply } from "../flow/flow-test.ts";
import { defined, isObject, type Json, type JsonObject } from "../flow/json.ts";
import {
  besideTest,
  reportTest,
  strictReader,
  TEST_SIZE,
  testFixture,
  testLabel,
  testStep,
  type TestReading,
} from "./test-reading.ts";
import { checkWords } from "./test-expect.ts";
import { readShape, showValue } from "./text/shape.ts";
import { REPLY, type TestSource } from "./text/tests-shape.ts";
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
  const read = readYaml(file, text, undefined, undefined, TEST_SIZE);
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

function testReply(reading: TestReading, written: Json, pointer: string): readonly TestReply[] {
  // A beginning that several scripts have in common can be given a name in YAML, and stands in them as a list.
  if (Array.isArray(written))
    return (written as readonly Json[]).flatMap((one, at) => testReply(reading, one, `${pointer}/${at}`));
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
  const heard = readShape(REPLY, written, pointer, strictReader(reading))?.heard;
  const { step: id, label, with: given, times, saw, unseen, text, output, calls, error, usage } = written;
  for (const [key, words] of Object.entries({ saw, unseen }))
    if (words !== undefined && (typeof words === "string" || Array.isArray(words)))
      checkWords(reading, words, `${pointer}/${key}`, key);
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
  return [
    {
      line,
      ...(typeof id === "string" && { step: id }),
      ...(typeof label === "string" && { label }),
      ...(isObject(given) && { with: given }),
      ...(typeof times === "number" && Number.isInteger(times) && times > 0 && { times }),
      ...(saw !== undefined && { saw: textsIn(saw) }),
      ...(unseen !== undefined && { unseen: textsIn(unseen) }),
      ...(typeof text === "string" && { text }),
      ...(output !== undefined && { output }),
      ...(Array.isArray(calls) && { calls: (calls as readonly Json[]).flatMap(callOf) }),
      ...(isObject(error) && { error: errorOf(error) }),
      ...(isObject(usage) && { usage: usage }),
      ...(heard !== undefined && { heard: defined(heard) }),
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
