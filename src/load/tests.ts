/**
 * The test files of an agent: `.agent/<name>/tests/*.yaml` (`.yml`, `.json`). Pure over `files`; never throws. What a test
 * says about steps, labels, checks and parameters is held against the flow.
 */
import type { FileTree } from "../flow/files.ts";
import type { Around, FlowTest } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import type { Problem } from "../flow/problem.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import { checkTools, testAround, testGround } from "./test-around.ts";
import {
  isTestParameter,
  reportTest,
  requireTestFolder,
  strictReader,
  testDocument,
  testStep,
  unknownTestParameter,
  type TestReading,
} from "./test-reading.ts";
import { testExpected } from "./test-expect.ts";
import { testScript } from "./test-script.ts";
import { emptyDocument } from "./text/document.ts";
import { joinPath } from "./text/paths.ts";
import { readShape } from "./text/shape.ts";
import { checkGround, checkParts } from "./text/test-parts.ts";
import { TEST, TEST_FILE, type TestFileSource, type TestSource } from "./text/tests-shape.ts";

export type TestsRead = { readonly tests: readonly FlowTest[]; readonly problems: readonly Problem[] };

/** The paths of test files, in the order of their names. */
export function testPaths(name: string, files: FileTree): readonly string[] {
  const folder = testFolder(name);
  return (files.list(folder) ?? []).filter(isTestFile).map((file) => `${folder}/${file}`);
}

function testFolder(agent: string): string {
  return joinPath(".agent", `${agent}/tests`);
}

function isTestFile(name: string): boolean {
  return /^[^.].*\.(?:ya?ml|json)$/i.test(name) && !SETTINGS.test(name);
}

/** Beside the tests, and not one of them. */
const SETTINGS = /^settings\.(?:ya?ml|json)$/;

/** Files that look like tests and are not read because of their names, or because they are in a folder below. */
function unreadIn(agent: string, files: FileTree): readonly Finding[] {
  const folder = testFolder(agent);
  const names = (files.list(folder) ?? []).filter((name) => !isTestFile(name) && !SETTINGS.test(name));
  const within = names
    .filter((name) => !OWN_FOLDERS.has(name))
    .flatMap((name) => (files.list(`${folder}/${name}`) ?? []).map((inner) => `${name}/${inner}`));
  return [...names, ...within]
    .filter((name) => NAMED_LIKE_TESTS.test(name) && !/~$|\.sw[a-z]$/.test(name))
    .flatMap((name) => {
      const read = files.read(`${folder}/${name}`);
      if (read.kind !== "text" || !HOLDS_TESTS.test(read.text)) return [];
      return {
        code: "TEST-UNREAD",
        document: emptyDocument(`${folder}/${name}`),
        pointer: "",
        message: `${folder}/${name} holds tests that are not run.`,
        fix: `Move it to ${folder}/ under a name that ends in .yaml, .yml or .json and does not begin with a dot.`,
      };
    });
}

