/** What loading an agent gives, made once for every dialect. */
import type { Path } from "../flow/json.ts";
import type { Problem } from "../flow/problem.ts";
import { AGENT } from "./agent/agent-shape.ts";
import type { LoadResult, ModelToTry, SchemaToTry } from "./index.ts";
import type { Finding } from "./rules/rule.ts";
import { refusedFolder } from "./rules/sandbox.ts";
import { toProblem } from "./codes.ts";
import { atPart, written, type LoadedFlow } from "./rules/loaded.ts";
import { emptyDocument } from "./text/document.ts";
import { originsIn } from "./text/origin.ts";
import { leavesIn } from "./text/record.ts";

export function resultOf(
  loaded: LoadedFlow,
  stepsIn: string,
  problems: readonly Problem[],
  schemas: readonly SchemaToTry[],
): LoadResult {
  const origin = originsIn(loaded.where);
  const problemAt: LoadResult["problemAt"] = (part, found) =>
    toProblem({ ...found, ...atPart(loaded, ...part) }, loaded.live);
  const models = modelsToTry(loaded, problemAt);
  const settings = leavesIn(AGENT, loaded.agent);
  const { asked, filesystem } = loaded.flow.settings.boundaries.sandbox;
  const folders = (asked ? filesystem.allowedPaths : []).map((path, index) => ({
    path,
    refuse: (why: string) => problemAt([...ALLOWED_PATHS, String(index)], refusedFolder(path, why)),
  }));
  return {
    flow: loaded.flow,
    origin,
    checks: loaded.flow.checks,
    settings,
    stepsIn,
    problems,
    problemAt,
    inOrder: asFound,
    schemas,
    models,
    folders,
  };
}

const ALLOWED_PATHS = ["settings", "runner", "boundaries", "sandbox", "filesystem", "allowedPaths"];

/** Nothing could be built. */
export function onlyProblems(findings: readonly Finding[], file: string): LoadResult {
  const document = emptyDocument(file);
  return {
    flow: null,
    origin: () => null,
    checks: {},
    settings: [],
    stepsIn: file,
    problems: findings.map((finding) => toProblem(finding, null)),
    problemAt: (_part, found) => toProblem({ ...found, document, pointer: "" }, null),
    inOrder: asFound,
    schemas: [],
    models: [],
    folders: [],
  };
}

function asFound(problems: readonly Problem[]): readonly Problem[] {
  return problems;
}

/** Names of models as files write them: which of them mean something, only the user's settings can say. */
function modelsToTry(loaded: LoadedFlow, problemAt: LoadResult["problemAt"]): readonly ModelToTry[] {
  const ofSteps = [...loaded.entries.keys()]
    .filter((id) => loaded.entries.get(id)!.model !== undefined)
    .map((id) => ["steps", id, "model"]);
  return [DEFAULT_MODEL, ...ofSteps].flatMap((part) => {
    const name = written(loaded, ...part);
    if (typeof name !== "string" || name === "") return [];
    const doubt = (meant: string) =>
      problemAt(part, {
        code: "MODEL-UNKNOWN",
        message: `Unknown model "${name}". Did you mean "${meant}"?`,
        fix: `Write "${meant}", or define "${name}" under models in your config.json.`,
      });
    return [{ name, doubt }];
  });
}

const DEFAULT_MODEL: Path = ["settings", "runner", "flow", "defaultModel"];
