/** Rules about where prompts are: the files of steps, sections and the system, and what stands in for them. */
import type { Prompt, StepId } from "../../flow/flow.ts";
import { climptPatterns } from "../agent/climpt.ts";
import { FALLBACKS } from "../registry/fallbacks.ts";
import { atStep, type At, type LoadedFlow, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import { emptyDocument } from "../text/document.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import type { StepSource } from "../registry/registry-shape.ts";
import { readersOf, type Section } from "../registry/sections.ts";
import { checkSystemNames } from "./prompts.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export const rules: Rules = {
  registry: [checkSystem],
  gated: [checkPromptFiles, checkClimpt],
  all: [checkTexts],
};

export const codes = {
  "PR-C3L-004": error("prompt not found", "A step cannot run without a prompt."),
  "PR-SYSTEM": error(
    "system prompt not found",
    "Without it, the agent would run without its author's instructions.",
  ),
  "PROMPT-FALLBACK-USED": warning(
    "built-in prompt",
    "Built-in prompts know nothing about the task; the author should write the prompt of each step.",
  ),
  "PROMPT-SIZE": warning(
    "very long prompt",
    "The prompt is sent with every request of its step, and one that exceeds the model's context fails the run.",
  ),
  "PROMPT-EMPTY": warning(
    "empty prompt",
    "The model gets no instructions from it, and answers with whatever the rest of the conversation suggests.",
  ),
  "FALLBACK-KEY": warning(
    "unknown fallbackKey",
    "A fallbackKey must be in the catalogue of built-in prompts.",
  ),
  "SECTION-UNUSED": warning(
    "section never used",
    "A section that no prompt includes never reaches the model.",
  ),
  "C3L-PATTERN": warning(
    "prompt coordinate outside the pattern",
    "Climpt, which is also configured in this project, would not find this prompt.",
  ),
} satisfies Codes;

function checkPromptFiles(loaded: Registered, tell: Tell): void {
  for (const { id, by, prompt } of loaded.graph.steps.values()) {
    if (by.kind === "command") continue;
    checkFile(loaded, id, loaded.sources.registry.steps.get(id)!, prompt, tell);
  }
  for (const section of loaded.graph.sections) checkSection(loaded, section, tell);
}

type Said = { readonly prompt: Prompt; readonly steps?: readonly StepId[] };

function* promptsOf({ flow }: LoadedFlow): Generator<Said> {
  yield { prompt: flow.system };
  for (const { id, prompt, guard } of Object.values(flow.steps)) {
    yield { prompt, steps: [id] };
    for (const { edition } of guard?.checks ?? []) yield { prompt: edition, steps: [id] };
  }
  for (const prompt of Object.values(flow.sections ?? {})) yield { prompt };
  for (const { edition } of flow.stopGuard?.checks ?? []) yield { prompt: edition };
}

/** Each file once. */
function checkTexts(loaded: LoadedFlow, tell: Tell): void {
  const seen = new Set<string>();
  for (const { prompt, steps } of promptsOf(loaded)) {
    const { file, text } = prompt;
    if (file === null || seen.has(file)) continue;
    seen.add(file);
    const place = { document: emptyDocument(file), pointer: "", ...(steps !== undefined && { steps }) };
    if (text.length > DEFAULTS.promptLength)
      tell({
        code: "PROMPT-SIZE",
        ...place,
        message: `${file} holds a prompt of ${text.length} characters; above ${DEFAULTS.promptLength} few models can read it.`,
        fix: "Shorten the prompt, and let the model read large files with its tools.",
      });
    // A stage can do without one: it also has its inputs and its completion tool.
    if (text.trim() === "" && prompt.syntax !== "stage")
      tell({
        code: "PROMPT-EMPTY",
        ...place,
        message: `${file} holds no prompt: it is empty, or has only front matter.`,
        fix: `Write in ${file} what the model is to do.`,
      });
  }
}

/** The form with check prompts has words of its own for a system prompt that is not there. */
function checkSystem(loaded: Registered, tell: Tell): void {
  const isCheck = loaded.sources.dialect === "check";
  tellSystemFaults(loaded, (finding) => tell(isCheck ? { ...finding, severity: "warning" } : finding));
}

function tellSystemFaults(loaded: Registered, tell: Tell): void {
  const { flow, sources } = loaded;
  const { agent, agentDocument: document } = sources;
  const path = agent.runner.flow.systemPromptPath;
  const pointer = "/runner/flow/systemPromptPath";
  const tried = flow.system.tried.join(", ");
  if (flow.system.builtIn !== undefined) {
    tell({
      code: "PROMPT-FALLBACK-USED",
      document,
      pointer,
      message: `There is no system prompt: the built-in prompt "system" is used instead. Tried: ${tried}.`,
      fix: `Create ${flow.system.tried[0]}.`,
    });
  } else if (flow.system.file === null && (path !== undefined || tried.includes(" (unreadable: "))) {
    tell({
      code: "PR-SYSTEM",
      document,
      pointer,
      message: `The system prompt cannot be read: ${tried}.`,
      fix: "Make it a readable file in the project, or correct systemPromptPath.",
    });
  }
  checkSystemNames(loaded, tell);
}

