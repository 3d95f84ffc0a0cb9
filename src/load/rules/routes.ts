/** Rules about the ways between steps. */
import type { StepId } from "../../flow/flow.ts";
import type { Code } from "../codes.ts";
import { targetsOf } from "../../flow/graph.ts";
import { gateForm } from "../registry/gate-forms.ts";
import { correctTo, error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { atStep, isGated, witness, type At, type Registered } from "./loaded.ts";
import { conditionKey, continuationOf } from "../registry/moves.ts";
import {
  type GateSource,
  type Intent,
  type StepSource,
  type TransitionSource,
} from "../registry/registry-shape.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";

export const rules: Rules = { gated: [checkRoutes] };

export const codes = {
  "SR-TRANS-001": error("unknown target", "A transition can only lead to a step that exists."),
  "SR-TRANS-002": error("no target", "Only closing may end a flow; any other intent must lead to a step."),
  "SR-TRANS-003": error("next without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-004": error("handoff without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-005": error("handoff without target", "A handoff must name the step it leads to."),
  "SR-TRANS-006": error("handoff to an unknown step", "A transition can only lead to a step that exists."),
  "SR-TRANS-007": error("escalate without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-008": error("escalate without target", "An escalation must name the step it leads to."),
  "SR-TRANS-009": error("escalate to an unknown step", "A transition can only lead to a step that exists."),
  "SR-TRANS-010": error("jump without target", "A jump needs a declared target, or a field that names one."),
  "TRANS-UNUSED": warning(
    "transition never taken",
    "Either the rule is dead, or its intent is missing from allowedIntents.",
  ),
  "TRANS-CONDITION": error(
    "unknown condition",
    "A condition must name a key of the data that the step itself hands on.",
  ),
  "TRANS-BOTH": warning(
    "target beside a condition",
    "A transition has either one target or targets selected by a condition; the other is ignored.",
  ),
  "TRANS-CLOSING": warning("closing without a rule", "The keys of transitions should match the enum."),
  "TRANS-REPEAT": warning("repeat without a rule", "The keys of transitions should match the enum."),
  "FLOW-NEXT-CLOSURE": warning(
    "next into a closure",
    "Use handoff to reach a closure; next is for continuing work.",
  ),
  "FLOW-HANDOFF-WORK": warning("handoff to a work step", "A handoff should lead towards a closure."),
} satisfies Codes;

function checkRoutes(loaded: Registered, tell: Tell): void {
  const { registry } = loaded.sources;
  const hasGates = isGated(loaded);
  for (const id of loaded.graph.flow.ids) {
    const source = registry.steps.get(id)!;
    if (source.structuredGate !== undefined) {
      checkIntents(loaded, id, source, source.structuredGate, tell);
      checkUnused(loaded, id, source, source.structuredGate, tell);
      if (loaded.sources.dialect === "gate") checkManners(loaded, id, tell);
    } else if (source.transitions.size > 0 && !hasGates) {
      const message = `The step "${id}" has transitions but no structuredGate, so no intent is read and no transition is taken.`;
      const fix = "Add a structuredGate, or remove the transitions.";
      tell(neverTaken(atStep(loaded, id, "transitions"), message, fix));
    }
  }
}

type ByFault = { readonly missing: Code; readonly none: Code; readonly unknown: Code };

const PLAIN: ByFault = { missing: "SR-TRANS-003", none: "SR-TRANS-002", unknown: "SR-TRANS-001" };
const CODES_BY_INTENT: { readonly [intent in Intent]: ByFault } = {
  next: PLAIN,
  repeat: PLAIN,
  closing: PLAIN,
  complete: PLAIN,
  abort: PLAIN,
  jump: { ...PLAIN, missing: "SR-TRANS-010" },
  handoff: { missing: "SR-TRANS-004", none: "SR-TRANS-005", unknown: "SR-TRANS-006" },
  escalate: { missing: "SR-TRANS-007", none: "SR-TRANS-008", unknown: "SR-TRANS-009" },
};

function checkIntents(
  loaded: Registered,
  id: StepId,
  source: StepSource,
  gate: GateSource,
  tell: Tell,
): void {
  const form = gateForm(loaded.sources.dialect);
  for (const intent of gate.allowedIntents ?? []) {
    const rule = source.transitions.get(intent);
    if (intent === "abort") continue;
    if (form.strict && form.ends(id, intent, rule)) continue;
    if (intent === "closing") {
      if (rule === undefined) {
        tell({
          code: "TRANS-CLOSING",
          ...atStep(loaded, id, "transitions"),
          message: `The step "${id}" allows "closing" but has no transition for it; it ends the flow.`,
          fix: 'Add "closing": { "target": null }.',
          ...mendRule(loaded, id, "closing", null),
        });
      }
      continue;
    }
    if (intent === "repeat" && rule === undefined && !form.strict) {
      tell({
        code: "TRANS-REPEAT",
        ...atStep(loaded, id, "transitions"),
        message: `The step "${id}" allows "repeat" but has no transition for it; it repeats itself.`,
        fix: `Add "repeat": { "target": "${id}" }.`,
        ...mendRule(loaded, id, "repeat", id),
      });
    }
    if (intent === "jump") checkJump(loaded, id, rule, gate, tell);
    else if (
      rule === undefined &&
      (form.strict || (intent !== "repeat" && !(intent === "next" && continuationOf(id, loaded.graph.flow))))
    ) {
      tell({
        code: CODES_BY_INTENT[intent].missing,
        ...atStep(loaded, id, "transitions"),
        message: `The step "${id}" allows "${intent}" but has no transition for it.`,
        fix: `Add "${intent}" to the transitions, or remove it from allowedIntents and the schema.`,
        witness: witness(loaded, id),
      });
    }
    const isIgnored = intent === "jump" && gate.targetMode === "dynamic";
    if (rule !== undefined && !isIgnored) checkRule(loaded, id, intent, rule, tell);
  }
}

/** Each mode of a jump needs fields of its own. */
function checkJump(
  loaded: Registered,
  id: StepId,
  rule: TransitionSource | undefined,
  gate: GateSource,
  tell: Tell,
): void {
  const lacking =
    gate.targetMode === "dynamic"
      ? gate.targetField === undefined && 'targetMode "dynamic" needs targetField'
      : gate.targetMode === "conditional"
        ? rule?.condition === undefined &&
          'targetMode "conditional" needs a transition with condition and targets'
        : rule === undefined &&
          gate.targetField === undefined &&
          "it has neither a transition for it nor a targetField";
  if (lacking === false) return;
  tell({
    code: "SR-TRANS-010",
    ...atStep(loaded, id, "structuredGate"),
    message: `The step "${id}" allows "jump", but ${lacking}.`,
    fix: 'Add "targetField", or a transition for "jump".',
    witness: witness(loaded, id),
  });
}

function checkRule(loaded: Registered, id: StepId, intent: Intent, rule: TransitionSource, tell: Tell): void {
  const codes = CODES_BY_INTENT[intent];
  if (rule.condition === undefined) {
    if (rule.target === undefined) {
      tell({
        code: "SR-VALID-004",
        ...atStep(loaded, id, "transitions", intent),
        message: `The transition "${intent}" of the step "${id}" has neither a target nor a condition with targets.`,
        fix: 'Add "target" with the id of a step.',
      });
    } else {
      checkTarget(loaded, id, intent, rule.target, ["target"], codes, tell);
      if (rule.targets.size > 0) tell(bothWays(loaded, id, intent, "target", "targets"));
    }
    return;
  }
  if (typeof rule.target === "string") {
    checkTarget(loaded, id, intent, rule.target, ["target"], codes, tell);
    tell(bothWays(loaded, id, intent, "target", "condition"));
    return;
  }
  if (rule.target === null) tell(bothWays(loaded, id, intent, "condition", "target"));
  const { carry } = loaded.steps.get(id)!;
  if (conditionKey(rule.condition, carry) === null) {
    const keys = carry.map(({ key }) => key);
    const at = atStep(loaded, id, "transitions", intent, "condition");
    tell({
      code: "TRANS-CONDITION",
      ...at,
      message: `The condition "${rule.condition}" of "${intent}" is not a key that the step "${id}" hands on.${didYouMean(rule.condition, keys)}`,
      fix:
        keys.length === 0
          ? "Add the field to handoffFields."
          : `Use one of: ${keys.join(", ")}; or add the field to handoffFields.`,
      ...correctTo(onlyNear(rule.condition, keys), at),
    });
  }
  for (const [value, target] of rule.targets)
    checkTarget(loaded, id, intent, target, ["targets", value], codes, tell);
}

/** Two ways to say where an intent leads, of which one is never read. */
function bothWays(loaded: Registered, id: StepId, intent: Intent, holds: string, ignored: string): Finding {
  return {
    code: "TRANS-BOTH",
    ...atStep(loaded, id, "transitions", intent, ignored),
    message: `The transition "${intent}" of the step "${id}" has "${holds}" and "${ignored}"; only "${holds}" is read.`,
    fix: 'Keep either "target", or "condition" with "targets".',
  };
}

function checkTarget(
  loaded: Registered,
  id: StepId,
  intent: Intent,
  target: StepId | null,
  path: readonly string[],
  codes: ByFault,
  tell: Tell,
): void {
  const { flow } = loaded.graph;
  if (target !== null && flow.kinds.has(target)) return;
  const at = atStep(loaded, id, "transitions", intent, ...path);
  if (target === null) {
    tell({
      code: codes.none,
      ...at,
      message: `"${intent}" of the step "${id}" leads to null, but only ${gateForm(loaded.sources.dialect).ending} may end the flow.`,
      fix: "Name a step of the flow.",
      witness: witness(loaded, id),
    });
  } else {
    const known = loaded.sources.registry.steps.has(target)
      ? `"${target}" has no kind, so it is not a step of the flow`
      : `there is no such step`;
    tell({
      ...unknownTarget(at, `"${intent}" of the step "${id}"`, target, flow.ids, known),
      code: codes.unknown,
      witness: witness(loaded, id, target),
      ...correctTo(onlyNear(target, flow.ids), at),
    });
  }
}

/** `way`: what leads there, in words. */
export function unknownTarget(
  place: At,
  way: string,
  target: StepId,
  ids: readonly StepId[],
  why = "there is no such step",
): Finding {
  return {
    code: "SR-TRANS-001",
    ...place,
    message: `${way} leads to "${target}", but ${why}.${didYouMean(target, ids)}`,
    fix: `Name a step of the flow, or add "${target}".`,
  };
}

export function neverTaken(place: At, message: string, fix: string): Finding {
  return { code: "TRANS-UNUSED", ...place, message, fix };
}

function checkUnused(loaded: Registered, id: StepId, source: StepSource, gate: GateSource, tell: Tell): void {
  const allowed: readonly string[] = gate.allowedIntents ?? [];
  const form = gateForm(loaded.sources.dialect);
  for (const key of source.transitions.keys()) {
    const rule = source.transitions.get(key)!;
    const isAllowed = allowed.includes(key);
    const isEnd = key === "abort" || (isAllowed && form.ends(id, key, rule));
    const leads = typeof rule.target === "string" || rule.condition !== undefined;
    if (isEnd ? !leads : isAllowed) continue;
    const at = atStep(loaded, id, "transitions", key);
    if (isEnd) {
      const message = `"${key}" of the step "${id}" always ends the flow; its target is never followed.`;
      tell(neverTaken(at, message, 'Set its "target" to null.'));
    } else {
      const word = (form.intents as readonly string[]).includes(key)
        ? ""
        : `, which is not an intent.${didYouMean(key, form.intents)}`;
      const message = `The step "${id}" has a transition for "${key}"${word === "" ? ", but does not allow it." : word}`;
      const fix = `Add "${key}" to allowedIntents and the schema, or remove the transition.`;
      tell({ ...neverTaken(at, message, fix), ...(word !== "" && mendKey(at, key, allowed, source)) });
    }
  }
}

/** A rule that is not written, although it holds. */
function mendRule(
  loaded: Registered,
  id: StepId,
  intent: Intent,
  target: StepId | null,
): Pick<Finding, "mend"> {
  const { document, pointer } = atStep(loaded, id, "transitions", intent);
  return { mend: [{ file: document.file, pointer, kind: "set", value: { target } }] };
}

/** A misspelled intent, when the right one is allowed and has no rule yet. */
function mendKey(
  at: ReturnType<typeof atStep>,
  key: string,
  allowed: readonly string[],
  source: StepSource,
): Pick<Finding, "mend"> {
  const near = onlyNear(key, allowed);
  if (near === null || source.transitions.has(near)) return {};
  return { mend: [{ file: at.document.file, pointer: at.pointer, kind: "rename", to: near }] };
}

/**
 * A work step goes on with `next` and leads to a closure by `handoff`; other uses run, but read wrong. A verification
 * step has no `handoff`, so its `next` may lead to a closure.
 */
function checkManners(loaded: Registered, id: StepId, tell: Tell): void {
  const { steps, flow } = loaded.graph;
  const { kind, edges } = steps.get(id)!;
  const { next, handoff } = edges;
  if (kind !== "verify" && next !== undefined && next.kind !== "jump") {
    const target = targetsOf(next).find((step) => flow.kinds.get(step) === "close");
    if (target !== undefined) {
      tell({
        code: "FLOW-NEXT-CLOSURE",
        ...atStep(loaded, id, "transitions", "next"),
        message: `"next" of the step "${id}" leads into the closure "${target}".`,
        fix: 'Use "handoff" to reach a closure.',
      });
    }
  }
  if (handoff === undefined) return;
  const target = targetsOf(handoff).find((step) => flow.kinds.get(step) === "work");
  if (target === undefined) return;
  tell({
    code: "FLOW-HANDOFF-WORK",
    ...atStep(loaded, id, "transitions", "handoff"),
    message: `"handoff" of the step "${id}" leads to "${target}", which is a work step.`,
    fix: 'Use "next" or "jump" between work steps, and "handoff" to a closure.',
  });
}
