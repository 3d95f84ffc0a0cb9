/** The folder where a machine keeps the files of runs that travel: made, and tried, before anything is taken. */
import { existsSync, mkdirSync, mkdtempSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import { ended, errorText, shownInLine } from "../flow/text/harmless.ts";
import { homeFolder } from "./world/project.ts";

/** Where this machine keeps mirrors and the files of runs that travel. Only this user may read them. NOT_WRITABLE. */
export function workFolder(named: string | undefined, env: NodeJS.ProcessEnv): string {
  const folder = named ?? join(env.XDG_CACHE_HOME || join(homeFolder(env), ".cache"), "lockstep-work");
  try {
    makeFolders(folder);
    rmdirSync(mkdtempSync(join(folder, ".writable-")));
    return folder;
  } catch (cause) {
    throw new RunnerError(
      "NOT_WRITABLE",
      `The folder ${shownInLine(folder, 400)} cannot hold the files of runs: ${ended(errorText(cause))} Choose another one with --work DIR, or with fleet.work in your config.json.`,
      { cause },
    );
  }
}

/** One by one: `recursive` of Node never returns, and hears no signal, where a folder refuses as /proc does. */
function makeFolders(folder: string): void {
  const parent = dirname(folder);
  if (existsSync(folder)) return;
  if (parent !== folder) makeFolders(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another worker was faster.
    if (!existsSync(folder)) throw error;
  }
}
