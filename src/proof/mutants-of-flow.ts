/** Changes of what holds for a whole flow: its stop rule, its limit of visits, its checks and the words of every step. */
import type { Flow, Guard, StopRule } from "../flow/flow.ts";
import { called, elementsOf, WHOLE_FLOW } from "./elements.ts";
import type { Mutant } from "./mutants.ts";

type FlowMutation = Pick<Mutant, "kind" | "what" | "part" | "flow">;

export function* changesOfFlow(flow: Flow): Generator<FlowMutation> {
  for (const { what, rule } of rulesInstead(flow.stop))
    yield { kind: "reach", what, part: ["stop"], flow: { ...flow, stop: rule } };
  const { visits } = flow.limits;
  // Where every run ends before it, the limit changes nothing.
  const isReached = elementsOf(flow).some(({ id }) => id === called.limit(WHOLE_FLOW, "its visits"));
  for (const [word, most] of [
    ["more", visits + 1],
    ["less", visits - 1],
  ] as const)
    if (isReached && most > 0)
      yield {
        kind: "reach",
        what: `one visit ${word} is allowed`,
        part: ["limits", "visits"],
        flow: { ...flow, limits: { ...flow.limits, visits: most } },
      };
  if (flow.stopGuard !== undefined) yield* withoutChecks(flow, flow.stopGuard);
  for (const [name, section] of Object.entries(flow.sections ?? {}))
    yield {
      kind: "words",
      what: `the section ${name} is blank`,
      part: ["sections", name],
      flow: { ...flow, sections: { ...flow.sections, [name]: { ...section, text: " ", variables: [] } } },
    };
  if (flow.system.text.trim() !== "")
    yield {
      kind: "words",
      what: "the system prompt is blank",
      part: ["system"],
      flow: { ...flow, system: { ...flow.system, text: " ", variables: [] } },
    };
}

function* withoutChecks(flow: Flow, guard: Guard): Generator<FlowMutation> {
  const { stopGuard: _guard, ...open } = flow;
  yield { kind: "gates", what: "the checks of the verdict are dropped", part: ["stopGuard"], flow: open };
  const { checks, onFailure } = guard;
  for (const [at, { check }] of checks.entries())
    if (checks.length > 1)
      yield {
        kind: "gates",
        what: `check ${check} of the verdict is dropped`,
        part: ["stopGuard", "checks", String(at)],
        flow: { ...flow, stopGuard: { ...guard, checks: checks.toSpliced(at, 1) } },
      };
  if (onFailure !== "skip")
    yield {
      kind: "gates",
      what: `a failed check of the verdict means skip, not ${onFailure}`,
      part: ["stopGuard"],
      flow: { ...flow, stopGuard: { ...guard, onFailure: "skip" } },
    };
}

function* rulesInstead(rule: StopRule): Generator<{ readonly what: string; readonly rule: StopRule }> {
  if (rule.kind === "visits" || rule.kind === "checks") {
    yield { what: `the verdict counts to ${rule.count + 1}`, rule: { ...rule, count: rule.count + 1 } };
    if (rule.count > 1)
      yield { what: `the verdict counts to ${rule.count - 1}`, rule: { ...rule, count: rule.count - 1 } };
  }
  if (rule.kind !== "all" && rule.kind !== "any") return;
  if (rule.of.length > 1)
    yield {
      what:
        rule.kind === "all" ? "any condition ends the run, not all" : "all conditions end the run, not any",
      rule: { kind: rule.kind === "all" ? "any" : "all", of: rule.of },
    };
  for (const [at, part] of rule.of.entries())
    for (const { what, rule: changed } of rulesInstead(part))
      yield { what, rule: { kind: rule.kind, of: rule.of.with(at, changed) } };
}
