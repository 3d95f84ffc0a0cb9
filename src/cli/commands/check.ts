/** `lockstep check [NAME]`: the findings are the result, so they go to stdout. */
import { randomUUID } from "node:crypto";
import { join, relative } from "node:path";
import type { FileTree } from "../../flow/files.ts";
import { hasErrors, type Problem } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import { RunnerError } from "../../run/errors.ts";
import type { Loaded, LoadedAgent } from "../../run/load.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { loadNamed, strictly, tally } from "../agent.ts";
import { UsageError } from "../args.ts";
import { withinBudget } from "./budget.ts";
import type { CommandCall } from "../call.ts";
import type { CallOf } from "../commands.ts";
import { fixAgents, fixesText } from "./fix.ts";
import { countProblems, renderProblems } from "../text/problems.ts";
import { toSarif } from "../text/sarif.ts";
import { count, shownInLine } from "../text/text.ts";
import { versionText } from "../version.ts";
import { repeatOnChange, watchedFiles } from "../../run/watch/files.ts";

export async function checkAgents(given: CallOf<"check">): Promise<number> {
  const call = withFormat(given);
  refuseMixed(call);
  const [name] = call.words;
  const project = findProject(call.cwd, call.stateDir);
  const names = name === undefined ? listAgents(project) : [name];
  if (names.length === 0) {
    throw new RunnerError(
      "USAGE",
      `There is no agent in ${project.agentsDir}. Create one with: lockstep init NAME`,
    );
  }
  if (call.flags.watch) return await watchFindings(call, project.root);
  const isDry = call.flags["dry-run"];
  const fixed = call.flags.fix ? await fixAgents(names, call.cwd, isDry) : null;
  const agents = await loadAll(call, names, createFiles(project.root));
  if (call.flags.sarif) return tellSarif(call, agents, project.root);
  if (call.flags.format === "github") return await tellGithub(call, agents, project.root);
  if (fixed !== null && !call.flags.json) call.screen.print(fixesText(fixed, isDry, call.screen.out));
  return tellFindings(
    call,
    agents,
    name ?? null,
    fixed === null ? {} : { [isDry ? "fixable" : "fixed"]: fixed },
  );
}

/** `--format json` and `--format sarif` are the flags of these names. */
function withFormat(call: CallOf<"check">): CallOf<"check"> {
  const { format, json, sarif } = call.flags;
  if (format === undefined) return call;
  const other = json && format !== "json" ? "json" : sarif && format !== "sarif" ? "sarif" : null;
  if (other !== null) throw new UsageError(`--format ${format} and --${other} cannot be used together.`);
  return { ...call, flags: { ...call.flags, json: format === "json", sarif: format === "sarif" } };
}

/** Flags that would each want the output for themselves, or the files to stay as they are. */
function refuseMixed({ flags }: CallOf<"check">): void {
  const refuse = (one: string, other: string) => {
    throw new UsageError(`--${one} and --${other} cannot be used together.`);
  };
  if (flags.sarif && flags.json) refuse("sarif", "json");
  if (flags.watch && flags.sarif) refuse("watch", "sarif");
  if (flags.watch && flags.format === "github") refuse("watch", "format github");
  if (flags.watch && flags.fix) refuse("watch", "fix");
  if (flags["dry-run"] && !flags.fix)
    throw new UsageError("--dry-run only works with --fix: it shows what --fix would do.");
}

async function loadAll(
  call: CallOf<"check">,
  names: readonly string[],
  files: FileTree,
): Promise<readonly Loaded[]> {
  const agents: Loaded[] = [];
  for (const one of names) {
    const agent = await withTestProblems(await loadNamed(one, call.cwd, files), files);
    const loaded = withinBudget(agent, call.flags["max-turns"]);
    agents.push(call.flags.strict ? strictly(loaded) : loaded);
  }
  return agents;
}

/** What is wrong with the agent's files of tests and of evaluation tasks is found as well. */
async function withTestProblems(loaded: LoadedAgent, files: FileTree): Promise<LoadedAgent> {
  const { agent, flow, checks } = loaded;
  if (flow === null) return loaded;
  const problems = [...loaded.problems];
  if (files.list(`.agent/${agent}/tests`) !== null) {
    const { readTests } = await import("../../load/tests.ts");
    const { readTestSettings } = await import("../../load/test-settings.ts");
    problems.push(...readTests(flow, files).problems, ...readTestSettings(flow, files).problems);
  }
  if (files.list(`.agent/${agent}/evals`) !== null) {
    const { readEvals } = await import("../../load/evals.ts");
    problems.push(...readEvals({ flow, checks }, files).problems);
  }
  return { ...loaded, problems };
}

