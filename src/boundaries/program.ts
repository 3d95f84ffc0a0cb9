/** Where a program is that nobody in the project can have put there. */
import { accessSync, constants, realpathSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { isInside } from "./paths.ts";

/** `npm run` puts folders of the project on the PATH: nothing below `roots` counts. null: there is none. */
export function findProgram(name: string, PATH: string, roots: readonly string[]): string | null {
  const isOurs = (path: string) => roots.some((root) => isInside(root, path));
  const folders = PATH.split(":").filter((folder) => isAbsolute(folder) && !isOurs(folder));
  const programs = folders.map((folder) => join(folder, name)).filter(isProgram);
  return programs.find((path) => !isOurs(realpathSync.native(path))) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
