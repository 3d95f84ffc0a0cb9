/** The folder where a machine keeps the files of runs that travel: made, and tried, before anything is taken. */
import { mkdtempSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import { ended, errorText, shownInLine } from "../flow/text/harmless.ts";
import { makeFolder } from "../journal/make-folder.ts";
import { homeFolder } from "./world/project.ts";

/** Where this machine keeps mirrors and the files of runs that travel. Only this user may read them. NOT_WRITABLE. */
export function workFolder(named: string | undefined, env: NodeJS.ProcessEnv): string {
  const folder = named ?? join(env.XDG_CACHE_HOME || join(homeFolder(env), ".cache"), "lockstep-work");
  try {
    makeFolder(folder, { mode: 0o700 });
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
