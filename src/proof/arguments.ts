/** Arguments for a run that was given none: defaults, else the smallest value that the declaration allows. */
import { cached } from "../flow/cached.ts";
import type { Flow, Parameter } from "../flow/flow.ts";
import { coerceParameters } from "../load/parameters.ts";
import type { Json, JsonObject, JsonSchema } from "../flow/json.ts";
import { readsOf, stageSupplier } from "../flow/reads.ts";
import { placeholdersIn } from "../flow/text/placeholder.ts";
import { INPUT_TEXT } from "../flow/text/template.ts";
import { synthesise } from "./synthesise.ts";

/** What was given holds. */
export function argumentsFor(flow: Flow, given: JsonObject = {}): JsonObject {
  const made: { [name: string]: Json } = {};
  for (const parameter of flow.parameters)
    if (!Object.hasOwn(given, parameter.name) && parameter.default === undefined)
      made[parameter.name] = smallest(parameter);
  for (const name of undeclared(flow)) if (!Object.hasOwn(given, name)) made[name] ??= name;
  const { args, problems } = coerceParameters(
    flow.parameters,
    { ...made, ...given },
    flow.openArguments ?? false,
  );
  return problems.length === 0 ? args : { ...made, ...given };
}

/** Names that prompts read and only an argument can supply. */
function undeclared(flow: Flow): readonly string[] {
  const steps = Object.values(flow.steps);
  const read = steps.flatMap((step) =>
    step.prompt.syntax === "stage"
      ? placeholdersIn(step.prompt.text).flatMap((one) =>
          stageSupplier(flow, step, one)?.kind === "argument" ? one.path.slice(0, 1) : [],
        )
      : readsOf(flow, step).flatMap(({ name, supplier }) => (supplier?.kind === "argument" ? [name] : [])),
  );
  return [...new Set(read)];
}

function smallest({ name, type, validation = {} }: Parameter): Json {
  const { min, max, pattern, enum: words } = validation;
  const schema: JsonSchema = {
    type,
    ...(words !== undefined && { enum: words }),
    ...(pattern !== undefined && { pattern }),
    ...(type === "string" && { minLength: min ?? 1, ...(max !== undefined && { maxLength: max }) }),
    ...(type === "number" && { minimum: min ?? 1, ...(max !== undefined && { maximum: max }) }),
  };
  const made = synthesise({ type: "object", required: [name], properties: { [name]: schema } });
  return made.kind === "value" ? ((made.value as JsonObject)[name] ?? name) : name;
}

/** Text for standard input, where a prompt reads it. */
export const inputFor = cached((flow: Flow): string => {
  const reads = Object.values(flow.steps).some((step) =>
    readsOf(flow, step).some(({ name }) => name === INPUT_TEXT),
  );
  return reads ? "text" : "";
});
