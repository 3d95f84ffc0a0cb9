import assert from "node:assert/strict";
import { test } from "node:test";
import { readPath } from "../../src/flow/json.ts";
import { repeatedMembers } from "../../src/flow/text/places.ts";
import { load, REGISTRY, tree } from "./world.ts";

const REPEATED: readonly [name: string, text: string, found: readonly [string, number, number][]][] = [
  ["nothing twice", '{ "a": { "a": 1 }, "b": [{ "a": 1 }, { "a": 2 }], "c": "\\"a\\": 1" }', []],
  ["at the top", '{ "a": 1,\n  "b": 2, "a": 3 }', [["/a", 2, 11]]],
  [
    "three times",
    '{ "a": 1, "a": 2,\n"a": 3 }',
    [
      ["/a", 1, 11],
      ["/a", 2, 1],
    ],
  ],
  ["within a list", '[0, {}, { "x/y": 1, "x/y": { "z": [] } }]', [["/2/x~1y", 1, 21]]],
  ["spelled in two ways", '{ "a": 1, "\\u0061": 2 }', [["/a", 1, 11]]],
  ["in the first of two", '{ "p": { "q": 1, "q": 2 }, "r": { "q": 3 } }', [["/p/q", 1, 18]]],
  ["a value like a key", '{ "a": "a", "b": ["a", "a"] }', []],
  ["names of the language", '{ "__proto__": 1, "toString": 2, "__proto__": 3 }', [["/__proto__", 1, 34]]],
];

for (const [name, text, found] of REPEATED) {
  test(`members that stand twice: ${name}`, () => {
    assert.deepEqual(
      repeatedMembers(text).map(({ pointer, place }) => [pointer, place.line, place.column]),
      found,
    );
  });
}

/** What is put before a line of a good file, and what is then found: at the second place, which is the line itself. */
const ROWS: readonly {
  readonly name: string;
  readonly file: string;
  readonly before: string;
  readonly put: string;
  readonly severity: "error" | "warning";
  readonly pointer: string;
  readonly step: string | null;
}[] = [
  {
    name: "two steps of one id",
    file: "steps_registry.json",
    before: '    "closure.issue": {\n      "stepId": "closure.issue",\n      "name": "Issue Closure Prompt"',
    put: '    "closure.issue": { "stepId": "closure.issue" },\n',
    severity: "error",
    pointer: "/steps/closure.issue",
    step: "closure.issue",
  },
  {
    name: "a key of a step",
    file: "steps_registry.json",
    before: '      "c2": "continuation"',
    put: '      "c2": "initial",\n',
    severity: "warning",
    pointer: "/steps/continuation.issue/c2",
    step: "continuation.issue",
  },
  {
    name: "a key of agent.json",
    file: "agent.json",
    before: '  "name": "iterator"',
    put: '  "name": "other",\n',
    severity: "warning",
    pointer: "/name",
    step: null,
  },
  {
    name: "a key of a schema",
    file: "schemas/issue.schema.json",
    before: '  "closure.issue": {',
    put: '  "closure.issue": {},\n',
    severity: "warning",
    pointer: "/closure.issue",
    step: null,
  },
];

for (const { name, file, before, put, severity, pointer, step } of ROWS) {
  test(`DUPLICATE-KEY: ${name}`, () => {
    const path = `.agent/iterator/${file}`;
    const good = tree();
    const text = good[path]!;
    const at = text.indexOf(before);
    assert.ok(at > 0);
    const { problems } = load({ ...good, [path]: text.slice(0, at) + put + text.slice(at) });
    const line = (text.slice(0, at) + put).split("\n").length;
    const column = before.length - before.trimStart().length + 1;
    assert.deepEqual(
      problems.map((one) => [one.code, one.severity, one.file, one.line, one.column, one.pointer, one.step]),
      [["DUPLICATE-KEY", severity, path, line, column, pointer, step]],
    );
  });
}

/** A vital key under a wrong name: its name is the one error, and nothing follows from its absence. */
const MISSPELLED: readonly (readonly [owner: string, key: string, written: string])[] = [
  ["/steps/initial.issue/structuredGate", "allowedIntents", "AllowedIntents"],
  ["/steps/initial.issue/structuredGate", "intentField", "intentfield"],
  ["/steps/initial.issue/structuredGate", "handoffFields", "handoffField"],
  ["/steps/continuation.issue", "transitions", "Transitions"],
  ["/steps/continuation.issue", "structuredGate", "structured_gate"],
  ["/steps/closure.issue", "stepId", "step_id"],
  ["", "steps", "stepss"],
  ["", "entryStepMapping", "entryStepMaping"],
  ["", "validators", "validator"],
  ["", "failurePatterns", "failurePattern"],
  ["", "validationSteps", "validationStep"],
];

