import assert from "node:assert/strict";
import { test } from "node:test";
import type { Parameter } from "../../src/flow/flow.ts";
import type { JsonObject } from "../../src/flow/json.ts";
import { coerceParameters, type Given } from "../../src/load/parameters.ts";

const PARAMETERS: readonly Parameter[] = [
  { name: "issue", type: "number", description: "the issue", flag: "--issue", required: true },
  {
    name: "iterateMax",
    type: "number",
    description: "",
    flag: "--iterate-max",
    required: false,
    default: 500,
    validation: { min: 1, max: 1000 },
  },
  { name: "resume", type: "boolean", description: "", flag: "--resume", required: false, default: false },
  {
    name: "label",
    type: "array",
    description: "",
    flag: "--label",
    required: false,
    validation: { max: 2, pattern: "^[a-z]+$" },
  },
  {
    name: "mode",
    type: "string",
    description: "",
    flag: "--mode",
    required: false,
    validation: { enum: ["fast", "slow"] },
  },
  {
    name: "title",
    type: "string",
    description: "",
    flag: "--title",
    required: false,
    validation: { min: 2 },
  },
  { name: "about", type: "object", description: "", flag: "--about", required: false },
];
const BASE = { issue: 1, iterateMax: 500, resume: false };

const GOOD: readonly [string, Given, JsonObject][] = [
  ["text becomes a number", { issue: "12" }, { ...BASE, issue: 12 }],
  ["a number stays one", { issue: 12 }, { ...BASE, issue: 12 }],
  ["a negative fraction", { issue: "-1.5" }, { ...BASE, issue: -1.5 }],
  ["defaults", { issue: 1 }, BASE],
  ["a flag instead of the name", { "--issue": "1", "iterate-max": "7" }, { ...BASE, iterateMax: 7 }],
  ["a switch", { issue: 1, resume: true }, { ...BASE, resume: true }],
  ...["yes", "Yes", "TRUE", "true", "1", 1].map((resume): (typeof GOOD)[number] => [
    `a switch that is ${JSON.stringify(resume)}`,
    { issue: 1, resume },
    { ...BASE, resume: true },
  ]),
  ...["no", "NO", "False", "false", "0", 0].map((resume): (typeof GOOD)[number] => [
    `a switch that is ${JSON.stringify(resume)}`,
    { issue: 1, resume },
    BASE,
  ]),
  ["a negated switch", { issue: 1, "no-resume": true }, BASE],
  ["one value of a list", { issue: 1, label: "a" }, { ...BASE, label: ["a"] }],
  ["repetition", { issue: 1, label: ["a", "b"] }, { ...BASE, label: ["a", "b"] }],
  ["a number as text", { issue: 1, title: 42 }, { ...BASE, title: "42" }],
  ["nothing given", { issue: 1, mode: undefined, title: null }, BASE],
  ["an object", { issue: 1, about: { a: 1 } }, { ...BASE, about: { a: 1 } }],
  ["text becomes an object", { issue: 1, about: '{"a":1}' }, { ...BASE, about: { a: 1 } }],
  ["one of the words", { issue: 1, mode: "slow" }, { ...BASE, mode: "slow" }],
];

for (const [name, given, args] of GOOD) {
  test(`given: ${name}`, () => {
    assert.deepEqual(coerceParameters(PARAMETERS, given), { args, problems: [] });
  });
}

const BAD: readonly [string, Given, string, RegExp][] = [
  ["required and not given", {}, "PARAM-MISSING", /"issue" is required \(the issue\)/],
  ["unknown", { issue: 1, isue: 2 }, "PARAM-UNKNOWN", /Did you mean "issue"/],
  ["a prototype's name", { issue: 1, constructor: 2 }, "PARAM-UNKNOWN", /no parameter "constructor"/],
  ["no number", { issue: "twelve" }, "PARAM-TYPE", /--issue is "twelve", not a number/],
  ["an empty number", { issue: " " }, "PARAM-TYPE", /--issue/],
  ["infinite", { issue: "Infinity" }, "PARAM-TYPE", /not a number/],
  ["a flag without its value", { issue: true }, "PARAM-TYPE", /--issue needs a value/],
  ["a text flag without its value", { issue: 1, title: true }, "PARAM-TYPE", /--title needs a value/],
  ["neither true nor false", { issue: 1, resume: "maybe" }, "PARAM-TYPE", /--resume is "maybe"/],
  ["more than once", { issue: ["1", "2"] }, "PARAM-TYPE", /--issue is given more than once/],
  ["by name and by flag", { issue: 1, "--issue": 2 }, "PARAM-TYPE", /more than once/],
  ["a negated number", { "no-issue": true }, "PARAM-TYPE", /cannot be negated/],
  ["below the least", { issue: 1, iterateMax: "0" }, "PARAM-RANGE", /--iterate-max is 0, less than 1/],
  ["above the greatest", { issue: 1, iterateMax: 1001 }, "PARAM-RANGE", /more than 1000/],
  ["none of the words", { issue: 1, mode: "fats" }, "PARAM-RANGE", /not one of: "fast", "slow"/],
  ["too many", { issue: 1, label: ["a", "b", "c"] }, "PARAM-RANGE", /of length 3, more than 2/],
  ["a member off the pattern", { issue: 1, label: ["A"] }, "PARAM-RANGE", /does not match/],
  ["no object", { issue: 1, about: "[1]" }, "PARAM-TYPE", /--about is "\[1\]", not a JSON object/],
  ["too short", { issue: 1, title: "x" }, "PARAM-RANGE", /of length 1, less than 2/],
];

for (const [name, given, code, says] of BAD) {
  test(`refused: ${name}`, () => {
    const { problems } = coerceParameters(PARAMETERS, given);
    assert.equal(problems.length, 1, JSON.stringify(problems));
    assert.equal(problems[0]!.code, code);
    assert.equal(problems[0]!.severity, "error");
    assert.match(problems[0]!.message, says);
    assert.ok(problems[0]!.fix !== "" && problems[0]!.file !== "");
  });
}

test("a required text is not empty, unless a rule of its own lets it be", () => {
  const text: Parameter = { name: "t", type: "string", description: "", flag: "--t", required: true };
  const cases: readonly (readonly [parameter: Parameter, value: string, refused: boolean])[] = [
    [text, "", true],
    [text, " \t", true],
    [text, "x", false],
    [{ ...text, required: false }, "", false],
    [{ ...text, validation: { min: 0 } }, "", false],
    [{ ...text, validation: { min: 1 } }, "", true],
    [{ ...text, validation: { max: 9 } }, "", true],
    [{ ...text, validation: { pattern: "^x*$" } }, "", false],
    [{ ...text, validation: { pattern: "^x+$" } }, "", true],
    [{ ...text, validation: { enum: ["", "a"] } }, "", false],
    [{ ...text, validation: { enum: ["a"] } }, "", true],
    [{ ...text, type: "array" }, "", false],
  ];
  for (const [parameter, value, refused] of cases) {
    const { problems } = coerceParameters([parameter], { t: value });
    assert.deepEqual(
      problems.map(({ code }) => code),
      refused ? ["PARAM-RANGE"] : [],
      JSON.stringify([parameter, value]),
    );
  }
});

test("what is unknown is answered with what is known", () => {
  const among = coerceParameters(PARAMETERS, { issue: 1, zzz: 2 }).problems[0];
  assert.match(among?.fix ?? "", /--issue, --/);
  const { problems } = coerceParameters([], { issue: 1 });
  assert.match(`${problems[0]?.message} ${problems[0]?.fix}`, /none; this agent takes no parameters/);
});
