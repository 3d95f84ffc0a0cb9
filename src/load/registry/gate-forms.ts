/** What the two written forms with gates make of the same keys. */
import type { Decider, StepId, StepKind } from "../../flow/flow.ts";
import type { Dialect } from "./dialect.ts";
import type { GateSource, Intent, StepSource, TransitionSource } from "./registry-shape.ts";

export type GateForm = {
  /** The intents there are. */
  readonly intents: readonly Intent[];
  /** Other words for an intent that models use. */
  readonly aliases: Extract<Decider, { by: "field" }>["alias"];
  /** The intent that ends a flow. */
  readonly ending: Intent;
  /** How an author gets a flow to its end, for fix hints. */
  readonly howToEnd: string;
  /** null: an entry of the registry that is not a step of the flow. */
  readonly kindOf: (id: StepId, source: StepSource) => StepKind | null;
  /** Whether this intent of a step ends the flow, whatever target is written for it. */
  readonly ends: (id: StepId, intent: string, rule: TransitionSource | undefined) => boolean;
  /** Nothing is implied: no way that is not written, no step's name put right, no fallback but the declared one. */
  readonly strict: boolean;
};

export function gateForm(dialect: Dialect): GateForm {
  return dialect === "complete" ? COMPLETE_FORM : GATE_FORM;
}

/** The final steps of flows with a `complete` intent. */
export function isFinal(id: StepId): boolean {
  return id.startsWith("complete.");
}

/** Taken when an answer holds no allowed intent; undefined: that is an error. */
export function fallbackOf(gate: GateSource, allow: readonly string[], form: GateForm): string | undefined {
  const wanted = gate.fallbackIntent;
  const isUsable = wanted !== undefined && (wanted === "abort" || allow.includes(wanted));
  if (form.strict) return isUsable ? wanted : undefined;
  if (gate.failFast) return undefined;
  if (isUsable) return wanted;
  return allow.includes("next") ? "next" : allow[0];
}

const SHARED_ALIASES = { continue: "next", retry: "repeat", wait: "repeat" } as const;

const KINDS: { readonly [kind in NonNullable<StepSource["stepKind"]>]: StepKind } = {
  work: "work",
  verification: "verify",
  closure: "close",
};
const KIND_BY_C2: ReadonlyMap<string, StepKind> = new Map([
  ["initial", "work"],
  ["continuation", "work"],
  ["verification", "verify"],
  ["closure", "close"],
]);

/** Seven intents, three kinds of steps. */
const GATE_FORM: GateForm = {
  intents: ["next", "repeat", "jump", "handoff", "closing", "escalate", "abort"],
  aliases: { ...SHARED_ALIASES, done: "closing", finished: "closing", pass: "next", fail: "repeat" },
  ending: "closing",
  howToEnd: 'Lead a transition to a closure that allows "closing".',
  kindOf: (id, source) => {
    if (source.stepKind !== undefined) return KINDS[source.stepKind];
    if (id.startsWith("section.")) return null;
    return KIND_BY_C2.get(source.c2 ?? "") ?? null;
  },
  ends: (_id, intent) => intent === "closing",
  strict: false,
};

/** No kinds; `complete` leads to a final step, and ends the flow there. */
const COMPLETE_FORM: GateForm = {
  intents: ["next", "repeat", "jump", "complete", "abort"],
  aliases: { ...SHARED_ALIASES, done: "complete", finished: "complete", escalate: "abort" },
  ending: "complete",
  howToEnd: 'Lead "complete" to a complete.* step that allows "complete".',
  kindOf: (id) => (id.startsWith("section.") ? null : isFinal(id) ? "close" : "work"),
  ends: (id, intent, rule) =>
    isFinal(id) && (intent === "complete" || (rule?.target === null && rule.condition === undefined)),
  strict: true,
};
