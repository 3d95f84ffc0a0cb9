/**
 * The front door of this room: an agent's files in, a flow and a list of problems out. Pure over what it is given;
 * never throws, whatever the files hold.
 *
 *     const { flow, problems } = loadAgent("iterator", files, findPrompt, { tools, digest: sha256 });
 */
import type { Digest, Files, FileTree, FindPrompt } from "../flow/files.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { FORBIDDEN_NAMES, isObject, own, type JsonObject, type JsonSchema, type Path } from "../flow/json.ts";
import type { Problem } from "../flow/problem.ts";
import type { Actions, Settings } from "../flow/settings.ts";
import { loadActions } from "./agent/actions.ts";
import { AGENT, isWriting, type AgentSource } from "./agent/agent-shape.ts";
import { checkFlow } from "./rules/check.ts";
import type { ToolNames } from "./rules/tools.ts";
import type { Code } from "./rules/codes.ts";
import { COMPLETE_REGISTRY } from "./registry/complete-shape.ts";
import { DEFAULTS } from "./agent/defaults.ts";
import { recogniseDialect, type Dialect } from "./registry/dialect.ts";
import { isWritten, readDocument, type Document, type DocumentRead } from "./text/document.ts";
import { toProblem, type Finding } from "./rules/finding.ts";
import { reachFrom } from "./rules/graph.ts";
import { repeatedKeys } from "./rules/keys.ts";
import { findInert } from "./agent/inert.ts";
import { modernAgent, modernRegistry } from "./agent/legacy.ts";
import { atStep, schemaPlace, type Loaded } from "./rules/loaded.ts";
import { mcpSetting, serversOf, type Declared } from "./agent/mcp.ts";
import { defaultModel, modelsToTry, type ModelToTry } from "./agent/models.ts";
import { loadParameters } from "./agent/parameters.ts";
import { escapesProject, joinPath } from "./text/paths.ts";
import { peopleOf } from "./agent/people.ts";
import { pointerOf, unescapeSegment } from "./text/places.ts";
import { createPrompts, foldersNamed, readSystemPrompt } from "./registry/prompts.ts";
import { CHECK_REGISTRY, type CheckRegistry } from "./questions/questions-shape.ts";
import { buildQuestions } from "./questions/questions.ts";
import { REGISTRY, type RegistrySource } from "./registry/registry-shape.ts";
import { buildGraph, type Sources } from "./registry/registry.ts";
import { createSchemas } from "./registry/schemas.ts";
import { readShape } from "./text/shape.ts";
import { systemStandIn } from "./registry/stand-in.ts";
import { limitsOf } from "./agent/spending.ts";
import { limitsWith, loadVerdict, type Verdict } from "./agent/verdict.ts";

/** `flow` is null only when there is nothing to build; beside errors it may be there to be shown, never to be run. */
export type LoadResult = {
  readonly flow: Flow | null;
  readonly problems: readonly Problem[];
  readonly schemas: readonly SchemaToTry[];
  readonly models: readonly ModelToTry[];
};

/** What only a compiler can judge, and the problem when it does not compile; `path` is where in the schema. */
export type SchemaToTry = {
  readonly schema: JsonSchema;
  readonly refuse: (fault: string, path: Path) => Problem;
};

/** An agent whose folder has stages is made of them; `loadMachine` reads it. */
export function hasStages(name: string, files: FileTree): boolean {
  return files.list(joinPath(".agent", `${name}/stages`)) !== null;
}

/** What the loader has to know of the program around it. */
export type LoadWorld = {
  readonly tools: ToolNames;
  /** The digest of a module's text. */
  readonly digest: Digest;
};

