/** Folders of other users: what somebody else put above the working directory is not taken for the user's own project. */
import { lstatSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { readWritten } from "./files.ts";

/**
 * FOLDER_UNSAFE when `name` in `folder` belongs to another user. As with git's safe.directory, files of root are
 * everybody's, and files of the user who called sudo are root's. Root also works in the folders of users (a container
 * with a mounted project), except in a folder like /tmp, where anybody can leave something.
 */
export function requireSafeFolder(
  folder: string,
  name: string,
  env: NodeJS.ProcessEnv,
  config: string | null,
  uid: number | undefined = process.geteuid?.(),
): void {
  const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
  if (uid === undefined || found === undefined) return;
  if (found.uid === uid || found.uid === 0) return;
  if (uid === 0 && (String(found.uid) === env.SUDO_UID || !isShared(folder))) return;
  if (safeFolders(config).some((safe) => safe === "*" || safe === folder)) return;
  throw new RunnerError(
    "FOLDER_UNSAFE",
    `${join(folder, name)} belongs to another user (uid ${found.uid}), so ${folder} is not used as a project. If you trust what that user puts there, add the folder to "safeFolders" in ${config === null ? "your config.json" : join(config, "config.json")}: { "safeFolders": [${JSON.stringify(folder)}] }. Otherwise work in a folder of your own: one that holds .agent is found first.`,
  );
}

/** Anybody may make files in it. */
function isShared(folder: string): boolean {
  return ((statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & 0o002) !== 0;
}

/** Read here and not with the other settings: it decides which project there is, and is needed almost never. */
function safeFolders(config: string | null): readonly string[] {
  if (config === null) return [];
  try {
    const value = JSON.parse(readWritten(join(config, "config.json"))) as Json;
    const list = isObject(value) ? own(value, "safeFolders") : undefined;
    return Array.isArray(list) ? list.filter((one): one is string => typeof one === "string").map(plain) : [];
  } catch {
    return [];
  }
}

function plain(folder: string): string {
  return folder.length > 1 && folder.endsWith("/") ? dirname(join(folder, "x")) : folder;
}
