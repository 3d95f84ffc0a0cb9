/**
 * Keeps what a run wrote out of our own process: a module of Lockstep, or of a package it loads, gets nothing from a
 * folder that a run may write, but for the packages that were there before the run began.
 */
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { isInsideProject } from "./files.ts";

/** `packages`: ours, and all that it may load. All paths are absolute and without links. */
export function keepImports(roots: readonly string[], packages: readonly string[]): void {
  for (const root of roots) writable.add(root);
  for (const path of packages) known.add(path);
  if (isKept) return;
  isKept = true;
  registerHooks({
    resolve: (specifier, context, next) => {
      const found = next(specifier, context);
      const path = pathOf(found.url);
      const parent = pathOf(context.parentURL);
      if (path === null || parent === null || !isIn(known, parent) || isIn(known, path)) return found;
      // What is found by its name may lie anywhere: a link can lead there.
      if (isIn(writable, path) || !/^(?:[./#]|file:)/.test(specifier)) throw notFound(specifier, path);
      return found;
    },
  });
}

const writable = new Set<string>();
const known = new Set<string>();
let isKept = false;

function isIn(folders: ReadonlySet<string>, path: string): boolean {
  return folders.values().some((folder) => isInsideProject(folder, path));
}

function pathOf(url: string | undefined): string | null {
  return url?.startsWith("file:") === true ? fileURLToPath(url) : null;
}

/** To Lockstep it is not installed. */
function notFound(specifier: string, path: string): Error {
  const why = "did not exist when the run started, so the run may have created it";
  const error = new Error(
    `Cannot find package "${specifier}": ${path} ${why}. Start the run again to use it.`,
  );
  return Object.assign(error, { code: "ERR_MODULE_NOT_FOUND" });
}
