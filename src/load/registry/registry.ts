/** steps_registry.json → the steps, checks and entry of a flow. */
import type { Check, Guard, Step, StepId } from "../../flow/flow.ts";
import type { Path } from "../../flow/json.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import type { Climpt } from "../agent/climpt.ts";
import type { Dialect } from "./dialect.ts";
import type { Document } from "../text/document.ts";
import { gateForm } from "./gate-forms.ts";
import { buildGuard, buildStopGuard, judgedBy, judgedByVerdict, type JudgingEntry } from "./guards.ts";
import type { FlowSteps } from "./moves.ts";
import type { Prompts } from "./prompts.ts";
import type { CheckRegistry } from "../questions/questions-shape.ts";
import type { RegistrySource } from "./registry-shape.ts";
import type { ResolveSchema } from "./schemas.ts";
import { buildSections, type Section } from "./sections.ts";
import { createStandIn } from "./stand-in.ts";
import { buildStep, flowSteps } from "./steps.ts";
import type { DeclaredVerdict } from "../agent/verdict.ts";
import { namesOf, type VerdictType } from "../agent/verdict-types.ts";

/** Everything that was read, with the files it was read from. */
export type Sources = {
  readonly agent: AgentSource;
  readonly agentDocument: Document;
  readonly registry: RegistrySource;
  readonly registryDocument: Document;
  readonly verdict: DeclaredVerdict;
  readonly schema: ResolveSchema;
  readonly dialect: Dialect;
  readonly climpt: Climpt;
  /** The registry of a form with check prompts; `registry` then holds only what all forms have. */
  readonly questions?: CheckRegistry;
};

export type Graph = {
  readonly entry: FirstStep;
  readonly flow: FlowSteps;
  readonly steps: ReadonlyMap<StepId, Step>;
  readonly checks: ReadonlyMap<string, Check>;
  readonly sections: readonly Section[];
  /** Which entry of validationSteps each closing step is judged by. */
  readonly judged: ReadonlyMap<StepId, JudgingEntry>;
  /** What stands before an end by the verdict; null: nothing does. */
  readonly stop: { readonly judged: JudgingEntry; readonly guard?: Guard } | null;
};

/** Where a run begins, and the path in the registry that says so; null: agent.json does. `step` is "" when nothing does. */
export type FirstStep = { readonly step: StepId; readonly path: Path | null };

export function buildGraph(sources: Sources, prompts: Prompts): Graph {
  const { agent, registry, verdict, schema } = sources;
  const form = gateForm(sources.dialect);
  const flow = flowSteps(registry, form);
  const entry = findEntry(sources);
  const standIn = createStandIn(sources, entry.step);
  const world = { agent, flow, prompts, standIn, schema, form };
  const steps = new Map<StepId, Step>();
  const checks = new Map<string, Check>();
  const judged = new Map<StepId, JudgingEntry>();

  for (const id of flow.ids) {
    const source = registry.steps.get(id)!;
    const kind = flow.kinds.get(id)!;
    const step = buildStep(id, source, kind, world);
    const label = kind === "close" ? endingLabel(step) : null;
    const judge = label !== null ? judgedBy(id, registry, verdict.type) : null;
    if (judge === null || label === null) {
      steps.set(id, step);
      continue;
    }
    judged.set(id, judge);
    const built = buildGuard(source, label, judge.entry, registry, registry.steps.get(entry.step), prompts);
    for (const check of built?.checks ?? []) checks.set(check.name, check);
    steps.set(id, built === null ? step : { ...step, guard: built.guard });
  }
  const sections = buildSections(registry, flow, prompts, standIn);
  const common = { entry, flow, steps, checks, sections, judged };
  const last = verdict.stop.kind === "end" ? null : judgedByVerdict(registry, verdict.type);
  if (last === null) return { ...common, stop: null };
  const built = buildStopGuard(last.entry, registry, registry.steps.get(entry.step), prompts);
  for (const check of built?.checks ?? []) checks.set(check.name, check);
  return { ...common, stop: { judged: last, ...(built !== null && { guard: built.guard }) } };
}

/** The entry for the verdict type under any of its names, then the general one, then the graph's own. */
export function findEntry({ registry, verdict, agent }: Sources): FirstStep {
  for (const name of namesOf(verdict.type)) {
    const step = registry.entryStepMapping.get(name);
    if (step !== undefined) return { step, path: ["entryStepMapping", name] };
  }
  if (registry.entryStep !== undefined) return { step: registry.entryStep, path: ["entryStep"] };
  const own =
    verdict.type === ("detect:graph" satisfies VerdictType)
      ? agent.runner.verdict.config.entryStep
      : undefined;
  return { step: own ?? "", path: null };
}

function endingLabel(step: Step): string | null {
  for (const [label, move] of Object.entries(step.edges)) {
    if (move.kind === "end" && move.outcome === "completed") return label;
  }
  return null;
}
