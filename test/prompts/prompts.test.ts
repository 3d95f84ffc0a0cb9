import assert from "node:assert/strict";
import { test } from "node:test";
import type { Files, PromptRef } from "../../src/flow/files.ts";
import type { StopRule } from "../../src/flow/flow.ts";
import { composer } from "../../src/prompts/compose.ts";
import { findPrompt, stripFrontMatter } from "../../src/prompts/find.ts";
import { renderRetry } from "../../src/prompts/retry.ts";
import { parseTemplate, renderTemplate, templateNames } from "../../src/flow/text/template.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const files = (...paths: readonly string[]): Files => ({
  read: (path) => (paths.includes(path) ? { kind: "text", text: `text of ${path}` } : { kind: "missing" }),
});
const ref: PromptRef = {
  c1: "steps",
  c2: "initial",
  c3: "issue",
  edition: "default",
  adaptation: null,
  template: "{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md",
  templateNoAdaptation: "{c1}/{c2}/{c3}/f_{edition}.md",
  bases: ["base", "fallback"],
  variables: ["topic"],
};
const adapted = { ...ref, edition: "failed", adaptation: "git-dirty" };

const places: readonly (readonly [
  name: string,
  ref: PromptRef,
  there: readonly string[],
  file: string | null,
  tried: number,
])[] = [
  [
    "the first folder wins",
    ref,
    ["base/steps/initial/issue/f_default.md", "fallback/steps/initial/issue/f_default.md"],
    "base/steps/initial/issue/f_default.md",
    1,
  ],
  [
    "the next folder is tried",
    ref,
    ["fallback/steps/initial/issue/f_default.md"],
    "fallback/steps/initial/issue/f_default.md",
    2,
  ],
  [
    "the adaptation is tried everywhere first",
    adapted,
    ["base/steps/initial/issue/f_failed.md", "fallback/steps/initial/issue/f_failed_git-dirty.md"],
    "fallback/steps/initial/issue/f_failed_git-dirty.md",
    2,
  ],
  [
    "then the edition alone",
    adapted,
    ["base/steps/initial/issue/f_failed.md"],
    "base/steps/initial/issue/f_failed.md",
    3,
  ],
  ["nothing found names every place", adapted, [], null, 4],
  [
    "an own template is honoured",
    { ...ref, templateNoAdaptation: "{c3}-{c2}.txt" },
    ["base/issue-initial.txt"],
    "base/issue-initial.txt",
    1,
  ],
  [
    "without an adaptation its place is empty",
    { ...ref, templateNoAdaptation: "{c3}-{adaptation}.txt" },
    ["base/issue-.txt"],
    "base/issue-.txt",
    1,
  ],
  [
    "a climbing name is refused unread",
    { ...ref, c3: "../../etc" },
    ["base/steps/initial/../../etc/f_default.md"],
    null,
    1,
  ],
  ...(["./base", "base/", "base//", "/base"] as const).map(
    (base) =>
      [
        `the folder ${base}`,
        { ...ref, bases: [base] },
        ["base/steps/initial/issue/f_default.md"],
        "base/steps/initial/issue/f_default.md",
        1,
      ] as const,
  ),
  ["the same folder twice is tried once", { ...ref, bases: ["base", "./base"] }, [], null, 1],
  [
    "c1 may name nested folders",
    { ...ref, c1: "steps/v2" },
    ["base/steps/v2/initial/issue/f_default.md"],
    "base/steps/v2/initial/issue/f_default.md",
    1,
  ],
  ["only c1 may", { ...ref, c2: "a/b" }, ["base/steps/a/b/issue/f_default.md"], null, 1],
  ["a folder above is refused unread", { ...ref, c1: "steps/.." }, [], null, 1],
  ["a name with a NUL is refused unread", { ...ref, edition: "a\0b" }, [], null, 1],
];
for (const [name, where, there, file, tried] of places) {
  test(`prompt files: ${name}`, () => {
    const found = findPrompt(files(...there), where);
    assert.equal(found.file, file);
    assert.equal(found.tried.length, tried, found.tried.join("\n"));
    assert.doesNotMatch(found.tried.join("\n"), /undefined|missing/);
    assert.deepEqual(found.variables, ref.variables);
    if (file !== null) assert.equal(found.text, `text of ${file}`);
  });
}

test("prompt files: one that cannot be read is passed over, and the reason is kept with what was tried", () => {
  const second = "fallback/steps/initial/issue/f_default.md";
  for (const kind of ["refused", "unreadable"] as const) {
    const read: Files["read"] = (path) =>
      path === second ? { kind: "text", text: "second" } : { kind, why: "it is a link" };
    const found = findPrompt({ read }, ref);
    const first = `base/steps/initial/issue/f_default.md (${kind}: it is a link)`;
    assert.deepEqual([found.file, found.text, found.tried], [second, "second", [first, second]]);
  }
});