export function loadAgent(
  name: string,
  files: Files,
  findPrompt: FindPrompt,
  { tools, digest }: LoadWorld,
): LoadResult {
  const findings: Finding[] = [];
  const folder = joinPath(".agent", name);
  const nothing = () => ({
    flow: null,
    problems: findings.map((finding) => toProblem(finding, null)),
    schemas: [],
    models: [],
  });

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
  const common = { agent, agentDocument, registry, registryDocument, schema, dialect };
  const sources: Sources =
    questions === null ? { ...common, verdict } : { ...common, verdict: byChecks(verdict), questions };
  const graph =
    questions === null
      ? buildGraph(sources, createPrompts(folder, agent, registry, files, findPrompt))
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
    steps: Object.fromEntries(graph.steps),
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
  const loaded = { name, sources, graph, flow, reach, schemaFiles, files, tools };
  findings.push(...checkFlow(loaded), ...findInert(sources, graph));
  const live = reach?.steps ?? null;
  const problems = findings.map((finding) => toProblem(withStep(finding, registryDocument), live));
  const steps = [...(questions ?? registry).steps].map(([id, { model }]) => ({
    name: model,
    at: atStep(loaded, id, "model"),
  }));
  const models = modelsToTry([defaultModel(agent.runner.flow.defaultModel, agentDocument), ...steps], live);
  return { flow, problems, schemas: schemasOf(loaded), models };
}

