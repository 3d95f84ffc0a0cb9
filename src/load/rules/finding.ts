/** A finding before it is placed and weighed: the loader collects these, and only the final list knows what is live. */
import type { StepId } from "../../flow/flow.ts";
import type { Edit } from "../../flow/problem.ts";
import type { Code } from "../codes.ts";
import type { Document } from "../text/document.ts";

export type Finding = {
  readonly code: Code;
  readonly document: Document;
  readonly pointer: string;
  readonly message: string;
  readonly fix: string;
  /** The steps it is about. Absent: the whole flow. Empty: no step of the flow, so it can only warn. */
  readonly steps?: readonly StepId[];
  /** Milder or stricter than the code is in general. */
  readonly severity?: "error" | "warning";
  readonly witness?: readonly StepId[];
  /** The edits that fix it, where the fix is unambiguous. */
  readonly mend?: readonly Edit[];
};

/** Fixes a misspelled value, when exactly one of the valid ones is near. */
export function correctTo(word: string | null, document: Document, pointer: string): Pick<Finding, "mend"> {
  return word === null ? {} : { mend: [{ file: document.file, pointer, kind: "set", value: word }] };
}
