/** Makes a folder and those above it. */
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Gives the first folder that was made; undefined: all were there. One by one, because `recursive` of Node never returns,
 * and hears no signal, where the system denies a folder as /proc does.
 */
export function makeFolder(folder: string, { mode = 0o777 } = {}): string | undefined {
  const path = resolve(folder);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return undefined;
  const parent = dirname(path);
  const first = parent === path ? undefined : makeFolder(parent, { mode });
  try {
    mkdirSync(path, { mode });
    return first ?? path;
  } catch (error) {
    // Another process was faster.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return first;
    throw error;
  }
}
