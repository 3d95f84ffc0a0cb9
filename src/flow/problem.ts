/** A finding about a flow before it runs: what is wrong, where, why that matters and how to fix it. */
import type { StepId } from "./flow.ts";
import type { Json } from "./json.ts";

export type Problem = {
  readonly code: string;
  readonly severity: "error" | "warning";
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** JSON pointer into the file; "" is the whole of it. */
  readonly pointer: string;
  readonly step: StepId | null;
  readonly message: string;
  readonly why: string;
  readonly fix: string;
  /** The shortest way through the flow that shows the problem. */
  readonly witness: readonly StepId[];
  /** The edits that fix it, where the fix is unambiguous. */
  readonly mend?: readonly Edit[];
};

/** A change to a JSON file at a place. */
export type Edit = { readonly file: string; readonly pointer: string } &
  /** The value there; a member that is not there yet is added to its object. */
  (
    | { readonly kind: "set"; readonly value: Json }
    /** The name of the member there. */
    | { readonly kind: "rename"; readonly to: string }
    /** One more element of the list there; a list that is not there yet is made. */
    | { readonly kind: "append"; readonly value: Json }
  );

export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === "error");
}
