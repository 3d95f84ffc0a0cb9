/** From a finding to a problem: placed, weighed, and with the reason of its rule. */
import type { StepId } from "../../flow/flow.ts";
import type { Problem } from "../../flow/problem.ts";
import type { Document } from "../text/document.ts";
import { spotOf } from "../text/origin.ts";
import { CODES } from "../codes.ts";
import type { Finding } from "./rule.ts";

/** `live`: the steps that the selected entry can lead to. null: unknown, so every step counts. */
export function toProblem(finding: Finding, live: ReadonlySet<StepId> | null): Problem {
  const rule = CODES[finding.code];
  const { steps } = finding;
  const step = steps?.find((id) => live?.has(id) ?? true) ?? null;
  const dead = steps !== undefined && step === null;
  return {
    code: finding.code,
    severity: dead ? "warning" : (finding.severity ?? rule.severity),
    ...spotOf(finding.document, finding.pointer),
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
