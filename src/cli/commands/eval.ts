/** `lockstep eval AGENT`: real runs on tasks, and what they say about each model. The report goes to stdout. */
import { resolve } from "node:path";
import type { EvalTask } from "../../flow/flow-eval.ts";
import { defined, isObject, parseJsonObject, type Json } from "../../flow/json.ts";
import { manual } from "../../flow/manual.ts";
import { hasErrors } from "../../flow/problem.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { readEvals, type EvalsRead } from "../../load/evals.ts";
import { readTestSettings } from "../../load/test-settings.ts";
import {
  comparisonsOf,
  figuresOf,
  heldTo,
  heldToBaseline,
  type EvalBaseline,
  type HeldRate,
  type ModelComparison,
  type ModelFigures,
} from "../../proof/eval.ts";
import type { Interval } from "../../proof/figures.ts";
import { RunnerError } from "../../run/errors.ts";
import type { EvalRecord, PlacedRun } from "../../run/eval-record.ts";
import { runEval, type EvalOptions } from "../../run/eval.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject } from "../../run/world/project.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import { writtenFlags } from "../call.ts";
import type { CallOf } from "../commands.ts";
import { journalAccess, networkWish } from "../conduct.ts";
import { readGiven } from "../given-file.ts";
import { namedBy } from "../tests/choose.ts";
import { tellInvalid } from "../tests/refuse.ts";
import { count, shellWord, shown, shownInLine, table, type Paint } from "../text/text.ts";

export async function evaluate(call: CallOf<"eval">): Promise<number> {
  const { screen, host, flags } = call;
  const [name = ""] = call.words;
  const plan = planOf(call);
  const files = createFiles(findProject(call.cwd, call.stateDir).root);
  const loaded = await loadNamed(name, call.cwd, files);
  const { flow, checks } = loaded;
  const read = flow === null ? NOTHING : readEvals({ flow, checks }, files);
  const beside = flow === null ? null : readTestSettings(flow, files);
  const problems = [
    ...loaded.problems.filter(({ severity }) => severity === "error"),
    ...read.problems,
    ...(beside?.problems ?? []),
  ];
  if (hasErrors(problems)) return tellInvalid(call, "lockstep-eval", problems, files);
  const tasks = chosen(read.tasks, flags.task, name);
  const baseline = flags.baseline === undefined ? null : baselineOf(call, flags.baseline);
  const signal = host.stopped();
  const at = { ...loaded, project: findProject(call.cwd, call.stateDir) };
  const record = await runEval(at, {
    ...drivingOf(call, signal),
    tasks,
    ...defined({ settings: beside?.settings }),
    plan,
    jobs: flags.jobs ?? 1,
    onEval: (begun, now) => {
      const resume = resumeEval(call, begun);
      screen.tell(
        call.typed(`${count(begun.runs.length, "run")}. If it is interrupted, continue with: ${resume}`),
      );
      host.driving({
        run: null,
        phase: "recorded",
        resume,
        document: () => documentOf(now(), read, baseline),
      });
    },
    onEnd: (run) => screen.tell(endLine(run, screen.err)),
  });
  const report = documentOf(record, read, baseline);
  if (flags.json) screen.document(report);
  else if (!flags.quiet || report.exitCode !== EXIT.completed)
    screen.print(renderEval(call, report, screen.out));
  return signal.aborted ? exitOfSignal(signal) : report.exitCode;
}

const NOTHING: EvalsRead = { tasks: [], min: {}, problems: [] };

function planOf({ flags, cwd, ...call }: CallOf<"eval">): EvalOptions["plan"] {
  const { runs = 10, budget, script, resume } = flags;
  if (budget === 0) throw new UsageError("--budget is 0: no run could begin.");
  const models = (flags.models ?? "").split(",").flatMap((model) => model.trim() || []);
  if (resume !== undefined) {
    if (models.length > 0 || script.length > 0 || flags.runs !== undefined || flags.task !== undefined)
      throw new UsageError(
        "--resume continues with the models, scripts, tasks and runs of the eval: leave them out.",
      );
    return { resume, ...defined({ budgetUsd: budget }) };
  }
  if (script.length > 0 && models.length > 0)
    throw new UsageError("--script replaces the models: leave out --models.");
  if (script.length === 0 && models.length === 0)
    throw new UsageError("Name the models, such as --models sonnet,haiku, or give a --script.");
  if (new Set(models).size < models.length) throw new UsageError("--models names a model twice.");
  if (script.length === 0 && budget === undefined)
    throw new UsageError("Models cost money: say how much they may cost in all, such as --budget 5usd.");
  const scripts = script.map((file) => ({ text: readGiven({ ...call, cwd }, file, "SCRIPT_INVALID"), file }));
  return { runs, models: script.length > 0 ? ["script"] : models, scripts, budgetUsd: budget ?? null };
}

