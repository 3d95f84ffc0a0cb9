/** Packages that only some users need: looked for when they are asked for. */
import { manual } from "../flow/manual.ts";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { RunnerError } from "../engine/ports.ts";
import { installCommand } from "../flow/machine/install.ts";

export type Peer = {
  readonly name: string;
  /** The versions that fit, as npm takes them. */
  readonly version?: string;
  /** What it is for, as in "… needs". */
  readonly whose: string;
  /** The page that describes it, and the code for its absence; those of backends where they are not said. */
  readonly page?: string;
  readonly code?: string;
};

/**
 * The package, from the folder that the user's `LOCKSTEP_PACKAGES` names, else from where Lockstep itself is installed.
 * Never from the project: what lies there runs only after trust.
 */
export async function loadPeer(peer: Peer, env: NodeJS.ProcessEnv): Promise<unknown> {
  const LOCKSTEP_PACKAGES = env.LOCKSTEP_PACKAGES || undefined;
  try {
    const found = LOCKSTEP_PACKAGES === undefined ? peer.name : resolveFrom(LOCKSTEP_PACKAGES, peer.name);
    return (await import(found)) as unknown;
  } catch (error) {
    const { code = "BACKEND_UNAVAILABLE" } = peer;
    throw new RunnerError(code, absent(peer, error, LOCKSTEP_PACKAGES), { cause: error });
  }
}

function resolveFrom(folder: string, name: string): string {
  return pathToFileURL(createRequire(join(folder, "package.json")).resolve(name)).href;
}

function absent(
  { name, version, whose, page = manual("agents") }: Peer,
  error: unknown,
  folder: string | undefined,
): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") {
    return `${whose} needs ${name}, which is there but cannot be loaded: ${message}`;
  }
  const where = folder === undefined ? "beside Lockstep" : `in ${folder} (LOCKSTEP_PACKAGES)`;
  const install = installCommand(
    version === undefined ? name : `${name}@${version}`,
    import.meta.url,
    folder,
  );
  return `${whose} needs ${name}, which is not installed ${where}. Install it: ${install} (see ${page})`;
}
