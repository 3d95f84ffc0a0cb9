/** Rules about agent.json as a whole: names that agree, folders in the project, settings that are not acted on. */
import type { Path } from "../../flow/json.ts";
import { isWriting } from "../agent/agent-shape.ts";
import { foldersNamed } from "../registry/prompts.ts";
import type { StepSource } from "../registry/registry-shape.ts";
import type { Machine } from "../stages/machine-parts.ts";
import { isWritten, type Document } from "../text/document.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import { escapeSegment, pointerOf } from "../text/places.ts";
import type { Finding } from "./finding.ts";
import type { Loaded, Registered } from "./loaded.ts";
import { error, warning, type Codes, type Rules } from "./rule.ts";

export const rules: Rules = {
  all: [checkName],
  registry: [checkRegistryName, checkFolders],
  stage: [checkMachineName],
};

export const codes = {
  "AC-NAME": warning(
    "name differs from folder",
    "The folder's name starts the agent; a second name misleads.",
  ),
  "SR-LOAD-002": error(
    "registry of another agent",
    "A registry that names another agent was probably copied or misplaced.",
  ),
} satisfies Codes;

/** Told last. */
export const inert: Rules = {
  all: [inertGroups],
  registry: [inertRegistryPath, inertSteps, inertChecks],
  check: [inertMaxIterations],
  stage: [inertBesideStages],
};

function* checkName({ name, agent, agentDocument, words }: Loaded): Generator<Finding> {
  if (agent.name !== undefined && agent.name !== name)
    yield misnamed(name, agent.name, agentDocument, "/name", words.agent);
}

function* checkMachineName({ name, source, document, words }: Machine): Generator<Finding> {
  if (source.id !== undefined && source.id !== name)
    yield misnamed(name, source.id, document, "/id", words.agent);
}

function misnamed(name: string, said: string, document: Document, pointer: string, what: string): Finding {
  return {
    code: "AC-NAME",
    document,
    pointer,
    message: `The ${what} in the folder "${name}" calls itself "${said}".`,
    fix: `Set "${pointer.slice(1)}" to "${name}", or rename the folder.`,
  };
}

function* checkRegistryName({ name, sources }: Registered): Generator<Finding> {
  const { agent, registry, registryDocument } = sources;
  const { agentId } = registry;
  if (agentId === undefined || agentId === name || agentId === agent.name) return;
  yield {
    code: "SR-LOAD-002",
    document: registryDocument,
    pointer: "/agentId",
    message: `The registry belongs to "${agentId}", but the agent is "${agent.name ?? name}".`,
    fix: `Set "agentId" to "${agent.name ?? name}".`,
  };
}

/** Every folder that a file names lies in the project. */
function* checkFolders({ name, sources }: Registered): Generator<Finding> {
  const { agent, agentDocument, registry, registryDocument, questions } = sources;
  const { prompts, schemas } = agent.runner.flow;
  const named = (folder: string) => foldersNamed(folder, `.agent/${name}`);
  const rows: readonly (readonly [Document, string, string | undefined])[] = [
    [agentDocument, "/runner/flow/prompts/fallbackDir", prompts.fallbackDir],
    [agentDocument, "/runner/flow/schemas/base", schemas.base],
    [registryDocument, "/userPromptsBase", registry.userPromptsBase],
    [registryDocument, "/schemasBase", registry.schemasBase],
    [registryDocument, "/basePath", questions?.basePath],
  ];
  for (const [document, pointer, folder] of rows) {
    if (folder === undefined) continue;
    // Prompts with checks are looked for in the first of them only.
    const folders = pointer === "/basePath" ? named(folder).slice(0, 1) : named(folder);
    if (!folders.every(escapesProject)) continue;
    yield {
      code: "AC-SERVICE-003",
      document,
      pointer,
      message: `The folder "${folder}" is outside the project; Lockstep reads nothing there.`,
      fix: "Name a folder inside the project.",
    };
  }
}

type Row = {
  readonly path: Path;
  readonly what: string;
  readonly fix: string;
  /** No version will act on it as things are. */
  readonly never?: true;
  /** Whether it would make a difference. */
  readonly matters: (loaded: Loaded) => boolean;
};

