/**
 * The test files of an agent: `.agent/<name>/tests/*.yaml` (`.yml`, `.json`). Pure over `files`; never throws. What a test
 * says about steps, labels, checks and parameters is held against the flow.
 */
import type { FaultKind } from "../flow/event.ts";
import type { FileTree } from "../flow/files.ts";
import {
  EXPECT_KEYS,
  NOTHING_AROUND,
  type Around,
  type CheckGiven,
  type Expected,
  type FlowTest,
  type TestGround,
  type TestReply,
  type ToolGiven,
} from "../flow/flow-test.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import type { Problem } from "../flow/problem.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem, type Code } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import { emptyDocument, readText, type Document } from "./text/document.ts";
import { joinPath } from "./text/paths.ts";
import { readShape, showValue, type Reader } from "./text/shape.ts";
import { readYaml } from "./text/yaml.ts";
import { checkGround, checkParts } from "./text/test-parts.ts";
import { REPLY, TEST, TEST_FILE, type TestFileSource, type TestSource } from "./text/tests-shape.ts";

export type TestsRead = { readonly tests: readonly FlowTest[]; readonly problems: readonly Problem[] };

/** The paths of test files, in the order of their names. */
export function testPaths(name: string, files: FileTree): readonly string[] {
  const folder = joinPath(".agent", `${name}/tests`);
  const names = files.list(folder) ?? [];
  return names
    .filter((file) => /^[^.].*\.(?:ya?ml|json)$/.test(file) && !SETTINGS.test(file))
    .map((file) => `${folder}/${file}`);
}

/** Beside the tests, and not one of them. */
const SETTINGS = /^settings\.(?:ya?ml|json)$/;

export function readTests(flow: Flow, files: FileTree): TestsRead {
  const findings: Finding[] = [];
  const tests = testPaths(flow.agent, files).flatMap((file) => readTestFile(flow, files, file, findings));
  return { tests, problems: findings.map((finding) => toProblem(finding, null)) };
}

/** The tests of one file. */
export function testsIn(flow: Flow, files: FileTree, file: string): TestsRead {
  const findings: Finding[] = [];
  const tests = readTestFile(flow, files, file, findings);
  return { tests, problems: findings.map((finding) => toProblem(finding, null)) };
}

/** What reads one file. */
type Reading = {
  readonly flow: Flow;
  readonly files: FileTree;
  readonly document: Document;
  readonly findings: Finding[];
};

export function readTestFile(
  flow: Flow,
  files: FileTree,
  file: string,
  findings: Finding[],
): readonly FlowTest[] {
  const document = testDocument(files, file, findings);
  if (document === null) return [];
  const reading: Reading = { flow, files, document, findings };
  const reader = strictReader(reading);
  const source = readShape(TEST_FILE, document.value, "", reader);
  if (source === undefined || !isObject(document.value) || !Array.isArray(document.value.tests)) return [];
  const { tests: written, ...shared } = document.value;
  checkParts(shared, "", reader);
  const tests = (written as readonly Json[]).flatMap((test, at) =>
    casesOf(reading, source, test, `/tests/${at}`),
  );
  if (source.project !== undefined) checkGround(shared, "", "project", reader);
  else if (tests.length > 0 && tests.every(({ ground }) => ground.kind === "memory"))
    checkGround(shared, "", "memory", reader);
  onceEach(findings);
  return tests;
}

/** A misspelled key would silently test nothing: it is an error. */
function strictReader({ document, findings }: Reading): Reader {
  return { document, code: "TEST-KEY", unknown: "TEST-KEY", findings };
}

/** Each case of a table is read by itself and may show the same. */
function onceEach(findings: Finding[]): void {
  const seen = new Set<string>();
  const once = findings.filter(({ code, document, pointer, message }) => {
    const name = JSON.stringify([code, document.file, pointer, message]);
    return !seen.has(name) && seen.add(name);
  });
  findings.splice(0, findings.length, ...once);
}

/** Reads a file of tests as YAML or JSON; null: it cannot be read, and the findings say why. */
export function testDocument(files: FileTree, file: string, findings: Finding[]): Document | null {
  const read = readText(files, file);
  const broken = (document: Document, why: string): null => {
    const message = `${file} cannot be read: ${why}.`;
    findings.push({
      code: "TEST-KEY",
      document,
      pointer: "",
      message,
      fix: "Correct the file at this place.",
    });
    return null;
  };
  if (read.kind !== "text")
    return broken(emptyDocument(file), read.kind === "missing" ? "it does not exist" : read.why);
  const yaml = readYaml(file, read.text);
  if (yaml.kind === "read") return yaml.document;
  const [fault] = yaml.faults;
  return broken(fault?.document ?? emptyDocument(file), fault?.what ?? "it is not valid");
}

