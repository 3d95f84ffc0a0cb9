/** `lockstep completion SHELL`: a script of templates/completion that asks `lockstep __complete` what can stand at the end of the line. */
import { readFileSync } from "node:fs";
import { packageFile } from "../../flow/package-file.ts";
import type { CommandCall } from "../call.ts";

/**
 * The scripts always ask the `lockstep` of the user's PATH: what is typed as `./lockstep` is a file of the project, which
 * Tab must not start. The first line of the answer says where else to look: `files` or `folders` of the shell, or nowhere
 * (`-`). Then one line for each word: the word, a tab, its meaning.
 */
export function printCompletion({ words: [shell = ""], screen }: CommandCall): Promise<number> {
  screen.emit(readFileSync(packageFile(`templates/completion/lockstep.${shell}`), "utf8").trimEnd());
  return Promise.resolve(0);
}
