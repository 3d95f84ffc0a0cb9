/** What a rule finds, and what a file of this folder declares: its codes, and the checks that find them. Adding a rule touches that file only. */
import type { StepId } from "../../flow/flow.ts";
import type { Edit } from "../../flow/problem.ts";
import type { Code } from "../codes.ts";
import type { Machine } from "../stages/machine-parts.ts";
import type { Document } from "../text/document.ts";
import type { LoadedFlow, Registered } from "./loaded.ts";

/** Before it is placed and weighed: the loader collects these, and only the final list knows what is live. */
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
export function correctTo(
  word: string | null,
  { document, pointer }: Pick<Finding, "document" | "pointer">,
): Pick<Finding, "mend"> {
  return word === null ? {} : { mend: [{ file: document.file, pointer, kind: "set", value: word }] };
}

export type Codes = { readonly [code: string]: Rule };

export type Rule = { readonly severity: "error" | "warning"; readonly title: string; readonly why: string };

/** Takes a finding as soon as a check has it. Checks are no generators: a large flow would make tens of thousands of them. */
export type Tell = (finding: Finding) => void;

type Checks<L> = readonly ((loaded: L, tell: Tell) => void)[];

/** Checks by the dialects they hold in; each begins with what it would miss. */
export type Rules = {
  readonly all?: Checks<LoadedFlow>;
  /** Every form of a registry. */
  readonly registry?: Checks<Registered>;
  /** The forms with gates: seven intents, or a complete intent. */
  readonly gated?: Checks<Registered>;
  readonly complete?: Checks<Registered>;
  /** Steps with check prompts. */
  readonly check?: Checks<Registered>;
  readonly stage?: Checks<Machine>;
};

export function error(title: string, why: string): Rule {
  return { severity: "error", title, why };
}

export function warning(title: string, why: string): Rule {
  return { severity: "warning", title, why };
}
