/** Sections: entries of a registry that are no steps. Their text is put into the prompts that name them. */
import type { Prompt, Step, StepId } from "../../flow/flow.ts";
import { placeholders } from "../../flow/text/template.ts";
import type { FlowSteps } from "./moves.ts";
import type { Prompts } from "./prompts.ts";
import type { RegistrySource, StepSource } from "./registry-shape.ts";
import type { StandIn } from "./stand-in.ts";
import { promptAt } from "./steps.ts";

export type Section = { readonly id: StepId; readonly variable: string; readonly prompt: Prompt };

export function buildSections(
  registry: RegistrySource,
  flow: FlowSteps,
  prompts: Prompts,
  standIn: StandIn,
): readonly Section[] {
  return [...registry.steps.keys()]
    .filter((id) => !flow.kinds.has(id) && isSection(id, registry.steps.get(id)!))
    .map((id) => {
      const source = registry.steps.get(id)!;
      const found = promptAt(source, null, prompts);
      return {
        id,
        variable: variableOf(id),
        prompt: found.file === null ? standIn(id, source, null, found) : found,
      };
    });
}

function isSection(id: StepId, { c2 }: StepSource): boolean {
  return id.startsWith("section.") || c2 === "section";
}

/** `section.projectcontext` is there for prompts as `{uv-section_projectcontext}`. */
function variableOf(id: StepId): string {
  return `section_${id.replace(/^section\./, "").replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
}

/** The steps whose prompts include the section. */
export function readersOf(steps: ReadonlyMap<StepId, Step>, { variable }: Section): readonly Step[] {
  return [...steps.values()].filter(
    ({ by, prompt }) => by.kind === "model" && placeholders(prompt.text).includes(variable),
  );
}
