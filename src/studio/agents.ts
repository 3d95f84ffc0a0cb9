/** Routes about agents: the list, one agent with its findings and its start form, a step, its boundary, its arguments. */
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import type { Journal, RunRow } from "../engine/ports.ts";
import type { Flow } from "../flow/flow.ts";
import type { Coverage } from "../proof/coverage.ts";
import { hitsOfEdge, withHits } from "../proof/outline-hits.ts";
import type { Hits } from "../proof/cover.ts";
import { RunnerError } from "../run/errors.ts";
import { explainAgent, explainStep } from "../run/explain.ts";
import type { LoadedAgent } from "../run/load.ts";
import { everyRow, startOf, summarise } from "../run/records/runs.ts";
import { configFile, readConfig } from "../run/world/config.ts";
import { moneyLine } from "../run/world/money.ts";
import { budgetOf, costLine } from "../tell/budget.ts";
import { outlineOf, type Outline } from "../tell/outline.ts";
import { argumentsRequest, shownLine } from "./acts.ts";
import { judgeArguments, runLine, takesInput } from "../serve/command-line.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { reply, type StudioAnswer, type StudioRequest, type Studio } from "./route.ts";
import { untrusted } from "../serve/trusting.ts";
import type { ArgumentsDocument } from "./wire-acts.ts";
import type {
  AgentDocument,
  AgentLine,
  AgentsDocument,
  CoverageDocument,
  StepDocument,
} from "./wire-agents.ts";

export async function lookAtAgents(_asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { agents: files } = studio.desk;
  const counts = await countRuns(await studio.journal());
  const agents: AgentLine[] = [];
  for (const name of files.names()) agents.push(agentLine(await files.load(name), counts.get(name)));
  return reply({ v: 1, agents } satisfies AgentsDocument);
}

type Counted = { runs: number; readonly last: RunRow };

/** By agent. The newest run comes first. */
async function countRuns(journal: Journal | null): Promise<ReadonlyMap<string, Counted>> {
  const counts = new Map<string, Counted>();
  if (journal === null) return counts;
  for await (const row of everyRow(journal)) {
    const known = counts.get(row.agent);
    if (known === undefined) counts.set(row.agent, { runs: 1, last: row });
    else known.runs += 1;
  }
  return counts;
}

function agentLine({ agent, flow, problems }: LoadedAgent, counted: Counted | undefined): AgentLine {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  return {
    agent,
    title: flow?.title ?? agent,
    dialect: flow?.dialect ?? null,
    errors,
    warnings: problems.length - errors,
    budget: flow === null ? null : budgetOf(flow),
    runs: counted?.runs ?? 0,
    last: counted === undefined ? null : summarise(counted.last),
  };
}

export async function lookAtAgent({ params, signal }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { name = "" } = params;
  const loaded = await studio.desk.agents.load(name);
  const { flow, problems } = loaded;
  const outline = flow === null ? null : outlineOf(flow, problems);
  const journal = await studio.journal();
  return reply({
    v: 1,
    agent: name,
    explained: explainAgent(loaded, userLimits(studio.env)),
    outline,
    problems,
    parameters: studio.desk.parametersOf(flow),
    openArguments: flow?.openArguments ?? false,
    takesInput: flow !== null && takesInput(flow),
    script: scriptOf(studio, name),
    costLine: flow === null ? null : [costLine(flow), moneyLine(flow, studio.env) ?? []].flat().join(" "),
    trust: flow === null || studio.readOnly !== null ? null : await untrusted(flow, studio),
    earlier: journal === null ? [] : await earlierArguments(journal, name),
    taken: await takenIn(studio, journal, name, outline, signal),
  } satisfies AgentDocument);
}

/** What the user's settings allow; where the file cannot be read, the command says so. */
function userLimits(env: NodeJS.ProcessEnv) {
  try {
    return { limits: readConfig(env).limits, file: configFile(env) };
  } catch (error) {
    if (error instanceof RunnerError) return undefined;
    throw error;
  }
}

/** As `--script` takes it. */
function scriptOf({ project, cwd }: Studio, agent: string): string | null {
  const found = ["script.yaml", "script.json"]
    .map((file) => join(project.agentsDir, agent, file))
    .find((file) => existsSync(file));
  return found === undefined ? null : relative(cwd, found);
}

const MOST_EARLIER = 10;

