/** Where a run pushes to: settled when it begins, and held against what git would push to when it ends. */
import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Worktree } from "../../flow/event.ts";
import type { Git } from "./git.ts";
import { quoted } from "./words.ts";
import { isWithinFolder } from "../grounded.ts";

/** As git makes them out by all its settings. */
export async function addressesOf(git: Git, home: string, remote: string): Promise<readonly string[]> {
  const answer = await git(home, ["remote", "get-url", "--push", "--all", "--", remote]);
  return answer.ok ? answer.out.split("\n").filter((line) => line !== "") : [];
}

/** An address may hold a password, so only this is recorded. */
export function remoteDigest(addresses: readonly string[]): string {
  return createHash("sha256").update(addresses.join("\n")).digest("hex");
}

/** Why nothing may be pushed now, with what to do about it; null: it may. */
export async function troubleWith(git: Git, worktree: Worktree): Promise<string | null> {
  const { home, path, finalize, pushTo } = worktree;
  const addresses = await addressesOf(git, home, finalize.remote);
  const look = `look at it with: git -C ${quoted(home)} remote -v, and push by hand`;
  if (pushTo !== undefined && remoteDigest(addresses) !== pushTo)
    return `its address is not the one it had when the run began; ${look}`;
  const inside = addresses.flatMap((address) => localFolder(address, home));
  if (inside.some((folder) => [home, path].some((place) => isWithinFolder(real(place), real(folder)))))
    return `its repository lies in the project, and would run its own hooks; ${look}`;
  return null;
}

/** The folder that an address names, if it names one of this machine. */
function localFolder(address: string, home: string): readonly string[] {
  if (/^file:\/\//i.test(address)) {
    try {
      return [fileURLToPath(address)];
    } catch {
      return [];
    }
  }
  const isRemote = /^[a-z][a-z\d+.-]*:\/\//i.test(address) || /^[^/]*:/.test(address);
  return isRemote ? [] : [resolve(home, address)];
}

function real(path: string): string {
  return existsSync(path) ? realpathSync.native(path) : path;
}
