/** What a file of this folder declares: its codes, and the checks that find them. Adding a rule touches that file only. */
import type { Machine } from "../stages/machine-parts.ts";
import type { Finding } from "./finding.ts";
import type { LoadedFlow, Registered } from "./loaded.ts";

export type Codes = { readonly [code: string]: Rule };

export type Rule = { readonly severity: "error" | "warning"; readonly title: string; readonly why: string };

type Checks<L> = readonly ((loaded: L) => Iterable<Finding>)[];

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
