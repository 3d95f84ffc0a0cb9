/** What the modules of an agent load, as far as their text says: code that was trusted stays as it was during a run. */
import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { modulesIn } from "../../flow/rules.ts";
import type { Flow } from "../../flow/flow.ts";
import { readTextFile, statIfAny } from "./files.ts";

/** The modules that a run of the flow may start, absolute. */
export function loadedModules(
  flow: Pick<Flow, "hooks" | "settings" | "stop">,
  root: string,
): readonly string[] {
  return [...new Set(modulesIn(flow).map(({ file }) => resolve(root, file)))];
}

export type LoadedModules = {
  /** The modules and the files they import, without links. */
  readonly files: readonly string[];
  /** Packages that they import by name, and from which folder. */
  readonly packages: readonly { readonly folder: string; readonly names: readonly string[] }[];
};

export function loadedBy(modules: readonly string[]): LoadedModules {
  const files = new Set<string>();
  const packages: { folder: string; names: string[] }[] = [];
  const queue = [...modules];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    const file = fileAt(path);
    if (file === null || files.has(file) || files.size >= MOST_FILES) continue;
    files.add(file);
    const names: string[] = [];
    for (const specifier of specifiersIn(file)) {
      if (/^\.{0,2}\//.test(specifier)) queue.push(resolve(dirname(file), specifier));
      else if (!/^(?:node|data|file|https?):|^#/.test(specifier)) names.push(packageOf(specifier));
    }
    if (names.length > 0) packages.push({ folder: dirname(file), names });
  }
  return { files: [...files], packages };
}

const MOST_FILES = 500;
const MOST_BYTES = 1024 * 1024;

function specifiersIn(file: string): readonly string[] {
  const text = readTextFile(file, 16 * MOST_BYTES).slice(0, MOST_BYTES);
  return [...text.matchAll(IMPORT)].map(([, specifier = ""]) => specifier);
}

const IMPORT = /\b(?:from|import|require)\s*\(?\s*["']([^"'\n]{1,300})["']/g;

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** As it is named, or as `require` would find it. */
function fileAt(path: string): string | null {
  const found = ["", ".js", ".json", ".cjs", ".mjs", ".ts", "/index.js"].find((ending) => {
    const stats = statIfAny(path + ending);
    return stats?.isFile() === true && stats.size <= 16 * MOST_BYTES;
  });
  return found === undefined ? null : realpathSync.native(path + found);
}
