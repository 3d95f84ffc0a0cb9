/** The rules over a loaded flow: everything that can be proved before the first token. Codes and reasons: codes.ts. */
import { FORBIDDEN_NAMES, readPath } from "../../flow/json.ts";
import { checkComplete } from "./complete.ts";
import { checkData } from "./data.ts";
import { checkEnds } from "./ends.ts";
import { checkGates } from "./gates.ts";
import { checkGuards } from "./guards.ts";
import { checkIntents } from "./intents.ts";
import { checkLimits, limitsOfRun } from "./limits.ts";
import { checkPromptFiles } from "./prompt-files.ts";
import { checkPrompts } from "./prompts.ts";
import { checkQuestions } from "./questions.ts";
import { checkReach, checkRoutes } from "./routes.ts";
import { checkArguments, checkCommandList } from "./commands.ts";
import { checkGitHubTool, checkServers, serversOf } from "../agent/mcp.ts";
import { checkVerdict } from "./verdict.ts";
import { checkSandbox } from "./sandbox.ts";
import { checkToolNames } from "./tools.ts";
import { checkWords } from "./words.ts";
import type { Dialect } from "../registry/dialect.ts";
import { isWritten } from "../text/document.ts";
import { correctTo, type Finding } from "./finding.ts";
import { at, atStep, type Registered } from "./loaded.ts";
import { pointerOf } from "../text/places.ts";
import { escapesProject } from "../text/paths.ts";
import { foldersNamed } from "../registry/prompts.ts";
import { didYouMean, onlyNear } from "../text/suggest.ts";
import { namesOf } from "../agent/verdict-types.ts";

export function* checkFlow(loaded: Registered): Generator<Finding> {
  for (const check of RULES[loaded.sources.dialect]) yield* check(loaded);
}

type Rules = readonly ((loaded: Registered) => Iterable<Finding>)[];

const GATE_RULES: Rules = [
  checkNames,
  checkFolders,
  checkSandbox,
  checkSpending,
  checkTools,
  checkArguments,
  checkStepEntries,
  checkEntry,
  checkGates,
  checkIntents,
  checkRoutes,
  checkEnds,
  checkPromptFiles,
  checkVerdict,
  checkPrompts,
  checkWords,
  checkData,
  checkGuards,
];
const RULES: { readonly [dialect in Dialect]: Rules } = {
  gate: GATE_RULES,
  complete: [...GATE_RULES, checkComplete],
  check: [
    checkNames,
    checkFolders,
    checkSandbox,
    checkSpending,
    checkTools,
    checkEntry,
    checkReach,
    checkQuestions,
  ],
};

function* checkNames({ name, sources }: Registered): Generator<Finding> {
  const { agent, agentDocument, registry, registryDocument } = sources;
  if (agent.name !== undefined && agent.name !== name) {
    yield {
      code: "AC-NAME",
      document: agentDocument,
      pointer: "/name",
      message: `The agent in the folder "${name}" calls itself "${agent.name}".`,
      fix: `Set "name" to "${name}", or rename the folder.`,
    };
  }
  const { agentId } = registry;
  if (agentId !== undefined && agentId !== name && agentId !== agent.name) {
    yield {
      code: "SR-LOAD-002",
      document: registryDocument,
      pointer: "/agentId",
      message: `The registry belongs to "${agentId}", but the agent is "${agent.name ?? name}".`,
      fix: `Set "agentId" to "${agent.name ?? name}".`,
    };
  }
}

function checkSpending(loaded: Registered): Iterable<Finding> {
  const { agent, agentDocument, registry, questions } = loaded.sources;
  const steps = [...(questions?.steps ?? registry.steps)].map(([id, { limits }]) => ({
    limits,
    at: atStep(loaded, id, "limits"),
    owner: `step "${id}"`,
  }));
  return checkLimits(limitsOfRun(agent.runner.limits, agentDocument, "/runner/limits"), steps);
}

/** Every folder that a file names lies in the project. */
function* checkFolders({ name, sources }: Registered): Generator<Finding> {
  const { agent, agentDocument, registry, registryDocument } = sources;
  const { prompts, schemas } = agent.runner.flow;
  const folders = [
    { document: agentDocument, pointer: "/runner/flow/prompts/fallbackDir", folder: prompts.fallbackDir },
    { document: agentDocument, pointer: "/runner/flow/schemas/base", folder: schemas.base },
    { document: registryDocument, pointer: "/userPromptsBase", folder: registry.userPromptsBase },
    { document: registryDocument, pointer: "/schemasBase", folder: registry.schemasBase },
  ];
  for (const { document, pointer, folder } of folders) {
    if (folder === undefined || !foldersNamed(folder, `.agent/${name}`).every(escapesProject)) continue;
    yield {
      code: "AC-SERVICE-003",
      document,
      pointer,
      message: `The folder "${folder}" is outside the project; Lockstep reads nothing there.`,
      fix: "Name a folder inside the project.",
    };
  }
}

