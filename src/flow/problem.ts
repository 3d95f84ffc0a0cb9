/** A finding about a flow before it runs: what is wrong, where, why that matters and how to mend it. */
import type { StepId } from "./flow.ts";

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
};

export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === "error");
}
