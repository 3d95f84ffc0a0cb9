/** What the rules about stages look at: the machine as built, the files as written. */
import type { Flow, Step, StepId } from "../../flow/flow.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import type { ToolNames } from "../rules/tools.ts";
import type { Document } from "../text/document.ts";
import { targetsOf, type Reach } from "../rules/graph.ts";
import type { Declared } from "../agent/mcp.ts";
import { escapeSegment } from "../text/places.ts";
import type { StageFile } from "./stage-file.ts";
import type { MachineSource } from "./stage-shape.ts";

export type Machine = {
  readonly name: string;
  readonly agent: AgentSource;
  readonly agentDocument: Document;
  readonly source: MachineSource;
  /** machine.yaml, there or not. */
  readonly document: Document;
  readonly stages: ReadonlyMap<StepId, StageFile>;
  readonly steps: ReadonlyMap<StepId, Step>;
  readonly servers: readonly Declared[];
  readonly flow: Flow;
  readonly entry: Entry;
  /** Every file could be read, so that what is missing is missing. */
  readonly isWhole: boolean;
  /** The text of hooks.mjs. */
  readonly hooks: string | null;
  readonly tools: ToolNames;
  readonly reach: Reach | null;
};

/** Where a run begins. `step` is "" when nothing says so; `candidates` are the stages that no other leads to. */
export type Entry = { readonly step: StepId; readonly candidates: readonly StepId[] };

export function findEntry({ entry }: MachineSource, steps: ReadonlyMap<StepId, Step>): Entry {
  const targets = new Set<StepId>();
  for (const [id, { edges }] of steps) {
    for (const move of Object.values(edges)) for (const to of targetsOf(move)) if (to !== id) targets.add(to);
  }
  const candidates = [...steps.keys()].filter((id) => !targets.has(id));
  const [only = "", ...others] = candidates;
  return { step: entry ?? (others.length === 0 ? only : ""), candidates };
}

/** A place in a stage file. */
export function atStage({ stages }: Machine, id: StepId, ...path: readonly (string | number)[]) {
  const pointer = path.map((part) => `/${escapeSegment(String(part))}`).join("");
  return { document: stages.get(id)!.document, pointer, steps: [id] };
}

/** The shortest way to a stage, and on to where it would lead. */
export function wayTo({ reach }: Machine, id: StepId, ...further: readonly StepId[]): readonly StepId[] {
  const path = reach?.pathTo(id) ?? [];
  return path.length === 0 ? [id, ...further] : [...path, ...further];
}
