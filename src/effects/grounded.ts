/** The files of a run: opened so that nothing put in their place is followed, and held against the folder they belong to. */
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";

/** Should a link or a pipe have taken the file's place, it is not followed and not waited for. */
export const CAREFUL = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Throws where there is no file. */
export async function openToRead(path: string): Promise<FileHandle> {
  return await open(path, constants.O_RDONLY | CAREFUL);
}

/** Whether a path is the folder or below it; both as they are written. */
export function isWithinFolder(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The file system's own words without the path, which is a number of ours and not what was asked for. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/, \w+ '.*$/s, "") : String(error);
}
