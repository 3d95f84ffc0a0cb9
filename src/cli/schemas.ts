/** The JSON Schemas for editors: where the files of a project find them, and a copy for projects that have no package. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../flow/package-file.ts";
import { notWritable, requireNoLinks, writeInProject } from "../run/world/write-whole.ts";
import { SCHEMA_KINDS } from "./commands.ts";

type Place = { readonly root: string; readonly agentsDir: string };

/** Below the folder of the agents. A name with a dot is never that of an agent. */
const COPIES = ".schemas";

export function schemaFile(kind: string): string {
  return fileURLToPath(packageFile(`schemas/${kind}.schema.json`));
}

/**
 * The way from a folder of the project to the schemas: those of the package, if the project or a folder above it has it,
 * else the copies. null: there are none. Files are shared, and a path into an installation of this machine would be wrong
 * for everybody else.
 */
export function schemasFrom({ root, agentsDir }: Place, folder: string): string | null {
  const found = packageSchemas(root) ?? (hasSchemas(copiesIn(agentsDir)) ? copiesIn(agentsDir) : null);
  return found === null ? null : wayTo(folder, found);
}

/** The same from the folder of an agent's tests. */
export function schemasForTests(place: Place, agent: string): string | null {
  return schemasFrom(place, join(place.agentsDir, agent, "tests"));
}

/** Where `schemasFrom` will find the copies, once they are written. */
export function wayToCopies({ agentsDir }: Place, folder: string): string {
  return wayTo(folder, copiesIn(agentsDir));
}

function wayTo(folder: string, schemas: string): string {
  return relative(resolve(folder), schemas).split(sep).join("/");
}

function copiesIn(agentsDir: string): string {
  return join(resolve(agentsDir), COPIES);
}

function packageSchemas(root: string): string | null {
  for (let place = resolve(root); ; place = dirname(place)) {
    const schemas = join(place, "node_modules", "lockstep", "schemas");
    if (hasSchemas(schemas)) return schemas;
    if (place === dirname(place)) return null;
  }
}

function hasSchemas(folder: string): boolean {
  return existsSync(join(folder, "agent.schema.json"));
}

/** NOT_WRITABLE where a link would lead the copies elsewhere. */
export function requireCopies({ agentsDir }: Place): void {
  if (!existsSync(agentsDir)) return;
  for (const kind of SCHEMA_KINDS) requireNoLinks(realpathSync(agentsDir), copyOf(kind));
}

/** Copies the schemas of this version into the project, and gives their paths. What holds the same text stays untouched. */
export function writeSchemas({ agentsDir }: Place): readonly string[] {
  return SCHEMA_KINDS.map((kind) => {
    const path = join(agentsDir, copyOf(kind));
    try {
      const text = readFileSync(schemaFile(kind), "utf8");
      const isThere = existsSync(path) && readFileSync(path, "utf8") === text;
      if (!isThere) writeInProject(realpathSync(agentsDir), copyOf(kind), text);
      return path;
    } catch (cause) {
      throw notWritable("The schemas for editors cannot be written", path, cause);
    }
  });
}

function copyOf(kind: string): string {
  return `${COPIES}/${kind}.schema.json`;
}
