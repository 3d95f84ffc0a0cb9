/** transitions → moves. What cannot be built is left out here and reported by the rules. */
import type { Carry, Move, StepId, StepKind } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, parseDotPath } from "../../flow/json.ts";
import type { GateForm } from "./gate-forms.ts";
import type { GateSource, StepSource, TransitionSource } from "./registry-shape.ts";

/** The flow steps of a registry: ids in the order of the file, with their kinds. */
export type FlowSteps = { readonly kinds: ReadonlyMap<StepId, StepKind>; readonly ids: readonly StepId[] };

export const ABORT: Move = { kind: "end", outcome: "failed", code: "AGENT_ABORTED" };
export const COMPLETE: Move = { kind: "end", outcome: "completed" };

/** Where every intent of a gated step leads. */
export function gatedEdges(
  id: StepId,
  source: StepSource,
  gate: GateSource,
  carry: readonly Carry[],
  flow: FlowSteps,
  form: GateForm,
): { readonly [intent: string]: Move } {
  const edges: { [intent: string]: Move } = {};
  for (const intent of gate.allowedIntents ?? []) {
    if (intent === "abort") continue;
    const rule = source.transitions.get(intent);
    if (form.ends(id, intent, rule)) edges[form.ending] = COMPLETE;
    else {
      const move = moveOf(id, intent, rule, gate, carry, flow, form);
      if (move !== null) edges[intent] = move;
    }
  }
  return { ...edges, abort: ABORT };
}

/** Without a gate there is nothing to choose: `initial.X` goes on as `continuation.X`, anything else stays where it is. */
export function ungatedMove(id: StepId, flow: FlowSteps): Move {
  return { kind: "goto", step: continuationOf(id, flow) ?? id };
}

/** `initial.X` → `continuation.X`, when that is a step of the flow. */
export function continuationOf(id: StepId, flow: FlowSteps): StepId | null {
  if (!id.startsWith("initial.")) return null;
  const continuation = `continuation.${id.slice("initial.".length)}`;
  return flow.kinds.has(continuation) ? continuation : null;
}

/** The data a step hands on: each field under its last segment, or under its full path where two would collide. */
export function carryOf(handoffFields: readonly string[]): readonly Carry[] {
  if (handoffFields.length === 0) return [];
  if (handoffFields.length === 1) {
    const path = parseDotPath(handoffFields[0]!);
    const key = path.at(-1)!;
    return FORBIDDEN_NAMES.has(key) ? [] : [{ key, path }];
  }
  const fields = [...new Set(handoffFields)].map((field) => ({ field, path: parseDotPath(field) }));
  const uses = new Map<string, number>();
  for (const { path } of fields) uses.set(path.at(-1)!, (uses.get(path.at(-1)!) ?? 0) + 1);
  const carry = new Map<string, Carry>();
  for (const { path } of fields) {
    const key = uses.get(path.at(-1)!) === 1 ? path.at(-1)! : path.join("_");
    if (!FORBIDDEN_NAMES.has(key) && !carry.has(key)) carry.set(key, { key, path });
  }
  return [...carry.values()];
}

/** The key that a condition means: a key of the handed-on data, or the full path of one. */
export function conditionKey(condition: string, carry: readonly Carry[]): string | null {
  const named =
    carry.find(({ key }) => key === condition) ?? carry.find(({ path }) => path.join(".") === condition);
  return named?.key ?? null;
}

function moveOf(
  id: StepId,
  intent: string,
  rule: TransitionSource | undefined,
  gate: GateSource,
  carry: readonly Carry[],
  flow: FlowSteps,
  form: GateForm,
): Move | null {
  if (intent === "jump") {
    const declared = rule === undefined || gate.targetMode === "dynamic" ? null : ruleMove(rule, carry);
    if (declared !== null) return declared;
    if (gate.targetMode === "conditional" || gate.targetField === undefined) return null;
    return { kind: "jump", field: parseDotPath(gate.targetField), among: flow.ids };
  }
  if (rule !== undefined) return ruleMove(rule, carry);
  if (form.strict) return null;
  if (intent === "repeat") return { kind: "goto", step: id };
  const continuation = intent === "next" ? continuationOf(id, flow) : null;
  return continuation === null ? null : { kind: "goto", step: continuation };
}

function ruleMove(rule: TransitionSource, carry: readonly Carry[]): Move | null {
  if (typeof rule.target === "string") return { kind: "goto", step: rule.target };
  if (rule.condition === undefined) return null;
  const cases: { [value: string]: Move } = Object.create(null);
  let otherwise: Move | null = null;
  for (const [value, target] of rule.targets) {
    if (target === null) continue;
    if (value === "default") otherwise = { kind: "goto", step: target };
    else cases[value] = { kind: "goto", step: target };
  }
  const on = conditionKey(rule.condition, carry) ?? rule.condition;
  return { kind: "switch", on: [on], cases: { ...cases }, ...(otherwise !== null && { otherwise }) };
}
