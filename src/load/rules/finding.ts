/** A finding before it is placed and weighed: the loader collects these, and only the final list knows what is live. */
import type { StepId } from "../../flow/flow.ts";
import type { Edit, Problem } from "../../flow/problem.ts";
import { CODES, type Code } from "./codes.ts";
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
  /** What mends it, where there is one right answer. */
  readonly mend?: readonly Edit[];
};

/** `live`: the steps that the selected entry can lead to. null: unknown, so every step counts. */
export function toProblem(finding: Finding, live: ReadonlySet<StepId> | null): Problem {
  const rule = CODES[finding.code];
  const { steps } = finding;
  const step = steps?.find((id) => live?.has(id) ?? true) ?? null;
  const dead = steps !== undefined && step === null;
  return {
    code: finding.code,
    severity: dead ? "warning" : (finding.severity ?? rule.severity),
    file: finding.document.file,
    ...finding.document.place(finding.pointer),
    pointer: finding.document.written?.(finding.pointer) ?? finding.pointer,
    step: step ?? steps?.[0] ?? null,
    message: finding.message,
    why: rule.why,
    fix: finding.fix,
    witness: finding.witness ?? [],
    // In a file of an earlier form the places are not where they are read.
    ...(finding.mend !== undefined && isMendable(finding.document) && { mend: finding.mend }),
  };
}

function isMendable({ written, isYaml }: Document): boolean {
  return written === undefined && isYaml === undefined;
}

/** Mends a misspelled value, when exactly one of the right ones is near. */
export function correctTo(word: string | null, document: Document, pointer: string): Pick<Finding, "mend"> {
  return word === null ? {} : { mend: [{ file: document.file, pointer, kind: "set", value: word }] };
}
