/** `--summary FILE`: where the summary of a run is appended; in GitHub Actions to the summary of the step. */
import { appendFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { errorText } from "../flow/text/harmless.ts";
import { notWritable } from "../run/world/write-whole.ts";
import type { CommandCall } from "./call.ts";

type SummaryFlags = { readonly summary?: string | undefined };

/** NOT_WRITABLE before anything runs, if the named file cannot be written. */
export function requireSummaryFile({ flags, cwd }: CommandCall<SummaryFlags>): void {
  const file = flags.summary;
  if (file === undefined) return;
  const path = resolve(cwd, file);
  try {
    requireRegular(path);
    appendFileSync(path, "");
  } catch (error) {
    throw notWritable(`The summary cannot be written to ${file}`, path, error);
  }
}

/** Opening a pipe would wait for a reader, for ever. */
function requireRegular(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new Error(`${path} is not a regular file`);
}

/** A summary that cannot be written does not change how the run ended. `text` is asked only where there is a file. */
export async function writeSummary(
  { flags, cwd, host, screen }: CommandCall<SummaryFlags>,
  text: () => Promise<string>,
): Promise<void> {
  const file = flags.summary ?? host.env.GITHUB_STEP_SUMMARY ?? "";
  if (file === "") return;
  try {
    requireRegular(resolve(cwd, file));
    appendFileSync(resolve(cwd, file), await text());
  } catch (error) {
    screen.complain(`The summary cannot be written to ${file}: ${errorText(error)}.`);
  }
}