for (const [owner, key, written] of MISSPELLED) {
  test(`"${written}" in ${owner || "the registry"} is one error`, () => {
    const value = readPath(REGISTRY, owner === "" ? [key] : [...owner.slice(1).split("/"), key]);
    const changes = { [`registry ${owner}/${key}`]: undefined, [`registry ${owner}/${written}`]: value };
    const { problems } = load(tree(changes));
    assert.deepEqual(
      problems.map((one) => [one.code, one.severity, one.pointer, one.mend?.[0]?.kind]),
      [["UNKNOWN-KEY", "error", `${owner}/${written}`, "rename"]],
    );
    assert.match(problems[0]!.message, new RegExp(`"${written}" is not a key of .* Did you mean "${key}"`));
  });
}

test("the same wrong key in two steps is two errors, and nothing else", () => {
  const gate = (id: "initial.issue" | "closure.issue") => {
    const { allowedIntents, ...rest } = REGISTRY.steps[id].structuredGate;
    return { ...rest, AllowedIntents: allowedIntents };
  };
  const { problems } = load(
    tree({
      "registry /steps/initial.issue/structuredGate": gate("initial.issue"),
      "registry /steps/closure.issue/structuredGate": gate("closure.issue"),
    }),
  );
  assert.deepEqual(
    problems.map((one) => one.code),
    ["UNKNOWN-KEY", "UNKNOWN-KEY"],
  );
});

test("a misspelled key with a default only warns, and is not read, also where vital keys are missing", () => {
  const { problems, flow } = load(tree({ "registry /pathTemplates": "nowhere/{c3}.md" }));
  assert.deepEqual(
    problems.map((one) => [one.code, one.severity, one.pointer]),
    [["UNKNOWN-KEY", "warning", "/pathTemplates"]],
  );
  assert.match(flow?.steps["initial.issue"]?.prompt.file ?? "", /initial\/issue\/f_default\.md$/);
});

test("a key whose absence only warns does no more than warn under a wrong name", () => {
  const { problems } = load(
    tree({ "agent /displayName": undefined, "agent /displayname": "Iterator Agent" }),
  );
  assert.deepEqual(
    problems.map((one) => one.severity),
    ["warning", "warning"],
  );
});

test("a key without which a run is the same only warns, and is not read", () => {
  const { problems, flow } = load(tree({ "agent /runner/boundaries/permissionmode": "bypassPermissions" }));
  assert.deepEqual(
    problems.map((one) => [one.code, one.severity]),
    [["UNKNOWN-KEY", "warning"]],
  );
  assert.equal(flow?.settings.boundaries.permissionMode, "acceptEdits");
});

/** A key of one place that stands in another, and what is said of the place that it belongs to. */
const MISPLACED: readonly (readonly [place: string, says: RegExp, isMisplaced: boolean])[] = [
  ["registry /structuredGate", /It belongs in steps\.NAME\./, true],
  ["registry /steps/initial.issue/entryStepMapping", /It belongs in .*steps_registry\.json\./, true],
  ["registry /steps/initial.issue/handoffFields", /It belongs in steps\.NAME\.structuredGate\./, true],
  ["agent /defaultModel", /It belongs in runner\.flow\./, true],
  ["agent /runner/permissionMode", /It belongs in runner\.boundaries\./, true],
  // A key of many places may be meant for any of them.
  [
    "registry /steps/initial.issue/structuredGate/description",
    /is not a key of [^ ]*structuredGate\.$/,
    false,
  ],
  ["registry /unheardOf", /is not a key of [^ ]*\.json\.$/, false],
];
for (const [place, says, isMisplaced] of MISPLACED) {
  test(`a key in the wrong place: ${place}`, () => {
    const { problems } = load(tree({ [place]: {} }));
    const [found, ...others] = problems.filter(({ code }) => code === "UNKNOWN-KEY");
    assert.deepEqual([found?.pointer, others], [place.slice(place.indexOf("/")), []]);
    assert.match(found!.message, says);
    assert.match(found!.fix, isMisplaced ? /^Move "/ : /^Remove "/);
    assert.match(found!.why, /wrong place/);
  });
}
