/** What is said when a prompt file is nowhere to be found, and whether anything may be. */
import type { Prompt, StepId, StepKind } from "../flow/flow.ts";
import { readPath } from "../flow/json.ts";
import { isWritten } from "./document.ts";
import { FALLBACKS } from "./fallbacks.ts";
import type { StepSource } from "./registry-shape.ts";
import type { Sources } from "./registry.ts";
import { placeholders, runtimeNames } from "./variables.ts";
import { signalValues, verdictWords, type Words } from "./verdict-prompts.ts";

/** A built-in prompt in place of one that was not found, or that one as it is. */
export type StandIn = (id: StepId, source: StepSource, kind: StepKind | null, missing: Prompt) => Prompt;

/**
 * Where built-in prompts stand in: for every step of a registry written for them, which one of four keys tells; else
 * for closures; nowhere in a strict flow or for an agent that forbids it.
 */
export function standsIn({
  dialect,
  agent,
  agentDocument,
  registry,
}: Sources): "steps" | "closures" | "none" {
  if (dialect !== "gate" || agent.runner.flow.prompts.strict) return "none";
  const isWrittenForThem =
    registry.userPromptsBase !== undefined ||
    registry.schemasBase !== undefined ||
    isWritten(agentDocument, ["runner", "flow", "prompts", "fallbackDir"]) ||
    [...registry.steps.values()].some((step) => step.fallbackKey !== undefined);
  return isWrittenForThem ? "steps" : "closures";
}

export function createStandIn(sources: Sources, entry: StepId): StandIn {
  const { agent, agentDocument } = sources;
  const where = standsIn(sources);
  const runtime = runtimeNames(agentDocument.value);
  const sure = [...agent.parameters]
    .filter(([, { required, default: value }]) => required || value !== undefined)
    .map(([name]) => name);
  const labels = [...agent.runner.integrations.github.labels.rest.keys()].map((key) => `label_${key}`);
  const supplied = [...runtime, ...sure, ...labels];

  return (id, source, kind, missing) => {
    if (where === "none" || !isOnlyMissing(missing)) return missing;
    if (source.fallbackKey !== undefined) {
      const text = FALLBACKS.get(source.fallbackKey);
      if (text === undefined) return missing;
      const values = signalValues(readPath(agentDocument.value, ["runner", "verdict", "config"]) ?? {});
      return builtIn({ name: source.fallbackKey, text, values }, missing, supplied);
    }
    // A section has words of its own or none.
    if (kind === null || (where === "closures" && kind !== "close")) return missing;
    const isFirst = id === entry || id.startsWith("initial.");
    const words = verdictWords(agent, agentDocument.value, isFirst);
    return builtIn(
      {
        ...words,
        text: [words.text, ...(kind === "close" ? [CLOSING] : [])].join("\n\n"),
        values: { ...words.values, ...aboutStep(id, source) },
      },
      missing,
      [...supplied, ...source.inputs.keys()],
    );
  };
}

/** The catalogue's system prompt, where an entry of the registry names it. */
export function systemStandIn(sources: Sources, missing: Prompt): Prompt {
  if (missing.file !== null || standsIn(sources) === "none" || !isOnlyMissing(missing)) return missing;
  const isNamed = [...sources.registry.steps.values()].some((step) => step.fallbackKey === "system");
  return isNamed
    ? { ...missing, file: "built-in:system", text: FALLBACKS.get("system")!, builtIn: { values: {} } }
    : missing;
}

const CLOSING = "See for yourself that the whole is finished, and confirm it only if it is.";

/** A place that was refused, or a file that cannot be read, is no missing file: nothing stands in for it. */
function isOnlyMissing({ tried }: Prompt): boolean {
  return !tried.some((path) => / \((?:refused: |unreadable: |the path )/.test(path));
}

/** Without the lines that read what nothing supplies, and with what the step declares but the text does not read. */
function builtIn({ name, text, values }: Words, missing: Prompt, supplied: readonly string[]): Prompt {
  const known = new Set([...supplied, ...missing.variables, ...Object.keys(values)]);
  const said = text
    .split("\n")
    .filter((line) => placeholders(line).every((variable) => known.has(variable)))
    .join("\n");
  const read = new Set(placeholders(said));
  const rest = missing.variables
    .filter((variable) => !read.has(variable) && /^[A-Za-z0-9_-]+$/.test(variable))
    .map((variable) => `- ${variable}: {uv-${variable}}`);
  const paragraphs = [
    said.trim().replaceAll(/\n{3,}/g, "\n\n"),
    ...(rest.length > 0 ? [rest.join("\n")] : []),
  ];
  return { ...missing, file: `built-in:${name}`, text: paragraphs.join("\n\n"), builtIn: { values } };
}

function aboutStep(id: StepId, { name, description }: StepSource): { readonly [name: string]: string } {
  return {
    step_id: id,
    ...(name !== undefined && name !== id && { step_name: name }),
    ...(description !== undefined && { step_description: description }),
  };
}