/** Each schema once, with all the steps that are asked for it. */
function schemasOf(loaded: Loaded): readonly SchemaToTry[] {
  const users = new Map<JsonSchema, Step[]>();
  for (const step of loaded.graph.steps.values()) {
    if (step.answer.kind !== "object" || step.answer.schema.kind !== "schema") continue;
    const { schema } = step.answer.schema;
    users.set(schema, [...(users.get(schema) ?? []), step]);
  }
  return [...users].map(([schema, steps]) => ({
    schema,
    refuse: (fault, path) => {
      const [{ id }] = steps as [Step];
      const place = schemaPlace(loaded, id, path) ?? schemaPlace(loaded, id, []);
      const at =
        place === null
          ? atStep(loaded, id, "outputSchemaRef")
          : { document: place.document, pointer: pointerOf(place.path) };
      const finding = {
        code: "FAILED_SCHEMA_RESOLUTION",
        ...at,
        steps: steps.map((step) => step.id),
        message: `The schema of the step "${id}" is not a valid JSON Schema: ${fault}.`,
        fix: `Correct the schema in ${at.document.file} at this place.`,
      } as const;
      return toProblem(finding, loaded.reach?.steps ?? null);
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
function byChecks(verdict: Verdict): Verdict {
  return {
    ...verdict,
    stop: { kind: "end" },
    limits: { visits: DEFAULTS.checkedVisits },
    criteria: "The work is done when the check of the last step has passed.",
  };
}

/** The file as a document that holds an object, or null with the reason among the findings. */
export function open(files: Files, file: string, about: About, findings: Finding[]): Document | null {
  const read = readDocument(files, file);
  const { document } = read;
  const report = (code: Code, message: string, fix: string) => {
    findings.push({ code, document, pointer: "", message, fix });
    return null;
  };
  switch (read.kind) {
    case "missing":
      return report(about.missing, about.says, `Create ${file}, or ${about.otherwise}.`);
    case "unreadable":
      return report(
        about.unreadable,
        `${file} cannot be read: ${read.why}.`,
        "Make it a readable file in the project.",
      );
    case "broken":
      return report(
        "AC-SERVICE-002",
        `${file} is not valid JSON: ${read.what}.`,
        "Mend the JSON at this place.",
      );
    case "read":
      findings.push(...repeatedKeys(document));
      if (isObject(document.value)) return document;
      return report(about.noObject, `${file} must hold a JSON object.`, "Write an object in braces.");
  }
}

/** The words for a file that cannot be opened. */
type About = {
  readonly missing: Code;
  readonly unreadable: Code;
  readonly noObject: Code;
  readonly says: string;
  readonly otherwise: string;
};

export function aboutAgent(name: string, folder: string): About {
  return {
    missing: "AC-SERVICE-001",
    unreadable: "AC-SERVICE-003",
    noObject: "AC-VALID-001",
    says: `There is no agent "${name}": looked in ${folder}, and there is no ${folder}/agent.json and no ${folder}/stages.`,
    otherwise: "start from the root of the project that has it",
  };
}

function aboutRegistry(file: string): About {
  return {
    missing: "AC-SERVICE-004",
    unreadable: "AC-SERVICE-004",
    noObject: "SR-LOAD-001",
    says: `There is no steps registry ${file}.`,
    otherwise: "name the registry in runner.flow.prompts.registry",
  };
}

function schemaFolders(folder: string, agent: AgentSource, registry: RegistrySource): readonly string[] {
  const named = agent.runner.flow.schemas.base ?? registry.schemasBase;
  return named === undefined ? [joinPath(folder, DEFAULTS.schemasDir)] : foldersNamed(named, folder);
}

/** `more`: servers of tools that are declared elsewhere. */
export function settingsOf(
  { runner }: AgentSource,
  document: Document,
  actions: Actions,
  more: readonly Declared[] = [],
): Settings {
  const { boundaries, integrations, execution, logging, flow, verdict } = runner;
  const { github } = integrations;
  return {
    verdict: { type: verdict.type, config: writtenConfig(document) },
    boundaries: {
      allowedTools: boundaries.allowedTools,
      permissionMode: boundaries.permissionMode ?? DEFAULTS.permissionMode,
      sandbox: {
        ...(isWritten(document, ["runner", "boundaries", "sandbox"]) && { asked: true as const }),
        enabled: boundaries.sandbox.enabled,
        network: {
          ...(isWritten(document, ["runner", "boundaries", "sandbox", "network"]) && {
            asked: true as const,
          }),
          ...boundaries.sandbox.network,
        },
        filesystem: { ...boundaries.sandbox.filesystem },
        excludedCommands: boundaries.sandbox.excludedCommands,
        allowUnsandboxedCommands: boundaries.sandbox.allowUnsandboxedCommands,
      },
    },
    github: {
      enabled: github.enabled,
      ...(isWriting(document) && { asked: true as const }),
      labels: Object.fromEntries(github.labels.rest),
      completion: { ...github.labels.completion },
      defaultClosureAction: github.defaultClosureAction,
      ...(github.answerLabels.length > 0 && { answerLabels: github.answerLabels }),
      ...(github.mentions && { mentions: true as const }),
    },
    actions,
    worktree: { ...execution.worktree },
    finalize: { ...execution.finalize, prTarget: execution.finalize.prTarget ?? null },
    logging: {
      ...logging,
      maxFiles: logging.maxFiles ?? null,
      enabled: isLogged(logging.directory, document),
    },
    inspectSchemas: flow.schemas.inspection,
    autoResponse: flow.askUserAutoResponse,
    ...peopleOf(runner),
    ...mcpSetting([serversOf({ runner }, document), ...more]),
  };
}

/** Whoever writes the group wants log files; they are written below the project and nowhere else. */
function isLogged(directory: string, document: Document): boolean {
  return isWritten(document, ["runner", "logging"]) && !escapesProject(joinPath("", directory));
}

function writtenConfig({ value }: Document): JsonObject {
  const member = (owner: unknown, key: string) => (isObject(owner) ? own(owner, key) : undefined);
  const config = member(member(member(value, "runner"), "verdict"), "config");
  return isObject(config) ? config : {};
}

/** A finding inside of a step's entry is about that step. A forbidden id is never a step, and so never a dead one. */
function withStep(finding: Finding, registry: Document): Finding {
  if (finding.steps !== undefined || finding.document.file !== registry.file) return finding;
  const segment = /^\/steps\/([^/]+)/.exec(finding.pointer)?.[1];
  const id = segment === undefined ? undefined : unescapeSegment(segment);
  return id === undefined || FORBIDDEN_NAMES.has(id) ? finding : { ...finding, steps: [id] };
}

function remember<K, V>(memory: Map<K, V>, key: K, make: () => V): V {
  const known = memory.get(key);
  if (known !== undefined) return known;
  const made = make();
  memory.set(key, made);
  return made;
}
