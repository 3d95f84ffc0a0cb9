/** Tests as the text of a test file: short responses as STEP LABEL, everything else on one line where it fits. */
import {
  NOTHING_AROUND,
  type Around,
  type CheckGiven,
  type FlowTest,
  type TestReply,
} from "../flow/flow-test.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { isObject } from "../flow/json.ts";

/** `schemas`: the way from the file to the schemas for editors; null: there are none. `about`: lines of a comment at the top. */
export function writeTests(
  tests: readonly FlowTest[],
  about: readonly string[],
  schemas: string | null,
): string {
  const head = schemas === null ? [] : [`# yaml-language-server: $schema=${schemas}/tests.schema.json`];
  const lines = [...head, ...about.map((line) => `# ${line}`), "tests:", ...testItems(tests)];
  return `${lines.join("\n")}\n`;
}

/** Responses alone, as `run --script` takes them. They are whole: a script knows no labels. */
export function scriptText(script: readonly TestReply[], about: readonly string[]): string {
  const lines = [
    ...about.map((line) => `# ${line}`),
    "replies:",
    ...script.map((one) => `  - ${replyText(one)}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** The lines of tests as they stand below `tests:`. */
export function testItems(tests: readonly FlowTest[]): readonly string[] {
  return tests.flatMap(linesOf);
}

function linesOf(test: FlowTest): readonly string[] {
  const { name, params, input, script, until, around, expect, generated, covers } = test;
  const lines = [`  - name: ${scalar(name)}`];
  const add = (key: string, value: Json) => lines.push(`    ${key}: ${inline(value)}`);
  if (generated) add("generated", true);
  if (covers.length > 0) lines.push("    covers:", ...covers.map((id) => `      - ${scalar(id)}`));
  if (Object.keys(params).length > 0) add("params", params);
  if (input !== "") add("input", input);
  lines.push("    script:", ...script.map((reply) => `      - ${replyText(reply)}`));
  if (until !== undefined) add("until", until);
  for (const [key, value] of Object.entries(aroundOf(around))) add(key, value);
  if (Object.keys(expect.values).length > 0) {
    lines.push("    expect:");
    for (const [key, value] of Object.entries(expect.values)) lines.push(...expectLines(key, value));
  }
  return lines;
}

function expectLines(key: string, value: Json): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) return [`      ${key}: ${inline(value)}`];
  return [`      ${key}:`, ...(value as readonly Json[]).map((item) => `        - ${inline(item)}`)];
}

function replyText({ line: _line, ...reply }: TestReply): string {
  const { step, label, ...rest } = reply;
  if (step !== undefined && label !== undefined && Object.keys(rest).length === 0) return `${step} ${label}`;
  return inline(reply);
}

/** Only what is not as it is anyway. */
function aroundOf(around: Around): JsonObject {
  const checks = Object.entries(around.checks).map(
    ([name, given]) => [name, oneOrAll(given.map(checkText))] as const,
  );
  const tools = Object.entries(around.tools).map(
    ([name, given]) =>
      [
        name,
        oneOrAll(
          given.map(({ ok, content }) => {
            const text = asItIs(content);
            return ok && typeof text === "string" ? text : { ...(!ok && { ok }), content: text };
          }),
        ),
      ] as const,
  );
  const { hooks, sights, answers, github, clock, order } = around;
  return {
    ...(checks.length > 0 && { checks: Object.fromEntries(checks) }),
    ...(tools.length > 0 && { tools: Object.fromEntries(tools) }),
    ...(Object.keys(hooks).length > 0 && { hooks }),
    ...(sights.length > 0 && { sights }),
    ...(answers.length > 0 && { answers }),
    ...(github !== null && { github }),
    ...(clock !== NOTHING_AROUND.clock && { clock: new Date(clock).toISOString() }),
    ...(order.length > 0 && { order }),
  };
}

function oneOrAll(values: readonly Json[]): Json {
  return values.length === 1 ? values[0]! : values;
}

function checkText(given: CheckGiven): Json {
  return given.kind === "output"
    ? { exit: given.exit, stdout: asItIs(given.stdout), stderr: asItIs(given.stderr) }
    : given.kind;
}

/** What begins as the name of a fixture would be read as one. */
function asItIs(text: string): Json {
  return text.startsWith("file:") ? { text } : text;
}

/** YAML on one line. */
function inline(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(inline).join(", ")}]`;
  if (!isObject(value)) return typeof value === "string" ? scalar(value) : JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${scalar(key)}: ${inline(member)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/** Plain where YAML reads it as the same text. */
function scalar(text: string): string {
  const isPlain =
    /^[A-Za-z_][\w ./>-]*[\w.)]$|^[A-Za-z_]$/.test(text) &&
    !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain ? text : JSON.stringify(text);
}
