/** An agent with a steps registry: its files in, a flow and what was found out. Pure; never throws, whatever the files hold. */
import type { Files, FindPrompt } from "../../flow/files.ts";
import type { Flow, Step, StepId } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, type JsonSchema } from "../../flow/json.ts";
import { loadActions } from "../agent/actions.ts";
import { aboutAgent, aboutRegistry, open, settingsOf } from "../agent/agent-file.ts";
import { AGENT, type AgentSource } from "../agent/agent-shape.ts";
import { NO_CLIMPT, type Climpt } from "../agent/climpt.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { modernAgent, modernRegistry } from "../agent/legacy.ts";
import { serversOf } from "../agent/mcp.ts";
import { loadParameters } from "../parameters.ts";
import { limitsOf } from "../../flow/spending.ts";
import { limitsWith, loadVerdict, type DeclaredVerdict } from "../agent/verdict.ts";
import type { LoadResult, LoadWorld, SchemaToTry } from "../index.ts";
import { CHECK_REGISTRY, type CheckRegistry } from "../questions/questions-shape.ts";
import { buildQuestions } from "../questions/questions.ts";
import { checkFlow, toProblem } from "../codes.ts";
import type { Finding } from "../rules/rule.ts";
import { reachFrom } from "../../flow/graph.ts";
import { onlyProblems, resultOf } from "../result.ts";
import { answerSchema, atSchema, type Registered } from "../rules/loaded.ts";
import { readDocument, type Document, type DocumentRead } from "../text/document.ts";
import { joinPath } from "../text/paths.ts";
import { unescapeSegment } from "../../flow/json-pointer.ts";
import { readShape } from "../text/shape.ts";
import { recogniseDialect, type Dialect } from "./dialect.ts";
import { gateForm } from "./gate-forms.ts";
import { createPrompts, foldersNamed, readSystemPrompt } from "./prompts.ts";
import { registryPlaces } from "./registry-places.ts";
import { COMPLETE_REGISTRY, REGISTRY, type RegistrySource } from "./registry-shape.ts";
import { buildGraph, type Sources } from "./registry.ts";
import { declaredChecks } from "./guards.ts";
import { createSchemas } from "./schemas.ts";
import { systemStandIn } from "./stand-in.ts";

export function loadRegistry(
  name: string,
  files: Files,
  findPrompt: FindPrompt,
  { tools, digest }: LoadWorld,
  climpt: Climpt = NO_CLIMPT,
): LoadResult {
  const findings: Finding[] = [];
  const folder = joinPath(".agent", name);
  const nothing = () => onlyProblems(findings, `${folder}/agent.json`);

  const agentAsWritten = open(files, `${folder}/agent.json`, aboutAgent(name, folder), findings);
  if (agentAsWritten === null) return nothing();
  const agentDocument = modernAgent(agentAsWritten, findings);
  const agentReader = { document: agentDocument, code: "AC-VALID-001", findings } as const;
  const agent = readShape(AGENT, agentDocument.value, "", agentReader);
  const parameters = loadParameters(agent, agentReader);
  const verdict = loadVerdict(agent, agentReader, { folder, files, digest, parameters });
  const actions = loadActions(agent, { folder, files, digest, parameters, reader: agentReader });

  const registryFile = joinPath(folder, agent.runner.flow.prompts.registry);
  const registryAsWritten = open(files, registryFile, aboutRegistry(registryFile), findings);
  if (registryAsWritten === null) return nothing();
  const registryDocument = modernRegistry(registryAsWritten, findings);
  const dialect = recogniseDialect(registryDocument, findings);
  if (dialect === null) return nothing();
  const { registry, questions } = readRegistry(dialect, registryDocument, findings);

  const schemaFiles = new Map<string, DocumentRead>();
  const schema = createSchemas({
    folders: schemaFolders(folder, agent, registry),
    read: (file) => remember(schemaFiles, file, () => readDocument(files, file)),
  });
  const common = { agent, agentDocument, registry, registryDocument, schema, dialect, climpt };
  const sources: Sources =
    questions === null ? { ...common, verdict } : { ...common, verdict: byChecks(verdict), questions };
  const graph =
    questions === null
      ? buildGraph(sources, createPrompts(folder, agent, registry, climpt, findPrompt))
      : buildQuestions(sources, questions, { folder, agent, files, findPrompt });
  const title = agent.displayName ?? agent.name ?? name;
  const system = systemStandIn(sources, readSystemPrompt(folder, agent, title, files));
  const sections = graph.sections
    .filter(({ prompt }) => prompt.file !== null)
    .map(({ variable, prompt }) => [variable, prompt] as const);

  const flow: Flow = {
    ir: 1,
    agent: name,
    dialect,
    title,
    description: agent.description,
    parameters,
    ...(dialect === "check" && parameters.length === 0 && { openArguments: true }),
    system,
    entry: graph.entry.step,
    steps: stepsById(graph.steps),
    checks: Object.fromEntries(graph.checks),
    stop: sources.verdict.stop,
    ...(graph.stop?.guard !== undefined && { stopGuard: graph.stop.guard }),
    limits: { ...limitsWith(sources.verdict, graph.stop?.guard), ...limitsOf(agent.runner.limits) },
    ...(sections.length > 0 && { sections: Object.fromEntries(sections) }),
    constants: Object.fromEntries(
      [...agent.runner.integrations.github.labels.rest].map(([key, label]) => [`label_${key}`, label]),
    ),
    criteria: sources.verdict.criteria,
    settings: settingsOf(agent, agentDocument, actions),
  };

  const reach = graph.steps.has(graph.entry.step) ? reachFrom(graph.entry.step, graph.steps) : null;
  const loaded: Registered = {
    name,
    agent,
    agentDocument,
    servers: [serversOf(agent, agentDocument)],
    flow,
    steps: graph.steps,
    reach,
    live: reach?.steps ?? null,
    entries: (questions ?? registry).steps,
    runLimits: agent.runner.limits,
    words: { step: "step", agent: "agent", way: "transition", howToEnd: howToEnd(dialect) },
    where: registryPlaces(sources, graph),
    files,
    tools,
    sources,
    graph,
    schemaFiles,
  };
  checkFlow(loaded, (finding) => findings.push(finding));
  const problems = findings.map((finding) => toProblem(withStep(finding, registryDocument), loaded.live));
  const result = resultOf(loaded, registryFile, problems, schemasOf(loaded));
  return { ...result, checks: { ...declaredChecks(registry), ...flow.checks } };
}

