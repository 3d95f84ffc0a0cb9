/** The evaluation tasks of an agent: `.agent/<name>/evals/*.yaml` (`.yml`, `.json`). Pure over `files`; never throws. */
import type { FileTree } from "../flow/files.ts";
import { POWERS, type EvalMin, type EvalTask, type MinName } from "../flow/flow-eval.ts";
import type { Expected } from "../flow/flow-test.ts";
import type { Check, Flow } from "../flow/flow.ts";
import { defined, isObject, type Json, type JsonObject } from "../flow/json.ts";
import type { Problem } from "../flow/problem.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem } from "./codes.ts";
import { coerceParameters } from "./parameters.ts";
import type { Finding } from "./rules/rule.ts";
import { testGround } from "./test-around.ts";
import {
  besideTest,
  isTestParameter,
  reportTest,
  requireTestFolder,
  strictReader,
  testDocument,
  unknownTestParameter,
  valuesIn,
} from "./test-reading.ts";
import { testExpected } from "./test-expect.ts";
import type { Document } from "./text/document.ts";
import { EVAL_FILE, type EvalFileSource } from "./text/evals-shape.ts";
import { joinPath } from "./text/paths.ts";
import { checkParts } from "./text/test-parts.ts";
import { readShape } from "./text/shape.ts";

export type EvalsRead = {
  readonly tasks: readonly EvalTask[];
  /** Of all files: where two give the same rate, the higher one. */
  readonly min: EvalMin;
  readonly problems: readonly Problem[];
};

/** `checks`: every one that the agent declares, also those that no step uses. */
export type EvalAgent = { readonly flow: Flow; readonly checks: { readonly [name: string]: Check } };

export function readEvals({ flow, checks }: EvalAgent, files: FileTree): EvalsRead {
  const findings: Finding[] = [];
  const folder = joinPath(".agent", `${flow.agent}/evals`);
  const names = (files.list(folder) ?? []).filter((name) => /^[^.].*\.(?:ya?ml|json)$/i.test(name));
  const taken = new Set<string>();
  const read = names.map((name) => readFileOf({ flow, checks, files, findings, taken }, `${folder}/${name}`));
  return {
    tasks: read.flatMap(({ tasks }) => tasks),
    min: highest(read.map(({ min }) => min)),
    // A misspelled key is a mistake as well: it would spend money on a task that is not the one that was meant.
    problems: findings.map((finding) => toProblem({ ...finding, code: "EVAL-FILE" }, null)),
  };
}

function highest(all: readonly EvalMin[]): EvalMin {
  const rates: { [name in MinName]?: number } = {};
  for (const name of POWERS.map((k): MinName => `pass${k}`))
    for (const min of all) if (min[name] !== undefined) rates[name] = Math.max(rates[name] ?? 0, min[name]);
  return rates;
}

type Reading = EvalAgent & {
  readonly files: FileTree;
  readonly document: Document;
  readonly findings: Finding[];
  /** Names of tasks: an eval lists its runs by them. */
  readonly taken: Set<string>;
};

function readFileOf(about: Omit<Reading, "document">, file: string): Pick<EvalsRead, "tasks" | "min"> {
  const { files, findings } = about;
  const document = testDocument(files, file, findings);
  if (document === null) return { tasks: [], min: {} };
  const reading: Reading = { ...about, document };
  if (document.value === null)
    reportTest(
      reading,
      "EVAL-FILE",
      "",
      `${file} is empty.`,
      "Write tasks in it, a list, or remove the file.",
    );
  const source = readShape(EVAL_FILE, document.value, "", { document, code: "EVAL-FILE", findings });
  if (source === undefined) return { tasks: [], min: {} };
  requireRates(reading, source);
  requireParameters(reading, source.params, "");
  const written = isObject(document.value) ? document.value : {};
  checkParts(written, "", strictReader(reading));
  // An item that is null is passed over by the shape.
  const items = valuesIn(written.tasks).flatMap((item, at) => {
    if (item !== null) return [{ item, at }];
    reportTest(reading, "EVAL-FILE", `/tasks/${at}`, "The task is empty.", "Write its name, or remove it.");
    return [];
  });
  const tasks = (source.tasks ?? []).flatMap((task, place) => {
    const { item, at } = items[place] ?? { item: null, at: place };
    if (isObject(item)) checkParts(item, `/tasks/${at}`, strictReader(reading));
    return task.skip ? [] : [taskOf(reading, source, task, `/tasks/${at}`)];
  });
  return { tasks, min: defined({ ...source.min }) };
}

function requireRates(reading: Reading, { min }: EvalFileSource): void {
  for (const [name, rate] of Object.entries(min ?? {}))
    if (rate !== undefined && rate > 1)
      reportTest(
        reading,
        "EVAL-FILE",
        `/min/${name}`,
        `${rate} is not a rate.`,
        "Write a number from 0 to 1.",
      );
}

type TaskSource = NonNullable<EvalFileSource["tasks"]>[number];

