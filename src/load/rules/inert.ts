/** Rules about settings without effect. */
import { pointerOf } from "../../flow/json-pointer.ts";
import type { Path } from "../../flow/json.ts";
import { isWriting } from "../agent/agent-shape.ts";
import { isWritten } from "../text/document.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import type { At, LoadedFlow, Registered } from "./loaded.ts";
import { warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";

/** Reported last. */
export const rules: Rules = {
  all: [inertGroups],
  registry: [inertRegistryPath, inertSteps, inertChecks],
  check: [inertMaxIterations],
};

export const codes = {
  "CONFIG-NOT-ACTED-ON": warning(
    "setting without effect",
    "A setting without effect must not look as if it had one.",
  ),
} satisfies Codes;

type Row = {
  readonly path: Path;
  readonly what: string;
  readonly fix: string;
  /** Where it has no effect; absent: anywhere, as things are. */
  readonly where?: "in this version" | "here";
  /** Whether it would make a difference. */
  readonly matters: (loaded: LoadedFlow) => boolean;
};

const AGENT_ROWS: readonly Row[] = [
  {
    path: ["runner", "boundaries", "sandbox", "excludedCommands"],
    where: "in this version",
    what: "no command runs outside the sandbox",
    fix: "Remove excludedCommands, or allow what such a command needs with network.trustedDomains and filesystem.allowedPaths.",
    matters: ({ agent }) => agent.runner.boundaries.sandbox.excludedCommands.length > 0,
  },
  {
    path: ["runner", "boundaries", "sandbox", "allowUnsandboxedCommands"],
    where: "in this version",
    what: "the model cannot run a command outside the sandbox",
    fix: "Remove allowUnsandboxedCommands.",
    matters: ({ agent }) => agent.runner.boundaries.sandbox.allowUnsandboxedCommands,
  },
  {
    path: ["runner", "integrations", "github"],
    what: 'no issue is labelled or closed, because the agent has no parameter "issue" to name it',
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
    fix: "Set runner.execution.worktree.enabled to true, or start it with --worktree.",
    matters: ({ agent }) => {
      const { worktree, finalize } = agent.runner.execution;
      return !worktree.enabled && (finalize.push || finalize.createPr);
    },
  },
  {
    path: ["runner", "execution", "finalize", "autoMerge"],
    what: "with createPr the branch becomes a pull request and is not merged",
    fix: "Remove autoMerge or createPr.",
    matters: ({ agent }) => {
      const { createPr, autoMerge } = agent.runner.execution.finalize;
      return createPr && autoMerge;
    },
  },
  {
    path: ["runner", "execution", "finalize", "createPr"],
    what: "the branch is pushed, but runner.integrations.github.enabled is false, so no pull request is opened",
    fix: "Set runner.integrations.github.enabled to true, or remove createPr and set push.",
    matters: ({ agent }) =>
      agent.runner.execution.finalize.createPr && !agent.runner.integrations.github.enabled,
  },
  {
    path: ["runner", "logging"],
    where: "in this version",
    what: "its directory is outside the project; no log files are written there",
    fix: "Name a folder inside the project, or pass --log DIR when you start a run.",
    matters: ({ agent }) => escapesProject(joinPath("", agent.runner.logging.directory)),
  },
  {
    path: ["parameters"],
    where: "here",
    what: "a machine declares its parameters as inputs in machine.yaml",
    fix: "Move them to inputs in machine.yaml.",
    matters: isMadeOfStages,
  },
  {
    path: ["runner", "verdict"],
    where: "here",
    what: "a run of stages ends where next leads",
    fix: "Remove it; limits.visits in machine.yaml bounds a run.",
    matters: isMadeOfStages,
  },
  {
    path: ["runner", "flow", "systemPromptPath"],
    where: "here",
    what: "the body of a stage is its whole system prompt",
    fix: "Remove it, or move its text into the stages.",
    matters: isMadeOfStages,
  },
];

function isMadeOfStages({ flow }: LoadedFlow): boolean {
  return flow.dialect === "stage";
}

/** Whole groups of agent.json, whatever the flow beside it is written in. */
function inertGroups(loaded: LoadedFlow, tell: Tell): void {
  const { agentDocument: document } = loaded;
  for (const { path, what, fix, where = "", matters } of AGENT_ROWS) {
    if (!isWritten(document, path) || !matters(loaded)) continue;
    const message = `${path.join(".")} has no effect ${where}`.trimEnd();
    tell(notActedOn({ document, pointer: pointerOf(path) }, `${message}: ${what}.`, fix));
  }
}

function inertRegistryPath({ sources }: Registered, tell: Tell): void {
  const { agent, agentDocument, registryDocument } = sources;
  const { registryPath } = agent.runner.verdict.config;
  if (registryPath === undefined || registryPath === agent.runner.flow.prompts.registry) return;
  const message = `runner.verdict.config.registryPath has no effect: the registry is ${registryDocument.file}.`;
  const fix = "Name the registry in runner.flow.prompts.registry.";
  const pointer = "/runner/verdict/config/registryPath";
  tell(notActedOn({ document: agentDocument, pointer }, message, fix));
}

function inertMaxIterations({ sources, flow }: Registered, tell: Tell): void {
  const written = sources.agent.runner.verdict.config.maxIterations;
  if (written === undefined || written === flow.limits.visits) return;
  const message = `maxIterations has no effect: a run with check prompts has at most ${flow.limits.visits} visits.`;
  const fix = 'Remove "maxIterations", or limit the steps with maxRetries.';
  const pointer = "/runner/verdict/config/maxIterations";
  tell(notActedOn({ document: sources.agentDocument, pointer }, message, fix));
}

/** Keys of steps that no version acts on. */
const STEP_KEYS = {
  condition: "a step runs whenever a transition leads to it, regardless of its condition",
  priority: "only transitions determine the order of steps",
} as const;

function inertSteps({ sources }: Registered, tell: Tell): void {
  const { registry, registryDocument: document } = sources;
  for (const key of ["condition", "priority"] as const) {
    const ids = [...registry.steps.keys()].filter((id) => registry.steps.get(id)![key] !== undefined);
    const [first] = ids;
    if (first === undefined) continue;
    const message = `"${key}" of ${named(ids)} has no effect: ${STEP_KEYS[key]}.`;
    tell(notActedOn({ document, pointer: pointerOf(["steps", first, key]) }, message, `Remove "${key}".`));
  }
  for (const id of registry.steps.keys()) {
    const { transitions } = registry.steps.get(id)!;
    const intent = [...transitions.keys()].find((key) => typeof transitions.get(key)!.fallback === "string");
    if (intent === undefined) continue;
    const pointer = pointerOf(["steps", id, "transitions", intent, "fallback"]);
    const message = "The fallback of a transition has no effect: only its target is used.";
    const fix = 'Remove "fallback", or use a condition with a default.';
    tell(notActedOn({ document, pointer }, message, fix));
    return;
  }
}

function inertChecks({ sources, graph }: Registered, tell: Tell): void {
  const { registry, registryDocument: document } = sources;
  const { judged, stop } = graph;
  const last = stop?.judged;
  if (
    last?.entry.onFailure.target !== undefined &&
    [...judged.values()].every(({ key }) => key !== last.key)
  ) {
    const message = `"target" of "${last.key}" in validationSteps has no effect: after a failure before the end by the verdict, the run continues where it would have continued anyway.`;
    const pointer = pointerOf(["validationSteps", last.key, "onFailure", "target"]);
    tell(notActedOn({ document, pointer }, message, 'Remove "target".'));
  }
  const key = [...registry.validationSteps].find(([, entry]) => entry.outputSchema !== undefined)?.[0];
  if (key === undefined) return;
  const message = `"outputSchema" of "${key}" in validationSteps has no effect: answers are validated against the step's own schema.`;
  const pointer = pointerOf(["validationSteps", key, "outputSchema"]);
  tell(notActedOn({ document, pointer }, message, "Name the schema in outputSchemaRef of the closure."));
}

export function notActedOn(place: At, message: string, fix: string): Finding {
  return { code: "CONFIG-NOT-ACTED-ON", ...place, message, fix };
}

function named(ids: readonly string[]): string {
  return ids.length === 1 ? `the step "${ids[0]}"` : `the step "${ids[0]}" and ${ids.length - 1} more`;
}
