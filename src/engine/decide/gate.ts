/** How an answer becomes a label. Pure, and total: whatever the model sends, a value comes back. */
import {
  isObject,
  own,
  type Json,
  type JsonObject,
  parseDotPath,
  readPath,
  writePath,
} from "../../flow/json.ts";
import type { Naming } from "../../flow/deed.ts";
import type { Answer, Decider, Label, Step } from "../../flow/flow.ts";
import { lifecycleOf } from "../../flow/lifecycle.ts";
import { messages } from "../../flow/text/endings.ts";
import { everyFault, validate } from "../schema/schema.ts";

export type Reading =
  /** The answer stands. `payload` is what was validated: self-name corrected, alias replaced. */
  | {
      readonly kind: "label";
      readonly label: Label;
      readonly by: Naming;
      readonly payload: JsonObject;
      readonly notes: readonly string[];
    }
  /** The answer does not fit its contract; it may be sent back. */
  | { readonly kind: "misfit"; readonly errors: readonly string[] }
  /** The answer fits, but holds no label that this step may give. */
  | { readonly kind: "no-label"; readonly found: string };

/** Reads the label out of an answer: correct, map aliases, validate, then look at what is allowed. */
export function readAnswer(step: Step, answer: Answer & { kind: "object" }, output: JsonObject): Reading {
  const notes: string[] = [];
  const payload = correctName(answer, output, notes);
  const schema = answer.schema.kind === "schema" ? answer.schema.schema : null;

  if (step.decide.by === "const") {
    const errors = schema === null ? [] : validate(schema, payload);
    if (errors.length === 0) return { kind: "label", label: step.decide.label, by: "const", payload, notes };
    // An attempt has as many responses as its cap allows, so the model is told everything at once.
    return {
      kind: "misfit",
      errors: lifecycleOf(step) === undefined ? errors : everyFault(schema!, payload),
    };
  }

  const found = readPath(payload, step.decide.path);
  const named = nameLabel(step.decide, found, notes);
  if (named === null) {
    const errors = schema === null ? [] : validate(schema, payload);
    return errors.length > 0 ? { kind: "misfit", errors } : { kind: "no-label", found: show(found) };
  }
  const { label, by } = named;
  const meant = label === found ? payload : writePath(payload, step.decide.path, label);
  if (step.decide.always.includes(label)) return { kind: "label", label, by, payload: meant, notes };
  // A schema may list the words that models use, or the labels that those words stand for.
  const errors = schema === null ? [] : validate(schema, meant);
  const fits = errors.length === 0 || (meant !== payload && validate(schema!, payload).length === 0);
  return fits ? { kind: "label", label, by, payload: meant, notes } : { kind: "misfit", errors };
}

/** The model's own words for what it decided: beside the decided field, then at the top. */
export function readReason(step: Step, payload: JsonObject): string {
  const beside =
    step.decide.by === "field" ? readPath(payload, step.decide.path, step.decide.path.length - 1) : undefined;
  const nearby = isObject(beside) ? beside : payload;
  // Plain reads: this is done for every answer, and no prototype has these names.
  const details = nearby["details"];
  return (
    words(nearby["reason"]) ||
    words(payload["reason"]) ||
    words(payload["message"]) ||
    (isObject(details) ? words(details["reason"]) : "")
  );
}

function words(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** The data that the step hands on, and which declared fields were absent. */
export function readCarry(step: Step, payload: JsonObject): { data: JsonObject; missing: readonly string[] } {
  if (step.carry.length === 0) return NOTHING;
  const data: { [key: string]: Json } = {};
  const missing: string[] = [];
  for (const { key, path } of step.carry) {
    const value = readPath(payload, path);
    if (value === undefined) missing.push(path.join("."));
    else data[key] = value;
  }
  return { data, missing };
}

const NOTHING = { data: {}, missing: [] };

function correctName(answer: Answer & { kind: "object" }, output: JsonObject, notes: string[]): JsonObject {
  if (answer.correct === undefined) return output;
  const { field, value } = answer.correct;
  const said = own(output, field);
  if (typeof said !== "string" || said === value) return output;
  notes.push(`${field} "${clip(said)}" corrected to "${value}"`);
  return writePath(output, parseDotPath(field), value);
}

function nameLabel(
  decide: Decider & { by: "field" },
  found: Json | undefined,
  notes: string[],
): { readonly label: Label; readonly by: Naming } | null {
  if (typeof found === "string" || typeof found === "boolean") {
    if (typeof found === "string" && isAllowed(decide, found)) return { label: found, by: "word" };
    const word = String(found).toLowerCase();
    const label = own(decide.alias, word) ?? word;
    if (isAllowed(decide, label)) return { label, by: "alias" };
  }
  if (decide.fallback === undefined) return null;
  notes.push(messages.fallbackTaken(show(found), decide.fallback));
  return { label: decide.fallback, by: "fallback" };
}

function isAllowed({ allow, always }: Decider & { by: "field" }, label: Label): boolean {
  return allow.includes(label) || always.includes(label);
}

function show(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return `"${clip(value)}"`;
  if (Array.isArray(value)) return "an array";
  return isObject(value) ? "an object" : JSON.stringify(value);
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
