/** `lockstep next`, and `lockstep` alone on a terminal: what can be done next in this folder. */
import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { hasErrors } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import type { Journal, Loaded } from "../../run/index.ts";
import { listRuns } from "../../run/records/runs.ts";
import { findProject, listAgents, type Project } from "../../run/world/project.ts";
import { loadNamed } from "../agent.ts";
import type { CommandCall } from "../call.ts";
import { withJournal } from "../journal.ts";
import { afterRuns, forAgent, nextText, WHERE_NOTHING_IS, type Suggestion } from "../text/next-text.ts";

const MOST_AGENTS = 5;
const NEWEST_RUNS = 1000;

export async function showNext(call: CommandCall): Promise<number> {
  const { cwd, stateDir, host, screen, flags, typed } = call;
  const project = findProject(cwd, stateDir, host.env);
  // A name that begins with a dash would be read as a flag; check reports it.
  const names = listAgents(project).filter((name) => !name.startsWith("-"));
  const suggestions =
    names.length === 0
      ? [...WHERE_NOTHING_IS]
      : [
          ...(await withJournal(call, async (journal) => await ofRuns(journal))),
          ...(await ofAgents(names.slice(0, MOST_AGENTS), project, call)),
        ];
  const width = host.stdout.isTTY ? host.stdout.columns || 80 : Infinity;
  if (flags.json) screen.document({ v: 1, root: project.root, agents: names, next: suggestions });
  else screen.print(nextText(project.root, names, suggestions, screen.out, typed, width));
  return EXIT.completed;
}

async function ofRuns(journal: Journal | null): Promise<readonly Suggestion[]> {
  return journal === null ? [] : afterRuns(await listRuns(journal, { limit: NEWEST_RUNS }));
}

async function ofAgents(
  names: readonly string[],
  project: Project,
  { cwd }: CommandCall,
): Promise<readonly Suggestion[]> {
  const agents: Loaded[] = [];
  for (const name of names) agents.push(await loadNamed(name, cwd));
  return agents.flatMap(({ agent, flow, problems }) => {
    const script = join(project.agentsDir, agent, "script.yaml");
    return forAgent({
      agent,
      flow,
      canRun: !hasErrors(problems),
      hasTests: existsSync(join(project.agentsDir, agent, "tests")),
      script: existsSync(script) ? relative(resolve(cwd), script) : null,
    });
  });
}
