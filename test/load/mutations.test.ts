import assert from "node:assert/strict";
import { test } from "node:test";
import { load, tree, type Tree } from "./world.ts";
import { random } from "./random.ts";

const ROUNDS = 20_000;
const SEED = 20_260_320;

/** What an author, a merge or a bad tool may leave behind. */
const LITERALS: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  "",
  "x",
  "initial.issue",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "#/definitions/base",
  "##",
  "{uv-x}",
  [],
  {},
  [null],
  [[]],
  { $ref: "#" },
  { target: null },
  { __proto__: 1 },
];

test(`${ROUNDS} mutations of the good files: never an exception, every problem in full`, () => {
  const next = random(SEED);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const good = tree();
  const json = Object.keys(good).filter((file) => file.endsWith(".json"));
  let found = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const changed: { [file: string]: string } = { ...good };
    for (let times = 1 + Math.floor(next() * 3); times > 0; times--) {
      const file = pick(json);
      const text = changed[file]!;
      changed[file] = next() < 0.15 ? mutateText(text, next) : mutateValue(text, next, pick);
    }
    if (next() < 0.1) delete changed[pick(Object.keys(good))];
    found += check(changed, round);
  }
  assert.ok(found > ROUNDS, `only ${found} problems`);
});

function check(files: Tree, round: number): number {
  const { flow, problems } = load(files);
  for (const problem of problems) {
    const whole = `round ${round}: ${JSON.stringify(problem)}`;
    assert.ok(
      problem.code !== "" &&
        problem.file !== "" &&
        problem.message !== "" &&
        problem.fix !== "" &&
        problem.why !== "",
      whole,
    );
    assert.match(problem.pointer, /^(?:\/.*)?$/s, whole);
    assert.ok(problem.line >= 1 && problem.column >= 1, whole);
  }
  if (flow === null)
    assert.ok(
      problems.some((problem) => problem.severity === "error"),
      `round ${round}: no flow and no error`,
    );
  else {
    JSON.stringify(flow);
    const isSound = problems.every((problem) => problem.severity !== "error");
    if (isSound) assert.ok(Object.hasOwn(flow.steps, flow.entry), `round ${round}: no error, yet no entry`);
  }
  return problems.length;
}

function mutateText(text: string, next: () => number): string {
  const at = Math.floor(next() * text.length);
  return text.slice(0, at) + text.slice(at + 1 + Math.floor(next() * 20));
}

/** Sets, removes, renames or copies one member somewhere in the value. */
function mutateValue(text: string, next: () => number, pick: <T>(list: readonly T[]) => T): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const owners: { [key: string]: unknown }[] = [];
  collect(value, owners);
  const owner = pick(owners);
  if (owner === undefined) return text;
  const key = pick(Object.keys(owner));
  if (key === undefined) return text;
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
  return JSON.stringify(value, null, 1);
}

function collect(value: unknown, owners: { [key: string]: unknown }[]): void {
  if (typeof value !== "object" || value === null) return;
  owners.push(value as { [key: string]: unknown });
  for (const member of Object.values(value)) collect(member, owners);
}