function chosen(tasks: readonly EvalTask[], pattern: string | undefined, agent: string): readonly EvalTask[] {
  if (tasks.length === 0)
    throw new RunnerError(
      "USAGE",
      `There are no tasks in .agent/${agent}/evals. Write some: see ${manual("evaluating")}.`,
    );
  const isNamed = namedBy("task", pattern);
  const found = tasks.filter(({ name }) => isNamed(name));
  if (found.length === 0) throw new RunnerError("USAGE", `No task matches "${pattern}".`);
  return found;
}

function drivingOf(call: CallOf<"eval">, signal: AbortSignal) {
  const { flags, host, screen } = call;
  return {
    cwd: resolve(call.cwd),
    env: host.env,
    ...defined({
      stateDir: call.stateDir,
      sandbox: flags.sandbox,
      network: flags.network === undefined ? undefined : networkWish(flags.network),
    }),
    trust: defined({ digest: flags.trust }),
    ...journalAccess(call, signal),
    notify: (text: string) => screen.complain(shown(call.typed(text))),
    signal,
    onBegin: () => void host.interruption(),
  };
}

function resumeEval(call: CallOf<"eval">, { eval: name, agent }: EvalRecord): string {
  const flags = writtenFlags(call, ["cwd", "state", "sandbox", "network", "jobs", "baseline"]);
  return ["lockstep", "eval", shellWord(agent), "--resume", name, ...flags].join(" ");
}

/** The rates of an earlier report. */
function baselineOf(call: CallOf<"eval">, file: string): EvalBaseline {
  const value = parseJsonObject(readGiven(call, file, "USAGE"));
  const models = value?.models;
  if (value?.kind !== "lockstep-eval" || !Array.isArray(models) || !models.every(isModel))
    throw new RunnerError("USAGE", `${file} is not a report of lockstep eval --json.`);
  return value as unknown as EvalBaseline;
}

function isModel(one: Json): boolean {
  return (
    isObject(one) &&
    typeof one.model === "string" &&
    Array.isArray(one.pass) &&
    one.pass.every(
      (pass: Json) => isObject(pass) && typeof pass.k === "number" && typeof pass.mean === "number",
    )
  );
}

// The report.

type EvalReport = {
  readonly v: 1;
  readonly kind: "lockstep-eval";
  readonly ok: boolean;
  readonly exitCode: number;
  readonly eval: string;
  readonly agent: string;
  readonly budgetUsd: number | null;
  readonly models: readonly ModelFigures[];
  readonly comparisons: readonly ModelComparison[];
  readonly held: readonly HeldRate[];
  readonly runs: readonly Omit<PlacedRun, "folder" | "setAside" | "unmet">[];
};

function documentOf(record: EvalRecord, { min }: EvalsRead, baseline: EvalBaseline | null): EvalReport {
  const models = figuresOf(record.runs);
  const held = [...heldTo(models, min), ...(baseline === null ? [] : heldToBaseline(models, baseline))];
  const isUnsure = models.some(({ inconclusive }) => inconclusive);
  const isMissed = held.some(({ state }) => state === "missed");
  const exitCode = isUnsure ? EXIT.unavailable : isMissed ? EXIT.testsFailed : EXIT.completed;
  return {
    v: 1,
    kind: "lockstep-eval",
    ok: exitCode === EXIT.completed,
    exitCode,
    eval: record.eval,
    agent: record.agent,
    budgetUsd: record.budgetUsd,
    models,
    comparisons: comparisonsOf(models),
    held,
    runs: record.runs.map(({ folder: _folder, setAside: _set, unmet: _unmet, ...run }) => run),
  };
}

