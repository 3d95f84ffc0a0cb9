/** Rules about what prompts read: a value for every variable in them. */
import type { Need, Prompt, Step, StepId } from "../../flow/flow.ts";
import { atStep, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Rules, type Tell } from "./rule.ts";
import { inPrompt } from "../text/prompt-places.ts";
import type { StepSource } from "../registry/registry-shape.ts";
import { readersOf, type Section } from "../registry/sections.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { namesFor, supplierOf } from "../../flow/reads.ts";
import { INPUT_TEXT, placeholderPlaces, placeholders, readsInput } from "../../flow/text/template.ts";

export const rules: Rules = { gated: [checkPrompts] };

export const codes = {
  "PR-RESOLVE-005": error(
    "undeclared placeholder",
    "A placeholder without a value would be sent to the model unchanged.",
  ),
  "INPUT-SHADOWED": warning("input never read", "A parameter of the same name takes precedence."),
  "INPUT-SOURCE": error("input without source", "An input reads a value that another step hands on."),
  "UV-EARLY": error(
    "variable not yet available",
    "The first visit of a run has no previous visit to report on.",
  ),
  "UV-UNDECLARED": warning(
    "variable not declared",
    "Readers and checks rely on uvVariables to know what a prompt needs.",
  ),
  "UV-PLAIN": warning(
    "placeholder without uv-",
    "Only {uv-name} is replaced; other braces are sent to the model unchanged.",
  ),
  "STDIN-UNDECLARED": warning(
    "input not declared",
    "Without usesStdin, the step runs even without input, and {input_text} is then empty.",
  ),
  "STDIN-UNREAD": warning("input never read", "Piped input would not reach the model."),
} satisfies Codes;

function checkPrompts(loaded: Registered, tell: Tell): void {
  for (const step of loaded.graph.steps.values()) {
    const { id } = step;
    const source = loaded.sources.registry.steps.get(id)!;
    checkInputs(loaded, id, source, step.needs, tell);
    if (step.by.kind === "command") continue;
    checkDeclared(loaded, step, tell);
    checkPlaceholders(loaded, step, tell);
    checkStdin(loaded, source, step, tell);
  }
  for (const section of loaded.graph.sections) checkSectionNames(loaded, section, tell);
}

type Supply = "sure" | "optional" | "runtime" | "section" | "claimed" | null;

function supplyOf({ flow, graph, sources }: Registered, step: Step, name: string): Supply {
  const supplier = supplierOf(flow, step, name);
  switch (supplier?.kind) {
    case "parameter":
    case "input":
      return supplier.isSure ? "sure" : "optional";
    case "runtime":
    case "section":
      return supplier.kind;
    case undefined:
      break;
    default:
      return "sure";
  }
  // A section without a file is a finding of its own.
  if (graph.sections.some(({ variable }) => variable === name)) return "section";
  const { runtimeUvVariables } = sources.registry;
  return runtimeUvVariables.some((claimed) => claimed.replace(/^uv-/, "") === name) ? "claimed" : null;
}

function checkInputs(
  loaded: Registered,
  id: StepId,
  source: StepSource,
  needs: readonly Need[],
  tell: Tell,
): void {
  const { steps } = loaded.graph;
  for (const { variable, from, required } of needs) {
    if (!source.inputs.has(variable)) continue;
    if (loaded.flow.parameters.some(({ name }) => name === variable)) {
      tell({
        code: "INPUT-SHADOWED",
        ...atStep(loaded, id, "inputs", variable),
        message: `The input "${variable}" of the step "${id}" is never read: a parameter has the same name.`,
        fix: "Give the input another name.",
      });
    }
    const other = steps.get(from.step);
    if (other?.carry.some(({ key }) => key === from.key)) continue;
    const keys = other?.carry.map(({ key }) => key) ?? [];
    const why =
      other === undefined
        ? `there is no step "${from.step}".${didYouMean(from.step, steps.keys())}`
        : `the step "${from.step}" does not hand on "${from.key}".${didYouMean(from.key, keys)}`;
    tell({
      code: "INPUT-SOURCE",
      ...(required ? {} : { severity: "warning" as const }),
      ...atStep(loaded, id, "inputs", variable, "from"),
      message: `The input "${variable}" of the step "${id}" comes from "${from.step}.${from.key}", but ${why}`,
      fix: 'Write "from" as stepId.key, with a key of that step\'s handoffFields.',
    });
  }
}

