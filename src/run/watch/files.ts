/** Waiting for changes to files: the folders of whatever was read last are watched. */
import { watch, type FSWatcher } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FileTree } from "../../flow/files.ts";
import { isFolder } from "../world/files.ts";

/** The same files; `read` collects what was looked at. */
export function watchedFiles({ read: readFile, list }: FileTree): {
  readonly files: FileTree;
  readonly read: ReadonlySet<string>;
} {
  const read = new Set<string>();
  const files: FileTree = {
    list: (folder) => {
      read.add(join(folder, "x"));
      return list(folder);
    },
    read: (path) => {
      read.add(path);
      return readFile(path);
    },
  };
  return { files, read };
}

/** Editors write a file in several steps; this long nothing must have happened. */
const QUIET_MS = 100;

/**
 * Does the work now and after every change, until the signal. `work` gives the files it looked at, there or not,
 * relative to the root.
 */
export async function repeatOnChange(
  root: string,
  signal: AbortSignal,
  work: () => Promise<Iterable<string>>,
): Promise<void> {
  const watchers = new Map<string, FSWatcher>();
  let changes = 0;
  let wake = () => {};
  const notice = () => {
    changes += 1;
    wake();
  };
  signal.addEventListener("abort", () => wake());
  try {
    while (!signal.aborted) {
      const seen = changes;
      const isGrown = follow(watchers, foldersOf(root, await work()), notice);
      // In a folder that was not watched yet something may have changed since it was read.
      if (isGrown) continue;
      if (changes === seen && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
      await becomeQuiet(() => changes, signal);
    }
  } finally {
    for (const watcher of watchers.values()) watcher.close();
  }
}

async function becomeQuiet(changes: () => number, signal: AbortSignal): Promise<void> {
  for (let before = -1; before !== changes() && !signal.aborted;) {
    before = changes();
    await sleep(QUIET_MS, undefined, { ref: true });
  }
}

/** Watches exactly these folders; true when there is one that was not watched before. */
function follow(watchers: Map<string, FSWatcher>, folders: ReadonlySet<string>, notice: () => void): boolean {
  for (const [folder, watcher] of watchers) {
    if (folders.has(folder)) continue;
    watcher.close();
    watchers.delete(folder);
  }
  let isGrown = false;
  for (const folder of folders) {
    if (watchers.has(folder)) continue;
    isGrown = true;
    const watcher = watch(folder, notice);
    // A watched folder that goes away: what was read there is looked for again.
    watcher.on("error", notice);
    watchers.set(folder, watcher);
  }
  return isGrown;
}

/** The folder of each file; where it does not exist, the nearest one above that does. */
function foldersOf(root: string, files: Iterable<string>): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of files) {
    let folder = dirname(join(root, file));
    while (folder.length > root.length && !isFolder(folder)) folder = dirname(folder);
    if (folder.startsWith(root)) folders.add(folder);
  }
  return folders;
}
