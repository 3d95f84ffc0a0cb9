/** Which agents and test files a line of `lockstep test` names, and what is in them. */
import { matchesGlob, relative, resolve } from "node:path";
import type { FileTree } from "../../flow/files.ts";
import type { FlowTest } from "../../flow/flow-test.ts";
import type { Flow } from "../../flow/flow.ts";
import { hasErrors, type Problem } from "../../flow/problem.ts";
import type { TestSettings } from "../../flow/test-settings.ts";
import { readTestSettings } from "../../load/test-settings.ts";
import { readTests, testPaths } from "../../load/tests.ts";
import type { LoadedAgent } from "../../run/load.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";

/** An agent that can be tested. */
export type AgentUnderTest = {
  readonly agent: string;
  readonly flow: Flow;
  readonly tests: readonly FlowTest[];
  /** Those of its other test files too. */
  readonly all: readonly FlowTest[];
  readonly settings: TestSettings;
  readonly origin: LoadedAgent["origin"];
};

export type TestsNamed = {
  /** The agents that were named, or all that have tests. */
  readonly names: readonly string[];
  readonly agents: readonly AgentUnderTest[];
  /** What keeps a test from being run. */
  readonly problems: readonly Problem[];
  /** What a person should know about the files. */
  readonly remarks: readonly string[];
};

/** A word with a slash, a dot before its end or a star names files; any other names an agent. */
const FILE = /[/\\*?]|\.(?:ya?ml|json)$/i;

export async function readNamed(call: CommandCall, files: FileTree): Promise<TestsNamed> {
  const { root } = findProject(call.cwd, call.stateDir);
  const patterns = call.words.filter((word) => FILE.test(word));
  const named = [...new Set(call.words.filter((word) => !FILE.test(word)))];
  const isMeant = filesNamed(patterns, call.cwd, root);
  const names = named.length > 0 ? named : withTests(call, files, isMeant);
  for (const pattern of patterns)
    if (!names.some((name) => testPaths(name, files).some(filesNamed([pattern], call.cwd, root))))
      throw new UsageError(`"${pattern}" matches no test file. Test files are .agent/NAME/tests/*.yaml.`);
  const agents: AgentUnderTest[] = [];
  const problems: Problem[] = [];
  const remarks: string[] = [];
  for (const agent of names) {
    const { flow, origin, problems: about } = await loadNamed(agent, call.cwd, files);
    const read = flow === null ? { tests: [], problems: [] } : readTests(flow, files);
    const inTests = read.problems.filter(({ file }) => isMeant(file));
    for (const { severity, message, fix } of read.problems)
      if (severity === "warning" && patterns.length === 0) remarks.push(`${message} ${fix}`);
    const beside = flow === null ? null : readTestSettings(flow, files);
    const found = [
      ...about.filter(({ severity }) => severity === "error"),
      ...inTests,
      ...(beside?.problems ?? []),
    ];
    if (hasErrors(found) || flow === null || beside === null) problems.push(...found);
    else {
      const tests = read.tests.filter(({ file }) => isMeant(file));
      agents.push({ agent, flow, origin, tests, all: read.tests, settings: beside.settings });
    }
  }
  return { names, agents, problems, remarks };
}

function withTests(
  call: CommandCall,
  files: FileTree,
  isMeant: (file: string) => boolean,
): readonly string[] {
  const all = listAgents(findProject(call.cwd, call.stateDir));
  return all.filter((name) => testPaths(name, files).some(isMeant));
}

/** No pattern: all files. Patterns are relative to the folder of the call, test files to the project. */
function filesNamed(patterns: readonly string[], cwd: string, root: string): (file: string) => boolean {
  const below = patterns.map((pattern) => relative(root, resolve(cwd, pattern)));
  return (file) =>
    below.length === 0 || below.some((pattern) => pattern === file || matchesGlob(file, pattern));
}
