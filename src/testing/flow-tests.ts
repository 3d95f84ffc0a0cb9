/** Runs tests of a flow, and says of each what does not hold. */
import { prepare, type Prepared } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { argumentsFor, inputFor } from "../proof/arguments.ts";
import { unmetIn, type Unmet } from "../proof/expect.ts";
import { observe, type Outcomes } from "../proof/observe.ts";
import { runInMemory, type Ran } from "./ground.ts";

export type TestResult = {
  readonly test: FlowTest;
  readonly status: "passed" | "failed" | "skipped";
  readonly unmet: readonly Unmet[];
  /** null: the test was not run. */
  readonly ran: Ran | null;
  readonly outcomes: Outcomes | null;
};

/** In memory. Parameters that the test does not give are made up, so that it can be about one thing. */
export async function runTest(flow: Prepared, written: FlowTest): Promise<TestResult> {
  if (written.skip !== undefined)
    return { test: written, status: "skipped", unmet: [], ran: null, outcomes: null };
  const test = testAsRun(flow, written);
  const ran = await runInMemory(flow, test);
  const outcomes = observe(flow, ran.entries, ran);
  const unmet =
    ran.fault === undefined
      ? [
          ...unmetIn(expectedOf(test), outcomes.observed, ran.heard, test.line),
          ...leftOver(test, ran, outcomes),
        ]
      : [faulty(ran.fault)];
  return { test: written, status: unmet.length === 0 ? "passed" : "failed", unmet, ran, outcomes };
}

/** The test as it is run, with every value that the flow asks for. */
export function testAsRun(flow: Prepared, written: FlowTest): FlowTest {
  const input = written.input === "" ? inputFor(flow) : written.input;
  return { ...written, params: argumentsFor(flow, written.params), input };
}

/** A test that ends before the run does expects no outcome. */
function expectedOf({ expect, until }: FlowTest): FlowTest["expect"] {
  if (until === undefined || Object.keys(expect.lines).length > 0) return expect;
  return { lines: {}, values: { visits: { [until]: ">= 1" } } };
}

function faulty({ line, why }: NonNullable<Ran["fault"]>): Unmet {
  return { key: "script", line, at: "", expected: "a response that the step can give", got: why };
}

/** A script that the run did not follow is said as such: it explains everything else. */
function leftOver(test: FlowTest, { warnings }: Ran, { observed }: Outcomes): readonly Unmet[] {
  const code = observed.code;
  const isExpected =
    Object.hasOwn(test.expect.values, "code") || Object.hasOwn(test.expect.values, "warnings");
  if (isExpected) return [];
  const got = code === "SCRIPT_MISMATCH" || code === "SCRIPT_EXHAUSTED" ? observed.reason : warnings[0];
  if (got === undefined) return [];
  return [{ key: "script", line: test.line, at: "", expected: "every response used", got }];
}

/** What tests are run with. */
export function prepareFlow(flow: Flow): Promise<Prepared> {
  return prepare(flow);
}
