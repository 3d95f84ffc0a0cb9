/** Foreign text of any length and shape: what is done with it takes time in proportion to its length. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readBody } from "../../src/backends/ai-sdk/error-text.ts";
import { oneLine } from "../../src/effects/process/output.ts";
import { extractObject } from "../../src/engine/decide/answer.ts";
import { everyFault, schemaFault, validate } from "../../src/engine/schema/schema.ts";
import { fencesIn } from "../../src/flow/text/fences.ts";
import { jsonLine, shown, shownInLine } from "../../src/flow/text/harmless.ts";
import type { Json, JsonSchema } from "../../src/flow/json.ts";
import { parseStageBody } from "../../src/flow/text/placeholder.ts";
import { scanJson } from "../../src/flow/text/places.ts";
import { readYaml } from "../../src/load/text/yaml.ts";
import { renderRetry } from "../../src/prompts/retry.ts";
import { parseLenient, parseTemplate } from "../../src/flow/text/template.ts";
import { toLine } from "../../src/tell/log-line.ts";
import { assertLinear } from "../linear.ts";

const UNITS = [
  " ",
  "\n",
  "\t",
  " \n",
  '"',
  "'",
  "`",
  "```\n",
  "~~~\n",
  "-",
  "---\n",
  "{",
  "{}",
  "[",
  "(",
  "a",
  "a ",
  ".",
  "../",
  "\\",
  '\\"',
];
const MORE = [
  "${",
  "{{ ",
  "{{",
  "{uv-a",
  "#",
  "*",
  ":",
  ": ",
  "a: b\n",
  "- a\n",
  "{{#each a}}",
  "{{#if a}}",
  "\u001b[",
  "\u001b]",
  "\u2028",
  "😀",
  ",",
  "<!-- -->",
  "<!-- --> ",
  "<title",
  "data: {\n",
];
const ENDS = ["", "x y z", "}"];

const WORK: { readonly [name: string]: (text: string) => unknown } = {
  shown,
  shownInLine,
  jsonLine,
  fencesIn: (text) => [...fencesIn(text)],
  parseStageBody,
  parseTemplate,
  parseLenient,
  renderRetry: (text) => renderRetry(text, { a: ["x"] }),
  scanJson,
  // The parser makes an error with a trace for every other character: a part of the text says as much.
  readYaml: (text) => readYaml("a.yaml", text.slice(0, text.length / 8) + text.slice(-5)),
  toLine: (text) => toLine("", ["info", text, { text }]),
  extractObject,
  oneLine,
  readBody,
  "readBody of a page": (text) => readBody(`<html>${text}`),
  "readBody of a page behind a comment": (text) => readBody(`<?xml?><!-- ${text}`),
};

describe("eight times the text takes far less than sixty-four times the work", () => {
  for (const [name, work] of Object.entries(WORK)) {
    test(name, async () => {
      for (const unit of [...UNITS, ...MORE]) {
        for (const end of ENDS) await assertLinear(work, unit, end);
      }
    });
  }
});

test("lists in lists do not multiply without end", () => {
  const nested = `${"{{#each a}}".repeat(20)}x${"{{/each}}".repeat(20)}`;
  const said = renderRetry(nested, { a: Array.from({ length: 10 }, (_, at) => at) });
  assert.ok(said.length < 2 * 1024 * 1024);
  assert.match(said, /\[… cut: the prompt would be longer/);
  assert.equal(renderRetry("{{#each a}}{{this}},{{/each}}", { a: [1, 2] }), "1,2,");
});

describe("judging an answer by a schema", () => {
  let chain: Json = {};
  for (let depth = 0; depth < 60; depth += 1) chain = { a: chain };
  const twice = { type: "object", properties: { a: { $ref: "#/$defs/n" } } };
  const rows: readonly (readonly [name: string, schema: JsonSchema, value: Json, says: RegExp | null])[] = [
    [
      "alternatives that double",
      {
        $ref: "#/$defs/n",
        $defs: {
          n: {
            anyOf: [
              { ...twice, required: ["y"] },
              { ...twice, required: ["z"] },
            ],
          },
        },
      },
      chain,
      /too large/,
    ],
    ["a reference to itself", { $ref: "#" }, {}, /too large/],
    [
      "many items that differ",
      { properties: { l: { uniqueItems: true } } },
      { l: Array.from({ length: 30_000 }, (_, at) => ({ at })) },
      /too large/,
    ],
    [
      "a few items that differ",
      { properties: { l: { uniqueItems: true } } },
      { l: Array.from({ length: 500 }, (_, at) => ({ at })) },
      null,
    ],
    [
      "a few that do not",
      { properties: { l: { uniqueItems: true } } },
      { l: [{ a: 1 }, { a: 1 }] },
      /duplicate items/,
    ],
    [
      "many words",
      { properties: { l: { items: { enum: Array.from({ length: 9_000 }, (_, at) => at) } } } },
      { l: Array.from({ length: 90_000 }, () => 8_999) },
      /too large/,
    ],
    [
      "many parts of a plain schema",
      {
        type: "object",
        properties: {
          l: {
            type: "array",
            items: { type: "string", enum: Array.from({ length: 9_000 }, (_, at) => `${at}`) },
          },
        },
      },
      { l: Array.from({ length: 90_000 }, () => "8999") },
      /too large/,
    ],
    [
      "a pattern",
      { properties: { s: { pattern: "^(a+)+$" } } },
      { s: `${"a".repeat(50_000)}!` },
      /must match pattern/,
    ],
    ["a pattern that fits", { properties: { s: { pattern: "^(a+)+$" } } }, { s: "a".repeat(50_000) }, null],
    [
      "a recursive schema of trees",
      { $ref: "#/$defs/n", $defs: { n: { type: "object", properties: { a: { $ref: "#/$defs/n" } } } } },
      chain,
      null,
    ],
  ];
  for (const [name, schema, value, says] of rows) {
    test(name, () => {
      // The same at every time: nothing depends on how fast the machine is.
      for (let round = 0; round < 3; round += 1) {
        const found = validate(schema, value);
        if (says === null) assert.deepEqual(found, []);
        else assert.match(found.join(), says);
        assert.equal(everyFault(schema, value).length > 0, says !== null);
      }
    });
  }

  for (const [name, schema, why] of [
    [
      "too many alternatives",
      { anyOf: Array.from({ length: 3_000 }, (_, at) => ({ const: { at } })) },
      /more than 2000 schemas/,
    ],
    [
      "too many patterns",
      { patternProperties: Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`^a${at}`, {}])) },
      /more than 200 patterns/,
    ],
    [
      "a reference elsewhere",
      { properties: { a: { $ref: "other.json" } } },
      /JSON pointer into the same schema/,
    ],
    ["a pattern that refers back", { properties: { a: { pattern: "(a)\\1" } } }, /refers back/],
  ] as const) {
    test(`${name} is said before the schema is used`, () => {
      for (let round = 0; round < 2; round += 1) assert.match(schemaFault(schema) ?? "", why);
    });
  }
});
