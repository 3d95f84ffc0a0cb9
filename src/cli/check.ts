/** `lockstep check [NAME]`: the findings are the result, so they go to stdout. */
import { hasErrors, type Problem } from "../flow/problem.ts";
import { EXIT } from "../flow/verdict.ts";
import { RunnerError, type Loaded } from "../run/index.ts";
import { createFiles } from "../run/files.ts";
import { findProject, listAgents } from "../run/project.ts";
import { loadAgent, strictly, tally } from "./agent.ts";
import type { Call } from "./call.ts";
import { countProblems, renderProblems } from "./problems.ts";
import { count, shownInLine, type Paint } from "./text.ts";

export async function checkAgents(call: Call): Promise<number> {
  const [name] = call.words;
  const project = findProject(call.cwd, call.stateDir);
  const names = name === undefined ? listAgents(project) : [name];
  if (names.length === 0) {
    throw new RunnerError(
      "USAGE",
      `There is no agent in ${project.agentsDir}. Make one with: lockstep init NAME.`,
    );
  }
  const agents: Loaded[] = [];
  for (const one of names) {
    const loaded = await loadAgent(one, call.cwd);
    agents.push(call.on("strict") ? strictly(loaded) : loaded);
  }
  return tellFindings(call, agents, name ?? null);
}

/** `name` is null when all agents were asked for. */
export function tellFindings({ on, screen }: Call, agents: readonly Loaded[], name: string | null): number {
  const problems = agents.flatMap((agent) => agent.problems);
  const ok = !hasErrors(problems);
  if (on("json"))
    screen.document({
      v: 1,
      agent: name,
      ok,
      problems,
      ...(name === null ? { agents: agents.map(tally) } : {}),
    });
  else {
    for (const agent of agents) screen.print(findingsText(agent, screen.out));
    if (agents.length > 1) {
      const bad = agents.filter((agent) => hasErrors(agent.problems)).length;
      screen.print(
        `${count(agents.length, "agent")} checked, ${bad === 0 ? "all can run" : `${bad} cannot run`}: ${countProblems(problems)}`,
      );
    }
  }
  return ok ? EXIT.completed : EXIT.invalid;
}

function findingsText({ agent, flow, project, problems }: Loaded, paint: Paint): string {
  const steps = flow === null ? "" : ` (${count(Object.keys(flow.steps).length, "step")})`;
  const name = shownInLine(agent);
  if (problems.length === 0) return `${paint("green", "✓")} ${name}: no problems${steps}`;
  const mark = hasErrors(problems) ? paint("red", "✗") : paint("yellow", "!");
  return `${renderProblems(inOrder(problems), createFiles(project.root), paint)}\n\n${mark} ${name}: ${countProblems(problems)}${steps}`;
}

/** Errors last: they are what a reader sees first at the end of the output. */
function inOrder(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted((a, b) => Number(a.severity === "error") - Number(b.severity === "error"));
}