/** One test, or one for each of its cases. */
function casesOf(
  reading: Reading,
  file: TestFileSource,
  written: Json,
  pointer: string,
): readonly FlowTest[] {
  const quiet = { ...reading, findings: [] };
  const source = readShape(TEST, written, pointer, {
    document: reading.document,
    code: "TEST-KEY",
    findings: quiet.findings,
  });
  if (source === undefined) return [];
  if (source.cases === undefined) {
    checkTest(reading, file, written, pointer);
    return [testOf(reading, file, source, pointer)];
  }
  const text = JSON.stringify(withoutCases(written));
  return source.cases.flatMap((one, at) => {
    if (!isObject(one)) return [];
    for (const name of Object.keys(one))
      if (at === 0 && !text.includes(`\${case.${name}}`))
        report(
          reading,
          "TEST-KEY",
          `${pointer}/cases/${at}/${escapeSegment(name)}`,
          `The value "${name}" of the cases is never used.`,
          `Use it as \${case.${name}}, or remove it.`,
        );
    const whole = replaced(written, one);
    checkTest(reading, file, whole, pointer);
    const filled = readShape(TEST, whole, pointer, {
      document: reading.document,
      code: "TEST-KEY",
      findings: [],
    });
    return filled === undefined ? [] : [testOf(reading, file, filled, pointer)];
  });
}

function checkTest(reading: Reading, file: TestFileSource, written: Json, pointer: string): void {
  if (!isObject(written)) return;
  const reader = strictReader(reading);
  const isProject = (written.project ?? file.project) !== undefined;
  checkParts(written, pointer, reader);
  checkGround(written, pointer, isProject ? "project" : "memory", reader);
}

function withoutCases(test: Json): Json {
  if (!isObject(test)) return test;
  const { cases: _cases, ...rest } = test;
  return rest;
}

/** `${case.NAME}`; alone in a string it keeps its type. */
function replaced(value: Json, one: JsonObject): Json {
  if (typeof value === "string") {
    const alone = /^\$\{case\.([\w-]+)\}$/.exec(value);
    if (alone !== null) return own(one, alone[1]!) ?? value;
    return value.replaceAll(/\$\{case\.([\w-]+)\}/g, (all, name: string) => {
      const found = own(one, name);
      return found === undefined ? all : typeof found === "string" ? found : JSON.stringify(found);
    });
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => replaced(item, one));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, replaced(member, one)]));
}

function testOf(reading: Reading, file: TestFileSource, source: TestSource, pointer: string): FlowTest {
  const { document, flow } = reading;
  const params = Object.fromEntries([...file.params, ...source.params]);
  for (const name of source.params.keys())
    if (!isParameter(flow, name)) unknownParameter(reading, pointer, name);
  const { until } = source;
  if (until !== undefined) stepNamed(reading, until, `${pointer}/until`);
  const ground = groundOf(reading, source.project ?? file.project, source.git ?? file.git);
  if (ground.kind === "project" && reading.files.list(ground.folder) === null)
    report(
      reading,
      "TEST-FIXTURE",
      source.project === undefined ? "/project" : `${pointer}/project`,
      `The folder ${ground.folder} does not exist.`,
      "Name a folder of the project, relative to the test file.",
    );
  return {
    name: source.name ?? "a test",
    file: document.file,
    line: document.place(pointer).line,
    params,
    input: source.input ?? file.input ?? "",
    script: scriptOf(reading, source, pointer),
    ...(until !== undefined && { until }),
    around: aroundOf(reading, file, source, pointer),
    ground,
    expect: expectedOf(reading, source, pointer),
    only: source.only,
    ...(source.skip !== undefined && { skip: source.skip }),
    generated: source.generated,
    covers: source.covers,
  };
}

function isParameter({ parameters, openArguments }: Flow, name: string): boolean {
  return openArguments === true || parameters.some((one) => one.name === name);
}

function unknownParameter(reading: Reading, pointer: string, name: string): void {
  const names = reading.flow.parameters.map((one) => one.name);
  const message = `"${name}" is not a parameter of the agent.${didYouMean(name, names)}`;
  report(
    reading,
    "TEST-PARAM",
    `${pointer}/params/${escapeSegment(name)}`,
    message,
    `Use one of: ${names.join(", ") || "none"}.`,
  );
}

function report(
  { document, findings }: Reading,
  code: Code,
  pointer: string,
  message: string,
  fix: string,
): void {
  findings.push({ code, document, pointer, message, fix });
}

// Scripts.

function scriptOf(reading: Reading, { script }: TestSource, pointer: string): readonly TestReply[] {
  if (typeof script === "string") return scriptFile(reading, script, `${pointer}/script`);
  if (!Array.isArray(script)) return [];
  return (script as readonly Json[]).flatMap((reply, at) =>
    replyOf(reading, reply, `${pointer}/script/${at}`),
  );
}