const heads: readonly [name: string, text: string, body: string][] = [
  ["is removed", "---\nstepId: a\n---\n\nBody\n", "Body"],
  ["may be empty", "---\n---\nBody", "Body"],
  ["may have Windows line ends", "---\r\na: 1\r\n---\r\nBody", "Body"],
  ["may come after a byte order mark", "\uFEFF---\na: 1\n---\nBody", "Body"],
  ["before a byte order mark is removed, and the mark is text", "---\na: 1\n---\nBo\uFEFFdy", "Bo\uFEFFdy"],
  ["that is never closed is text", "---\na: 1\nBody", "---\na: 1\nBody"],
  ["further down is text", "Body\n---\na\n---", "Body\n---\na\n---"],
];
for (const [name, text, body] of heads) {
  test(`front matter ${name}`, () => assert.equal(stripFrontMatter(text), body));
}

const values: { readonly [name: string]: string } = {
  a: "A",
  hostile: "{uv-a} $& $1 {input_text}",
  "with-dash": "D",
};
const lookup = (name: string) => values[name] ?? null;
const templates: readonly [text: string, result: string][] = [
  ["plain { braces } and {json: 1}", "plain { braces } and {json: 1}"],
  ["{uv-a}{uv-a}", "AA"],
  ["<{uv-hostile}>", "<{uv-a} $& $1 {input_text}>"],
  ["{uv-with-dash}", "D"],
  ["{{uv-a}}", "{A}"],
  ["{uv-}", "{uv-}"],
];
for (const [text, result] of templates) {
  test(`the template ${JSON.stringify(text)} is rendered in one pass`, () => {
    assert.deepEqual(renderTemplate(parseTemplate(text), lookup), { kind: "text", text: result });
  });
}

test("a missing value ends the rendering and is named", () => {
  assert.deepEqual(renderTemplate(parseTemplate("{uv-a} {uv-b}"), lookup), { kind: "missing", name: "b" });
  assert.deepEqual(templateNames(parseTemplate("{uv-a} {uv-b} {uv-a} {input_text}")), [
    "a",
    "b",
    "input_text",
  ]);
});

const params = {
  name: "n",
  secret: "hidden",
  files: ["a.ts", "{{secret}}"],
  tests: [{ name: "t1", file: "f" }, { name: "t2" }],
  none: [],
  zero: 0,
  deep: { b: { c: true } },
};
const retries: readonly [text: string, result: string][] = [
  ["{{name}} {{missing}}!", "n !"],
  ["{{deep.b.c}}", "true"],
  ["{{files}}", "a.ts, {{secret}}"],
  ["{{#each files}}[{{this}}]{{/each}}", "[a.ts][{{secret}}]"],
  ["{{#each tests}}{{this.name}}:{{this.file}};{{/each}}", "t1:f;t2:;"],
  ["{{#if none}}yes{{else}}no{{/if}}{{#if zero}}yes{{/if}}{{#if name}}yes{{/if}}", "noyes"],
  ["{{#if files}}{{#each files}}{{#if this}}+{{/if}}{{/each}}{{/if}}", "++"],
  ["{{#each missing}}x{{/each}}", ""],
  ["{{constructor}}{{__proto__}}{{toString}}", ""],
  ["{{/each}} {{#if name}} open", "{{/each}} {{#if name}} open"],
];
for (const [text, result] of retries) {
  test(`the retry text ${JSON.stringify(text)} renders`, () =>
    assert.equal(renderRetry(text, params), result));
}

test("the system prompt knows the agent and the criteria, and leaves what it does not know", () => {
  const flow = sketchFlow(
    { a: { edges: { next: null } } },
    { criteria: "Close when done.", constants: { label_done: "done" } },
  );
  const system = {
    ...flow.system,
    text: "{uv-agent_name}|{uv-verdict_criteria}|{uv-label_done}|{uv-other}|{input_text}",
  };
  assert.equal(composer.system({ ...flow, system }), "sketch|Close when done.|done|{uv-other}|{input_text}");
});

const SHARED = { args: {}, input: "", iterations: 3, handoff: {}, last: null };
const any = (...of: readonly StopRule[]): StopRule => ({ kind: "any", of });
const TOLD: readonly [name: string, stop: StopRule, text: string, says: string][] = [
  [
    "a count, without the room to mend",
    { kind: "visits", count: 4 },
    "{uv-max_iterations}/{uv-remaining}",
    "4/1",
  ],
  ["a ceiling", { kind: "end" }, "{uv-max_iterations}/{uv-remaining}", "9/6"],
  [
    "a keyword among other conditions",
    any({ kind: "visits", count: 4 }, { kind: "keyword", text: "DONE" }),
    "{uv-completion_keyword}",
    "DONE",
  ],
  ["status checks", any({ kind: "checks", count: 5 }), "{uv-check_count}/{uv-max_checks}", "1/5"],
];

for (const [name, stop, text, says] of TOLD) {
  test(`a prompt is told of ${name}`, () => {
    const flow = sketchFlow(
      { a: { edges: { next: "b" }, free: true }, b: { kind: "close", edges: { closing: null } } },
      { stop, limits: { visits: 9 } },
    );
    const prompt = { file: "p.md", text, tried: [], variables: [] };
    const step = { ...flow.steps["a"]!, prompt, answer: { kind: "text" } as const };
    const scene = { ...SHARED, visits: { a: 2, b: 1 } };
    assert.deepEqual(composer.say(flow, step, { kind: "prompt" }, scene), { kind: "text", text: says });
  });
}
