/** The catalogue of built-in prompts that `fallbackKey` may name, in the order it is documented in. None of them is used: a step's own file is. */

const PAIRS = ["iterate", "issue", "issue_label_only", "project", "keyword", "manual", "structured_signal"];

export const FALLBACK_KEYS: ReadonlySet<string> = new Set([
  ...PAIRS.flatMap((word) => [`initial_${word}`, `continuation_${word}`]),
  "continuation_project_preparation",
  "continuation_project_processing",
  "continuation_project_review",
  "issue_closure_default",
  "project_closure_default",
  "polling_closure_default",
  "review_closure_default",
  "iteration_closure_default",
  "facilitation_closure_default",
  "project_continuation_closure_default",
  "statuscheck_continuation_default",
  "system",
]);