function* checkTools({ sources, graph, reach, tools: names }: Registered): Generator<Finding> {
  const { agent, agentDocument: document } = sources;
  const tools = agent.runner.boundaries.allowedTools;
  const live = [...graph.steps.values()].filter(({ id }) => reach?.steps.has(id) ?? true);
  const allowed = { document, pointer: "/runner/boundaries/allowedTools", tools };
  yield* checkToolNames(tools, names, allowed);
  yield* checkServers([serversOf(agent, document)], allowed, live);
  yield* checkCommandList(tools, { document, pointer: allowed.pointer });
  if (!agent.runner.integrations.github.enabled)
    yield* checkGitHubTool(tools, { document, pointer: allowed.pointer });
}

function* checkStepEntries(loaded: Registered): Generator<Finding> {
  const { registry, registryDocument } = loaded.sources;
  for (const [id, source] of registry.steps) {
    if (FORBIDDEN_NAMES.has(id)) {
      const { document, pointer } = atStep(loaded, id);
      yield {
        code: "FORBIDDEN-NAME",
        document,
        pointer,
        message: `"${id}" is not a valid step id.`,
        fix: "Rename the step.",
      };
      continue;
    }
    if (source.stepId !== undefined && source.stepId !== id) {
      yield {
        code: "SR-VALID-004",
        ...atStep(loaded, id, "stepId"),
        message: `The step "${id}" calls itself "${source.stepId}".`,
        fix: `Set "stepId" to "${id}".`,
        ...correctTo(id, registryDocument, atStep(loaded, id, "stepId").pointer),
      };
    }
    if (
      source.structuredGate !== undefined &&
      !loaded.graph.flow.kinds.has(id) &&
      !id.startsWith("section.")
    ) {
      yield {
        code: "SR-VALID-004",
        ...atStep(loaded, id),
        message: `The step "${id}" has a structuredGate but no kind: c2 is "${source.c2 ?? ""}" and stepKind is missing, so it is not part of the flow.`,
        fix: 'Set "stepKind" to work, verification or closure.',
      };
    }
    if (source.runner !== undefined && loaded.graph.flow.kinds.get(id) !== "close") {
      yield {
        code: "SR-VALID-004",
        severity: "warning",
        ...atStep(loaded, id, "runner"),
        message: `The step "${id}" runs a command but is not a closure, so the command's success does not end the run.`,
        fix: 'Set "stepKind" to closure, or remove "runner".',
      };
    }
  }
  if (registry.steps.size === 0 && isWritten(registryDocument, ["steps"])) {
    yield {
      code: "SR-LOAD-001",
      document: registryDocument,
      pointer: "/steps",
      message: `${registryDocument.file} has no steps.`,
      fix: "Add a step.",
    };
  }
}

function* checkEntry(loaded: Registered): Generator<Finding> {
  const { registry, registryDocument: document, verdict } = loaded.sources;
  const { entry, flow } = loaded.graph;
  const isMapped = entry.path?.[0] === "entryStepMapping";
  const unknown = (step: string) =>
    registry.steps.has(step)
      ? `"${step}" has no kind, so it is not a step of the flow.`
      : `There is no step "${step}".${didYouMean(step, flow.ids)}`;

  const written = readPath(loaded.sources.agentDocument.value, ["runner", "verdict", "type"]);
  const word = typeof written === "string" ? written : verdict.type;
  if (entry.step === "") {
    yield {
      code: "SR-ENTRY-001",
      document,
      pointer: "",
      message: `[StepFlow] No entry step configured for completionType "${word}".\nDefine either "entryStepMapping.${word}" or "entryStep" in steps_registry.json.`,
      fix: `Add "entryStep" with the id of the first step.`,
    };
  } else if (!flow.kinds.has(entry.step)) {
    yield {
      code: isMapped ? "SR-ENTRY-003" : "SR-ENTRY-002",
      ...at(loaded, "entry"),
      message: `Runs with the verdict type "${verdict.type}" start at "${entry.step}". ${unknown(entry.step)}`,
      fix: "Name a step of the flow.",
      ...correctTo(onlyNear(entry.step, flow.ids), document, pointerOf(entry.path ?? [])),
    };
  }
  const active = new Set(namesOf(verdict.type));
  for (const [type, step] of registry.entryStepMapping) {
    if (active.has(type) || flow.kinds.has(step)) continue;
    yield {
      code: "SR-ENTRY-003",
      severity: "warning",
      document,
      pointer: `/entryStepMapping/${type}`,
      message: `Runs with the verdict type "${type}" start at "${step}". ${unknown(step)}`,
      fix: "Name a step of the flow, or remove the entry.",
      ...correctTo(onlyNear(step, flow.ids), document, `/entryStepMapping/${type}`),
    };
  }
  if (registry.entryStep !== undefined && isMapped && !flow.kinds.has(registry.entryStep)) {
    yield {
      code: "SR-ENTRY-002",
      severity: "warning",
      document,
      pointer: "/entryStep",
      message: `entryStep is not used with this verdict type, and is not valid. ${unknown(registry.entryStep)}`,
      fix: "Name a step of the flow, or remove entryStep.",
    };
  }
}
