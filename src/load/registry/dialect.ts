/** Which written form a registry has: what it says of itself, else what it holds. */
import { isObject, own, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import type { Document } from "../text/document.ts";
import type { Finding } from "../rules/rule.ts";
import { escapeSegment, pointerOf } from "../../flow/json-pointer.ts";
import { showValue } from "../text/shape.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export const DIALECTS = ["check", "complete", "gate"] as const;

/** `check`: steps with check prompts. `complete`: gates with a `complete` intent. `gate`: gates with seven intents. */
export type Dialect = (typeof DIALECTS)[number];

/** null with the reason among the findings: the file says what there is not, or is of two forms at once. */
export function recogniseDialect(document: Document, findings: Finding[]): Dialect | null {
  const value = isObject(document.value) ? document.value : {};
  const report = (pointer: string, message: string, fix: string) => {
    findings.push({ code: "DIALECT", document, pointer, message, fix });
    return null;
  };
  const said = own(value, "dialect");
  if (said !== undefined && !isDialect(said)) {
    const hint = typeof said === "string" ? didYouMean(said, DIALECTS) : "";
    const message = `The dialect is ${showValue(said)}, but must be one of ${DIALECTS.join(", ")}.${hint}`;
    return report("/dialect", message, `Write one of: ${DIALECTS.join(", ")}.`);
  }
  const signs = firstSigns(value);
  const first = (dialect: Dialect) => signs.find((sign) => sign.dialect === dialect);
  const told: Sign | undefined =
    said === undefined
      ? (first("check") ?? first("complete") ?? completeById(value, first("gate")))
      : { dialect: said, pointer: "/dialect", what: `"dialect": "${said}"` };
  const dialect = told?.dialect ?? "gate";

  const other = signs.find((sign) => contradicts(sign, dialect));
  if (told === undefined || other === undefined) return dialect;
  const message = `${document.file} mixes two dialects: ${told.what} at ${told.pointer} belongs to ${NAMES[dialect]}, but ${other.what} at ${other.pointer} to ${NAMES[other.dialect]}.`;
  return report(other.pointer, message, `Write the whole file in one dialect, or remove ${other.what}.`);
}

const NAMES: { readonly [dialect in Dialect]: string } = {
  check: 'the dialect "check" (steps with check prompts)',
  complete: 'the dialect "complete" (gates with a complete intent)',
  gate: 'the dialect "gate" (gates with seven intents)',
};

type Sign = {
  readonly dialect: Dialect;
  readonly pointer: string;
  readonly what: string;
  /** Both forms with gates have it. */
  readonly anyGate?: true;
};

/** The first sign of each kind, in the order of the file: a large registry has thousands that say the same. */
function firstSigns(registry: JsonObject): readonly Sign[] {
  const signs: Sign[] = [];
  const known = { check: false, complete: false, gate: false, anyGate: false };
  const add = (kind: keyof typeof known, path: Path, what: string) => {
    if (known[kind]) return;
    known[kind] = true;
    const pointer = pointerOf(path);
    signs.push(
      kind === "anyGate"
        ? { dialect: "gate", pointer, what, anyGate: true }
        : { dialect: kind, pointer, what },
    );
  };
  if (Object.hasOwn(registry, "basePath")) add("check", ["basePath"], "basePath");
  const steps = isObject(registry.steps) ? registry.steps : {};
  for (const id of Object.keys(steps)) {
    const step = steps[id]!;
    if (!isObject(step)) continue;
    if (!known.check)
      for (const key of PROMPT_KEYS)
        if (isObject(own(step, key))) add("check", ["steps", id, key], `"${key}"`);
    const gate = isObject(step.structuredGate) ? step.structuredGate : {};
    const allowed: readonly Json[] = Array.isArray(gate.allowedIntents) ? gate.allowedIntents : [];
    const addIntent = (kind: "complete" | "gate", word: string) =>
      add(kind, ["steps", id, "structuredGate", "allowedIntents"], `the intent "${word}"`);
    if (!known.complete && allowed.includes("complete")) addIntent("complete", "complete");
    if (!known.gate) for (const word of GATE_WORDS) if (allowed.includes(word)) addIntent("gate", word);
    if (!known.anyGate)
      for (const key of GATE_KEYS)
        if (isObject(own(step, key))) add("anyGate", ["steps", id, key], `"${key}"`);
  }
  return signs;
}

const PROMPT_KEYS = ["prompt", "check"];
const GATE_KEYS = ["structuredGate", "transitions"];

/** Intents that the dialect "complete" has not. Its `escalate` is another word for abort. */
const GATE_WORDS = ["closing", "handoff"];

/** Steps called `complete.*` tell the form when no intent tells another. */
function completeById(registry: JsonObject, gate: Sign | undefined): Sign | undefined {
  if (gate !== undefined && gate.anyGate !== true) return undefined;
  const steps = isObject(registry.steps) ? Object.keys(registry.steps) : [];
  const id = steps.find((step) => step.startsWith("complete."));
  return id === undefined
    ? undefined
    : { dialect: "complete", pointer: `/steps/${escapeSegment(id)}`, what: `the step "${id}"` };
}

function contradicts(sign: Sign, dialect: Dialect): boolean {
  if (sign.dialect === dialect) return false;
  if (sign.anyGate === true) return dialect === "check";
  // A gate that allows "complete" in a file that says it is of the gate form is reported as the unknown intent it is.
  return sign.dialect !== "complete" || dialect === "check";
}

function isDialect(value: Json): value is Dialect {
  return (DIALECTS as readonly Json[]).includes(value);
}
