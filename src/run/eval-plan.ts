/** The plan of an eval: which runs there are to be, and what must be the same for an eval to be resumed. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import type { Check } from "../flow/flow.ts";
import type { EvalTask } from "../flow/flow-eval.ts";
import { canonicalJson } from "../flow/json.ts";
import type { EvaluatedAgent } from "./eval-judge.ts";
import { readEval, type EvalRecord, type PlacedRun } from "./eval-record.ts";
import { flowDigest } from "./load.ts";
import { newRunId, redactorOf } from "./open.ts";
import type { DriveOptions } from "./options.ts";
import { contentsOf } from "./world/project-copy.ts";

export type EvalPlan = {
  readonly runs: number;
  /** With `scripts`: one name for all of them. */
  readonly models: readonly string[];
  readonly scripts: EvalRecord["scripts"];
  readonly budgetUsd: number | null;
};

/** `resume`: its name or a unique beginning of that. */
export type EvalResumed = { readonly resume: string; readonly budgetUsd?: number };

type Planning = Pick<DriveOptions, "env"> & { readonly tasks: readonly EvalTask[] };

/** A new record, or the one of the eval that is resumed. Throws where the two would not be comparable. */
export function planEval(
  loaded: EvaluatedAgent,
  plan: EvalPlan | EvalResumed,
  options: Planning,
): EvalRecord {
  const { tasks } = options;
  if (!("resume" in plan)) {
    const digest = digestOf(loaded, tasks);
    const { runs, models, budgetUsd } = plan;
    const redactor = redactorOf(options, loaded.flow ?? undefined);
    const scripts = plan.scripts.map(({ text, file }) => ({ text: redactor.text(text), file }));
    return {
      v: 1,
      eval: `eval-${newRunId()}`,
      agent: loaded.agent,
      digest,
      budgetUsd,
      scripts,
      runs: inTurn(runs, tasks, models),
    };
  }
  const record = readEval(loaded.project.stateDir, plan.resume);
  if (record.agent !== loaded.agent)
    throw new RunnerError(
      "USAGE",
      `${record.eval} is an eval of agent "${record.agent}", not of "${loaded.agent}".`,
    );
  const names = new Set(record.runs.map(({ task }) => task));
  const its = tasks.filter(({ name }) => names.has(name));
  if (its.length < names.size || record.digest !== digestOf(loaded, its))
    throw new RunnerError(
      "FLOW_INCOMPATIBLE",
      `The agent or its tasks changed since ${record.eval} began: its runs would not be comparable. Start a new eval.`,
    );
  return { ...record, budgetUsd: plan.budgetUsd ?? record.budgetUsd };
}

/** The flow with every check that is run, so that trust is asked for all of them. */
export function withHidden(loaded: EvaluatedAgent, tasks: readonly EvalTask[]): EvaluatedAgent {
  const { flow } = loaded;
  const hidden = Object.entries(hiddenIn(loaded, tasks));
  if (flow === null || hidden.every(([name]) => Object.hasOwn(flow.checks, name))) return loaded;
  return { ...loaded, flow: { ...flow, checks: { ...flow.checks, ...Object.fromEntries(hidden) } } };
}

function hiddenIn({ checks }: EvaluatedAgent, tasks: readonly EvalTask[]): { [name: string]: Check } {
  const names = tasks.flatMap(({ hidden }) => hidden?.checks ?? []);
  return Object.fromEntries(names.map((name) => [name, checks[name]!]));
}

/** Of all that makes two runs comparable: the flow, the tasks and the files that are copied. */
function digestOf(loaded: EvaluatedAgent, tasks: readonly EvalTask[]): string {
  const filesIn = (folder: string | null | undefined) =>
    folder == null ? null : Object.fromEntries(contentsOf(join(loaded.project.root, folder)));
  const parts = tasks.map(({ line: _line, file: _file, expect, ...task }) => ({
    ...task,
    expect: expect.values,
    copied: filesIn(task.project?.folder),
    hiddenFiles: filesIn(task.hidden?.files),
  }));
  const text = canonicalJson([flowDigest(loaded.flow!), hiddenIn(loaded, tasks), parts]);
  return createHash("sha256").update(text).digest("hex");
}

/** Tasks and models take turns: an eval that stops early has about as many runs of each. */
function inTurn(runs: number, tasks: readonly EvalTask[], models: readonly string[]): readonly PlacedRun[] {
  return Array.from({ length: runs }, (_, at) =>
    tasks.flatMap(({ name: task }) => models.map((model): PlacedRun => ({ ...BLANK, task, model, at }))),
  ).flat();
}

/** A run that is still to be done. */
export const BLANK = {
  state: "open",
  run: null,
  reason: null,
  green: false,
  hidden: null,
  costUsd: 0,
  setAside: null,
  errors: [],
  folder: null,
} as const;
