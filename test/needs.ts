/** For tests that need a part of the system or a package which may be missing: left out, and said; a failure in CI. */
import { appendFileSync } from "node:fs";

export function needs(present: boolean, missing: string): { readonly skip: string | false } {
  if (present) return { skip: false };
  if (process.env.CI) throw new Error(`A test must not be skipped in CI: ${missing}`);
  // `npm test` prints all of these as one line.
  const file = process.env.LOCKSTEP_LEFT_OUT;
  if (file === undefined) console.error(`SKIPPED: ${missing}`);
  else appendFileSync(file, `${missing}\n`);
  return { skip: missing };
}

/** Warnings without the one that every run gets that starts commands where nothing confines them. */
export function besidesUnconfined(warnings: readonly string[]): readonly string[] {
  return warnings.filter((text) => !text.startsWith("Commands are not sandboxed: "));
}
