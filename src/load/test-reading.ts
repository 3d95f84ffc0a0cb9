/** What the readers of test files share: where they report, and how they name steps, labels, parameters and files. */
import type { FileTree } from "../flow/files.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { isObject, own, type Json } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import type { Code } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import { emptyDocument, readText, type Document } from "./text/document.ts";
import { escapesProject, joinPath, parentFolder } from "./text/paths.ts";
import type { Reader } from "./text/shape.ts";
import { readYaml, type YamlSize } from "./text/yaml.ts";

/** What reads one file. */
export type TestReading = {
  readonly flow: Flow;
  readonly files: FileTree;
  readonly document: Document;
  readonly findings: Finding[];
};

/** A misspelled key would silently test nothing: it is an error. */
export function strictReader({ document, findings }: TestReading): Reader {
  return { document, code: "TEST-KEY", unknown: "TEST-KEY", findings };
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
  const yaml = readYaml(file, read.text, undefined, undefined, TEST_SIZE);
  if (yaml.kind === "read") return yaml.document;
  const [fault] = yaml.faults;
  return broken(fault?.document ?? emptyDocument(file), fault?.what ?? "it is not valid");
}

/** A recorded run is written as a test with everything that was said in it: as much as can be read of one file. */
export const TEST_SIZE: YamlSize = { yamlLength: 8 * 1024 * 1024, yamlNodes: 500_000, yamlDepth: 80 };

export function reportTest(
  { document, findings }: TestReading,
  code: Code,
  pointer: string,
  message: string,
  fix: string,
): void {
  // Cases of a test share their places.
  const isKnown = (one: Finding) =>
    one.document === document && one.pointer === pointer && one.message === message;
  if (!findings.some(isKnown)) findings.push({ code, document, pointer, message, fix });
}

export function isTestParameter({ parameters, openArguments }: Flow, name: string): boolean {
  return openArguments === true || parameters.some((one) => one.name === name);
}

export function unknownTestParameter(reading: TestReading, pointer: string, name: string): void {
  const names = reading.flow.parameters.map((one) => one.name);
  const message = `"${name}" is not a parameter of the agent.${didYouMean(name, names)}`;
  reportTest(
    reading,
    "TEST-PARAM",
    `${pointer}/params/${escapeSegment(name)}`,
    message,
    `Use one of: ${names.join(", ") || "none"}.`,
  );
}

export function testStep(reading: TestReading, id: string, pointer: string): Step | null {
  const step = own(reading.flow.steps, id);
  if (step !== undefined) return step;
  const names = Object.keys(reading.flow.steps);
  reportTest(
    reading,
    "TEST-STEP",
    pointer,
    `"${id}" is not a step of the flow.${didYouMean(id, names)}`,
    `Use one of: ${names.join(", ")}.`,
  );
  return null;
}

export function testLabel(
  reading: TestReading,
  { decide, id, answer }: Step,
  label: string,
  pointer: string,
): void {
  if (answer.kind === "text") return;
  const labels = decide.by === "const" ? [decide.label] : [...decide.allow, ...decide.always];
  if (labels.includes(label)) return;
  reportTest(
    reading,
    "TEST-LABEL",
    pointer,
    `Step "${id}" cannot say "${label}".${didYouMean(label, labels)}`,
    `Use one of: ${labels.join(", ")}.`,
  );
}

/** `file:PATH` is the text of a file beside the tests; `{ text }` is a text as it is, whatever it begins with. */
export function testContent(reading: TestReading, given: Json, pointer: string): string {
  if (isObject(given) && typeof given.text === "string" && Object.keys(given).length === 1) return given.text;
  const text = typeof given === "string" ? given : JSON.stringify(given);
  return text.startsWith("file:") ? (testFixture(reading, text.slice(5), pointer) ?? "") : text;
}

export function testFixture(reading: TestReading, path: string, pointer: string): string | null {
  const read = readText(reading.files, besideTest(reading.document.file, path));
  if (read.kind === "text") return read.text;
  const why = read.kind === "missing" ? "does not exist" : `cannot be read: ${read.why}`;
  reportTest(reading, "TEST-FIXTURE", pointer, `${path} ${why}.`, "Name a file relative to the test file.");
  return null;
}

/** A path relative to the folder of the file; one that leads out of the project stays one. */
export function besideTest(file: string, path: string): string {
  return joinPath(parentFolder(file), path);
}

/** A folder that a test is run on a copy of. */
export function requireTestFolder(reading: TestReading, folder: string, pointer: string): void {
  const why = escapesProject(folder)
    ? "is not in the project"
    : reading.files.list(folder || ".") === null
      ? reading.files.read(folder).kind === "missing"
        ? "does not exist"
        : "is not a folder that can be read"
      : null;
  if (why === null) return;
  const fix = "Name a folder of the project, relative to the test file.";
  reportTest(reading, "TEST-FIXTURE", pointer, `The folder ${folder} ${why}.`, fix);
}

export function valuesIn(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : value === undefined ? [] : [value];
}
