/** A task for `lockstep eval`, as data: where a model works, what is expected of its run, and what it never sees. */
import type { Expected, TestGround } from "./flow-test.ts";
import type { JsonObject } from "./json.ts";

export type EvalTask = {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly params: JsonObject;
  readonly input: string;
  /** What is copied for each run; null: an empty folder. */
  readonly project: Extract<TestGround, { kind: "project" }> | null;
  readonly expect: Expected;
  /** Copied into the folder of the run after its end, and the checks of the flow that are run then. */
  readonly hidden: { readonly files: string | null; readonly checks: readonly string[] } | null;
};

/** The least rates: `pass1` is the share of runs that pass, `pass4` that of four runs which all pass. */
export type EvalMin = { readonly [name in MinName]?: number };

export const POWERS = [1, 2, 4, 8] as const;
export type MinName = `pass${(typeof POWERS)[number]}`;
