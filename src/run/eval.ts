/** Real runs of an agent on tasks, by several models in turn: each in a copy of its own, recorded, within a budget of money. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { RunnerError, type Backend, type Journal } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { EvalTask } from "../flow/flow-eval.ts";
import { canonicalJson } from "../flow/json.ts";
import { EXIT } from "../flow/verdict.ts";
import { amountFor } from "../proof/eval.ts";
import { usageIn } from "../story/tally.ts";
import type { Result } from "../tell/result.ts";
import { requireCommon } from "./batch.ts";
import { copyForRun, isCopy, removeCopy } from "./eval-copy.ts";
import { judgeRun } from "./eval-judge.ts";
import { readEval, writeEval, type EvalRecord, type PlacedRun } from "./eval-record.ts";
import { flowDigest, type Loaded } from "./load.ts";
import { newRunId, redactorOf, runLoaded } from "./open.ts";
import type { DriveOptions } from "./options.ts";
import { openJournal } from "./records/journal.ts";
import { resultIfOver } from "./resume.ts";
import { recordPlace } from "./world/project.ts";
import { systemClock } from "./world/clock.ts";
import { readConfig } from "./world/config.ts";

export type EvalOptions = Omit<
  DriveOptions,
  "backend" | "model" | "script" | "spending" | "observe" | "onText" | "onRun" | "ask" | "wait"
> & {
  readonly tasks: readonly EvalTask[];
  readonly plan: EvalPlan | { readonly resume: string; readonly budgetUsd?: number };
  /** How many are under way at the same time. */
  readonly jobs?: number;
  /** In the place of what the name of a model means. It is not closed. */
  readonly backend?: (model: string) => Backend;
  /** Called when nothing can refuse the eval any more. */
  readonly onEval?: (record: EvalRecord) => void;
  readonly onEnd?: (run: PlacedRun) => void;
};

export type EvalPlan = {
  readonly runs: number;
  /** With `scripts`: one name for all of them. */
  readonly models: readonly string[];
  readonly scripts: EvalRecord["scripts"];
  readonly budgetUsd: number | null;
};

/** What would stop every run is thrown before the first of them begins; so is a task whose parameters are not valid. */
export async function runEval(loaded: Loaded, options: EvalOptions): Promise<EvalRecord> {
  const record = recordOf(loaded, options);
  const clock = options.clock ?? systemClock;
  for (const model of new Set(record.runs.map((run) => run.model)))
    await requireCommon(loaded, { ...wayOf(loaded, record, options, model, 0), items: [] });
  options.onBegin?.();
  const given = options.journal;
  const journal = given ?? (await openJournal(recordPlace(loaded.project), clock, options));
  try {
    const going = createEval(loaded, record, journal, options);
    await going.settle();
    options.onEval?.(going.record());
    await Promise.all(Array.from({ length: options.jobs ?? 1 }, going.lane));
    return going.record();
  } finally {
    if (given === undefined) await journal.close();
  }
}

