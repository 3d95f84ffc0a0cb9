/** Reading files below one folder and nowhere else. Links are followed only while they stay inside. */
import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { FileRead, FileTree } from "../flow/files.ts";

export function createFiles(root: string): FileTree {
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
    const folder = dirname(path);
    const parent = realFolder(folder);
    if (lstatSync(path).isSymbolicLink()) return realpathSync.native(path);
    return parent === folder ? path : join(parent, basename(path));
  }

  /** Where a path really leads. Throws when there is nothing. */
  function placeOf(
    path: string,
  ): { readonly real: string } | { readonly kind: "refused"; readonly why: string } {
    if (PLAIN.test(path) && realFolder(top) === top) {
      // Nothing in it could lead elsewhere but a link, and there is none if it lies where it is written.
      const written = join(top, path);
      if (realPlace(written) === written) return { real: written };
    }
    if (path.includes("\0")) return { kind: "refused", why: "the path holds a NUL character" };
    if (isAbsolute(path)) return { kind: "refused", why: "the path is absolute" };
    const full = resolve(top, path);
    if (!isInside(top, full)) return { kind: "refused", why: "the path leads out of the project" };
    const real = realPlace(full);
    return isInside(realFolder(top), real)
      ? { real }
      : { kind: "refused", why: "a link leads out of the project" };
  }

  function read(path: string): FileRead {
    try {
      const place = placeOf(path);
      return "real" in place ? { kind: "text", text: readFileSync(place.real, "utf8") } : place;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ENOENT" || code === "ENOTDIR"
        ? { kind: "missing" }
        : { kind: "unreadable", why: message };
    }
  }

  function list(folder: string): readonly string[] | null {
    try {
      const place = placeOf(folder);
      return "real" in place ? readdirSync(place.real).toSorted() : null;
    } catch {
      return null;
    }
  }

  return { read, list };
}

/** Names of ordinary letters with single slashes between them. */
const PLAIN = /^(?:\.?[\w@-][\w@.-]*\/)*\.?[\w@-][\w@.-]*$/;

/** By path segments: `root-evil` is not inside `root`, and `..foo` is a good name. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
