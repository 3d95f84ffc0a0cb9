/** The tests of an agent for other runners, such as node:test and vitest, and its coverage and fuzzing as functions. */
import type { FileTree } from "../flow/files.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { JsonObject } from "../flow/json.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import { readTestSettings } from "../load/test-settings.ts";
import { readTests, testsIn } from "../load/tests.ts";
import { hitsIn } from "../proof/cover.ts";
import { coverageOf, type Coverage } from "../proof/coverage.ts";
import type { Unmet } from "../proof/expect.ts";
import { PERSONA_NAMES } from "../proof/personas.ts";
import { unmetLines } from "../proof/unmet-text.ts";
import { flowDigest, load } from "../run/load.ts";
import { createFiles } from "../run/world/files.ts";
import { prepareFlow, runTest, type TestResult } from "./flow-tests.ts";
import { fuzz, type Fuzzed, type FuzzOptions } from "./fuzz.ts";
import { requireOptions, requireText } from "./kit-options.ts";
import { openProjectGround } from "./project-ground.ts";
import { openSnapshots } from "./snapshots.ts";

export type AgentTestsOptions = {
  /** The project is found from here; the working directory unless said. */
  readonly cwd?: string;
  /** Leaves out tests on copies of a project, which run commands and need trust. */
  readonly memory?: boolean;
  /** Rewrites snapshots that differ. */
  readonly update?: boolean;
  /** A missing snapshot fails, and is not written; so it is where the environment says CI. */
  readonly isCi?: boolean;
};

export type AgentTests = {
  /** Those of `.agent/NAME/tests`. */
  readonly tests: readonly FlowTest[];
  readonly run: (test: FlowTest) => Promise<TestResult>;
  /** Runs one test in memory; the keys are those of test files. Throws if one is not valid. */
  readonly scenario: (written: JsonObject) => Promise<TestResult>;
  /** What these results have shown of the flow. */
  readonly coverage: (results: readonly TestResult[]) => Coverage;
  /** Asks the flow with a hostile model, many times. */
  readonly fuzz: (options?: FuzzOptions) => Promise<Fuzzed>;
};

/**
 * Reads an agent and its tests. Throws where either is not valid.
 *
 * @example
 * const { scenario, coverage } = await agentTests("fixer");
 * const result = await scenario({ name: "ends at once", script: ["initial.issue closing"] });
 */
export async function agentTests(agent: string, options: AgentTestsOptions = {}): Promise<AgentTests> {
  requireText("agentTests", "the name of an agent", agent);
  requireOptions("agentTests", options, OPTIONS);
  const { cwd = process.cwd(), memory = false, update = false } = options;
  const { flow, problems, project, origin } = await load(agent, { cwd });
  requireValid(problems);
  const files = createFiles(project.root);
  const { tests, problems: inTests } = readTests(flow!, files);
  const { settings, problems: inSettings } = readTestSettings(flow!, files);
  requireValid([...inTests, ...inSettings]);
  const prepared = await prepareFlow(flow!);
  const chosen = memory ? tests.filter(({ ground }) => ground.kind === "memory") : tests;
  const isCi = options.isCi ?? Boolean(process.env.CI);
  const snapshots = openSnapshots({ root: project.root, files, tests, agent, update, isCi });
  let copies: ReturnType<typeof openProjectGround> | null = null;
  return {
    tests: chosen,
    run: async (test) => {
      if (!tests.includes(test) && !isTest(test))
        throw new TypeError(
          "run takes one of the tests of agentTests. For a test of your own there is scenario.",
        );
      const isProject = test.ground.kind === "project";
      const ground = isProject
        ? { project: await (copies ??= openProjectGround({ agent, flow, project }, tests)) }
        : {};
      return runTest(prepared, test, { ...ground, compare: snapshots.compare, settings });
    },
    scenario: (written) => runTest(prepared, readScenario(prepared, files, written), { settings }),
    coverage: (results) => {
      if (!Array.isArray(results) || !results.every(isResult))
        throw new TypeError(
          "coverage takes a list of results, as run and scenario give them (await each of them).",
        );
      return coverageOf(
        prepared,
        flowDigest(prepared),
        results.flatMap(({ test: { name }, outcomes }) =>
          outcomes === null ? [] : [{ name, hits: hitsIn(outcomes.moments) }],
        ),
        (part) => {
          const written = origin(part)?.origin;
          return written === undefined || written.kind === "default" ? null : written;
        },
        settings.ignore,
      );
    },
    fuzz: async (given = {}) => {
      requireOptions("fuzz", given, FUZZ_OPTIONS);
      return await fuzz(prepared, { settings, ...given });
    },
  };
}