/** What tests use, and folders that are copied for them. */
const OWN_FOLDERS = new Set(["fixtures", "snapshots", "cassettes"]);
const NAMED_LIKE_TESTS = /ya?ml|json|\.test|(?:^|\/)[^.]+$/i;
const HOLDS_TESTS = /^(?:tests|"tests"|'tests') *:|^\s*\{\s*(?:"params"[^]*)?"tests"\s*:/m;

export function readTests(flow: Flow, files: FileTree): TestsRead {
  const findings: Finding[] = [];
  const tests = testPaths(flow.agent, files).flatMap((file) => readTestFile(flow, files, file, findings));
  findings.push(...unreadIn(flow.agent, files));
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
  if (document.value === null)
    refuse(reading, "", `${file} is empty.`, "Write tests in it, a list, or remove the file.");
  const source = readShape(TEST_FILE, document.value, "", reader);
  if (source === undefined || !isObject(document.value) || !Array.isArray(document.value.tests)) return [];
  const { tests: written, ...forAll } = document.value;
  checkParts(forAll, "", reader);
  knownParameters(reading, source, "");
  const shared: Shared = { source, around: testAround(reading, source, "") };
  const tests = (written as readonly Json[]).flatMap((test, at) =>
    casesOf(reading, shared, test, `/tests/${at}`),
  );
  const scripts = tests.map(({ script }) => script);
  if (source.tools.size > 0) checkTools(reading, source.tools.keys(), scripts, "");
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

/** One test, or one for each of its cases, with a name of its own. */
function casesOf(reading: TestReading, shared: Shared, written: Json, pointer: string): readonly FlowTest[] {
  const source = readQuietly(reading, written, pointer);
  if (source === undefined || !isObject(written)) {
    // The shape passes over an item that is null.
    if (written === null) refuse(reading, pointer, "The test is empty.", "Write its name and its script.");
    return [];
  }
  const { cases, ...rest } = written;
  const used = usedIn(rest);
  if (cases === undefined || cases === null) {
    for (const name of usedIn(withoutSaid(rest)))
      refuse(
        reading,
        pointer,
        `\${case.${name}} is used, and the test has no cases.`,
        "Add cases, a list of objects, or write the value itself.",
      );
    checkTest(reading, shared, written, pointer);
    return [testOf(reading, shared, source, pointer)];
  }
  const rows: readonly Json[] = Array.isArray(cases) ? cases : [];
  unusedIn(reading, rows, used, pointer);
  const tests = rows.flatMap((row, at) => {
    const place = `${pointer}/cases/${at}`;
    if (!isObject(row)) {
      if (row === null) refuse(reading, place, "The case is empty.", "Write its values, or remove it.");
      return [];
    }
    const lacking = [...used].filter((name) => own(row, name) === undefined);
    for (const name of lacking)
      refuse(
        reading,
        place,
        `The case has no value "${name}", and the test uses \${case.${name}}.${didYouMean(name, Object.keys(row))}`,
        `Add ${name} to the case.`,
      );
    if (lacking.length > 0) return [];
    const whole = replaced(rest, row);
    checkTest(reading, shared, whole, pointer);
    const filled = readQuietly(reading, whole, pointer);
    return filled === undefined ? [] : [testOf(reading, shared, filled, pointer)];
  });
  const names = new Set<string>();
  return tests.map((test, at) => {
    const isRepeated = names.has(test.name);
    names.add(test.name);
    return isRepeated ? numbered(test, at + 1) : test;
  });
}

function numbered(test: FlowTest, number: number): FlowTest {
  return { ...test, name: `${test.name} (case ${number})` };
}

/** What is wrong with the shape is reported for the file as a whole. */
function readQuietly({ document }: TestReading, written: Json, pointer: string): TestSource | undefined {
  return readShape(TEST, written, pointer, { document, code: "TEST-KEY", findings: [] });
}

/** What was recorded of a run may hold any text. */
function withoutSaid({ name = "", until = "", expect = {}, script = [] }: JsonObject): JsonObject {
  const replies = (Array.isArray(script) ? (script as readonly Json[]) : []).map((reply) => {
    if (!isObject(reply)) return reply;
    const { text: _text, output: _output, calls: _calls, error: _error, ...rest } = reply;
    return rest;
  });
  return { name, until, expect, replies };
}

/** The names in `${case.NAME}`. */
function usedIn(test: JsonObject): ReadonlySet<string> {
  return new Set(Array.from(JSON.stringify(test).matchAll(CASE), ([, name]) => name!));
}

const CASE = /\$\{case\.([\w-]+)\}/g;

/** Each name once, where it first stands. */
function unusedIn(
  reading: TestReading,
  rows: readonly Json[],
  used: ReadonlySet<string>,
  pointer: string,
): void {
  const seen = new Set(used);
  for (const [at, row] of rows.entries())
    for (const name of isObject(row) ? Object.keys(row) : []) {
      if (seen.has(name)) continue;
      seen.add(name);
      refuse(
        reading,
        `${pointer}/cases/${at}/${escapeSegment(name)}`,
        `The value "${name}" of the cases is never used.`,
        `Use it as \${case.${name}}, or remove it.`,
      );
    }
}

function refuse(reading: TestReading, pointer: string, message: string, fix: string): void {
  reportTest(reading, "TEST-KEY", pointer, message, fix);
}

function checkTest(reading: TestReading, { source }: Shared, written: Json, pointer: string): void {
  if (!isObject(written)) return;
  const reader = strictReader(reading);
  const isProject = (written.project ?? source.project) !== undefined;
  checkParts(written, pointer, reader);
  checkGround(written, pointer, isProject ? "project" : "memory", reader);
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
  return text.replaceAll(CASE, (all, name: string) => {
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
  if (ground.kind === "project")
    requireTestFolder(
      reading,
      ground.folder,
      source.project === undefined ? "/project" : `${pointer}/project`,
    );
  const script = testScript(reading, source, pointer);
  if (source.tools.size > 0) checkTools(reading, source.tools.keys(), [script], pointer);
  return {
    name: source.name ?? "a test",
    file: document.file,
    line: document.place(pointer).line,
    params,
    input: source.input ?? file.input ?? "",
    script,
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
