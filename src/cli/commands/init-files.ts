/** The files that `lockstep init` writes: those of a template under templates/, filled in for the agent and its project. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../flow/package-file.ts";
import type { AgentTemplate } from "../commands.ts";

/** Where a package of the project has the schemas for editors, as the templates name it. */
const SCHEMAS = "../../node_modules/lockstep/schemas";

/** What the templates leave open besides the name, each as `@KEY@`. */
export type Blanks = { readonly [key: string]: string };

/** Path below .agent/NAME/ → text. `schemas`: where the schemas for editors are, from the agent's folder. */
export function initFiles(
  name: string,
  schemas = SCHEMAS,
  template: AgentTemplate = "steps",
  blanks: Blanks = {},
): { readonly [path: string]: string } {
  const values: Blanks = { ...blanks, NAME: name };
  const fill = (path: string, text: string) =>
    text
      .replaceAll(SCHEMAS, schemas)
      .replaceAll(/@([A-Z]+)@/g, (mark, key: string) => written(path, values[key] ?? mark));
  return Object.fromEntries(
    pathsIn(template).map((path) => [path, fill(path, readTemplate(template, path))]),
  );
}

/** Whether the template has a place for this value. */
export function hasBlank(template: AgentTemplate, key: string): boolean {
  return pathsIn(template).some((path) => readTemplate(template, path).includes(`@${key}@`));
}

function pathsIn(template: AgentTemplate): readonly string[] {
  const folder = fileURLToPath(packageFile(`templates/${template}`));
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(folder.length + 1))
    .toSorted((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1));
}

/** The order in which somebody reads them: settings, the flow, then what it refers to. */
function rank(path: string): number {
  const place = [
    "agent.json",
    "machine.yaml",
    "steps_registry.json",
    "stages/",
    "schemas/",
    "prompts/",
  ].findIndex((one) => path.startsWith(one));
  return place === -1 ? 6 : place;
}

function readTemplate(template: AgentTemplate, path: string): string {
  return readFileSync(packageFile(`templates/${template}/${path}`), "utf8");
}

/** In JSON and YAML a blank stands inside of double quotes. */
function written(path: string, value: string): string {
  return /\.(?:json|yaml)$/.test(path) ? JSON.stringify(value).slice(1, -1) : value;
}
