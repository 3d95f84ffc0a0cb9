/** Rules about prompts: the files, and a value for every variable in them. */
import type { Need, Step, StepId } from "../flow/flow.ts";
import { partsOf } from "../flow/rules.ts";
import { FALLBACK_KEYS } from "./fallback-keys.ts";
import type { Finding } from "./finding.ts";
import { atStep, type Loaded } from "./loaded.ts";
import type { StepSource } from "./registry-shape.ts";
import { didYouMean } from "./suggest.ts";

export function* checkPrompts(loaded: Loaded): Generator<Finding> {
  yield* checkSystem(loaded);
  const suppliers = suppliersOf(loaded);
  for (const [id, step] of loaded.graph.steps) {
    const source = loaded.sources.registry.steps.get(id)!;
    yield* checkInputs(loaded, id, source, step.needs, suppliers);
    if (step.by.kind === "command") continue;
    yield* checkFile(loaded, id, source, step);
    const supply = supplyOf(step, suppliers);
    yield* checkDeclared(loaded, step, supply, suppliers);
    yield* checkPlaceholders(loaded, step, supply, suppliers);
  }
}

/** Names that a run supplies by itself. */
export const RUNTIME_NAMES: readonly string[] = [
  "input_text",
  "iteration",
  "completed_iterations",
  "max_iterations",
  "remaining",
  "check_count",
  "previous_summary",
];
const SYSTEM_NAMES: readonly string[] = ["agent_name", "verdict_criteria"];

type Suppliers = {
  readonly parameters: ReadonlySet<string>;
  /** Optional and without a default. */
  readonly optional: ReadonlySet<string>;
  readonly runtime: ReadonlySet<string>;
  /** Constants, and what any step hands on under `step_id_key`. */
  readonly shared: ReadonlySet<string>;
  /** Names that the registry says are supplied by some other runtime. */
  readonly claimed: ReadonlySet<string>;
};
type Supply = (name: string) => "sure" | "optional" | "runtime" | "claimed" | null;

function suppliersOf({ flow, graph, sources }: Loaded): Suppliers {
  const kinds = new Set(partsOf(flow.stop).map(({ kind }) => kind));
  const runtime = new Set(RUNTIME_NAMES);
  if (kinds.has("keyword")) runtime.add("completion_keyword");
  if (kinds.has("checks")) runtime.add("max_checks");
  const handed = [...graph.steps.values()].flatMap((step) =>
    step.carry.map(({ key }) => `${step.id.replaceAll(".", "_")}_${key}`),
  );
  return {
    parameters: new Set(flow.parameters.map(({ name }) => name)),
    optional: new Set(
      flow.parameters.filter((one) => !one.required && one.default === undefined).map(({ name }) => name),
    ),
    runtime,
    shared: new Set([...Object.keys(flow.constants), ...handed]),
    claimed: new Set(sources.registry.runtimeUvVariables.map((name) => name.replace(/^uv-/, ""))),
  };
}

function supplyOf(step: Step, suppliers: Suppliers): Supply {
  return (name) => {
    if (suppliers.parameters.has(name)) return suppliers.optional.has(name) ? "optional" : "sure";
    const need = step.needs.find((one) => one.variable === name);
    if (need !== undefined) return need.required || need.default !== undefined ? "sure" : "optional";
    if (suppliers.runtime.has(name)) return "runtime";
    if (suppliers.shared.has(name)) return "sure";
    return suppliers.claimed.has(name) ? "claimed" : null;
  };
}

export function* checkSystem({ sources, flow }: Loaded): Generator<Finding> {
  const { agent, agentDocument: document } = sources;
  const path = agent.runner.flow.systemPromptPath;
  const pointer = "/runner/flow/systemPromptPath";
  if (flow.system.file === null && path !== undefined) {
    yield {
      code: "PR-SYSTEM",
      document,
      pointer,
      message: `The system prompt cannot be read: ${flow.system.tried.join(", ")}.`,
      fix: "Create the file, or correct systemPromptPath.",
    };
  }
  const known = new Set([...SYSTEM_NAMES, ...Object.keys(flow.constants), "input_text"]);
  const unknown = placeholders(flow.system.text).filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  yield {
    code: "PR-RESOLVE-005",
    severity: "warning",
    document,
    pointer,
    message: `${flow.system.file} reads ${list(unknown)}, which has no value in a system prompt.${didYouMean(unknown[0]!, known)}`,
    fix: `Use only: ${[...SYSTEM_NAMES, ...Object.keys(flow.constants)].map((name) => `{uv-${name}}`).join(", ")}.`,
  };
}

function* checkFile(loaded: Loaded, id: StepId, source: StepSource, { prompt }: Step): Generator<Finding> {
  if (prompt.file !== null || source.c2 === undefined || source.c3 === undefined) return;
  const fallback =
    source.fallbackKey === undefined
      ? ""
      : ` No fallback prompt found for key: "${source.fallbackKey}" (step: ${id})`;
  yield {
    code: "PR-C3L-004",
    ...atStep(loaded, id),
    message: `There is no prompt for the step "${id}". Tried: ${prompt.tried.join(", ")}.${fallback}`,
    fix: `Create ${prompt.tried[0] ?? "the prompt file"}.`,
  };
  if (source.fallbackKey === undefined || FALLBACK_KEYS.has(source.fallbackKey)) return;
  yield {
    code: "FALLBACK-KEY",
    ...atStep(loaded, id, "fallbackKey"),
    message: `The fallbackKey "${source.fallbackKey}" of the step "${id}" is not in the catalogue of built-in prompts.${didYouMean(source.fallbackKey, FALLBACK_KEYS)}`,
    fix: "Give the step a prompt file of its own, and remove fallbackKey.",
  };
}

