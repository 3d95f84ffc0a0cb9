/** `lockstep schema [KIND]`: the JSON Schema of a kind of file, the list of kinds, or copies of all in the project. */
import { existsSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import { SCHEMA_KINDS, type CallOf } from "../commands.ts";
import { requireCopies, schemaFile, writeSchemas } from "../schemas.ts";
import { headed } from "../text/text.ts";
import { requireAgentsFolder } from "./init-write.ts";

export function printSchema(call: CallOf<"schema">): Promise<number> {
  const {
    words: [kind],
    flags,
    screen,
  } = call;
  if (flags.write) copySchemas(call);
  else if (kind !== undefined) screen.emit(readFileSync(schemaFile(kind), "utf8").trimEnd());
  else {
    const schemas = SCHEMA_KINDS.map((each) => {
      const { title } = JSON.parse(readFileSync(schemaFile(each), "utf8")) as { readonly title: string };
      return { kind: each, title, file: schemaFile(each) };
    });
    if (flags.json) screen.document({ v: 1, schemas });
    else {
      const rows = schemas.map(({ kind: name, title, file }) => [name, title, file]);
      screen.print(headed(screen.out, [["KIND", "DESCRIBES", "FILE"], ...rows]).join("\n"));
    }
  }
  return Promise.resolve(0);
}

function copySchemas({ words: [kind], flags, cwd, screen }: CallOf<"schema">): void {
  if (kind !== undefined) throw new UsageError(`--write copies all schemas: leave "${kind}" out.`);
  const project = findProject(cwd);
  if (!existsSync(project.agentsDir))
    throw new UsageError(
      "There is no folder .agent here or above. `lockstep init NAME` creates an agent, and its schemas with it.",
    );
  requireAgentsFolder(project);
  requireCopies(project);
  const files = writeSchemas(project).map((path) => relative(resolve(cwd), path));
  if (flags.json) screen.document({ v: 1, files });
  else screen.print(files.join("\n"));
}