const OPTIONS = { cwd: "text", memory: "flag", update: "flag", isCi: "flag" } as const;
const FUZZ_OPTIONS = {
  seed: "whole number",
  runs: "count",
  isOver: "function",
  personas: PERSONA_NAMES,
  params: "object",
  settings: "object",
  isGuided: "flag",
  parts: "object",
} as const;

function isTest(value: unknown): boolean {
  const keys = ["name", "file", "script", "around", "ground", "expect"];
  return typeof value === "object" && value !== null && keys.every((key) => Object.hasOwn(value, key));
}

function isResult(value: unknown): boolean {
  return typeof value === "object" && value !== null && "outcomes" in value && "test" in value;
}

/** As `node:test`, vitest and others declare a test. `skip` declares one that is reported as skipped, and not run. */
export type DeclareTest = ((name: string, run: () => Promise<void>) => unknown) & {
  readonly skip?: (name: string, run: () => Promise<void>) => unknown;
};

/**
 * Declares every test of an agent's test files with a runner of your choice.
 *
 * @example
 * import { test } from "node:test";
 * await flowTests("fixer", { test });
 */
export async function flowTests(
  agent: string,
  given: AgentTestsOptions & { readonly test: DeclareTest },
): Promise<void> {
  requireText("flowTests", "the name of an agent", agent);
  requireOptions("flowTests", given, { ...OPTIONS, test: "function" }, ["test"]);
  const { test: declare, ...options } = given;
  const { tests, run } = await agentTests(agent, options);
  if (tests.length === 0)
    throw new Error(
      `There are no tests in .agent/${agent}/tests${options.memory === true ? " that run in memory" : ""}: nothing would be tested.`,
    );
  for (const test of tests) {
    const name = `${agent} › ${test.name}`;
    if (test.skip === undefined)
      declare(name, async () => {
        const { unmet } = await run(test);
        if (unmet.length > 0) throw new Error(failureText(test, unmet));
      });
    else skipped(declare, `${name} (${test.skip})`);
  }
}

/** A test that is left out must not count as passed. */
function skipped(declare: DeclareTest, name: string): void {
  if (declare.skip === undefined)
    throw new Error(
      `"${name}" is skipped. Give flowTests the test function of your runner itself, which has test.skip, so that it is reported as skipped.`,
    );
  declare.skip(name, () => Promise.resolve());
}

function failureText(test: FlowTest, unmet: readonly Unmet[]): string {
  const lines = unmet.flatMap((one) => unmetLines(test.file, one));
  return [`${test.file}:${test.line}: what is expected does not hold.`, ...lines].join("\n");
}

/** Read as a test file is, so that both mean the same. */
function readScenario(flow: Parameters<typeof readTests>[0], files: FileTree, written: JsonObject): FlowTest {
  if (typeof written !== "object" || written === null || Array.isArray(written))
    throw new TypeError("scenario takes an object with the keys of a test.");
  for (const key of ["project", "git", "github", "cases", "skip", "only"])
    if (Object.hasOwn(written, key))
      throw new TypeError(`scenario runs one test in memory, so it does not take "${key}".`);
  const file = `.agent/${flow.agent}/tests/scenario.json`;
  const text = JSON.stringify({ tests: [{ name: "scenario", ...written }] });
  const over: FileTree = {
    list: files.list,
    read: (path) => (path === file ? { kind: "text", text } : files.read(path)),
  };
  const { tests, problems } = testsIn(flow, over, file);
  // A misspelled key would silently test nothing.
  if (problems.length > 0) throw new Error(problemText(problems));
  return { ...tests[0]!, ground: { kind: "memory" } };
}

function requireValid(problems: readonly Problem[]): void {
  if (hasErrors(problems))
    throw new Error(problemText(problems.filter(({ severity }) => severity === "error")));
}

function problemText(problems: readonly Problem[]): string {
  return problems.map(({ file, line, message, fix }) => `${file}:${line}: ${message} ${fix}`).join("\n");
}