function tellSarif({ screen }: CallOf<"check">, agents: readonly Loaded[], root: string): number {
  const problems = agents.flatMap((agent) => agent.problems);
  screen.document(toSarif(problems, createFiles(root), versionText(false)));
  return hasErrors(problems) ? EXIT.invalid : EXIT.completed;
}

/** Annotations for what a pull request shows, then the findings as text for the log of the job. */
async function tellGithub(call: CallOf<"check">, agents: readonly Loaded[], root: string): Promise<number> {
  const { githubFindings } = await import("../text/github-findings.ts");
  const problems = agents.flatMap((agent) => agent.problems);
  const lines = githubFindings(problems, root, call.host.env.GITHUB_WORKSPACE);
  if (lines.length > 0) call.screen.emit(lines.join("\n"));
  // The text quotes files, which may come from a stranger's pull request: nothing in it is a command of GitHub.
  const end = randomUUID();
  call.screen.emit(`::stop-commands::${end}`);
  const code = tellFindings(call, agents, call.words[0] ?? null);
  call.screen.emit(`::${end}::`);
  return code;
}

/** Findings are printed when they differ from those before. Ctrl-C is a successful end. */
async function watchFindings(call: CallOf<"check">, root: string): Promise<number> {
  const [name] = call.words;
  let printed = "";
  call.screen.tell("Watching for changes; Ctrl-C ends.");
  await repeatOnChange(root, call.host.interruption(), async () => {
    const { files, read } = watchedFiles(createFiles(root));
    const project = findProject(call.cwd, call.stateDir);
    const agents = await loadAll(call, name === undefined ? listAgents(project) : [name], files);
    const now = JSON.stringify(agents.map(({ agent, problems }) => [agent, problems]));
    if (now !== printed) tellFindings(call, agents, name ?? null);
    printed = now;
    return [...read, join(relative(root, project.agentsDir), "x")];
  });
  return EXIT.completed;
}

/** `name` is null when all agents were asked for. `more`: what else the document holds. */
export function tellFindings(
  { flags, screen, typed }: CommandCall,
  agents: readonly Loaded[],
  name: string | null,
  more: object = {},
): number {
  const problems = agents.flatMap((agent) => agent.problems);
  const ok = !hasErrors(problems);
  if (flags.json)
    screen.document({
      v: 1,
      agent: name,
      ok,
      problems,
      ...(name === null ? { agents: agents.map(tally) } : {}),
      ...more,
    });
  else {
    for (const agent of agents) screen.print(findingsText(agent, { screen, typed }));
    if (agents.length > 1) {
      const bad = agents.filter((agent) => hasErrors(agent.problems)).length;
      screen.print(
        `${count(agents.length, "agent")} checked, ${bad === 0 ? "all can run" : `${bad} cannot run`}: ${countProblems(problems)}`,
      );
    }
  }
  return ok ? EXIT.completed : EXIT.invalid;
}

function findingsText(
  { agent, flow, project, problems }: Loaded,
  { screen: { out: paint }, typed }: Pick<CommandCall, "screen" | "typed">,
): string {
  const steps = flow === null ? "" : ` (${count(Object.keys(flow.steps).length, "step")})`;
  const name = shownInLine(agent);
  if (problems.length === 0) return `${paint("green", "✓")} ${name}: no problems${steps}`;
  const mark = hasErrors(problems) ? paint("red", "✗") : paint("yellow", "!");
  return `${renderProblems(inOrder(problems), createFiles(project.root), paint, typed)}\n\n${mark} ${name}: ${countProblems(problems)}${steps}`;
}

/** Errors last: they are what a reader sees first at the end of the output. Warnings that follow from one come after it. */
function inOrder(problems: readonly Problem[]): readonly Problem[] {
  const rank = ({ severity, code }: Problem) =>
    severity === "error" ? 1 : code === "FLOW-UNREACHABLE" ? 2 : 0;
  return problems.toSorted((a, b) => rank(a) - rank(b));
}