function howToEnd(dialect: Dialect): string {
  return dialect === "check"
    ? 'Give the last step of the flow { "complete": true } in onPass.'
    : gateForm(dialect).howToEnd;
}

/** Each schema once, with all the steps that are asked for it. */
function schemasOf(loaded: Registered): readonly SchemaToTry[] {
  const users = Map.groupBy(loaded.graph.steps.values(), answerSchema);
  users.delete(true);
  return [...(users as ReadonlyMap<JsonSchema, readonly Step[]>)].map(([schema, steps]) => ({
    schema,
    refuse: (fault, path) => {
      const ids = steps.map(({ id }) => id);
      const at = atSchema(loaded, ids[0]!, ...path);
      const message = `The schema of the step "${ids[0]}" is not a valid JSON Schema: ${fault}.`;
      const fix = `Fix the schema in ${at.document.file} at this position.`;
      const code = "FAILED_SCHEMA_RESOLUTION";
      return toProblem({ code, ...at, steps: ids, message, fix }, loaded.live);
    },
  }));
}

/** The registry as its dialect has it. Of one with check prompts, `registry` is what it shares with the others. */
function readRegistry(
  dialect: Dialect,
  document: Document,
  findings: Finding[],
): { readonly registry: RegistrySource; readonly questions: CheckRegistry | null } {
  const reader = { document, code: "SR-VALID-004", findings } as const;
  if (dialect !== "check") {
    const shape = dialect === "complete" ? COMPLETE_REGISTRY : REGISTRY;
    return { registry: readShape(shape, document.value, "", reader), questions: null };
  }
  const questions = readShape(CHECK_REGISTRY, document.value, "", reader);
  const { agentId, entryStep } = questions;
  const part = { ...(agentId !== undefined && { agentId }), ...(entryStep !== undefined && { entryStep }) };
  return { registry: readShape(REGISTRY, part, "", { ...reader, findings: [] }), questions };
}

/** Check prompts end a run by themselves, and the number of visits is fixed. */
function byChecks(verdict: DeclaredVerdict): DeclaredVerdict {
  return {
    ...verdict,
    stop: { kind: "end" },
    limits: { visits: DEFAULTS.checkedVisits },
    criteria: "The work is done when the check of the last step has passed.",
  };
}

function schemaFolders(folder: string, agent: AgentSource, registry: RegistrySource): readonly string[] {
  const named = agent.runner.flow.schemas.base ?? registry.schemasBase;
  return named === undefined ? [joinPath(folder, DEFAULTS.schemasDir)] : foldersNamed(named, folder);
}

/** A finding inside of a step's entry is about that step. A forbidden id is never a step, and so never a dead one. */
function withStep(finding: Finding, registry: Document): Finding {
  if (finding.steps !== undefined || finding.document.file !== registry.file) return finding;
  const segment = /^\/steps\/([^/]+)/.exec(finding.pointer)?.[1];
  const id = segment === undefined ? undefined : unescapeSegment(segment);
  return id === undefined || FORBIDDEN_NAMES.has(id) ? finding : { ...finding, steps: [id] };
}

/** What `Object.fromEntries` gives, several times faster for 1,000 steps. No step has a forbidden name. */
function stepsById(steps: ReadonlyMap<StepId, Step>): Flow["steps"] {
  const record: { [id: StepId]: Step } = {};
  for (const step of steps.values()) record[step.id] = step;
  return record;
}

function remember<K, V>(memory: Map<K, V>, key: K, make: () => V): V {
  const known = memory.get(key);
  if (known !== undefined) return known;
  const made = make();
  memory.set(key, made);
  return made;
}
