/** Where the value of a prompt variable comes from. The channels are tried in order; the first that knows the name wins. */
import type { Flow, Step, StepId } from "../flow/flow.ts";
import { own, type Json } from "../flow/json.ts";
import { checksDone, maxIterationsOf, partsOf } from "../flow/rules.ts";
import type { Scene } from "../flow/scene.ts";
import { INPUT_TEXT } from "./template.ts";

/** null: no channel has a value for the name. */
export function variable(flow: Flow, step: Step, scene: Scene, name: string): string | null {
  return (
    fromParameter(scene, name) ??
    fromNeed(step, scene, name) ??
    fromRuntime(flow, scene, name) ??
    own(flow.constants, name) ??
    fromHandoff(scene, name)
  );
}

/** Who supplies a name, as far as the flow can tell before it runs. The order is that of the channels above. */
export type Supplier =
  | { readonly kind: "parameter"; readonly flag: string; readonly isSure: boolean }
  | { readonly kind: "input"; readonly step: StepId; readonly key: string; readonly isSure: boolean }
  | { readonly kind: "runtime" }
  | { readonly kind: "constant"; readonly value: string }
  | { readonly kind: "handoff"; readonly step: StepId; readonly key: string }
  | { readonly kind: "argument" };

/** null: nobody does. */
export function supplierOf(flow: Flow, step: Step, name: string): Supplier | null {
  const parameter = flow.parameters.find((other) => other.name === name);
  if (parameter !== undefined) {
    const isSure = parameter.required || parameter.default !== undefined;
    return { kind: "parameter", flag: parameter.flag, isSure };
  }
  const need = step.needs.find((other) => other.variable === name);
  if (need !== undefined) {
    return { kind: "input", ...need.from, isSure: need.required || need.default !== undefined };
  }
  if (RUNTIME_NAMES.has(name)) return { kind: "runtime" };
  const value = own(flow.constants, name);
  if (value !== undefined) return { kind: "constant", value };
  for (const { id, carry } of Object.values(flow.steps)) {
    const found = carry.find(({ key }) => name === `${id.replaceAll(".", "_")}_${key}`);
    if (found !== undefined) return { kind: "handoff", step: id, key: found.key };
  }
  return flow.openArguments ? { kind: "argument" } : null;
}

/** Names that a run supplies by itself, whatever its parameters. */
export const RUNTIME_NAMES: ReadonlySet<string> = new Set([
  INPUT_TEXT,
  "iteration",
  "completed_iterations",
  "completion_keyword",
  "max_iterations",
  "remaining",
  "max_checks",
  "check_count",
  "previous_summary",
]);

/** Says who ought to have supplied the name, and what to do. */
export function explainMissing(flow: Flow, step: Step, name: string): string {
  const parameter = flow.parameters.find((other) => other.name === name);
  if (parameter !== undefined) {
    return `parameter "${name}" has no value: give it with ${parameter.flag}, or declare a default`;
  }
  const need = step.needs.find((other) => other.variable === name);
  if (need !== undefined) {
    return `step "${need.from.step}" has handed on no "${need.from.key}": let it run first, or declare a default`;
  }
  if (RUNTIME_NAMES.has(name)) return `"${name}" has no value at this point of the run`;
  return `nothing supplies "${name}": declare it as a parameter, or as an input taken from a step's handoff`;
}

function fromParameter(scene: Scene, name: string): string | null {
  const value = own(scene.args, name);
  return value === undefined ? null : toText(value);
}

function fromNeed(step: Step, scene: Scene, name: string): string | null {
  const need = step.needs.find((other) => other.variable === name);
  if (need === undefined) return null;
  const carried = own(scene.handoff, need.from.step);
  const value = (carried === undefined ? undefined : own(carried, need.from.key)) ?? need.default;
  return value === undefined ? (need.required ? null : "") : toText(value);
}

function fromRuntime(flow: Flow, scene: Scene, name: string): string | null {
  switch (name) {
    case INPUT_TEXT:
      return scene.input;
    case "iteration":
      return String(scene.iterations);
    case "completed_iterations":
      return scene.iterations > 1 ? String(scene.iterations - 1) : null;
    case "completion_keyword":
      return partsOf(flow.stop).find((part) => part.kind === "keyword")?.text ?? null;
    case "max_iterations":
      return String(maxIterationsOf(flow));
    case "remaining":
      return String(Math.max(0, maxIterationsOf(flow) - scene.iterations));
    case "max_checks": {
      const checks = partsOf(flow.stop).find((part) => part.kind === "checks");
      return checks === undefined ? null : String(checks.count);
    }
    case "check_count":
      return String(checksDone(flow, scene));
    case "previous_summary":
      return summary(scene);
    default:
      return null;
  }
}

/** Data handed on by a step is visible to all later ones as `<step with dots as _>_<key>`. */
function fromHandoff(scene: Scene, name: string): string | null {
  for (const [step, data] of Object.entries(scene.handoff)) {
    const prefix = `${step.replaceAll(".", "_")}_`;
    const value = name.startsWith(prefix) ? own(data, name.slice(prefix.length)) : undefined;
    if (value !== undefined) return toText(value);
  }
  return null;
}

function summary({ last }: Scene): string {
  if (last === null) return "";
  const why = last.reason === "" ? "" : ` (${last.reason})`;
  const said = last.text === "" ? "" : `\n\n${last.text}`;
  return `### Iteration ${last.iteration}: ${last.step}\n\nDecided: ${last.label}${why}${said}`;
}

function toText(value: Json): string {
  if (typeof value === "string") return value;
  return value === null ? "" : JSON.stringify(value);
}