const AGENT_ROWS: readonly Row[] = [
  {
    path: ["runner", "boundaries", "sandbox", "excludedCommands"],
    what: "no command runs outside the sandbox",
    fix: "Remove excludedCommands, or allow what such a command needs with network.trustedDomains and filesystem.allowedPaths.",
    matters: ({ agent }) => agent.runner.boundaries.sandbox.excludedCommands.length > 0,
  },
  {
    path: ["runner", "boundaries", "sandbox", "allowUnsandboxedCommands"],
    what: "the model cannot run a command outside the sandbox",
    fix: "Remove allowUnsandboxedCommands.",
    matters: ({ agent }) => agent.runner.boundaries.sandbox.allowUnsandboxedCommands,
  },
  {
    path: ["runner", "integrations", "github"],
    what: 'no issue is labelled or closed, because the agent has no parameter "issue" to name it',
    never: true,
    fix: 'Declare a parameter "issue" of the type number.',
    matters: ({ agent, agentDocument, flow }) =>
      agent.runner.integrations.github.enabled &&
      isWriting(agentDocument) &&
      flow.dialect !== "stage" &&
      !agent.parameters.has("issue"),
  },
  {
    path: ["runner", "integrations", "github", "labels", "completion"],
    what: "an issue that is only closed keeps its labels, unless the answer of the closure says otherwise",
    never: true,
    fix: 'Set defaultClosureAction to "label-and-close" or "label-only".',
    matters: ({ agent }) => {
      const { enabled, defaultClosureAction, labels } = agent.runner.integrations.github;
      const { add, remove } = labels.completion;
      return enabled && defaultClosureAction === "close" && add.length + remove.length > 0;
    },
  },
  {
    path: ["runner", "execution", "finalize"],
    what: "only the branch of a worktree can be pushed or become a pull request, and runs have no worktree",
    never: true,
    fix: "Set runner.execution.worktree.enabled to true, or start it with --worktree.",
    matters: ({ agent }) => {
      const { worktree, finalize } = agent.runner.execution;
      return !worktree.enabled && (finalize.push || finalize.createPr);
    },
  },
  {
    path: ["runner", "execution", "finalize", "autoMerge"],
    what: "with createPr the branch becomes a pull request and is not merged",
    never: true,
    fix: "Remove autoMerge or createPr.",
    matters: ({ agent }) => {
      const { createPr, autoMerge } = agent.runner.execution.finalize;
      return createPr && autoMerge;
    },
  },
  {
    path: ["runner", "execution", "finalize", "createPr"],
    what: "the branch is pushed, but runner.integrations.github.enabled is false, so no pull request is opened",
    never: true,
    fix: "Set runner.integrations.github.enabled to true, or remove createPr and set push.",
    matters: ({ agent }) =>
      agent.runner.execution.finalize.createPr && !agent.runner.integrations.github.enabled,
  },
  {
    path: ["runner", "logging"],
    what: "its directory is outside the project; no log files are written there",
    fix: "Name a folder inside the project, or pass --log DIR when you start a run.",
    matters: ({ agent }) => escapesProject(joinPath("", agent.runner.logging.directory)),
  },
];

/** Whole groups of agent.json, whatever the flow beside it is written in. */
function* inertGroups(loaded: Loaded): Generator<Finding> {
  for (const { path, what, fix, never, matters } of AGENT_ROWS) {
    if (!isWritten(loaded.agentDocument, path) || !matters(loaded)) continue;
    const message = `${path.join(".")} has no effect${never ? "" : " in this version"}: ${what}.`;
    yield notActedOn(loaded.agentDocument, pointerOf(path), message, fix);
  }
}

function* inertRegistryPath({ sources }: Registered): Generator<Finding> {
  const { agent, agentDocument, registryDocument } = sources;
  const { registryPath } = agent.runner.verdict.config;
  if (registryPath === undefined || registryPath === agent.runner.flow.prompts.registry) return;
  const message = `runner.verdict.config.registryPath has no effect: the registry is ${registryDocument.file}.`;
  const fix = "Name the registry in runner.flow.prompts.registry.";
  yield notActedOn(agentDocument, "/runner/verdict/config/registryPath", message, fix);
}

