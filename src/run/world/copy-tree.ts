/** Copies a folder with what is in it. Links are copied as links, and only if they stay inside. */
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  type Dirent,
} from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { RunnerError } from "../../engine/ports.ts";
import { isInsideProject } from "./files.ts";

/** What is copied of a folder. Paths are relative to it. */
export type CopiedPart = {
  readonly isLeftOut: (path: string) => boolean;
  /** Links may lead to any place in this folder; absent: in the one that is copied. */
  readonly within?: string;
  /** Whether a link that leads out is left out; absent: all of them are refused. */
  readonly isLinkLeftOut?: (path: string) => boolean;
};

export const WHOLE: CopiedPart = { isLeftOut: () => false };

/** So many files are copied before the process listens. */
const BETWEEN = 32;

/**
 * Copies what is in one folder into another. A link that lies in the way is removed and never followed: a run could have
 * made it to a file of the user. One that leads out of the folder is refused: what it leads to could be changed by it.
 */
export async function copyInto(from: string, to: string, part = WHOLE, signal?: AbortSignal): Promise<void> {
  let copied = 0;
  for (const { path, entry, link } of copiedOf(resolve(from), part)) {
    copied += 1;
    if (copied % BETWEEN === 0) await setImmediate();
    if (signal?.aborted) throw new RunnerError("USAGE", "The copy was interrupted.");
    const [source, target] = [join(from, path), join(to, path)];
    if (entry.isDirectory()) {
      if (lstatSync(target, { throwIfNoEntry: false })?.isDirectory() === true) continue;
      rmSync(target, { force: true });
      mkdirSync(target);
      continue;
    }
    rmSync(target, { recursive: true, force: true });
    if (link !== null) symlinkSync(link, target);
    else if (entry.isFile()) {
      copyFileSync(source, target, constants.COPYFILE_EXCL);
      chmodSync(target, statSync(source).mode | 0o200);
    }
  }
}

type Copied = { readonly path: string; readonly entry: Dirent; readonly link: string | null };

/** What is copied of a folder, each folder before what is in it. */
export function* copiedOf(top: string, part: CopiedPart, below = ""): Generator<Copied> {
  for (const entry of readdirSync(join(top, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (part.isLeftOut(path)) continue;
    const link = entry.isSymbolicLink() ? readlinkSync(join(top, path)) : null;
    if (link !== null && !leadsInside(part.within ?? top, join(top, path), link)) {
      if (part.isLinkLeftOut?.(path) === true) continue;
      throw new RunnerError(
        "USAGE",
        `${join(top, path)} is a link that leads out of ${part.within ?? top}, so it cannot be copied.`,
      );
    }
    yield { path, entry, link };
    if (entry.isDirectory()) yield* copiedOf(top, part, path);
  }
}

/** `name/..` leads elsewhere than it seems where the name is one of a link. */
function leadsInside(folder: string, path: string, target: string): boolean {
  const names = target.replace(/^(?:\.\.?\/)+/, "").split("/");
  const isPlain = !isAbsolute(target) && (names.length === 1 || !names.includes(".."));
  return isPlain && isInsideProject(folder, resolve(dirname(path), target));
}