function* checkInputs(
  loaded: Loaded,
  id: StepId,
  source: StepSource,
  needs: readonly Need[],
  { parameters }: Suppliers,
): Generator<Finding> {
  const { steps } = loaded.graph;
  for (const { variable, from, required } of needs) {
    if (!source.inputs.has(variable)) continue;
    if (parameters.has(variable)) {
      yield {
        code: "INPUT-SHADOWED",
        ...atStep(loaded, id, "inputs", variable),
        message: `The input "${variable}" of the step "${id}" is never read: there is a parameter of that name.`,
        fix: "Give the input another name.",
      };
    }
    const other = steps.get(from.step);
    if (other?.carry.some(({ key }) => key === from.key)) continue;
    const keys = other?.carry.map(({ key }) => key) ?? [];
    const why =
      other === undefined
        ? `there is no step "${from.step}".${didYouMean(from.step, steps.keys())}`
        : `the step "${from.step}" does not hand on "${from.key}".${didYouMean(from.key, keys)}`;
    yield {
      code: "INPUT-SOURCE",
      ...(required ? {} : { severity: "warning" as const }),
      ...atStep(loaded, id, "inputs", variable, "from"),
      message: `The input "${variable}" of the step "${id}" comes from "${from.step}.${from.key}", but ${why}`,
      fix: 'Write "from" as stepId.key, with a key of that step\'s handoffFields.',
    };
  }
}

function* checkDeclared(
  loaded: Loaded,
  step: Step,
  supply: Supply,
  suppliers: Suppliers,
): Generator<Finding> {
  for (const [index, name] of step.prompt.variables.entries()) {
    const at = atStep(loaded, step.id, "uvVariables", index);
    const by = supply(name);
    if (by === null || by === "claimed") {
      const names = [
        ...suppliers.parameters,
        ...step.needs.map((need) => need.variable),
        ...suppliers.runtime,
        ...suppliers.shared,
      ];
      yield {
        code: "PR-RESOLVE-003",
        ...(by === "claimed" && { severity: "warning" as const }),
        ...at,
        message: `Nothing supplies the variable "${name}" of the step "${step.id}".${didYouMean(name, names)}`,
        fix: `Declare the parameter "${name}" in agent.json, or take it from another step with "inputs".`,
      };
    } else if (by === "optional") {
      yield {
        code: "UV-OPTIONAL",
        ...at,
        message: `The variable "${name}" of the step "${step.id}" comes from an optional value without a default.`,
        fix: `Make "${name}" required, or give it a default.`,
      };
    } else if (name === "completed_iterations" && step.id === loaded.flow.entry) {
      yield {
        code: "UV-EARLY",
        ...at,
        message: `The step "${step.id}" is the first of the run, where "${name}" has no value yet.`,
        fix: `Use "${name}" in a later step, such as ${step.id.replace(/^initial\./, "continuation.")}.`,
      };
    }
  }
}

function* checkPlaceholders(
  loaded: Loaded,
  step: Step,
  supply: Supply,
  suppliers: Suppliers,
): Generator<Finding> {
  const { text, file, variables } = step.prompt;
  if (!text.includes("{")) return;
  const at = atStep(loaded, step.id, "uvVariables");
  for (const name of placeholders(text)) {
    // An input is declared by being one.
    if (variables.includes(name) || step.needs.some((need) => need.variable === name)) continue;
    const by = supply(name);
    if (by === "runtime") continue;
    if (by === null || by === "claimed") {
      yield {
        code: "PR-RESOLVE-005",
        ...(by === "claimed" && { severity: "warning" as const }),
        ...at,
        message: `${file} of the step "${step.id}" reads {uv-${name}}, which is not in its uvVariables and has no supplier.${didYouMean(name, [...variables, ...suppliers.parameters, ...suppliers.runtime, ...suppliers.shared])}`,
        fix: `Add "${name}" to uvVariables and declare where it comes from, or correct the placeholder.`,
      };
    } else {
      yield {
        code: "UV-UNDECLARED",
        ...at,
        message: `${file} of the step "${step.id}" reads {uv-${name}}, which is not in its uvVariables.`,
        fix: `Add "${name}" to the uvVariables of "${step.id}".`,
        mend: [{ file: at.document.file, pointer: at.pointer, kind: "append", value: name }],
      };
    }
  }
  const plain = [...new Set([...text.matchAll(PLAIN)].map((match) => match[1]!))].filter(
    (name) => name !== "input_text",
  );
  if (plain.length === 0) return;
  yield {
    code: "UV-PLAIN",
    ...at,
    message: `${file} of the step "${step.id}" has ${plain.map((name) => `{${name}}`).join(", ")}, which is not replaced.`,
    fix: `Write {uv-${plain[0]}} if a value is meant.`,
  };
}

/** `{name}` that is part of no other notation: not `{{name}}`, not `${name}`. */
const PLAIN = /(?<![{$\w])\{([A-Za-z_]\w*)\}(?!\})/g;

/** The names in `{uv-name}`, each once. */
export function placeholders(text: string): readonly string[] {
  return [...new Set([...text.matchAll(/\{uv-([A-Za-z0-9_-]+)\}/g)].map((match) => match[1]!))];
}

function list(names: readonly string[]): string {
  return names.map((name) => `{uv-${name}}`).join(", ");
}
