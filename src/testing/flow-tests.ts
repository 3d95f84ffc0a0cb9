/** Runs tests of a flow, and says of each what does not hold. */
import { prepare, type Prepared } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { NO_SETTINGS, type TestSettings } from "../flow/test-settings.ts";
import { argumentsFor, inputFor } from "../proof/arguments.ts";
import { breachesIn } from "../proof/author.ts";
import { driftIn, heardReplies, type Drifted } from "../proof/drift.ts";
import { unmetIn, type Unmet } from "../proof/expect.ts";
import { observe, type Outcomes } from "../proof/observe.ts";
import { snapshotParts, snapshotText } from "../proof/snapshot.ts";
import { sha256 } from "../run/load.ts";
import type { Moment } from "../story/story.ts";
import { runInMemory, type Ran } from "./ground.ts";

export type TestResult = {
  readonly test: FlowTest;
  readonly status: "passed" | "failed" | "skipped";
  readonly unmet: readonly Unmet[];
  /** null: the test was not run. */
  readonly ran: Ran | null;
  /** Recorded responses that were given to something else than is said now. */
  readonly drifted: Drifted;
  readonly outcomes: Outcomes | null;
};

/** What there is for tests besides memory. */
export type Grounds = {
  /** Runs tests on copies of their projects; absent: such tests are left out. */
  readonly project?: (flow: Prepared, test: FlowTest) => Promise<Ran>;
  /** Absent: snapshots are not looked at. */
  readonly compare?: (test: FlowTest, text: string) => Unmet | null;
  /** Absent: nothing is wanted of every run. */
  readonly settings?: TestSettings;
};

/** Why a test is left out where there is no ground for it. */
const NEEDS_PROJECT = "it needs a copy of a project";

/** Parameters that the test does not give are made up, so that it can be about one thing. */
export async function runTest(flow: Prepared, written: FlowTest, grounds: Grounds = {}): Promise<TestResult> {
  const isProject = written.ground.kind === "project";
  const why = written.skip ?? (isProject && grounds.project === undefined ? NEEDS_PROJECT : undefined);
  if (why !== undefined) return { test: { ...written, skip: why }, status: "skipped", unmet: [], ...NOT_RUN };
  const test = testAsRun(flow, written);
  const ran = isProject ? await grounds.project!(flow, test) : await runInMemory(flow, test);
  const { moments, path, observed } = observe(flow, ran.entries, ran);
  const outcomes: Outcomes = { moments, path, observed: { ...observed, ...ran.left } };
  const { settings = NO_SETTINGS } = grounds;
  const drifted = driftOf(test, ran, moments, settings);
  const held = isSavedCase(test)
    ? await shownAgain(flow, test, settings)
    : [
        ...leftOver(test, ran, outcomes),
        ...breached(test, outcomes, settings),
        ...refusedDrift(drifted, settings),
      ];
  const unmet =
    ran.fault === undefined
      ? [...unmetIn(expectedOf(test), outcomes.observed, ran.heard, test.line), ...held]
      : [faulty(ran.fault)];
  // A snapshot of a run that is wrong is not worth keeping.
  if (unmet.length === 0) unmet.push(...changed(written, ran, outcomes, grounds));
  return { test: written, status: unmet.length === 0 ? "passed" : "failed", unmet, ran, drifted, outcomes };
}

const NOT_RUN = { ran: null, drifted: { compared: 0, drifts: [] }, outcomes: null } as const;

/** Without the parts that the settings ignore. */
function driftOf(
  { script }: FlowTest,
  { volatile }: Ran,
  moments: readonly Moment[],
  { drift: rules }: TestSettings,
): Drifted {
  if (!script.some(({ heard }) => heard !== undefined)) return NOT_RUN.drifted;
  const { compared, drifts } = driftIn(script, heardReplies(moments, volatile), sha256);
  const counted = drifts.flatMap((one) => {
    const parts = one.parts.filter((part) => rules[part] !== "ignore");
    return parts.length === 0 ? [] : [{ ...one, parts }];
  });
  return { compared, drifts: counted };
}