function* inertMaxIterations({ sources, flow }: Registered): Generator<Finding> {
  const written = sources.agent.runner.verdict.config.maxIterations;
  if (written === undefined || written === flow.limits.visits) return;
  const message = `maxIterations has no effect: a run with check prompts has at most ${flow.limits.visits} visits.`;
  const fix = 'Remove "maxIterations", or limit the steps with maxRetries.';
  yield notActedOn(sources.agentDocument, "/runner/verdict/config/maxIterations", message, fix);
}

const UNUSED_BESIDE_STAGES: readonly Pick<Row, "path" | "what" | "fix">[] = [
  {
    path: ["parameters"],
    what: "a machine declares its parameters as inputs in machine.yaml",
    fix: "Move them to inputs in machine.yaml.",
  },
  {
    path: ["runner", "verdict"],
    what: "a run of stages ends where next leads",
    fix: "Remove it; limits.visits in machine.yaml bounds a run.",
  },
  {
    path: ["runner", "flow", "systemPromptPath"],
    what: "the body of a stage is its whole system prompt",
    fix: "Remove it, or move its text into the stages.",
  },
];

function* inertBesideStages({ agentDocument }: Loaded): Generator<Finding> {
  for (const { path, what, fix } of UNUSED_BESIDE_STAGES) {
    const message = `${path.join(".")} has no effect here: ${what}.`;
    if (isWritten(agentDocument, path)) yield notActedOn(agentDocument, pointerOf(path), message, fix);
  }
}

/** Keys of steps that no version acts on. */
const STEP_ROWS: readonly {
  readonly key: string;
  readonly matters: (step: StepSource) => boolean;
  readonly what: string;
}[] = [
  {
    key: "condition",
    matters: (step) => step.condition !== undefined,
    what: "a step runs whenever a transition leads to it, regardless of its condition",
  },
  {
    key: "priority",
    matters: (step) => step.priority !== undefined,
    what: "only transitions determine the order of steps",
  },
];

function* inertSteps({ sources }: Registered): Generator<Finding> {
  const { registry, registryDocument } = sources;
  const steps = [...registry.steps];
  for (const { key, matters, what } of STEP_ROWS) {
    const ids = steps.filter(([, step]) => matters(step)).map(([id]) => id);
    if (ids.length === 0) continue;
    const message = `"${key}" of ${named(ids)} has no effect: ${what}.`;
    yield notActedOn(
      registryDocument,
      `/steps/${escapeSegment(ids[0]!)}/${key}`,
      message,
      `Remove "${key}".`,
    );
  }
  for (const [id, step] of steps) {
    const intent = step.transitions.entries().find(([, rule]) => typeof rule.fallback === "string")?.[0];
    if (intent === undefined) continue;
    const message = `The fallback of a transition has no effect: only its target is used.`;
    const pointer = `/steps/${escapeSegment(id)}/transitions/${escapeSegment(intent)}/fallback`;
    yield notActedOn(
      registryDocument,
      pointer,
      message,
      'Remove "fallback", or use a condition with a default.',
    );
    return;
  }
}

function* inertChecks({ sources, graph }: Registered): Generator<Finding> {
  const { registry, registryDocument } = sources;
  const { judged, stop } = graph;
  const last = stop?.judged;
  if (
    last?.entry.onFailure.target !== undefined &&
    [...judged.values()].every(({ key }) => key !== last.key)
  ) {
    const message = `"target" of "${last.key}" in validationSteps has no effect: after a failure before the end by the verdict, the run continues where it would have continued anyway.`;
    const pointer = `/validationSteps/${escapeSegment(last.key)}/onFailure/target`;
    yield notActedOn(registryDocument, pointer, message, 'Remove "target".');
  }
  const key = [...registry.validationSteps].find(([, entry]) => entry.outputSchema !== undefined)?.[0];
  if (key === undefined) return;
  const message = `"outputSchema" of "${key}" in validationSteps has no effect: answers are validated against the step's own schema.`;
  const pointer = `/validationSteps/${escapeSegment(key)}/outputSchema`;
  yield notActedOn(registryDocument, pointer, message, "Name the schema in outputSchemaRef of the closure.");
}

function notActedOn(document: Document, pointer: string, message: string, fix: string): Finding {
  return { code: "CONFIG-NOT-ACTED-ON", document, pointer, message, fix };
}

function named(ids: readonly string[]): string {
  return ids.length === 1 ? `the step "${ids[0]}"` : `the step "${ids[0]}" and ${ids.length - 1} more`;
}
