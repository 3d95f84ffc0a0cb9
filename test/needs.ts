/** For tests that need a part of the system which may be missing: skipped loudly elsewhere, and a failure in CI. */
export function needs(present: boolean, missing: string): { readonly skip: string | false } {
  if (present) return { skip: false };
  if (process.env.CI) throw new Error(`A test must not be skipped in CI: ${missing}`);
  console.error(`SKIPPED: ${missing}`);
  return { skip: missing };
}

/** Warnings without the one that every run gets that starts commands where nothing confines them. */
export function besidesUnconfined(warnings: readonly string[]): readonly string[] {
  return warnings.filter((text) => !text.startsWith("Commands are not confined: "));
}
