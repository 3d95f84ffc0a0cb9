/** Rules about answers without an intent: whether the schema lets them through, and whether the fallback can be taken. */
import type { StepId } from "../../flow/flow.ts";
import { parseDotPath, type Json, type Path } from "../../flow/json.ts";
import { gateForm } from "../registry/gate-forms.ts";
import { answerSchema, atStep, schemaPlace, type Registered } from "./loaded.ts";
import { warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import { promiseOf, valuesAt } from "../registry/promises.ts";
import type { GateSource } from "../registry/registry-shape.ts";

export const rules: Rules = { gated: [checkIntents] };

export const codes = {
  "GATE-OPTIONAL": warning(
    "intent not required",
    "A model may omit what its schema does not require, and without an intent the step decides nothing.",
  ),
  "GATE-FALLBACK-NEVER": warning(
    "fallbackIntent never taken",
    "A fallback that cannot be taken only looks like a safeguard.",
  ),
} satisfies Codes;

function checkIntents(loaded: Registered, tell: Tell): void {
  // Steps may share a schema.
  const optional = new Map<string, Finding>();
  for (const { id, answer, decide } of loaded.graph.steps.values()) {
    const gate = loaded.sources.registry.steps.get(id)?.structuredGate;
    if (gate?.intentField === undefined || decide.by !== "field") continue;
    const schema = answerSchema({ answer });
    const never = neverTaken(loaded, gate, schema);
    if (never !== null) {
      tell({
        code: "GATE-FALLBACK-NEVER",
        ...atStep(loaded, id, "structuredGate", "fallbackIntent"),
        message: `The fallbackIntent "${gate.fallbackIntent}" of the step "${id}" is never taken: ${never.why}.`,
        fix: never.fix,
      });
    }
    // Who writes a fallback that can be taken foresees an answer without an intent.
    if (gate.fallbackIntent !== undefined && decide.fallback !== undefined) continue;
    const lacking = lackingIn(schema, parseDotPath(gate.intentField));
    if (lacking === null) continue;
    const finding = withoutIntent(loaded, id, gate.intentField, lacking, decide.fallback);
    const key = `${finding.document.file} ${finding.pointer}`;
    const before = optional.get(key);
    optional.set(key, before === undefined ? finding : { ...before, steps: [...before.steps!, id] });
  }
  for (const finding of optional.values()) tell(finding);
}

function neverTaken(
  { sources }: Registered,
  { fallbackIntent, failFast, allowedIntents = [], intentField = "" }: GateSource,
  schema: Json,
): { readonly why: string; readonly fix: string } | null {
  if (fallbackIntent === undefined) return null;
  if (!gateForm(sources.dialect).strict) {
    if (!failFast) return null;
    return {
      why: "failFast is true, so an answer without a valid intent ends the run",
      fix: 'Set "failFast" to false, or remove "fallbackIntent".',
    };
  }
  const path = parseDotPath(intentField);
  const words = valuesAt(schema, path);
  const isUsable =
    fallbackIntent !== "abort" && (allowedIntents as readonly string[]).includes(fallbackIntent);
  if (!isUsable || words === null || words.includes(fallbackIntent) || promiseOf(schema, path) !== "sure")
    return null;
  return {
    why: `the schema requires "${intentField}" and does not list that word, so such an answer is rejected`,
    fix: `Add "${fallbackIntent}" to the enum, or remove "fallbackIntent".`,
  };
}

/** The way to the first part of the path that an answer may leave out; null: there is none, or nobody can tell. */
function lackingIn(schema: Json, path: Path): Path | null {
  if (promiseOf(schema, path) === "sure") return null;
  for (let length = 1; length <= path.length; length++) {
    const promised = promiseOf(schema, path.slice(0, length));
    if (promised === "maybe") return path.slice(0, length);
    if (promised !== "sure") return null;
  }
  return null;
}

function withoutIntent(
  loaded: Registered,
  id: StepId,
  field: string,
  lacking: Path,
  fallback: string | undefined,
): Finding & { readonly steps: readonly StepId[] } {
  const place = schemaPlace(
    loaded,
    id,
    lacking.flatMap((segment) => ["properties", segment]),
  );
  const at =
    place === null
      ? atStep(loaded, id, "structuredGate", "intentField")
      : { document: place.document, pointer: pointerOf(place.path) };
  const then = fallback === undefined ? "ends the run" : `counts as "${fallback}"`;
  const owner = lacking.length === 1 ? "of the schema" : `of "${lacking.slice(0, -1).join(".")}"`;
  return {
    code: "GATE-OPTIONAL",
    ...at,
    steps: [id],
    message: `The schema of the step "${id}" accepts an answer without "${field}", which then ${then}: "${lacking.at(-1)}" is not required.`,
    fix: `Add "${lacking.at(-1)}" to "required" ${owner}.`,
  };
}
