/**
 * Climpt's own configuration of an agent, where there is one: two YAML files of which a few plain keys matter. They are
 * never needed; what they say beside the registry is worth a warning when it differs.
 */
import type { FileTree } from "../../flow/files.ts";
import { readPath, type Json, type Path } from "../../flow/json.ts";
import { readText } from "../text/document.ts";
import { joinPath, parentFolder } from "../text/paths.ts";
import type { YamlRead } from "../text/yaml.ts";

const FOLDER = ".agent/climpt/config";

/** Loads the YAML parser only where there are such files. */
export async function readClimpt(files: FileTree): Promise<Climpt> {
  return files.list(FOLDER) === null
    ? NO_CLIMPT
    : climptIn(files, (await import("../text/yaml.ts")).readYaml);
}

/** The values of its files, by their paths. */
export function climptIn(files: FileTree, readYaml: ReadYaml): Climpt {
  const names = (files.list(FOLDER) ?? []).filter((name) => name.endsWith(".yml"));
  return new Map(
    names.flatMap((name) => {
      const file = joinPath(FOLDER, name);
      const read = readText(files, file);
      const yaml = read.kind === "text" ? readYaml(file, read.text) : null;
      return yaml?.kind === "read" ? [[file, yaml.document.value] as const] : [];
    }),
  );
}

type ReadYaml = (file: string, text: string) => YamlRead;
export type Climpt = ReadonlyMap<string, Json>;
export const NO_CLIMPT: Climpt = new Map();

/** The prompt folder that it names. Its `base_dir` ends in c1, which the path templates add by themselves. */
export function climptFolder(agentId: string, c1: string, climpt: Climpt): string | null {
  const app = climpt.get(fileOf(agentId, c1, "app"));
  const base = textAt(app, ["app_prompt", "base_dir"]);
  if (base === null) return null;
  const path = joinPath(textAt(app, ["working_dir"]) ?? "", base);
  return path.endsWith(`/${c1}`) ? parentFolder(path) : null;
}

export type Patterns = {
  readonly file: string;
  readonly c2: RegExp | null;
  readonly c3: RegExp | null;
};

/** What c2 and c3 may be by those files; null unless both are there. */
export function climptPatterns(agentId: string, c1: string, climpt: Climpt): Patterns | null {
  const file = fileOf(agentId, c1, "user");
  const user = climpt.get(file);
  if (user === undefined || !climpt.has(fileOf(agentId, c1, "app"))) return null;
  const pattern = (key: string) => tamePattern(textAt(user, ["params", "two", key, "pattern"]));
  return { file, c2: pattern("directiveType"), c3: pattern("layerType") };
}

function textAt(value: Json | undefined, path: Path): string | null {
  const found = readPath(value, path);
  return typeof found === "string" && found !== "" ? found : null;
}

function fileOf(agentId: string, c1: string, part: "app" | "user"): string {
  return joinPath(FOLDER, `${agentId}-${c1}-${part}.yml`);
}

/** null: there is none, or it could take for ever on some name. */
function tamePattern(pattern: string | null): RegExp | null {
  if (pattern === null || pattern.length > 2000) return null;
  const repeats = pattern.match(/[*+{]/g)?.length ?? 0;
  if (repeats > 2 || /\)[*+?{]/.test(pattern)) return null;
  try {
    return new RegExp(pattern);
  } catch {
    return null;
  }
}
