/** Paths below a state folder, of which no part is a link: what a clone or an archive brought is never followed outwards. */
import { lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { RunnerError } from "../../engine/ports.ts";

/**
 * The path of something below a state folder. Throws STATE_UNSAFE when the folder or anything on the way is a link. What
 * does not exist yet may be made there.
 */
export function insideState(stateDir: string, ...parts: readonly string[]): string {
  let path = stateDir;
  requireNoLink(path);
  for (const part of parts) {
    if (!isPlainName(part)) throw unsafe(path, `${JSON.stringify(part)} is not the name of a file`);
    path = join(path, part);
    requireNoLink(path);
  }
  return path;
}

/** The same for a file: a device, a pipe or a folder in its place is refused, and opening one could wait for ever. */
export function fileInside(stateDir: string, ...parts: readonly string[]): string {
  const path = insideState(stateDir, ...parts);
  const found = lstat(path);
  if (found !== undefined && !found.isFile()) throw unsafe(path, "it is not a regular file");
  return path;
}

/** A file that we write in place: under a second name it would be a file somewhere else as well. */
export function ownFileInside(stateDir: string, name: string): string {
  const path = fileInside(stateDir, name);
  const names = lstat(path)?.nlink ?? 1;
  if (names > 1) throw unsafe(path, `the same file has ${names} names (hard links)`);
  return path;
}

/** Throws STATE_UNSAFE when the state folder is a link, or anything directly in it is. One look for all of it. */
export function requirePlainState(stateDir: string): void {
  requireNoLink(stateDir);
  if (lstat(stateDir)?.isDirectory() !== true) return;
  const link = readdirSync(stateDir, { withFileTypes: true }).find((entry) => entry.isSymbolicLink());
  if (link !== undefined) throw linked(join(stateDir, link.name));
}

function requireNoLink(path: string): void {
  if (lstat(path)?.isSymbolicLink()) throw linked(path);
}

function isPlainName(part: string): boolean {
  return part !== "" && part !== "." && part !== ".." && !/[/\\\0]/.test(part);
}

/** Nothing where a file stands in the place of a folder: using the path then fails with the error of the system. */
function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOTDIR") return undefined;
    throw error;
  }
}

function linked(path: string): RunnerError {
  return unsafe(path, "it is a symbolic link");
}

function unsafe(path: string, why: string): RunnerError {
  return new RunnerError(
    "STATE_UNSAFE",
    `${path} is not used: ${why}. Lockstep follows no links in a state folder and writes only regular files of its own there. Look at where it leads and remove it, or choose another folder with --state DIR.`,
  );
}
