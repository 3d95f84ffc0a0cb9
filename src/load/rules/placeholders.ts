/** Rules about the placeholders in stages: each has a value, whichever way the run took to the stage. */
import type { Step } from "../../flow/flow.ts";
import { isObject, own, type Path } from "../../flow/json.ts";
import {
  CORE_FIELDS,
  fieldPathText,
  HIDDEN_FIELDS,
  placeholdersIn,
  STAGE_FIELDS,
  strangersIn,
  type Placeholder,
} from "../../flow/text/placeholder.ts";
import { stageSupplier } from "../../flow/reads.ts";
import { arrivalsOf, type Arrival } from "../../flow/upstream.ts";
import { answerSchema, atPart, witness } from "./loaded.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { bodyPointer, RESULT_FIELDS, type Machine } from "../stages/machine-parts.ts";
import { promiseOf, type Promised } from "../registry/promises.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export const rules: Rules = { stage: [checkPlaceholders] };

export const codes = {
  StageCtxForbidden: error(
    "placeholder of the runtime",
    "Validation: a body is rendered once, before the first attempt, so attempts and host are not available in it.",
  ),
  StageCtxUnresolved: error(
    "placeholder without a value",
    "Validation: a placeholder without a value stops the stage before the model is called; it is never left blank.",
  ),
  "STAGE-PLACEHOLDER": warning(
    "no placeholder",
    "Only ctx and stage have values; anything else in braces is sent to the model unchanged.",
  ),
} satisfies Codes;

function checkPlaceholders(machine: Machine, tell: Tell): void {
  const arrivals = arrivalsOf(machine.steps.values(), machine.flow.entry);
  for (const step of machine.steps.values()) {
    const told = new Set<string>();
    for (const part of placeholdersIn(step.prompt.text)) {
      const pointer = bodyPointer(part);
      if (told.has(pointer)) continue;
      told.add(pointer);
      const fault = faultOf(machine, step, part, arrivals.get(step.id) ?? []);
      if (fault === null) continue;
      tell({
        code: "StageCtxUnresolved",
        ...atPart(machine, "steps", step.id),
        pointer,
        witness: witness(machine, step.id),
        ...fault,
        message: `The stage "${step.id}" reads ${part.written}, but ${fault.message}`,
      });
    }
    checkStrangers(machine, step, told, tell);
  }
}

/** Words for what is wrong; an error unless they say otherwise. */
type Fault = Pick<Finding, "message" | "fix" | "severity"> & { readonly code?: "StageCtxForbidden" };

function faultOf(
  machine: Machine,
  step: Step,
  part: Placeholder,
  arrivals: readonly Arrival[],
): Fault | null {
  const { root, path } = part;
  const [field = "", ...rest] = path;
  if (root === "ctx" && (HIDDEN_FIELDS as readonly string[]).includes(field)) {
    return {
      code: "StageCtxForbidden",
      message:
        field === "attempts"
          ? "attempts are not available in a body: it is rendered once, before the first attempt."
          : "the host is available to code only.",
      fix: "Remove it. On a retry, the model is shown why the last attempt was rejected.",
    };
  }
  if (root === "ctx" && field === "upstream") return upstreamFault(machine, rest, arrivals);
  const supplier = stageSupplier(machine.flow, step, part);
  if (root === "stage")
    return supplier === null
      ? {
          message: `of the stage itself only id and name can be read.${didYouMean(field, STAGE_FIELDS)}`,
          fix: "Write stage.id or stage.name, or put the value into the text.",
        }
      : null;
  if (supplier?.kind === "runtime" && rest.length > 0)
    return { message: `ctx.${field} is a text and has no members.`, fix: `Write ctx.${field}.` };
  return supplier?.kind === "runtime" || supplier?.kind === "handoff" ? null : inputFault(machine, path);
}

/** A field that a run is given: declared by machine.yaml, or, where there are hooks, perhaps written by them. */
function inputFault({ source, hooks, document, steps }: Machine, path: Path): Fault | null {
  const [field = ""] = path;
  if (!isObject(source.inputs) || hooks !== null) return null;
  const properties = own(source.inputs, "properties");
  const schema = isObject(properties) ? own(properties, field) : undefined;
  const others = own(source.inputs, "additionalProperties");
  if (schema === undefined) {
    if (others !== undefined && others !== false) return null;
    const shared = [...steps.values()].flatMap(({ stage }) => stage?.share?.map(({ key }) => key) ?? []);
    const names = [...Object.keys(isObject(properties) ? properties : {}), ...shared, ...CORE_FIELDS];
    return {
      message: `"${field}" is neither among the inputs of the machine, nor shared by a stage, nor given by the runtime.${didYouMean(field, names)}`,
      fix: `Declare "${field}" in inputs of ${document.file}, share it from an earlier stage, or correct the name.`,
    };
  }
  const hasDefault = path.length === 1 && isObject(schema) && own(schema, "default") !== undefined;
  const promised = promiseOf(source.inputs, path);
  const name = fieldPathText(path);
  if (promised === "maybe" && hasDefault) return null;
  return promiseFault(promised, {
    maybe: `a run that starts without "${name}" stops here.`,
    unnamed: `inputs does not name "${name}".`,
    never: `inputs does not name "${name}".`,
    fix:
      promised === "maybe"
        ? `Make "${name}" required in inputs, or give it a default.`
        : `Declare it in inputs of ${document.file}, or correct the path.`,
  });
}

