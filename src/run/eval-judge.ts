/** Whether a run of an eval passed: what is expected of it, and the hidden checks in its folder after its end. */
import { join } from "node:path";
import { createGround } from "../boundaries/gate/paths.ts";
import { createShell } from "../effects/process/shell.ts";
import type { Journal } from "../engine/ports.ts";
import type { CheckResult } from "../flow/event.ts";
import type { EvalTask } from "../flow/flow-eval.ts";
import type { Flow } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import { errorText } from "../flow/text/harmless.ts";
import { EXIT } from "../flow/verdict.ts";
import type { TestSettings } from "../flow/test-settings.ts";
import { breachesIn } from "../proof/author.ts";
import type { EvalRun } from "../proof/eval.ts";
import { unmetIn } from "../proof/expect.ts";
import { observe } from "../proof/observe.ts";
import type { Result } from "../tell/result.ts";
import type { Loaded, LoadedAgent } from "./load.ts";
import type { DriveOptions } from "./options.ts";
import { redactorOf } from "./open.ts";
import { readRun } from "./records/runs.ts";
import { readConfig } from "./world/config.ts";
import { copyInto } from "./world/copy-tree.ts";
import { guardedIn } from "./world/own-files.ts";
import { loadedModules } from "./world/own-modules.ts";
import { openGround, settleGround } from "./world/process-starter.ts";
import { openCopy } from "./world/project-copy.ts";
import { programsFor } from "./world/programs.ts";

export type Judged = Pick<EvalRun, "state" | "reason" | "green" | "hidden">;

/** What an eval needs of the agent. */
export type EvaluatedAgent = Pick<LoadedAgent, keyof Loaded | "checks">;

/** A run that ended, and the folder that it worked in. */
export type EndedRun = {
  readonly run: string;
  readonly folder: string;
  readonly result: Result;
  /** The limit on its cost that the eval gave it; null: another limit was lower, or there is none. */
  readonly limit: number | null;
  /** What was expected and does not hold, in a sentence; null: all of it holds. Absent: nobody has looked yet. */
  readonly unmet?: string | null;
};

/** What the agent's author wants of every run, and what hears of the first look at a run. */
export type Judging = {
  readonly settings: TestSettings;
  readonly onLooked: (unmet: string | null) => void;
};

export async function judgeRun(
  loaded: EvaluatedAgent,
  task: EvalTask,
  ended: EndedRun,
  journal: Journal,
  options: Omit<DriveOptions, "observe"> & Judging,
): Promise<Judged> {
  const { result, limit } = ended;
  const green = result.success;
  const as = (state: Judged["state"], reason: string | null, hidden: boolean | null = null): Judged => ({
    state,
    reason,
    green,
    hidden,
  });
  if (isOfMachinery(result)) return as("error", result.reason);
  const isCut = result.limit?.of === "run" && result.limit.name === "costUsd" && limit !== null;
  if (result.code === "BUDGET_EXHAUSTED" && isCut)
    return as("cut", `It reached the $${limit.toFixed(2)} that were set aside for it.`);
  let { unmet } = ended;
  // Looked at once, before anything hidden is among the files.
  if (unmet === undefined) options.onLooked((unmet = await unmetBy(loaded, task, ended, journal, options)));
  const uncopied = await copyHidden(loaded, task, ended);
  if (uncopied !== null) return as("failed", unmet ?? uncopied, false);
  const hidden = task.hidden === null ? null : await hiddenChecks(loaded, task.hidden, ended, options);
  const broken = hidden?.find(({ unrecoverable }) => unrecoverable !== undefined);
  if (broken !== undefined)
    return as("error", `The hidden check "${broken.name}" could not run: ${broken.summary}`);
  const failed = hidden?.find(({ ok }) => !ok);
  const passes = hidden === null ? null : failed === undefined;
  if (unmet !== null) return as("failed", unmet, passes);
  if (failed !== undefined)
    return as("failed", `The hidden check "${failed.name}" failed: ${failed.summary}`, false);
  return as("passed", null, passes);
}

