/** What a test puts around the flow: results of checks, tools and hooks, the clock, and the ground that it runs on. */
import {
  NOTHING_AROUND,
  type Around,
  type CheckGiven,
  type TestGround,
  type TestReply,
  type ToolGiven,
} from "../flow/flow-test.ts";
import { HOOK_NAMES } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { besideTest, reportTest, testContent, testStep, valuesIn, type TestReading } from "./test-reading.ts";
import { matchesName } from "./rules/tools.ts";
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
  for (const name of source.checks.keys()) testCheck(reading, name, at("checks", name));
  for (const name of source.hooks.keys()) checkHook(reading, at("hooks", name), name);
  for (const key of ["checks", "tools", "hooks"] as const)
    for (const [name, given] of source[key])
      if (Array.isArray(given) && given.length === 0)
        reportTest(
          reading,
          "TEST-KEY",
          at(key, name),
          `The list of results of "${name}" is empty.`,
          "Write at least one result, or remove it.",
        );
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

export function testCheck(reading: TestReading, name: string, pointer: string): void {
  const names = Object.keys(reading.flow.checks);
  if (!names.includes(name))
    reportTest(
      reading,
      "TEST-CHECK",
      pointer,
      `"${name}" is not a check of the flow.${didYouMean(name, names)}`,
      `Use one of: ${names.join(", ") || "none"}.`,
    );
}

/** A tool that no step may use, and no response calls, gives nothing. */
export function checkTools(
  reading: TestReading,
  given: Iterable<string>,
  scripts: readonly (readonly TestReply[])[],
  pointer: string,
): void {
  const steps = Object.values(reading.flow.steps);
  const called = new Set(scripts.flat().flatMap(({ calls = [] }) => calls.map(({ name }) => name)));
  const names = [...new Set(steps.flatMap(({ tools }) => tools.allow))].toSorted();
  for (const name of given)
    if (!called.has(name) && !steps.some((step) => mayUse(step, name)))
      reportTest(
        reading,
        "TEST-KEY",
        `${pointer}/tools/${escapeSegment(name)}`,
        `No step of the flow may use the tool "${name}", so its result is never given.${didYouMean(name, names)}`,
        `Use one of: ${names.join(", ") || "none"}.`,
      );
}

function mayUse({ answer, tools: { allow } }: Step, name: string): boolean {
  const isCompletion =
    answer.kind === "object" && answer.channel.kind === "tool" && answer.channel.name === name;
  return isCompletion || allow.some((entry) => matchesName(entry.replace(/\(.*$/s, "").trimEnd(), name));
}

/** `STAGE.HOOK`, or `HOOK` for all stages. */
function checkHook(reading: TestReading, pointer: string, name: string): void {
  const { hooks, steps } = reading.flow;
  if (hooks === undefined) {
    const message = "The flow has no hooks, so what they give is never used.";
    return reportTest(reading, "TEST-KEY", pointer, message, "Remove hooks.");
  }
  const stages = Object.values(steps).filter(({ stage }) => stage !== undefined);
  const names = [...HOOK_NAMES, ...stages.flatMap(({ id }) => HOOK_NAMES.map((hook) => `${id}.${hook}`))];
  if (names.includes(name)) return;
  reportTest(
    reading,
    "TEST-KEY",
    pointer,
    `"${name}" is not a hook of the flow.${didYouMean(name, names)}`,
    `Write STAGE.HOOK or HOOK, where HOOK is one of: ${HOOK_NAMES.join(", ")}.`,
  );
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
