/** The evaluation tasks of an agent: `.agent/<name>/evals/*.yaml` (`.yml`, `.json`). Pure over `files`; never throws. */
import type { FileTree } from "../flow/files.ts";
import { POWERS, type EvalMin, type EvalTask, type MinName } from "../flow/flow-eval.ts";
import type { Expected } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { defined } from "../flow/json.ts";
import type { Problem } from "../flow/problem.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import { testGround } from "./test-around.ts";
import {
  besideTest,
  isTestParameter,
  reportTest,
  testDocument,
  unknownTestParameter,
} from "./test-reading.ts";
import { testExpected } from "./tests.ts";
import type { Document } from "./text/document.ts";
import { EVAL_FILE, type EvalFileSource } from "./text/evals-shape.ts";
import { joinPath } from "./text/paths.ts";
import { readShape } from "./text/shape.ts";

export type EvalsRead = {
  readonly tasks: readonly EvalTask[];
  /** Of all files: where two give the same rate, the higher one. */
  readonly min: EvalMin;
  readonly problems: readonly Problem[];
};

export function readEvals(flow: Flow, files: FileTree): EvalsRead {
  const findings: Finding[] = [];
  const folder = joinPath(".agent", `${flow.agent}/evals`);
  const names = (files.list(folder) ?? []).filter((name) => /^[^.].*\.(?:ya?ml|json)$/.test(name));
  const taken = new Set<string>();
  const read = names.map((name) => readFileOf({ flow, files, findings, taken }, `${folder}/${name}`));
  return {
    tasks: read.flatMap(({ tasks }) => tasks),
    min: highest(read.map(({ min }) => min)),
    problems: findings.map((finding) => toProblem(finding, null)),
  };
}

function highest(all: readonly EvalMin[]): EvalMin {
  const rates: { [name in MinName]?: number } = {};
  for (const name of POWERS.map((k): MinName => `pass${k}`))
    for (const min of all) if (min[name] !== undefined) rates[name] = Math.max(rates[name] ?? 0, min[name]);
  return rates;
}

type Reading = {
  readonly flow: Flow;
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
  const source = readShape(EVAL_FILE, document.value, "", { document, code: "EVAL-FILE", findings });
  if (source === undefined) return { tasks: [], min: {} };
  const reading: Reading = { ...about, document };
  requireRates(reading, source);
  const tasks = (source.tasks ?? []).flatMap((task, at) =>
    task.skip ? [] : [taskOf(reading, source, task, `/tasks/${at}`)],
  );
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
  const { document, flow, taken } = reading;
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
  for (const parameter of task.params.keys())
    if (!isTestParameter(flow, parameter)) unknownTestParameter(reading, pointer, parameter);
  const project = testGround(reading, task.project ?? source.project, task.git ?? source.git);
  if (project.kind === "project") requireFolder(reading, project.folder, `${pointer}/project`);
  return {
    name,
    file: document.file,
    line: document.place(pointer).line,
    params: Object.fromEntries([...source.params, ...task.params]),
    input: task.input ?? source.input ?? "",
    project: project.kind === "project" ? project : null,
    expect: completing(withoutUnheard(reading, testExpected(reading, task, pointer), pointer)),
    hidden: hiddenOf(reading, task, pointer),
  };
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
  const { flow, document } = reading;
  const checks = hidden.checks ?? [];
  for (const [at, name] of checks.entries())
    if (!Object.hasOwn(flow.checks, name)) {
      const names = Object.keys(flow.checks);
      reportTest(
        reading,
        "EVAL-FILE",
        `${pointer}/hidden/checks/${at}`,
        `"${name}" is not a check of the flow.${didYouMean(name, names)}`,
        `Use one of: ${names.join(", ") || "none"}.`,
      );
    }
  const files = hidden.files === undefined ? null : besideTest(document.file, hidden.files);
  if (files !== null) requireFolder(reading, files, `${pointer}/hidden/files`);
  return { files, checks };
}

function requireFolder(reading: Reading, folder: string, pointer: string): void {
  if (reading.files.list(folder) !== null) return;
  reportTest(
    reading,
    "EVAL-FILE",
    pointer,
    `The folder ${folder} does not exist.`,
    "Name a folder relative to the file.",
  );
}