function checkDeclared(loaded: Registered, step: Step, tell: Tell): void {
  for (const [index, name] of step.prompt.variables.entries()) {
    const at = atStep(loaded, step.id, "uvVariables", index);
    const by = supplyOf(loaded, step, name);
    if (by === null || by === "claimed") {
      const names = namesFor(loaded.flow, step);
      tell({
        code: "PR-RESOLVE-003",
        ...(by === "claimed" && { severity: "warning" as const }),
        ...at,
        message: `Nothing supplies the variable "${name}" of the step "${step.id}".${didYouMean(name, names)}`,
        fix: `Declare the parameter "${name}" in agent.json, or take it from another step with "inputs".`,
      });
    } else if (by === "optional") {
      tell({
        code: "UV-OPTIONAL",
        ...at,
        message: `The variable "${name}" of the step "${step.id}" may have no value: it is optional and has no default.`,
        fix: `Make "${name}" required, or give it a default.`,
      });
    } else if (isLater(name) && step.id === loaded.flow.entry) {
      tell({
        code: "UV-EARLY",
        // A summary of nothing is empty, and a step that comes round again has one.
        ...(name === "previous_summary" && { severity: "warning" as const }),
        ...at,
        message: `The step "${step.id}" is the first of the run, where "${name}" has no value yet.`,
        fix: `Use "${name}" in a later step, such as ${step.id.replace(/^initial\./, "continuation.")}.`,
      });
    }
  }
}

function checkPlaceholders(loaded: Registered, step: Step, tell: Tell): void {
  const { text, file, variables, builtIn } = step.prompt;
  if (builtIn !== undefined || !text.includes("{")) return;
  const { document, pointer } = atStep(loaded, step.id, "uvVariables");
  for (const [name, place] of placeholderPlaces(text)) {
    // An input is declared by being one.
    if (variables.includes(name) || step.needs.some((need) => need.variable === name)) continue;
    const by = supplyOf(loaded, step, name);
    if (by === "runtime" || by === "section") continue;
    if (by === null || by === "claimed") {
      tell({
        code: "PR-RESOLVE-005",
        ...(by === "claimed" && { severity: "warning" as const }),
        ...inPrompt(loaded.files, step.prompt, place),
        steps: [step.id],
        message: `${file} of the step "${step.id}" reads {uv-${name}}, which is not in its uvVariables and has no supplier.${didYouMean(name, [...variables, ...namesFor(loaded.flow, step)])}`,
        fix: `Add "${name}" to uvVariables and declare its source, or correct the placeholder.`,
      });
    } else {
      tell({
        code: "UV-UNDECLARED",
        ...inPrompt(loaded.files, step.prompt, place),
        steps: [step.id],
        message: `${file} of the step "${step.id}" reads {uv-${name}}, which is not in its uvVariables.`,
        fix: `Add "${name}" to the uvVariables of "${step.id}".`,
        // In a registry of an earlier form the places are not where they are read.
        ...(document.written === undefined && {
          mend: [{ file: document.file, pointer, kind: "append" as const, value: name }],
        }),
      });
    }
  }
  const plain = [...new Set([...text.matchAll(PLAIN)].map((match) => match[1]!))].filter(
    (name) => name !== INPUT_TEXT,
  );
  if (plain.length === 0) return;
  tell({
    code: "UV-PLAIN",
    ...inPrompt(loaded.files, step.prompt, text.search(new RegExp(PLAIN, ""))),
    steps: [step.id],
    message: `${file} of the step "${step.id}" has ${plain.map((name) => `{${name}}`).join(", ")}, which is not replaced.`,
    fix: `Write {uv-${plain[0]}} to insert a value.`,
  });
}

