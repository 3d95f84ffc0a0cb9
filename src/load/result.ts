/** What loading an agent gives, made once for every dialect. */
import type { StepId } from "../flow/flow.ts";
import type { Problem } from "../flow/problem.ts";
import { modelsToTry } from "./agent/models.ts";
import type { LoadResult, SchemaToTry } from "./index.ts";
import { toProblem, type Finding } from "./rules/finding.ts";
import { at, type Loaded } from "./rules/loaded.ts";
import { emptyDocument } from "./text/document.ts";
import { originsIn } from "./text/origin.ts";

/** `ids`: what may name a model. `live`: the steps that the entry can lead to; null: every step counts. */
export function resultOf(
  loaded: Loaded,
  stepsIn: string,
  problems: readonly Problem[],
  schemas: readonly SchemaToTry[],
  ids: Iterable<StepId>,
  live: ReadonlySet<StepId> | null,
): LoadResult {
  const origin = originsIn(loaded.where);
  const problemAt: LoadResult["problemAt"] = (part, found) =>
    toProblem({ ...found, ...at(loaded, ...part) }, live);
  const models = modelsToTry(origin, problemAt, ids);
  return { flow: loaded.flow, origin, stepsIn, problems, problemAt, inOrder: asFound, schemas, models };
}

/** Nothing could be built. */
export function onlyProblems(findings: readonly Finding[], file: string): LoadResult {
  const document = emptyDocument(file);
  return {
    flow: null,
    origin: () => null,
    stepsIn: file,
    problems: findings.map((finding) => toProblem(finding, null)),
    problemAt: (_part, found) => toProblem({ ...found, document, pointer: "" }, null),
    inOrder: asFound,
    schemas: [],
    models: [],
  };
}

function asFound(problems: readonly Problem[]): readonly Problem[] {
  return problems;
}