function recordOf(loaded: Loaded, options: EvalOptions): EvalRecord {
  const { plan, tasks } = options;
  const digest = digestOf(loaded, tasks);
  if (!("resume" in plan)) {
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
  if (record.digest !== digest)
    throw new RunnerError(
      "FLOW_INCOMPATIBLE",
      `The agent or its tasks changed since ${record.eval} began: its runs would not be comparable. Start a new eval.`,
    );
  return { ...record, budgetUsd: plan.budgetUsd ?? record.budgetUsd };
}

function digestOf({ flow }: Loaded, tasks: readonly EvalTask[]): string {
  const text = canonicalJson([flowDigest(flow!), tasks]);
  return createHash("sha256").update(text).digest("hex");
}

/** Tasks and models take turns: an eval that stops early has about as many runs of each. */
function inTurn(runs: number, tasks: readonly EvalTask[], models: readonly string[]): readonly PlacedRun[] {
  return Array.from({ length: runs }, (_, at) =>
    tasks.flatMap(({ name: task }) => models.map((model): PlacedRun => ({ ...BLANK, task, model, at }))),
  ).flat();
}

const BLANK = {
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

/** How one run is driven. Nothing is merged, pushed or posted, and no person is asked. */
function wayOf(loaded: Loaded, record: EvalRecord, options: EvalOptions, model: string, at: number) {
  const { tasks: _tasks, plan: _plan, backend, onEval: _eval, onEnd: _end, ...how } = options;
  const { onBegin: _begin, journal: _journal, ...shared } = how;
  const script = record.scripts[at % Math.max(1, record.scripts.length)];
  const { project, agent } = loaded;
  return {
    ...shared,
    ...(script !== undefined
      ? { script }
      : backend !== undefined
        ? { backend: unclosed(backend(model)) }
        : { model }),
    // A limit that cannot be enforced refuses the whole eval.
    ...(record.budgetUsd !== null && { spending: { costUsd: record.budgetUsd } }),
    unseen: [join(project.agentsDir, agent, "evals")],
    dryRun: true,
    worktree: false,
  };
}

function unclosed(backend: Backend): Backend {
  return { ...backend, close: () => Promise.resolve() };
}

/** How often a run that the machinery broke is tried. */
const TRIES = 3;

function createEval(loaded: Loaded, begun: EvalRecord, journal: Journal, options: EvalOptions) {
  const { project, flow } = loaded;
  const { signal, env = process.env, clock = systemClock } = options;
  const runs: PlacedRun[] = [...begun.runs];
  const record = (): EvalRecord => ({ ...begun, runs });
  const taskOf = (name: string) => options.tasks.find((task) => task.name === name)!;
  const money = createMoney(begun, runs);
  const own = Math.min(flow!.limits.costUsd ?? Infinity, readConfig(env).limits.costUsd ?? Infinity);
  let change = Promise.withResolvers<void>();
  let isStopped = false;

  const update = (at: number, how: Partial<PlacedRun>): PlacedRun => {
    const run = { ...runs[at]!, ...how };
    runs[at] = run;
    writeEval(project.stateDir, record());
    return run;
  };

  /** Judges a run that is over, and removes its copy once that is recorded. */
  const settleOne = async (at: number, result: Result, spent: number | null) => {
    const { task, run, folder, setAside, errors } = runs[at]!;
    const costUsd = added(runs[at]!.costUsd, spent);
    const limit = setAside !== null && setAside < own ? setAside : null;
    const ended = { run: run!, folder: folder!, result, limit };
    const judged = await judgeRun(
      loaded,
      taskOf(task),
      ended,
      journal,
      wayOf(loaded, begun, options, "", at),
    );
    const over = { costUsd, setAside: null, folder: null };
    if (judged.state === "error" && errors.length + 1 < TRIES)
      update(at, { ...over, state: "open", errors: [...errors, { run, reason: judged.reason ?? "" }] });
    else {
      const done = update(at, { ...over, ...judged });
      options.onEnd?.(done);
    }
    if (folder !== null) removeCopy(folder);
  };

  /** Gives the run back: it is begun again when the eval is resumed. */
  const giveUp = (at: number, spent: number | null) => {
    const { folder, costUsd } = runs[at]!;
    update(at, { ...BLANK, errors: runs[at]!.errors, costUsd: added(costUsd, spent) });
    if (folder !== null) removeCopy(folder);
  };

  const work = async (at: number, setAside: number | null) => {
    const { model, task: name, at: turn } = runs[at]!;
    const task = taskOf(name);
    const run = newRunId();
    // Taken at once: nothing else may begin it, or use the same money.
    runs[at] = { ...runs[at]!, state: "running", run, setAside };
    const folder = await copyForRun(project.root, task.project, env);
    update(at, { folder });
    const how = {
      ...wayOf(loaded, begun, options, model, turn),
      ...(setAside !== null && { spending: { costUsd: Math.min(setAside, own) } }),
      cwd: folder,
      journal,
      steered: options.journal === undefined,
      args: task.params,
      input: task.input,
      observe: (entry: Entry) => money.hear(at, entry),
    };
    const result = await runLoaded(loaded, how, { run, batch: begun.eval });
    const spent = money.spentBy(at, result);
    if (signal?.aborted === true && result.outcome === "interrupted") return giveUp(at, spent);
    if (result.exitCode === EXIT.invalid) {
      giveUp(at, spent);
      throw new RunnerError(result.code ?? "FLOW_INVALID", `Task "${name}" cannot be run: ${result.reason}`);
    }
    await settleOne(at, result, spent);
  };

  /** The next run, and what is set aside for it. "wait": when one under way has ended. */
  const next = (): { readonly at: number; readonly setAside: number | null } | "wait" | null => {
    const at = runs.findIndex(({ state }) => state === "open");
    if (at === -1 || isStopped || signal?.aborted === true) return null;
    const setAside = money.setAsideFor(runs[at]!.model);
    if (setAside !== "nothing") return { at, setAside };
    if (runs.some(({ state }) => state === "running")) return "wait";
    isStopped = true;
    return null;
  };

  return {
    record,
    lane: async () => {
      for (;;) {
        const found = next();
        if (found === null) return;
        if (found === "wait") {
          await change.promise;
          continue;
        }
        try {
          await work(found.at, found.setAside);
        } catch (error) {
          isStopped = true;
          throw error;
        } finally {
          change.resolve();
          change = Promise.withResolvers();
        }
      }
    },
    /** What a process left that was killed: runs that are over are judged, the others begin again. */
    settle: async () => {
      writeEval(project.stateDir, record());
      for (const [at, { state, run, folder, setAside, task }] of runs.entries()) {
        if (state !== "running" || run === null) continue;
        const [row] = await journal.rows([run]);
        if (row?.owned === true)
          throw new RunnerError(
            "RUN_OWNED_ELSEWHERE",
            `Another process is working on ${begun.eval} (run ${run}).`,
          );
        const result = await resultIfOver(journal, run, clock.now());
        const isKept = folder !== null && isCopy(folder);
        if (result !== null && (isKept || taskOf(task).hidden === null))
          await settleOne(at, result, money.spentBy(at, result));
        // What a killed call cost is not recorded anywhere.
        else giveUp(at, setAside);
      }
    },
  };
}

function added(before: number | null, more: number | null): number | null {
  return before === null || more === null ? null : before + more;
}

/** What is spent, what is set aside, and what the next run gets. */
function createMoney({ budgetUsd, scripts }: EvalRecord, runs: readonly PlacedRun[]) {
  const isFree = scripts.length > 0;
  /** What runs under way have spent so far, and the largest call of each model. */
  const live = new Map<number, number>();
  const largest = new Map<string, number>();
  const committed = () =>
    runs.reduce((sum, { state, costUsd, setAside, model }, at) => {
      const held =
        state === "running" ? Math.max((setAside ?? 0) + (largest.get(model) ?? 0), live.get(at) ?? 0) : 0;
      return sum + (costUsd ?? 0) + held;
    }, 0);
  return {
    hear: (at: number, { event }: Entry) => {
      const usage = usageIn(event);
      if (usage === undefined) return;
      const cost = usage.costUsd ?? 0;
      const { model } = runs[at]!;
      live.set(at, (live.get(at) ?? 0) + cost);
      largest.set(model, Math.max(largest.get(model) ?? 0, cost));
    },
    /** null: the price is not known. Under a budget, all that was set aside counts as spent then. */
    spentBy: (at: number, { costUsd, knownCostUsd = 0, usage }: Result): number | null => {
      live.delete(at);
      if (isFree) return 0;
      if (costUsd !== null) return costUsd;
      if (usage.turns === 0) return 0;
      return budgetUsd === null ? null : Math.max(knownCostUsd, runs[at]!.setAside ?? 0);
    },
    setAsideFor: (model: string): number | null | "nothing" => {
      if (isFree || budgetUsd === null) return null;
      const its = runs.filter((run) => run.model === model);
      const ended = its.flatMap(({ state, costUsd }) =>
        ["passed", "failed", "cut"].includes(state) && costUsd !== null ? [costUsd] : [],
      );
      // The first run of a model shows how large its calls are: until then nothing of it runs beside it.
      if (!largest.has(model) && its.some(({ state }) => state === "running")) return "nothing";
      const amount = amountFor(ended, budgetUsd);
      const margin = largest.get(model) ?? 0;
      return committed() + amount + margin <= budgetUsd ? amount : "nothing";
    },
  };
}
