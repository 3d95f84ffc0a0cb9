/** Real runs of an agent on tasks, by several models in turn: each in a copy of its own, recorded, within a budget of money. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findGitPlace } from "../effects/git/git-place.ts";
import { RunnerError, type Backend, type Journal } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { EvalTask } from "../flow/flow-eval.ts";
import { NO_SETTINGS, type TestSettings } from "../flow/test-settings.ts";
import { EXIT } from "../flow/verdict.ts";
import type { Result } from "../tell/result.ts";
import { requireCommon } from "./batch.ts";
import { judgeRun, type EvaluatedAgent } from "./eval-judge.ts";
import { createMoney } from "./eval-money.ts";
import { BLANK, planEval, withHidden, type EvalPlan, type EvalResumed } from "./eval-plan.ts";
import { holdEval, writeEval, type EvalRecord, type PlacedRun } from "./eval-record.ts";
import { newRunId, runLoaded } from "./open.ts";
import type { DriveOptions } from "./options.ts";
import { openJournal } from "./records/journal.ts";
import { resultIfOver } from "./resume.ts";
import { recordPlace } from "./world/project.ts";
import { systemClock } from "./world/clock.ts";
import { readConfig } from "./world/config.ts";
import { copyForRun, folderForRun, isCopy, removeCopy, requireCopyable } from "./world/project-copy.ts";

export type EvalOptions = Omit<
  DriveOptions,
  "backend" | "model" | "script" | "spending" | "observe" | "onText" | "onRun" | "ask" | "wait"
> & {
  readonly tasks: readonly EvalTask[];
  /** What the author of the agent wants of every run. */
  readonly settings?: TestSettings;
  readonly plan: EvalPlan | EvalResumed;
  /** How many are under way at the same time. */
  readonly jobs?: number;
  /** In the place of what the name of a model means. It is not closed. */
  readonly backend?: (model: string) => Backend;
  /** Called when nothing can refuse the eval any more; `now` gives how far it has come. */
  readonly onEval?: (record: EvalRecord, now: () => EvalRecord) => void;
  readonly onEnd?: (run: PlacedRun) => void;
};

/** What would stop every run is thrown before the first of them begins; so is a task whose parameters are not valid. */
export async function runEval(loaded: EvaluatedAgent, options: EvalOptions): Promise<EvalRecord> {
  const { stateDir } = loaded.project;
  const record = planEval(loaded, options.plan, options);
  const clock = options.clock ?? systemClock;
  for (const model of new Set(record.runs.map((run) => run.model)))
    await requireCommon(withHidden(loaded, options.tasks), {
      ...wayOf(loaded, record, options, model, 0),
      items: [],
    });
  const copied = { root: loaded.project.root, agent: loaded.agent };
  for (const task of options.tasks)
    if (record.runs.some((run) => run.task === task.name)) requireCopyable(copied, task);
  options.onBegin?.();
  const given = options.journal;
  const journal = given ?? (await openJournal(recordPlace(loaded.project), clock, options));
  try {
    using _ = holdEval(stateDir, record.eval);
    const going = createEval(loaded, record, journal, options);
    await going.settle();
    options.onEval?.(going.record(), going.record);
    // Each has ended before the journal is closed, also where one of them could not go on.
    const lanes = await Promise.allSettled(Array.from({ length: options.jobs ?? 1 }, going.lane));
    const broken = lanes.find((lane) => lane.status === "rejected");
    if (broken !== undefined) throw broken.reason;
    return going.record();
  } finally {
    if (given === undefined) await journal.close();
  }
}

/** How one run is driven. Nothing is merged, pushed or posted, and no person is asked. */
function wayOf(
  { project }: EvaluatedAgent,
  record: EvalRecord,
  options: EvalOptions,
  model: string,
  at: number,
) {
  const { tasks, plan: _plan, settings: _settings, backend, onEval: _eval, onEnd: _end, ...how } = options;
  const { onBegin: _begin, journal: _journal, ...shared } = how;
  const script = record.scripts[at % Math.max(1, record.scripts.length)];
  return {
    ...shared,
    ...(script !== undefined
      ? { script }
      : backend !== undefined
        ? { backend: unclosed(backend(model)) }
        : { model }),
    // A limit that cannot be enforced refuses the whole eval.
    ...(record.budgetUsd !== null && { spending: { costUsd: record.budgetUsd } }),
    unseen: unseenBy(project, tasks),
    dryRun: true,
    worktree: false,
  };
}

/** Where hidden files lie, and where git has kept them. */
function unseenBy(
  { agentsDir, root }: EvaluatedAgent["project"],
  tasks: readonly EvalTask[],
): readonly string[] {
  const repository = findGitPlace(root);
  return [
    ...readdirSync(agentsDir).map((agent) => join(agentsDir, agent, "evals")),
    ...tasks.flatMap(({ hidden }) => (hidden?.files == null ? [] : [join(root, hidden.files)])),
    ...(repository === null ? [] : [repository.gitDir, repository.common]),
  ].filter((path) => existsSync(path));
}

function unclosed(backend: Backend): Backend {
  return { ...backend, close: () => Promise.resolve() };
}

/** How often a run that the machinery broke is tried. */
const TRIES = 3;

function createEval(loaded: EvaluatedAgent, begun: EvalRecord, journal: Journal, options: EvalOptions) {
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
    const { unmet, ...run } = { ...runs[at]!, ...how };
    runs[at] = run.state === "running" && unmet !== undefined ? { ...run, unmet } : run;
    writeEval(project.stateDir, record());
    return run;
  };

  /** Judges a run that is over, and removes its copy once that is recorded. */
  const settleOne = async (at: number, result: Result, spent: number | null) => {
    const { task, run, folder, setAside, errors, unmet } = runs[at]!;
    const costUsd = added(runs[at]!.costUsd, spent);
    const limit = setAside !== null && setAside < own ? setAside : null;
    const place = folder ?? folderForRun(run!);
    const ended = { run: run!, folder: place, result, limit, ...(unmet !== undefined && { unmet }) };
    const judged = await judgeRun(loaded, taskOf(task), ended, journal, {
      ...wayOf(loaded, begun, options, "", at),
      settings: options.settings ?? NO_SETTINGS,
      onLooked: (looked) => void update(at, { unmet: looked }),
    });
    // A check that was interrupted says nothing: the run is judged again when the eval is resumed.
    if (judged.state === "error" && signal?.aborted === true) return;
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
    const folder = folderForRun(run);
    // Taken at once: nothing else may begin it, or use the same money.
    update(at, { state: "running", run, setAside, folder });
    try {
      await copyForRun({ root: project.root, agent: loaded.agent }, task.project, folder, env, signal);
    } catch (error) {
      giveUp(at, 0);
      if (signal?.aborted === true) return;
      throw error;
    }
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
        if (result !== null && (isKept || !looksAtFiles(taskOf(task))))
          await settleOne(at, result, money.spentBy(at, result));
        // What a killed call cost is not recorded anywhere.
        else giveUp(at, setAside);
      }
    },
  };
}

/** Whether the folder of a run is needed to judge it. */
function looksAtFiles({ hidden, expect: { values } }: EvalTask): boolean {
  return hidden !== null || [values.files, values.changed, values.git].some((one) => one !== undefined);
}

function added(before: number | null, more: number | null): number | null {
  return before === null || more === null ? null : before + more;
}
