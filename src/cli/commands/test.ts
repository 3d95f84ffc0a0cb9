/** `lockstep test [AGENT|FILE …]`: runs the tests of agents in memory. The reports are the result, so they go to stdout. */
import type { FileTree } from "../../flow/files.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { missedIn, type ShownBy } from "../../proof/coverage.ts";
import { RunnerError } from "../../run/errors.ts";
import { failedBefore } from "../../run/records/test-runs.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import type { TestResult } from "../../testing/flow-tests.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { requireEnding, writeCoverage } from "../coverage/coverage-file.ts";
import { coverageBy, shownByTests } from "../coverage/measure.ts";
import { chooseTests, refuseOnlyInCi, type ChosenTest } from "../tests/choose.ts";
import { groundsFor } from "../tests/grounds.ts";
import { readNamed, type AgentUnderTest, type TestsNamed } from "../tests/read.ts";
import { reportersOf, writeReports, type Reporting } from "../tests/reporters.ts";
import { runTests } from "../tests/run-tests.ts";
import { failuresIn, isCoverageMissed, type AgentCovered, type TestReport } from "../tests/tested.ts";
import { invalidReport, tellInvalid, unavailableReport } from "../tests/refuse.ts";
import { count, shellWord, shownInLine } from "../text/text.ts";

export async function testAgents(call: CallOf<"test">): Promise<number> {
  if ([call.flags.watch, call.flags.list, call.flags.stale].filter(Boolean).length > 1)
    throw new UsageError("Only one of --watch, --list and --stale can be used.");
  if (call.flags.recorded) return await (await import("../tests/recorded.ts")).holdRecorded(call);
  if (call.flags.since !== undefined) throw new UsageError("--since only works with --recorded.");
  if (call.flags.generate) return await (await import("./generate.ts")).generateTests(call);
  // Reading many files takes a while too.
  const signal = call.host.interruption();
  if (call.flags.write || call.flags.covers !== undefined)
    throw new UsageError("--write and --covers only work with --generate.");
  for (const file of call.flags["coverage-file"]) requireEnding(file);
  const { root } = findProject(call.cwd, call.stateDir);
  const reporters = reportersOf(call.flags.reporter, call.flags.json);
  if (call.flags.watch) {
    const { watchTests } = await import("../tests/watch-tests.ts");
    return await watchTests(call, root, {
      choose: (read) => choose(call, read),
      run: (read, chosen, signal) => runChosen(call, chosen, signal, read.remarks),
      tellProblems: (read, files) => tellProblems(call, read, files),
    });
  }
  const files = createFiles(root);
  const read = await readNamed(call, files);
  if (read.problems.length > 0) return await reportInvalid(call, reporters, read, files, root);
  const chosen = await orReported(call, reporters, root, () => choose(call, read));
  if (call.flags.stale) return await listStale(call, chosen, files);
  if (call.flags.list) return listTests(call, chosen);
  const report = await orReported(call, reporters, root, () => runChosen(call, chosen, signal, read.remarks));
  await writeReports(call, reporters, report, root, () => {
    for (const file of call.flags["coverage-file"]) {
      writeCoverage(call.cwd, file, report.coverage ?? []);
      call.screen.tell(`Wrote ${file}.`);
    }
  });
  return exitOf(report, signal);
}

/** People read the problems on stdout; reports get a failed case for each. */
async function reportInvalid(
  call: CallOf<"test">,
  reporters: readonly Reporting[],
  { problems }: TestsNamed,
  files: FileTree,
  root: string,
): Promise<number> {
  const forPeople = ({ name, file }: Reporting) => name === "pretty" && file === null;
  const others = reporters.filter((one) => !forPeople(one));
  if (call.flags.list || call.flags.stale) return tellInvalid(call, "lockstep-tests", problems, files);
  await writeReports(call, others, invalidReport(problems), root);
  return reporters.some(forPeople) ? tellInvalid(call, "lockstep-tests", problems, files) : EXIT.invalid;
}

/** What keeps the tests from being run is in the reports that go to files, beside the message for people. */
async function orReported<T>(
  call: CallOf<"test">,
  reporters: readonly Reporting[],
  root: string,
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const inFiles = reporters.filter(({ file }) => file !== null);
    if (error instanceof RunnerError && !call.host.stopped().aborted)
      await writeReports(call, inFiles, unavailableReport(error), root);
    throw error;
  }
}

function choose(call: CallOf<"test">, { names, agents, remarks }: TestsNamed): readonly ChosenTest[] {
  const { flags, host } = call;
  refuseOnlyInCi(agents, host.env);
  const project = findProject(call.cwd, call.stateDir);
  if (agents.every(({ tests }) => tests.length === 0)) {
    const there = names.length > 0 ? names : listAgents(project);
    if (there.length === 0)
      throw new RunnerError(
        "USAGE",
        `There is no agent in ${project.agentsDir}. Create one with: lockstep init NAME`,
      );
    throw noTests(there, remarks, createFiles(project.root));
  }
  const { stateDir } = project;
  const failed = flags["last-failed"] ? failedBefore(stateDir) : null;
  const chosen = chooseTests(agents, { pattern: flags.test, failed, shard: flags.shard });
  if (chosen.length === 0 && flags.test !== undefined && !flags["last-failed"] && flags.shard === undefined)
    throw new RunnerError(
      "USAGE",
      `No test has a name that matches "${flags.test}". List them with: lockstep test --list.`,
    );
  return chosen;
}

