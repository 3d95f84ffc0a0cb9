import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { roundsOf } from "../rounds.ts";
import { random } from "./random.ts";
import { FOLDER, loadStages } from "./stage-world.ts";
import type { Tree } from "./world.ts";

const ROUNDS = roundsOf(6_000);
const SEED = 20_260_401;

/** What an author, a merge or a bad tool may leave behind. */
const LITERALS: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  Number.NaN,
  1e308,
  "",
  "x",
  "plan",
  "end",
  "__proto__",
  "constructor",
  "parsed.green",
  "{{ctx.upstream[0].parsed.x}}",
  [],
  {},
  [null],
  [["plan"]],
  { $ref: "#" },
  { type: "object", properties: { a: { $ref: "#/properties/a" } } },
  { parallel: ["plan", "plan"] },
  { switch: "parsed", cases: { default: "plan" } },
  { execution: "parallel", nextStages: ["a"], join: "plan" },
  { __proto__: 1 },
];
const BITS = [
  "---\n",
  "{{",
  "}}",
  "${",
  "\\",
  ": ",
  "- ",
  "*a ",
  "&a ",
  "!x ",
  "\u0000",
  "\uFEFF",
  "[",
  "'",
  '"',
  "\t",
  "\r",
  "|\n",
];

/** Small files, so that many rounds are quick. */
const stage = (id: string, next: string, more = "", body = "") => ({
  [`${FOLDER}/stages/${id}.md`]: `---
id: ${id}
name: N
allowedTools: [Read]
completionTool: done
completionSchema: { type: object, required: [ok], properties: { ok: { type: boolean }, n: {} } }
retryPolicy: { maxAttempts: 2, backoff: none }
turnCap: 3
resolutionPolicy: skip
next: ${next}
${more}---
${body}`,
});
const GOOD: readonly Tree[] = [
  {
    ...stage(
      "plan",
      "end",
      "assert: [t]\ngate: t\noutput: { ok: parsed.ok }\ninputsSchema: {}\n",
      "{{ctx.task}} ${ctx.task}",
    ),
    [`${FOLDER}/machine.yaml`]: `entry: plan
id: release
inputs: { type: object, required: [task], properties: { task: { type: string } } }
checks: { t: { type: command, command: npm test, successWhen: "exitCode:0" } }
limits: { visits: 9 }
joinRule: declared
`,
  },
  {
    ...stage("plan", "b", "", "{{stage.id}}"),
    ...stage(
      "b",
      "{ switch: parsed.ok, cases: { true: end, default: plan } }",
      "",
      "{{ctx.upstream[0].parsed.ok}}",
    ),
    [`${FOLDER}/machine.yaml`]: "entry: plan\n",
  },
  {
    ...stage("plan", "{ parallel: [a, b], join: c }", "onFail: c\n"),
    ...stage("a", "end"),
    ...stage("b", "end"),
    ...stage("c", "end", "", "{{ctx.upstream[0].verdict}}"),
  },
];

for (const [place, good] of GOOD.entries()) {
  test(`machine ${place} is good before it is mutated`, () => {
    assert.deepEqual(loadStages(good).problems, []);
  });
}

test(`${ROUNDS} mutations of stage files and machine.yaml: never an exception, every problem in full`, () => {
  const next = random(SEED);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  let found = 0;
  let sound = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const good = GOOD[round % GOOD.length]!;
    const names = Object.keys(good);
    const changed: { [file: string]: string } = { ...good };
    for (let times = 1 + Math.floor(next() * 2); times > 0; times--) {
      const file = pick(names);
      changed[file] = next() < 0.4 ? mutateText(changed[file]!) : mutateValue(changed[file]!);
    }
    if (next() < 0.05) delete changed[pick(names)];
    const { flow, problems } = loadStages(changed);
    for (const problem of problems) {
      const { code, file, message, fix, why, pointer, line, column } = problem;
      const isFull = [code, file, message, fix, why].every((words) => words !== "");
      const isPlaced = (pointer === "" || pointer.startsWith("/")) && line >= 1 && column >= 1;
      if (!isFull || !isPlaced) assert.fail(`round ${round}: ${JSON.stringify(problem)}`);
    }
    const isSound = problems.every((problem) => problem.severity !== "error");
    if (flow === null) assert.ok(!isSound, `round ${round}: no flow and no error`);
    else {
      JSON.stringify(flow);
      if (isSound) assert.ok(Object.hasOwn(flow.steps, flow.entry), `round ${round}: no error, yet no entry`);
    }
    found += problems.length;
    if (isSound) sound += 1;
  }
  assert.ok(found > ROUNDS / 2 && sound > ROUNDS / 100, `${found} problems, ${sound} sound machines`);

  function mutateText(text: string): string {
    const at = Math.floor(next() * text.length);
    if (next() < 0.5) return text.slice(0, at) + pick(BITS) + text.slice(at);
    return text.slice(0, at) + text.slice(at + 1 + Math.floor(next() * 20));
  }

  /** Sets, removes, renames or copies one member somewhere in the YAML of a file. */
  function mutateValue(text: string): string {
    const [, front = "", body = ""] = text.startsWith("---\n") ? text.split(/^---\n/m) : ["", text];
    const value = valueOf(front);
    const owners: { [key: string]: unknown }[] = [];
    collect(value, owners);
    const owner = pick(owners);
    const key = owner === undefined ? undefined : pick(Object.keys(owner));
    if (owner === undefined || key === undefined) return text;
    const set = (name: string, member: unknown) =>
      Object.defineProperty(owner, name, {
        value: member,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    const way = next();
    if (way < 0.5) set(key, pick(LITERALS));
    else if (way < 0.7) delete owner[key];
    else if (way < 0.85) {
      const member = owner[key];
      delete owner[key];
      set(pick(["__proto__", `${key}x`, "default", "toString", ""]), member);
    } else set(key, structuredClone(pick(Object.values(pick(owners)))));
    // JSON is YAML too, and quick.
    const written = `${JSON.stringify(value)}\n`;
    return text.startsWith("---\n") ? `---\n${written}---\n${body}` : written;
  }
});

const known = new Map<string, unknown>();

function valueOf(text: string): unknown {
  if (!known.has(text)) {
    try {
      known.set(text, parse(text, { logLevel: "silent" }));
    } catch {
      known.set(text, null);
    }
  }
  return structuredClone(known.get(text));
}

function collect(value: unknown, owners: { [key: string]: unknown }[], depth = 0): void {
  if (typeof value !== "object" || value === null || depth > 20) return;
  owners.push(value as { [key: string]: unknown });
  for (const member of Object.values(value)) collect(member, owners, depth + 1);
}
