/** The files that `lockstep init` writes: those under templates/, with the agent's name and the schemas' place filled in. */
import { readFileSync } from "node:fs";
import { packageFile } from "../../flow/package-file.ts";

export type AgentTemplate = keyof typeof TEMPLATES;

const TEMPLATES = {
  /** Plans a note, drafts it and closes. */
  steps: [
    "agent.json",
    "steps_registry.json",
    "schemas/note.schema.json",
    "prompts/system.md",
    "prompts/steps/initial/note/f_default.md",
    "prompts/steps/continuation/note/f_default.md",
    "prompts/steps/closure/note/f_default.md",
    "script.yaml",
    "tests/first.yaml",
  ],
  /** Plans a note, drafts it, and drafts again until a review approves. */
  stages: [
    "machine.yaml",
    "stages/1-plan.md",
    "stages/2-draft.md",
    "stages/3-review.md",
    "script.yaml",
    "tests/first.yaml",
  ],
};

/** Where a package of the project has the schemas for editors, as the templates name it. */
const SCHEMAS = "../../node_modules/lockstep/schemas";

/**
 * Path below .agent/NAME/ → text. `schemas`: where the schemas for editors are, from the agent's folder; null: nowhere
 * in the project, so the lines that name them are left out.
 */
export function initFiles(
  name: string,
  schemas: string | null = SCHEMAS,
  template: AgentTemplate = "steps",
): { readonly [path: string]: string } {
  const fill = (text: string) =>
    text
      .split("\n")
      .filter((line) => schemas !== null || !line.includes(SCHEMAS))
      .join("\n")
      .replaceAll(SCHEMAS, schemas ?? "")
      .replaceAll("@NAME@", name);
  const read = (path: string) => readFileSync(packageFile(`templates/${template}/${path}`), "utf8");
  return Object.fromEntries(TEMPLATES[template].map((path) => [path, fill(read(path))]));
}
