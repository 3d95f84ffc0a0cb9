/**
 * Folders held by descriptors: what was judged is what is opened, whatever its name leads to by then.
 *
 * A process beside us can swap a folder for a link between the judgement of a path and its use. So each folder on the way
 * is opened in the one before it, links are not followed, and the last part is used through the descriptor of its folder.
 */
import { closeSync, constants, existsSync, mkdirSync, openSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Pins } from "../../flow/machine/ground.ts";

/** `root` is absolute and without links. Paths are good until the next one is asked for. */
export function openPins(root: string, hasPaths = hasDescriptorPaths()): Pins {
  return hasPaths ? byDescriptor(root) : byName(root);
}

/** The file system's own words without the path, which is a number of ours and not what was asked for. */
export function pinnedReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "it does not exist";
  if (code === "ELOOP") return "it became a link";
  return error.message.replace(/, \w+ '.*$/s, "");
}

let descriptorPaths: boolean | null = null;

function hasDescriptorPaths(): boolean {
  return (descriptorPaths ??= process.platform === "linux" && existsSync("/proc/self/fd"));
}

/** Node has no name for it: the folder may be one that can be entered and not listed. */
const O_PATH = 0o10000000;
const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** As many descriptors as are kept for folders on the way. */
const MOST_HELD = 64;

type Held = { readonly name: string; readonly fd: number };

function byDescriptor(root: string): Pins {
  const top = openSync(root, FOLDER);
  /** From the root downwards; neighbours share most of their way. */
  const held: Held[] = [];
  /** Below that, only the last one. */
  let deep: number | null = null;

  const folder = (parts: readonly string[], make?: "make"): string => {
    if (deep !== null) closeSync(deep);
    deep = null;
    while (held.length > 0 && !startsWith(parts, held)) closeSync(held.pop()!.fd);
    for (const [index, name] of parts.entries()) {
      if (index < held.length) continue;
      const parent: number = deep ?? held.at(-1)?.fd ?? top;
      const fd = enter(parent, name, make);
      if (index < MOST_HELD) held.push({ name, fd });
      else {
        if (deep !== null) closeSync(deep);
        deep = fd;
      }
    }
    return pathOf(deep ?? held.at(-1)?.fd ?? top);
  };

  return {
    folder: (parts, make) => `${folder(parts, make)}/.`,
    at: (parts, make) => {
      const name = parts.at(-1);
      return name === undefined ? `${folder(parts)}/.` : `${folder(parts.slice(0, -1), make)}/${name}`;
    },
    [Symbol.dispose]: () => {
      for (const fd of [top, ...held.map((one) => one.fd), ...(deep === null ? [] : [deep])]) closeSync(fd);
    },
  };
}

function startsWith(parts: readonly string[], held: readonly Held[]): boolean {
  return held.length <= parts.length && held.every(({ name }, index) => parts[index] === name);
}

function enter(parent: number, name: string, make: "make" | undefined): number {
  const path = `${pathOf(parent)}/${name}`;
  try {
    return openSync(path, FOLDER);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR") throw fault("ENOTDIR", `${JSON.stringify(name)} is a link or not a folder`);
    if (code !== "ENOENT" || make === undefined) throw error;
  }
  try {
    mkdirSync(path);
  } catch (error) {
    // Another call may have made it at the same moment.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return enter(parent, name, undefined);
}

function pathOf(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** Where descriptors have no paths: the folder is looked at again, and must be where it was judged to be. */
function byName(root: string): Pins {
  const folder = (parts: readonly string[], make?: "make"): string => {
    const path = join(root, ...parts);
    if (make !== undefined) mkdirSync(path, { recursive: true });
    if (realpathSync.native(path) !== path) throw fault("ENOTDIR", `${path} became a link`);
    return path;
  };
  return {
    folder,
    at: (parts, make) =>
      parts.length === 0 ? folder(parts) : join(folder(parts.slice(0, -1), make), parts.at(-1)!),
    [Symbol.dispose]: () => undefined,
  };
}

function fault(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