function checkFile(loaded: Registered, id: StepId, source: StepSource, prompt: Prompt, tell: Tell): void {
  if (source.c2 === undefined || source.c3 === undefined) return;
  if (prompt.builtIn !== undefined) tell(standingIn(loaded, id, prompt, `the step "${id}"`));
  if (prompt.file !== null) return;
  const message = `There is no prompt for the step "${id}".`;
  tell(noPrompt(atStep(loaded, id), message, prompt, fallbackText(loaded, id, source)));
  checkKey(loaded, id, source, tell);
}

function standingIn(loaded: Registered, id: StepId, prompt: Prompt, whose: string): Finding {
  return {
    code: "PROMPT-FALLBACK-USED",
    ...atStep(loaded, id),
    message: `There is no prompt file for ${whose}: the built-in prompt "${prompt.file!.slice("built-in:".length)}" is used instead. Tried: ${prompt.tried.join(", ")}.`,
    fix: `Create ${prompt.tried[0] ?? "the prompt file"}. With runner.flow.prompts.strict this is an error.`,
  };
}

export function noPrompt(place: At, message: string, { tried }: Prompt, more = ""): Finding {
  return {
    code: "PR-C3L-004",
    ...place,
    message: `${message} Tried: ${tried.join(", ")}.${more}`,
    fix: `Create ${tried[0] ?? "the prompt file"}.`,
  };
}

/** Why the built-in prompt that the author named does not stand in. */
function fallbackText({ sources }: Registered, id: StepId, { fallbackKey }: StepSource): string {
  if (fallbackKey === undefined) return "";
  if (!FALLBACKS.has(fallbackKey)) return ` No fallback prompt found for key: "${fallbackKey}" (step: ${id})`;
  const why = sources.agent.runner.flow.prompts.strict
    ? "runner.flow.prompts.strict forbids it"
    : sources.dialect === "complete"
      ? "a flow with a complete intent uses only its own prompts"
      : "the location cannot be read";
  return ` The built-in prompt "${fallbackKey}" is not used: ${why}.`;
}

function checkKey(loaded: Registered, id: StepId, { fallbackKey }: StepSource, tell: Tell): void {
  if (fallbackKey === undefined || FALLBACKS.has(fallbackKey)) return;
  tell({
    code: "FALLBACK-KEY",
    ...atStep(loaded, id, "fallbackKey"),
    message: `The fallbackKey "${fallbackKey}" of the step "${id}" is not in the catalogue of built-in prompts.${didYouMean(fallbackKey, FALLBACKS.keys())}`,
    fix: "Give the step a prompt file of its own, and remove fallbackKey.",
  });
}

function checkSection(loaded: Registered, section: Section, tell: Tell): void {
  const { id, variable, prompt } = section;
  const source = loaded.sources.registry.steps.get(id)!;
  const readers = readersOf(loaded.graph.steps, section).map((step) => step.id);
  if (readers.length === 0) {
    tell({
      code: "SECTION-UNUSED",
      ...atStep(loaded, id),
      steps: [],
      message: `No prompt includes the section "${id}".`,
      fix: `Write {uv-${variable}} where its text belongs, or remove it.`,
    });
    return;
  }
  if (prompt.builtIn !== undefined) {
    tell({ ...standingIn(loaded, id, prompt, `the section "${id}"`), steps: readers });
  } else if (prompt.file === null) {
    const message = `There is no text for the section "${id}", which the prompt of "${readers[0]}" includes.`;
    const place = { ...atStep(loaded, id), steps: readers };
    tell(noPrompt(place, message, prompt, fallbackText(loaded, id, source)));
  }
}

/** Coordinates that climpt itself would refuse. They are no trouble here. */
function checkClimpt({ sources }: Registered, tell: Tell): void {
  const { agent, registry, registryDocument: document } = sources;
  const patterns = climptPatterns(agent.name ?? "", registry.c1, sources.climpt);
  if (patterns === null) return;
  for (const group of ["steps", "validationSteps"] as const) {
    for (const [id, entry] of registry[group]) {
      for (const key of ["c2", "c3"] as const) {
        const value = entry[key];
        const pattern = patterns[key];
        if (value === undefined || pattern === null || pattern.test(value)) continue;
        tell({
          code: "C3L-PATTERN",
          document,
          pointer: pointerOf([group, id, key]),
          ...(group === "steps" && { steps: [id] }),
          message: `${key} of "${id}" is "${value}", which the pattern ${pattern.source} in ${patterns.file} does not allow.`,
          fix: `Add "${value}" to the pattern, or correct ${key}.`,
        });
      }
    }
  }
}
