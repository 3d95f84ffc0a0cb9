/** What a test puts around the flow: results of checks, tools and hooks, the clock, and the ground that it runs on. */
import {
  NOTHING_AROUND,
  type Around,
  type CheckGiven,
  type TestGround,
  type ToolGiven,
} from "../flow/flow-test.ts";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { besideTest, reportTest, testContent, testStep, valuesIn, type TestReading } from "./test-reading.ts";
import { showValue } from "./text/shape.ts";
import type { TestSource } from "./text/tests-shape.ts";

/** `base`: what the file says for all of its tests. */
export function testAround(
  reading: TestReading,
  source: Pick<TestSource, Exclude<keyof Around, "clock">> & { readonly clock: string | undefined },
  pointer: string,
  base: Around = NOTHING_AROUND,
): Around {
  const at = (key: string, name: string) => `${pointer}/${key}/${escapeSegment(name)}`;
  for (const name of source.checks.keys())
    if (!Object.hasOwn(reading.flow.checks, name)) {
      const names = Object.keys(reading.flow.checks);
      reportTest(
        reading,
        "TEST-CHECK",
        at("checks", name),
        `"${name}" is not a check of the flow.${didYouMean(name, names)}`,
        `Use one of: ${names.join(", ") || "none"}.`,
      );
    }
  for (const [place, step] of (source.order ?? []).entries())
    testStep(reading, step, `${pointer}/order/${place}`);
  const { sights, answers, github, clock, order } = source;
  const listed = <T>(given: ReadonlyMap<string, Json>, read: (one: Json, name: string) => T) =>
    Object.fromEntries(
      Array.from(given, ([name, all]) => [name, valuesIn(all).map((one) => read(one, name))]),
    );
  return {
    checks: {
      ...base.checks,
      ...listed(source.checks, (one, name) => checkGiven(reading, one, at("checks", name))),
    },
    tools: {
      ...base.tools,
      ...listed(source.tools, (one, name) => toolGiven(reading, one, at("tools", name))),
    },
    hooks: { ...base.hooks, ...listed(source.hooks, (one) => one) },
    sights: sights ?? base.sights,
    answers: answers ?? base.answers,
    github: github === undefined ? base.github : objectIn(github),
    clock: clock === undefined ? base.clock : timeIn(reading, clock, `${pointer}/clock`),
    order: order ?? base.order,
  };
}

function objectIn(value: Json | undefined): JsonObject | null {
  return isObject(value) ? value : null;
}

function timeIn(reading: TestReading, text: string, pointer: string): number {
  const time = Date.parse(text);
  if (!Number.isNaN(time)) return time;
  reportTest(reading, "TEST-KEY", pointer, `"${text}" is not a time.`, "Write it as 2026-01-01T00:00:00Z.");
  return NOTHING_AROUND.clock;
}

function checkGiven(reading: TestReading, given: Json, pointer: string): CheckGiven {
  if (given === "pass") return { kind: "pass" };
  if (given === "fail") return { kind: "fail" };
  if (
    isObject(given) &&
    (given.exit !== undefined || given.stdout !== undefined || given.stderr !== undefined)
  ) {
    const { exit = 0, stdout = "", stderr = "" } = given;
    return {
      kind: "output",
      exit: typeof exit === "number" ? exit : 1,
      stdout: testContent(reading, stdout, pointer),
      stderr: testContent(reading, stderr, pointer),
    };
  }
  reportTest(
    reading,
    "TEST-CHECK",
    pointer,
    `${showValue(given)} is not a result of a check.`,
    "Write pass, fail, or { exit, stdout, stderr }.",
  );
  return { kind: "pass" };
}

function toolGiven(reading: TestReading, given: Json, pointer: string): ToolGiven {
  if (typeof given === "string") return { ok: true, content: testContent(reading, given, pointer) };
  if (isObject(given))
    return { ok: given.ok !== false, content: testContent(reading, given.content ?? "", pointer) };
  return { ok: true, content: JSON.stringify(given) };
}

export function testGround(
  { document }: Pick<TestReading, "document">,
  project: string | undefined,
  git: Json | undefined,
): TestGround {
  if (project === undefined) return { kind: "memory" };
  const folder = besideTest(document.file, project);
  if (git === undefined || git === false || git === null) return { kind: "project", folder, git: false };
  const { commits, branch, dirty } = isObject(git) ? git : {};
  return {
    kind: "project",
    folder,
    git: {
      commits: typeof commits === "number" ? commits : 1,
      branch: typeof branch === "string" ? branch : "main",
      dirty: dirty === true,
    },
  };
}
