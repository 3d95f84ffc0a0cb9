/** What the rules about stages look at: the machine as built, the files as written. */
import type { Step, StepId } from "../../flow/flow.ts";
import { fieldPathText, type Placeholder, type Stranger } from "../../flow/text/placeholder.ts";
import type { Document } from "../text/document.ts";
import { targetsOf } from "../../flow/graph.ts";
import type { LoadedFlow } from "../rules/loaded.ts";
import type { StageFile } from "./stage-file.ts";
import type { MachineSource } from "./stage-shape.ts";

export type Machine = LoadedFlow & {
  readonly source: MachineSource;
  /** machine.yaml, there or not. */
  readonly document: Document;
  readonly stages: ReadonlyMap<StepId, StageFile>;
  readonly entry: FirstStage;
  /** Every file could be read, so that what is missing is missing. */
  readonly isWhole: boolean;
  /** The text of hooks.mjs. */
  readonly hooks: string | null;
};

/** Where a run begins. `step` is "" when nothing says so; `candidates` are the stages that no other leads to. */
export type FirstStage = { readonly step: StepId; readonly candidates: readonly StepId[] };

export function findFirstStage({ entry }: MachineSource, steps: ReadonlyMap<StepId, Step>): FirstStage {
  const targets = new Set<StepId>();
  for (const [id, { edges }] of steps) {
    for (const move of Object.values(edges)) for (const to of targetsOf(move)) if (to !== id) targets.add(to);
  }
  const candidates = [...steps.keys()].filter((id) => !targets.has(id));
  const [only = "", ...others] = candidates;
  return { step: entry ?? (others.length === 0 ? only : ""), candidates };
}

/** What a result holds, and so what a path into it may begin with. */
export const RESULT_FIELDS = [
  "parsed",
  "output",
  "verdict",
  "reason",
  "capHit",
  "attemptCount",
  "stageId",
  "stageExecutionId",
];

/** Where something in the body is, as findings tell it: `/body#task`, `/body#stage.name`, `/body#{{env.X}}`. */
export function bodyPointer(part: Placeholder | Stranger): string {
  if (part.kind === "stranger") return `/body#${part.written}`;
  return `/body#${part.root === "ctx" ? "" : "stage."}${fieldPathText(part.path)}`;
}
