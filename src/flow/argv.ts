/** The argument list of a step that a command performs, with the values of its context. */
import type { Performer } from "./flow.ts";
import { own, parseDotPath, readPath, type JsonObject } from "./json.ts";

export type CommandPerformer = Extract<Performer, { kind: "command" }>;

export type Argv =
  | { readonly kind: "resolved"; readonly command: readonly string[] }
  | { readonly kind: "unresolved"; readonly template: string };

/** Values become part of one argument each; no shell ever reads them. */
export function fillIn({ command, args }: CommandPerformer, values: JsonObject): Argv {
  const missing: string[] = [];
  const filled = args.map((arg) =>
    arg.replace(/\$\{context\.([^{}]+)\}/g, (template, key: string) => {
      const value = own(values, key) ?? readPath(values, parseDotPath(key)) ?? null;
      if (value === null) missing.push(template);
      return typeof value === "string" ? value : JSON.stringify(value);
    }),
  );
  const [template] = missing;
  return template === undefined
    ? { kind: "resolved", command: [command, ...filled] }
    : { kind: "unresolved", template };
}
