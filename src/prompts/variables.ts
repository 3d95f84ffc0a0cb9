/** Where the value of a prompt variable comes from. The channels are tried in order; the first that knows the name wins. */
import type { Flow, Need, Step } from "../flow/flow.ts";
import { own, type Json } from "../flow/json.ts";
import { checksDone, partsOf } from "../flow/rules.ts";
import type { Scene } from "../flow/scene.ts";
import { RUNTIME_NAMES, VERDICT_NAMES, type Supplier } from "../flow/reads.ts";
import { INPUT_TEXT } from "../flow/text/template.ts";

/** null: no channel has a value for the name. */
export function variable(flow: Flow, step: Step, scene: Scene, name: string): string | null {
  return supplied(flow, step, scene, name)?.value ?? null;
}

/** The value that a name has in this scene, and who gave it; null: nobody did. */
export function supplied(flow: Flow, step: Step, scene: Scene, name: string): Supplied | null {
  const builtIn = own(step.prompt.builtIn?.values ?? {}, name);
  if (builtIn !== undefined) return { value: builtIn, supplier: { kind: "constant", value: builtIn } };
  const given = fromArgument(scene, name);
  if (given !== null) {
    const parameter = flow.parameters.find((other) => other.name === name);
    return parameter === undefined
      ? { value: given, supplier: { kind: "argument" } }
      : { value: given, supplier: { kind: "parameter", flag: parameter.flag, isSure: true } };
  }
  const need = step.needs.find((other) => other.variable === name);
  const taken = need === undefined ? null : fromNeed(need, scene);
  if (need !== undefined && taken !== null)
    return { value: taken, supplier: { kind: "input", ...need.from, isSure: true } };
  const known = fromRuntime(flow, scene, name);
  if (known !== null) return { value: known, supplier: { kind: "runtime" } };
  const constant = own(flow.constants, name);
  if (constant !== undefined) return { value: constant, supplier: { kind: "constant", value: constant } };
  return fromHandoff(scene, name);
}

export type Supplied = { readonly value: string; readonly supplier: Supplier };

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
  if (name === INPUT_TEXT) return `nothing was piped in: pipe the text into the run, or give it with --input`;
  if (RUNTIME_NAMES.includes(name) || Object.hasOwn(VERDICT_NAMES, name))
    return `the run has no "${name}" at this point`;
  return `nothing supplies "${name}": declare it as a parameter, or as an input taken from a step's handoff`;
}

function fromArgument(scene: Scene, name: string): string | null {
  const value = own(scene.args, name);
  return value === undefined ? null : toText(value);
}

function fromNeed(need: Need, scene: Scene): string | null {
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
      return String(iterationsOf(flow));
    case "remaining":
      return String(Math.max(0, iterationsOf(flow) - scene.iterations));
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

/** The iterations that the run is to have; without such a number, those after which it is stopped. */
function iterationsOf({ stop, limits }: Flow): number {
  return partsOf(stop).find((part) => part.kind === "visits")?.count ?? limits.visits;
}

/** Data handed on by a step is visible to all later ones as `<step with dots as _>_<key>`. */
function fromHandoff(scene: Scene, name: string): Supplied | null {
  for (const [step, data] of Object.entries(scene.handoff)) {
    const prefix = `${step.replaceAll(".", "_")}_`;
    const key = name.slice(prefix.length);
    const value = name.startsWith(prefix) ? own(data, key) : undefined;
    if (value !== undefined) return { value: toText(value), supplier: { kind: "handoff", step, key } };
  }
  return null;
}

const SUMMARY_LENGTH = 1000;

function summary({ last }: Scene): string {
  if (last === null) return "";
  const why = last.reason === "" ? "" : ` (${last.reason})`;
  const status = own(last.payload, "status");
  return [
    `### Iteration ${last.iteration}: ${last.step}`,
    [
      ...(typeof status === "string" ? [`Status: ${status.slice(0, SUMMARY_LENGTH)}`] : []),
      `Decided: ${last.label}${why}`,
    ].join("\n"),
    ...(last.text === "" ? [] : [last.text.slice(0, SUMMARY_LENGTH)]),
  ].join("\n\n");
}

function toText(value: Json): string {
  if (typeof value === "string") return value;
  return value === null ? "" : JSON.stringify(value);
}
