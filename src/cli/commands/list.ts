/** `lockstep list` */
import { hasErrors } from "../../flow/problem.ts";
import type { Loaded } from "../../run/index.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { flowDigest } from "../../run/load.ts";
import { loadNamed, tally } from "../agent.ts";
import type { CommandCall } from "../call.ts";
import { countProblems } from "../text/problems.ts";
import { headed, shownInLine } from "../text/text.ts";

export async function listProject({ cwd, stateDir, flags, screen, typed }: CommandCall): Promise<number> {
  const project = findProject(cwd, stateDir);
  const agents: Loaded[] = [];
  for (const name of listAgents(project)) agents.push(await loadNamed(name, cwd));
  if (flags.json) screen.document({ v: 1, root: project.root, agents: agents.map(describe) });
  else if (agents.length === 0) {
    screen.tell(typed(`There is no agent in ${project.agentsDir}. Create one with: lockstep init NAME`));
  } else {
    const rows = agents.map(({ agent, flow, problems }) => [
      shownInLine(agent),
      hasErrors(problems) ? "cannot run" : "ok",
      (flow?.parameters ?? []).map(({ flag, required }) => (required ? flag : `[${flag}]`)).join(" ") || "-",
      shownInLine(flow?.description ?? countProblems(problems), 100),
    ]);
    screen.print(headed(screen.out, [["AGENT", "CHECK", "PARAMETERS", "ABOUT"], ...rows]).join("\n"));
  }
  return 0;
}

function describe(loaded: Loaded) {
  const { flow } = loaded;
  return {
    ...tally(loaded),
    title: flow?.title ?? null,
    description: flow?.description ?? null,
    dialect: flow?.dialect ?? null,
    digest: flow === null ? null : flowDigest(flow),
    entry: flow?.entry ?? null,
    steps: Object.keys(flow?.steps ?? {}),
    parameters: flow?.parameters ?? [],
  };
}
