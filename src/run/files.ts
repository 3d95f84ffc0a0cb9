/** Reading files below one folder and nowhere else. Links are followed only while they stay inside. */
import { readFileSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import type { FileRead, Files } from "../flow/files.ts";

export function createFiles(root: string): Files {
  const realRoot = realpathSync.native(root);
  const realFolders = new Map<string, string | null>();

  /** The true place of a folder, asked once; null when it does not exist. */
  function realFolder(folder: string): string | null {
    const known = realFolders.get(folder);
    if (known !== undefined) return known;
    const real = attempt(() => realpathSync.native(folder));
    realFolders.set(folder, real);
    return real;
  }

  function read(path: string): FileRead {
    if (path.includes("\0")) return { kind: "refused", why: "the path holds a NUL character" };
    if (isAbsolute(path)) return { kind: "refused", why: "the path is absolute" };
    const full = resolve(root, path);
    if (!isInside(resolve(root), full)) return { kind: "refused", why: "the path leads out of the project" };
    const folder = realFolder(dirname(full));
    if (folder === null) return { kind: "missing" };
    try {
      const real = realpathSync.native(full);
      if (!isInside(realRoot, real)) return { kind: "refused", why: "a link leads out of the project" };
      return { kind: "text", text: readFileSync(real, "utf8") };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ENOENT" ? { kind: "missing" } : { kind: "unreadable", why: message };
    }
  }

  return { read };
}

/** By path segments: `root-evil` is not inside `root`, and `..foo` is a good name. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function attempt<T>(run: () => T): T | null {
  try {
    return run();
  } catch {
    return null;
  }
}