async function earlierArguments(journal: Journal, agent: string): Promise<AgentDocument["earlier"]> {
  const rows = await journal.list({ agent, limit: MOST_EARLIER });
  const earlier = [];
  for (const { id: run } of rows) {
    const started = await startOf(journal, run);
    if (started !== null) earlier.push({ run, args: started.args });
  }
  return earlier;
}

/** So many runs, the newest ones, say which edges are taken. */
const MOST_TAKEN = 500;

async function takenIn(
  { desk }: Studio,
  journal: Journal | null,
  agent: string,
  outline: Outline | null,
  signal: AbortSignal,
): Promise<AgentDocument["taken"]> {
  if (journal === null || outline === null) return { runs: 0, edges: outline?.edges.map(() => 0) ?? [] };
  const figures = await desk.figures();
  const { runs } = await figures(journal, { agent, limit: MOST_TAKEN, signal });
  const hits = hitsTogether(runs.map((run) => run.figures.hits));
  return { runs: runs.length, edges: outline.edges.map((edge) => hitsOfEdge(edge, hits) ?? 0) };
}

export function hitsTogether(all: readonly Hits[]): Hits {
  const sum: Hits = new Map();
  for (const hits of all) for (const [id, times] of hits) sum.set(id, (sum.get(id) ?? 0) + times);
  return sum;
}

export async function lookAtStep({ params }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { name = "", step: id = "" } = params;
  const step = explainStep(await studio.desk.agents.load(name), id);
  if (step === null) throw new RequestRefusal(404, "STEP_UNKNOWN", `Agent "${name}" has no step "${id}".`);
  return reply(step satisfies StepDocument);
}

/** Opens the sandbox that a run would have here. */
export async function lookAtBoundary({ params }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { name = "" } = params;
  const flow = flowIn(await studio.desk.agents.load(name));
  const { project, cwd, env } = studio;
  const { boundaryOf } = await import("../run/boundary.ts");
  return reply(await boundaryOf(flow, Object.values(flow.steps), { project, cwd, env }));
}

/** Runs the agent's tests, in memory and in a process of their own. */
export async function lookAtCoverage(
  { params, signal }: StudioRequest,
  studio: Studio,
): Promise<StudioAnswer> {
  if (studio.readOnly !== null)
    throw new RequestRefusal(409, "READ_ONLY", `The studio starts nothing. ${studio.readOnly.why}`);
  const { name = "" } = params;
  const { flow } = await studio.desk.agents.load(name);
  const words = ["coverage", name, "--tests"];
  const found = await studio.desk.driver.read({ words }, AbortSignal.any([signal, studio.signal]));
  // The document of a failure has the same kind, and no elements.
  if (flow === null || found.kind !== "lockstep-coverage" || !("elements" in found)) {
    const why = `The tests of agent "${name}" cannot be run. See: ${shownLine(studio, { words })}`;
    throw new RequestRefusal(409, "TESTS_INVALID", why);
  }
  const { totals, elements } = found as unknown as Coverage;
  const outline = withHits(outlineOf(flow), { elements });
  return reply({
    v: 1,
    agent: name,
    totals,
    steps: Object.fromEntries(outline.nodes.map(({ id, hits = 0 }) => [id, hits])),
    edges: outline.edges.map(({ hits = 0 }) => hits),
    gaps: elements
      .filter(({ hits, ignored }) => hits === 0 && ignored === undefined)
      .map(({ id, kind, step, file, line }) => ({ id, kind, step, file, line })),
  } satisfies CoverageDocument);
}

/** FLOW_INVALID, with the findings, where the files hold no flow. */
export function flowIn({ agent, flow, problems }: LoadedAgent): Flow {
  if (flow !== null) return flow;
  throw new RequestRefusal(409, "FLOW_INVALID", `The files of agent "${agent}" hold no flow.`, { problems });
}

/** Judges what is in the form; nothing is started. */
export async function judgeForm({ params, body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { name = "" } = params;
  const flow = flowIn(await studio.desk.agents.load(name));
  const startable = { flow, parameters: studio.desk.parametersOf(flow) };
  const asked = { agent: name, ...argumentsRequest(body, studio) };
  const { args, errors } = judgeArguments(startable, asked.args);
  const command = shownLine(studio, runLine(startable, asked));
  return reply({ v: 1, args, errors, command } satisfies ArgumentsDocument);
}
