/** What the studio sends of agents and of many runs together: flows, comparisons, figures, what if. */
import type { Parameter, StepId } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import type { Problem } from "../flow/problem.ts";
import type { AddedFigures } from "../proof/added-figures.ts";
import type { Coverage, Covered } from "../proof/coverage.ts";
import type { Boundary } from "../run/boundary.ts";
import type { RunSummary } from "../run/records/runs.ts";
import type { WhatIf } from "../run/records/whatif.ts";
import type { TrustQuestion } from "../run/trust/trust.ts";
import type { FlowChange } from "../story/changes.ts";
import type { AnswerBudget } from "../tell/budget.ts";
import type { Comparison } from "../tell/compare.ts";
import type { AgentExplained } from "../tell/explain.ts";
import type { StepExplained } from "../tell/explain-step.ts";
import type { TakenWay } from "../tell/frames.ts";
import type { Edge, Outline } from "../tell/outline.ts";
import type { VisitSeen } from "./wire.ts";

/** `agents` */
export type AgentsDocument = { readonly v: 1; readonly agents: readonly AgentLine[] };

export type AgentLine = {
  readonly agent: string;
  readonly title: string;
  readonly dialect: string | null;
  readonly errors: number;
  readonly warnings: number;
  readonly budget: AnswerBudget | null;
  readonly runs: number;
  readonly last: RunSummary | null;
};

/** `agents/NAME`: `explained` and `outline` are null where the files hold no flow. */
export type AgentDocument = {
  readonly v: 1;
  readonly agent: string;
  readonly explained: AgentExplained | null;
  readonly outline: Outline | null;
  readonly problems: readonly Problem[];
  readonly parameters: readonly Parameter[];
  readonly openArguments: boolean;
  /** Some prompt reads what is piped in. */
  readonly takesInput: boolean;
  /** The agent's own script, to be run without a model; null: it has none. */
  readonly script: string | null;
  /** "Costs at most …", where that is known. */
  readonly costLine: string | null;
  /** What has to be trusted before it runs; null: nothing, it is trusted already, or the studio is read only. */
  readonly trust: TrustQuestion | null;
  /** Arguments of earlier runs, newest first; at most 10. */
  readonly earlier: readonly { readonly run: string; readonly args: JsonObject }[];
  /** How often recorded runs took each edge, by its place in `outline.edges`; `runs`: how many were read. */
  readonly taken: { readonly runs: number; readonly edges: readonly number[] };
};

/** `agents/NAME/coverage`: what the agent's tests show of its flow. */
export type CoverageDocument = {
  readonly v: 1;
  readonly agent: string;
  readonly totals: Coverage["totals"];
  readonly steps: { readonly [step: StepId]: number };
  /** By the place of the edge in the agent's `outline.edges`. */
  readonly edges: readonly number[];
  /** What no test shows. */
  readonly gaps: readonly Pick<Covered, "id" | "kind" | "step" | "file" | "line">[];
};

/** `agents/NAME/steps/STEP` */
export type StepDocument = { readonly v: 1 } & StepExplained;
/** `agents/NAME/boundary` */
export type BoundaryDocument = Boundary;
/** `compare/A/B` */
export type CompareDocument = Comparison & {
  readonly outlines: readonly [Outline, Outline];
  /** The steps of each, in order. */
  readonly ways: readonly [readonly VisitSeen[], readonly VisitSeen[]];
  /** The edges that each took, and how often. */
  readonly taken: readonly [readonly TakenTimes[], readonly TakenTimes[]];
};
export type TakenTimes = readonly [way: TakenWay, times: number];
/** What is worked out run by run: with `within=MS` so much of it as that takes, and more with the next request. */
export type InParts = {
  readonly isAll: boolean;
  /** How many runs are recorded, of all agents. */
  readonly recorded: number;
};

/** `figures?agent=NAME&since=MS&flow=DIGEST&within=MS`; `since`: epoch milliseconds. Places such as `in` count from 0 in `ids`. */
export type FiguresDocument = AddedFigures &
  InParts & {
    readonly v: 1;
    /** Runs that can only partly be read, or not at all; as far as they can, they are counted. */
    readonly damaged: readonly string[];
    /** Edges of the agent's flow as its files are now, and how often the runs took each; null: no agent was asked for. */
    readonly ways:
      | readonly (Pick<Edge, "from" | "label" | "kind" | "to"> & { readonly taken: number })[]
      | null;
  };
/** `whatif/NAME?within=MS` */
export type WhatIfDocument = WhatIf &
  InParts & {
    /** From the flow of the newest run to the files as they are now. */
    readonly changes: readonly FlowChange[];
    readonly outline: Outline;
  };
