/** Rules about data on its way: what a step reads must have been handed on before, whichever way the run took. */
import type { Step, StepId } from "../../flow/flow.ts";
import type { Finding } from "./finding.ts";
import { atStep, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Rules } from "./rule.ts";
import { namesRead } from "../registry/variables.ts";
import { waysFrom, type Ways } from "./ways.ts";

export const rules: Rules = { gated: [checkData] };

export const codes = {
  "DATA-NEVER": error("read before it is handed on", "A prompt cannot be rendered before its values exist."),
  "DATA-SKIPPED": warning(
    "path around the supplier",
    "On that path the prompt cannot be rendered, and the run fails.",
  ),
} satisfies Codes;

function* checkData(loaded: Registered): Generator<Finding> {
  const { reach, graph, flow } = loaded;
  // Branches that run beside each other have no before and after.
  if (reach === null || hasForks(graph.steps.values())) return;
  const suppliers = suppliersOf(loaded);
  let ways: Ways | null = null;
  for (const id of reach.steps) {
    const step = graph.steps.get(id)!;
    if (step.by.kind === "command") continue;
    for (const read of readsOf(loaded, step, suppliers)) {
      ways ??= waysFrom(flow.entry, graph.steps);
      if (ways.isAlwaysBefore(read.from, id)) continue;
      yield tooEarly(loaded, step, read, ways);
    }
  }
}

type Read = {
  readonly variable: string;
  readonly from: StepId;
  readonly key: string;
  /** Where it is written, below the step. */
  readonly path: readonly (string | number)[];
};

function tooEarly(loaded: Registered, step: Step, read: Read, ways: Ways): Finding {
  const { id } = step;
  const { variable, from, key } = read;
  const isFirst = id === loaded.flow.entry;
  // Whoever can only be reached through the reader comes too late for its first visit.
  const never = isFirst || from === id || ways.isAlwaysBefore(id, from) || !ways.leadsTo(from, id);
  const about = `The step "${id}" reads "${variable}", which the step "${from}" hands on as "${key}"`;
  const common = { ...atStep(loaded, id, ...read.path), witness: ways.pathAround(from, id) };
  if (never) {
    const why =
      from === id
        ? "itself: on the first visit it has no value"
        : isFirst
          ? "but this is the first step of the run"
          : "but that step never comes before it";
    return {
      code: "DATA-NEVER",
      ...common,
      message:
        from === id ? `The step "${id}" reads "${variable}", which it hands on ${why}.` : `${about}, ${why}.`,
      fix: `Read it in a step that comes after "${from}", or give the input a default.`,
    };
  }
  return {
    code: "DATA-SKIPPED",
    ...common,
    message: `${about}, but a path to it does not pass through "${from}".`,
    fix: `Make every path pass through "${from}", or give the input a default.`,
  };
}

type Suppliers = {
  readonly parameters: ReadonlySet<string>;
  readonly constants: ReadonlySet<string>;
  /** `<step with dots as _>_<key>` → who hands it on. null: more than one step does. */
  readonly handed: ReadonlyMap<string, { readonly from: StepId; readonly key: string } | null>;
};

function suppliersOf({ graph, flow }: Registered): Suppliers {
  const handed = new Map<string, { readonly from: StepId; readonly key: string } | null>();
  for (const { id, carry } of graph.steps.values()) {
    if (carry.length === 0) continue;
    const prefix = id.replaceAll(".", "_");
    for (const { key } of carry) {
      const name = `${prefix}_${key}`;
      handed.set(name, handed.has(name) ? null : { from: id, key });
    }
  }
  return {
    parameters: new Set(flow.parameters.map(({ name }) => name)),
    constants: new Set(Object.keys(flow.constants)),
    handed,
  };
}

/** What the prompt cannot be made without, and which step it comes from. Parameters and constants are looked up first. */
function* readsOf(loaded: Registered, step: Step, suppliers: Suppliers): Generator<Read> {
  const { prompt, needs } = step;
  if (needs.length === 0 && suppliers.handed.size === 0) return;
  const declared = new Set(prompt.variables);
  const named = new Set([...declared, ...namesRead(loaded.flow, prompt.text)]);
  const told = new Set<string>();
  for (const variable of named) {
    if (suppliers.parameters.has(variable)) continue;
    const need = needs.find((other) => other.variable === variable);
    if (need !== undefined) {
      const { step: from, key } = need.from;
      const isHandedOn = loaded.graph.steps.get(from)?.carry.some((one) => one.key === key) ?? false;
      if (need.default !== undefined || !need.required || !isHandedOn) continue;
      const source = `${from}.${key}`;
      if (told.has(source)) continue;
      told.add(source);
      const inputs = loaded.sources.registry.steps.get(step.id)!.inputs;
      const name = [...inputs].find(([, input]) => input.from === source)?.[0] ?? variable;
      yield { variable, from, key, path: ["inputs", name, "from"] };
      continue;
    }
    const supplier = suppliers.constants.has(variable) ? undefined : suppliers.handed.get(variable);
    if (
      supplier === undefined ||
      supplier === null ||
      (prompt.syntax === "lenient" && !declared.has(variable))
    )
      continue;
    const index = prompt.variables.indexOf(variable);
    yield { variable, ...supplier, path: index === -1 ? ["uvVariables"] : ["uvVariables", index] };
  }
}

function hasForks(steps: Iterable<Step>): boolean {
  for (const { edges } of steps) {
    if (Object.values(edges).some((move) => move.kind === "fork")) return true;
  }
  return false;
}