function taskOf(reading: Reading, source: EvalFileSource, task: TaskSource, pointer: string): EvalTask {
  const { document, taken } = reading;
  const { name = "a task" } = task;
  if (taken.has(name))
    reportTest(
      reading,
      "EVAL-FILE",
      `${pointer}/name`,
      `Two tasks have the name "${name}".`,
      "Give each task a name of its own.",
    );
  taken.add(name);
  requireParameters(reading, task.params, pointer);
  const git = task.git ?? source.git;
  const ground = testGround(reading, task.project ?? source.project, git);
  const project = ground.kind === "project" ? ground : null;
  if (project !== null)
    requireTestFolder(
      reading,
      project.folder,
      task.project === undefined ? "/project" : `${pointer}/project`,
    );
  else if (isGit(git))
    reportTest(
      reading,
      "EVAL-FILE",
      task.git === undefined ? "/git" : `${pointer}/git`,
      `The task "${name}" has git and no project.`,
      "Name a folder as project: a repository is made of a copy of it.",
    );
  const hidden = hiddenOf(reading, task, pointer);
  if (hidden?.files != null) requireUncopied(reading, hidden.files, project, `${pointer}/hidden/files`);
  const expect = completing(withoutUnheard(reading, testExpected(reading, task, pointer), pointer));
  if (expect.values.git !== undefined && (project === null || project.git === false))
    reportTest(
      reading,
      "EVAL-FILE",
      `${pointer}/expect/git`,
      `The task "${name}" expects something of git, and its copy is not a repository.`,
      "Add git: true to the task.",
    );
  const params = Object.fromEntries([...source.params, ...task.params]);
  requireArguments(reading, params, pointer);
  return {
    name,
    file: document.file,
    line: document.place(pointer).line,
    params,
    input: task.input ?? source.input ?? "",
    project,
    expect,
    hidden,
  };
}

function isGit(git: Json | undefined): boolean {
  return git !== undefined && git !== false && git !== null;
}

function requireParameters(
  reading: Reading,
  params: { readonly keys: () => Iterable<string> },
  pointer: string,
): void {
  for (const name of params.keys())
    if (!isTestParameter(reading.flow, name)) unknownTestParameter(reading, pointer, name);
}

/** What a run would refuse, before another task has cost money. */
function requireArguments(reading: Reading, params: JsonObject, pointer: string): void {
  const { parameters, openArguments } = reading.flow;
  // Unknown ones are reported where they are written.
  const known = Object.fromEntries(
    Object.entries(params).filter(([name]) => isTestParameter(reading.flow, name)),
  );
  for (const { message } of coerceParameters(parameters, known, openArguments).problems)
    reportTest(reading, "EVAL-FILE", pointer, message, "Give it a valid value under params.");
}

/** Of a project, and of its agents, these are not copied. */
const NOT_COPIED = /^\.(?:agent|lockstep|git)(?:\/|$)/;
const JUDGING = /^\.agent\/[^/]+\/(?:evals|tests)(?:\/|$)/;

/** Files that are copied for the run are not hidden from it. */
function requireUncopied(
  reading: Reading,
  files: string,
  project: EvalTask["project"],
  pointer: string,
): void {
  const wayIn = (folder: string) =>
    folder === "" ? files : files.startsWith(`${folder}/`) ? files.slice(folder.length + 1) : null;
  const way = project === null ? null : files === project.folder ? "" : wayIn(project.folder);
  const isInAgents = wayIn(".agent") !== null && !JUDGING.test(files);
  if ((way === null || NOT_COPIED.test(way)) && !isInAgents) return;
  reportTest(
    reading,
    "EVAL-FILE",
    pointer,
    `The hidden folder ${files} lies in a folder that is copied for the run: the model would see it.`,
    `Move it to a folder of its own in .agent/${reading.flow.agent}/evals.`,
  );
}

/** What is said to a model, and snapshots of it, belong to tests. */
const UNHEARD = ["said", "snapshot", "waited", "github"] as const;

function withoutUnheard(reading: Reading, expect: Expected, pointer: string): Expected {
  for (const key of UNHEARD)
    if (Object.hasOwn(expect.values, key))
      reportTest(
        reading,
        "EVAL-FILE",
        `${pointer}/expect/${key}`,
        `"${key}" cannot be expected of a real run.`,
        "Expect it in a test (.agent/NAME/tests), where the model is a script.",
      );
  return expect;
}

/** A task is done when the run is complete, unless the task says how it ends. Warnings are not looked at. */
function completing({ lines, values }: Expected): Expected {
  const { outcome, code, exit } = values;
  const isTold = (outcome ?? code ?? exit) !== undefined && Object.keys(lines).length > 0;
  if (isTold) return { lines, values };
  const { warnings, ...rest } = values;
  const kept = Object.hasOwn(lines, "warnings") && warnings !== undefined ? { warnings } : {};
  return { lines, values: { ...rest, ...kept, outcome: "completed" } };
}

function hiddenOf(reading: Reading, { hidden }: TaskSource, pointer: string): EvalTask["hidden"] {
  if (hidden === undefined) return null;
  const { document } = reading;
  const checks = hidden.checks ?? [];
  for (const [at, name] of checks.entries())
    if (!Object.hasOwn(reading.checks, name)) {
      const names = Object.keys(reading.checks);
      reportTest(
        reading,
        "EVAL-FILE",
        `${pointer}/hidden/checks/${at}`,
        `"${name}" is not a check of the agent.${didYouMean(name, names)}`,
        `Use one of: ${names.join(", ") || "none"}.`,
      );
    }
  const files = hidden.files === undefined ? null : besideTest(document.file, hidden.files);
  if (files !== null) requireTestFolder(reading, files, `${pointer}/hidden/files`);
  return { files, checks };
}
