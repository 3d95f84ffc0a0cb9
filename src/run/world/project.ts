/** Where things are: the project around a working directory, its agents, its run state. */
import { existsSync, readdirSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { isFolder } from "./files.ts";
import { requireSafeFolder } from "./safe-folder.ts";

export type Project = {
  /** The folder that holds `.agent`. */
  readonly root: string;
  readonly agentsDir: string;
  readonly stateDir: string;
  /** The address of the server that records runs; absent: they are recorded in the state folder. */
  readonly recordedAt?: string;
};

export function isServerAddress(text: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(text);
}

/** What to open a journal by. */
export function recordPlace({ stateDir, recordedAt }: Pick<Project, "stateDir" | "recordedAt">): string {
  return recordedAt ?? stateDir;
}

/**
 * The nearest folder at or above `cwd` that holds `.agent` or `.lockstep`; `cwd` itself when there is none. FOLDER_UNSAFE
 * when it is another user's. `state`: where runs are recorded, a folder or the address of a server; LOCKSTEP_STATE where
 * it is not given.
 */
export function findProject(cwd: string, stateDir?: string, env: NodeJS.ProcessEnv = process.env): Project {
  const start = resolve(cwd);
  if (!isFolder(start)) {
    throw new RunnerError("NO_SUCH_FOLDER", `The folder ${start} does not exist.`);
  }
  let root = start;
  for (let folder = start; ; folder = dirname(folder)) {
    const names = [".agent", ".lockstep"].filter((name) => isFolder(join(folder, name)));
    if (names.length > 0) {
      for (const name of names) requireSafeFolder(folder, name, env, configFolder(env));
      root = folder;
      break;
    }
    if (folder === dirname(folder)) break;
  }
  const agentsDir = join(root, ".agent");
  const named = stateDir ?? (env.LOCKSTEP_STATE || undefined);
  const local = join(root, ".lockstep");
  if (named !== undefined && /^[a-z][a-z0-9+.-]*:\/\//i.test(named) && !isServerAddress(named))
    // What comes after may be a password.
    throw new RunnerError(
      "JOURNAL_UNAVAILABLE",
      `Runs cannot be recorded at ${named.slice(0, named.indexOf(":"))}://…: name a folder, or postgres://HOST/DATABASE.`,
    );
  if (named !== undefined && isServerAddress(named))
    return { root, agentsDir, stateDir: local, recordedAt: named };
  return { root, agentsDir, stateDir: named === undefined ? local : resolve(cwd, named) };
}

/** The names of all agents, sorted: folders with an agent file or with stages. */
export function listAgents(project: Project): readonly string[] {
  if (!isFolder(project.agentsDir)) return [];
  return readdirSync(project.agentsDir)
    .filter((name) => {
      const folder = join(project.agentsDir, name);
      return existsSync(join(folder, "agent.json")) || isFolder(join(folder, "stages"));
    })
    .toSorted();
}

/** Where the user's settings are; null where no home folder is known: a folder of the project would not be the user's. */
export function configFolder(env: NodeJS.ProcessEnv): string | null {
  const { XDG_CONFIG_HOME: config, HOME, USERPROFILE } = env;
  if (config !== undefined && isAbsolute(config)) return join(config, "lockstep");
  const home = HOME || USERPROFILE;
  return home !== undefined && isAbsolute(home) ? join(home, ".config", "lockstep") : null;
}

/** Where the user's settings are, or would be. */
export function settingsFolder(env: NodeJS.ProcessEnv): string {
  return configFolder(env) ?? join(homeFolder(env), ".config", "lockstep");
}

/** The user's own folder. A HOME that is not a full path would mean another place in every folder, so it is passed over. */
export function homeFolder({ HOME, USERPROFILE }: NodeJS.ProcessEnv): string {
  const named = HOME ?? USERPROFILE ?? "";
  return isAbsolute(named) ? named : userInfo().homedir;
}
