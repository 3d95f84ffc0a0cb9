/** Where a program is that neither a project nor a run can have put there. */
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { isInsideAny } from "../gate/paths.ts";

/** A folder of a PATH as it is written, where it really is, and the programs that were found in it. */
export type Shelf = {
  readonly folder: string;
  readonly real: string;
  readonly programs: { readonly [name: string]: FoundProgram };
};

export type FoundProgram = { readonly path: string; readonly real: string };

/** Looks once. Relative entries and `node_modules/.bin` never count: what is in them depends on the project. */
export function readShelves(PATH: string, names: readonly string[]): readonly Shelf[] {
  const folders = [...new Set(PATH.split(":"))].filter((folder) => isAbsolute(folder));
  return folders.flatMap((folder) => {
    const real = realFolder(folder);
    if (real === null || [folder, real].some(isOfPackages)) return [];
    const programs = names.flatMap((name) => {
      const found = foundAt(join(folder, name));
      return found === null ? [] : [[name, found] as const];
    });
    return [{ folder, real, programs: Object.fromEntries(programs) }];
  });
}

/** The shelves that lie in none of these folders, which are absolute and without links. */
export function outside(shelves: readonly Shelf[], folders: readonly string[]): readonly Shelf[] {
  return shelves.filter(({ folder, real }) => !isInsideAny(folders, folder) && !isInsideAny(folders, real));
}

/** The first program of that name whose file lies in none of these folders either. null: there is none. */
export function pick(name: string, shelves: readonly Shelf[], folders: readonly string[]): string | null {
  const found = outside(shelves, folders).flatMap(({ programs }) =>
    Object.hasOwn(programs, name) ? [programs[name]!] : [],
  );
  return found.find(({ real }) => !isInsideAny(folders, real) && !isOfPackages(real))?.path ?? null;
}

function isOfPackages(path: string): boolean {
  return /\/node_modules\/\.bin(?:\/|$)/i.test(path);
}

function realFolder(folder: string): string | null {
  try {
    return statSync(folder).isDirectory() ? realpathSync.native(folder) : null;
  } catch {
    return null; // it does not exist, or is not ours to see
  }
}

function foundAt(path: string): FoundProgram | null {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? { path, real: realpathSync.native(path) } : null;
  } catch {
    return null;
  }
}