/** A script file, relative to the test file. */
function scriptFile(reading: Reading, path: string, pointer: string): readonly TestReply[] {
  const text = fixture(reading, path, pointer);
  if (text === null) return [];
  const file = besides(reading.document.file, path);
  const read = readYaml(file, text);
  const value = read.kind === "read" ? read.document.value : null;
  const replies = Array.isArray(value)
    ? (value as readonly Json[])
    : isObject(value)
      ? value.replies
      : undefined;
  if (read.kind !== "read" || !Array.isArray(replies)) {
    report(
      reading,
      "TEST-FIXTURE",
      pointer,
      `${path} is not a script file: it has no list of replies.`,
      "Name a script file.",
    );
    return [];
  }
  const inFile: Reading = { ...reading, document: read.document };
  const base = Array.isArray(value) ? "" : "/replies";
  return (replies as readonly Json[]).flatMap((reply, at) => replyOf(inFile, reply, `${base}/${at}`));
}

function replyOf(reading: Reading, written: Json, pointer: string): readonly TestReply[] {
  const { line } = reading.document.place(pointer);
  if (typeof written === "string") {
    const [id = "", label, ...more] = written.trim().split(/\s+/);
    const step = stepNamed(reading, id, pointer);
    if (label === undefined || more.length > 0) {
      report(
        reading,
        "TEST-KEY",
        pointer,
        `"${written}" is not a response: write STEP LABEL.`,
        'Write the step and its label, such as "initial.issue next".',
      );
      return [];
    }
    if (step !== null) labelNamed(reading, step, label, pointer);
    return [{ line, step: id, label }];
  }
  if (!isObject(written)) {
    report(
      reading,
      "TEST-KEY",
      pointer,
      `${showValue(written)} is not a response.`,
      "Write STEP LABEL, or an object with step and label.",
    );
    return [];
  }
  readShape(REPLY, written, pointer, strictReader(reading));
  const { step: id, label, with: given, times, saw, unseen, text, output, calls, error, usage } = written;
  const step = typeof id === "string" ? stepNamed(reading, id, `${pointer}/step`) : null;
  if (typeof label === "string" && step !== null) labelNamed(reading, step, label, `${pointer}/label`);
  if (
    label === undefined &&
    text === undefined &&
    output === undefined &&
    calls === undefined &&
    error === undefined
  )
    report(
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

function stepNamed(reading: Reading, id: string, pointer: string): Step | null {
  const step = own(reading.flow.steps, id);
  if (step !== undefined) return step;
  const names = Object.keys(reading.flow.steps);
  report(
    reading,
    "TEST-STEP",
    pointer,
    `"${id}" is not a step of the flow.${didYouMean(id, names)}`,
    `Use one of: ${names.join(", ")}.`,
  );
  return null;
}

function labelNamed(reading: Reading, { decide, id, answer }: Step, label: string, pointer: string): void {
  if (answer.kind === "text") return;
  const labels = decide.by === "const" ? [decide.label] : [...decide.allow, ...decide.always];
  if (labels.includes(label)) return;
  report(
    reading,
    "TEST-LABEL",
    pointer,
    `Step "${id}" cannot say "${label}".${didYouMean(label, labels)}`,
    `Use one of: ${labels.join(", ")}.`,
  );
}

// What is around the flow.

function aroundOf(reading: Reading, file: TestFileSource, source: TestSource, pointer: string): Around {
  const clock = source.clock ?? file.clock;
  const checks = new Map([...file.checks, ...source.checks]);
  for (const name of source.checks.keys())
    if (!Object.hasOwn(reading.flow.checks, name)) {
      const names = Object.keys(reading.flow.checks);
      report(
        reading,
        "TEST-CHECK",
        `${pointer}/checks/${escapeSegment(name)}`,
        `"${name}" is not a check of the flow.${didYouMean(name, names)}`,
        `Use one of: ${names.join(", ") || "none"}.`,
      );
    }
  const at = (key: string, name: string) => `${pointer}/${key}/${escapeSegment(name)}`;
  return {
    ...NOTHING_AROUND,
    checks: Object.fromEntries(
      [...checks].map(([name, given]) => [
        name,
        listOf(given).map((one) => checkGiven(reading, one, at("checks", name))),
      ]),
    ),
    tools: Object.fromEntries(
      [...file.tools, ...source.tools].map(([name, given]) => [
        name,
        listOf(given).map((one) => toolGiven(reading, one, at("tools", name))),
      ]),
    ),
    hooks: Object.fromEntries([...file.hooks, ...source.hooks].map(([name, given]) => [name, listOf(given)])),
    sights: source.sights ?? file.sights ?? [],
    answers: (source.answers ?? file.answers ?? []).map((answer) =>
      typeof answer === "string" ? answer : null,
    ),
    github: objectIn(source.github ?? file.github),
    ...(clock !== undefined && { clock: timeIn(reading, clock, `${pointer}/clock`) }),
    order: source.order ?? file.order ?? [],
  };
}

function objectIn(value: Json | undefined): JsonObject | null {
  return isObject(value) ? value : null;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : value === undefined ? [] : [value];
}

function timeIn(reading: Reading, text: string, pointer: string): number {
  const time = Date.parse(text);
  if (!Number.isNaN(time)) return time;
  report(reading, "TEST-KEY", pointer, `"${text}" is not a time.`, "Write it as 2026-01-01T00:00:00Z.");
  return NOTHING_AROUND.clock;
}

function checkGiven(reading: Reading, given: Json, pointer: string): CheckGiven {
  if (given === "pass") return { kind: "pass" };
  if (given === "fail") return { kind: "fail" };
  if (
    isObject(given) &&
    (given.exit !== undefined || given.stdout !== undefined || given.stderr !== undefined)
  ) {
    const { exit = 0, stdout = "", stderr = "" } = given;
    return {
      kind: "output",
      exit: typeof exit === "number" ? exit : 1,
      stdout: contentOf(reading, stdout, pointer),
      stderr: contentOf(reading, stderr, pointer),
    };
  }
  report(
    reading,
    "TEST-CHECK",
    pointer,
    `${showValue(given)} is not a result of a check.`,
    "Write pass, fail, or { exit, stdout, stderr }.",
  );
  return { kind: "pass" };
}

function toolGiven(reading: Reading, given: Json, pointer: string): ToolGiven {
  if (typeof given === "string") return { ok: true, content: contentOf(reading, given, pointer) };
  if (isObject(given))
    return { ok: given.ok !== false, content: contentOf(reading, given.content ?? "", pointer) };
  return { ok: true, content: JSON.stringify(given) };
}

/** `file:PATH` is the text of a file beside the tests. */
function contentOf(reading: Reading, given: Json, pointer: string): string {
  const text = typeof given === "string" ? given : JSON.stringify(given);
  return text.startsWith("file:") ? (fixture(reading, text.slice(5), pointer) ?? "") : text;
}

function fixture(reading: Reading, path: string, pointer: string): string | null {
  const read = readText(reading.files, besides(reading.document.file, path));
  if (read.kind === "text") return read.text;
  const why = read.kind === "missing" ? "does not exist" : `cannot be read: ${read.why}`;
  report(reading, "TEST-FIXTURE", pointer, `${path} ${why}.`, "Name a file relative to the test file.");
  return null;
}

/** A path relative to the folder of the file. */
function besides(file: string, path: string): string {
  const parts = file.split("/").slice(0, -1);
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}

function groundOf(
  { document }: Pick<Reading, "document">,
  project: string | undefined,
  git: Json | undefined,
): TestGround {
  if (project === undefined) return { kind: "memory" };
  const folder = besides(document.file, project);
  if (git === undefined || git === false || git === null) return { kind: "project", folder, git: false };
  const { commits, branch, dirty } = isObject(git) ? git : {};
  return {
    kind: "project",
    folder,
    git: {
      commits: typeof commits === "number" ? commits : 1,
      branch: typeof branch === "string" ? branch : "main",
      dirty: dirty === true,
    },
  };
}

// Expectations.

function expectedOf(reading: Reading, { expect }: Pick<TestSource, "expect">, pointer: string): Expected {
  const { document } = reading;
  if (!isObject(expect)) return { lines: {}, values: { outcome: "completed", warnings: [] } };
  const lines: { [key: string]: number } = {};
  for (const key of Object.keys(expect)) {
    const at = `${pointer}/expect/${escapeSegment(key)}`;
    lines[key] = document.place(at).line;
    if (!(EXPECT_KEYS as readonly string[]).includes(key))
      report(
        reading,
        "TEST-KEY",
        at,
        `"${key}" cannot be expected.${didYouMean(key, EXPECT_KEYS)}`,
        `Use one of: ${EXPECT_KEYS.join(", ")}.`,
      );
  }
  const { snapshot } = expect;
  const parts = ["prompts", "path", "result"];
  for (const part of listOf(snapshot))
    if (!parts.some((name) => name === part))
      report(
        reading,
        "TEST-KEY",
        `${pointer}/expect/snapshot`,
        `${showValue(part)} is not a part of a snapshot.`,
        `Use one or more of: ${parts.join(", ")}.`,
      );
  return { lines, values: expect };
}

// The reader of evaluation tasks has these in common with tests.
export {
  groundOf as testGround,
  expectedOf as testExpected,
  isParameter as isTestParameter,
  unknownParameter as unknownTestParameter,
  besides as besideTest,
  report as reportTest,
};