type Says = { readonly [promised in "maybe" | "unnamed" | "never" | "fix"]: string };

/** What no value has is an error; what one may lack is worth a warning. */
function promiseFault(promised: Promised, { fix, ...says }: Says): Fault | null {
  if (promised === "sure" || promised === "unknown") return null;
  return { ...(promised !== "never" && { severity: "warning" }), message: says[promised], fix };
}

/** What is amiss on each way to the stage: an error when no way is good, a warning when some are. */
function upstreamFault(machine: Machine, path: Path, arrivals: readonly Arrival[]): Fault | null {
  const [index, ...field] = path;
  if (index === undefined) return null;
  if (!/^\d+$/.test(index)) {
    return {
      message: "ctx.upstream is a list of results.",
      fix: "Write which result is meant, such as ctx.upstream[0].parsed.",
    };
  }
  // Unreachable stages are reported elsewhere.
  if (arrivals.length === 0) return null;
  const faults = arrivals.map((arrival) => arrivalFault(machine, Number(index), field, arrival));
  // The first stage is entered with nothing before it, whatever leads back to it later; so is a sibling.
  const alone = arrivals.findIndex(({ from }) => from.length === 0);
  if (alone !== -1) return faults[alone]!;
  const worst =
    faults.find((fault) => fault !== null && fault.severity === undefined) ?? faults.find(Boolean);
  if (worst === undefined || worst === null) return null;
  return faults.every((fault) => fault !== null && fault.severity === undefined)
    ? worst
    : { ...worst, severity: "warning" };
}

function arrivalFault(machine: Machine, index: number, field: Path, { from, isPaid }: Arrival): Fault | null {
  const id = from[index];
  if (id === undefined) {
    const why =
      from.length === 0
        ? "no stage comes before it: the first stage and parallel stages start with an empty list."
        : `only ${from.length === 1 ? `one stage comes` : `${from.length} stages come`} right before it: ${from.join(", ")}.`;
    return { message: why, fix: "Read it in a stage that comes right after the one that supplies it." };
  }
  const [part = "", ...rest] = field;
  if (field.length === 0) return null;
  if (!RESULT_FIELDS.includes(part)) {
    return {
      message: `a result has no "${part}".${didYouMean(part, RESULT_FIELDS)}`,
      fix: `Write one of: ${RESULT_FIELDS.join(", ")}.`,
    };
  }
  const step = machine.steps.get(id);
  if (step === undefined) return null;
  if (part === "output") return outputFault(machine, step, rest);
  if (part !== "parsed") return null;
  const name = fieldPathText(rest);
  const fault = promiseFault(promiseOf(answerSchema(step), rest), {
    maybe: `"${id}" may complete without "${name}", and then the run stops here.`,
    unnamed: `completionSchema of "${id}" does not name "${name}".`,
    never: `completionSchema of "${id}" does not allow "${name}".`,
    fix: `Make "${name}" required in completionSchema of "${id}", or read another field.`,
  });
  if (fault !== null || isPaid) return fault;
  return {
    severity: "warning",
    message: `"${id}" may have failed or been skipped, and then it has no payload.`,
    fix: "Read its verdict and reason instead, or let only its success lead here.",
  };
}

function outputFault({ hooks }: Machine, { id, stage }: Step, [key, ..._rest]: Path): Fault | null {
  const names = stage?.output.map((carry) => carry.key) ?? [];
  if (hooks !== null || (key === undefined ? names.length > 0 : names.includes(key))) return null;
  return {
    message: `"${id}" has no output${key === undefined ? "" : ` "${key}"`}.${key === undefined ? "" : didYouMean(key, names)}`,
    fix: `Add it to output of the stage "${id}", or read its payload with parsed.`,
  };
}

/** Words in double braces, and words in `${}` that look as if they were meant. */
function checkStrangers(machine: Machine, { id, prompt }: Step, told: Set<string>, tell: Tell): void {
  const inputs = new Set(machine.flow.parameters.map(({ name }) => name));
  for (const part of strangersIn(prompt.text)) {
    const pointer = bodyPointer(part);
    const isMeant = part.written.startsWith("{{") || part.name.includes(".") || inputs.has(part.name);
    if (told.has(pointer) || !isMeant) continue;
    told.add(pointer);
    const hint = inputs.has(part.name) ? ` Did you mean "ctx.${part.name}"?` : "";
    const secret = /^(?:env|process|settings)\b/.test(part.name)
      ? " Prompts cannot read the environment or the settings."
      : "";
    tell({
      code: "STAGE-PLACEHOLDER",
      ...atPart(machine, "steps", id),
      pointer,
      message: `${part.written} in the stage "${id}" is not a placeholder and is sent unchanged.${hint}${secret}`,
      fix: `Read a field of ctx, or write \\${part.written} to keep the braces as text.`,
    });
  }
}