function refusedDrift({ drifts }: Drifted, { drift: rules }: TestSettings): readonly Unmet[] {
  return drifts.flatMap(({ line, reply, step, visit, parts }) =>
    parts
      .filter((part) => rules[part] === "fail")
      .map((part) => ({
        key: "drift",
        line,
        at: part,
        expected: `what response ${reply} was given to`,
        got: `another ${part} in ${step}@${visit}`,
      })),
  );
}

function changed(
  test: FlowTest,
  { heard, volatile }: Ran,
  outcomes: Outcomes,
  { compare }: Grounds,
): readonly Unmet[] {
  const { snapshot } = test.expect.values;
  const parts = snapshot === undefined ? null : snapshotParts(snapshot);
  if (compare === undefined || parts === null) return [];
  const found = compare(test, snapshotText(test, parts, heard, outcomes, volatile));
  return found === null ? [] : [found];
}

/** The test as it is run, with every value that the flow asks for. */
export function testAsRun(flow: Prepared, written: FlowTest): FlowTest {
  const input = written.input === "" ? inputFor(flow) : written.input;
  return { ...written, params: argumentsFor(flow, written.params), input };
}

/** A test that ends before the run does expects no outcome, and neither does a saved case. */
function expectedOf(test: FlowTest): FlowTest["expect"] {
  const { expect, until } = test;
  if (isSavedCase(test)) {
    const written = Object.entries(expect.values).filter(([key]) => Object.hasOwn(expect.lines, key));
    return { ...expect, values: Object.fromEntries(written) };
  }
  if (until === undefined || Object.keys(expect.lines).length > 0) return expect;
  return { lines: {}, values: { visits: { [until]: ">= 1" } } };
}

/** What the author wants of every run. */
function breached({ line }: FlowTest, { moments }: Outcomes, settings: TestSettings): readonly Unmet[] {
  const { file } = settings;
  return breachesIn(moments, settings).map(({ rule, line: written, at, what }) => {
    const unmet = { key: "settings", at, expected: rule, got: what };
    return file === null || written === null
      ? Object.assign(unmet, { line })
      : Object.assign(unmet, { file, line: written });
  });
}

/** Written by `fuzz --save`: it fails as long as a run with these responses shows anything. */
function isSavedCase({ file }: FlowTest): boolean {
  return /(?:^|\/)fuzz-[^/]+$/.test(file);
}

async function shownAgain(flow: Prepared, test: FlowTest, settings: TestSettings): Promise<readonly Unmet[]> {
  const { shownBy } = await import("./fuzz.ts");
  return (await shownBy(flow, test, { settings })).map((one) => ({
    key: "fuzz",
    line: test.line,
    at: "property" in one ? one.property : one.code,
    expected: "nothing that fuzz reports",
    got: one.what,
  }));
}

function faulty({ of, line, why }: NonNullable<Ran["fault"]>): Unmet {
  return { key: of, line, at: "", expected: WANTED[of], got: why };
}

const WANTED = {
  script: "a response that the step can give",
  project: "a copy of the project",
  run: "a run that begins",
} as const;

/** A script that the run did not follow is said as such: it explains everything else. */
function leftOver(test: FlowTest, { warnings }: Ran, { observed }: Outcomes): readonly Unmet[] {
  const { values } = expectedOf(test);
  if (Object.hasOwn(values, "code") || Object.hasOwn(values, "warnings")) return [];
  const about = { key: "script", line: test.line, at: "" };
  const { code, reason } = observed;
  if (code === "SCRIPT_MISMATCH" || code === "SCRIPT_EXHAUSTED")
    return [{ ...about, expected: "a run that follows the script", got: reason }];
  return warnings[0] === undefined ? [] : [{ ...about, expected: "every response used", got: warnings[0] }];
}

/** What tests are run with. */
export function prepareFlow(flow: Flow): Promise<Prepared> {
  return prepare(flow);
}
