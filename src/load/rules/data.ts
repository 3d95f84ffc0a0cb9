/** Rules about data on its way: what a step reads must have been handed on before, whichever way the run took. */
import type { Step, StepId } from "../../flow/flow.ts";
import { atStep, type Registered } from "./loaded.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { handedOn, readsOf } from "../../flow/reads.ts";
import { waysFrom, type Ways } from "./ways.ts";

export const rules: Rules = { gated: [checkData] };

export const codes = {
  "DATA-NEVER": error("read before it is handed on", "A prompt cannot be rendered before its values exist."),
  "DATA-SKIPPED": warning(
    "path around the supplier",
    "On that path the prompt cannot be rendered, and the run fails.",
  ),
} satisfies Codes;

function checkData(loaded: Registered, tell: Tell): void {
  const { reach, graph, flow } = loaded;
  if (reach === null) return;
  let ways: Ways | null = null;
  for (const id of reach.steps) {
    const step = graph.steps.get(id)!;
    const isAlone = step.prompt.variables.length === 0 && !step.prompt.text.includes("{");
    if (step.by.kind === "command" || isAlone) continue;
    if (step.needs.length === 0 && handedOn(flow).size === 0) continue;
    for (const read of readsFrom(loaded, step)) {
      // Branches that run beside each other have no before and after.
      if (ways === null && hasForks(graph.steps.values())) return;
      ways ??= waysFrom(flow.entry, graph.steps);
      if (ways.isAlwaysBefore(read.from, id)) continue;
      tell(tooEarly(loaded, step, read, ways));
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
  // A step that can only be reached through the reader comes too late for its first visit.
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

/** What the prompt cannot be made without, and which step it comes from. */
function* readsFrom(loaded: Registered, step: Step): Generator<Read> {
  const { prompt, needs } = step;
  const told = new Set<string>();
  for (const { name: variable, isDeclared, supplier } of readsOf(loaded.flow, step)) {
    if (supplier?.kind === "input") {
      const { step: from, key } = supplier;
      const need = needs.find((other) => other.variable === variable)!;
      const isHandedOn = loaded.steps.get(from)?.carry.some((one) => one.key === key) ?? false;
      const source = `${from}.${key}`;
      if (need.default !== undefined || !need.required || !isHandedOn || told.has(source)) continue;
      told.add(source);
      const inputs = loaded.sources.registry.steps.get(step.id)!.inputs;
      const name = [...inputs].find(([, input]) => input.from === source)?.[0] ?? variable;
      yield { variable, from, key, path: ["inputs", name, "from"] };
    }
    const isUnclear = (handedOn(loaded.flow).get(variable)?.length ?? 0) > 1;
    if (supplier?.kind !== "handoff" || isUnclear || (prompt.syntax === "lenient" && !isDeclared)) continue;
    const index = prompt.variables.indexOf(variable);
    const path = index === -1 ? ["uvVariables"] : ["uvVariables", index];
    yield { variable, from: supplier.step, key: supplier.key, path };
  }
}

function hasForks(steps: Iterable<Step>): boolean {
  for (const { edges } of steps) {
    if (Object.values(edges).some((move) => move.kind === "fork")) return true;
  }
  return false;
}
