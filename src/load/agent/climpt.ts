/**
 * Climpt's own configuration of an agent, where there is one: two YAML files of which a few plain keys matter. They are
 * never needed; what they say beside the registry is worth a warning when it differs.
 */
import type { Files } from "../../flow/files.ts";
import type { Path } from "../../flow/json.ts";
import { readText } from "../text/document.ts";
import { joinPath, parentFolder } from "../text/paths.ts";

/** The prompt folder that it names. Its `base_dir` ends in c1, which the path templates add by themselves. */
export function climptFolder(agentId: string, c1: string, files: Files): string | null {
  const text = readConfig(agentId, c1, "app", files);
  const base = text === null ? null : yamlText(text, ["app_prompt", "base_dir"]);
  if (text === null || base === null) return null;
  const path = joinPath(yamlText(text, ["working_dir"]) ?? "", base);
  return path.endsWith(`/${c1}`) ? parentFolder(path) : null;
}

export type Patterns = {
  readonly file: string;
  readonly c2: RegExp | null;
  readonly c3: RegExp | null;
};

/** What c2 and c3 may be by those files; null unless both are there. */
export function climptPatterns(agentId: string, c1: string, files: Files): Patterns | null {
  const text = readConfig(agentId, c1, "user", files);
  if (text === null || readConfig(agentId, c1, "app", files) === null) return null;
  const pattern = (key: string) => tamePattern(yamlText(text, ["params", "two", key, "pattern"]));
  return { file: fileOf(agentId, c1, "user"), c2: pattern("directiveType"), c3: pattern("layerType") };
}

function readConfig(agentId: string, c1: string, part: "app" | "user", files: Files): string | null {
  const read = readText(files, fileOf(agentId, c1, part));
  return read.kind === "text" ? read.text : null;
}

function fileOf(agentId: string, c1: string, part: "app" | "user"): string {
  return joinPath(".agent/climpt/config", `${agentId}-${c1}-${part}.yml`);
}

/** The text at a path of block mappings: all that these files are made of. */
function yamlText(text: string, path: Path): string | null {
  const open: { readonly key: string; readonly indent: number }[] = [];
  for (const line of text.split("\n")) {
    const [, space, key, rest] = /^( *)["']?([\w-]+)["']?:(?:[ \t]+(.*?))?[ \t\r]*$/.exec(line) ?? [];
    if (space === undefined || key === undefined) continue;
    while (open.length > 0 && open.at(-1)!.indent >= space.length) open.pop();
    open.push({ key, indent: space.length });
    const value = scalar(rest ?? "");
    if (value !== "" && open.length === path.length && open.every((one, at) => one.key === path[at]))
      return value;
  }
  return null;
}

function scalar(text: string): string {
  const quoted = /^(["'])(.*)\1[ \t]*(?:#.*)?$/.exec(text);
  if (quoted === null) return text.replace(/(?:^|[ \t]+)#.*$/, "");
  return quoted[1] === '"' ? quoted[2]!.replaceAll("\\\\", "\\") : quoted[2]!.replaceAll("''", "'");
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
