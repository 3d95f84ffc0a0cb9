/**
 * The test files of an agent: `.agent/<name>/tests/*.yaml` (`.yml`, `.json`). Pure over `files`; never throws. What a test
 * says about steps, labels, checks and parameters is held against the flow.
 */
import type { FileTree } from "../flow/files.ts";
import { EXPECT_KEYS, type Around, type Expected, type FlowTest } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import type { Problem } from "../flow/problem.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import { testAround, testGround } from "./test-around.ts";
import {
  isTestParameter,
  reportTest,
  strictReader,
  testDocument,
  testStep,
  unknownTestParameter,
  valuesIn,
  type TestReading,
} from "./test-reading.ts";
import { testScript } from "./test-script.ts";
import { joinPath } from "./text/paths.ts";
import { readShape, showValue } from "./text/shape.ts";
import { checkGround, checkParts } from "./text/test-parts.ts";
import { TEST, TEST_FILE, type TestFileSource, type TestSource } from "./text/tests-shape.ts";

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

export function readTestFile(
  flow: Flow,
  files: FileTree,
  file: string,
  findings: Finding[],
): readonly FlowTest[] {
  const document = testDocument(files, file, findings);
  if (document === null) return [];
  const reading: TestReading = { flow, files, document, findings };
  const reader = strictReader(reading);
  const source = readShape(TEST_FILE, document.value, "", reader);
  if (source === undefined || !isObject(document.value) || !Array.isArray(document.value.tests)) return [];
  const { tests: written, ...forAll } = document.value;
  checkParts(forAll, "", reader);
  knownParameters(reading, source, "");
  const shared: Shared = { source, around: testAround(reading, source, "") };
  const tests = (written as readonly Json[]).flatMap((test, at) =>
    casesOf(reading, shared, test, `/tests/${at}`),
  );
  if (source.project !== undefined) checkGround(forAll, "", "project", reader);
  else if (tests.length > 0 && tests.every(({ ground }) => ground.kind === "memory"))
    checkGround(forAll, "", "memory", reader);
  onceEach(findings);
  return tests;
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

/** What a file says for all of its tests. */
type Shared = { readonly source: TestFileSource; readonly around: Around };

/** One test, or one for each of its cases. */
function casesOf(reading: TestReading, shared: Shared, written: Json, pointer: string): readonly FlowTest[] {
  const quiet = { ...reading, findings: [] };
  const source = readShape(TEST, written, pointer, {
    document: reading.document,
    code: "TEST-KEY",
    findings: quiet.findings,
  });
  if (source === undefined) return [];
  if (source.cases === undefined) {
    checkTest(reading, shared, written, pointer);
    return [testOf(reading, shared, source, pointer)];
  }
  const text = JSON.stringify(withoutCases(written));
  return source.cases.flatMap((one, at) => {
    if (!isObject(one)) return [];
    for (const name of Object.keys(one))
      if (at === 0 && !text.includes(`\${case.${name}}`))
        reportTest(
          reading,
          "TEST-KEY",
          `${pointer}/cases/${at}/${escapeSegment(name)}`,
          `The value "${name}" of the cases is never used.`,
          `Use it as \${case.${name}}, or remove it.`,
        );
    const whole = replaced(written, one);
    checkTest(reading, shared, whole, pointer);
    const filled = readShape(TEST, whole, pointer, {
      document: reading.document,
      code: "TEST-KEY",
      findings: [],
    });
    return filled === undefined ? [] : [testOf(reading, shared, filled, pointer)];
  });
}

function checkTest(reading: TestReading, { source }: Shared, written: Json, pointer: string): void {
  if (!isObject(written)) return;
  const reader = strictReader(reading);
  const isProject = (written.project ?? source.project) !== undefined;
  checkParts(written, pointer, reader);
  checkGround(written, pointer, isProject ? "project" : "memory", reader);
}

function withoutCases(test: Json): Json {
  if (!isObject(test)) return test;
  const { cases: _cases, ...rest } = test;
  return rest;
}

/** `${case.NAME}`, also in keys; alone in a string it keeps its type. */
function replaced(value: Json, one: JsonObject): Json {
  if (typeof value === "string") {
    const alone = /^\$\{case\.([\w-]+)\}$/.exec(value);
    return alone === null ? replacedText(value, one) : (own(one, alone[1]!) ?? value);
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => replaced(item, one));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [replacedText(key, one), replaced(member, one)]),
  );
}

function replacedText(text: string, one: JsonObject): string {
  return text.replaceAll(/\$\{case\.([\w-]+)\}/g, (all, name: string) => {
    const found = own(one, name);
    return found === undefined ? all : typeof found === "string" ? found : JSON.stringify(found);
  });
}

function knownParameters(
  reading: TestReading,
  { params }: Pick<TestSource, "params">,
  pointer: string,
): void {
  for (const name of params.keys())
    if (!isTestParameter(reading.flow, name)) unknownTestParameter(reading, pointer, name);
}

function testOf(
  reading: TestReading,
  { source: file, around }: Shared,
  source: TestSource,
  pointer: string,
): FlowTest {
  const { document } = reading;
  const params = Object.fromEntries([...file.params, ...source.params]);
  knownParameters(reading, source, pointer);
  const { until } = source;
  if (until !== undefined) testStep(reading, until, `${pointer}/until`);
  const ground = testGround(reading, source.project ?? file.project, source.git ?? file.git);
  if (ground.kind === "project" && reading.files.list(ground.folder) === null)
    reportTest(
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
    script: testScript(reading, source, pointer),
    ...(until !== undefined && { until }),
    around: testAround(reading, source, pointer, around),
    ground,
    expect: testExpected(reading, source, pointer),
    only: source.only,
    ...(source.skip !== undefined && { skip: source.skip }),
    generated: source.generated,
    covers: source.covers,
  };
}

/** `lines`: where each expectation is written. */
export function testExpected(
  reading: TestReading,
  { expect }: Pick<TestSource, "expect">,
  pointer: string,
): Expected {
  const { document } = reading;
  if (!isObject(expect)) return { lines: {}, values: { outcome: "completed", warnings: [] } };
  const lines: { [key: string]: number } = {};
  for (const key of Object.keys(expect)) {
    const at = `${pointer}/expect/${escapeSegment(key)}`;
    lines[key] = document.place(at).line;
    if (!(EXPECT_KEYS as readonly string[]).includes(key))
      reportTest(
        reading,
        "TEST-KEY",
        at,
        `"${key}" cannot be expected.${didYouMean(key, EXPECT_KEYS)}`,
        `Use one of: ${EXPECT_KEYS.join(", ")}.`,
      );
  }
  const { snapshot } = expect;
  const parts = ["prompts", "path", "result"];
  for (const part of valuesIn(snapshot))
    if (!parts.some((name) => name === part))
      reportTest(
        reading,
        "TEST-KEY",
        `${pointer}/expect/snapshot`,
        `${showValue(part)} is not a part of a snapshot.`,
        `Use one or more of: ${parts.join(", ")}.`,
      );
  return { lines, values: expect };
}
