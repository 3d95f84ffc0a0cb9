/** Reading files below one folder and nowhere else. Links are followed only while they stay inside. */
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { FileRead, Files } from "../flow/files.ts";

export function createFiles(root: string): Files {
  const top = resolve(root);
  const folders = new Map<string, string>([[top, realpathSync.native(top)]]);

  /** The true place of a folder below the root. What was asked once is remembered. */
  function realFolder(folder: string): string {
    const known = folders.get(folder);
    if (known !== undefined) return known;
    const real = realPlace(folder);
    folders.set(folder, real);
    return real;
  }

  /** Only a link has to be followed; anything else lies where its folder does. */
  function realPlace(path: string): string {
    const parent = realFolder(dirname(path));
    return lstatSync(path).isSymbolicLink() ? realpathSync.native(path) : join(parent, basename(path));
  }

  function read(path: string): FileRead {
    if (path.includes("\0")) return { kind: "refused", why: "the path holds a NUL character" };
    if (isAbsolute(path)) return { kind: "refused", why: "the path is absolute" };
    const full = resolve(top, path);
    if (!isInside(top, full)) return { kind: "refused", why: "the path leads out of the project" };
    try {
      const real = realPlace(full);
      if (!isInside(realFolder(top), real))
        return { kind: "refused", why: "a link leads out of the project" };
      return { kind: "text", text: readFileSync(real, "utf8") };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ENOENT" || code === "ENOTDIR"
        ? { kind: "missing" }
        : { kind: "unreadable", why: message };
    }
  }

  return { read };
}

/** By path segments: `root-evil` is not inside `root`, and `..foo` is a good name. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
