/** `lockstep test [AGENT]`: runs the tests of agents in memory. The results go to stdout. */

import type { FlowTest } from "../../flow/flow-test.ts";
import { hasErrors, type Problem } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import { readTests } from "../../load/tests.ts";
import { RunnerError } from "../../run/errors.ts";
import type { Loaded } from "../../run/load.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { prepareFlow, runTest, type TestResult } from "../../testing/flow-tests.ts";
import { loadNamed } from "../agent.ts";
import type { CallOf } from "../commands.ts";
import { renderProblems } from "../text/problems.ts";
import { count, shownInLine } from "../text/text.ts";

export async function testAgents(call: CallOf<"test">): Promise<number> {
  const project = findProject(call.cwd, call.stateDir);
  const names = call.words.length === 0 ? listAgents(project) : call.words;
  const files = createFiles(project.root);
  const results: { readonly agent: string; readonly results: readonly TestResult[] }[] = [];
  const problems: Problem[] = [];
  for (const name of names) {
    const loaded = await loadNamed(name, call.cwd, files);
    const read = testsOf(loaded, files);
    const found = [...loaded.problems.filter(({ severity }) => severity === "error"), ...read.problems];
    if (hasErrors(found)) {
      problems.push(...found);
      continue;
    }
    const flow = await prepareFlow(loaded.flow!);
    const done: TestResult[] = [];
    for (const test of chosen(read.tests, call.flags.test)) done.push(await runTest(flow, test));
    results.push({ agent: name, results: done });
  }
  if (problems.length > 0) {
    if (call.flags.json) call.screen.document({ v: 1, kind: "lockstep-tests", ok: false, problems });
    else call.screen.print(renderProblems(problems, files, call.screen.out, call.typed));
    return EXIT.invalid;
  }
  if (results.every((one) => one.results.length === 0)) throw noTests(names);
  return tell(call, results);
}

function testsOf({ flow }: Loaded, files: ReturnType<typeof createFiles>) {
  return flow === null ? { tests: [], problems: [] } : readTests(flow, files);
}

function chosen(tests: readonly FlowTest[], pattern: string | undefined): readonly FlowTest[] {
  const only = tests.filter((test) => test.only);
  const wanted = pattern === undefined ? null : new RegExp(pattern, "i");
  return (only.length > 0 ? only : tests).filter(({ name }) => wanted === null || wanted.test(name));
}

function noTests(names: readonly string[]): RunnerError {
  const name = names.length === 1 ? names[0]! : "NAME";
  return new RunnerError(
    "USAGE",
    `There are no tests in .agent/${name}/tests. Write some, or generate them with: lockstep test ${name} --generate.`,
  );
}

type Tested = readonly { readonly agent: string; readonly results: readonly TestResult[] }[];

function tell({ flags, screen }: CallOf<"test">, tested: Tested): number {
  const all = tested.flatMap(({ results }) => results);
  const failed = all.filter(({ status }) => status === "failed");
  if (flags.json) {
    const tests = tested.flatMap(({ agent, results }) =>
      results.map(({ test: { name, file, line }, status, unmet }) => ({
        agent,
        name,
        file,
        line,
        status,
        unmet,
      })),
    );
    screen.document({ v: 1, kind: "lockstep-tests", ok: failed.length === 0, tests });
  } else {
    for (const { agent, results } of tested)
      for (const one of results) screen.print(line(agent, one, screen.out));
    screen.print(
      `\n${count(all.length, "test")}, ${failed.length === 0 ? "all passed" : `${failed.length} failed`}`,
    );
  }
  return failed.length === 0 ? EXIT.completed : EXIT.testsFailed;
}

function line(
  agent: string,
  { test, status, unmet }: TestResult,
  paint: CallOf<"test">["screen"]["out"],
): string {
  const mark = { passed: paint("green", "✓"), failed: paint("red", "✗"), skipped: paint("dim", "-") }[status];
  const head = `${mark} ${shownInLine(agent)} › ${shownInLine(test.name)}`;
  if (unmet.length === 0) return head;
  const told = unmet.map(({ key, at, line: row, expected, got }) => {
    const place = at === "" ? key : `${key}.${at}`;
    return `  ${place}  ${test.file}:${row}\n    expected  ${shown(expected)}\n    got       ${shown(got)}`;
  });
  return [`${head}  ${test.file}:${test.line}`, ...told].join("\n");
}

function shown(value: unknown): string {
  return shownInLine(
    value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value),
  );
}
