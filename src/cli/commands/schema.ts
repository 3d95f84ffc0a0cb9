/** `lockstep schema [KIND]`: the JSON Schema of a kind of file, or the list of kinds. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../flow/package-file.ts";
import { SCHEMA_KINDS, type CallOf } from "../commands.ts";
import { headed } from "../text/text.ts";

export function printSchema({ words: [kind], flags, screen }: CallOf<"schema">): Promise<number> {
  if (kind !== undefined) screen.emit(readFileSync(fileOf(kind), "utf8").trimEnd());
  else {
    const schemas = SCHEMA_KINDS.map((each) => {
      const { title } = JSON.parse(readFileSync(fileOf(each), "utf8")) as { readonly title: string };
      return { kind: each, title, file: fileOf(each) };
    });
    if (flags.json) screen.document({ v: 1, schemas });
    else {
      const rows = schemas.map(({ kind: name, title, file }) => [name, title, file]);
      screen.print(headed(screen.out, [["KIND", "DESCRIBES", "FILE"], ...rows]).join("\n"));
    }
  }
  return Promise.resolve(0);
}

function fileOf(kind: string): string {
  return fileURLToPath(packageFile(`schemas/${kind}.schema.json`));
}