/** What was piped in is asked for in two places, and they should agree. */
function checkStdin(loaded: Registered, { usesStdin }: StepSource, { id, prompt }: Step, tell: Tell): void {
  if (prompt.file === null) return;
  const isRead = readsInput(loaded.flow, prompt.text);
  if (isRead && !prompt.variables.includes(INPUT_TEXT)) {
    tell({
      code: "STDIN-UNDECLARED",
      ...inPrompt(loaded.files, prompt, prompt.text.search(/\{(?:uv-)?input_text\}/)),
      steps: [id],
      message: `${prompt.file} of the step "${id}" reads {input_text}, but the step does not set usesStdin, so a run without input would leave it empty.`,
      fix: `Add "usesStdin": true to the step "${id}".`,
    });
  } else if (usesStdin && !isRead) {
    tell({
      code: "STDIN-UNREAD",
      ...atStep(loaded, id, "usesStdin"),
      message: `The step "${id}" sets usesStdin, but ${prompt.file} does not read {input_text}.`,
      fix: "Write {input_text} where the text belongs, or remove usesStdin.",
    });
  }
}

/** A section is read with the values of the step that takes it in. */
function checkSectionNames(loaded: Registered, section: Section, tell: Tell): void {
  const { id, prompt } = section;
  if (prompt.file === null || prompt.builtIn !== undefined) return;
  const readers = readersOf(loaded.graph.steps, section);
  for (const [name, place] of placeholderPlaces(prompt.text)) {
    const lacking = readers.filter((step) => {
      const by = supplyOf(loaded, step, name);
      return by === null || by === "section" || by === "claimed";
    });
    if (lacking.length > 0) {
      tell({
        code: "PR-RESOLVE-005",
        ...inPrompt(loaded.files, prompt, place),
        steps: lacking.map((step) => step.id),
        message: loaded.graph.sections.some(({ variable }) => variable === name)
          ? `${prompt.file} of the section "${id}" reads {uv-${name}}, but a section cannot include another section.`
          : `${prompt.file} of the section "${id}" reads {uv-${name}}, which has no supplier in the step "${lacking[0]!.id}".${didYouMean(name, namesFor(loaded.flow, { needs: [] }))}`,
        fix: `Declare the source of "${name}", or correct the placeholder.`,
      });
    }
  }
}

const SYSTEM_NAMES: readonly string[] = ["agent_name", "verdict_criteria"];

export function checkSystemNames({ sources, flow, files }: Registered, tell: Tell): void {
  const known = new Set([...SYSTEM_NAMES, ...Object.keys(flow.constants), "input_text"]);
  const unknown = placeholders(flow.system.text).filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  tell({
    code: "PR-RESOLVE-005",
    severity: "warning",
    // Without a file the agent's own description is said.
    ...(flow.system.file === null
      ? { document: sources.agentDocument, pointer: "/description" }
      : inPrompt(files, flow.system, flow.system.text.indexOf(`{uv-${unknown[0]}}`))),
    message: `${flow.system.file ?? "The description of the agent"} reads ${unknown.map((name) => `{uv-${name}}`).join(", ")}, which has no value in a system prompt.${didYouMean(unknown[0]!, known)}`,
    fix: `Use only: ${[...SYSTEM_NAMES, ...Object.keys(flow.constants)].map((name) => `{uv-${name}}`).join(", ")}.`,
  });
}

/** Where no parameters are declared any argument may be given; a placeholder without a value stays as it is written. */
export function checkLenient(
  { flow, steps, files }: Registered,
  id: StepId,
  prompt: Prompt,
  tell: Tell,
): void {
  const { text, file } = prompt;
  const step = steps.get(id)!;
  const unknown = placeholders(text).filter((name) => supplierOf(flow, step, name) === null);
  if (unknown.length === 0) return;
  tell({
    code: "PR-RESOLVE-005",
    severity: "warning",
    ...inPrompt(files, prompt, text.indexOf(`{uv-${unknown[0]}}`)),
    steps: [id],
    message: `${file} of the step "${id}" reads {uv-${unknown[0]}}, which nothing supplies; it is sent to the model unchanged.${didYouMean(unknown[0]!, namesFor(flow, step))}`,
    fix: `Declare the parameter "${unknown[0]}" in agent.json, or correct the placeholder.`,
  });
}

/** There is nothing to tell of before the first visit. */
function isLater(name: string): boolean {
  return name === "completed_iterations" || name === "previous_summary";
}

/** `{name}` that is part of no other notation: not `{{name}}`, not `${name}`. */
const PLAIN = /(?<![{$\w])\{([A-Za-z_]\w*)\}(?!\})/g;