function noTests(names: readonly string[], remarks: readonly string[], files: FileTree): RunnerError {
  const name = names.length === 1 ? names[0]! : "NAME";
  const folder = `.agent/${name}/tests`;
  if (names.length === 1 && files.list(folder) === null && files.read(folder).kind !== "missing")
    return new RunnerError(
      "USAGE",
      `${folder} is not a folder that can be read, so there are no tests in it.`,
    );
  return new RunnerError(
    "USAGE",
    remarks[0] ??
      `There are no tests in .agent/${name}/tests. Write some as .agent/${name}/tests/first.yaml, or generate them with: lockstep test ${name} --generate --write`,
  );
}

async function runChosen(
  call: CallOf<"test">,
  all: readonly ChosenTest[],
  signal: AbortSignal,
  aboutFiles: readonly string[] = [],
): Promise<TestReport> {
  const { root, stateDir } = findProject(call.cwd, call.stateDir);
  const { bail, cut, memory, jobs = 2 } = call.flags;
  const chosen = memory ? all.filter(({ test }) => test.ground.kind === "memory") : all;
  const left = all.length - chosen.length;
  if (chosen.length === 0 && left > 0)
    throw new RunnerError(
      "USAGE",
      `--memory leaves out ${count(left, "test")} on copies of a project, and there are no others: nothing was tested. Leave out --memory.`,
    );
  const grounds = await groundsFor(call, chosen, createFiles(root), signal);
  const isMeasured = call.flags.coverage || call.flags["coverage-file"].length > 0;
  const shown = new Map<AgentUnderTest, ShownBy[]>(chosen.map(({ of }) => [of, []]));
  const onResult = ({ of }: ChosenTest, result: TestResult) => {
    shown.get(of)!.push(...shownByTests([result]));
  };
  const report = await runTests(chosen, {
    stateDir,
    cwd: call.cwd,
    signal,
    bail,
    cut,
    jobs,
    groundsOf: grounds.of,
    ...(isMeasured && { onResult }),
  });
  const isOnly = chosen.some(({ test }) => test.only);
  const remarks = [
    ...aboutFiles.map((text) => shownInLine(text, 1000)),
    ...report.remarks,
    ...grounds.finish(),
    ...(left > 0 ? [`--memory left out ${count(left, "test")} on copies of a project.`] : []),
    ...(isOnly ? ["Some tests say only: true, so no other test was run."] : []),
    ...(chosen.length > 0 ? [] : [whyNone(call.flags)]),
  ];
  if (!isMeasured) return { ...report, remarks };
  const coverage = [...shown].map(([{ flow, origin, settings }, by]): AgentCovered => {
    const found = coverageBy({ origin }, flow, by, settings);
    const { coverage: least } = settings;
    return { flow, coverage: found, least, missed: missedIn(found, least) };
  });
  return { ...report, remarks: [...remarks, ...coverage.flatMap(offerTests)], coverage };
}

function whyNone({ "last-failed": lastFailed, shard, stale }: CallOf<"test">["flags"]): string {
  if (lastFailed) return "No test failed when the tests were last run.";
  if (stale) return "No test is a recorded run.";
  return `There are fewer tests than parts: none is in part ${shard ?? ""}.`;
}

/** Tests for what matters most can be written by the command itself. */
function offerTests({ flow: { agent }, coverage }: AgentCovered): readonly string[] {
  const { steps, transitions, checks } = coverage.totals;
  return [steps, transitions, checks].every(({ covered, of }) => covered === of)
    ? []
    : [`Generate tests for what is not covered with: lockstep test ${shellWord(agent)} --generate --write`];
}

function exitOf(report: TestReport, signal: AbortSignal): number {
  if (report.stopped === "interrupted") return exitOfSignal(signal);
  const isGood = failuresIn(report).length === 0 && !isCoverageMissed(report);
  return isGood ? EXIT.completed : EXIT.testsFailed;
}

function tellProblems(call: CallOf<"test">, { problems }: TestsNamed, files: FileTree): number {
  return tellInvalid(call, "lockstep-tests", problems, files);
}

/** Runs the recorded tests, and prints those whose responses were given to something else than is said now. */
async function listStale(
  call: CallOf<"test">,
  chosen: readonly ChosenTest[],
  files: FileTree,
): Promise<number> {
  const { isRecorded, staleDocument, staleText } = await import("../tests/stale.ts");
  const signal = call.host.interruption();
  const report = await runChosen(call, chosen.filter(isRecorded), signal);
  if (call.flags.json) call.screen.document(staleDocument(report));
  else {
    const text = staleText(report, files, call.screen.out, call.flags.quiet);
    if (text !== "") call.screen.print(text);
  }
  return report.stopped === "interrupted" ? exitOfSignal(signal) : EXIT.completed;
}

function listTests({ flags, screen }: CallOf<"test">, chosen: readonly ChosenTest[]): number {
  const tests = chosen.map(({ of: { agent }, test: { name, file, line } }) => ({ agent, name, file, line }));
  if (flags.json) screen.document({ v: 1, kind: "lockstep-test-list", tests });
  else {
    const lines = tests.map(
      ({ agent, name, file, line }) =>
        `${shownInLine(agent)} › ${shownInLine(name)}  ${screen.out("dim", `${shownInLine(file)}:${line}`)}`,
    );
    const total = flags.quiet ? [] : ["", count(tests.length, "test")];
    if (lines.length + total.length > 0) screen.print([...lines, ...total].join("\n"));
  }
  return EXIT.completed;
}
