/** The command line that does what a screen shows, as a person can paste it. */
import { shellWord, shown } from "../../flow/text/harmless.ts";

/** null: a word holds characters that cannot be seen, and nobody should paste those. */
export function commandLine(words: readonly string[], command = "lockstep"): string | null {
  const isPlain = words.every((word) => word.isWellFormed() && shown(word) === word && !/[\n\t]/.test(word));
  return isPlain ? [command, ...words.map(shellWord)].join(" ") : null;
}
