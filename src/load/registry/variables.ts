/** The names of prompt variables: which of them a run supplies by itself, and which a text reads. */
import type { Flow } from "../../flow/flow.ts";
import { isObject, own, readPath, type Json, type JsonObject } from "../../flow/json.ts";

export const INPUT_TEXT = "input_text";

/** Names that every run supplies by itself. */
export const RUNTIME_NAMES: readonly string[] = [
  INPUT_TEXT,
  "iteration",
  "completed_iterations",
  "max_iterations",
  "remaining",
  "check_count",
  "previous_summary",
];

/** The same, with those that only some verdicts have. `agent`: what agent.json holds. */
export function runtimeNames(agent: Json): readonly string[] {
  const settings = verdictSettings(readPath(agent, ["runner", "verdict", "config"]));
  const has = (key: string) => settings.some((config) => own(config, key) !== undefined);
  return [
    ...RUNTIME_NAMES,
    ...(has("verdictKeyword") ? ["completion_keyword"] : []),
    ...(has("maxChecks") ? ["max_checks"] : []),
  ];
}

/** The settings of a verdict, then those of the verdicts that it combines. */
function verdictSettings(config: Json | undefined): readonly JsonObject[] {
  if (!isObject(config)) return [];
  const children: readonly Json[] = Array.isArray(config.conditions) ? config.conditions : [];
  return [config, ...children.map((child) => readPath(child, ["config"])).filter(isObject)];
}

/** The names in `{uv-name}`, each once. */
export function placeholders(text: string): readonly string[] {
  return [...placeholderPlaces(text).keys()];
}

/** The names in `{uv-name}`, and where each is read first. */
export function placeholderPlaces(text: string): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const { index, 1: name = "" } of text.matchAll(/\{uv-([A-Za-z0-9_-]+)\}/g))
    if (!places.has(name)) places.set(name, index);
  return places;
}

/** The names that a prompt reads, by itself and through the sections in it. */
export function namesRead({ sections }: Pick<Flow, "sections">, text: string): readonly string[] {
  const names = placeholders(text);
  if (sections === undefined) return names;
  const through = names.flatMap((name) => placeholders(own(sections, name)?.text ?? ""));
  return [...new Set([...names, ...through])];
}

/** Whether what was piped in is part of the prompt. */
export function readsInput({ sections }: Pick<Flow, "sections">, text: string): boolean {
  const isIn = (words: string) => words.includes(`{${INPUT_TEXT}}`) || words.includes(`{uv-${INPUT_TEXT}}`);
  return isIn(text) || placeholders(text).some((name) => isIn(own(sections ?? {}, name)?.text ?? ""));
}
