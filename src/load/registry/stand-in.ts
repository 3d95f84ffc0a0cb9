/** What is said when a prompt file is nowhere to be found, and whether anything may be. */
import type { Prompt, StepId, StepKind } from "../../flow/flow.ts";
import { isObject, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import { isWritten } from "../text/document.ts";
import { FALLBACKS } from "./fallbacks.ts";
import type { StepSource } from "./registry-shape.ts";
import type { Sources } from "./registry.ts";
import { RUNTIME_NAMES } from "../../flow/reads.ts";
import { placeholders } from "../../flow/text/template.ts";
import { signalValues, verdictWords, type BuiltInText } from "./verdict-prompts.ts";

/** A built-in prompt in place of one that was not found, or that one as it is. */
export type StandIn = (id: StepId, source: StepSource, kind: StepKind | null, missing: Prompt) => Prompt;

/**
 * Where built-in prompts stand in: for every step of a registry written for them, which one of four keys tells; else
 * for closures; nowhere in a strict flow or for an agent that forbids it.
 */
function standsIn({ dialect, agent, agentDocument, registry }: Sources): "steps" | "closures" | "none" {
  if (dialect !== "gate" || agent.runner.flow.prompts.strict) return "none";
  const isWrittenForThem =
    registry.userPromptsBase !== undefined ||
    registry.schemasBase !== undefined ||
    isWritten(agentDocument, ["runner", "flow", "prompts", "fallbackDir"]) ||
    [...registry.steps.values()].some((step) => step.fallbackKey !== undefined);
  return isWrittenForThem ? "steps" : "closures";
}

export function createStandIn(sources: Sources, entry: StepId): StandIn {
  const where = standsIn(sources);
  const supplied = suppliedNames(sources);
  return (id, source, kind, missing) => {
    if (where === "none" || !isOnlyMissing(missing)) return missing;
    // A section has a text of its own, or the one that its key names.
    const hasVerdictWords = kind === "close" || (kind !== null && where === "steps");
    const words =
      source.fallbackKey !== undefined
        ? catalogued(source.fallbackKey, sources)
        : hasVerdictWords
          ? byVerdict(id, source, kind, id === entry || id.startsWith("initial."), sources)
          : null;
    const declared = [...new Set([...missing.variables, ...source.inputs.keys()])];
    return words === null ? missing : builtIn(words, missing, declared, supplied);
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

function catalogued(key: string, { agentDocument }: Sources): BuiltInText | null {
  const text = FALLBACKS.get(key);
  if (text === undefined) return null;
  const settings = readPath(agentDocument.value, ["runner", "verdict", "config"]) ?? {};
  return { name: key, text, values: signalValues(settings) };
}

const CLOSING = "See for yourself that the whole is finished, and confirm it only if it is.";

function byVerdict(
  id: StepId,
  { name, description }: StepSource,
  kind: StepKind,
  isFirst: boolean,
  { agent, agentDocument }: Sources,
): BuiltInText {
  const words = verdictWords(agent, agentDocument.value, isFirst);
  const aboutStep = {
    step_id: id,
    ...(name !== undefined && name !== id && { step_name: name }),
    ...(description !== undefined && { step_description: description }),
  };
  return {
    name: words.name,
    text: kind === "close" ? `${words.text}\n\n${CLOSING}` : words.text,
    values: { ...words.values, ...aboutStep },
  };
}

/** Names that have a value in every prompt of the agent. */
function suppliedNames({ agent, agentDocument }: Sources): readonly string[] {
  const parameters = [...agent.parameters]
    .filter(([, { required, default: value }]) => required || value !== undefined)
    .map(([name]) => name);
  // Whatever the verdict type: what its configuration holds can be told.
  const has = (key: string) =>
    verdictSettings(agentDocument.value).some((config) => Object.hasOwn(config, key));
  const ofVerdict = [
    ...(has("verdictKeyword") ? ["completion_keyword"] : []),
    ...(has("maxChecks") ? ["max_checks"] : []),
  ];
  const labels = [...agent.runner.integrations.github.labels.rest.keys()].map((key) => `label_${key}`);
  return [...RUNTIME_NAMES, ...ofVerdict, ...parameters, ...labels];
}

/** The settings of a verdict, then those of the verdicts that it combines. */
function verdictSettings(agent: Json): readonly JsonObject[] {
  const config = readPath(agent, ["runner", "verdict", "config"]);
  if (!isObject(config)) return [];
  const children: readonly Json[] = Array.isArray(config.conditions) ? config.conditions : [];
  return [config, ...children.map((child) => readPath(child, ["config"])).filter(isObject)];
}

/** A rejected path or an unreadable file does not count as missing: no built-in prompt replaces it. */
function isOnlyMissing({ tried }: Prompt): boolean {
  return !tried.some((path) => / \((?:refused|unreadable): /.test(path));
}

/** Without the lines that read what nothing supplies, and with what the step declares but the text does not read. */
function builtIn(
  { name, text, values }: BuiltInText,
  missing: Prompt,
  declared: readonly string[],
  supplied: readonly string[],
): Prompt {
  const known = new Set([...supplied, ...declared, ...Object.keys(values)]);
  const lines = text.split("\n").filter((line) => placeholders(line).every((one) => known.has(one)));
  const said = lines
    .join("\n")
    .trim()
    .replaceAll(/\n{3,}/g, "\n\n");
  const read = new Set(placeholders(said));
  const rest = declared
    .filter((one) => !read.has(one) && /^[A-Za-z0-9_-]+$/.test(one))
    .map((one) => `- ${one}: {uv-${one}}`);
  return {
    ...missing,
    file: `built-in:${name}`,
    text: rest.length === 0 ? said : `${said}\n\n${rest.join("\n")}`,
    builtIn: { values },
  };
}
