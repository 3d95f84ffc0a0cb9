/** What a failure prompt can read of a failed check, by name. */
import type { Check } from "./flow.ts";
import type { Json } from "./json.ts";

const OF_COMMAND = ["stdout", "stderr", "exitCode", "command", "summary"] as const;
const NAMES = {
  command: OF_COMMAND,
  file: ["missingFiles", "expectedPath", "summary"],
  "commit-message": ["commitMessage", "commit", "problems", "expectedForm", "summary"],
} as const satisfies { readonly [kind in Check["kind"]]: readonly string[] };

/** The values that every failure of such a check has. */
export type FailureParams<K extends Check["kind"]> = { readonly [name in (typeof NAMES)[K][number]]: Json };

/** Extractors that also say what the output means, and the names under which they say it. */
export const EXPLAINING = [
  "parseTestOutput",
  "failedTests",
  "parseTypeErrors",
  "errors",
  "parseChangedFiles",
  "parseUntrackedFiles",
  "parseStagedFiles",
  "parseUnstagedFiles",
  "parseBranchName",
  "parseRemoteStatus",
  "parseMergeStatus",
] as const;
const EXPLANATION = ["summary", "severity", "relatedFiles", "rootCause", "suggestedAction"] as const;

export type Explanation = { readonly [name in (typeof EXPLANATION)[number]]: Json };

export function failureNames(check: Check): readonly string[] {
  if (check.kind !== "command") return NAMES[check.kind];
  const extractors = new Set(Object.values(check.extract));
  const isExplained = EXPLAINING.some((name) => extractors.has(name));
  return [...Object.keys(check.extract), ...NAMES.command, ...(isExplained ? EXPLANATION : [])];
}