/** The first thing that the task, or the author of the agent, expects of the run and that does not hold. */
async function unmetBy(
  { project: { root } }: EvaluatedAgent,
  { expect, project, line }: EvalTask,
  { result, run, folder }: EndedRun,
  journal: Journal,
  { settings, env = process.env }: Pick<DriveOptions, "env"> & Judging,
): Promise<string | null> {
  const { flow, entries, adopted } = await readRun(journal, run);
  const beside = { heard: [], waits: [], warnings: result.warnings };
  const { observed, moments } = observe(flow, entries, beside, adopted);
  const left = await openCopy(root, project, folder, env).left(expect.values);
  const [unmet] = unmetIn(expect, { ...observed, ...left }, [], line);
  const how = result.success ? "" : ` ${result.reason}`;
  if (unmet !== undefined) {
    const at = unmet.at === "" ? unmet.key : `${unmet.key}.${unmet.at}`;
    return `${at}: expected ${shown(unmet.expected)}, got ${shown(unmet.got)}.${how}`;
  }
  const [breach] = breachesIn(moments, settings);
  if (breach === undefined) return null;
  return `${breach.rule} (${settings.file}) does not hold at ${breach.at}: ${breach.what}.`;
}

function shown(value: Json | undefined): string {
  return value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value);
}

/** A rate limit, a key, the network or the sandbox: it says nothing about the model. */
function isOfMachinery({ exitCode, outcome }: Result): boolean {
  return exitCode === EXIT.unavailable || outcome === "interrupted";
}

/** Why the hidden files cannot be copied into what the run has left; null: they are there. */
async function copyHidden(
  { project }: EvaluatedAgent,
  { hidden }: EvalTask,
  { folder }: EndedRun,
): Promise<string | null> {
  if (hidden?.files == null) return null;
  try {
    await copyInto(join(project.root, hidden.files), folder);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A run can remove its folder, or make it read-only. Anything else is not its doing.
    if (code !== "EACCES" && code !== "EPERM" && code !== "ENOENT") throw error;
    return `The hidden files cannot be copied into the folder that the run left: ${errorText(error)}`;
  }
}

/** Runs the hidden checks in the folder of the run, as the run would. */
async function hiddenChecks(
  { project, flow, checks: declared }: EvaluatedAgent,
  { checks }: NonNullable<EvalTask["hidden"]>,
  { run, folder }: EndedRun,
  options: Omit<DriveOptions, "observe">,
): Promise<readonly CheckResult[]> {
  await using stack = new AsyncDisposableStack();
  const shell = await shellIn(project, flow!, { run, folder }, options, stack);
  const signal = options.signal ?? new AbortController().signal;
  const results: CheckResult[] = [];
  for (const name of checks) results.push(await shell.check(declared[name]!, signal));
  return results;
}

async function shellIn(
  project: Loaded["project"],
  flow: Flow,
  { run, folder: cwd }: Pick<EndedRun, "run" | "folder">,
  options: Omit<DriveOptions, "observe">,
  stack: AsyncDisposableStack,
) {
  const { env = process.env } = options;
  const { root, stateDir } = project;
  const config = readConfig(env);
  const setting = { flows: [flow], backend: { spec: { id: "eval" } }, project, cwd, config, granting: false };
  const ground = stack.use(await settleGround(setting, options));
  const { mcpServers: _servers, ...settings } = flow.settings;
  const withoutServers = { ...flow, settings } as Flow;
  const { exec, allow } = await openGround(
    withoutServers,
    { cwd, stateDir, run },
    options,
    { config, ground },
    stack,
  );
  const guarded = () => guardedIn({ cwd, root, stateDir }, env, loadedModules(flow, root));
  const { git } = programsFor(env, [root, cwd]);
  const redactor = redactorOf({ ...options, config }, flow);
  const tidied: typeof exec = (command) => exec({ ...command, tidy: redactor.text });
  return createShell({ cwd, env, allow, exec: tidied, ground: createGround(cwd, [], guarded), git });
}