function endLine({ task, model, at, state, run, reason }: PlacedRun, paint: Paint): string {
  const mark = state === "passed" ? paint("green", "✓") : paint(state === "failed" ? "red" : "yellow", "✗");
  const why = reason === null ? "" : `  ${state}: ${shownInLine(reason.split("\n")[0] ?? "", 160)}`;
  return `${mark} ${shownInLine(model)} › ${shownInLine(task)} #${at + 1}  ${run ?? "-"}${why}`;
}

function renderEval(call: CallOf<"eval">, report: EvalReport, paint: Paint): string {
  const { models, comparisons, held, budgetUsd } = report;
  const left = report.runs.filter(({ state }) => state === "open" || state === "running").length;
  const resume = resumeEval(call, report as unknown as EvalRecord);
  return [
    paint("bold", `${shownInLine(report.agent)}: ${report.eval}`),
    ...models.flatMap((one) => modelLines(one, paint)),
    ...comparisons.map(comparisonLine),
    ...held.map((one) => heldLine(one, paint)),
    ...(budgetUsd === null ? [] : [`budget $${budgetUsd.toFixed(2)}`]),
    ...(left === 0
      ? []
      : [
          `${count(left, "run")} not begun. Continue with: ${call.typed(resume)}${budgetUsd === null ? "" : " --budget MORE"}`,
        ]),
    "The intervals (95 %) hold for these tasks; they say nothing about others.",
  ].join("\n");
}

function modelLines(one: ModelFigures, paint: Paint): readonly string[] {
  const { model, passed, failed, errors, cut, notBegun, pass, falseGreen, cost, inconclusive } = one;
  const others = [
    [errors, "errors"],
    [cut, "cut by the budget"],
    [notBegun, "not begun"],
  ] as const;
  const counts = [
    `${passed} of ${passed + failed} passed`,
    ...others.flatMap(([n, what]) => (n > 0 ? `${n} ${what}` : [])),
  ];
  const rows = [
    ...pass.map(({ k, mean, interval }) => [`pass^${k}`, mean.toFixed(2), between(interval)]),
    falseGreen.of === 0
      ? ["false green", "-", ""]
      : ["false green", `${falseGreen.count} of ${falseGreen.of}`, between(falseGreen.interval)],
    cost === null
      ? ["cost", "not known", ""]
      : [
          "cost",
          dollars(cost.all),
          `${dollars(cost.perRun)} a run, ${cost.perSuccess === null ? "-" : dollars(cost.perSuccess)} a success`,
        ],
  ];
  return [
    "",
    `${paint("bold", shownInLine(model))}  ${counts.join(" · ")}`,
    ...table(rows).map((line) => `  ${line}`),
    ...(inconclusive
      ? [`  ${paint("yellow", "inconclusive")}: more than a fifth of the runs were errors of the machinery`]
      : []),
  ];
}

function between(interval: Interval | null): string {
  return interval === null ? "" : `(${interval.low.toFixed(2)}-${interval.high.toFixed(2)})`;
}

function dollars(usd: number): string {
  return `$${usd.toFixed(4)}`;
}

function comparisonLine({ model, against, mean, interval, better, moreRuns }: ModelComparison): string {
  const sign = mean < 0 ? "" : "+";
  const told =
    moreRuns === 0
      ? `${better > 0.5 ? "better" : "worse"} (probability ${Math.max(better, 1 - better).toFixed(2)})`
      : moreRuns === null
        ? "cannot tell them apart"
        : `cannot tell yet, about ${count(moreRuns, "run")} more of each task`;
  return `${shownInLine(model)} against ${shownInLine(against)}: ${sign}${mean.toFixed(2)} ${between(interval)}, ${told}`;
}

function heldLine({ model, what, least, interval, state }: HeldRate, paint: Paint): string {
  const word = {
    met: paint("green", "met"),
    open: paint("yellow", "open: the interval lies around it"),
    missed: paint("red", "missed"),
  }[state];
  return `${shownInLine(model)}  ${what} at least ${least.toFixed(2)}  ${between(interval)}  ${word}`;
}
