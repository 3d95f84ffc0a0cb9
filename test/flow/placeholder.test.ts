import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldPathText, parseFieldPath, parseStageBody, strangersIn } from "../../src/flow/placeholder.ts";

/** Text as it is; a placeholder as `<root:segment,segment>`. */
function shape(text: string): string {
  return parseStageBody(text)
    .map((part) => (part.kind === "text" ? part.text : `<${part.root}:${part.path.join()}>`))
    .join("");
}

const rows: readonly [name: string, text: string, parts: string][] = [
  ["plain text", "Just do it.", "Just do it."],
  ["nothing", "", ""],
  ["double braces", "a {{ctx.task}} b", "a <ctx:task> b"],
  ["blanks inside the braces", "{{ ctx.task\t}}", "<ctx:task>"],
  ["dollar and brace", "a ${ctx.task} b", "a <ctx:task> b"],
  ["dollar and brace with a path", "${ctx.a.b} ${ctx.upstream[0].x}", "<ctx:a,b> <ctx:upstream,0,x>"],
  ["an index is a segment", "{{ctx.upstream[12].parsed.items[0]}}", "<ctx:upstream,12,parsed,items,0>"],
  ["its own stage", "{{stage.id}}/{{stage.name}}", "<stage:id>/<stage:name>"],
  ["letters of any language", "{{ctx.课题}}", "<ctx:课题>"],
  ["dashes and underscores", "{{ctx.my-field.its_name}}", "<ctx:my-field,its_name>"],
  ["two in a row", "{{ctx.a}}{{ctx.b}}", "<ctx:a><ctx:b>"],
  ["braces around", "{{{ctx.a}}} ${{ctx.b}}", "{<ctx:a>} $<ctx:b>"],
  ["an escape", "\\{{ctx.a}} \\${ctx.b}", "{{ctx.a}} ${ctx.b}"],
  ["an escape of what is none", "\\{{x}} \\${HOME}", "{{x}} ${HOME}"],
  ["a backslash elsewhere", "C:\\x \\n", "C:\\x \\n"],
  ["two backslashes", "\\\\{{ctx.a}}", "\\{{ctx.a}}"],
  ["another root", "{{env.HOME}} {{task}} ${HOME}", "{{env.HOME}} {{task}} ${HOME}"],
  ["a root alone", "{{ctx}} ${ctx} {{stage}}", "{{ctx}} ${ctx} {{stage}}"],
  [
    "no expression",
    "{{ctx.a || 'b'}} {{#if ctx.a}} {{ctx.a()}}",
    "{{ctx.a || 'b'}} {{#if ctx.a}} {{ctx.a()}}",
  ],
  [
    "an index that is none",
    "{{ctx.a[x]}} {{ctx.a[-1]}} {{ctx.a[]}}",
    "{{ctx.a[x]}} {{ctx.a[-1]}} {{ctx.a[]}}",
  ],
  ["braces that do not close", "{{ctx.a ${ctx.b {{ctx.c}}", "{{ctx.a ${ctx.b <ctx:c>"],
  ["over two lines", "{{ctx.a\n}}", "{{ctx.a\n}}"],
];

for (const [name, text, parts] of rows) {
  test(`a body with ${name}`, () => assert.equal(shape(text), parts));
}

test("a part knows how and where it was written", () => {
  const [, part] = parseStageBody("\\{{ {{ ctx.a }}");
  assert.deepEqual(part, { kind: "value", root: "ctx", path: ["a"], written: "{{ ctx.a }}", at: 4 });
});

test("strangers are what looks like a placeholder and is none", () => {
  assert.deepEqual(
    strangersIn("{{env.A}} ${B} {{ctx.c}} \\{{d}}").map(({ name, at }) => [name, at]),
    [
      ["env.A", 0],
      ["B", 10],
    ],
  );
});

test("paths are read and told", () => {
  for (const path of ["parsed.ok", "parsed.items[0].name", "a"]) {
    assert.equal(fieldPathText(parseFieldPath(path)!), path);
  }
  for (const path of ["", ".a", "a.", "a..b", "a b", "a[", "$.a"]) assert.equal(parseFieldPath(path), null);
});

test("a very long body is read in one go", () => {
  const text = `${"{{ctx.a ".repeat(50_000)}${"{".repeat(100_000)}${"{{ctx.a}}".repeat(1000)}`;
  assert.equal(parseStageBody(text).filter((part) => part.kind === "value").length, 1000);
});
