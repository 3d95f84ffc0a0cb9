/** What the prompts of a flow read, and who supplies it, as far as the flow can tell before it runs. */
import { cached } from "./cached.ts";
import type { Flow, Prompt, Step, StepId, StopRule } from "./flow.ts";
import { own } from "./json.ts";
import { partsOf } from "./rules.ts";
import { CORE_FIELDS, fieldPathText, placeholdersIn, type Placeholder } from "./text/placeholder.ts";
import { INPUT_TEXT, nameIn, parseLenient, parseTemplate, templateNames } from "./text/template.ts";
import { arrivalsOf } from "./upstream.ts";

/** Who supplies a name, as far as the flow can tell before it runs. In the order in which a run looks for a value. */
export type Supplier =
  | { readonly kind: "parameter"; readonly flag: string; readonly isSure: boolean }
  | { readonly kind: "input"; readonly step: StepId; readonly key: string; readonly isSure: boolean }
  | { readonly kind: "runtime" }
  | { readonly kind: "section"; readonly file: string | null }
  | { readonly kind: "constant"; readonly value: string }
  | { readonly kind: "handoff"; readonly step: StepId; readonly key: string }
  | { readonly kind: "argument" };

/** A name that the prompt of a step reads or declares; `supplier` null: nothing supplies it. */
export type VariableRead = {
  readonly name: string;
  readonly isDeclared: boolean;
  readonly isUsed: boolean;
  readonly supplier: Supplier | null;
};

/** By itself and through the sections in it. */
export function readsOf(flow: Flow, step: Step): readonly VariableRead[] {
  if (step.by.kind === "command" || step.prompt.syntax === "stage") return [];
  const { variables } = step.prompt;
  const names = promptNames(step.prompt);
  if (names.length === 0 && variables.length === 0) return [];
  const sections = names.flatMap((name) => own(flow.sections ?? {}, name) ?? []);
  const used = new Set([...names, ...sections.flatMap(promptNames)]);
  return [...new Set([...variables, ...used])].map((name) => ({
    name,
    isDeclared: variables.includes(name),
    isUsed: used.has(name),
    supplier: supplierOf(flow, step, name),
  }));
}

/** The names that a prompt reads, each once; of a stage, the fields of its context. */
export function promptNames({ text, syntax }: Prompt): readonly string[] {
  if (!text.includes("{")) return [];
  if (syntax === "stage")
    return placeholdersIn(text).flatMap(({ root, path }) => (root === "ctx" ? path.slice(0, 1) : []));
  return syntax === "lenient"
    ? [...new Set(templateNames(parseLenient(text)).map(nameIn))]
    : templateNames(parseTemplate(text));
}

export function supplierOf(flow: Flow, step: Step, name: string): Supplier | null {
  const known = own(step.prompt.builtIn?.values ?? {}, name);
  if (known !== undefined) return { kind: "constant", value: known };
  const parameter = flow.parameters.find((other) => other.name === name);
  if (parameter !== undefined) {
    const isSure = parameter.required || parameter.default !== undefined;
    return { kind: "parameter", flag: parameter.flag, isSure };
  }
  const need = step.needs.find((other) => other.variable === name);
  if (need !== undefined) {
    return { kind: "input", ...need.from, isSure: need.required || need.default !== undefined };
  }
  if (runtimeNames(flow).includes(name)) return { kind: "runtime" };
  const value = own(flow.constants, name);
  if (value !== undefined) return { kind: "constant", value };
  const [handed] = handedOn(flow).get(name) ?? [];
  if (handed !== undefined) return { kind: "handoff", ...handed };
  const section = own(flow.sections ?? {}, name);
  if (section !== undefined) return { kind: "section", file: section.file };
  return flow.openArguments ? { kind: "argument" } : null;
}

/** Every name that has a value in a prompt of the step, sections apart. */
export function namesFor(flow: Flow, step: Pick<Step, "needs">): readonly string[] {
  return [
    ...flow.parameters.map(({ name }) => name),
    ...step.needs.map(({ variable }) => variable),
    ...runtimeNames(flow),
    ...Object.keys(flow.constants),
    ...handedOn(flow).keys(),
  ];
}

type Handed = { readonly step: StepId; readonly key: string };

/** What steps hand on, by the name that all later ones read it by: `<step with dots as _>_<key>`. */
export function handedOn({ steps }: Pick<Flow, "steps">): ReadonlyMap<string, readonly Handed[]> {
  return handedIn(steps);
}

const handedIn = cached((steps: Flow["steps"]): ReadonlyMap<string, readonly Handed[]> => {
  const all = Object.values(steps).flatMap(({ id: step, carry }) => carry.map(({ key }) => ({ step, key })));
  return Map.groupBy(all, ({ step, key }) => `${step.replaceAll(".", "_")}_${key}`);
});

/** Names that a run supplies by itself; some only with a verdict that has them. */
export function runtimeNames({ stop }: Pick<Flow, "stop">): readonly string[] {
  if (stop.kind === "end") return RUNTIME_NAMES;
  const kinds = new Set<string>(partsOf(stop).map(({ kind }) => kind));
  const ofVerdict = Object.entries(VERDICT_NAMES).filter(([, kind]) => kinds.has(kind));
  return [...RUNTIME_NAMES, ...ofVerdict.map(([name]) => name)];
}

/** Names that a run supplies by itself with a stop rule of this kind. */
export const VERDICT_NAMES: { readonly [name: string]: StopRule["kind"] } = {
  completion_keyword: "keyword",
  max_checks: "checks",
};

/** Names that every run supplies. */
export const RUNTIME_NAMES: readonly string[] = [
  INPUT_TEXT,
  "iteration",
  "completed_iterations",
  "max_iterations",
  "remaining",
  "check_count",
  "previous_summary",
];

/** Who supplies a placeholder, as far as the flow can tell before it runs; null: nobody. */
export function stageSupplier(flow: Flow, step: Step, { root, path }: Placeholder): Supplier | null {
  const [field = "", index = "", ...rest] = path;
  if (root === "stage") {
    const [key = ""] = path;
    const value = path.length === 1 && (key === "id" || key === "name") ? step[key] : undefined;
    return value === undefined ? null : { kind: "constant", value };
  }
  if (field === "upstream") {
    const arrivals = arrivalsOf(Object.values(flow.steps), flow.entry).get(step.id) ?? [];
    const from = arrivals.flatMap((arrival) =>
      index === "" ? arrival.from : (arrival.from[Number(index)] ?? []),
    );
    const part = rest.length === 0 ? "the result" : fieldPathText(rest);
    return from.length === 0 ? null : { kind: "handoff", step: [...new Set(from)].join(" or "), key: part };
  }
  if ((CORE_FIELDS as readonly string[]).includes(field)) return { kind: "runtime" };
  const sharers = Object.values(flow.steps).filter(({ stage }) =>
    stage?.share?.some(({ key }) => key === field),
  );
  if (sharers.length > 0) {
    return { kind: "handoff", step: sharers.map(({ id }) => id).join(" or "), key: fieldPathText(path) };
  }
  const parameter = flow.parameters.find(({ name }) => name === field);
  if (parameter === undefined) return flow.openArguments || flow.hooks ? { kind: "argument" } : null;
  const isSure = parameter.required || parameter.default !== undefined;
  return { kind: "parameter", flag: parameter.flag, isSure };
}
