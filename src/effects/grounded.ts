/** The ground that files of a run are reached on: judged by the boundaries, and held by descriptors. */
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

export type Grounded = {
  readonly reading: (path: string) => Place;
  readonly pin: () => Pins;
};

/** `parts` are those below the working directory, without links. */
export type Place =
  | {
      readonly kind: "inside";
      readonly path: string;
      readonly parts: readonly string[];
      readonly shown: string;
    }
  | { readonly kind: "refused"; readonly why: string };

/** See `openPins` of the boundaries. */
export type Pins = {
  readonly at: (parts: readonly string[], make?: "make") => string;
  readonly [Symbol.dispose]: () => void;
};

/** Should a link or a pipe have taken the file's place, it is not followed and not waited for. */
export const CAREFUL = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Throws where there is no file. */
export async function openToRead(path: string): Promise<FileHandle> {
  return await open(path, constants.O_RDONLY | CAREFUL);
}

/** The file system's own words without the path, which is a number of ours and not what was asked for. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/, \w+ '.*$/s, "") : String(error);
}
