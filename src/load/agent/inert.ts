/** Settings that are understood but not acted on. One warning each, where they were written. */
import type { Path } from "../../flow/json.ts";
import { isWriting } from "./agent-shape.ts";
import { isWritten, type Document } from "../text/document.ts";
import type { Finding } from "../rules/finding.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import { escapeSegment, pointerOf } from "../text/places.ts";
import type { StepSource } from "../registry/registry-shape.ts";
import type { Graph, Sources } from "../registry/registry.ts";

export function findInert(sources: Sources, graph: Graph): readonly Finding[] {
  return [...inAgent(sources), ...inRegistry(sources), ...inValidation(sources, graph)];
}

type Row = {
  readonly path: Path;
  readonly what: string;
  readonly fix: string;
  /** No version will act on it as things are. */
  readonly never?: true;
  /** Whether it would make a difference. */
  readonly matters: (sources: AgentSources) => boolean;
};

type AgentSources = Pick<Sources, "agent" | "agentDocument"> & {
  /** A run can be told which issue it is about. */
  readonly hasIssue: boolean;
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
    matters: ({ agent, agentDocument, hasIssue }) =>
      agent.runner.integrations.github.enabled && isWriting(agentDocument) && !hasIssue,
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

function* inAgent(sources: Sources): Generator<Finding> {
  const { agent, agentDocument } = sources;
  yield* inertGroups({ agent, agentDocument, hasIssue: agent.parameters.has("issue") });
  const { registryPath } = agent.runner.verdict.config;
  if (registryPath !== undefined && registryPath !== agent.runner.flow.prompts.registry) {
    const message = `runner.verdict.config.registryPath has no effect: the registry is ${sources.registryDocument.file}.`;
    const fix = "Name the registry in runner.flow.prompts.registry.";
    yield notActedOn(agentDocument, "/runner/verdict/config/registryPath", message, fix);
  }
}

/** Whole groups of agent.json, whatever the flow beside it is written in. */
export function* inertGroups(sources: AgentSources): Generator<Finding> {
  for (const { path, what, fix, never, matters } of AGENT_ROWS) {
    if (!isWritten(sources.agentDocument, path) || !matters(sources)) continue;
    yield notActedOn(
      sources.agentDocument,
      pointerOf(path),
      `${path.join(".")} has no effect${never ? "" : " in this version"}: ${what}.`,
      fix,
    );
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

function* inRegistry({ registry, registryDocument }: Sources): Generator<Finding> {
  for (const { key, matters, what } of STEP_ROWS) {
    const ids = [...registry.steps].filter(([, step]) => matters(step)).map(([id]) => id);
    if (ids.length === 0) continue;
    const message = `"${key}" of ${named(ids)} has no effect: ${what}.`;
    yield notActedOn(
      registryDocument,
      `/steps/${escapeSegment(ids[0]!)}/${key}`,
      message,
      `Remove "${key}".`,
    );
  }
  for (const [id, step] of registry.steps) {
    const intent = [...step.transitions].find(([, rule]) => typeof rule.fallback === "string")?.[0];
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

function* inValidation(sources: Sources, { judged, stop }: Graph): Generator<Finding> {
  const { registry, registryDocument } = sources;
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

export function notActedOn(document: Document, pointer: string, message: string, fix: string): Finding {
  return { code: "CONFIG-NOT-ACTED-ON", document, pointer, message, fix };
}

function named(ids: readonly string[]): string {
  return ids.length === 1 ? `the step "${ids[0]}"` : `the step "${ids[0]}" and ${ids.length - 1} more`;
}
